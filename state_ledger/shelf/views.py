"""The views of the semantic layer over the rows of several stores (`facts`), under their usual names.

Each shows the stores that were chosen and, of a session that stands in several of them, the copy that
counts (`copies`). Beside the usual columns they have `store`.
"""

from __future__ import annotations

import re

from state_ledger.ledger import prices, view_statements
from state_ledger.ledger.apportion import SPREAD, WHOLE
from state_ledger.ledger.session_sums import SUMS
from state_ledger.shape import Shape
from state_ledger.shelf.facts import AUDIT, BOOKS, COUNTED, KEPT, MESSAGES, TOOLS, columns
from state_ledger.sqlite import Connection

DERIVED = ("ledger_session_usage", "ledger_sessions", "ledger_conversations", "ledger_work")
"""Views that read other views alone: their text is the one of the layer itself."""

KINSHIP = frozenset({"ledger_lineage", "ledger_family", "ledger_conversations", "ledger_work"})
"""What needs to know which sessions are one conversation."""

PARTS = {
    **{each.view: each.part for each in (*KEPT, *COUNTED)},
    **dict.fromkeys(
        (*DERIVED, "ledger_session_sums", "ledger_time", "ledger_prices", "ledger_lineage", "ledger_family"), BOOKS
    ),
    **dict.fromkeys(("ledger_stores", "ledger_copies", "ledger_places"), BOOKS),
}
"""The part of the stores that each view shows."""

ALL_PARTS = (BOOKS, AUDIT, MESSAGES, TOOLS)

_NAMES = re.compile(r"\bledger_[a-z_]+")

_COUNTS = "session AS s ON s.key = {key} AND s.counted AND s.store IN (SELECT store FROM chosen)"
_STORE = "(SELECT name FROM store WHERE number = s.store) AS store"


def named_in(sql: str) -> frozenset[str]:
    """The views, and functions of that kind, that a text names."""
    return frozenset(_NAMES.findall(sql))


def make(books: Connection) -> None:
    """Makes the views, as TEMP ones: a view of the layer itself names tables in every schema."""
    for kept in KEPT:
        listed = ", ".join(f"k.{name}" for name in columns()[kept.table])
        _view(books, kept.view, f"SELECT s.name AS session_id, {listed}, {_STORE} FROM {_joined(kept.table, 'k')}")
    for each in COUNTED:
        listed = "".join(f", k.{name}" for name in each.columns)
        _view(
            books, each.view,
            f"SELECT s.name AS session_id, k.timestamp{listed}, {_STORE} FROM {_joined(each.table, 'k')}"
            " JOIN numbers ON numbers.n <= k.number",
        )  # fmt: skip
    whole = ", ".join(f"u.{name}" for name in WHOLE if name != "session_id")
    spread = ", ".join(f"u.{name} * p.share AS {name}" for name in SPREAD)
    # The bounds are those of the session in the layer's own view; here each row is bounded by itself.
    _view(
        books, "ledger_time",
        f"SELECT s.name AS session_id, {whole}, p.day_rule, p.bucket, p.bucket AS first_bucket,"
        f" p.bucket AS last_bucket, p.share, {spread}, {_STORE} FROM placed AS p CROSS JOIN usage AS u"
        f" ON u.id = p.usage CROSS JOIN {_COUNTS.format(key='u.session')}",
    )  # fmt: skip
    place = "(SELECT o.name FROM session AS o WHERE o.key = k.{0}) AS {1}"
    others = ", ".join(
        place.format(column, name)
        for column, name in (("link", "link_session_id"), ("conversation", "conversation_id"), ("work", "work_id"),
                             ("tip", "tip_session_id"))
    )  # fmt: skip
    _view(
        books, "ledger_lineage",
        "SELECT s.name AS session_id, f.parent_session_id, k.kind, k.segment, k.depth, k.trouble,"
        f" {others}, {_STORE} FROM {_joined('lineage', 'k')} JOIN facts AS f ON f.session = k.session",
    )  # fmt: skip
    _view(
        books, "ledger_places",
        f"SELECT s.name AS session_id, s.id AS stored_id, {_STORE} FROM session AS s"
        " WHERE s.counted AND s.store IN (SELECT store FROM chosen)",
    )  # fmt: skip
    # Another shape would only change views that read tables, and these read none.
    layer = dict(view_statements(Shape({})))
    for name in DERIVED:
        _view(books, name, layer[name])
    # Here both are read as a whole: rows are kept, and nothing is asked of a store.
    _view(books, "ledger_session_sums", f"SELECT session_id, {', '.join(SUMS)} FROM ledger_session_usage")
    _view(
        books, "ledger_family",
        "SELECT a.session_id AS of_session_id, l.* FROM ledger_places AS a CROSS JOIN ledger_lineage AS l",
    )  # fmt: skip
    key = ", ".join(f"coalesce({name}, '') AS {name}" for name in prices.KEY)
    _view(books, "ledger_prices", prices.listed_for(f"SELECT DISTINCT {key} FROM ledger_usage"))
    _view(
        books, "ledger_stores",
        "SELECT t.name AS store, t.profile, t.path, count(s.key) AS sessions, coalesce(sum(s.counted), 0) AS counted,"
        " coalesce(sum(s.messages), 0) AS messages, max(s.last_active) AS last_active FROM store AS t"
        # Usage whose session is gone has a key, too, and is no session of the store.
        " LEFT JOIN session AS s ON s.store = t.number AND s.key IN (SELECT session FROM facts)"
        " WHERE t.number IN (SELECT store FROM chosen) GROUP BY t.number",
    )  # fmt: skip
    _view(
        books, "ledger_copies",
        f"SELECT s.name AS session_id, {_STORE}, (SELECT t.name FROM store AS t WHERE t.number = c.store) AS copy_in,"
        " s.messages, c.messages AS messages_of_copy, s.last_active, c.last_active AS last_active_of_copy,"
        " s.processed_tokens, c.processed_tokens AS processed_tokens_of_copy, s.cost_usd,"
        " c.cost_usd AS cost_usd_of_copy"
        " FROM session AS c JOIN session AS s ON s.key = c.instead"
        " WHERE NOT c.counted AND (s.store IN (SELECT store FROM chosen) OR c.store IN (SELECT store FROM chosen))",
    )  # fmt: skip


def _joined(table: str, alias: str) -> str:
    return f"{table} AS {alias} JOIN {_COUNTS.format(key=f'{alias}.session')}"


def _view(books: Connection, name: str, select: str) -> None:
    books.execute(f"CREATE TEMP VIEW {name} AS {select}")
