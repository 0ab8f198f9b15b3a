"""What models show of a text as one self-contained page, pictures and JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from regard.files import write_atomically
from regard.lens.look import VIEWS, Panel
from regard.lens.next_word import NextWord, describe_next
from regard.lens.view import Packed, View
from regard.report.look_pictures import KINDS, PICTURES, draw_picture
from regard.report.page_folder import LOOK, begin_page, finish_page
from regard.report.palette import looks_of
from regard.report.shell import frame_page, how_to_repeat, report_page, script_json, section, text_of
from regard.score.figures import join_names

JSON = "look.json"
BLUE = "#0072b2"  # of what belongs to no model
SHARED = ("base", "matrix", "chart")
"""What the scripts of views import, as `regard/base` and so on; `regard/NAME` is the script of the view NAME."""


@dataclass(frozen=True)
class Look:
    """What one model or several show of one text; a notebook shows it as the page."""

    panels: tuple[Panel, ...]
    command: str = ""
    """What is typed to get it again."""

    @property
    def views(self) -> dict[str, View]:
        """The views by name, each of the first model that has it; `panels` holds those of every model."""
        return {view.name: view for panel in reversed(self.panels) for view in panel.views}

    def to_json(self, pack: Callable[[Packed], Any] = Packed.to_json) -> dict[str, Any]:
        """Everything that is shown, as JSON values; arrays are what `pack` makes of them."""
        pairs = zip(self.panels, self.colours, strict=True)
        panels = [panel.to_json(pack) | {"colour": colour} for panel, colour in pairs]
        return {"format": 1, "panels": panels}

    @property
    def colours(self) -> list[str]:
        """The colour of each panel: that of its model, as on every page."""
        looks = looks_of(panel.model or panel.name for panel in self.panels)
        return [looks[panel.model or panel.name].colour for panel in self.panels]

    def to_html(self) -> str:
        """The page as text: one file that loads nothing."""
        return render_look(self)

    def save(self, folder: str | Path, force: bool = False) -> Path:
        """Write index.html, look.json, and a PNG and an SVG of every view into `folder`; returns the page.

        `force` writes into a folder that holds files of somebody else.
        """
        folder = Path(folder)
        begin_page(folder, LOOK, self._list_files(), force)
        for number, (panel, colour) in enumerate(zip(self.panels, self.colours, strict=True), start=1):
            for view in panel.views:
                if view.name in PICTURES:
                    draw_picture(view, panel, folder / self._name_picture(view, number), colour)
        write_atomically(folder / JSON, json.dumps(self.to_json(), ensure_ascii=False))
        return finish_page(folder, self.to_html(), LOOK, self._list_files())

    def _name_picture(self, view: View, number: int) -> str:
        """What the pictures of a view are called, but for their kind; `number` is that of its panel."""
        return view.name if len(self.panels) == 1 else f"{view.name}-{number}"

    def _list_files(self) -> list[str]:
        """The names of all files that are written beside the page."""
        drawn = [
            self._name_picture(view, number)
            for number, panel in enumerate(self.panels, start=1)
            for view in panel.views
            if view.name in PICTURES
        ]
        return [JSON, *(f"{name}.{kind}" for name in drawn for kind in KINDS)]

    def _repr_html_(self) -> str:
        return frame_page(self.to_html())

    def __repr__(self) -> str:
        models = ", ".join(panel.name for panel in self.panels)
        names = list(dict.fromkeys(view.name for panel in self.panels for view in panel.views))
        return f"<Look into {models}: {', '.join(names)}>"


def look_next(found: Sequence[NextWord], command: str = "") -> Look:
    """What several models say comes next, as a page."""
    return Look(
        tuple(
            Panel(
                name=each.name,
                text=each.text,
                tokens=(),
                spans=(),
                words=(),
                word_texts=(),
                views=(describe_next(each),),
            )
            for each in found
        ),
        command,
    )


def render_look(look: Look) -> str:
    """The page: a section for each view, in it a panel for each model."""
    names = [name for name in VIEWS if any(view.name == name for panel in look.panels for view in panel.views)]
    models = ", ".join(dict.fromkeys(panel.model or panel.name for panel in look.panels))
    headline, lede = _head(look, names, models)
    return report_page(
        title=f"Regard: {models}",
        kicker=f"Regard · {'look' if look.panels[0].tokens else 'next'} · {models}",
        headline=headline,
        lede=lede,
        sections=[
            *(_section(look, name) for name in names),
            _say_missing(look),
            section("How to see this again", "", how_to_repeat(look.command)) if look.command else "",
        ],
        made="Made by Regard; its numbers are in look.json.",
        own_css=styles_of(names),
        modules=modules_of(names),
        data=look.to_json(),
    )


def add_views(panels: Sequence[Sequence[View]], colour: str = BLUE) -> dict[str, Any]:
    """What a page that shows views beside other things needs of `report_page`: styles, scripts and data.

    Each of `panels` is a list of views; `place_view` puts them on the page. No view has a text of its own there.
    """
    names = list(dict.fromkeys(view.name for views in panels for view in views))
    data = [hold_views(views, "", colour) for views in panels]
    return {"own_css": styles_of(names), "modules": modules_of(names), "data": {"panels": data}} if names else {}


def _head(look: Look, names: Sequence[str], models: str) -> tuple[str, str]:
    """The headline, and the sentence below it: about a text, about one word in several, or about many lines."""
    if names == ["vectors"]:
        data = look.views["vectors"].data
        texts = dict.fromkeys(occurrence["text"] for occurrence in data["occurrences"])
        if len(texts) > 1:
            return f"“{data['word']}” in {len(texts)} texts", f"What {models} made of one word in several contexts."
    if len({panel.source or panel.text for panel in look.panels}) > 1:
        return f"{models}: {len(look.panels)} lines", "What the model computed on each of them."
    text = look.panels[0].source or look.panels[0].text
    return f"“{_cut(text, 90)}”", " ".join(_lede(look))


def _lede(look: Look) -> Iterable[str]:
    n, models = len(look.panels[0].tokens), join_names([panel.name for panel in look.panels])
    if not n:
        verb = "expect" if len(look.panels) > 1 else "expects"
        yield f"What {models} {verb} after this text."
        return
    yield f"What {models} computed on this text, {n:,} tokens."
    for panel in look.panels:
        if panel.text and panel.source and panel.text != panel.source:
            did = "was made to write" if panel.is_forced else "wrote"
            yield f"{panel.name} {did} “{_cut(panel.text, 200)}”."


def _say_missing(look: Look) -> str:
    """What the models have nothing to show for, in one line."""
    has_several = len(look.panels) > 1
    said = [
        (f"{panel.name}: " if has_several else "") + ", ".join(f"{name} ({why})" for name, why in panel.missing)
        for panel in look.panels
        if panel.missing
    ]
    return f'<p class="absent missing">Not shown: {escape("; ".join(said))}.</p>' if said else ""


def _section(look: Look, name: str) -> str:
    """One view of every model that has it."""
    shown = [(number, panel, _view_of(panel, name)) for number, panel in enumerate(look.panels)]
    first = next(view for _, _, view in shown if view is not None)
    bodies = "".join(
        f'<article style="--c:{look.colours[number]}">'
        + (f"<h3>{escape(panel.name)}</h3>" if len(shown) > 1 else "")
        + (_say_absent(dict(panel.missing).get(name, "")) if view is None else place_view(view, number))
        + "</article>"
        for number, panel, view in shown
    )
    return section(
        first.title, first.note, f'<div class="panels{" several" if len(shown) > 1 else ""}">{bodies}</div>', name
    )


def place_view(view: View, number: int) -> str:
    """Where the script of a view draws it: that of panel `number` of the page's data."""
    said = f'<p class="summary">{escape(view.summary)}</p>' if view.summary else ""
    return f'{said}<div class="view view-{view.name}" data-panel="{number}" data-view="{view.name}"></div>'


def hold_views(views: Sequence[View], name: str, colour: str) -> dict[str, Any]:
    """A panel for a page that shows views and no text of its own, such as a comparison's report."""
    panel = Panel(name=name, text="", tokens=(), spans=(), words=(), word_texts=(), views=tuple(views))
    return panel.to_json() | {"colour": colour}


def _say_absent(why: str) -> str:
    return f'<p class="absent">Nothing to show: {escape(why)}.</p>'


def _view_of(panel: Panel, name: str) -> View | None:
    return next((view for view in panel.views if view.name == name), None)


def styles_of(names: Sequence[str]) -> str:
    """The style sheets that views bring along."""
    folder = resources.files("regard.report").joinpath("views")
    files = [folder.joinpath(f"{name}.css") for name in (*SHARED, *names)]
    return "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def modules_of(names: Sequence[str]) -> str:
    """Script elements that carry the modules of views as data: URLs, and start them on the page's data."""
    imports = {f"regard/{name}": _data_url(text_of(f"views/{name}.js")) for name in (*SHARED, *names)}
    lines = [f'import * as view{i} from "regard/{name}";' for i, name in enumerate(names)]
    table = ", ".join(f"{json.dumps(name)}: view{i}" for i, name in enumerate(names))
    begin = f'start({{ {table} }}, JSON.parse(document.getElementById("data").textContent));'
    own = "\n".join(['import { start } from "regard/base";', *lines, begin])
    return f'{import_map(imports)}\n<script type="module">\n{own}\n</script>'


def import_map(imports: Mapping[str, str]) -> str:
    """Where the page's modules are found under their bare names."""
    return f'<script type="importmap">{script_json({"imports": dict(imports)})}</script>'


def _data_url(script: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(script.encode()).decode("ascii")


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
