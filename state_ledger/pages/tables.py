"""Tables as one string of HTML: caption, column heads, row heads, totals.

Built here rather than cell by cell in a template: 1,000 rows cost 21 µs a cell there, under 2 µs
here (performance.md, section e).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from state_ledger.pages import figures


@dataclass(frozen=True)
class Column:
    """A head: its label, whether it holds figures (right-aligned), what it means in a title, whether it holds prose."""

    label: str
    number: bool = False
    title: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Cell:
    """One value as text; `href` links it, `title` explains it, `sub` is a second, quieter line.

    What is very long is cut.

    `word` marks a word that stands where a figure would ("unknown", "no data").
    """

    text: str
    href: str = ""
    title: str = ""
    sub: str = ""
    word: bool = False

    @property
    def html(self) -> str:
        """The cell's content, escaped."""
        title = f' title="{escape(self.title)}"' if self.title else ""
        inner = escape(figures.cut(self.text))
        if self.word:
            inner = f'<span class="word"{title}>{inner}</span>'
        elif self.href:
            inner = f'<a href="{escape(self.href)}"{title}>{inner}</a>'
        elif title:
            inner = f"<span{title}>{inner}</span>"
        return inner + (f'<span class="sub">{escape(figures.cut(self.sub))}</span>' if self.sub else "")


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    totals: Sequence[Cell] = (),
    name: str,
    heading: str = "",
) -> str:
    """A table in a box of its own that scrolls sideways where the screen is narrow.

    The first cell of each row is its head; one without text is called "not recorded". The box can be focused, so
    that the keyboard scrolls it. heading: the id of what the box is called after besides its caption, where other
    boxes of the page may have the same one.
    """
    heads = "".join(
        f'<th scope="col"{_kind(column)}' + (f' title="{escape(column.title)}"' if column.title else "")
        + f">{escape(column.label)}</th>"
        for column in columns
    )  # fmt: skip
    kinds = [_kind(column) for column in columns]
    body = "".join(_row(cells, kinds) for cells in rows)
    foot = f"<tfoot>{_row(totals, kinds)}</tfoot>" if totals else ""
    mark = escape(name)
    labels = f"{escape(heading)} {mark}" if heading else mark
    return (
        # Said above the box, where it does not scroll away; in the table, for those who hear it.
        f'<p class="caption" id="{mark}">{escape(caption)}</p>'
        f'<div class="table-box" role="region" tabindex="0" aria-labelledby="{labels}">'
        f'<table><caption class="visually-hidden">{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )


def _row(cells: Sequence[Cell], kinds: Sequence[str]) -> str:
    head, *others = cells
    if not head.text:
        head = replace(head, text="not recorded", word=True)
    return (
        f'<tr><th scope="row">{head.html}</th>'
        + "".join(
            f"<td{kind}>{cell.html}</td>" for cell, kind in zip(others, kinds[1:], strict=True)
        )
        + "</tr>"
    )  # fmt: skip


def _kind(column: Column) -> str:
    return ' class="number"' if column.number else ' class="wide"' if column.wide else ""
