"""`state-ledger query`: any canned query, as a table, CSV or JSON."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.cli import given, output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.questions import Question, Result


@click.command()
@click.argument("name", required=False)
@click.argument("path", required=False, type=StorePath(reads=True))
@given.param_option
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--list", "only_list", is_flag=True, help="List the canned queries; with NAME, describe that one.")
@output.told()
def query(
    name: str | None, path: Path | None, params: tuple[str, ...], form: str, as_json: bool, only_list: bool
) -> None:
    """Asks the canned query NAME of the store at PATH, by default of yours.

    It is the answer of the pages: the same rows, columns and limits. Whether there are more rows is said on
    standard error, and in JSON as "truncated"; `state-ledger export --question` writes all of them.

    \b
    Examples:
      state-ledger query --list
      state-ledger query --list cost_per_day
      state-ledger query cost_per_model state.db --param since=2026-11-01 --format csv
      state-ledger query search --param 'q=deploy OR rollback' --param limit=5 --json
    """
    form = "json" if as_json else form
    if only_list:
        _list(name, form)
    elif name is None:
        raise click.UsageError("Name a canned query; `state-ledger query --list` lists them.")
    else:
        _say(_ask(name, given.one_store(path), given.parameters(params)), form)


def _ask(name: str, path: Path, parameters: dict[str, str]) -> Result:
    from state_ledger import questions
    from state_ledger.connection import open_for_reading
    from state_ledger.errors import StoreUnreadableError
    from state_ledger.settings import Settings
    from state_ledger.sqlite import UNREADABLE

    known = {parameter.name for parameter in _question(name).parameters}
    unknown = sorted(set(parameters) - known)
    if unknown:
        raise click.UsageError(f"{name} has no parameter {unknown[0]}; it has {', '.join(sorted(known)) or 'none'}.")
    settings = Settings()
    with closing(open_for_reading(path, settings=settings)) as connection:
        try:
            return questions.ask(connection, name, parameters, settings=settings)
        except UNREADABLE as error:
            raise StoreUnreadableError(path, error, f"{name} cannot be answered from {path} ({error}).") from error


def _question(name: str) -> Question:
    from state_ledger import questions

    found = questions.named(name)
    if found is None:
        raise questions.UnknownQuestion(
            f"There is no canned query named {name}; `state-ledger query --list` lists them."
        )
    return found


def _say(answer: Result, form: str) -> None:
    if form == "json":
        head = answer.question.head(answer.parameters, answer.columns)
        output.echo_json({**head, "rows": answer.records(), "truncated": answer.truncated})
    elif form == "csv":
        from state_ledger.portability.formats import csv_rows

        # For programs: the same bytes whatever the terminal speaks.
        click.echo(csv_rows.head(answer.columns) + csv_rows.lines(answer.rows).encode(), nl=False)
    else:
        click.echo(output.table(answer.columns, answer.rows))
    if answer.truncated and form != "json":
        limit = answer.parameters["limit"]
        click.echo(f"There are more than {limit} rows: --param limit=N, or state-ledger export --question.", err=True)


def _list(name: str | None, form: str) -> None:
    from state_ledger import questions

    chosen = [_question(name)] if name else list(questions.load().values())
    if form == "json":
        output.echo_json([_described(question) for question in chosen])
    elif form == "csv":
        raise click.UsageError("The list is given as a table or as JSON.")
    elif name:
        _describe(chosen[0])
    else:
        click.echo(output.table(("group", "name", "title"), [(each.group, each.name, each.title) for each in chosen]))


def _described(question: Question) -> dict[str, object]:
    return {
        "name": question.name,
        "group": question.group,
        "title": question.title,
        "description": question.description,
        "parameters": question.parameters,
        "columns": {name: meaning._asdict() for name, meaning in question.columns.items()},
    }


def _describe(question: Question) -> None:
    click.echo(f"{question.title}. {question.description}\n")
    rows = [
        (each.name, each.kind, each.default, f"{each.label}{': ' if each.choices else ''}{', '.join(each.choices)}")
        for each in question.parameters
    ]
    click.echo(output.table(("parameter", "kind", "default", "what it is"), rows, most=200))
