"""`/-/ledger/all`: all stores that a visitor may see, as one.

| address | is |
|---|---|
| `/-/ledger/all` | the home |
| `/-/ledger/all/cost`, `/-/ledger/all/cache` | the pages |
| `/-/ledger/all/<canned query>`, `.json`, `.csv` | a question over all stores |
| `/-/ledger/all/session/<id>`, `conversation`, `work` | the way to a transcript in its store |
| `/-/ledger/all/live.json` | whether any store has changed |

`?store=` narrows each of them; it may be given several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Response
from markupsafe import Markup

from state_ledger import questions
from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.pages import answers, figures, provenance, tables
from state_ledger.pages.asking import Ask
from state_ledger.pages.cost import OF_STORES
from state_ledger.pages.home import Home, read_home
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import cost_page, home_page, live, page, together
from state_ledger.portability import question_file
from state_ledger.shelf import Reading
from state_ledger.shelf.catalogue import catalogue
from state_ledger.shelf.keeping import of_one_session
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette

CACHE = ("cache_ratio_per_store", "cache_ratio_per_model", "cache_ratio_per_source", "cache_worst_sessions")
"""The questions whose answers the cache page shows."""

HOME_READS = ("ledger_problems", "top_work", "lineage_problems")
"""Questions that together read every view which the home asks for."""


async def all_home(request: Any, datasette: Datasette) -> Response:
    def read(reading: Reading) -> tuple[Home, list[dict[str, Any]], list[str], int]:
        ask = Ask(reading.connection, reading.shelf.settings)
        # All that the page needs is read first, so that all of it speaks of the same stores.
        reading.prepare(" ".join(questions.load()[name].sql for name in HOME_READS))
        home = read_home(ask, None)
        return home, _stores(ask, home.asked), reading.notices, reading.copies

    try:
        asked = await together.place(datasette, request)
        live_now = asked.live
        home, rows, notices, copies = await asked.read(read)
    except StateLedgerError as error:
        return await refuse(datasette, request, error)
    at, zone = asked.at, registry(datasette).settings.zone_name
    context = {
        "facts": [
            figures.plural(len(asked.only or asked.names), "store"),
            figures.plural(home.overview.sessions, "session"),
            f"last activity {figures.moment(home.overview.last_active, zone)}",
        ],
        "notices": [*notices, *_of_copies(copies)],
        "copies": at.query("duplicate_sessions") if copies else "",
        "stores": Markup(_stores_table(rows, datasette)),
        "stores_provenance": Markup(provenance.line(
            provenance.basis(home.asked["tz"], home.asked["day_rule"]), at, "cost_per_store", home.asked
        )),
        **home_page.shown(home, at, catalogue()),
    }  # fmt: skip
    return await page.respond(
        datasette, request, "ledger_all.html", context, title=page.ALL, section="home", every=at, live=live_now
    )


async def all_cost(request: Any, datasette: Datasette) -> Response:
    said: list[str] = []

    try:
        asked = await together.place(datasette, request)
    except ParameterError as error:
        return await refuse(datasette, request, error)

    async def read(reader: Callable[[Ask], Any]) -> Any:
        def within(reading: Reading) -> Any:
            cost = reader(Ask(reading.connection, reading.shelf.settings))
            said.extend([*reading.notices, *_of_copies(reading.copies)])
            return cost

        return await asked.read(within)

    live_now = asked.live
    shown = await cost_page.answered(request, registry(datasette).settings, asked.at, read, OF_STORES)
    context = shown.context | {"notices": said}
    context["hidden"] += [("store", name) for name in asked.only]
    return await page.respond(
        datasette, request, "ledger_cost.html", context, title="Cost", section="cost", status=shown.status,
        permalink=shown.permalink, every=asked.at, live=live_now,
    )  # fmt: skip


async def all_cache(request: Any, datasette: Datasette) -> Response:
    def read(reading: Reading) -> tuple[list[dict[str, Any]], list[str]]:
        settings = reading.shelf.settings
        shown = [answers.shown(reading.ask(name), asked.at, settings.zone_name) for name in CACHE]
        return shown, [*reading.notices, *_of_copies(reading.copies)]

    try:
        asked = await together.place(datasette, request)
        live_now = asked.live
        shown, notices = await asked.read(read)
    except StateLedgerError as error:
        return await refuse(datasette, request, error)
    context = {"answers": shown, "notices": notices}
    return await page.respond(
        datasette, request, "ledger_answers.html", context, title="Cache", section="cache", every=asked.at,
        live=live_now,
    )  # fmt: skip


async def question_page(request: Any, datasette: Datasette) -> Response:
    """A question as a page: its parameters in a form, its rows in a table."""
    try:
        name, asked, values = await _asked(request, datasette)
        live_now = asked.live
        shown, notices = await asked.read(
            lambda reading: (
                answers.shown(reading.ask(name, values), asked.at, reading.shelf.settings.zone_name),
                [*reading.notices, *_of_copies(reading.copies)],
            )
        )
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return await refuse(datasette, request, error)
    settings = registry(datasette).settings
    context = {
        "answers": [shown],
        "notices": notices,
        "action": asked.at.query(name),
        "kept": [("store", each) for each in asked.only],
        "fields": answers.fields(catalogue()[name], values, settings),
    }
    return await page.respond(
        datasette, request, "ledger_answers.html", context, title=shown["title"], every=asked.at, live=live_now
    )


async def question_json(request: Any, datasette: Datasette) -> Response:
    """Rows as objects, as of one store, and besides which stores they are of, which are not, and how many copies."""
    try:
        name, asked, values = await _asked(request, datasette)
        body = await asked.read(lambda reading: _body(reading, name, values))
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return json_answer.refuse(str(error), status_of(error))
    return json_answer.respond(body)


async def question_csv(request: Any, datasette: Datasette) -> Response:
    """Every row. Stores that are missing are named in the header `X-Left-Out`, since CSV has no place for it."""

    def read(reading: Reading) -> tuple[bytes, list[str]]:
        question = reading.connection.questions[name]
        reading.prepare(question.sql)
        made = question_file.make(
            reading.connection, name, values, "csv", settings=reading.shelf.settings, may_be_empty=True
        )
        with made.file:
            return b"".join(made.chunks()), list(reading.missing)

    try:
        name, asked, values = await _asked(request, datasette)
        if of_one_session(catalogue()[name]):
            member = await asked.read(lambda reading: reading.owner(values.get("session", "")))
            at = page.links(datasette, member[0])
            return Response.redirect(at.query(name, {**values, "session": member[1]}, form="csv"))
        text, missing = await asked.read(read)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return Response.text(f"{error}\n", status=status_of(error))
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    if missing:
        headers["X-Left-Out"] = ", ".join(missing)
    return Response(text, headers=headers, content_type="text/csv; charset=utf-8")


async def transcript(request: Any, datasette: Datasette) -> Response:
    """Leads to the transcript in the store whose copy of the session counts."""
    try:
        asked = await together.place(datasette, request)
        found = await asked.read(lambda reading: reading.place(tilde_decode(request.url_vars["session"])))
    except StateLedgerError as error:
        return await refuse(datasette, request, error)
    if found is None:
        raise NotFound("No store that you may see has this session.")
    member, session_id = found
    kept = {name: request.args.get(name) for name in ("message",) if request.args.get(name)}
    return Response.redirect(page.links(datasette, member.name).transcript(request.url_vars["kind"], session_id, kept))


async def all_live(request: Any, datasette: Datasette) -> Response:
    names = await live.granted(datasette, request, "", lambda: page.visible_stores(datasette, request))
    try:
        asked = together.narrowed(datasette, request, names)
    except ParameterError as error:
        return json_answer.refuse(str(error), 400)
    return live.tell(request, asked.live["version"])


def status_of(error: Exception) -> int:
    """400 for what was asked wrongly, 503 for what could not be answered."""
    return 400 if isinstance(error, ParameterError) else 503


async def refuse(datasette: Datasette, request: Any, error: Exception) -> Response:
    """An error as a page of ours."""
    at = page.all_links(datasette)
    return await page.respond(
        datasette, request, "ledger_answers.html", {"answers": [], "problems": [str(error)]}, title=page.ALL,
        every=at, status=status_of(error),
    )  # fmt: skip


async def _asked(request: Any, datasette: Datasette) -> tuple[str, together.Place, dict[str, str]]:
    """The question that a request names, the stores it is asked of, and the values of its parameters."""
    name = request.url_vars["query"]
    question = catalogue().get(name)
    if question is None:
        raise NotFound("There is no such question over several stores.")
    asked = await together.place(datasette, request, name)
    return name, asked, {p.name: request.args.get(p.name) or "" for p in question.parameters}


def _body(reading: Reading, name: str, values: Mapping[str, str]) -> dict[str, Any]:
    result = reading.ask(name, values)
    shown = [each.name for each in reading.present if not reading.only or each.name in reading.only]
    return {
        **result.question.head(result.parameters, result.columns),
        "stores": shown,
        "left_out": reading.missing,
        "late": reading.late,
        "copies_left_out": reading.copies,
        "rows": result.records(),
        "truncated": result.truncated,
    }


def _of_copies(copies: int) -> Iterator[str]:
    if copies:
        yield f"{figures.plural(copies, 'copy', 'copies')} of sessions left out: each session is counted in one store."


def _stores(ask: Ask, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every store with what it cost in a period; one without usage in it has no sums."""
    try:
        spent = {row["store"]: row for row in ask("cost_per_store", asked).rows}
        return [{**row, "sums": spent.get(row["store"])} for row in ask("stores").rows]
    except StateLedgerError:
        return []  # the home says of the same figures what is late


def _stores_table(rows: list[dict[str, Any]], datasette: Datasette) -> str:
    zone = registry(datasette).settings.zone_name
    columns = [tables.Column("Store"), tables.Column("Cost", True), tables.Column("Cache read", True),
               tables.Column("Sessions", True), tables.Column("Last activity")]  # fmt: skip
    cells = []
    for row in rows:
        sums = row["sums"] or {}
        ratio = sums.get("cache_read_ratio")
        cost = figures.money(sums.get("cost_usd")) if sums else "none"
        cells.append([
            tables.Cell(row["store"], page.links(datasette, row["store"]).home, sub=f"profile {row['profile']}"),
            tables.Cell(cost, word=not cost.startswith("$")),
            tables.Cell(figures.ratio(ratio), word=ratio is None),
            tables.Cell(figures.count(row["sessions"])),
            tables.Cell(figures.moment(row["last_active"], zone)),
        ])  # fmt: skip
    return tables.table("Cost of the last 30 days; all sessions of each store", columns, cells, name="stores-table")
