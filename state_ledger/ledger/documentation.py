"""The documentation of the semantic layer as Markdown, made from the views and the glossary.

`python -m state_ledger.ledger.documentation` prints it; a test holds `docs/semantic-layer.md` to it.
"""

from __future__ import annotations

from state_ledger import ledger, schema
from state_ledger.ledger.functions import __doc__ as functions_doc
from state_ledger.ledger.glossary import COLUMNS
from state_ledger.sqlite import sqlite3

VIEWS: dict[str, str] = {
    "ledger_usage": "One (session, model, provider, base URL, billing mode, task), plus one row per session for what"
    " its session row carries beyond its usage rows. Every call once; cost by basis. Start here.",
    "ledger_time": "Usage spread over 15-minute buckets under each day rule. Always choose one `day_rule`."
    " Bounds on `first_bucket` and `last_bucket` beside those on `bucket` keep a short period cheap.",
    "ledger_prices": "One model, provider and base URL of the store, and a time in which one list price holds. Its rows"
    " cover all of time without overlapping: join on `model`, `billing_provider`, `billing_base_url` (NULL as '') and"
    " `from_epoch <= moment < until_epoch`. Looked up when asked, never fetched.",
    "ledger_sessions": "One session: kind, last activity, and its sums of `ledger_usage`.",
    "ledger_session_facts": "One session without its sums: cheap for lists that are cut short.",
    "ledger_session_usage": "The sums of `ledger_usage` per session.",
    "ledger_lineage": "One session: the conversation and the work it belongs to. Costs a walk over all sessions.",
    "ledger_conversations": "One conversation, a chain of continuations, under its last session.",
    "ledger_work": "One piece of work: a conversation and all its delegates, transitively.",
    "ledger_messages": "One logical message: decoded, with its flags; rows stored twice by compaction count once.",
    "ledger_message_times": "One stored message row: only its session and time.",
    "ledger_message_rows": "One stored message row: the id under which its logical message is shown.",
    "ledger_message_copies": "One stored row of a message that is stored more than once, as a search looks at it.",
    "ledger_tool_calls": "One tool call that an assistant message makes.",
    "ledger_delegate_calls": "One delegate: the message of its parent that called it, by time.",
    "ledger_continuations": "One session that may continue its parent; of several that may, the one of kind"
    " `continuation` does.",
    "ledger_message_sizes": "One stored message row: the bytes of its text.",
    "ledger_set_aside": "One row that cannot be true and is in no sum, with the reason.",
    "ledger_discrepancies": "One figure that disagrees with another or is known to have been miscounted;"
    " reported, never corrected.",
    "ledger_orphans": "One missing session that rows of one kind refer to.",
    "ledger_locks": "One lock on a session (compression) or a conversation (turn).",
    "ledger_delegations": "One piece of work handed out in the background, without its texts.",
    "ledger_routing": "One chat that a gateway keeps a session for, without the chat's id and names.",
    "ledger_storage": "One table, index or part of a full-text index with its size. Exact sizes read the whole"
    " file, so that above 256 MB, and where SQLite has no `dbstat`, they are estimated from a sample.",
    "ledger_usage_rows": "Building block: usage rows as stored, with those that only a left-over table holds.",
    "ledger_session_rows": "Building block: counters of the session rows, with what is wrong with them.",
    "ledger_session_rest": "Building block: what each session row carries beyond its `task = ''` usage rows.",
    "ledger_replaced_estimates": "Building block: sessions whose actual cost takes the place of estimates.",
    "ledger_session_links": "Building block: one session that has a parent link, as stored.",
    "ledger_session_sums": "Building block: what one session used in all, quickly for a few; NULL without usage.",
    "ledger_family": "Building block: one session, `of_session_id`, and where one of its family stands: an ancestor"
    " or what came from one. Quick for one session; all of it is every pair.",
    "ledger_session_kinds": "Building block: one session and what kind of child it is.",
}
"""What one row of each view is."""

_ORDINARY = {
    "of_session_id": ("", "the session whose family it is"),
    "estimated_cost_usd": ("dollars", "estimate as stored, or what is left of it"),
    "actual_cost_usd": ("dollars", "actual cost as stored, or what is left of it"),
    "has_actual": ("0 or 1", "1 where the row has an actual cost of its own"),
    "more_estimated": ("0 or 1", "1 where what is left of the estimate is money"),
    "more_actual": ("0 or 1", "1 where what is left of the actual cost is money for calls of its own"),
}


def columns_of(view: str) -> list[str]:
    """The columns of a view on a store of schema 23."""
    connection = sqlite3.connect(":memory:")
    schema.create(connection)
    ledger.install(connection)
    names = [row[1] for row in connection.execute(f"PRAGMA temp.table_info({view})")]
    connection.close()
    return names


def meaning(name: str) -> tuple[str, str]:
    """Unit and description of a column, also of the building blocks' own."""
    if name in COLUMNS:
        return COLUMNS[name].unit, COLUMNS[name].description
    if name.startswith("own_"):
        unit, _ = meaning(name.removeprefix("own_"))
        return unit, f"what the session row itself says for `{name.removeprefix('own_')}`"
    return _ORDINARY[name]


def render() -> str:
    """The whole page."""
    parts = [
        "# The semantic layer",
        "",
        "TEMP views that every connection to a store has. They are made from the columns that the file really has:"
        " a column that an old store lacks is NULL here. Your own SQL can read them on any `?sql=` page and from"
        " Python through `state_ledger.connection.open_for_reading`. Nothing is written to the file.",
        "",
        "Money is split by *basis*; `cost_usd` is NULL where no price is known and is never added up as 0.",
        "Token buckets do not overlap: `input_tokens` is the uncached part of a prompt.",
        "",
    ]
    for view, what in VIEWS.items():
        parts += [f"## {view}", "", what, "", "| column | unit | meaning |", "|---|---|---|"]
        parts += [f"| `{name}` | {unit} | {text} |" for name in columns_of(view) for unit, text in [meaning(name)]]
        parts.append("")
    table = (functions_doc or "").partition("\n\n")[2]
    parts += ["## SQL functions", "", table.strip(), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    print(render(), end="")
