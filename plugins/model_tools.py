"""The canned queries as tools for a language model, over the address that datasette-mcp serves.

datasette-mcp names canned queries without their defaults and runs them with any value. What is added to its
server here lists each with its typed parameters, checks what is given, and bounds the answer. Where
datasette-mcp is not installed, nothing calls this.
"""

# No postponed annotations: the tools' parameters are read from them, and their types stand inside a function.

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from datasette import hookimpl

from state_ledger.errors import StateLedgerError
from state_ledger.plugins import address, compat, heavy_work, json_answer, queries, security
from state_ledger.plugins.stores import registry
from state_ledger.settings import parse_host

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.questions import Question

PATH = "/-/mcp"
"""Where datasette-mcp serves."""


@hookimpl
def register_mcp_tools(datasette: "Datasette", mcp: Any) -> None:
    """Adds `list_questions` and `ask_question` to the server that datasette-mcp makes."""
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    harmless = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

    @mcp.tool(annotations=harmless)
    async def list_questions(ctx: Context, store: str = "", group: str = "") -> dict[str, Any]:
        """List the questions about Hermes Agent stores that ask_question answers: start here.

        Each has a title, a description, and its parameters with type, default and meaning. Only stores and
        questions that you may see are listed. Narrow the list by store or by group.
        """
        return {"stores": await listed(datasette, _actor(ctx), store, group)}

    @mcp.tool(annotations=harmless)
    async def ask_question(
        store: str, question: str, ctx: Context, parameters: dict[str, str | int | float | None] | None = None
    ) -> dict[str, Any]:
        """Answer one question of list_questions for one store: columns with their units, and rows.

        A parameter left out has its default. "truncated" says that there is more: raise `limit` where the question
        has it, or ask for a shorter period. Amounts are US dollars; an unknown price is null or counted, never 0.
        """
        try:
            return await answered(datasette, _actor(ctx), store, question, parameters or {})
        except StateLedgerError as error:
            raise ToolError(str(error)) from None


async def listed(
    datasette: "Datasette", actor: dict[str, Any] | None, store: str = "", group: str = ""
) -> list[dict[str, Any]]:
    """The questions that an actor may ask, store by store. A store without any is not named."""
    from state_ledger import questions

    held = registry(datasette)
    found = []
    for name, state in held.stores.items():
        if store in ("", name):
            asked = [
                _described(question, held.settings)
                for question in questions.load().values()
                if group in ("", question.group)
                and await compat.may_view_query(datasette, actor, name, question.name)
            ]
            if asked:
                found.append({"store": name, "profile": state.store.profile, "questions": asked})
    return found


async def answered(
    datasette: "Datasette", actor: dict[str, Any] | None, store: str, name: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    """The answer of a question, as in its JSON on the pages and within the bounds of `answers`.

    Raises UnknownQuestion for what is not there and, in the same words, for what the actor may not see;
    ParameterError, OutOfTime, TooBusyError.
    """
    from state_ledger import questions
    from state_ledger.questions import answers

    question = questions.load().get(name)
    if (
        question is None
        or store not in registry(datasette).stores
        or not await compat.may_view_query(datasette, actor, store, name)
    ):
        raise questions.UnknownQuestion(
            f"There is no question {name!r} of a store {store!r}; list_questions names what there is."
        )
    known = {parameter.name for parameter in question.parameters}
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise questions.UnknownQuestion(
            f"{name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known)) or 'none'}."
        )
    values = {key: _as_given(value) for key, value in parameters.items()}
    async with heavy_work.turn_of_a_call(datasette):
        found = await queries.ask(datasette, store, question, values)
    finite: dict[str, Any] = json_answer.finite(answers.bounded(found))
    return finite


def _as_given(value: str | int | float | None) -> str:
    """A value of JSON as an address would hold it; some clients write every number with a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _described(question: "Question", settings: Any) -> dict[str, Any]:
    return {
        "name": question.name,
        "group": question.group,
        "title": question.title,
        "description": question.description,
        "parameters": [
            {
                "name": each.name,
                "type": each.kind,
                "default": each.default,
                "meaning": each.label,
                **({"choices": list(each.choices)} if each.choices else {}),
            }
            for each in question.for_settings(settings)
        ],
    }


def _actor(ctx: Any) -> dict[str, Any] | None:
    """Who asks: what Datasette found out of the request that carries the call."""
    scope = getattr(ctx.request_context.request, "scope", None) or {}
    actor: dict[str, Any] | None = scope.get("actor")
    return actor


@hookimpl
def asgi_wrapper(datasette: "Datasette") -> Callable[[address.App], address.App]:
    """Refuses calls from pages of other origins: datasette-mcp takes its address out of the check for forms."""

    def wrap(app: address.App) -> address.App:
        async def checked(scope: address.Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and _foreign(datasette, scope):
                sentence = "This address is for programs, and for pages of this server: not for another origin."
                await json_answer.refuse(sentence, 403).asgi_send(send)
                return
            await app(scope, receive, send)

        return checked

    return wrap


def _foreign(datasette: "Datasette", scope: address.Scope) -> bool:
    """Whether a request to the tools comes from a page that is neither of this server nor of a host it knows."""
    _base, local = address.split_base(datasette, address.path_of(scope))
    if local != PATH:
        return False
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"origin"]
    for origin in origins:
        parts = urlsplit(origin)
        host = parse_host(parts.netloc) if parts.scheme in ("http", "https") else None
        if host is None or not security.host_allowed(host, registry(datasette).settings.allowed_hosts, parts.scheme):
            return True
    return False
