"""Sessions and what joins them: kinds, lineage, conversations, work (accounting rules 11 to 14, 22)."""

from __future__ import annotations

from state_ledger.ledger import session_sums
from state_ledger.ledger.columns import column, json_marker, listed, literal, messages_of, newest_message, seconds
from state_ledger.ledger.session_sums import SUMS
from state_ledger.shape import Shape


def views(shape: Shape, *, profile: str) -> list[tuple[str, str]]:
    """The views of sessions as (name, SELECT), in the order in which they build on each other."""
    return [
        ("ledger_session_links", _links(shape)),
        ("ledger_session_kinds", _kinds(shape)),
        ("ledger_session_facts", _facts(shape, profile)),
        ("ledger_session_usage", _session_usage()),
        session_sums.view(),
        ("ledger_sessions", _sessions()),
        ("ledger_lineage", _lineage(shape)),
        ("ledger_family", _family(shape)),
        ("ledger_conversations", _conversations()),
        ("ledger_work", _work()),
    ]


def _links(shape: Shape) -> str:
    """One session that has a parent link, as stored: a plain column, so that children are found by its index."""
    parent = column(shape, "sessions", "parent_session_id", "s")
    return f"SELECT s.id AS session_id, {parent} AS parent_session_id FROM main.sessions AS s WHERE {parent} <> ''"


def _kinds(shape: Shape) -> str:
    """One session: its stored parent link and what kind of child it is (rule 11)."""
    if not shape.has("sessions", "parent_session_id"):
        return (
            "SELECT s.id AS session_id, s.rowid AS row, NULL AS parent_row, NULL AS parent_session_id,"
            " 0 AS dangling, 'root' AS kind FROM main.sessions AS s"
        )
    parent = "nullif(s.parent_session_id, '')"
    rival = (
        "EXISTS (SELECT 1 FROM main.sessions AS o WHERE o.parent_session_id = s.parent_session_id"
        f" AND o.rowid <> s.rowid AND {may_continue(shape, 'o')} AND {_claim(shape, 'o')} > {_claim(shape, 's')})"
    )
    other = _marked(shape, "s")
    kind = (
        f"CASE WHEN {parent} IS NULL THEN 'root' WHEN p.id IS NOT NULL AND p.rowid <> s.rowid"
        f" AND {may_continue(shape, 's')} THEN CASE WHEN {rival} THEN 'other' ELSE 'continuation' END"
        f" ELSE {other} END"
    )
    return (
        f"SELECT s.id AS session_id, s.rowid AS row, p.rowid AS parent_row, {parent} AS parent_session_id,"
        f" {parent} IS NOT NULL AND p.id IS NULL AS dangling, {kind} AS kind"
        " FROM main.sessions AS s LEFT JOIN main.sessions AS p ON p.id = s.parent_session_id"
    )


def _marker(shape: Shape, alias: str, name: str) -> str:
    return json_marker(column(shape, "sessions", "model_config", alias), f"$.{name}")


def _delegate_of_parent(shape: Shape, alias: str) -> str:
    """`_delegate_from` names this parent, or a subagent without a marker that names another session."""
    return (
        f"CASE coalesce({_marker(shape, alias, '_delegate_from')}, '') WHEN {alias}.parent_session_id THEN 1"
        f" WHEN '' THEN {alias}.source = 'subagent' WHEN '__orphaned__' THEN {alias}.source = 'subagent' ELSE 0 END"
    )


def may_continue(shape: Shape, alias: str) -> str:
    """The parent ended with `compression`; not its delegate, not its branch, not a tool's session.

    A delegate's or a branch's own continuation carries the marker of its grandparent and counts.
    """
    return (
        f"({_ended(shape, 'compression')} AND {alias}.source <> 'tool' AND NOT {_delegate_of_parent(shape, alias)}"
        f" AND {_marker(shape, alias, '_branched_from')} IS NOT {alias}.parent_session_id)"
    )


def _ended(shape: Shape, reason: str) -> str:
    return f"{column(shape, 'sessions', 'end_reason', 'p')} IS {literal(reason)}"


def claim_terms(shape: Shape, alias: str) -> tuple[str, ...]:
    """What decides between several children that could continue one parent: the greatest terms do, in order."""
    # Only compared with each other, hence as stored.
    newest = f"(SELECT max(m.timestamp) FROM main.messages AS m WHERE m.session_id = {alias}.id)"
    ended = column(shape, "sessions", "end_reason", alias)
    live = column(shape, "sessions", "ended_at", alias)
    return (
        f"CASE WHEN {ended} = 'compression' THEN 2 WHEN {live} IS NULL THEN 1 ELSE 0 END",
        f"coalesce({newest}, 0)",
        f"coalesce({alias}.started_at, 0)",
        f"{alias}.id",
    )


def _claim(shape: Shape, alias: str) -> str:
    return f"({', '.join(claim_terms(shape, alias))})"


def _marked(shape: Shape, alias: str) -> str:
    branched = f"{_marker(shape, alias, '_branched_from')} IS NOT NULL"
    ended = _ended(shape, "branched")
    return (
        f"CASE WHEN {_delegate_of_parent(shape, alias)} THEN 'delegate'"
        f" WHEN {branched} OR {ended} THEN 'branch' ELSE 'other' END"
    )


def _facts(shape: Shape, profile: str) -> str:
    """One session without its sums: cheap enough for lists that are cut short."""

    def stored(name: str) -> str:
        return column(shape, "sessions", name, "s")

    newest = newest_message("s.id")
    oldest = f"(SELECT {seconds('min(m.timestamp)')} {messages_of('s.id')})"
    started = seconds("s.started_at")
    kept = {
        name: stored(name)
        for name in ("title", "model", "billing_provider", "end_reason", "message_count", "tool_call_count",
                     "parent_session_id", "cwd", "git_branch", "user_id", "archived", "pinned", "hidden",
                     "rewind_count", "cost_status")
    }  # fmt: skip
    first_user = (
        "(SELECT m.content FROM main.messages AS m WHERE m.session_id = s.id AND m.role = 'user'"
        " ORDER BY m.timestamp, m.id LIMIT 1)"
    )
    return (
        f"SELECT s.id AS session_id, s.source, coalesce(nullif({stored('profile_name')}, ''),"
        f" {literal(profile)}) AS profile, canonical_model(CAST({stored('model')} AS BLOB)) AS canonical_model,"
        f" {started} AS started_at, {seconds(stored('ended_at'))} AS ended_at,"
        f" coalesce({oldest}, {started}) AS first_active,"
        # Rule 22: inactivity is what makes a session old.
        f" coalesce({newest}, {seconds(stored('last_activity_at'))}, {started}) AS last_active,"
        f" {idle_since(shape, 's')} AS idle_since, {stored('ended_at')} IS NULL AS is_open,"
        f" {listed(kept)}, {_cron_job('s.id')} AS cron_job"
        ", (SELECT k.kind FROM ledger_session_kinds AS k WHERE k.row = s.rowid) AS kind,"
        " (SELECT count(*) FROM main.messages AS m WHERE m.session_id = s.id) AS messages,"
        f" substr(message_text(CAST({first_user} AS BLOB)), 1, 200) AS preview"
        " FROM main.sessions AS s"
    )


def idle_since(shape: Shape, alias: str) -> str:
    """SQL: from when on the age of a session counts, epoch seconds: its newest message or, in stores that
    note it, its last sign of life, whichever is later; its start where there is neither (rule 22)."""
    newest, started = newest_message(f"{alias}.id"), seconds(f"{alias}.started_at")
    if not shape.has("sessions", "last_activity_at"):
        return f"coalesce({newest}, {started})"
    noted = seconds(f"{alias}.last_activity_at")
    return f"coalesce(max({newest}, {noted}), {newest}, {noted}, {started})"


def _cron_job(session: str) -> str:
    """The job of a session id `cron_<job>_YYYYMMDD_HHMMSS`, NULL for other sessions."""
    stamp = "_" + "[0-9]" * 8 + "_" + "[0-9]" * 6
    return (
        f"CASE WHEN {session} GLOB 'cron_?*{stamp}' THEN substr({session}, 6, length({session}) - 21)"
        f" WHEN {session} GLOB 'cron_?*' THEN substr({session}, 6) END"
    )


def _session_usage() -> str:
    sums = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    return f"SELECT session_id, {sums} FROM ledger_usage GROUP BY session_id"


def _sessions() -> str:
    return "SELECT * FROM ledger_session_facts LEFT JOIN ledger_session_usage USING (session_id)"


_PLACE = ("row", "link_row", "conversation_row", "work_row", "tip_row", "segment", "depth", "trouble")
"""What `lineage_places` tells of a session, in its order."""

_PLACED = "lineage_places(k.row, k.parent_row, k.kind, k.dangling)"


def _stands(shape: Shape, cells: dict[str, str]) -> str:
    """The columns of `ledger_lineage` over a session `s` and those that its place names."""
    parent = f"nullif({column(shape, 'sessions', 'parent_session_id', 's')}, '')"
    return (
        f"s.id AS session_id, {parent} AS parent_session_id, l.id AS link_session_id,"
        " (SELECT k.kind FROM ledger_session_kinds AS k WHERE k.row = s.rowid) AS kind,"
        " c.id AS conversation_id, w.id AS work_id, t.id AS tip_session_id,"
        f" {', '.join(f'{cells[name]} AS {name}' for name in _PLACE[5:])}"
    )


def _named(cells: dict[str, str]) -> str:
    """Joins the sessions that a place names to it."""
    return (
        f" LEFT JOIN main.sessions AS l ON l.rowid = {cells['link_row']}"
        f" JOIN main.sessions AS c ON c.rowid = {cells['conversation_row']}"
        f" JOIN main.sessions AS w ON w.rowid = {cells['work_row']}"
        f" JOIN main.sessions AS t ON t.rowid = {cells['tip_row']}"
    )


def _lineage(shape: Shape) -> str:
    """One session: where it stands; the walk over all sessions is one aggregate in linear time."""
    cells = {name: f"p.{name}" for name in _PLACE}
    listed = ", ".join(f"json_extract(j.value, '$[{at}]') AS {name}" for at, name in enumerate(_PLACE))
    return (
        # Once, and with an index made on the way: joins in any order stay linear.
        f"WITH places AS MATERIALIZED (SELECT {listed} FROM"
        f" json_each((SELECT {_PLACED} FROM ledger_session_kinds AS k)) AS j)"
        f" SELECT {_stands(shape, cells)} FROM places AS p JOIN main.sessions AS s ON s.rowid = p.row{_named(cells)}"
    )


def _family(shape: Shape) -> str:
    """One session and one of its family: its ancestors and all that came from any of them.

    Where a session stands is decided within its family, so one session is asked about without a walk over
    all others. Without `of_session_id` it is every pair of a family.
    """
    if not shape.has("sessions", "parent_session_id"):
        return "SELECT session_id AS of_session_id, * FROM ledger_lineage"
    cells = {name: f"json_extract(j.value, '$[{at}]')" for at, name in enumerate(_PLACE)}
    up = (
        "SELECT a.rowid UNION SELECT p.rowid FROM up CROSS JOIN main.sessions AS s ON s.rowid = up.row"
        " CROSS JOIN main.sessions AS p ON p.id = s.parent_session_id"
    )
    family = (
        "SELECT row FROM up UNION SELECT s.rowid FROM family CROSS JOIN main.sessions AS p ON p.rowid = family.row"
        " CROSS JOIN main.sessions AS s ON s.parent_session_id = p.id"
    )
    places = (
        f"WITH RECURSIVE up(row) AS ({up}), family(row) AS ({family})"
        f" SELECT {_PLACED} FROM family CROSS JOIN ledger_session_kinds AS k ON k.row = family.row"
    )
    return (
        f"SELECT a.id AS of_session_id, {_stands(shape, cells)} FROM main.sessions AS a"
        f" CROSS JOIN json_each(({places})) AS j CROSS JOIN main.sessions AS s ON s.rowid = {cells['row']}"
        f"{_named(cells)}"
    )


def _whole(key: str, facts: str) -> str:
    """Sessions and their usage summed by the whole that `key` of `ledger_lineage` names; every session is in one."""
    sums = ", ".join(f"sum(u.{name}) AS {name}" for name in SUMS)
    return (
        f"SELECT l.{key}, {facts}, min(f.started_at) AS started_at, max(f.last_active) AS last_active,"
        f" sum(f.message_count) AS message_count, max(l.trouble) AS trouble, {sums}"
        " FROM ledger_lineage AS l JOIN ledger_session_facts AS f ON f.session_id = l.session_id"
        f" LEFT JOIN ledger_session_usage AS u ON u.session_id = l.session_id GROUP BY l.{key}"
    )


def _conversations() -> str:
    """One conversation under its tip."""
    return _whole(
        "conversation_id",
        "l.tip_session_id, l.work_id, count(*) AS segments,"
        " max(CASE WHEN l.session_id = l.tip_session_id THEN f.title END) AS tip_title,"
        " max(CASE WHEN l.session_id = l.conversation_id THEN f.title END) AS first_title,"
        " max(CASE WHEN l.session_id = l.conversation_id THEN f.source END) AS source,"
        " max(CASE WHEN l.session_id = l.conversation_id THEN f.kind END) AS kind",
    )


def _work() -> str:
    return _whole(
        "work_id",
        "count(*) AS sessions, count(DISTINCT l.conversation_id) AS conversations, max(l.depth) AS depth,"
        " sum(l.kind = 'delegate') AS delegates,"
        " max(CASE WHEN l.conversation_id = l.work_id AND l.session_id = l.tip_session_id THEN f.title END) AS title,"
        " max(CASE WHEN l.session_id = l.work_id THEN f.source END) AS source,"
        " max(CASE WHEN l.session_id = l.work_id THEN f.kind END) AS kind",
    )
