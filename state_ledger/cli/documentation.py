"""The documentation of the command line as Markdown, made from the verbs themselves.

`python -m state_ledger.cli.documentation` prints it; a test holds `docs/command-line.md` to it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from state_ledger.cli import VERBS, main
from state_ledger.cli.output import DONE, NOT_CONFIRMED, NOT_WELL, USAGE

INTRODUCTION = f"""# The command line

`state-ledger VERB --help` says in a terminal what this page says. Verbs that write ask first, take a backup, and are
told `--yes` by scripts ([operations.md](operations.md)). With `--json` a verb speaks JSON. `PATH` is a `state.db`;
verbs that only read and are given none take your own, `$HERMES_HOME/state.db` or `~/.hermes/state.db`.

| exit code | |
|---|---|
| {DONE} | done, or all is well |
| {NOT_WELL} | findings, a limit that is exceeded, or what was asked could not be done: standard error says which |
| {USAGE} | the command line cannot be meant; nothing was looked at |
| {NOT_CONFIRMED} | a verb that writes was not allowed to |
"""


def render() -> str:
    """The whole page."""
    context = click.Context(main, info_name="state-ledger")
    parts = [part for verb in sorted(VERBS) for part in _parts(main, verb, context)]
    return INTRODUCTION + "".join("\n" + "\n".join(part) + "\n" for part in parts)


def _parts(group: click.Group, verb: str, context: click.Context) -> Iterator[list[str]]:
    """A verb, and those that are under it."""
    command = group.get_command(context, verb)
    assert command is not None
    with click.Context(command, info_name=verb, parent=context) as asked:
        yield list(_lines(command, asked))
        if isinstance(command, click.Group):
            for each in command.list_commands(asked):
                yield from _parts(command, each, asked)


def _lines(command: click.Command, asked: click.Context) -> Iterator[str]:
    path = asked.command_path.removeprefix("state-ledger ")
    yield f"## {path}\n"
    yield f"`{' '.join([asked.command_path, *command.collect_usage_pieces(asked)])}`\n"
    yield from _paragraphs(command.help or "")
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield "| option | default | |\n|---|---|---|"
    for option in options:
        yield _row(option, asked)


def _row(option: click.Option, context: click.Context) -> str:
    if isinstance(option.type, click.Choice):
        metavar = " " + " \\| ".join(map(str, option.type.choices))
    else:
        metavar = "" if option.is_flag else f" {option.make_metavar(context)}"
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = f"`{_default(option)}`" if option.show_default and option.default not in (None, ()) else ""
    return f"| {names}{metavar} | {default} | {(option.help or '').replace('|', chr(92) + '|')} |"


def _default(option: click.Option) -> object:
    """Of a flag with a name for each answer, the name of the one that holds."""
    return (option.opts if option.default else option.secondary_opts)[0] if option.is_flag else option.default


def _paragraphs(text: str) -> Iterator[str]:
    """Help as Markdown: what click is told to leave as it is (`\\b`) becomes a block of code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0].strip() == "\b":
            head = [lines[1]] if re.fullmatch(r"\w[\w ]*:", lines[1].strip()) else []
            yield from (f"{each}\n" for each in head)
            yield "```sh\n" + inspect.cleandoc("\n".join(lines[1 + len(head) :])) + "\n```\n"
        else:
            yield " ".join(lines) + "\n"


if __name__ == "__main__":
    print(render(), end="")
