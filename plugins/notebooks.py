"""The page of a canned query in a notebook: the exact address of its rows, and the lines that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from markupsafe import Markup

from state_ledger.pages import notebook
from state_ledger.plugins import page
from state_ledger.plugins.queries import question_in
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette


@hookimpl
def extra_template_vars(datasette: Datasette, template: str, database: str | None, request: Any) -> dict[str, Any]:
    """`ledger_notebook` for the page of a canned query."""
    if template != "query.html" or request is None or database not in registry(datasette).stores:
        return {}
    found = question_in(datasette, request.scope)
    if found is None:
        return {}
    question = found[1]
    given = {p.name: request.args.get(p.name) or "" for p in question.parameters}
    at = page.links(datasette, database)

    def absolute(form: str) -> str:
        return str(datasette.absolute_url(request, at.whole_answer(question.name, form, given)))

    lines = notebook.snippets(question, absolute("csv"), absolute("parquet"))
    addresses = {form: absolute(form) for form in ("csv", "ndjson", "json")}
    return {"ledger_notebook": Markup(notebook.block(lines, addresses))}
