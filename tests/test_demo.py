"""A demo store shows everything the pages explain, and its books balance but where it says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from state_ledger import full_text
from state_ledger.demo import DEFAULT_END, Demo, make_demo
from state_ledger.demo.prices import HELPERS, MAIN, Price
from state_ledger.demo.troubles import TROUBLES
from state_ledger.sqlite import Connection, sqlite3

COUNTERS = (
    "api_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "estimated_cost_usd",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return make_demo(tmp_path_factory.mktemp("demo") / "state.db")


@pytest.fixture(scope="module")
def store(demo: Demo) -> Iterator[Connection]:
    connection = _open(demo.path)
    yield connection
    connection.close()


def _open(path: Path) -> Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda stored: stored.decode("utf-8", "replace")
    return connection


def _rows(path: Path) -> list[list[tuple[object, ...]]]:
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    tables = (
        "sessions",
        "messages",
        "session_model_usage",
        "state_meta",
        "gateway_routing",
        "async_delegations",
    )
    rows = [connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall() for table in tables]
    connection.close()
    return rows


CHILD = "FROM sessions c JOIN sessions p ON p.id = c.parent_session_id WHERE json_valid(c.model_config)"
MARKED = "json_extract(c.model_config, '$._delegate_from')"
DEPTH = """
    WITH RECURSIVE chain(id, segments) AS (
        SELECT id, 1 FROM sessions WHERE parent_session_id IS NULL
        UNION ALL
        SELECT c.id, chain.segments + 1 FROM chain JOIN sessions p ON p.id = chain.id
        JOIN sessions c ON c.parent_session_id = p.id WHERE p.end_reason = 'compression'
    )
"""
USAGE = "SELECT count(*) FROM session_model_usage WHERE "
SESSIONS = "SELECT count(*) FROM sessions WHERE "
MESSAGES = "SELECT count(*) FROM messages WHERE "

PROMISED = {
    "several sources": (9, "SELECT count(DISTINCT source) FROM sessions"),
    "several models": (10, "SELECT count(DISTINCT model) FROM session_model_usage"),
    "several profiles": (3, "SELECT count(DISTINCT coalesce(profile_name, '')) FROM sessions"),
    "one model under several spellings": (
        3,
        "SELECT count(DISTINCT model) FROM session_model_usage WHERE lower(model) LIKE '%claude-sonnet-4-5%'",
    ),
    "a subscription": (1, USAGE + "cost_status = 'included' AND billing_mode = 'subscription_included'"),
    "a price nobody knows": (1, USAGE + "cost_status = 'unknown' AND cost_source = 'none' AND task = ''"),
    "a local model": (1, USAGE + "billing_base_url LIKE 'http://localhost%' AND task = ''"),
    "real costs": (1, USAGE + "cost_status = 'actual' AND actual_cost_usd > 0"),
    "a real cost of a part of a session": (
        1,
        "SELECT count(*) FROM sessions s WHERE actual_cost_usd > 0 AND EXISTS"
        " (SELECT 1 FROM session_model_usage u"
        " WHERE u.session_id = s.id AND u.task = '' AND u.actual_cost_usd = 0 AND u.estimated_cost_usd > 0)",
    ),
    "changes of model in a session": (
        3,
        "SELECT count(*) FROM (SELECT 1 FROM session_model_usage WHERE task = '' GROUP BY session_id"
        " HAVING count(DISTINCT model) > 1)",
    ),
    "an API mode after a change back": (
        1,
        "SELECT count(*) FROM session_model_usage a"
        " JOIN session_model_usage b USING (session_id, model, task)"
        " WHERE a.billing_mode = '' AND b.billing_mode IN ('anthropic_messages', 'chat_completions')",
    ),
    "titles by helpers": (50, USAGE + "task = 'title_generation'"),
    "compression by helpers": (5, USAGE + "task = 'compression'"),
    "pictures seen by helpers": (1, USAGE + "task = 'vision'"),
    "pages read by helpers": (5, USAGE + "task = 'web_extract'"),
    "a chain of more than five": (1, DEPTH + "SELECT count(*) FROM chain WHERE segments > 5"),
    "branches": (2, f"SELECT count(*) {CHILD} AND json_extract(c.model_config, '$._branched_from') = p.id"),
    "a parent that ended in a branch": (1, SESSIONS + "end_reason = 'branched'"),
    "delegates": (5, f"SELECT count(*) {CHILD} AND c.source = 'subagent' AND {MARKED} = p.id"),
    "delegates of delegates": (
        1,
        f"SELECT count(*) {CHILD} AND {MARKED} = p.id AND p.source = 'subagent'",
    ),
    "a delegate's continuation that names its grandparent": (
        1,
        f"SELECT count(*) {CHILD} AND p.end_reason = 'compression' AND {MARKED} = p.parent_session_id",
    ),
    "chats begun anew": (
        1,
        f"SELECT count(*) {CHILD} AND p.session_key = c.session_key AND p.end_reason = 'session_reset'",
    ),
    "scheduled jobs": (
        5,
        SESSIONS + "source = 'cron' AND id GLOB 'cron_*_2[0-9][0-9][0-9][0-9][0-9][0-9][0-9]_*'",
    ),
    "an id with a slash and a dot": (1, SESSIONS + "id LIKE '%/%.%'"),
    "sessions never ended": (2, SESSIONS + "ended_at IS NULL AND end_reason IS NULL"),
    "pinned sessions": (1, SESSIONS + "pinned = 1"),
    "archived sessions": (1, SESSIONS + "archived = 1"),
    "sessions without a title": (3, SESSIONS + "title IS NULL"),
    "folders and repositories": (5, SESSIONS + "cwd IS NOT NULL AND git_branch IS NOT NULL"),
    "Korean": (20, MESSAGES + "content GLOB '*[가-힣]*'"),
    "Japanese": (20, MESSAGES + "content GLOB '*[ぁ-ん]*'"),
    "Chinese": (20, MESSAGES + "content GLOB '*[一-龥]*' AND NOT content GLOB '*[ぁ-ん]*'"),
    "tool calls": (
        200,
        MESSAGES + "json_valid(tool_calls) AND json_extract(tool_calls, '$[0].function.name') <> ''",
    ),
    "tool results": (200, MESSAGES + "role = 'tool' AND tool_call_id IS NOT NULL AND tool_name IS NOT NULL"),
    "reasoning": (20, MESSAGES + "reasoning IS NOT NULL"),
    "structured content": (
        2,
        MESSAGES + "substr(CAST(content AS BLOB), 1, 6) = x'006a736f6e3a' AND"
        " json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))",
    ),
    "messages sent otherwise than stored": (
        2,
        MESSAGES + "api_content IS NOT NULL AND api_content <> content",
    ),
    "messages summarised away": (5, MESSAGES + "active = 0 AND compacted = 1"),
    "messages kept by a compaction": (
        1,
        "SELECT count(*) FROM messages a JOIN messages b USING (session_id, role, content, timestamp)"
        " WHERE a.id < b.id AND a.compacted = 1 AND b.active = 1",
    ),
    "messages taken back": (2, MESSAGES + "active = 0 AND compacted = 0"),
    "chatter overheard": (1, MESSAGES + "observed = 1"),
    "a cache that keeps breaking": (
        1,
        SESSIONS + "api_call_count > 5 AND cache_write_tokens > cache_read_tokens"
        " OR api_call_count > 5 AND cache_read_tokens > 0 AND input_tokens > cache_read_tokens",
    ),
    # One of each trouble.
    "an orphan usage row": (1, USAGE + "session_id NOT IN (SELECT id FROM sessions)"),
    "a session without usage rows": (
        2,
        SESSIONS + "input_tokens > 0 AND id NOT IN (SELECT session_id FROM session_model_usage)",
    ),
    "a session from before calls were counted": (1, SESSIONS + "api_call_count = 0 AND input_tokens > 0"),
    "a missing parent": (1, SESSIONS + "parent_session_id NOT IN (SELECT id FROM sessions)"),
    "a loop of parents": (
        2,
        "SELECT count(*) FROM sessions a"
        " JOIN sessions b ON b.id = a.parent_session_id AND a.id = b.parent_session_id",
    ),
    "text in a number": (1, USAGE + "typeof(output_tokens) = 'text'"),
    "a negative count": (1, USAGE + "input_tokens < 0"),
    "an implausible cost": (
        1,
        USAGE
        + "estimated_cost_usd * 1000"
        + " > input_tokens + output_tokens + cache_read_tokens + cache_write_tokens",
    ),
    "times in milliseconds": (1, MESSAGES + "timestamp > 1e11"),
    "settings that are not JSON": (1, SESSIONS + "NOT json_valid(model_config)"),
    "tool calls that are not JSON": (1, MESSAGES + "tool_calls IS NOT NULL AND NOT json_valid(tool_calls)"),
    "content that is not UTF-8": (1, MESSAGES + "instr(CAST(content AS BLOB), x'6166e920') > 0"),
    "structured content that is not JSON": (
        1,
        MESSAGES + "substr(CAST(content AS BLOB), 1, 6) = x'006a736f6e3a' AND"
        " NOT json_valid(CAST(substr(CAST(content AS BLOB), 7) AS TEXT))",
    ),
    "nothing paid for want of a price": (
        1,
        USAGE + "model LIKE '%claude-sonnet%' AND cost_status = 'unknown' AND estimated_cost_usd = 0",
    ),
    "a part of the price": (1, USAGE + "cost_status = 'unknown' AND estimated_cost_usd > 0"),
    "a model on no list": (1, USAGE + "model = 'house/mystery-7b'"),
    "a cost without a status": (1, USAGE + "task = '' AND cost_status IS NULL AND estimated_cost_usd > 0"),
}


@pytest.mark.parametrize("promise", PROMISED)
def test_store_has(store: Connection, promise: str) -> None:
    least, question = PROMISED[promise]
    assert store.execute(question).fetchone()[0] >= least


def test_store_is_sound(demo: Demo, store: Connection) -> None:
    assert [row[0] for row in store.execute("PRAGMA integrity_check")] == ["ok"]
    for index in full_text.INDEXES:
        full_text.check(store, index)
    assert 140 <= demo.sessions <= 150
    assert store.execute("SELECT version FROM schema_version").fetchone()[0] == 23
    assert demo.bytes == demo.path.stat().st_size


def test_only_the_declared_foreign_keys_are_broken(demo: Demo, store: Connection) -> None:
    broken = {(row["table"], row["parent"]) for row in store.execute("PRAGMA foreign_key_check")}
    assert broken == {("sessions", "sessions"), ("session_model_usage", "sessions")}


def test_session_rows_carry_the_sums_of_their_main_rows(demo: Demo, store: Connection) -> None:
    excepted = {demo.troubles[name] for name, trouble in TROUBLES.items() if trouble.unequal}
    different = set()
    for session in store.execute("SELECT * FROM sessions").fetchall():
        rows = store.execute(
            "SELECT * FROM session_model_usage WHERE session_id = ? AND task = ''", (session["id"],)
        ).fetchall()
        if any(isinstance(row[counter], str) for row in rows for counter in COUNTERS) or any(
            session[counter] != pytest.approx(sum(row[counter] for row in rows)) for counter in COUNTERS
        ):
            different.add(session["id"])
    assert different == excepted - {demo.troubles["orphan_usage"]}


def test_residuals_go_both_ways(demo: Demo, store: Connection) -> None:
    def rest(trouble: str) -> float:
        identity = demo.troubles[trouble]
        return float(
            store.execute(
                "SELECT s.estimated_cost_usd - (SELECT sum(estimated_cost_usd) FROM session_model_usage"
                " WHERE session_id = s.id AND task = '') FROM sessions s WHERE id = ?",
                (identity,),
            ).fetchone()[0]
        )

    assert rest("partly_attributed") > 0 > rest("over_attributed")


def test_estimates_follow_the_price_list(demo: Demo, store: Connection) -> None:
    prices: dict[str, Price] = {
        route.model: route.price for route, _ in (*MAIN, *HELPERS) if route.price and not route.included
    }
    troubled = set(demo.troubles.values())
    priced = 0
    for row in store.execute("SELECT * FROM session_model_usage").fetchall():
        if row["session_id"] in troubled:
            continue
        price = prices.get(row["model"])
        expected = 0.0
        if price:
            priced += 1
            expected = (
                row["input_tokens"] * price.input
                + row["output_tokens"] * price.output
                + row["cache_read_tokens"] * price.cache_read
                + row["cache_write_tokens"] * price.cache_write
            ) / 1e6
        assert row["estimated_cost_usd"] == pytest.approx(expected, abs=1e-12)
    assert priced > 200


def test_helper_calls_have_no_mode_and_no_status(store: Connection) -> None:
    rows = store.execute(
        "SELECT billing_mode, cost_status, cost_source FROM session_model_usage WHERE task <> ''"
    )
    assert {tuple(row) for row in rows} == {("", None, None)}


def test_long_sessions_read_most_of_their_prompts_from_the_cache(store: Connection) -> None:
    rows = store.execute(
        "SELECT cache_read_tokens * 1.0 / (input_tokens + cache_read_tokens + cache_write_tokens) AS ratio"
        " FROM sessions WHERE api_call_count > 12 AND model LIKE '%claude-sonnet%' ORDER BY ratio"
    ).fetchall()
    assert 0.7 < rows[len(rows) // 2]["ratio"] < 0.99


def test_messages_lie_within_their_session_and_the_period(demo: Demo, store: Connection) -> None:
    outside = store.execute(
        "SELECT count(*) FROM messages m JOIN sessions s ON s.id = m.session_id"
        " WHERE m.timestamp < s.started_at - 0.001 OR m.timestamp > coalesce(s.ended_at, m.timestamp) + 0.001"
    ).fetchone()[0]
    first, last = store.execute(
        "SELECT min(started_at), max(coalesce(ended_at, started_at)) FROM sessions WHERE started_at < 1e11"
    ).fetchone()
    assert outside == 0
    assert (DEFAULT_END - timedelta(days=90)).timestamp() <= first
    assert last <= DEFAULT_END.timestamp()


def test_ids_of_messages_rise_with_time_across_sessions(demo: Demo, store: Connection) -> None:
    moments = [
        row["timestamp"]
        for row in store.execute(
            "SELECT timestamp FROM messages m WHERE timestamp < 1e11 AND NOT EXISTS (SELECT 1 FROM messages k"
            " WHERE k.session_id = m.session_id AND k.timestamp = m.timestamp AND k.id < m.id) ORDER BY id"
        )
    ]
    assert moments == sorted(moments)


def test_every_tool_result_answers_a_call(demo: Demo, store: Connection) -> None:
    called: set[str] = set()
    for row in store.execute("SELECT tool_calls FROM messages WHERE json_valid(tool_calls)"):
        called |= {call["id"] for call in json.loads(row["tool_calls"])}
    cut_off = demo.troubles["broken_tool_calls"]
    answered = store.execute(
        "SELECT tool_call_id FROM messages WHERE role = 'tool' AND session_id <> ?", (cut_off,)
    ).fetchall()
    assert {row["tool_call_id"] for row in answered} <= called


def test_message_counts_are_those_of_the_live_set(store: Connection) -> None:
    wrong = store.execute(
        "SELECT count(*) FROM sessions s WHERE rewind_count = 0"
        " AND message_count <> (SELECT count(*) FROM messages m"
        " WHERE m.session_id = s.id AND m.active = 1)"
    ).fetchone()[0]
    assert wrong == 0


def test_weekdays_are_busier_than_weekends(store: Connection) -> None:
    rows = store.execute(
        "SELECT strftime('%w', started_at, 'unixepoch') IN ('0', '6') AS weekend, count(*) AS sessions"
        " FROM sessions WHERE started_at < 1e11 AND source <> 'cron' GROUP BY 1"
    ).fetchall()
    counts = {row["weekend"]: row["sessions"] for row in rows}
    assert counts[0] / 5 > counts[1] / 2


def test_equal_seeds_make_equal_rows(demo: Demo, tmp_path: Path) -> None:
    again = make_demo(tmp_path / "again.db", full_text=False)
    assert _rows(again.path) == _rows(demo.path)
    assert again.troubles == demo.troubles


@pytest.mark.parametrize(
    "changed", [{"seed": 2}, {"now": datetime(2026, 11, 27, 23, tzinfo=timezone.utc)}], ids=["seed", "end"]
)
def test_another_seed_or_end_makes_other_rows(demo: Demo, tmp_path: Path, changed: dict[str, object]) -> None:
    other = make_demo(tmp_path / "other.db", full_text=False, **changed)  # type: ignore[arg-type]
    assert _rows(other.path) != _rows(demo.path)


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_every_seed_keeps_the_promises(tmp_path: Path, seed: int) -> None:
    store = _open(make_demo(tmp_path / "state.db", seed=seed).path)
    missing = [
        promise for promise, (_, question) in PROMISED.items() if store.execute(question).fetchone()[0] < 1
    ]
    store.close()
    assert missing == []


def test_sizes_are_as_asked(tmp_path: Path) -> None:
    made = make_demo(tmp_path / "state.db", sessions=400, messages_per_session=50, full_text=False)
    assert 395 <= made.sessions <= 400
    assert made.messages / made.sessions == pytest.approx(50, rel=0.12)


def test_ends_where_it_is_told_to(tmp_path: Path) -> None:
    end = datetime(2027, 3, 1, tzinfo=timezone.utc)
    store = _open(make_demo(tmp_path / "state.db", now=end, days=30, full_text=False).path)
    first, last = store.execute(
        "SELECT min(started_at), max(started_at) FROM sessions WHERE started_at < 1e11"
    ).fetchone()
    store.close()
    assert (end - timedelta(days=30)).timestamp() <= first < last <= end.timestamp()


def test_never_overwrites(tmp_path: Path) -> None:
    there = tmp_path / "state.db"
    there.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"exists already\. Remove it"):
        make_demo(there)
    assert there.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [there]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_refuses_a_place_where_the_log_of_another_file_lies(tmp_path: Path, suffix: str) -> None:
    left = tmp_path / f"state.db{suffix}"
    left.write_bytes(b"of a file that is gone")
    with pytest.raises(FileExistsError, match=f"state.db{suffix} exists already"):
        make_demo(tmp_path / "state.db")
    assert list(tmp_path.iterdir()) == [left]


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        ((3, 40, 1), "rollback"),
        ((3, 44, 5), "rollback"),
        ((3, 44, 6), "WAL"),
        ((3, 45, 0), "rollback"),
        ((3, 50, 6), "rollback"),
        ((3, 50, 7), "WAL"),
        ((3, 51, 2), "rollback"),
        ((3, 51, 3), "WAL"),
        ((3, 53, 4), "WAL"),
    ],
)
def test_is_in_wal_mode_only_where_sqlite_does_not_corrupt_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], mode: str
) -> None:
    monkeypatch.setattr("state_ledger.demo.store.version_info", version)
    made = make_demo(tmp_path / "state.db", sessions=100, messages_per_session=8, full_text=False)
    # Bytes 18 and 19 of the header: 1 for a rollback journal, 2 for a write-ahead log.
    assert made.path.read_bytes()[18:20] == (b"\x02\x02" if mode == "WAL" else b"\x01\x01")


@pytest.mark.parametrize("stage", ["messages", "indexes", "full text"])
def test_leaves_nothing_behind_when_interrupted(tmp_path: Path, stage: str) -> None:
    def interrupt(what: str, done: int, _all: int) -> None:
        if what == stage and done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_demo(tmp_path / "state.db", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_reports_progress_up_to_the_last_session(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    make_demo(tmp_path / "state.db", progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == "messages"] == [("messages", n, 150) for n in range(1, 151)]
    assert [step[0] for step in told[-2:]] == ["indexes", "full text"]


def test_refuses_a_store_too_small_for_its_promises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 100 sessions"):
        make_demo(tmp_path / "state.db", sessions=99)
    assert list(tmp_path.iterdir()) == []


def test_leaves_no_journal_beside_the_file(demo: Demo) -> None:
    fresh = demo.path.with_name("fresh.db")
    make_demo(fresh, full_text=False)
    assert [path.name for path in fresh.parent.iterdir() if path.name.startswith("fresh")] == ["fresh.db"]
