"""The benchmarks: that they measure what they say, end in their time, and report misses as misses."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from datasette.app import Datasette
from datasette.plugins import pm

from benchmarks import every_call_once, growth, longer, parts, report, run, store
from benchmarks.__main__ import main
from benchmarks.bench import Bench, NotMeasured
from benchmarks.figure import GROWTH, Figure
from benchmarks.parts import PARTS, Part
from benchmarks.run import Measured, Record
from benchmarks.sizes import SIZES
from benchmarks.targets import TARGETS
from state_ledger.settings import Settings
from state_ledger.sqlite import sqlite3

OF_SEVERAL_STORES = "/-/ledger/"
NOT_ASKED = {
    "/-/find": "leads to a search page",
    "/-/ledger/metrics": "off unless configured",
    "/state/-/export/question/x.csv": "the rows of a canned query",
    "/state/-/ask/x.json": "the JSON of a canned query, by the address that it is known by",
    "/state/-/home": "the home of a store, by the address that it is known by",
    "/-/state-ledger/static/0/x": "files",
    "/-/stores": "the index, by the address that it is known by",
    "/-/databases.json": "Datasette's own list of databases",
}
"""Routes that the growth table leaves out, by an address of each."""


@pytest.fixture(scope="module")
def measured(demo_store: Path) -> str:
    """What the command prints of a few parts on a small store."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = main(["--store", str(demo_store), "--quiet", "--only", "books", "query cost_per_model", "page home"])
    assert status == 0
    return printed.getvalue()


def test_the_report_names_machine_versions_and_store(measured: str) -> None:
    for name in ("Python", "SQLite", "Datasette", "state-ledger", "machine", "149 sessions"):
        assert name in measured


def test_every_target_is_in_the_table_whether_it_was_measured_or_not(measured: str) -> None:
    table = measured.partition("## Growth")[0]
    for target in TARGETS.values():
        rows = [line for line in table.splitlines() if line.startswith(f"| {target.area} | {target.text} |")]
        assert len(rows) == 1
        assert rows[0].endswith("| pass |" if target.key == "books" else "| not measured |")


def test_growth_shows_the_pages_and_queries_that_were_asked_for(measured: str) -> None:
    rows = re.findall(r"^\| (?:query|page) .*$", measured, re.MULTILINE)
    assert [row.split(" |")[0] for row in rows] == ["| query cost_per_model", "| page home"]
    assert re.search(r"\d+\.\d / \d+ ", rows[0]) and re.search(r"\d+\.\d / [\d.]+ kB", rows[1])


def test_every_part_is_listed_and_measures_what_targets_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.partition(": ")[0] for line in capsys.readouterr().out.splitlines()] == list(PARTS)
    assert {target.part for target in TARGETS.values()} <= set(PARTS)
    with pytest.raises(ValueError, match="no target 'speed'"):
        Figure("x", 1.0, 2.0, "ms", "", of="speed")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [(["export*"], ["export", "export memory"]), (["page home", "views"], ["growth", "views"]), (["nothing"], [])],
)
def test_parts_are_chosen_by_patterns(patterns: list[str], names: list[str]) -> None:
    assert [part.name for part in parts.chosen(patterns, "S")] == names


def _figure(key: str, measured: float | None, allowed: float | None = 1.0, name: str = "it") -> Figure:
    return Figure(name, measured, allowed, "ms", "told", of=key)


@pytest.mark.parametrize(
    ("size", "measured", "verdict"),
    [
        ("M", Measured([_figure("rank", 0.5)]), "pass"),
        ("M", Measured([_figure("rank", 0.5), _figure("rank", 1.5)]), "miss"),
        ("S", Measured([_figure("rank", 1.5)]), "not measured"),  # not promised on so small a store
        ("M", Measured([_figure("rank", None)]), "not reached"),
        ("M", Measured(box_s=7.0), "not reached"),
        ("M", Measured(reason="no index of packages"), "not measured"),
        (run.ALONE, Measured([_figure("rank", 1.5)]), "miss"),
    ],
)  # fmt: skip
def test_a_target_is_judged_by_all_its_figures_where_it_is_promised(
    size: str, measured: Measured, verdict: str
) -> None:
    record = Record(size, "small", {"search": measured})
    assert report.verdict(TARGETS["rank"], [record]) == verdict
    row = next(line for line in report.written([record]).splitlines() if TARGETS["rank"].text in line)
    assert row.replace("*", "").endswith(f"| {verdict} |")
    assert bool(report.missed([record])) == (verdict == "miss")


def test_of_many_figures_the_one_nearest_to_its_bound_is_named() -> None:
    figures = [_figure("json", 0.5, name="quick"), _figure("json", 3.0, name="slow"), _figure("json", 0.9, name="fair")]
    assert "S: 2 of 3; most: slow, 3 of 1 ms (× 3.00)" in report.written([Record("S", "", {"json": Measured(figures)})])


def test_a_search_is_held_against_the_same_one_on_the_smaller_store() -> None:
    def record(size: str, ms: float) -> Record:
        return Record(size, "", {"search": Measured([Figure("newest 20, p50: word", ms, None, "ms", "")])})

    assert report.verdict(TARGETS["newest grows"], [record("S", 1.0), record("M", 1.9)]) == "pass"
    assert report.verdict(TARGETS["newest grows"], [record("S", 1.0), record("M", 2.1)]) == "miss"


def _grown(name: str, ms: float | None, out: int | None) -> Figure:
    return Figure(name, ms, None, "ms", "no answer in 60 s" if ms is None else "", of=GROWTH, out=out)


def test_what_grows_faster_than_its_output_is_named() -> None:
    small = [_grown("query more rows", 50, 10), _grown("query as many", 50, 10), _grown("page cheap", 1, 1000),
             _grown("page endless", 900, 1000)]  # fmt: skip
    big = [_grown("query more rows", 500, 100), _grown("query as many", 500, 10), _grown("page cheap", 10, 1000),
           _grown("page endless", None, None)]  # fmt: skip
    records = [Record("S", "", {GROWTH: Measured(small)}), Record("M", "", {GROWTH: Measured(big)})]
    named = re.findall(r"^- (.*)$", report.written(records), re.MULTILINE)
    assert named == ["page endless: not reached on M", "query as many: 500 ms, cost × 10.0, output × 1.0"]


def test_what_does_not_fit_into_its_time_is_said_to_be_unreached(demo_store: Path) -> None:
    def endless(_bench: Bench) -> Iterator[Figure]:
        yield _figure("json", 0.5)
        while True:
            time.process_time()

    part = Part("json", "", endless)
    fresh, _alone = run.run([part], "S", Bench(demo_store), 0.05, quiet=True)
    assert [figure.measured for figure in fresh.parts["json"].figures] == [0.5]
    text = report.written([fresh])
    assert "the others not reached in 0.05 s of CPU" in text and "Ended after 0.05 s of CPU" in text


@pytest.mark.parametrize(
    ("error", "told", "misses"),
    [(NotMeasured("no such program"), "S: no such program", 0), (KeyError("gone"), "failed: KeyError: 'gone'", 1)],
    ids=["not there", "failed"],
)
def test_a_part_that_cannot_be_measured_says_why_and_the_others_go_on(
    demo_store: Path, error: Exception, told: str, misses: int
) -> None:
    def broken(_bench: Bench) -> Iterator[Figure]:
        raise error
        yield

    sound = Part("books", "", lambda _bench: iter([_figure("books", 0.0)]))
    fresh, _alone = run.run([Part("json", "", broken), sound], "S", Bench(demo_store), 5, quiet=True)
    text = report.written([fresh])
    assert told in text and len(report.missed([fresh])) == misses
    assert report.verdict(TARGETS["books"], [fresh]) == "pass"


def test_what_is_kept_is_the_last_figure_of_each_page(tmp_path: Path) -> None:
    for figures in ([_grown("page a", 1, 1), _grown("page b", 1, 1)], [_grown("page b", 2, 2)]):
        run.kept(Record("S", "a store", {GROWTH: Measured(figures, made_with={"day": "today"})}), tmp_path)
    again = Record.read("S", tmp_path)
    assert {figure.name: figure.measured for figure in again.figures()} == {"page a": 1, "page b": 2}
    assert again.store == "a store" and again.parts[GROWTH].made_with == {"day": "today"}


def test_the_report_is_that_of_the_kept_figures() -> None:
    records = [Record.read(name) for name in (*SIZES, run.ALONE)]
    assert any(record.parts for record in records)
    assert Path(run.__file__).with_name("RESULTS.md").read_text(encoding="utf-8") == report.written(records)


def test_every_page_of_a_store_is_in_the_growth_table() -> None:
    sample = growth.Sample("a", "b", "c", "d")
    asked = [*growth.pages("state", date(2026, 11, 28), sample),
             *growth.queries("state", date(2026, 11, 28), sample, Settings())]  # fmt: skip
    addresses = [address.partition("?")[0] for _name, address in asked] + list(NOT_ASKED)
    others = [each for each in pm.get_plugins() if not getattr(each, "__name__", "").startswith("state_ledger.plugins")]
    given = pm.subset_hook_caller("register_routes", remove_plugins=others)(datasette=Datasette([]))
    routes = [route[0] for each in given for route in each if OF_SEVERAL_STORES not in route[0]]
    assert len(routes) > 15
    assert [route for route in routes if not any(re.match(route, address) for address in addresses)] == []


def test_a_store_with_a_longer_past_has_each_row_as_often_and_the_same_books(demo_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "longer.db"
    longer.make(path, demo_store, copies=2, days=90)
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(demo_store)) as source:
        for table in ("sessions", "messages", "session_model_usage"):
            counted = f"SELECT count(*) FROM {table}"
            assert connection.execute(counted).fetchone()[0] == 2 * source.execute(counted).fetchone()[0]
        kinds = "SELECT count(*) FROM sessions WHERE parent_session_id IN (SELECT id FROM sessions)"
        assert connection.execute(kinds).fetchone()[0] == 2 * source.execute(kinds).fetchone()[0]
        # Message ids rise with time from one copy to the next, as in a store that grew.
        last = "SELECT count(*) FROM messages WHERE id > ? AND session_id NOT IN (SELECT id FROM src.sessions)"
        connection.execute("ATTACH ? AS src", (str(demo_store),))
        newest = connection.execute("SELECT max(id) FROM src.messages").fetchone()[0]
        assert connection.execute(last, [newest]).fetchone()[0] == 0
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert connection.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'the'").fetchone()[0] > 0
    assert every_call_once.total(path) == pytest.approx(2 * every_call_once.total(demo_store))


def test_a_store_of_a_size_is_kept_privately_and_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo_store: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[Path] = []

    def copied(path: Path, **_options: object) -> None:
        made.append(path)
        path.write_bytes(demo_store.read_bytes())

    monkeypatch.setattr(store, "make_demo", copied)
    path = store.find_or_make(SIZES["S"])
    assert path == store.find_or_make(SIZES["S"]) and made == [path]
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert f"v{store.VERSION}" in path.name
