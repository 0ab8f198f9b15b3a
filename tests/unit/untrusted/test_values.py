"""Values from outside are shown short, and refused where they are deeper, more or longer than any of ours."""

import json

import pytest

from regard.errors import RegardError
from regard.untrusted import small_files
from regard.untrusted.fields import FieldError, decode_fields
from regard.untrusted.small_files import (
    DamagedFileError,
    TooManyValuesError,
    parse_json,
    parse_yaml,
    read_json,
    read_object,
    read_text,
)
from regard.untrusted.values import find_excess, has_lone_surrogate, make_printable, quote


def bomb(n: int) -> str:
    """A YAML text of n lines whose last value stands for 9^n values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, n)]
    return "\n".join(lines)


def test_an_error_never_prints_a_whole_value() -> None:
    for value in ("x" * 10**6, list(range(10**6)), {str(i): i for i in range(10**4)}, 10**5000, [[[[[[["deep"]]]]]]]):
        assert len(quote(value)) <= 80
    assert quote(3) == "3"
    assert quote("two") == "'two'"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2020-13-45", "a value is not what its form says it is"),
        ("!!int ''", "a value is not what its form says it is"),
        ("!!float x", "a value is not what its form says it is"),
        ("!!bool maybe", "a value is not what its form says it is"),
        ("9" * 5000, "a value is not what its form says it is"),
        ("[" * 3000, "too many lists or mappings inside each other"),
        ("0x" + "f" * 4000, "a whole number of 16,000 bits"),
        ("&a [*a]", "more than 50 lists or mappings"),
        (bomb(9), "more than 1,000,000 values"),
        ("a: [1", "line 1"),
        ("!!python/object/apply:os.system [id]", "could not determine a constructor"),
    ],
)  # fmt: skip
def test_yaml_that_cannot_be_used_is_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_yaml(text)
    assert len(str(refused.value)) < 300


def test_aliases_that_repeat_little_are_read() -> None:
    assert parse_yaml("a: &a [1, 2]\nb: *a") == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, "{", '{"a":}', "\ufeff{}"])
def test_json_that_cannot_be_used_is_a_sentence(text: str) -> None:
    with pytest.raises(DamagedFileError, match=r"^run\.json is not valid JSON: .*copy it again"):
        parse_json(text, "run.json")


def test_half_a_character_is_found_in_any_depth() -> None:
    deep: object = {"a": ["\ud800"]}
    for _ in range(5000):
        deep = [deep]
    assert has_lone_surrogate(deep)
    assert has_lone_surrogate({"\udfff": 0})
    assert not has_lone_surrogate({"a": ["b", {"c": [None, 1, "\U0001f600"]}]})


@pytest.mark.parametrize("depth", [300, 900, 985])
def test_json_too_deep_for_what_walks_it_is_a_sentence(tmp_path, depth: int) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"x":' + "[" * depth + '"\\ud83d\\ude00"' + "]" * depth + "}")
    with pytest.raises(DamagedFileError, match="too many lists or objects inside each other"):
        read_json(path)


def test_json_of_ordinary_depth_is_read() -> None:
    found = parse_json("[" * 200 + f'"{"[" * 250}"' + "]" * 200, "a.json")
    for _ in range(200):
        (found,) = found
    assert found == "[" * 250
    assert parse_json("[" + "[]," * 300 + "[]]", "a.json") == [[]] * 301


def test_brackets_and_commas_inside_texts_count_as_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "MAX_OPENED", 3)
    monkeypatch.setattr(small_files, "MAX_COMMAS", 3)
    value = {"code": 'x[0], "{y}", \\', "again\\": ["[,\n,[,"]}
    for text in (json.dumps(value), json.dumps(value).encode()):
        assert parse_json(text, "a.json") == value
    with pytest.raises(TooManyValuesError, match="more than 3 lists and objects"):
        parse_json(json.dumps([value, value, value]), "a.json")


@pytest.mark.parametrize("text", ['[{"":0},{"":0},{"":0}]', "[[],[],[],[]]", "[" + "0," * 30 + "0]"])
def test_json_of_more_values_than_memory_holds_is_refused_before_it_is_read(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_files, "MAX_OPENED", 3)
    monkeypatch.setattr(small_files, "MAX_COMMAS", 20)
    monkeypatch.setattr(small_files.json, "loads", lambda _: pytest.fail("was read"))
    for each in (text, text.encode()):
        with pytest.raises(DamagedFileError, match=r"^a\.json has more than (3 lists and objects|20 values)"):
            parse_json(each, "a.json")


def test_files_are_regular_and_of_bounded_size(tmp_path) -> None:
    import os

    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**40)  # of which nothing is read
    with pytest.raises(DamagedFileError, match="large' has more than 0 MB"):
        read_text(tmp_path / "large", 2**19)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(RegardError, match="is no regular file but a pipe, a socket or a device"):
            read_object(path)
    (tmp_path / "half.json").write_text('{"a": "\\ud800"}')
    with pytest.raises(DamagedFileError, match="half a character"):
        read_json(tmp_path / "half.json")


def test_no_text_commands_a_terminal() -> None:
    assert make_printable("\x1b]0;owned\x07\x9b2J\r\u202e") == "\\x1b]0;owned\\x07\\x9b2J\\x0d\\u202e"
    assert make_printable("Grüße\t日本語\n") == "Grüße\t日本語\n"
    assert make_printable("\ud800") == "\\ud800"
    assert make_printable("a" * 100, 10) == "aaaaaaa..."


def test_what_is_met_twice_counts_twice() -> None:
    shared = [0] * 2000
    assert find_excess([shared] * 100) is None
    assert find_excess([shared] * 600) == "more than 1,000,000 values"


def test_fields_are_checked_one_by_one() -> None:
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: int
        y: float | None = None
        names: tuple[str, ...] = ()

    assert decode_fields(Point, {"x": 1, "y": 2, "names": ["a"]}) == Point(1, 2.0, ("a",))
    for wrong, why in (
        ({"x": "1"}, "'x' must be a whole number, not '1'"),
        ({"x": True}, "'x' must be a whole number, not True"),
        ({"x": 2**63}, "'x' must be a whole number"),
        ({"x": 1, "y": "a"}, "'y' must be a number"),
        ({"x": 1, "y": 1e300}, "'y' must be a number"),
        ({"x": 1, "names": "ab"}, "'names' must be a list"),
        ({"x": 1, "z": 1}, "Point has 'z', which is no field of it"),
        ({}, "Point lacks x"),
        ([], r"it holds \[\]"),
    ):
        with pytest.raises(FieldError, match=why):
            decode_fields(Point, wrong)
