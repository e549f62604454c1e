"""Any text as any argument of any verb: a sentence and a status of its own, never a traceback."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from functools import cache
from pathlib import Path

import click
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger.cli import VERBS, main
from state_ledger.session_db import SessionDB
from tests.fuzz import examples
from tests.fuzz.asking import HOSTILE

WAIT = {"check": {"--watch"}}
"""Options that wait, or look again and again, until they are interrupted."""

NOT_ALLOWED = 3
"""The status of what was to be allowed first, and was not."""

SERVES = {"serve"}
"""Verbs that do not end by themselves."""

TEXTS = sorted({each.decode("utf-8", "surrogateescape") for each in HOSTILE if b"\x00" not in each})
ANY = st.sampled_from(TEXTS) | st.text(st.characters(exclude_characters="\x00", exclude_categories=()), max_size=30)


@cache
def _sample() -> Path:
    path = Path(tempfile.mkdtemp(prefix="state-ledger-fuzz-")) / "state.db"
    with SessionDB(path) as db:
        for name in ("first", "second"):
            db.create_session(name, "cli", model="m")
            db.append_messages(name, [{"role": "user", "content": f"pier {n}"} for n in range(3)])
            db.update_token_counts(name, 700, 80, model="m", estimated_cost_usd=0.25, api_call_count=3)
    return path


def command(verb: str) -> click.Command:
    found = main.get_command(click.Context(main), verb)
    assert found is not None
    return found


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A verb of the table of verbs, its arguments, and some of its options, as the verb itself declares them."""
    verb = draw(st.sampled_from(sorted(set(VERBS) - SERVES)))
    known = command(verb).params
    words = [verb]
    for each in known:
        if isinstance(each, click.Argument):
            store = draw(st.integers(0, 9)) and isinstance(each.type, click.Path)
            words += ["state.db" if store else draw(ANY).removeprefix("-")]
    options = [each for each in known if isinstance(each, click.Option) and each.opts[-1] not in WAIT.get(verb, ())]
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else ():
        flag = option.is_flag or option.count
        words += [option.opts[-1]] if flag else [f"{option.opts[-1]}={draw(ANY)}"]
    if "--yes" in {opt for option in options for opt in option.opts} and draw(st.booleans()):
        words += ["--yes", "--no-backup"]
    return words


def run(words: list[str]) -> Result:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(_sample(), Path(folder) / "state.db")
        os.chdir(folder)
        try:
            return CliRunner(env={"HERMES_HOME": folder}).invoke(main, words, input="")
        finally:
            os.chdir(before)


def complaint(words: list[str], result: Result) -> str:
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{words}: {''.join(traceback.format_exception(result.exception))}"
    if "Traceback (most recent call last)" in result.output:
        return f"{words}: a traceback"
    if result.exit_code not in (0, 1, 2, NOT_ALLOWED):
        return f"{words}: status {result.exit_code}"
    return ""


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(lines())
def test_any_text_of_any_argument_is_answered_with_a_sentence(words: list[str]) -> None:
    assert not complaint(words, run(words))
