"""What the JSON API reads: names of fields, the same for every verb, and those of earlier versions."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic", reason="needs the extra serve")

from pydantic import ValidationError

from regard.serve.questions import FillQuestion, GenerateQuestion, NearestQuestion, NextQuestion, Question


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
