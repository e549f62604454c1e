"""Sums of usage by calendar day, so that what a page costs grows with days and models, and not with sessions.

A rollup is made of the days of one zone when a store is loaded: one for each store, and one for all of them
together. It holds two kinds of rows: sums by everything that questions group or filter by, and numbers of sessions.
A session that is active on two days must count once over both, so sessions are kept by the day on which they are
active and the last one before it: of a period those count whose day before lies before it. A session is counted
among those of one model, source, …; hence one set of such rows for each way of grouping.

A question is answered from a rollup where it gives the same rows; `put_in` tells from its SQL whether it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from state_ledger.lake.tables import Kind, kind_of
from state_ledger.ledger import days
from state_ledger.ledger.apportion import SPREAD
from state_ledger.warehouse.constants import Folded

PREFIX = "ledger_rolled_"
"""How the views over the rollups are called, before the name of a way of counting sessions."""

DETAIL = ("source", "profile", "canonical_model", "model", "billing_provider", "task", "basis", "partial",
          "cost_status", "cost_source")  # fmt: skip
"""What sums are kept by."""

PLACED = ("day_rule", "bucket", "first_bucket", "last_bucket")

OF_STORE = ("store", "host", "place")


WHOLE = 0
"""In the place of a store, for the rows of all stores together."""

ROWS = f"{PREFIX}rows"
"""The view of all rows of single stores."""


class Way(NamedTuple):
    """One way in which sessions are counted: among those that are alike in `columns`, of rows under `condition`."""

    name: str
    columns: tuple[str, ...]
    condition: str = ""


WAYS = (
    Way("every", ()),
    Way("model", ("canonical_model",)),
    Way("source", ("source",)),
    Way("profile", ("profile",)),
    Way("task", ("task",)),
    Way("basis", ("canonical_model", "basis")),
    Way(
        "unpriced", ("canonical_model", "billing_provider", "cost_status", "cost_source", "partial"),
        "basis = 'unknown' OR partial = 1",
    ),
)  # fmt: skip

COLUMNS: tuple[tuple[str, Kind], ...] = (
    ("version", "integer"), ("way", "text"), ("day_rule", "text"), ("bucket", "integer"), ("bucket_before", "integer"),
    *((name, kind_of(name)) for name in DETAIL), *((name, "real") for name in SPREAD), ("sessions", "real"),
    ("store", "text"), ("host", "text"), ("place", "integer"),
)  # fmt: skip
"""The table `fleet_rolled`. version: number of the state of the store that the rows were made of. way: '' for sums.
bucket: the first of the day in which there is anything; bucket_before: one of the day before that, NULL where there
is none."""


def selects(zone: str, versions: Mapping[int, int]) -> list[str]:
    """The SELECTs, over `ledger_time`, of all rows of a rollup, with the columns of the table; SQL of SQLite.

    versions: the number of the state of each store, by the store's.
    """
    arms = "".join(f" WHEN {place} THEN {version}" for place, version in versions.items())
    version = f"CASE place{arms} END"
    return [_sums(zone, version), *(_sessions(way, zone, version) for way in WAYS)]


def _day(column: str, zone: str) -> str:
    return f"local_day({column}, '{zone}')"


def _sums(zone: str, version: str) -> str:
    cells = {
        "version": version, "way": "''", "day_rule": "day_rule", "bucket": "min(bucket)",
        "bucket_before": "CAST(NULL AS INTEGER)", **{name: name for name in DETAIL},
        **{name: f"sum({name})" for name in SPREAD}, "sessions": "CAST(NULL AS REAL)",
        **{name: name for name in OF_STORE},
    }  # fmt: skip
    # Tokens without a prompt of their own are left out of a ratio: they stay apart from those with one.
    grouped = ("day_rule", _day("bucket", zone), *DETAIL, "prompt_tokens IS NULL", *OF_STORE)
    return f"SELECT {_listed(cells)} FROM ledger_time GROUP BY {', '.join(grouped)}"


def _sessions(way: Way, zone: str, version: str) -> str:
    same = ", ".join(("session_id", "day_rule", *way.columns, *OF_STORE))
    where = f" WHERE {way.condition}" if way.condition else ""
    daily = (
        f"SELECT {same}, {_day('bucket', zone)} AS day, min(bucket) AS bucket FROM ledger_time{where}"
        f" GROUP BY {same}, {_day('bucket', zone)}"
    )
    # A row without a time stands beside the days: it is no day before another.
    placed = (
        f"SELECT {same}, day, bucket, lag(bucket) OVER (PARTITION BY {same}, bucket IS NULL ORDER BY bucket)"
        f" AS bucket_before FROM ({daily}) AS daily"
    )
    nothing = {name: f"CAST(NULL AS {'TEXT' if kind_of(name) == 'text' else 'REAL'})" for name in DETAIL}
    cells = {
        "version": version, "way": f"'{way.name}'", "day_rule": "day_rule", "bucket": "min(bucket)",
        "bucket_before": "max(bucket_before)", **nothing, **{name: name for name in way.columns},
        **dict.fromkeys(SPREAD, "CAST(NULL AS REAL)"), "sessions": "count(*) * 1.0",
        **{name: name for name in OF_STORE},
    }  # fmt: skip
    grouped = ("day_rule", "day", _day("bucket_before", zone), *way.columns, *OF_STORE)
    return f"SELECT {_listed(cells)} FROM ({placed}) AS placed GROUP BY {', '.join(grouped)}"


def of_all(zone: str, version: int) -> str:
    """The SELECT of the rows of all stores together, over those of single ones."""
    cells = {
        "version": str(version), "way": "way", "day_rule": "day_rule", "bucket": "min(bucket)",
        "bucket_before": "max(bucket_before)", **{name: name for name in DETAIL},
        **{name: f"sum({name})" for name in (*SPREAD, "sessions")},
        "store": "CAST(NULL AS TEXT)", "host": "CAST(NULL AS TEXT)", "place": str(WHOLE),
    }  # fmt: skip
    grouped = ("way", "day_rule", _day("bucket", zone), _day("bucket_before", zone), *DETAIL, "prompt_tokens IS NULL")
    return f"SELECT {_listed(cells)} FROM {ROWS} GROUP BY {', '.join(grouped)}"


def _listed(cells: dict[str, str]) -> str:
    return ", ".join(cell if cell == name else f"{cell} AS {name}" for name, cell in cells.items())


def views(generation: int) -> dict[str, str]:
    """The SELECTs of the views over the rollups of a generation, by name."""
    rows = ", ".join(f"k.{name}" for name, _ in COLUMNS)
    return {
        ROWS: f"SELECT {rows} FROM {_of(generation)} AND k.place <> {WHOLE}",
        **{_view(way, whole): _body(way, generation, whole) for way in WAYS for whole in (False, True)},
    }


def _view(way: Way, whole: bool) -> str:
    return f"{PREFIX}{'whole_' if whole else ''}{way.name}"


def _of(generation: int) -> str:
    shown = f"SELECT r.version FROM fleet_rollups AS r WHERE r.generation = {generation}"
    return f"fleet_rolled AS k WHERE k.version IN ({shown})"


def _body(way: Way, generation: int, whole: bool) -> str:
    """Sums and one way of counting sessions, with the columns of `ledger_time`; whole: of all stores together."""
    cells = {name: f"k.{name}" for name, _ in COLUMNS if name not in ("version", "way")}
    cells |= {"first_bucket": "k.bucket", "last_bucket": "k.bucket"}
    if way.condition:  # sessions stand for rows of both kinds, and pass the condition as one of them
        cells["basis"] = "CASE WHEN k.way = '' THEN k.basis ELSE 'unknown' END"
    of = "=" if whole else "<>"
    return (
        f"SELECT {_listed(cells)} FROM {_of(generation)} AND k.way IN ('', '{way.name}') AND k.place {of} {WHOLE}"
    )


def put_in(folded: Folded, zone: str, *, narrowed: bool = False) -> bool:
    """Makes a question read the rollup of a zone in the place of `ledger_time`, where that gives the same rows.

    folded: a statement whose constants are worked out, with days of this zone alone; is changed if it can be.
    zone: '' where there is no rollup. narrowed: whether not all stores are asked. Returns whether it reads the rollup.
    """
    tree = folded.tree
    if not zone or not isinstance(tree, exp.Select):
        return False
    source = _only_source(tree)
    if source is None or not _is_whole(folded, tree, zone):
        return False
    way = _way(tree)
    if way is None:
        return False
    since = _since(tree)
    by_day = any(call.name.lower() == "local_day" for call in _grouped(tree, exp.Anonymous))
    for count in list(tree.find_all(exp.Count)):
        count.replace(_number_of_sessions(None if by_day else since, by_day))
    whole = not narrowed and not any(column.name in OF_STORE for column in tree.find_all(exp.Column))
    source.replace(exp.to_table(_view(way, whole), alias=source.alias_or_name))
    return True


def _only_source(tree: exp.Select) -> exp.Table | None:
    tables = list(tree.find_all(exp.Table))
    alone = len(tables) == 1 and tables[0].name == "ledger_time" and len(list(tree.find_all(exp.Select))) == 1
    return tables[0] if alone else None


def _is_whole(folded: Folded, tree: exp.Select, zone: str) -> bool:
    """Whether sums of days are all that a question takes of its rows, and its period is one of whole days."""
    known = {*DETAIL, *SPREAD, *PLACED, *OF_STORE, "session_id"}
    named = {column.name for column in tree.find_all(exp.Column)}
    aliases = {shown.alias for shown in tree.expressions if isinstance(shown, exp.Alias)}
    if not named <= known | aliases:
        return False
    inside: set[int] = set()
    for each in tree.find_all(exp.AggFunc):
        if not _is_additive(each):
            return False
        inside.update(id(column) for column in each.find_all(exp.Column))
    where = tree.args.get("where")
    for column in tree.find_all(exp.Column):
        if id(column) in inside or column.name in (*DETAIL, *OF_STORE):
            continue
        if column.name in aliases and column.find_ancestor(exp.Order):
            continue
        within = column.parent
        if column.name == "bucket" and isinstance(within, exp.Anonymous) and within.name.lower() == "local_day":
            continue
        if where is None or column.find_ancestor(exp.Where) is None or column.name not in PLACED:
            return False
        if column.name != "day_rule" and not _is_day_bound(folded, within, column, zone):
            return False
    return True


def _is_additive(call: exp.AggFunc) -> bool:
    columns = {column.name for column in call.find_all(exp.Column)}
    if isinstance(call, exp.Count):
        return isinstance(call.this, exp.Distinct) and columns == {"session_id"}
    if isinstance(call, (exp.GroupConcat, exp.Max, exp.Min)):
        return columns <= set(DETAIL) and (not isinstance(call, exp.GroupConcat) or call.find(exp.Distinct) is not None)
    if not isinstance(call, exp.Sum) or "session_id" in columns or not columns <= {*DETAIL, *SPREAD}:
        return False
    summed = call.this
    if isinstance(summed, exp.Column):
        return summed.name in SPREAD
    if not isinstance(summed, exp.Case) or len(summed.args["ifs"]) != 1:
        return False
    if not isinstance(summed.args.get("default") or exp.Null(), exp.Null):
        return False
    arm = summed.args["ifs"][0]
    asked = {column.name for column in arm.this.find_all(exp.Column)}
    has_prompt = arm.this.sql() == "NOT prompt_tokens IS NULL"
    value = arm.args["true"]
    return isinstance(value, exp.Column) and value.name in SPREAD and (has_prompt or asked <= set(DETAIL))


def _is_day_bound(folded: Folded, within: exp.Expr | None, column: exp.Column, zone: str) -> bool:
    if not isinstance(within, (exp.GTE, exp.LT)) or within.this is not column:
        return False
    known, bound = folded.value(within.expression)
    if not known or not isinstance(bound, (int, float)):
        return False
    day = days.local_day(float(bound), zone)
    return day is not None and days.day_start(day, zone) == float(bound)


def _way(tree: exp.Select) -> Way | None:
    where = tree.args.get("where")
    kept = where.copy() if where is not None else exp.Where(this=exp.true())
    condition = ""
    for way in WAYS:
        if way.condition:
            for node in kept.find_all(exp.Or):
                if node.sql() == way.condition:
                    condition = way.condition
                    node.replace(exp.true())
                    break
    wanted = {column.name for column in kept.find_all(exp.Column)} | {
        column.name for column in _grouped(tree, exp.Column)
    }
    wanted -= {*PLACED, *OF_STORE}
    return next((way for way in WAYS if set(way.columns) == wanted and way.condition == condition), None)


def _grouped(tree: exp.Select, kind: type[exp.Expr]) -> Sequence[exp.Expr]:
    group = tree.args.get("group")
    return [] if group is None else list(group.find_all(kind))


def _since(tree: exp.Select) -> exp.Expr | None:
    where = tree.args.get("where")
    for bound in where.find_all(exp.GTE) if where is not None else ():
        if isinstance(bound.this, exp.Column) and bound.this.name == "bucket":
            since: exp.Expr = bound.expression
            return since
    return None


def _number_of_sessions(since: exp.Expr | None, by_day: bool) -> exp.Expr:
    """How many sessions the rows of a group stand for: on one day all, else those with no day before in the period."""
    sessions = exp.column("sessions")
    if not by_day:
        first: exp.Expr = exp.Is(this=exp.column("bucket_before"), expression=exp.Null())
        if since is not None:
            first = exp.or_(first, exp.LT(this=exp.column("bucket_before"), expression=since.copy()))
        counted: exp.Expr = exp.Case(ifs=[exp.If(this=first, true=sessions)])
    else:
        counted = sessions
    return exp.Coalesce(this=exp.Sum(this=counted), expressions=[exp.Literal.number(0)])
