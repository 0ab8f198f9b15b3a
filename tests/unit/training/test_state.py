"""The counters that a checkpoint keeps."""

import math

import pytest

from regard.training.state import TrainState
from regard.untrusted.fields import FieldError


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, 1e300])
def test_seconds_that_no_training_took_are_refused(seconds: float) -> None:
    """The time that is left was computed from them, which ended in a traceback."""
    written = TrainState(step=3, seconds=2.5).to_dict()
    assert TrainState.from_dict(written).seconds == 2.5
    with pytest.raises(FieldError, match="'seconds' must be a number"):
        TrainState.from_dict(written | {"seconds": seconds})
