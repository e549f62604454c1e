"""Exports in the browser: the page on which to choose one, and the files, streamed and complete.

| address | is |
|---|---|
| `/<store>/-/export?session=…` | the page: what is in the scope, formats, the switch for secrets |
| `/<store>/-/export/<scope>.<format>?id=…` | the file of a session, conversation, work, source, search, or of all |
| `/<store>/-/export/question/<name>.<format>?…` | every row of a canned query |

A file is made in pieces, each by a short read on a reading thread: no transaction lasts while a client
is waited for. The number of rows is in the header before the first byte; a stream that cannot be whole
breaks the transfer, so that nobody takes it for one that is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import Response

from state_ledger import questions
from state_ledger.errors import ParameterError, StateLedgerError, StoreUnreadableError
from state_ledger.pages import figures
from state_ledger.plugins import compat
from state_ledger.plugins.store_database import StoreDamaged
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.plugins.visits import VISIT
from state_ledger.portability import question_file
from state_ledger.portability.export import Export, Options
from state_ledger.portability.file_names import file_name
from state_ledger.portability.formats import FORMATS, Format
from state_ledger.portability.formats.parquet_rows import ParquetMissing
from state_ledger.portability.question_file import QuestionFile
from state_ledger.portability.scope import KINDS, NothingToExport, Scope
from state_ledger.portability.searching import among
from state_ledger.portability.source import Source
from state_ledger.questions import OutOfTime

if TYPE_CHECKING:
    from datasette.app import Datasette

PIECE_BYTES = 1 << 18
"""A reading thread is asked for at least so much at a time."""

_log = logging.getLogger(__name__)


async def export_page(request: Any, datasette: Datasette) -> Response:
    """What is in a scope, in which formats it can be had, and whether secrets are replaced."""
    name = await page.open_store(datasette, request)
    scope = _scope_of_page(request)
    forced = registry(datasette).settings.redact
    redact = forced or request.args.get("redact", "") != "no"
    try:
        made = await _opened(datasette, name, scope, _options(datasette, request, redact))
    except NothingToExport as nothing:
        context = {"problem": str(nothing), "title": "Nothing to export"}
        return await page.respond(
            datasette, request, "ledger_export.html", context, title="Nothing to export", store=name, status=404
        )
    at = page.links(datasette, name)
    chosen = {"redact": "" if redact else "no"}
    here = {} if scope.kind == "all" else {scope.kind: scope.value}
    context = {
        "problem": "",
        "scope": str(scope),
        "counts": [
            (label, figures.count(number))
            for label, number in zip(("Sessions", "Messages", "Rows of calls"), made.counts.values(), strict=True)
        ],
        "taken_back": made.plan.taken_back,
        "forced": forced,
        "redact": redact,
        "switch": [
            page.Link("Replace secrets", at.export_page(here), redact),
            page.Link("Leave them in", at.export_page({**here, "redact": "no"}), not redact),
        ],
        "formats": [
            {"name": form.label, "what": form.what, "ending": form.name,
             "href": at.export(scope.kind, scope.value, form.name, chosen if form.shared else _plain_choice(redact))}
            for form in FORMATS.values()
            if made.plan.messages or not form.rows
        ],
        "safe": at.export(scope.kind, scope.value, "csv", {**_plain_choice(redact), "safe": "yes"}),
    }  # fmt: skip
    return await page.respond(
        datasette, request, "ledger_export.html", context, title=f"Export {scope}", store=name, section="export"
    )


def _plain_choice(redact: bool) -> dict[str, str]:
    return {"redact": "yes" if redact else ""}


async def scope_file(request: Any, datasette: Datasette) -> Any:
    """The file of a scope, streamed."""
    name = await page.open_store(datasette, request)
    form = FORMATS.get(request.url_vars["format"])
    if form is None:
        return _refusal(f"There is no format of this name; known are {', '.join(FORMATS)}.", 404)
    scope = Scope(request.url_vars["scope"], request.args.get("id") or "")
    redact = _redact(datasette, request, form.shared)
    try:
        made = await _opened(datasette, name, scope, _options(datasette, request, redact), whole=True)
        if form.rows and not made.plan.messages:
            raise NothingToExport(f"There is nothing to export: {scope} has no messages.")
        if form.name == "parquet":
            _need_parquet()
    except NothingToExport as nothing:
        return _refusal(str(nothing), 404)
    except StoreUnreadableError as error:
        return _refusal(str(error), 503)
    except StateLedgerError as error:
        return _refusal(str(error), 501 if isinstance(error, ParquetMissing) else 400)
    headers = {
        "X-State-Ledger-Rows": str(made.plan.messages),
        "X-State-Ledger-Sessions": str(len(made.plan.parts)),
        "X-State-Ledger-Complete": "yes",
    }
    filed = file_name(name, scope.kind, scope.value, ending=form.name)
    pieces = form.write(made)

    async def next_piece() -> bytes:
        return await datasette.get_database(name).execute_fn(lambda connection: _advance(made, pieces, connection))

    return FileStream(request, next_piece, form, filed, headers)


async def answer_file(request: Any, datasette: Datasette) -> Any:
    """Every row of a canned query."""
    database = tilde_decode(request.url_vars["database"])
    form, query = request.url_vars["format"], request.url_vars["query"]
    held = registry(datasette)
    if database not in held.stores or query not in questions.load():
        return _refusal("There is no such question.", 404)
    if form not in question_file.FORMS:
        return _refusal(f"A canned query is exported as one of {', '.join(question_file.FORMS)}.", 404)
    if not await compat.may_view_query(datasette, request.actor, database, query):
        return _refusal("You may not see the answer to this question.", 403)
    values = {p.name: request.args.get(p.name) or "" for p in questions.load()[query].parameters}
    redact = _redact(datasette, request, False)

    def read(connection: Any) -> QuestionFile:
        return question_file.make(
            connection, query, values, form, settings=held.settings, redact=redact,
            spreadsheet_safe=_safe(request), may_be_empty=True,
        )  # fmt: skip

    try:
        made = await datasette.get_database(database).execute_fn(read)
    except ParameterError as error:
        return _refusal(str(error), 400)
    except OutOfTime as error:
        return _refusal(str(error), 503)
    except ParquetMissing as error:
        return _refusal(str(error), 501)
    headers = {
        # Some readers of files over HTTP ask for the length first.
        "Content-Length": str(made.size),
        "X-State-Ledger-Rows": str(made.rows),
        "X-State-Ledger-Complete": "yes" if made.complete else "no",
    }
    chunks = made.chunks()

    async def next_piece() -> bytes:
        return await asyncio.to_thread(next, chunks, b"")

    return FileStream(
        request, next_piece, FORMATS[form], file_name(database, query, ending=form), headers, done=made.file.close
    )


class FileStream:
    """An answer that is sent in pieces, and cut off where something goes wrong.

    next_piece: gives b"" at the end. done: called when there is nothing more to send, whatever happened.
    """

    def __init__(
        self,
        request: Any,
        next_piece: Callable[[], Any],
        form: Format,
        filed: str,
        headers: dict[str, str],
        done: Callable[[], Any] = lambda: None,
    ) -> None:
        self.request = request
        self.next_piece = next_piece
        self.done = done
        self.status = 200
        self.headers = {
            "content-type": form.media_type,
            "content-disposition": f'attachment; filename="{filed}"',
            **headers,
        }

    async def asgi_send(self, send: Any) -> None:
        """Sends the file. A client that is gone ends it; an error leaves the transfer without its end."""
        encoded = [(key.lower().encode("ascii"), value.encode("ascii")) for key, value in self.headers.items()]
        visit = VISIT.get()
        begun = False
        try:
            first = b"" if self.request.method == "HEAD" else await self.next_piece()
            begun = True
            await send({"type": "http.response.start", "status": self.status, "headers": encoded})
            piece = first
            while piece and not (visit and visit.left):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = await self.next_piece()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except Exception as error:
            if visit and visit.left:
                return  # what was read for it was interrupted
            if not begun and isinstance(error, (StoreDamaged, StateLedgerError)):
                await _refusal(str(error), 503).asgi_send(send)
                return
            # Datasette would answer with a page, in the middle of the file. Without an end the server
            # closes the connection, and the client knows that something is missing.
            _log.exception("The export %s broke off.", self.headers["content-disposition"])
        finally:
            self.done()


def _advance(made: Export, pieces: Iterator[bytes], connection: Any) -> bytes:
    """The next pieces of a file, read on this connection."""
    made.source.connection = connection
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            break
    return b"".join(gathered)


async def _opened(
    datasette: Datasette, name: str, scope: Scope, options: Options, *, whole: bool = False
) -> Export:
    """whole: whether damage that hides rows is looked for. Raises StoreUnreadableError then, and NothingToExport."""
    state = registry(datasette).stores[name]

    def look(connection: Any) -> Export:
        found = among(connection, scope, with_taken_back=options.taken_back)
        made = Export.open(Source(connection, state.shape), scope, options, store=name, among=found)
        if whole:
            made.must_be_all(quickly=True)
        return made

    return await datasette.get_database(name).execute_fn(look)


def _scope_of_page(request: Any) -> Scope:
    for kind in KINDS:
        value = request.args.get(kind)
        if value:
            return Scope(kind, value)
    return Scope("all")


def _options(datasette: Datasette, request: Any, redact: bool) -> Options:
    return Options(
        redact=redact,
        emails=request.args.get("emails") == "yes",
        home_paths=request.args.get("homes") == "yes",
        taken_back=request.args.get("taken_back") == "yes",
        spreadsheet_safe=_safe(request),
        zone=registry(datasette).settings.zone_name,
    )


def _safe(request: Any) -> bool:
    return bool(request.args.get("safe") == "yes")


def _redact(datasette: Datasette, request: Any, otherwise: bool) -> bool:
    """Whether secrets are replaced: as the address says, else as the format has it; always, where it is set."""
    said = request.args.get("redact", "")
    return registry(datasette).settings.redact or (otherwise if said not in ("yes", "no") else said == "yes")


def _need_parquet() -> None:
    from state_ledger.portability.formats import parquet_rows

    parquet_rows.load()


def _refusal(sentence: str, status: int) -> Response:
    return Response.text(f"{sentence}\n", status=status)
