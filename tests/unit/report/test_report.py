from __future__ import annotations

import io
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_comparison import SIXTEEN, made_up_comparison
from rich.console import Console

from regard.compare.result import Comparison, to_json
from regard.lens.views import Span
from regard.models.table import MODELS
from regard.report.attention_figure import describe_saved
from regard.report.chart import Plot, Series, curve_range, line_chart, x_range
from regard.report.comparison import draw_comparison, render_comparison
from regard.report.comparison_picture import draw_overview, write_overview
from regard.report.comparison_table import ComparisonTable
from regard.report.figure import fill_evenly
from regard.report.palette import COLOURS, PER_SIGN, PLACES, Look, colour_of, dash_of, looks_of, shape_of
from regard.report.surprise import pieces, strongest

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \" ' ∑ 🙂\n\tend"


BLACK = Look("#000000", "", "circle")


class Page(HTMLParser):
    """The tags of a page, the text outside scripts, and the embedded data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.data = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = "data" if dict(attrs).get("id") == "data" else tag

    def handle_data(self, data: str) -> None:
        if self._inside == "data" and not self.data:
            self.data = data
        elif self._inside not in ("script", "style", "data"):
            self.text.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return render_comparison(made_up_comparison(("ngram", "bag", "rnn", "lstm", "transformer"), failing=("bag",)))


def test_the_page_shows_every_section(html: str) -> None:
    titles = re.findall(r"<h2>(.*?)</h2>", html)
    assert titles == [
        "Ranking",
        "Better, or lucky with the test data?",
        "Learning",
        "What a score costs",
        "Who uses long context?",
        "Surprise, token by token",
        "In their own words",
        "Where attention looks",
        "A cell that means something",
        "How it was measured",
    ]


def test_the_page_loads_nothing_from_anywhere(html: str) -> None:
    for tag, attributes in Page(html).tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "srcset", "action", "data"} & set(attributes), (tag, attributes)
    assert "@import" not in html
    assert re.findall(r"url\((?!#clip)", html) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", html) == []
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", html)


def test_text_of_data_and_models_cannot_become_markup() -> None:
    comparison = made_up_comparison(("lstm", "transformer"), passage=HOSTILE * 3, prompt=HOSTILE)
    page = Page(render_comparison(comparison))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 4  # data, the page's own, the map of modules, and what starts them
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    shown = "".join(page.text)
    assert "</script><script>alert(1)</script>" in shown  # as words to read
    assert json.loads(page.data)["surprise"]["passage"] == HOSTILE * 3
    assert "<" not in page.data  # nothing in it can open or close an element or a comment


def test_the_next_words_after_the_prompt_are_bars_as_long_as_their_probability(html: str) -> None:
    assert '<li><span>string</span><i style="width:25.0%"></i><b>25.0%</b></li>' in html
    assert '<li><span>&lt;list&gt;</span><i style="width:12.5%"></i><b>12.5%</b></li>' in html


def test_a_failed_contender_is_shown_with_its_reason(html: str) -> None:
    assert "Did not finish" in html
    assert "<b>bag</b>: the loss became NaN at step 320" in html


def test_a_comparison_in_which_all_failed_still_makes_a_page() -> None:
    html = render_comparison(made_up_comparison(("rnn", "lstm"), failing=("rnn", "lstm")))
    assert "No contender finished: rnn, lstm failed." in html
    assert "In their own words" not in html


def test_a_contender_has_one_colour_in_every_figure(html: str) -> None:
    data = json.loads(Page(html).data)
    colours = {c["name"]: c["colour"] for c in data["surprise"]["contenders"]}
    assert colours == {"ngram": COLOURS[0], "rnn": COLOURS[2], "lstm": COLOURS[3], "transformer": COLOURS[4]}
    assert colours == {name: colour_of(PLACES[name]) for name in colours}
    assert data["panels"][0]["colour"] == COLOURS[4]
    assert f'<b style="color:{COLOURS[3]}">lstm</b>' in html
    assert re.search(rf'class="end" fill="{COLOURS[3]}">lstm<', html)
    assert f'style="--c:{COLOURS[3]}"><h3>lstm</h3>' in html


def test_every_model_of_the_table_has_a_colour_of_its_own() -> None:
    assert set(PLACES) == set(MODELS)
    assert len(set(PLACES.values())) == len(PLACES)


def test_a_model_keeps_its_colour_whatever_stands_beside_it_and_in_which_order() -> None:
    alone = looks_of(["lstm", "my run"])
    assert looks_of(["my run", "ngram", "lstm"])["lstm"] == alone["lstm"]
    assert looks_of(["rnn", "my run"])["my run"] == alone["my run"] == looks_of(["my run (lstm)"])["my run (lstm)"]
    names = [f"run {i}" for i in range(40)]
    assert looks_of(names) == looks_of(reversed(names))


def test_names_that_meet_in_the_palette_are_told_apart() -> None:
    names = [f"run {i}" for i in range(24)] + ["lstm", "gru"]
    looks = looks_of(names)
    assert len(set(looks.values())) == len(names)
    assert looks["lstm"] == looks_of(["lstm"])["lstm"]
    assert {look.dash for look in looks_of(names[:8]).values()} == {""}  # up to eight need no second sign


def test_more_contenders_than_colours_are_told_apart_by_dashes_and_shapes() -> None:
    for second_sign in (dash_of, shape_of):
        looks = {(colour_of(i), second_sign(i)) for i in range(32)}
        assert len(looks) == 32
        assert len({second_sign(i) for i in range(PER_SIGN)}) == 1
        assert second_sign(PER_SIGN) != second_sign(PER_SIGN - 1)


# What protanopes and deuteranopes see of linear RGB (Machado et al. 2009), and what all others do.
SIGHT = {
    "all": np.eye(3),
    "protan": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deutan": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}


@pytest.mark.parametrize("sight", list(SIGHT))
def test_sixteen_colours_are_told_apart_and_by_colour_blind_readers_those_of_one_sign(sight: str) -> None:
    assert len(COLOURS) == 16
    groups = [COLOURS] if sight == "all" else [COLOURS[:PER_SIGN], COLOURS[PER_SIGN:]]
    least = 0.11 if sight == "all" else 0.05  # of lightness from 0 to 1: what two neighbouring lines need
    for group in groups:
        seen = [oklab(colour, SIGHT[sight]) for colour in group]
        assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) >= least


def oklab(colour: str, sight: np.ndarray) -> np.ndarray:
    """Lightness and two opponent axes in which distances are about as they are seen (Ottosson 2020)."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.clip(sight @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    cones = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
    axes = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
    return axes @ np.cbrt(cones @ linear)


def test_the_page_is_a_pure_function_of_the_file(tmp_path: Path) -> None:
    comparison = made_up_comparison(("ngram", "lstm"))
    (tmp_path / "compare.json").write_text(to_json(comparison))
    first = draw_comparison(comparison, tmp_path).read_text()
    assert draw_comparison(Comparison.load(tmp_path), tmp_path).read_text() == first


def test_what_was_measured_and_how_to_repeat_it_is_told(html: str) -> None:
    for words in (
        "4.35M tokens to train on",
        "fingerprint 9f2c1a77b0de4431",
        "two-sided, by Student&#x27;s t over 20 documents and seeds together, corrected",
        "torch 2.13.0",
        "one trial each",
        "lr 0.002",
    ):
        assert words in html
    assert "regard compare ngram window rnn lstm transformer --data python-docs --budget 2min --seeds 3" in html


def test_one_seed_says_that_the_luck_of_the_seed_is_not_in_the_interval() -> None:
    page = render_comparison(made_up_comparison(n_seeds=1))
    assert "20 documents (jackknife); other seeds were not tried" in page
    assert "not settled, one seed: other seeds were not tried" in page


def test_the_table_says_who_was_trained_from_one_seed_alone() -> None:
    console = Console(width=170, record=True, file=io.StringIO())
    console.print(ComparisonTable(made_up_comparison(("ngram", "lstm"), n_seeds=1)))
    text = console.export_text()
    assert "? not settled: one seed: other seeds were not tried." in text
    assert " ?" in text


def test_a_lossy_tokenizer_and_an_unmatched_size_are_marked() -> None:
    html = render_comparison(made_up_comparison(("ngram", "lstm"), lossy={"lstm": "word 200"}))
    assert "Ranked apart: the tokenizer loses text, word 200" in html
    assert "2.41M*" in html


def test_a_line_without_cost_is_drawn_level() -> None:
    counted = Series("ngram", BLACK, [(0.0, 2.0), (0.0, 1.5)])
    other = Series("lstm", BLACK, [(1e9, 2.0), (1e10, 1.0)])
    plot = Plot(title="t", x_label="x", y_label="y", x_text=str, x_limits=(1e9, 1e10), y_limits=(1, 2))
    svg = line_chart([counted, other], plot, 600, 300)
    assert 'class="level"' in svg
    assert svg.count('class="line"') == 1


def test_the_early_part_of_one_line_does_not_squeeze_the_others() -> None:
    counted = Series("ngram", BLACK, [(10.0 * 2**k, 2.0) for k in range(8)])  # up to 1280
    trained = Series("lstm", BLACK, [(1e5 * k, 2.0) for k in range(1, 11)])  # up to 1e6
    assert x_range([trained]) == (1e5, 1e6)
    assert x_range([counted, trained]) == (0.8 * 1280, 1e6)
    assert x_range([Series("s", BLACK, [(3000.0, 1.0), (9e5, 1.0)]), trained]) == (1e6 / 300, 1e6)


def test_labels_at_line_ends_never_cover_each_other() -> None:
    series = [Series(f"m{i}", BLACK, [(1.0, 3.0), (10.0, 2.0 + 0.001 * i)]) for i in range(8)]
    plot = Plot(title="t", x_label="x", y_label="y", x_text=str, x_limits=(1, 10), y_limits=curve_range(series))
    svg = line_chart(series, plot, 600, 300)
    places = sorted(float(y) for y in re.findall(r'<text x="\d+" y="([\d.]+)" class="end"', svg))
    assert len(places) == 8
    assert min(b - a for a, b in itertools.pairwise(places)) >= 15.9
    assert places[-1] <= 300


def test_where_validation_and_test_disagree_the_page_says_so() -> None:
    agreeing = made_up_comparison(("rnn", "lstm"))
    assert "Validation and test disagree" not in render_comparison(agreeing)
    rnn, lstm = agreeing.contenders
    other = replace(agreeing, contenders=(replace(rnn, valid=lstm.valid), replace(lstm, valid=rnn.valid)))
    words = (
        r"Validation and test disagree: on the validation data rnn \(2\.\d+\) is ahead of lstm \(2\.\d+\), on the test"
    )
    assert re.search(words, render_comparison(other))


def test_no_character_of_a_passage_is_lost_when_it_is_cut_into_words() -> None:
    text = "  indented, words\n\n\nand a-very-long-" + "x" * 90 + " end  "
    assert "".join(text[a:b] for a, b in pieces(text)) == text


def test_one_odd_token_does_not_fade_the_others() -> None:
    spans = [Span(start=i, end=i + 1, bits=4.0) for i in range(99)] + [Span(start=99, end=100, bits=60.0)]
    assert strongest([spans]) == 4.0


def test_the_first_head_shown_looks_at_something() -> None:
    comparison = made_up_comparison(("transformer",))
    saved = comparison.contenders[0].views.attention
    assert saved is not None
    view, _ = describe_saved(saved, comparison.setup.passage)
    layer, head = view.data["stacks"][0]["first"]
    assert (2 * layer + head) % 3 == 1  # of the made-up heads, those that look at the token before


def test_the_overview_is_a_picture(tmp_path: Path) -> None:
    from matplotlib.image import imread

    write_overview(made_up_comparison(failing=("rnn",)), tmp_path / "overview.png")
    assert imread(tmp_path / "overview.png").shape[:2] == (784, 1920)


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16])
@pytest.mark.parametrize("n_seeds", [1, 3])
def test_no_text_of_the_overview_covers_another_or_leaves_the_picture(n: int, n_seeds: int) -> None:
    figure = draw_overview(made_up_comparison(SIXTEEN[-n:], n_seeds=n_seeds))
    texts = texts_of(figure)
    assert len(texts) >= 4 * n  # the name twice, the score, the time
    for text, box in texts:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.width, text
        assert box.y1 <= figure.bbox.height, text
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        assert not (a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1), (one, other)


@pytest.mark.parametrize("n", [2, 12, 16])
def test_names_at_the_ends_of_curves_stay_beside_their_panel(n: int) -> None:
    figure = draw_overview(made_up_comparison(SIXTEEN[:n]))
    panel = figure.axes[0].get_window_extent()
    names = [box for text, box in texts_of(figure) if text in SIXTEEN and box.x0 < figure.bbox.width / 2]
    assert len(names) >= min(n, 15)  # the sixteenth name is cut
    for box in names:
        assert panel.y0 - 1 <= box.y0 <= box.y1 <= panel.y1 + 1


def texts_of(figure: Any) -> list[tuple[str, Any]]:
    """Everything written in the figure, with its box; leaders of labels are not writing."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    outside = set()  # marks beyond the ends of an axis, which are not drawn
    for axis in (a for axes in figure.axes for a in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        outside |= {t.label1 for t in axis.get_major_ticks() if not low <= t.get_loc() <= high}
    shown = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible() and t not in outside]
    return [(t.get_text(), Text.get_window_extent(t)) for t in shown]


def test_the_overview_grows_with_the_contenders() -> None:
    heights = [draw_overview(made_up_comparison(SIXTEEN[:n])).get_figheight() for n in (2, 5, 12, 16)]
    assert heights[0] == heights[1] < heights[2] < heights[3]


def test_the_overview_can_be_drawn_when_nothing_finished(tmp_path: Path) -> None:
    write_overview(made_up_comparison(("rnn",), failing=("rnn",)), tmp_path / "overview.png")


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_table_cuts_off_neither_names_nor_scores_in_any_terminal(width: int) -> None:
    comparison = made_up_comparison()
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(ComparisonTable(comparison))
    lines = console.export_text().splitlines()
    for contender in comparison.ranked:
        assert contender.score is not None
        words = rf"{contender.name}\*? .* {contender.score.value:.3f} "
        assert any(re.search(words, line) for line in lines)
    assert not any("…" in line for line in lines)
    # What the note with a star is about has one in the table, behind its size or, where that is left out, its name.
    assert ("ngram*" in "".join(lines)) == ("params" not in "".join(lines))


def test_the_table_shows_rank_score_cost_and_what_failed() -> None:
    console = Console(width=170, record=True, file=io.StringIO())
    comparison = made_up_comparison(failing=("rnn",), lossy={"window": "word 200"})
    console.print(ComparisonTable(comparison))
    text = console.export_text()
    rows = [line.split() for line in text.splitlines()]
    order = [words[1] for words in rows if words and words[0] in ("1", "2", "3", "4")]
    assert order[:4] == ["transformer", "lstm", "ngram", "window†"]
    for words in ("p < 0.0001", "2.41M*", "3.1 s", "none", "† window: ranked apart, since the tokenizer loses text"):
        assert words in text
    assert "rnn, seed 0, did not finish: the loss became NaN at step 320" in text


def test_the_table_shows_names_with_brackets_as_they_are() -> None:
    names = ("ngram", "lstm[v2]", "rnn[/v2]", "window:cat:")
    console = Console(width=170, record=True, file=io.StringIO())
    console.print(ComparisonTable(made_up_comparison(names)))
    text = console.export_text()
    assert [text.count(name) >= 2 for name in names] == [True] * 4


@pytest.mark.parametrize("sentence", ["aaaa bbbb", "aaa bbb ccc", "a", "aaaaaaaaaaaa", "aaaa  bbbb \n cccc"])
def test_a_title_of_any_length_is_filled_evenly(sentence: str) -> None:
    for most in range(3, 20):
        lines = fill_evenly(sentence, most)
        assert "".join(lines).replace(" ", "") == "".join(sentence.split())
        assert max(map(len, lines)) <= most


def test_a_title_whose_lines_are_all_full_stays_as_it_is() -> None:
    assert fill_evenly("aaaa bbbb", 4) == ["aaaa", "bbbb"]  # half of nine is more than four
