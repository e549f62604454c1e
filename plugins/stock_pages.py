"""What Datasette's own pages of a store get from us: the ways to ours, and a question's rows in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from markupsafe import Markup

from state_ledger.pages.links import Links
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette


@hookimpl
def extra_template_vars(datasette: Datasette, template: str, database: str | None, request: Any) -> dict[str, Any]:
    """`ledger_home` and `ledger_search` for the page of a store, `ledger_notebook` for that of a canned query."""
    if template not in ("database.html", "query.html") or database not in registry(datasette).stores:
        return {}
    at = Links(str(datasette.urls.database(database)))
    if template == "database.html":
        return {"ledger_home": at.home, "ledger_search": at.search()}
    return {} if request is None else _notebook(datasette, request, at)


def _notebook(datasette: Datasette, request: Any, at: Links) -> dict[str, Any]:
    """The exact address of the rows, and the lines that read them."""
    from state_ledger.pages import notebook
    from state_ledger.plugins.queries import question_in

    found = question_in(datasette, request.scope)
    if found is None:
        return {}
    question = found[1]
    given = {p.name: request.args.get(p.name) or "" for p in question.parameters}

    def absolute(form: str) -> str:
        return str(datasette.absolute_url(request, at.whole_answer(question.name, form, given)))

    lines = notebook.snippets(question, absolute("csv"), absolute("parquet"))
    addresses = {form: absolute(form) for form in ("csv", "ndjson", "json")}
    return {"ledger_notebook": Markup(notebook.block(lines, addresses))}
