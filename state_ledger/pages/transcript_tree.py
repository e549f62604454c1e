"""The work a session belongs to as a tree: nested lists, each session a link, with a drawing beside them.

List and drawing have the same rows of the same height, so that a dot stands beside its session.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from state_ledger.pages import figures
from state_ledger.pages.sums import Sums
from state_ledger.transcript import Family, Node

MOST_ROWS = 120
"""Rows that are drawn; the rest is a question away."""

ROW, LANE, LEFT = 46, 14, 10
"""Height of a row, width of a lane, distance of the first lane, in pixels. The stylesheet knows ROW."""

LEAST, WIDEST = 4.0, 7.0
"""Radius of the dot of a session that cost nothing, and of the dearest one."""

KINDS = {
    "root": "began here", "continuation": "continued", "branch": "branched off", "delegate": "delegate",
    "other": "came after",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One session in the tree. lane: how far to the right it is drawn; above: the row it hangs on."""

    node: Node
    lane: int
    above: int | None


def rows_of(family: Family) -> tuple[list[Row], int]:
    """The tree in the order in which it is read, and how many sessions were left out.

    A continuation stands in the lane of what it continues; everything else one lane further. The
    session that is being read is always there, with all that it hangs on.
    """
    roots = [node for node in family.nodes.values() if node.parent is None or node.parent not in family.nodes]
    roots.sort(key=lambda node: (node.work == family.own.work, node.session_id))
    rows: list[Row] = []
    needed = _needed(family)
    seen: set[str] = set()
    waiting = [(node, 0, None) for node in reversed(roots)]
    left_out = 0
    while waiting:
        node, lane, above = waiting.pop()
        if node.session_id in seen:
            continue
        seen.add(node.session_id)
        if len(rows) >= MOST_ROWS and node.session_id not in needed:
            left_out += 1
            at = None
        else:
            rows.append(Row(node, lane, above))
            at = len(rows) - 1
        children = family.children(node.session_id)
        # The continuation is read after what was delegated before it.
        for child in [c for c in children if c.kind == "continuation"] + [
            c for c in reversed(children) if c.kind != "continuation"
        ]:
            waiting.append((child, lane if child.kind == "continuation" else lane + 1, at))  # type: ignore[arg-type]
    return rows, left_out


def _needed(family: Family) -> set[str]:
    found: set[str] = set()
    node: Node | None = family.own
    while node is not None and node.session_id not in found:
        found.add(node.session_id)
        node = family.nodes.get(node.parent) if node.parent else None
    return found


def tree(family: Family, current: set[str], link: Callable[[Node], str]) -> str:
    """The tree as HTML. current: the sessions that are being read; link: where a session leads."""
    rows, left_out = rows_of(family)
    most = max((row.lane for row in rows), default=0)
    # Deep delegations share the last lanes rather than push the text off the page.
    lanes = min(most, 6)
    width = LEFT + lanes * LANE + LEFT + 2
    note = f'<p class="sub">{figures.plural(left_out, "more session")} not drawn.</p>' if left_out else ""
    return (
        f'<div class="tree">{_drawing(rows, width, current, link)}<div class="names">{_list(rows, current, link)}</div>'
        f"</div>{note}"
    )


def _list(rows: list[Row], current: set[str], link: Callable[[Node], str]) -> str:
    """Nested lists: what hangs on a session is a list inside it, a continuation follows it in its list."""
    parts = ["<ul>"]
    lane = 0
    for number, row in enumerate(rows):
        while lane < row.lane:
            parts.append("<ul>" if parts[-1] != "<ul>" else "<li><ul>")
            lane += 1
        if number and rows[number - 1].lane >= row.lane:
            parts.append("</li>")
            while lane > row.lane:
                parts.append("</ul></li>")
                lane -= 1
        parts.append(f"<li>{_name(row.node, current, link)}")
    parts += ["</li>", "</ul></li>" * lane, "</ul>"]
    return "".join(parts)


def _name(node: Node, current: set[str], link: Callable[[Node], str]) -> str:
    sums = Sums.of(node.usage)
    kind = f"segment {node.segment}" if node.kind == "continuation" else KINDS.get(node.kind, node.kind)
    said = f"{kind} · {figures.plural(node.facts['messages'] or 0, 'message')}"
    trouble = f' · <strong class="trouble">{escape(node.trouble)}</strong>' if node.trouble else ""
    here = ' aria-current="true"' if node.session_id in current else ""
    return (
        f'<div class="name"><a href="{escape(link(node))}"{here} title="{escape(node.session_id)}">'
        f'{escape(node.title)}</a><span class="sub"><b>{escape(sums.cost_text)}</b> · {escape(said)}{trouble}'
        "</span></div>"
    )


def _drawing(rows: list[Row], width: int, current: set[str], link: Callable[[Node], str]) -> str:
    height = len(rows) * ROW
    costs = [Sums.of(row.node.usage).cost_usd or 0.0 for row in rows]
    dearest = max(costs, default=0.0)

    def x(row: Row) -> float:
        return LEFT + min(row.lane, 6) * LANE

    lines, dots = [], []
    for number, row in enumerate(rows):
        y = number * ROW + ROW / 2
        if row.above is not None:
            above = rows[row.above]
            top = row.above * ROW + ROW / 2
            kind = "straight" if row.node.kind == "continuation" else row.node.kind
            bend = min(ROW / 2, y - top)
            path = f"M{x(above):g} {top:g}V{y:g}"
            if x(above) != x(row):
                path = f"M{x(above):g} {top:g}V{y - bend:g}Q{x(above):g} {y:g} {x(row):g} {y:g}"
            lines.append(f'<path class="line {escape(kind)}" d="{path}"/>')
        radius = LEAST + (WIDEST - LEAST) * math.sqrt(costs[number] / dearest) if dearest > 0 else LEAST
        here = " here" if row.node.session_id in current else ""
        title = f"{row.node.title}: {Sums.of(row.node.usage).cost_text}"
        dots.append(
            f'<a href="{escape(link(row.node))}" tabindex="-1"><title>{escape(title)}</title>'
            f'<circle class="node {escape(row.node.kind)}{here}" cx="{x(row):g}" cy="{y:g}" r="{radius:.1f}"/></a>'
        )
    return (
        # One dot per session, larger where it cost more: the list beside it says the same in words.
        f'<svg class="lineage" width="{width}" height="{height}" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f"{''.join(lines)}{''.join(dots)}</svg>"
    )
