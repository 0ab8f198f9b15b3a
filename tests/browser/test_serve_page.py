"""The page of `regard serve` in a real Chromium: every panel, by keyboard, nothing on the console or from outside."""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from in_browser import CHROMIUM, NEEDS_CHROMIUM

pytest.importorskip("fastapi", reason="needs the extra serve")
pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
from PIL import Image
from playwright import sync_api as playwright
from tiny_served import train_all

import regard
from regard.lens.look import VIEWS
from regard.serve.server import RunServer, ServeOptions

pytestmark = [NEEDS_CHROMIUM, pytest.mark.slow]
READY = '#panel[aria-busy="false"]'
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--host-resolver-rules=MAP evil.example 127.0.0.1"]  # fmt: skip
EVIL = "<img src=x onerror=document.title=1>"
ON_TEXT = [("lstm", "write"), ("lstm", "score"), ("parser", "parse"), ("tagger", "predict"), ("lstm", "look")]


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer(list(train_all().values()), ServeOptions(port=0)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as found:
        started = found.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


class Page:
    """A page that fails its test where something is on the console, or something is asked for elsewhere."""

    def __init__(self, browser: Any, server: RunServer, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}} | context)
        self.page, self.server, self.said, self.asked = self.context.new_page(), server, [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, **state: str) -> Any:
        self.page.goto("about:blank")
        self.page.goto(self.server.link(**state))
        self.page.wait_for_selector(READY)
        return self.page

    def check(self) -> None:
        assert self.said == []
        outside = [url for url in self.asked if not url.startswith((self.server.address, "data:", "blob:", "about:"))]
        assert outside == []


@pytest.fixture
def opened(browser: Any, server: RunServer) -> Iterator[Page]:
    page = Page(browser, server)
    yield page
    page.check()
    page.context.close()


@pytest.mark.parametrize(
    ("run", "panel", "shown"),
    [
        ("lstm", "write", "#panel .token"), ("lstm", "next", "#panel svg.bars"),
        ("transformer", "score", "#panel .token"),
        ("translator", "translate", "#panel svg.alignment rect"), ("parser", "parse", "#panel svg.parse text"),
        ("tagger", "predict", "#panel .word"), ("classifier", "predict", "#panel svg.bars"),
        ("answerer", "predict", "#panel .big"), ("bert", "fill", "#panel svg.bars"),
        ("vectors", "nearest", "#panel svg.bars"),
        ("rater", "predict", "#panel .big"), ("captioner", "caption", "#panel .view-picture canvas"),
        ("answerer", "look", "#panel .looked"), ("captioner", "look", "#panel .looked"),
        ("transformer", "look", "#panel .view"), ("lstm", "game", "#panel .guess"),
    ],
)  # fmt: skip
def test_every_panel_shows_something_and_fits_a_phone(opened: Page, run: str, panel: str, shown: str) -> None:
    text = {"nearest": "cat", "fill": "the [MASK] sat"}.get(panel, "the cat sat on the mat")
    page = opened.open(run=run, panel=panel, text=text, second="the dog sleeps .")
    assert page.locator(shown).count() > 0
    assert page.locator('[role="alert"]:visible').count() == 0
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = page.evaluate("""[...document.querySelectorAll("button, input, select, textarea")].filter((node) =>
        !node.textContent.trim() && !node.getAttribute("aria-label") && !node.closest("label")).length""")
    assert unnamed == 0
    if panel != "game":
        page.wait_for_selector("#panel details table", state="attached")  # the numbers behind the picture
        kinds = set(page.locator("#panel .save").first.locator("button").all_text_contents())
        assert kinds >= ({"CSV", "JSON"} if run == "rater" else {"PNG", "SVG", "CSV", "JSON"})


def test_every_view_is_drawn(opened: Page) -> None:
    known = list(VIEWS)
    page = opened.open(run="transformer", panel="look", text="the cat sat on the mat", views=",".join(known))
    for name in known:
        place = page.locator(f'[data-view="{name}"]')
        assert place.count() == 0 or place.first.evaluate("node => node.children.length") > 0, name
    assert page.locator('[data-view="attention"]').count() == 1


def test_a_word_that_is_pointed_at_is_marked_in_the_other_run(opened: Page) -> None:
    page = opened.open(run="lstm", panel="look", text="the cat sat", views="surprise", **{"with": "transformer"})
    page.locator('[data-panel="0"] .token', has_text="c").first.hover()
    assert page.locator('[data-panel="1"] .token.hovered').count() >= 1


def test_the_page_is_used_by_keyboard_alone(opened: Page) -> None:
    page = opened.open(run="lstm", panel="next", text="the")
    page.locator("#tab-next").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#panel .looktext")
    assert page.evaluate("document.activeElement.id") == "tab-score"
    page.locator("#text").focus()
    page.keyboard.press("End")
    page.keyboard.type(" moon")
    page.keyboard.press("Control+Enter")
    page.locator("#panel .looktext", has_text="the moon").wait_for()
    page.locator("#panel .token").first.focus()
    page.keyboard.press("ArrowRight")
    assert "bits" in page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_a_control_keeps_the_focus_while_it_is_used_by_keyboard(opened: Page) -> None:
    page = opened.open(run="lstm", panel="next", text="the", n="3")
    page.locator("#option-n").focus()
    for n in (4, 5):
        page.keyboard.press("ArrowUp")
        page.wait_for_function(f"() => document.querySelectorAll('#panel svg.bars rect').length === {n}")
        assert page.evaluate("document.activeElement.id") == "option-n"
    page.locator("#run").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.hash.includes('run=transformer')")
    assert page.evaluate("document.activeElement.id") == "run"
    page = opened.open(run="transformer", panel="look", text="the cat")
    page.locator("#view-surprise").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('#view-surprise[aria-pressed="false"]')
    assert page.evaluate("document.activeElement.id") == "view-surprise"


def test_views_stay_while_the_next_are_computed(opened: Page) -> None:
    page = opened.open(run="transformer", panel="look", text="the cat", views="surprise")
    page.route("**/api/look", lambda route: page.wait_for_timeout(300) or route.continue_())
    page.locator("#text").press_sequentially("s")
    with page.expect_request("**/api/look"):
        pass
    assert page.locator('#panel[aria-busy="true"] .view-surprise').count() == 1
    page.wait_for_selector(READY)
    assert "cats" in page.locator("#panel .looktext").first.inner_text()
    page.unroute_all()


def test_a_page_begins_with_an_example_of_its_run(opened: Page) -> None:
    page = opened.open(run="answerer")
    assert page.input_value("#text").startswith("who sees the")
    before = page.input_value("#text")
    for _ in range(5):
        page.locator("#another").click()
        page.wait_for_selector(READY)
    assert page.input_value("#second").endswith(".")
    page.select_option("#run", "tagger")  # of another kind: another example
    page.wait_for_function("() => document.getElementById('text').value.includes('lives in')")
    assert before != page.input_value("#text")


def test_the_chosen_head_is_in_the_address(opened: Page) -> None:
    page = opened.open(run="transformer", panel="look", text="the cat sat", views="attention")
    page.locator('.headmark[data-head="1,1"]').click()
    page.wait_for_function("() => location.hash.includes('layer=2') && location.hash.includes('head=2')")
    page.reload()
    page.wait_for_selector('.headmark.on[data-head="1,1"]')


def test_a_picture_file_can_be_given(opened: Page, tmp_path: Path) -> None:
    Image.new("RGB", (900, 300), (255, 0, 0)).save(tmp_path / "red.png")
    page = opened.open(run="captioner")
    before = page.locator(".given-picture").get_attribute("src")
    page.locator("#picture").set_input_files(tmp_path / "red.png")
    page.wait_for_function("(before) => document.querySelector('.given-picture').src !== before", arg=before)
    page.wait_for_selector(READY)
    assert page.locator(".given-picture").evaluate("node => node.naturalWidth") == 640
    assert page.locator('[role="alert"]:visible').count() == 0


def test_the_address_holds_the_state(opened: Page, browser: Any, server: RunServer) -> None:
    page = opened.open(run="lstm", panel="next", text='the <b>cat</b> & "dog"', n="3")
    other = Page(browser, server)
    other.page.goto(page.url)
    other.page.wait_for_selector(READY)
    assert other.page.input_value("#text") == 'the <b>cat</b> & "dog"'
    assert other.page.locator("#panel svg.bars rect").count() == 3
    other.check()
    other.context.close()


def test_text_is_never_html(opened: Page) -> None:
    for run, panel in ON_TEXT:
        page = opened.open(run=run, panel=panel, text=EVIL)
        assert page.locator("#panel img, #panel script").count() == 0
        assert page.title() == "Regard"


def test_thousands_of_numbers_are_written_when_they_are_unfolded(opened: Page) -> None:
    page = opened.open(run="lstm", panel="score", text="the cat sat on the mat. " * 40)
    rows = page.locator("#panel details tbody tr")
    assert rows.count() == 0
    page.locator("#panel details summary").click()
    rows.nth(960).wait_for(state="attached")
    assert rows.count() == 961  # every character, and the end


def test_what_is_wrong_is_said_on_the_page(opened: Page) -> None:
    page = opened.open(run="bert", panel="fill", text="no place to fill")
    assert "There is no [MASK]" in page.locator('[role="alert"]').inner_text()
    opened.said.clear()  # Chromium itself notes the 400


def test_another_token_can_be_chosen_to_go_on_from(opened: Page) -> None:
    page = opened.open(run="transformer", panel="write", text="the", max_tokens="5")
    chosen = page.locator(".pick").nth(1)
    added = chosen.inner_text().replace("\u00a0", " ").replace("⏎", "\n")
    chosen.click()
    page.wait_for_selector(READY)
    assert page.input_value("#text") == "the" + added


def test_what_is_shown_can_be_saved(opened: Page, tmp_path: Path) -> None:
    page = opened.open(run="lstm", panel="next", text="the", n="4")
    saved = {}
    for kind in ("PNG", "SVG", "CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=kind, exact=True).click()
        saved[kind] = tmp_path / f"saved.{kind.lower()}"
        download.value.save_as(saved[kind])
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
    assert saved["SVG"].read_text().count("<rect") == 4
    assert len(list(csv.reader(saved["CSV"].read_text().splitlines()))) >= 5
    assert len(json.loads(saved["JSON"].read_text())["tokens"]) == 4


def test_a_person_is_ranked_among_the_runs(opened: Page) -> None:
    page = opened.open(run="lstm", panel="game", seed="3")
    text = page.evaluate(
        """async () => (await (await import("/static/ask.js")).ask("lstm", "passage", { seed: 3 })).text"""
    )
    page.locator(".guess").press_sequentially("~" + text[:5])  # one wrong guess, then five right ones
    assert re.match(r"5 of \d+ characters", page.locator("#panel .small").first.inner_text())
    page.get_by_role("button", name="Show the next character").click()
    page.get_by_role("button", name="Stop here and compare").click()
    page.wait_for_selector("#panel svg.bars")
    names = page.locator("#panel svg.bars .barname").all_text_contents()
    assert sorted(names) == ["lstm", "ngram", "transformer", "you"]
    bits = [float(said) for said in page.locator("#panel svg.bars .barvalue").all_text_contents()]
    assert bits == sorted(bits)


def test_guesses_cost_what_the_code_says(opened: Page) -> None:
    page = opened.open(run="lstm", panel="next", text="the")
    found = page.evaluate("""async () => {
        const { RankCode, bitsFrom } = await import("/static/game.js");
        const code = new RankCode(), fresh = new RankCode();
        let whole = 0;
        for (let r = 1; r <= 97; r += 1) whole += fresh.chance(r);
        const part = bitsFrom(["ab", "cd", ""], [2, 6, 9], 3);
        return { whole, first: code.guess(1), again: code.guess(1), up: fresh.giveUp(96), part };
    }""")
    assert found["whole"] == pytest.approx(1.0)
    prior = 98 / 97 / 2  # of rank 1
    assert 2 ** -found["first"] == pytest.approx(prior)
    assert 2 ** -found["again"] == pytest.approx((1 + 2 * prior) / 3)
    assert 2 ** -found["up"] == pytest.approx(98 / 97 / (97 * 98))  # one character is left: that of rank 97
    assert found["part"] == pytest.approx(3.0)  # half of the token that begins before, and nothing for the end


def test_a_dark_window_is_dark(browser: Any, server: RunServer) -> None:
    dark = Page(browser, server, color_scheme="dark")
    page = dark.open(run="lstm", panel="next", text="the")
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert page.evaluate("getComputedStyle(document.documentElement).filter") != "none"
    dark.check()
    dark.context.close()


class Notebook(BaseHTTPRequestHandler):
    """A page of another server with the frame in it."""

    html = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.html)

    def log_message(self, *_: object) -> None:
        pass


def test_a_notebook_can_show_the_page_and_other_sites_cannot(browser: Any) -> None:
    shown = regard.show(train_all()["lstm"], "the cat", panel="next", port=0)
    assert f'src="{shown.server.address}#text=the+cat&amp;panel=next"' in shown._repr_html_()
    Notebook.html = shown._repr_html_().encode()
    with ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as notebook:
        threading.Thread(target=notebook.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://localhost:{notebook.server_port}/")
        page.frame_locator("iframe").locator("#panel svg.bars").wait_for()
        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.goto(f"http://evil.example:{notebook.server_port}/")
        assert page.frame_locator("iframe").locator("#app").count() == 0
        page.close()
        notebook.shutdown()
    shown.close()
