"""`/<store>/-/session/<id>`, `/-/conversation/<id>`, `/-/work/<id>`: reading what was said."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from datasette.utils import tilde_decode
from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger import markdown
from state_ledger.errors import ParameterError
from state_ledger.pages import figures, provenance, transcript_head, transcript_tree
from state_ledger.pages.asking import OutOfTime, Unanswered
from state_ledger.pages.links import Links
from state_ledger.pages.transcript import MOST, SIZE, Transcript, Wanted, read_transcript
from state_ledger.pages.transcript_messages import MessagesHtml
from state_ledger.plugins import assets
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page, why
from state_ledger.questions.parameters import COMMON, validate, with_settings
from state_ledger.transcript import UnknownSession
from state_ledger.transcript.messages import LAST_KEY

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.settings import Settings

MARKDOWN_S = 2.5
"""Seconds of processor time for Markdown on one page; after that, messages are shown as they are."""

BASIS = f"Basis: {provenance.MONEY}; all usage of these sessions, so no day rule applies."


async def transcript_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    settings = registry(datasette).settings
    at = page.links(datasette, name)
    kind, asked = request.url_vars["kind"], request.url_vars["session"]
    wanted, problems = understood(kind, tilde_decode(asked), request.args, settings)
    try:
        transcript = await page.read(datasette, name, lambda ask: read_transcript(ask, wanted))
    except UnknownSession as error:
        # Other programs write ids in paths with percent signs: the address is the same, written our way.
        plain = unquote(asked)
        if plain != tilde_decode(asked) and "%" in asked:
            return Response.redirect(at.transcript(kind, plain))
        return await _notice(datasette, request, name, str(error), 404)
    except (OutOfTime, Unanswered) as error:
        return await _notice(datasette, request, name, str(error), 503)
    context = await asyncio.to_thread(_context, transcript, at, settings)
    context["why"] = None
    if request.args.get("why") == "1":
        context["why"] = await why.explained(datasette, name, transcript.scope.kind, transcript.scope.id)
    context |= {"problems": [str(problem) for problem in problems],
                "stylesheet": datasette.urls.path(assets.static_path("transcript.css"))}  # fmt: skip
    return await page.respond(
        datasette, request, "ledger_transcript.html", context, title=context["title"], store=name,
        section="transcript", status=400 if problems else 200,
        permalink=transcript_head.permalink(transcript, at),
    )  # fmt: skip


def understood(kind: str, session_id: str, given: Any, settings: Settings) -> tuple[Wanted, list[ParameterError]]:
    """What an address asks for, and every parameter that cannot be meant, left out."""
    problems: list[ParameterError] = []

    def number(name: str, most: int) -> int | None:
        text = (given.get(name) or "").strip()
        if text and not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= most):
            problems.append(ParameterError(name, text, f"write a whole number from 1 to {most}"))
            return None
        return int(text) if text else None

    zone = (given.get("tz") or "").strip()
    try:
        zone = validate(with_settings(COMMON["tz"], settings), zone)
    except ParameterError as error:
        problems.append(error)
        zone = ""
    wanted = Wanted(
        kind, session_id, zone or settings.zone_name,
        after=number("after", LAST_KEY), before=number("before", LAST_KEY), last=given.get("page") == "last",
        message=number("message", LAST_KEY), compared=number("sent", LAST_KEY),
        taken_back=given.get("inactive") == "1", verbatim=given.get("verbatim") == "1",
        size=number("size", MOST) or SIZE,
    )  # fmt: skip
    return wanted, problems


def _context(transcript: Transcript, at: Links, settings: Settings) -> dict[str, Any]:
    """Everything for the template. Runs in a thread: Markdown of strangers must not stop other visitors."""
    wanted, scope = transcript.wanted, transcript.scope
    render = markdown.Page(max_brackets=settings.markdown_max_brackets, budget_s=MARKDOWN_S)

    def address(message: int, *, compared: bool = False) -> str:
        return transcript_head.message_address(transcript, at, message, compared=compared)

    messages = MessagesHtml(transcript, at, render, address).html()
    sums = transcript.sums
    current = set(scope.chain_ids)
    usage = transcript_head.usage_table(transcript)
    asked = {"session": scope.id}
    return {
        "title": scope.title,
        "kind": wanted.kind,
        "facts": transcript_head.facts(transcript),
        "scopes": transcript_head.scopes(scope, wanted, at),
        "sums": sums,
        "exact": figures.exact_money(sums.cost_usd),
        "figures": [
            *page.sum_figures(sums),
            ("Fresh tokens", figures.short(sums.fresh_tokens), sums.fresh_tokens is None),
            ("Processed tokens", figures.short(sums.processed_tokens), sums.processed_tokens is None),
        ],
        "usage": Markup(usage),
        "why_link": transcript_head.why_link(transcript, at),
        "provenance": Markup(provenance.line(BASIS, at, "lineage_work", asked)),
        "sent": transcript_head.sent_line(transcript, at),
        "messages": Markup(messages),
        "count": len(transcript.page.messages),
        "stored": sum(node.facts["messages"] or 0 for node in scope.chain),
        "pager": transcript_head.pager(transcript, at),
        "notes": _notes(transcript, at, render.unrendered),
        "inactive": transcript_head.Choice(
            "Hide what was taken back" if wanted.taken_back else "Show what was taken back",
            transcript_head.address(wanted, scope, at, inactive=None if wanted.taken_back else 1),
        ),
        "tree": Markup(transcript_tree.tree(scope.family, current, lambda node: at.session(node.session_id))),
        "tree_size": len(scope.family.nodes),
        "family_cut": at.query("lineage_work", asked) if scope.family.cut else "",
        "exports": transcript_head.take_along(scope, at),
        "zone": wanted.zone,
    }


def _notes(transcript: Transcript, at: Links, unrendered: int) -> list[dict[str, str]]:
    """What is not as it was asked for, each a sentence and where to go."""
    wanted, scope = transcript.wanted, transcript.scope
    notes = []
    if transcript.missing is not None:
        notes.append({"text": f"This store has no message {transcript.missing}. The first messages are shown.",
                      "href": "", "label": ""})  # fmt: skip
    if transcript.elsewhere is not None:
        session, message = transcript.elsewhere
        notes.append({"text": f"Message {message} is not in this {wanted.kind}.",
                      "href": at.message(session, message), "label": "Read it where it is"})  # fmt: skip
    if transcript.hidden is not None:
        href = transcript_head.address(wanted, scope, at, message=transcript.hidden, inactive=1)
        notes.append({"text": f"Message {transcript.hidden} was taken back and is not shown.",
                      "href": f"{href}#m{transcript.hidden}", "label": "Show it"})  # fmt: skip
    if transcript.delegates_cut:
        notes.append({"text": "Some delegates on this page are links only: it has no room for more messages.",
                      "href": "", "label": ""})  # fmt: skip
    if unrendered:
        said = figures.plural(unrendered, "text")
        notes.append({"text": f"{said} on this page could not be laid out in time and stand as they were written.",
                      "href": transcript_head.permalink(transcript, at), "label": "Try again"})  # fmt: skip
    return notes


async def _notice(datasette: Datasette, request: Any, name: str, problem: str, status: int) -> Response:
    at = page.links(datasette, name)
    links = [page.Link("Recent sessions", at.query("recent_sessions")), page.Link("Home of this store", at.home)]
    return await page.respond(
        datasette, request, "ledger_notice.html", {"problem": problem, "links": links},
        title="Nothing to read here", store=name, section="transcript", status=status,
    )  # fmt: skip
