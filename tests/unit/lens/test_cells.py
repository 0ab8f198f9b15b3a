"""Cells that follow a feature: planted ones are found, and reading in windows equals reading at once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from interleaving import Interrupted
from tiny_training import SIZES

from regard.layers.taps import Taps
from regard.lens import cell_view, cells
from regard.lens.cell_view import describe_cells, name_place, view_cells
from regard.lens.features import FEATURES
from regard.lens.units import Chunk, Reading, pick_states, read_units
from regard.lens.view import LookOptions
from regard.lens.views import CellTrace, CellView
from regard.models.bert_config import BertConfig
from regard.models.elmo import OneDirection
from regard.models.elmo_config import ElmoConfig
from regard.models.encoder_from_scratch import TextEncoder, build_encoder
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.table import build_model, model_config
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXT = ('He said "no (never)" to it.\n  Then, (2) he "left" (so [I] hear).\n' * 60)[:3600]
CHARACTERS = train_tokenizer(TokenizerConfig(kind="char"), [TEXT])


def made_up_reading(text: str, units: np.ndarray, n_at_once: int) -> Reading:
    """A text of one token a character, whose units come in chunks, the second of each two before the first."""

    def chunks() -> Iterator[Chunk]:
        parts = [np.arange(i, min(i + n_at_once, len(text))) for i in range(0, len(text), n_at_once)]
        for rows in [p for pair in zip(parts[1::2], parts[::2], strict=False) for p in pair] + parts[
            len(parts) // 2 * 2 :
        ]:
            yield Chunk(rows, {"layers.0.cell": units[rows].astype(np.float32)})

    n = len(text)
    return Reading(np.arange(n), np.arange(1, n + 1), chunks())


def plant(text: str, n_units: int = 40) -> np.ndarray:
    """Noise, in which unit 7 follows the quotes and unit 11, turned round, the depth of brackets."""
    rng = np.random.default_rng(0)
    units = rng.normal(size=(len(text), n_units))
    units[:, 7] = FEATURES["inside quotes"](text) + 0.2 * rng.normal(size=len(text))
    units[:, 11] = -FEATURES["bracket depth"](text) + 0.2 * rng.normal(size=len(text))
    return units


@pytest.mark.parametrize("n_at_once", [1, 100, 10_000])
def test_a_planted_cell_is_found_however_the_text_is_cut(n_at_once: int) -> None:
    text = TEXT if n_at_once > 1 else TEXT[:400]
    search, passages = cells.search_units(made_up_reading(text, plant(text), n_at_once), text)
    quotes, brackets = (search.features.index(name) for name in ("inside quotes", "bracket depth"))
    assert search.best(quotes)[0] == 7
    assert search.best(quotes)[1] > 0.8
    assert search.best(brackets)[0] == 11
    assert search.best(brackets)[1] < -0.8
    assert search.follows_nothing not in (7, 11)
    assert search.place(11) == ("layers.0.cell", 11)
    assert search.number("layers.0.cell", 11) == 11
    shown = passages["inside quotes"]
    assert shown.first >= len(text) // 2 - 1  # of the half that did not choose the cell
    np.testing.assert_array_equal(
        shown.units["layers.0.cell"], plant(text)[shown.first : shown.last].astype(np.float32)
    )


def test_running_sums_give_pearsons_r_of_all_values_at_once() -> None:
    units = plant(TEXT)
    search, _ = cells.search_units(made_up_reading(TEXT, units, 37), TEXT)
    half = len(TEXT) // 2
    for which, found in ((slice(0, half), search.picked), (slice(half, None), search.checked)):
        for k, name in enumerate(search.features):
            feature = FEATURES[name](TEXT)[which]
            rounded = units[which].astype(np.float32).astype(np.float64)
            expected = [np.corrcoef(column, feature)[0, 1] for column in rounded.T]
            np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-10)


def test_a_feature_that_never_varies_is_left_out() -> None:
    search, _ = cells.search_units(made_up_reading(TEXT, plant(TEXT), 500), TEXT)
    assert set(search.left_out) == {"inside comments", "inside a docstring", "inside an if"}
    assert not set(search.left_out) & set(search.features)


def test_a_unit_that_rests_correlates_with_nothing_and_is_not_shown_as_one_that_follows_nothing() -> None:
    units = plant(TEXT)
    units[:, 3] = 0.5
    search, _ = cells.search_units(made_up_reading(TEXT, units, 500), TEXT)
    assert not search.picked[:, 3].any()
    assert search.follows_nothing != 3


def test_a_cell_is_chosen_on_one_half_and_checked_on_the_other() -> None:
    units = plant(TEXT)
    half = len(TEXT) // 2
    units[:half, 5] = FEATURES["inside quotes"](TEXT)[:half]  # perfect where it is chosen, noise where it is checked
    search, _ = cells.search_units(made_up_reading(TEXT, units, 500), TEXT)
    unit, r = search.best(search.features.index("inside quotes"))
    assert unit == 5
    assert abs(r) < 0.2


def tiny(name: str) -> torch.nn.Module:
    torch.manual_seed(3)
    return build_model(name, model_config(name, SIZES[name]), CHARACTERS.vocab_size).double().eval()


def gather(reading: Reading | None) -> dict[str, np.ndarray]:
    assert reading is not None
    found: dict[str, np.ndarray] = {}
    for rows, units in reading.chunks:
        for tap, values in units.items():
            found.setdefault(tap, np.full((len(reading.ends), values.shape[1]), np.nan))[rows] = values
    assert not any(np.isnan(values).any() for values in found.values())
    return found


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm", "rnn-attention", "pointer", "window", "convolution"])
def test_reading_in_windows_with_the_state_carried_equals_reading_at_once(name: str) -> None:
    model, text = tiny(name), TEXT[:150]
    whole = gather(read_units(model, CHARACTERS, text, window=1000, n_lanes=1))
    parts = gather(read_units(model, CHARACTERS, text, window=16, n_lanes=1))
    assert list(whole) == list(parts)
    assert all(tap.endswith("cell") for tap in whole) == (name in ("lstm", "rnn-attention", "pointer"))
    for tap in whole:
        np.testing.assert_allclose(parts[tap], whole[tap], rtol=0, atol=1e-6)  # handed out in float32


def test_lanes_are_stretches_that_are_each_read_from_their_start() -> None:
    model, text = tiny("lstm"), TEXT[:90]
    lanes = gather(read_units(model, CHARACTERS, text, window=16, n_lanes=4))  # of 23, 23, 23 and 21 tokens
    for begin in range(0, 90, 23):
        alone = gather(read_units(model, CHARACTERS, text[begin : begin + 23], n_lanes=1))
        for tap in alone:
            np.testing.assert_allclose(lanes[tap][begin : begin + 23], alone[tap], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["transformer", "attention", "bag"])
def test_a_model_with_a_limit_reads_windows_by_themselves(name: str) -> None:
    model, text = tiny(name), TEXT[:20]
    found = gather(read_units(model, CHARACTERS, text))
    limit = getattr(model.mixer, "max_context", None)
    room = 7 if limit else 20  # eight places, one of them for the start of the text
    alone = gather(read_units(model, CHARACTERS, text[:room]))
    for tap in alone:
        np.testing.assert_allclose(found[tap][:room], alone[tap], rtol=0, atol=1e-6)


def test_a_bert_reads_windows_between_its_marks() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=60, has_marks=True), [TEXT])
    config = BertConfig(d_model=8, n_layers=2, n_heads=2, d_ff=16, max_context=8)
    model = build_model("bert", config, tokenizer.vocab_size).double().eval()
    ids = tokenizer.encode(TEXT[:60]).tolist()
    found = gather(read_units(model, tokenizer, TEXT[:60], pick=pick_states))
    window = torch.tensor([[tokenizer.marks.first, *ids[:6], tokenizer.eos]])
    states = model.encode(window, None)
    for tap, state in zip(("embedding", "layers.0.hidden", "layers.1.hidden"), states, strict=True):
        np.testing.assert_allclose(found[tap][:6], state[0, 1:7].detach().numpy(), rtol=0, atol=1e-6)


def test_elmo_is_read_from_both_ends() -> None:
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT])
    config = ElmoConfig(d_model=4, d_hidden=6, n_layers=2, d_character=3, filters=(2, 3), max_characters=8)
    model = build_model("elmo", config, words.vocab_size).double().eval()
    text = TEXT.split("\n")[0]
    whole = gather(read_units(model, words, text, window=500, n_lanes=1))
    parts = gather(read_units(model, words, text, window=3, n_lanes=1))
    assert [name_place(tap) for tap in whole] == [f"layer {n} ({way})" for way in ("ahead", "back") for n in (1, 2)]
    for tap in whole:
        np.testing.assert_allclose(parts[tap], whole[tap], rtol=0, atol=1e-6)
    ids = torch.from_numpy(words.encode(text))
    record = Taps()
    OneDirection(model, "back").hidden(torch.cat([torch.zeros(1, dtype=torch.int64), ids.flip(0)])[None], None, record)
    expected = record["back.layers.1.cell"][0, 1:].flip(0).tanh().detach().numpy()
    np.testing.assert_allclose(whole["back.layers.1.cell"], expected, rtol=0, atol=1e-6)


def test_an_encoder_of_pairs_reads_line_by_line() -> None:
    config = Seq2SeqConfig.from_dict({"encoder": "lstm", "decoder": "lstm", "d_model": 8, "n_layers": 1})
    model = build_model("seq2seq", config, CHARACTERS.vocab_size, CHARACTERS.vocab_size).double().eval()
    both = gather(read_units(model, CHARACTERS, "He said\nno"))
    alone = gather(read_units(model, CHARACTERS, "no"))
    assert set(map(name_place, both)) == {"layer 1 (encoder, ahead)", "layer 1 (encoder, back)"}
    for tap in both:
        np.testing.assert_allclose(both[tap][7:], alone[tap], rtol=0, atol=1e-6)


def test_an_encoder_of_a_task_reads_line_by_line_with_the_mark_of_the_end() -> None:
    torch.manual_seed(0)
    encoder = build_encoder("lstm", model_config("lstm", SIZES["lstm"]), CHARACTERS.vocab_size)
    assert isinstance(encoder, TextEncoder)
    reading = read_units(encoder.eval(), CHARACTERS, "He said\nno")
    assert reading is not None
    assert reading.starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9]  # the second line begins with the line end before it
    found, record = gather(reading), Taps()
    ids = torch.tensor([[*CHARACTERS.encode("no").tolist(), CHARACTERS.eos]])
    with torch.no_grad():
        encoder.encode(ids, torch.ones_like(ids, dtype=torch.bool), None, record)
    cells_of = [name for name in record if name.endswith(".cell")]
    assert set(cells_of) == set(found)
    for tap in cells_of:
        np.testing.assert_allclose(found[tap][7:], record[tap][0, :2].tanh(), rtol=0, atol=1e-6)


def test_what_was_found_is_said_with_the_share_that_nothing_explains() -> None:
    trace = CellTrace(layer=1, unit=4, feature="digits", score=-0.6, values=(0.1,), tap="layers.1.cell", tokens=("a",))
    found = CellView(tap="cell", tokens=("a",), traces=(trace,), n_units=10, n_explained=4, threshold=0.3, n_chars=1000)
    view = describe_cells(found)
    assert view.summary == (
        "Cell 4 of layer 2 follows “digits” best (r = -0.60 on text that did not choose it); of 10 cells, 60% follow "
        "no feature (|r| below 0.3 on the held-out half of 1,000 characters)."
    )
    assert name_place("ahead.layers.0.cell") == "layer 1 (ahead)"


def test_a_view_of_an_earlier_version_is_described_too() -> None:
    trace = CellTrace(layer=0, unit=4, feature="digits", score=0.6, values=(0.1, 0.2))
    view = describe_cells(CellView(tap="hidden", tokens=("a", "b"), traces=(trace,)))
    assert view.data["cells"][0]["tokens"] == ["a", "b"]
    assert view.summary == "Unit 4 of layer 1 follows “digits” best (r = +0.60 on text that did not choose it)."


def test_a_model_shows_its_cells_on_a_text_of_the_users() -> None:
    model = tiny("lstm")
    found = cells.find_cells(model, CHARACTERS, TEXT[:700])
    assert found is not None
    assert found.n_units == 24
    assert found.traces == tuple(sorted(found.traces, key=lambda t: -abs(t.score)))
    shown = cells.show_cells(found, model, CHARACTERS, 'a "b"')
    assert shown.traces[0].own_tokens == ("a", " ", '"', "b", '"')
    own = gather(read_units(model, CHARACTERS, 'a "b"'))[shown.traces[0].tap][:, shown.traces[0].unit]
    expected = np.clip(own / shown.traces[0].largest, -1, 1)
    np.testing.assert_allclose(shown.traces[0].own_values, expected, rtol=0, atol=5.1e-4)


def test_threads_that_search_different_texts_see_what_they_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(model=tiny("lstm"), tokenizers=[None])
    subject: Any = SimpleNamespace(run=run, text="a text")

    def view(text: str) -> Any:
        return view_cells(subject, LookOptions(search_text=text))

    keep = Interrupted(WeakKeyDictionary.__setitem__, lambda: view("second"))
    monkeypatch.setattr(cell_view, "_FOUND", type("Kept", (WeakKeyDictionary,), {"__setitem__": lambda *a: keep(*a)})())
    monkeypatch.setattr(cell_view, "find_cells", lambda model, tokenizer, text: text)
    monkeypatch.setattr(cell_view, "show_cells", lambda found, *_: found)
    monkeypatch.setattr(cell_view, "describe_cells", lambda found, _: found)
    assert view("first") == "first"
    assert keep.result() == "second"


def test_a_text_on_which_luck_would_decide_is_not_searched() -> None:
    assert cells.find_cells(tiny("lstm"), CHARACTERS, TEXT[: cells.MIN_TOKENS - 1]) is None


def test_a_passage_ends_with_the_text_where_its_feature_varies_inside_the_last_token() -> None:
    text = "a1" * 20 + "a" * 700 + "\n" + "a1" * 300
    starts = np.arange(41)
    ends = np.append(np.arange(1, 41), len(text))  # the last token is all that follows
    chunk = Chunk(np.arange(41), {"layers.0.hidden": np.ones((41, 1), dtype=np.float32)})
    search, passages = cells.search_units(Reading(starts, ends, iter([chunk])), text, ("digits",))
    assert search.features == ("digits",)
    assert (passages["digits"].first, passages["digits"].last) == (40, 41)
