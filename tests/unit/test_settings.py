"""Config classes: what they accept, what they refuse, and in which words."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.config import folder_of
from regard.errors import RegardError
from regard.settings import Settings, setting
from regard.untrusted.small_files import open_regular


@dataclass(frozen=True, kw_only=True)
class Sample(Settings):
    name: str = setting("adamw", "the optimiser", choices=["adamw", "sgd"])
    lr: float = setting(1e-3, "step size", low=0)
    n_steps: int | None = setting(None, "how many steps", low=1)
    betas: tuple[float, float] = setting((0.9, 0.99), "moment decay", low=0, high=1)
    is_fused: bool = setting(True, "one kernel")
    paths: tuple[str, ...] | str = setting("a", "sources")

    def check(self) -> None:
        if self.name == "sgd" and self.is_fused:
            raise RegardError("name sgd needs is_fused false.")


@dataclass(frozen=True, kw_only=True)
class Needs(Settings):
    train: str = setting(doc="where the text is")


def test_defaults_round_trip_through_plain_values() -> None:
    sample = Sample()
    assert Sample.from_dict(sample.to_dict()) == sample
    assert sample.to_dict()["betas"] == [0.9, 0.99]


def test_numbers_as_yaml_reads_them_are_met_half_way() -> None:
    sample = Sample.from_dict({"lr": "3e-4", "n_steps": "5e3"})
    assert sample.lr == 3e-4
    assert sample.n_steps == 5000
    assert Sample.from_dict({"lr": 1}).lr == 1.0
    assert Sample.from_dict({"n_steps": 20.0}).n_steps == 20


def test_a_list_of_text_and_a_single_text_are_told_apart() -> None:
    assert Sample.from_dict({"paths": "x.txt"}).paths == "x.txt"
    assert Sample.from_dict({"paths": ["x.txt", "y.txt"]}).paths == ("x.txt", "y.txt")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"learning_rate": 1},
            r"Unknown key 'optimizer.learning_rate'. Did you mean 'optimizer.lr'\? Allowed here: name, lr,",
        ),
        ({"beta": 1}, r"Unknown key 'optimizer.beta'. Did you mean 'optimizer.betas'\?"),
        ({"lr": "fast"}, r"optimizer.lr must be a number, not 'fast'"),
        ({"lr": True}, r"optimizer.lr must be a number, not True"),
        ({"lr": -1}, r"optimizer.lr must be at least 0, not -1"),
        ({"lr": float("nan")}, r"lr must be a finite number, not NaN"),
        ({"lr": float("inf")}, r"lr must be a finite number, not inf"),
        ({"n_steps": 0}, r"n_steps must be at least 1, not 0"),
        ({"n_steps": 2**63}, r"n_steps must be between 1 and 2\^63 - 1, not 9223372036854775808"),
        ({"n_steps": 2.5}, r"optimizer.n_steps must be a whole number or null, not 2.5"),
        ({"n_steps": False}, r"optimizer.n_steps must be a whole number or null, not False"),
        ({"betas": [0.9, 1.5]}, r"betas must be between 0 and 1, not 1.5"),
        ({"betas": [0.9]}, r"optimizer.betas must be list of a number, not \[0.9\]"),
        ({"name": "adam"}, r"optimizer.name must be one of adamw, sgd, not 'adam'. Did you mean 'adamw'\?"),
        ({"is_fused": "yes"}, r"optimizer.is_fused must be true or false, not 'yes'"),
        ({"name": "sgd"}, r"name sgd needs is_fused false"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence(given: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        Sample.from_dict(given, "optimizer")


def test_a_missing_required_key_says_what_it_is_for() -> None:
    with pytest.raises(RegardError, match=r"'data.train' is required: where the text is"):
        Needs.from_dict({}, "data")


def test_a_section_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(RegardError, match=r"data must be a mapping of keys to values, not 3"):
        Needs.from_dict(3, "data")  # type: ignore[arg-type]


def test_replace_validates_again() -> None:
    with pytest.raises(RegardError, match="lr must be at least 0"):
        Sample().replace(lr=-2)


def test_help_lists_every_field_with_its_meaning() -> None:
    lines = {line.name: line for line in Sample.help()}
    assert lines["name"].kind == "adamw | sgd"
    assert lines["lr"].doc == "step size"
    assert lines["n_steps"].kind == "a whole number from 1 on or null"


def test_an_old_name_of_a_setting_still_works_and_the_new_one_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Renamed(Settings):
        renamed = {"breadth": "width"}  # noqa: RUF012
        width: int = setting(1, "how wide")

    assert [Renamed.from_dict({"breadth": 3}, "shape").width for _ in range(2)] == [3, 3]
    assert [record.getMessage() for record in caplog.records] == [
        "The setting shape.breadth is now called shape.width; the old name still works."
    ]
    assert Renamed.from_dict({"breadth": 3}).to_dict() == {"width": 3}


def test_a_value_that_python_gives_is_refused_by_the_name_of_the_setting_alone() -> None:
    with pytest.raises(RegardError, match=r"^lr must be at least 0, not -1"):
        Sample(lr=-1.0)
    with pytest.raises(RegardError, match=r"^optimizer\.lr must be at least 0, not -1"):
        Sample.from_dict({"lr": -1.0}, "optimizer")


def test_no_text_of_a_setting_has_the_character_that_no_file_name_has() -> None:
    for given in ("a\0b", ("good", "a\0b")):
        with pytest.raises(RegardError, match=r"data\.paths must not have the character NUL, as in '.*a\\x00b'"):
            Sample.from_dict({"paths": given}, "data")
    with pytest.raises(RegardError, match=r"'start_from' must be a folder.*not 'a\\x00b'"):
        folder_of({"start_from": "a\0b"}, "start_from")


def test_no_file_is_opened_whose_name_has_the_character_that_no_file_name_has(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"has the character NUL, which no name of a file has"):
        open_regular(tmp_path / "a\0b")
