"""`state-ledger export`: sessions, searches and canned queries as files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click

from state_ledger import private, unfinished
from state_ledger.cli import output
from state_ledger.cli.given import StorePath, param_option
from state_ledger.cli.given import parameters as parameters_of
from state_ledger.portability.formats import ALIASES, FORMATS, Format
from state_ledger.portability.scope import Scope

SCOPES = ("session", "conversation", "work", "source")


@click.command(name="export")
@click.argument("path", type=StorePath(reads=True))
@click.option("--session", metavar="ID", help="One session.")
@click.option("--conversation", metavar="ID", help="All segments of the conversation that a session belongs to.")
@click.option("--work", metavar="ID", help="The conversation with its delegates.")
@click.option("--source", metavar="NAME", help="All sessions of a source, for instance cli or telegram.")
@click.option("--query", metavar="TEXT", help="The messages that a search finds.")
@click.option("--all", "everything", is_flag=True, help="All sessions.")
@click.option("--question", metavar="NAME", help="All rows of a canned query, with --param for its parameters.")
@param_option
@click.option("--format", "form", type=click.Choice([*FORMATS, *ALIASES]), default="jsonl", show_default=True)
@click.option("--output", metavar="FILE", help="Where to (- is standard output); by default a file named for it.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option("--redact/--no-redact", default=None, help="Replace secrets; by default in HTML and Markdown.")
@click.option("--redact-emails", is_flag=True, help="Replace e-mail addresses too.")
@click.option("--redact-homes", is_flag=True, help="Replace users' names in paths too.")
@click.option("--taken-back", is_flag=True, help="Also messages that were taken back.")
@click.option("--spreadsheet-safe", is_flag=True, help="CSV: mark cells that a spreadsheet would run as text.")
@click.option("--zone", metavar="NAME", help="Time zone of HTML and Markdown; by default the machine's.")
@output.told()
def export(path: Path, **given: Any) -> None:
    """Writes sessions, searches or canned queries to a file.

    The file is complete, or the command says why not and ends with an error.

    \b
    Examples:
      state-ledger export state.db --work ID --format html
      state-ledger export state.db --all --output - | gzip > all.jsonl.gz
      state-ledger export state.db --question cost_per_day --format csv
    """
    form = FORMATS[ALIASES.get(given["form"], given["form"])]
    scope = _scope(given)
    if scope is None:
        _export_question(path, form, given)
    else:
        _export_scope(path, scope, form, given)


def _scope(given: dict[str, Any]) -> Scope | None:
    """What to export; None for a canned query. Raises click.UsageError unless exactly one thing is named."""
    named = [Scope(kind, given[kind]) for kind in SCOPES if given[kind] is not None]
    if given["query"] is not None:
        named.append(Scope("search", given["query"]))
    if given["everything"]:
        named.append(Scope("all"))
    wanted = len(named) + (given["question"] is not None)
    if wanted != 1:
        raise click.UsageError(
            "Name one of --session, --conversation, --work, --source, --query, --question and --all."
        )
    return named[0] if named else None


def _export_scope(path: Path, scope: Scope, form: Format, given: dict[str, Any]) -> None:
    from state_ledger.connection import open_for_reading
    from state_ledger.ledger import days
    from state_ledger.portability import figures
    from state_ledger.portability.export import Export, Options
    from state_ledger.portability.scope import NothingToExport
    from state_ledger.portability.searching import among
    from state_ledger.portability.source import Source

    options = Options(
        redact=_redact(form, given),
        emails=given["redact_emails"],
        home_paths=given["redact_homes"],
        taken_back=given["taken_back"],
        spreadsheet_safe=given["spreadsheet_safe"],
        zone=given["zone"] or days.server_zone(),
    )
    try:
        days.zone(options.zone)
    except days.UnknownZone as error:
        raise click.UsageError(str(error)) from error
    connection = open_for_reading(path)
    try:
        found = among(connection, scope, with_taken_back=options.taken_back)
        made = Export.open(Source(connection), scope, options, store=path.stem, among=found)
        made.must_be_all()
        if form.rows and not made.plan.messages:
            raise NothingToExport(f"There is nothing to export: {scope} has no messages.")
        place = _output(given, path.stem, scope.kind, scope.value, form)
        with place as write, output.progress("Exporting") as move:
            for piece in form.write(made):
                write(piece)
                move(made.given_messages, made.plan.messages)
    finally:
        connection.close()
    if not made.whole:
        raise click.ClickException(figures.ending(made))
    counts = f"{made.plan.messages:,} messages of {len(made.plan.parts):,} sessions"
    click.echo(f"{counts}, complete.", err=True)
    if made.plan.taken_back:
        click.echo(f"Left out: {made.plan.taken_back:,} messages that were taken back (--taken-back).", err=True)
    if made.source.replaced:
        click.echo(f"{made.source.replaced:,} texts were not UTF-8; what is unreadable is shown as �.", err=True)
    if options.redact:
        click.echo(f"Replaced: {made.report}.", err=True)


def _export_question(path: Path, form: Format, given: dict[str, Any]) -> None:
    from state_ledger.connection import open_for_reading
    from state_ledger.portability import question_file
    from state_ledger.settings import Settings

    if form.name not in question_file.FORMS:
        forms = ", ".join(question_file.FORMS)
        raise click.UsageError(f"A canned query is exported as one of {forms}.")
    parameters = parameters_of(given["params"])
    settings = Settings()
    connection = open_for_reading(path, settings=settings)
    try:
        made = question_file.make(
            connection, given["question"], parameters, form.name, settings=settings,
            redact=_redact(form, given), spreadsheet_safe=given["spreadsheet_safe"],
        )  # fmt: skip
    finally:
        connection.close()
    with made.file, _output(given, path.stem, given["question"], "", form) as write:
        for piece in made.chunks():
            write(piece)
    click.echo(f"{made.rows:,} rows, {'complete' if made.complete else 'cut at the limit that was given'}.", err=True)


def _redact(form: Format, given: dict[str, Any]) -> bool:
    wanted: bool | None = given["redact"]
    return (form.shared or given["redact_emails"] or given["redact_homes"]) if wanted is None else wanted


@contextmanager
def _output(given: dict[str, Any], store: str, kind: str, value: str, form: Format) -> Iterator[Callable[[bytes], Any]]:
    """Where the bytes go. A file gets its name only when it is whole."""
    from state_ledger.portability.file_names import file_name

    if given["output"] == "-":
        out: IO[bytes] = sys.stdout.buffer
        yield out.write
        out.flush()
        return
    target = Path(given["output"] or file_name(store, kind, value, ending=form.name)).resolve()
    if target.exists() and not target.is_file():
        # A device or a pipe is written to; a file in its place would take it from everybody.
        with target.open("wb") as file:
            yield file.write
        return
    if target.exists() and not given["force"]:
        raise click.ClickException(f"{target} is there already; name another file, or replace it with --force.")
    part = unfinished.place(target.name, target.parent)
    try:
        with private.writing(part) as file:
            yield file.write
        part.replace(target)
    except OSError as error:
        raise click.ClickException(f"{target} could not be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            part.unlink()
    click.echo(str(target), err=True)
