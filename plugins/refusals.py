"""What a visitor reads where something raised: a sentence and the status that fits, never a traceback.

Datasette's own pages raise whatever Python raises at a parameter that they cannot read (`?_ttl=x`, `?_sort=x`), and
call that their own fault, 500. It is the address that cannot be meant: 400, with what was wrong.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import datasette as datasette_package
from datasette import Response, hookimpl
from datasette.database import QueryInterrupted
from datasette.utils.asgi import Base400
from datasette.views.base import DatasetteError

from state_ledger.errors import ParameterError, StateLedgerError, StoreUnreadableError
from state_ledger.plugins.limits import TooMuch
from state_ledger.plugins.store_database import StoreDamaged, StoreIsOnlyRead, StoreRefused
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette

DATASETTE = f"{Path(datasette_package.__file__).parent}{os.sep}"
STANDARD = f"{Path(logging.__file__).parents[1]}{os.sep}"
"""Where the code of Datasette, and that of Python's own library, lies."""

MISREAD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""What reading a parameter raises where it is not what was expected."""

MOST_SAID = 300
"""Characters of a visitor's own words that are said back."""

_log = logging.getLogger(__name__)


class Refused(NamedTuple):
    """An answer instead of an exception."""

    status: int
    title: str
    sentence: str


@hookimpl(hookwrapper=True)
def handle_exception(datasette: Datasette, request: Any, exception: Exception) -> Iterator[None]:
    """In the place of Datasette's own handler, which would print the exception whoever answers."""
    outcome: Any = yield
    refused = refusal_of(exception, own_limit=bool(request.args.get("_timelimit")))
    if refused is not None:
        outcome.force_result([_page(datasette, request, refused)])


def refusal_of(exception: Exception, *, own_limit: bool = False) -> Refused | None:
    """What is said of an exception; None for one that Datasette words itself, and for a fault of the program.

    own_limit: whether the visitor said how long the query may take.
    """
    if isinstance(exception, StoreRefused):
        return Refused(503, "This store cannot be read", exception.message)
    if isinstance(exception, (StoreDamaged, StoreUnreadableError)):
        return Refused(503, "This store is damaged", str(exception))
    if isinstance(exception, TooMuch):
        return Refused(503, "Too much", str(exception))
    if isinstance(exception, StoreIsOnlyRead):
        return Refused(403, "This store is only read", str(exception))
    if isinstance(exception, QueryInterrupted):
        return Refused(
            400 if own_limit else 503,
            "Out of time",
            "The query did not answer in its time. Ask for less, for instance for fewer rows or a filter on a "
            "column that has an index, or raise the setting query_time_limit_ms.",
        )
    if isinstance(exception, StateLedgerError):
        return Refused(400 if isinstance(exception, ParameterError) else 503, "This cannot be answered", str(exception))
    if isinstance(exception, Base400) or (isinstance(exception, DatasetteError) and exception.status < 500):
        return None
    if not isinstance(exception, (DatasetteError, *MISREAD)) and not _is_no_sql(exception):
        return None
    if not _raised_by_datasette(exception.__traceback__):
        return None
    _log.info("An address could not be read by Datasette.", exc_info=exception)
    said = exception.message if isinstance(exception, DatasetteError) else str(exception) or type(exception).__name__
    return Refused(
        400,
        "This address cannot be read",
        f"Datasette cannot read this address: {str(said)[:MOST_SAID]}. Look at what follows the question mark.",
    )


def _is_no_sql(exception: Exception) -> bool:
    # From Python 3.11 on; before, it is a ValueError.
    return isinstance(exception, sqlite3.ProgrammingError) and "null character" in str(exception)


def _raised_by_datasette(traceback: TracebackType | None) -> bool:
    """Whether Datasette's own code failed, or called Python's library in vain; not that of a plugin, and not ours."""
    last = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(STANDARD) or "site-packages" in file:
            last = file
        traceback = traceback.tb_next
    return last.startswith(DATASETTE)


def _page(datasette: Datasette, request: Any, refused: Refused) -> Callable[[], Awaitable[Response]]:
    message = {"ok": False, "error": refused.sentence, "status": refused.status, "title": refused.title}

    async def page() -> Response:
        if request.path.endswith(".json"):
            return Response.json(message, status=refused.status)
        if request.path.endswith(".csv"):
            return Response.text(f"{refused.sentence}\n", status=refused.status)
        templates = [f"{refused.status}.html", "error.html"]
        body = await datasette.render_template(templates, message, request=request)
        return Response.html(body, status=refused.status)

    return page
