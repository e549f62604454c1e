"""`/<store>/-/reconcile`: a provider's bill, pasted, beside the books. Nothing of it is kept."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger.bills import Bill, BillError, Comparison, compare, read_text
from state_ledger.bills.comparison import TooMuch
from state_ledger.errors import ParameterError
from state_ledger.pages import controls, provenance, reconcile
from state_ledger.pages.asking import OutOfTime, Unanswered
from state_ledger.pages.links import Links
from state_ledger.pages.period import spelled
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.questions import ask_in_time
from state_ledger.questions.parameters import COMMON, validate, with_settings

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.questions import Result
    from state_ledger.settings import Settings

MOST_BYTES = 1_500_000
"""Of a posted form, in which a bill takes up to three times its own size."""

FIELDS = ("bill", "provider", "tz", "day_rule")


async def reconcile_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    settings = registry(datasette).settings
    at = page.links(datasette, name)
    values, status, problems = dict.fromkeys(FIELDS, ""), 200, []
    answer: dict[str, Any] = {}
    bad: set[str] = set()
    if request.method == "POST":
        try:
            values |= await _posted(request)
            for field in ("tz", "day_rule"):
                validate(with_settings(COMMON[field], settings), values[field])
            zone = values["tz"] or settings.zone_name
            bill = read_text(io.StringIO(values["bill"], newline=""), zone)
            answer = await _compared(datasette, name, bill, values, zone, at)
        except ParameterError as error:
            status, problems, bad = 400, [str(error)], {error.name}
        except (BillError, TooMuch) as error:
            status, problems = 400, [str(error)]
        except _TooLong as error:
            status, problems = 413, [str(error)]
        except (OutOfTime, Unanswered) as error:
            status, problems = 503, [str(error)]
    context = {
        **answer,
        "problems": problems,
        "values": values,
        "action": at.reconcile,
        "cost": at.cost(),
        "fields": _fields(values, bad, settings),
    }
    return await page.respond(
        datasette, request, "ledger_reconcile.html", context,
        title="Compare with a bill", store=name, section="cost", status=status,
    )  # fmt: skip


class _TooLong(Exception):
    def __init__(self) -> None:
        super().__init__(
            f"The bill is too long to be pasted: at most {MOST_BYTES:,} bytes are taken. Use the command"
            " state-ledger reconcile, which reads files of any size."
        )


async def _posted(request: Any) -> dict[str, str]:
    """The fields of the form. Raises _TooLong, and BillError for what is no such form."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 9 or int(declared) > MOST_BYTES):
        raise _TooLong
    body = await request.post_body()
    if len(body) > MOST_BYTES:
        raise _TooLong
    try:
        given = dict(parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise BillError("The form", None, "it has more fields than this page") from error
    return {name: given.get(name, "") if name == "bill" else given.get(name, "").strip() for name in FIELDS}


async def _compared(
    datasette: Datasette, name: str, bill: Bill, values: Mapping[str, str], zone: str, at: Links
) -> dict[str, Any]:
    settings = registry(datasette).settings

    def read(connection: Any) -> tuple[Comparison, reconcile.Explained]:
        def ask(question: str, parameters: Mapping[str, str]) -> Result:
            return ask_in_time(connection, question, parameters, settings=settings)

        found = compare(bill, ask, tz=zone, day_rule=values["day_rule"], provider=values["provider"],
                        limit=settings.max_limit)  # fmt: skip
        largest = found.largest[: reconcile.EXPLAINED]
        return found, [(row, found.explained_by(row, ask, 3)) for row in largest]

    found, explained = await datasette.get_database(name).execute_fn(read)
    asked = {key: value for key, value in found.asked.items() if key != "limit"}
    return {
        "answered": True,
        "dates": f"{spelled(bill.first_day, bill.last_day)}, days in {zone}",
        "figures": reconcile.said(found),
        "models": Markup(reconcile.by_model(found)),
        "differences": Markup(reconcile.differences(found, explained, at)) if found.largest else "",
        "provenance": Markup(
            provenance.line(provenance.basis(zone, found.asked["day_rule"]), at, "reconcile", asked)
        ),
    }


def _fields(values: Mapping[str, str], bad: set[str], settings: Settings) -> list[dict[str, Any]]:
    zone = controls.field("tz", "Time zone of the bill", values["tz"], bad) | {"placeholder": settings.zone_name}
    return [
        controls.field("provider", "Only what this provider billed", values["provider"], bad),
        zone,
        controls.day_rule(values, bad),
    ]
