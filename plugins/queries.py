"""The canned queries of every store: registered, their parameters checked, answered alike on both lines."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from datasette import hookimpl
from datasette.utils import tilde_decode
from datasette.utils.asgi import Response

from state_ledger.errors import ParameterError
from state_ledger.plugins import address, compat, json_answer
from state_ledger.plugins.stores import registry
from state_ledger.settings import PLUGIN

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger import questions
    from state_ledger.questions import Question
    from state_ledger.settings import Settings

JSON_SHAPE = "objects"
"""The shape that we answer ourselves: the same text on both lines, with units and parameters."""


@hookimpl
def canned_queries(datasette: Datasette, database: str) -> dict[str, dict[str, Any]]:
    """Datasette 0.65 asks on every page and for every permission, so the answer is made once."""
    held = registry(datasette)
    if database not in held.stores:
        return {}
    made: dict[str, dict[str, Any]] | None = held.queries.get(database)
    if made is None:
        from state_ledger import questions

        home = str(datasette.urls.database(database))
        made = held.queries[database] = {
            name: {
                "sql": question.compiled(held.settings),
                "title": question.title,
                "description": question.description,
                "description_html": describe(question, held.settings, home),
                "params": [parameter.name for parameter in question.parameters],
                "hide_sql": True,
            }
            for name, question in questions.load().items()
        }
    return {name: dict(query) for name, query in made.items()}


@hookimpl(trylast=True)
def startup(datasette: Datasette) -> None:
    """Gives the questions their time."""
    held = registry(datasette)
    if held.stores and compat.set_default(datasette, "sql_time_limit_ms", held.settings.query_time_limit_ms):
        datasette.sql_time_limit_ms = held.settings.query_time_limit_ms


async def register(datasette: Datasette) -> None:
    """Registers the questions on Datasette 1.0, which has no hook for it but a table of its own.

    Reading and writing them takes as long as a tenth of a start, so it is done when somebody asks for
    more than the index, once; who comes meanwhile waits for it.
    """
    held = registry(datasette)
    if held.registering is None:
        held.registering = asyncio.ensure_future(_register(datasette))
    try:
        await asyncio.shield(held.registering)
    except Exception:
        held.registering = None  # the next request tries again
        raise


async def _register(datasette: Datasette) -> None:
    from state_ledger import questions

    await datasette.invoke_startup()
    held = registry(datasette)
    for database in held.stores:
        home = str(datasette.urls.database(database))
        for question in questions.load().values():
            await datasette.add_query(
                database,
                question.name,
                question.compiled(held.settings),
                title=question.title,
                description=question.description,
                description_html=describe(question, held.settings, home),
                hide_sql=True,
                parameters=[parameter.name for parameter in question.parameters],
                is_trusted=True,
                source=questions.SOURCE,
            )


def describe(question: Question, settings: Settings, home: str) -> str:
    """HTML above a canned query's form: what it answers, its parameters and defaults, its units."""
    cells = "".join(
        f"<tr><th scope='row'><code>{html.escape(p.name)}</code></th><td>{html.escape(p.label)}</td>"
        f"<td>{html.escape(', '.join(p.choices))}</td><td>{html.escape(p.default) or 'none'}</td></tr>"
        for p in question.for_settings(settings)
    )
    parameters = (
        "<details><summary>Parameters and defaults</summary><div class='table-wrapper' role='region' tabindex='0' "
        "aria-label='Parameters and defaults'><table><thead><tr><th scope='col'>Name</th>"
        "<th scope='col'>Meaning</th><th scope='col'>Choices</th><th scope='col'>Default</th></tr></thead>"
        f"<tbody>{cells}</tbody></table></div></details>"
        if cells
        else ""
    )
    columns = "".join(
        f"<dt><code>{html.escape(name)}</code>{f' ({html.escape(m.unit)})' if m.unit else ''}</dt>"
        f"<dd>{html.escape(m.description)}</dd>"
        for name, m in question.columns.items()
    )
    return (
        f"<p>{html.escape(question.description)} <a href='{html.escape(home)}'>To the books of this store</a></p>"
        f"{parameters}<details><summary>Columns and units</summary><dl>{columns}</dl></details>"
    )


@hookimpl
def register_routes() -> list[tuple[str, Callable[..., Any]]]:
    """The JSON of a question; reached by the address of the canned query, see `asgi_wrapper`."""
    return [(r"/(?P<database>[^/]+)/-/ask/(?P<query>[a-z_]+)\.json$", answer)]


async def answer(datasette: Datasette, request: Any) -> Response:
    """Rows as objects, the same on both lines; `truncated` says whether more rows follow."""
    from state_ledger import questions

    database = tilde_decode(request.url_vars["database"])
    question = questions.load().get(request.url_vars["query"])
    held = registry(datasette)
    if database not in held.stores or question is None:
        return json_answer.refuse("There is no such question.", 404)
    if not await compat.may_view_query(datasette, request.actor, database, question.name):
        return json_answer.refuse("You may not see the answer to this question.", 403)
    values = {p.name: request.args.get(p.name) or "" for p in question.parameters}
    try:
        result = await ask(datasette, database, question, values)
    except ParameterError as error:
        return json_answer.refuse(str(error), 400)
    except questions.OutOfTime as error:
        return json_answer.refuse(str(error), 503)
    body = {
        **question.head(result.parameters, result.columns),
        "rows": result.records(),
        "truncated": result.truncated,
    }
    return json_answer.respond(body)


async def ask(datasette: Datasette, database: str, question: Question, values: dict[str, str]) -> questions.Result:
    """The answer to a question, on a thread of Datasette's. Raises ParameterError and OutOfTime.

    Whether the actor may see it is for the caller to ask.
    """
    from state_ledger import questions

    settings = registry(datasette).settings

    def read(connection: Any) -> questions.Result:
        return questions.ask_in_time(connection, question.name, values, settings=settings)

    result: questions.Result = await datasette.get_database(database).execute_fn(read)
    return result


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[address.App], address.App]:
    """Checks the parameters of a canned query before Datasette runs it, and answers its JSON objects."""

    def wrap(app: address.App) -> address.App:
        async def checked(scope: address.Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and compat.IS_1 and not _asks_no_question(datasette, scope):
                await register(datasette)
            found = question_in(datasette, scope) if scope["type"] == "http" else None
            if found is None:
                await app(scope, receive, send)
                return
            database, question, extension = found
            # Of a value that is given twice Datasette takes the first.
            query = scope.get("query_string", b"").decode("latin-1")
            given = dict(reversed(parse_qsl(query, keep_blank_values=True)))
            try:
                question.check(given, registry(datasette).settings)
            except ParameterError as error:
                await (await _refuse(datasette, scope, str(error), extension)).asgi_send(send)
                return
            if extension == ".csv":
                # Datasette's own CSV of a query ends at 1,000 rows and does not say so (case 19).
                base, _local = address.split_base(datasette, address.path_of(scope))
                scope = address.at(scope, f"{base}/{database}/-/export/question/{question.name}.csv")
            elif extension == ".json" and given.get("_shape", "") == JSON_SHAPE:
                base, _local = address.split_base(datasette, address.path_of(scope))
                scope = address.at(scope, f"{base}/{database}/-/ask/{question.name}.json")
            elif question.reads_prices:
                # Here Datasette runs the SQL itself; all others ask by name, which loads them.
                from state_ledger import prices

                await asyncio.to_thread(prices.load)
            await app(scope, receive, send)

        return checked

    return wrap


def _asks_no_question(datasette: Datasette, scope: address.Scope) -> bool:
    """Whether a request is for the index or for what stands on it, which name no question."""
    _base, local = address.split_base(datasette, address.path_of(scope))
    return local == "/" or local.startswith(f"/-/{PLUGIN}/")


def question_in(datasette: Datasette, scope: address.Scope) -> tuple[str, Question, str] | None:
    """The store (as spelled in the address), question and extension that a request addresses."""
    _base, local = address.split_base(datasette, address.path_of(scope))
    pieces = local.removeprefix("/").split("/")
    if len(pieces) != 2 or tilde_decode(pieces[0]) not in registry(datasette).stores:
        return None
    from state_ledger import questions

    name, dot, extension = pieces[1].partition(".")
    question = questions.load().get(name)
    return (pieces[0], question, dot + extension) if question is not None else None


async def _refuse(datasette: Datasette, scope: Any, sentence: str, extension: str) -> Response:
    if extension == ".json":
        return json_answer.refuse(sentence, 400)
    if extension:
        return Response.text(sentence, status=400)
    context = {"ok": False, "error": sentence, "status": 400, "title": "This cannot be answered"}
    page = await datasette.render_template(["400.html", "error.html"], context)
    return Response.html(page, status=400)
