"""What the JSON API reads: names of fields, the same for every verb, and those of earlier versions."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image

pytest.importorskip("pydantic", reason="needs the extra serve")

from pydantic import ValidationError

from regard.errors import RegardError
from regard.serve.pictures import keep_picture
from regard.serve.questions import (
    CaptionQuestion,
    FillQuestion,
    GenerateQuestion,
    NearestQuestion,
    NextQuestion,
    Question,
)


def test_every_verb_calls_its_text_text_and_how_many_top_k() -> None:
    for kind in (GenerateQuestion, NextQuestion, NearestQuestion, FillQuestion):
        assert {"text", "top_k"} <= kind.model_fields.keys()
        assert not {"prompt", "n"} & kind.model_fields.keys()


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        (GenerateQuestion, {"prompt": "a"}, {"text": "a"}),
        (NextQuestion, {"text": "a", "n": 3}, {"text": "a", "top_k": 3}),
        (NearestQuestion, {"text": "a", "n": 3}, {"text": "a", "top_k": 3}),
    ],
)
def test_fields_are_read_by_their_old_names_too(
    kind: type[Question], given: dict[str, object], wanted: dict[str, object]
) -> None:
    assert kind.model_validate(given) == kind.model_validate(wanted)


def test_a_field_by_both_names_is_refused_and_an_old_name_is_no_field_elsewhere() -> None:
    with pytest.raises(ValidationError, match="n is the old name of top_k: give top_k alone"):
        NextQuestion.model_validate({"text": "a", "n": 3, "top_k": 3})
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        FillQuestion.model_validate({"text": "a", "n": 3})


def test_a_picture_of_more_pixels_than_others_wait_for_is_refused_before_it_is_decoded() -> None:
    data = io.BytesIO()
    Image.new("L", (4_097, 4_096)).save(data, "PNG")
    picture = base64.b64encode(data.getvalue()).decode()
    with (
        pytest.raises(RegardError, match="has 16,781,312 pixels, and 16,777,216 at most are read"),
        keep_picture(picture),
    ):
        pass
    assert CaptionQuestion(picture=picture).size() == 2_000 + 16_781
    assert CaptionQuestion(picture="no picture").size() == 2_000
