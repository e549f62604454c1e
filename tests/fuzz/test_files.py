"""Files that people hand over, canned queries to exports: they are read, or refused with a sentence."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger import settings as settings_of
from state_ledger.bills import Bill, BillError, read_text
from state_ledger.budgets.budget import WrongBudget, parse_budget
from state_ledger.errors import SettingsError, StateLedgerError
from state_ledger.portability.importing import import_files
from state_ledger.prices import table as prices
from state_ledger.questions import MalformedQuestion
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.fuzz import examples

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=12)
    | st.sampled_from(["", "\ud83d", "\x00", "a\x00b", "2026-99-99", "1e999", "x" * 3000, "\ufeff", "é", "null"])
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b"", b"\n\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1a"])
STRANGE = st.binary(max_size=60) | st.sampled_from(
    [b"[" * 10_000, b'{"a":' * 10_000, b"- " * 3000, b"&a [*a]", b"!!python/object:os.system {}", b"!!int x",
    b"2026-99-99",
     b"? [a]\n: b", b"%YAML 9.9\n", b"\t\t- x", b"a: b: c", b"{", b"'", b"!!binary x", b"<<: 3", b"\xff\xfe{\x00}\x00"]
)  # fmt: skip
"""Bytes that are no YAML and no JSON, or more of it than anybody means."""


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="state-ledger-fuzz-"))


def written(name: str, content: bytes) -> Path:
    path = folder() / name
    path.write_bytes(content)
    return path


def sentence(error: Exception) -> None:
    said = str(error)
    assert said.strip() and "Traceback" not in said and "object at 0x" not in said, said


def law(number: int) -> Callable[[Any], Any]:
    return settings(max_examples=examples(number), suppress_health_check=list(HealthCheck))


@st.composite
def spoilt(draw: st.DrawFn, sound: bytes) -> bytes:
    """A sound file with a piece of it cut out, doubled, or replaced by something strange."""
    start = draw(st.integers(0, len(sound)))
    end = min(len(sound), start + draw(st.sampled_from([0, 1, 5, 40, 10_000])))
    return sound[:start] + draw(STRANGE | st.just(sound[start:end] * 2)) + sound[end:]


# -- canned queries --------------------------------------------------------------------------------------

SOUND_QUESTION = b"""-- ---
-- title: Sessions
-- description: Newest first.
-- parameters: {limit: {default: 20}, word: {type: text, label: A word, default: x}}
-- columns: {session_id: null, n: "count | How many."}
-- chart: {kind: bars, label: session_id, value: n}
-- ---
SELECT session_id, 1 AS n FROM ledger_sessions WHERE session_id <> :word LIMIT :limit
"""
DETAILS = st.fixed_dictionaries(
    {}, optional={name: VALUES for name in ("title", "description", "parameters", "columns", "chart")}
)


def read_question(content: bytes) -> None:
    try:
        question = questions.read(written("question.sql", content))
    except MalformedQuestion as error:
        sentence(error)
        assert str(error).startswith("question.sql: ")
    else:
        assert isinstance(question.title, str) and isinstance(question.description, str)
        question.compiled(settings_of.Settings())
        for parameter in question.parameters:
            assert isinstance(parameter.label, str) and isinstance(parameter.minimum, int)


@law(25)
@given(spoilt(SOUND_QUESTION))
def test_a_canned_query_is_read_or_refused_with_its_file(content: bytes) -> None:
    read_question(content)


@law(25)
@given(DETAILS, st.sampled_from(["SELECT 1", "SELECT :limit", "SELECT :word", "", ";", "'"]))
def test_front_matter_of_any_shape_is_read_or_refused_with_its_file(front: dict[str, Any], sql: str) -> None:
    shown = yaml.safe_dump(front, allow_unicode=True)
    header = "".join(f"-- {line}\n" for line in shown.splitlines())
    read_question(f"-- ---\n{header}-- ---\n{sql}\n".encode("utf-8", "surrogatepass"))


# -- settings, prices, budgets ---------------------------------------------------------------------------

SOUND_SETTINGS = b"""plugins:
  state-ledger:
    zone: Asia/Seoul
    allowed_hosts: ['*.example.org']
    budgets: [{name: b, usd: 5, per: day}]
    markdown_columns: {messages: [content]}
    max_limit: 100
"""


@law(25)
@given(spoilt(SOUND_SETTINGS))
def test_a_settings_file_is_read_or_refused_with_a_sentence(content: bytes) -> None:
    try:
        settings_of.read_file(written("settings.yaml", content))
    except StateLedgerError as error:
        sentence(error)


@law(25)
@given(st.dictionaries(st.sampled_from(sorted(settings_of._READERS)) | st.text(max_size=5), VALUES, max_size=3))
def test_settings_of_any_shape_are_taken_or_refused_by_name(given_settings: dict[str, Any]) -> None:
    try:
        settings_of.Settings.from_mapping(given_settings)
    except SettingsError as error:
        sentence(error)
        assert any(name in str(error) or repr(name)[1:-1] in str(error) for name in given_settings), error


SOUND_PRICES = b"""- {model: m, input: 3, output: 15.5, cache_read: 0.3}
- {pattern: 'm-*', provider: p, input: '1.25', from: 2026-01-01, until: 2026-05-31, note: mine}
"""


@law(25)
@given(spoilt(SOUND_PRICES))
def test_a_price_table_is_read_or_refused_with_a_sentence(content: bytes) -> None:
    try:
        rows = prices.read(written("prices.yaml", content))
    except prices.PriceTableError as error:
        sentence(error)
    else:
        assert all(row.name for row in rows)


BUDGETS = st.from_regex(r"[-+0-9.eE]{0,9}( ?USD|\$|k| tokens)?( ?/ ?| per )?(day|week|month)?.{0,9}")


@law(20)
@given(st.text(max_size=30) | BUDGETS)
def test_a_budget_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        parse_budget(text)
    except WrongBudget as error:
        sentence(error)


# -- bills -----------------------------------------------------------------------------------------------

CELLS = st.sampled_from(
    ["2026-06-01", "2026-06-31", "20260601", "1/2/2026", "1780000000", "99999999999999", "2026-06-01T10:00:00Z",
    "1.5", "$1,234.56",
     "(3)", "-0", "1e-05", "1e999", "NaN", "1,5", "٣", "EUR", "USD", "m", "", '"', 'a"b', "é", "\x00",
     "0001-01-01T00:00:00+14:00",
     "9999-12-31T23:59:59-12:00", "٢٠٢٦-٠١-٠١", "1" * 5000]
) | st.text(max_size=8)  # fmt: skip


@st.composite
def bills(draw: st.DrawFn) -> str:
    """CSV of every dialect, or JSON."""
    if draw(st.booleans()):
        rows = draw(st.lists(st.fixed_dictionaries({}, optional={n: CELLS | VALUES for n in ("date", "model",
        "amount", "x")}), max_size=3))
        shape = draw(st.sampled_from([rows, {"data": rows}, {"a": rows, "b": rows}, 3, [rows]]))
        return json.dumps(shape) if draw(st.booleans()) else "\n".join(map(json.dumps, rows))
    delimiter, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    header = draw(st.sampled_from([["date", "model", "amount"], ["Day", "Model", "Cost (USD)"], ["date", "amount"],
    ["date", "date", "cost"]]))
    rows = [header, *draw(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=4))]
    return draw(st.sampled_from(["", "\ufeff",
    "\n\n"])) + end.join(delimiter.join(row) for row in rows) + draw(st.sampled_from(["", end]))


@law(25)
@given(bills(), st.sampled_from(["UTC", "Asia/Seoul", "Pacific/Kiritimati"]))
def test_a_bill_is_read_to_its_last_line_or_refused_with_the_line(text: str, zone: str) -> None:
    try:
        bill = read_text(io.StringIO(text, newline=""), zone)
    except BillError as error:
        sentence(error)
    else:
        assert isinstance(bill, Bill) and bill.lines and bill.total.is_finite()
        assert all(len(day) == 10 and day.isascii() for day, _model in bill.amounts)


# -- exports ---------------------------------------------------------------------------------------------


@cache
def exported() -> bytes:
    path = folder() / "exported.db"
    with SessionDB(path) as db:
        db.create_session("s1", "cli", model="m")
        db.append_messages("s1", [{"role": "user", "content": "pier"}, {"role": "tool", "content": [{"type": "text",
        "text": "x"}]}])
        db.update_token_counts("s1", 7, 8, model="m", estimated_cost_usd=0.5)
        db.create_session("s2", "cli", parent_session_id="s1")
        lines = [json.dumps(each, ensure_ascii=False) for each in db.export_all()]
    return "\n".join(lines).encode()


RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["header", "session", "usage", "message", "trailer", "x", 3, []]),
        **{name: VALUES for name in ("version", "counts", "complete", "started_at", "title", "model_config",
        "input_tokens",
                                     "parent_session_id", "segments", "content", "timestamp", "usage_rows",
                                     "tool_calls")},
        **{name: VALUES | st.sampled_from(["s1", "s2", "s3"]) for name in ("id", "session_id", "source", "role")},
        "messages": VALUES | st.lists(st.dictionaries(st.sampled_from(["role", "content", "timestamp", "id",
        "tool_calls"]), VALUES), max_size=2),
        "usage": VALUES | st.lists(st.dictionaries(st.sampled_from(["model", "input_tokens", "task", "first_seen"]),
        VALUES), max_size=2),
    },
)  # fmt: skip


def imported(content: bytes) -> tuple[Any, sqlite3.Connection]:
    target = folder() / "target.db"
    for each in folder().glob("target.db*"):
        each.unlink()
    writer = Writer(target)
    try:
        summary = import_files(writer, [written("given.jsonl", content)])
        stored = writer.connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        said = writer.connection.execute("SELECT count(*) FROM messages").fetchone()[0]
        broken = writer.connection.execute("PRAGMA foreign_key_check").fetchall()
    finally:
        writer.close()
    for trouble in summary.troubles:
        assert trouble.why.strip() and "given.jsonl" in str(trouble)
    assert (stored, said) == (summary.imported, summary.messages), "what is not reported is not stored"
    assert not broken
    if not summary.imported and content.strip() not in (b"[]", b'{"sessions": []}'):
        assert summary.troubles or summary.skipped, "a file of which nothing was taken, and nobody said so"
    return summary, writer.connection


@law(20)
@given(spoilt(exported()), ENDS)
def test_a_spoilt_export_is_taken_session_by_session_or_refused_with_its_line(content: bytes, end: bytes) -> None:
    imported(content.replace(b"\n", end or b"\n") if end in (b"\r\n", b"\r") else end + content + end)


@law(25)
@given(st.lists(RECORDS, min_size=1, max_size=3), st.booleans())
def test_records_of_any_shape_are_taken_or_refused(records: list[dict[str, Any]], as_list: bool) -> None:
    content = json.dumps(records) if as_list else "\n".join(map(json.dumps, records))
    imported(content.encode())


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\x00", b"\xef\xbb\xbf", b"[]", b"{}", b"null", b"3", b'"x"', b"[" * 10_000, b'{"a":' * 10_000,
    b"PK\x03\x04" + b"\x00" * 40,
     b"\x1f\x8b\x08" + b"\x00" * 40, b"SQLite format 3\x00", b'{"id": "a", "id": "b", "source": "cli"}',
     b'{"id": "a", "messages": ' + b"[" * 3000,
     b'{"id": "a", "started_at": NaN, "source": "cli"}', b'{"id": "a", "started_at": 1' + b"0" * 5000 + b"}"],
    ids=lambda content: repr(content[:14]),
)  # fmt: skip
def test_a_file_that_is_no_export_is_refused_or_taken_as_what_it_says(content: bytes) -> None:
    imported(content)
