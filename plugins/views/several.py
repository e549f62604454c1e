"""Pages over several stores as one, wherever they are read: `/-/ledger/all` and `/-/ledger/fleet`.

| address | is |
|---|---|
| `<place>` | the home |
| `<place>/cost`, `<place>/cache` | the pages |
| `<place>/<canned query>`, `.json`, `.csv` | a question over all that is in the place |
| `<place>/session/<id>`, `conversation`, `work` | a transcript, or the way to it |
| `<place>/live.json` | whether anything of it has changed |

Each view gets what finds the place of a request (`places`): `together` for the stores of this instance, `fleet_place`
for the books of a fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound, Response

from state_ledger import questions
from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.pages import answers, figures
from state_ledger.pages.asking import Ask
from state_ledger.pages.home import Home, read_home
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import cost_page, home_page, live, page
from state_ledger.plugins.views.places import Find, Place, Reading
from state_ledger.portability import question_file
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette

HOME_READS = ("ledger_problems", "top_work", "lineage_problems")
"""Questions that together read every view which the home asks for."""


async def home(request: Any, datasette: Datasette, find: Find) -> Response:
    def read(reading: Reading) -> tuple[Home, list[dict[str, Any]], list[str], int]:
        # All that the page needs is read first, so that all of it speaks of the same stores.
        reading.prepare(" ".join(questions.load()[name].sql for name in HOME_READS))
        ask = Ask(reading.source, reading.settings)
        home = read_home(ask, None)
        return home, asked.parts(ask, home.asked), reading.notices, reading.copies

    try:
        asked = await find(datasette, request)
        live_now = asked.live
        shown, parts, notices, copies = await asked.read(read)
    except StateLedgerError as error:
        return await refuse(datasette, request, error, find)
    context = {
        "notices": [*notices, *_of_copies(copies)],
        "copies": asked.at.query("duplicate_sessions") if copies else "",
        **home_page.shown(shown, asked.at, asked.known),
        **asked.home(shown, parts),
        **asked.shown,
    }
    return await page.respond(
        datasette, request, "ledger_all.html", context, title=asked.at.title, section="home", every=asked.at,
        live=live_now,
    )  # fmt: skip


async def cost(request: Any, datasette: Datasette, find: Find) -> Response:
    said: list[str] = []

    try:
        asked = await find(datasette, request)
    except StateLedgerError as error:
        return await refuse(datasette, request, error, find)

    async def read(reader: Callable[[Ask], Any]) -> Any:
        def within(reading: Reading) -> Any:
            cost = reader(Ask(reading.source, reading.settings))
            said[:] = [*reading.notices, *_of_copies(reading.copies)]
            return cost

        return await asked.read(within)

    live_now = asked.live
    try:
        shown = await cost_page.answered(
            request, registry(datasette).settings, asked.at, read, asked.groups, frozenset(asked.taken)
        )
    except StateLedgerError as error:
        return await refuse(datasette, request, error, find)
    context = shown.context | {"notices": said, **asked.shown}
    context["hidden"] += asked.at.pairs
    return await page.respond(
        datasette, request, "ledger_cost.html", context, title="Cost", section="cost", status=shown.status,
        permalink=shown.permalink, every=asked.at, live=live_now,
    )  # fmt: skip


async def cache(request: Any, datasette: Datasette, find: Find) -> Response:
    def read(reading: Reading) -> tuple[list[dict[str, Any]], list[str]]:
        zone = reading.settings.zone_name
        shown = [answers.shown(reading.ask(name), asked.at, zone) for name in asked.cache]
        return shown, [*reading.notices, *_of_copies(reading.copies)]

    try:
        asked = await find(datasette, request)
        live_now = asked.live
        shown, notices = await asked.read(read)
    except StateLedgerError as error:
        return await refuse(datasette, request, error, find)
    context = {"answers": shown, "notices": notices, **asked.shown}
    return await page.respond(
        datasette, request, "ledger_answers.html", context, title="Cache", section="cache", every=asked.at,
        live=live_now,
    )  # fmt: skip


async def question_page(request: Any, datasette: Datasette, find: Find) -> Response:
    """A question as a page: its parameters in a form, its rows in a table."""
    try:
        name, asked, values = await _asked(request, datasette, find)
        live_now = asked.live
        shown, notices = await asked.read(
            lambda reading: (
                answers.shown(reading.ask(name, values), asked.at, reading.settings.zone_name),
                [*reading.notices, *_of_copies(reading.copies)],
            )
        )
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return await refuse(datasette, request, error, find)
    settings = registry(datasette).settings
    context = {
        "answers": [shown],
        "notices": notices,
        "action": asked.at.query(name),
        "kept": asked.at.pairs,
        "fields": [
            each for each in answers.fields(asked.known[name], values, settings) if each["name"] not in asked.taken
        ],
        **asked.shown,
    }
    return await page.respond(
        datasette, request, "ledger_answers.html", context, title=shown["title"], every=asked.at, live=live_now
    )


async def question_json(request: Any, datasette: Datasette, find: Find) -> Response:
    """Rows as objects, as of one store, and besides which stores they are of, which are not, and how many copies."""

    def read(reading: Reading) -> dict[str, Any]:
        result = reading.ask(name, values)
        return {
            **result.question.head(result.parameters, result.columns),
            **reading.about,
            "rows": result.records(),
            "truncated": result.truncated,
        }

    try:
        name, asked, values = await _asked(request, datasette, find)
        body = await asked.read(read)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return json_answer.refuse(str(error), status_of(error))
    return json_answer.respond(body)


async def question_csv(request: Any, datasette: Datasette, find: Find) -> Response:
    """Every row. Stores that are missing are named in the header `X-Left-Out`, since CSV has no place for it."""

    def read(reading: Reading) -> tuple[bytes, list[str], str]:
        reading.prepare(asked.known[name].sql)
        elsewhere = asked.elsewhere(reading, name, values)
        if elsewhere:
            return b"", [], elsewhere
        made = question_file.make(
            reading.source, name, values, "csv", settings=reading.settings, may_be_empty=True
        )
        with made.file:
            return b"".join(made.chunks()), list(reading.missing), ""

    try:
        name, asked, values = await _asked(request, datasette, find)
        text, missing, elsewhere = await asked.read(read)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return Response.text(f"{error}\n", status=status_of(error))
    if elsewhere:
        return Response.redirect(elsewhere)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    if missing:
        headers["X-Left-Out"] = ", ".join(missing)
    return Response(text, headers=headers, content_type="text/csv; charset=utf-8")


async def transcript(request: Any, datasette: Datasette, find: Find) -> Response:
    """The transcript, or what leads to it."""
    try:
        asked = await find(datasette, request)
        answer: Response = await asked.transcript(request)
    except StateLedgerError as error:
        return await refuse(datasette, request, error, find)
    return answer


async def changes(request: Any, datasette: Datasette, find: Find) -> Response:
    try:
        version = await find.version(datasette, request)
    except ParameterError as error:
        return json_answer.refuse(str(error), 400)
    return live.tell(request, version)


def status_of(error: Exception) -> int:
    """400 for what was asked wrongly, 503 for what could not be answered."""
    return 400 if isinstance(error, ParameterError) else 503


async def refuse(datasette: Datasette, request: Any, error: Exception, find: Find) -> Response:
    """An error as a page of ours."""
    at = find.links(datasette)
    return await page.respond(
        datasette, request, "ledger_answers.html", {"answers": [], "problems": [str(error)]}, title=at.title,
        every=at, status=status_of(error),
    )  # fmt: skip


async def _asked(request: Any, datasette: Datasette, find: Find) -> tuple[str, Place, dict[str, str]]:
    """The question that a request names, the place it is asked of, and the values of its parameters."""
    name = request.url_vars["query"]
    asked = await find(datasette, request, name)
    question = asked.known.get(name)
    if question is None:
        raise NotFound("There is no such question over several stores.")
    given = {p.name: request.args.get(p.name) or "" for p in question.parameters}
    return name, asked, {key: "" if key in asked.taken else value for key, value in given.items()}


def _of_copies(copies: int) -> Iterator[str]:
    if copies:
        yield f"{figures.plural(copies, 'copy', 'copies')} of sessions left out: each session is counted in one store."
