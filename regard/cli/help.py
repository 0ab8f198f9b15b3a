"""The help of a verb, made of its docstring: paragraphs fill the terminal's width, examples keep their lines."""

from __future__ import annotations

from inspect import cleandoc

from rich.markup import escape


def format_help(docstring: str | None) -> str:
    """Rich markup of a docstring: headings, which end in a colon, are bold, and comments in examples are dim.

    >>> print(format_help("Say it\\nin one line.\\n\\nExamples:\\n  # a comment\\n  regard models"))
    Say it in one line.
    <BLANKLINE>
    [bold]Examples[/bold]
    [dim][/dim][dim]  # a comment[/dim]
    [dim][/dim]  regard models
    """
    paragraphs = cleandoc(docstring or "").split("\n\n")
    return "\n\n".join("\n".join(_format_lines(paragraph)) for paragraph in paragraphs)


def _format_lines(paragraph: str) -> list[str]:
    heading, *examples = paragraph.split("\n")
    if not examples or not examples[0].startswith("  "):
        return [escape(paragraph.replace("\n", " "))]
    # typer takes indentation away that a line begins with, so that it is put behind a mark that prints nothing.
    lines = [f"[dim]{escape(line)}[/dim]" if line.lstrip().startswith("#") else escape(line) for line in examples]
    return [f"[bold]{escape(heading.removesuffix(':'))}[/bold]", *(f"[dim][/dim]{line}" for line in lines)]
