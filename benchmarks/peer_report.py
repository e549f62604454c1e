"""What `benchmarks.peers` found, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.every_call_once import KNOWN_TOTAL, PARTS
from benchmarks.peer_tools import TOOLS

if TYPE_CHECKING:
    from benchmarks.peers import Asked

WANTED = 10
"""How many times faster than each tool the answer should be there."""

OWN = ("cold", "indexed", "warm")


def written(results: Mapping[str, Mapping[str, Asked]], made_with: Mapping[str, str]) -> str:
    """The whole report."""
    known, big = results["known"], results["big"]
    return "\n".join(
        [
            "# The same store, read by other tools",
            "",
            "Written by `python -m benchmarks.peers`, which installs each tool from its package index into an",
            "environment of its own and asks it for the total of a store. Nothing of theirs is in this repository.",
            "",
            "## Totals",
            "",
            "The small store has one session of each kind, and its sum is added up by hand:",
            "",
            *(f"- {name}: {what} — {dollars:.2f}" for name, (what, dollars) in PARTS.items()),
            "",
            f"The big store is made by `state_ledger.demo`: {made_with['sessions']} sessions, {made_with['messages']}",
            f"messages, {made_with['size']}, with the troubles that real stores have (rows that cannot be true, costs",
            "recorded twice or in part, sessions from before usage was kept by model). One planted start in",
            "milliseconds is put right, because ai-spend-tracker gives nothing of a store that has one. Most of what",
            "the others are off by there is one planted cost that cannot be true, of more than a dollar per thousand",
            "tokens: the rules set it aside and list it, the others add it up.",
            "`every call once, in SQL` is `benchmarks/every_call_once.py`: plain SQL over the raw tables, written from",
            "the rules of docs/accounting.md without the views of the ledger.",
            "",
            "| tool | small store, dollars | off by | big store, dollars | off by |",
            "| --- | ---: | ---: | ---: | ---: |",
            f"| added up by hand | {KNOWN_TOTAL:.2f} | | | |",
            *(
                f"| {known[key].name} | {_dollars(known[key])} | {_off(known[key], KNOWN_TOTAL)} "
                f"| {_dollars(big[key])} | {_off(big[key], big['sql'].dollars)} |"
                for key in ("sql", *OWN, *(tool.name for tool in TOOLS))
            ),
            "",
            *_not_there(known, big),
            "Where each tool finds a store:",
            "",
            *(f"- {tool.name}: {tool.reads}" for tool in TOOLS),
            "",
            "## Time to the total",
            "",
            f"On the big store, Python {made_with['Python']}, {made_with['cores']} cores that others use as well; so",
            "CPU time says more than wall time. From the start of a process to its end, all processes it waited for",
            "included; medians. agentsview takes a store over before it answers, which is its first answer.",
            f"The last three columns are how many times ours the CPU time is; the aim is {WANTED}. A companion is what",
            "`state-ledger index` makes, once; its making is not in these times, as the starts of the server are not.",
            "",
            "| tool | runs | CPU, s | wall, s | × query | × query with a companion | × served, with it |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
            *(_timed(big[tool.name], big) for tool in TOOLS),
            *(_timed(big[key], big) for key in ("python", *OWN)),
            "",
            *_verdicts(big),
            "",
        ]
    )


def _dollars(asked: Asked) -> str:
    return "none" if asked.dollars is None else f"{asked.dollars:,.2f}"


def _off(asked: Asked, right: float | None) -> str:
    if asked.dollars is None or right is None:
        return ""
    off = asked.dollars - right
    return "0.00" if abs(off) < 0.005 else f"{off:+,.2f}"


def _not_there(*stores: Mapping[str, Asked]) -> list[str]:
    told = {f"{asked.name}: {asked.reason}." for found in stores for asked in found.values() if asked.reason}
    return ["Without a total:", "", *(f"- {each}" for each in sorted(told)), ""] if told else []


def _timed(asked: Asked, found: Mapping[str, Asked]) -> str:
    if asked.cpu is None or asked.wall is None:
        return f"| {asked.name} | 0 | | | | | |"
    ratios = " | ".join(_ratio(asked, found[key]) for key in OWN)
    return f"| {asked.name} | {len(asked.wall_s)} | {asked.cpu:.3f} | {asked.wall:.3f} | {ratios} |"


def _ratio(asked: Asked, ours: Asked) -> str:
    return f"{asked.cpu / ours.cpu:.1f}" if asked.cpu and ours.cpu else ""


def _verdicts(found: Mapping[str, Asked]) -> list[str]:
    lines = []
    for key in OWN:
        missed = [tool.name for tool in TOOLS if _times(found[tool.name], found[key]) < WANTED]
        reached = [tool.name for tool in TOOLS if WANTED <= _times(found[tool.name], found[key]) < float("inf")]
        lines.append(
            f"- {found[key].name}: at least {WANTED} × faster than {', '.join(reached) or 'none of them'}; "
            f"not so with {', '.join(missed) or 'none of them'}."
        )
    return lines


def _times(asked: Asked, ours: Asked) -> float:
    """How many times our CPU time a tool takes; endless for one that gives no total."""
    return asked.cpu / ours.cpu if asked.cpu and ours.cpu else float("inf")
