"""The messages of a session of a fleet, plainly: what was said, by whom and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from state_ledger.pages import figures
from state_ledger.pages.asking import Ask
from state_ledger.pages.sums import Record
from state_ledger.pages.transcript_messages import ROLES

AT_ONCE = 100
"""Messages on one page."""

MOST_CHARACTERS = 50_000
"""Characters of one text on a page; JSON and CSV have all."""


class Session(NamedTuple):
    """A session as its lineage tells of it, and its messages.

    facts: None where no store of the choice has it. more: the id after which there are more messages, or None.
    """

    facts: Record | None
    messages: Sequence[Record] = ()
    more: int | None = None


def read(ask: Ask, session_id: str, after: str, with_texts: Mapping[str, bool]) -> Session:
    """Asks for a session. with_texts: by store, whether what was said was pushed. Raises what `Ask` raises."""
    row = next((each for each in ask("lineage_work", {"session": session_id}).rows if each["session_id"] == session_id),
               None)  # fmt: skip
    if row is None or not with_texts.get(str(row["store"])):
        return Session(row)
    answer = ask("session_messages", {"session": session_id, "after": after, "limit": str(AT_ONCE)})
    more = int(answer.rows[-1]["id"]) if answer.truncated else None
    return Session(row, answer.rows, more)


def messages_html(messages: Sequence[Record], zone: str) -> str:
    """The messages as HTML; every text is text."""
    return "".join(_message(each, zone) for each in messages)


def facts(row: Record, zone: str) -> list[tuple[str, str]]:
    """What is told of a session in its head: labels and texts."""
    told = [
        ("Id", row["session_id"]), ("Host", row["host"]), ("Store", row["store"]), ("Source", row["source"]),
        ("Kind", row["kind"]), ("Started", figures.moment(row["started_at"], zone)),
        ("Last activity", figures.moment(row["last_active"], zone)), ("Ended", row["end_reason"] or "not ended"),
        ("Messages", figures.count(row["message_count"])), ("Cost", figures.money(row["cost_usd"])),
    ]  # fmt: skip
    return [(label, figures.cut(str(text))) for label, text in told if text not in (None, "")]


def not_pushed(row: Record) -> str:
    """Why there are no messages, and how there would be."""
    return (
        f"What was said is not in these books: {row['store']} is pushed without its messages, as is usual. On "
        f"{row['host']} it can be read with `state-ledger serve`; `state-ledger lake push --with-messages` pushes it."
    )


def _message(row: Record, zone: str) -> str:
    role = str(row["role"] or "")
    kinds = [role if role in ROLES else "other", str(row["state"]).replace(" ", "-")]
    head = escape(figures.cut(ROLES.get(role, role) or "not recorded", 100))
    if row["tool_name"]:
        head += f" <code>{escape(figures.cut(str(row['tool_name'])))}</code>"
    marks = "".join(
        f"<li>{escape(figures.cut(str(text), 100))}</li>"
        for text in (row["state"] if row["state"] != "live" else "", row["problem"] or "")
        if text
    )
    return (
        f'<article class="message {escape(" ".join(kinds))}" id="m{int(row["id"])}">'
        f'<div class="margin"><span>{escape(figures.moment(row["timestamp"], zone))}</span></div><div class="said">'
        f'<div class="who"><h3 class="role">{head}</h3>'
        + (f'<ul class="marks">{marks}</ul>' if marks else "")
        + "</div>"
        + _folded("Reasoning", row["reasoning"], "reasoning")
        + _plain(row["text"])
        + _folded("Calls", row["tool_calls"], "reasoning")
        + "</div></article>"
    )


def _folded(label: str, text: object, kind: str) -> str:
    return f'<details class="{kind}"><summary>{label}</summary>{_plain(text)}</details>' if text else ""


def _plain(text: object) -> str:
    if not text:
        return ""
    whole = str(text)
    more = len(whole) - MOST_CHARACTERS
    cut = f'<p class="provenance">{more:,} characters more, which JSON and CSV have.</p>' if more > 0 else ""
    return f'<pre class="ledger-plain" tabindex="0">{escape(whole[:MOST_CHARACTERS])}</pre>{cut}'


