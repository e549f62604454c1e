"""Sessions by title and id: folded, literal, newest first, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.search.sessions import folded_name
from tests import books

TITLES = {
    "20260601_120000_ab12cd": "Harbour-Plan",
    "20260602_120000_ef34ab": "harbour plan #2",
    "api:desk/20260603.b032": "ÜBER_die.Brücke",
    "s-4": "50% off: C++ and 'quotes'",
    "s-5": None,
    "s-6": "桂林旅游",
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Sessions with these titles, each a second after the one before."""
    rows = [books.session(id, title=title, started_at=1780315200.0 + n) for n, (id, title) in enumerate(TITLES.items())]
    return books.open_books(books.write(tmp_path_factory.mktemp("named") / "state.db", sessions=rows))


def found(connection: Any, q: str, **parameters: str) -> list[str]:
    return [row["session_id"] for row in questions.ask(connection, "search_sessions", {"q": q, **parameters}).records()]


@pytest.mark.parametrize(
    ("q", "places"),
    [
        ("harbour plan", [1, 0]),
        ("HARBOUR_PLAN", [1, 0]),
        ("harbour.plan", [1, 0]),
        ("r-p", [1, 0]),
        ("20260601 120000", [0]),
        ("20260601-120000-AB", [0]),
        ("über die brücke", [2]),
        ("u\u0308ber", [2]),
        ("desk/20260603", [2]),
        ("50%", [3]),
        ("%", [3]),
        ("C++ and 'quotes'", [3]),
        ("桂林", [5]),
        ("plan harbour", []),
        ("#2", [1]),
        ("*", []),
        ('"', []),
        ("", [5, 4, 3, 2, 1, 0]),
        ("  ", [5, 4, 3, 2, 1, 0]),
    ],
)
def test_titles_and_ids_are_found_without_case_and_with_any_separator(named: Any, q: str, places: list[int]) -> None:
    assert found(named, q) == [list(TITLES)[place] for place in places]


@given(st.text(max_size=60).filter(lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text)))
def test_no_text_is_an_error_and_what_is_found_contains_it(named: Any, text: str) -> None:
    for session_id in found(named, text):
        assert folded_name(text) in folded_name(session_id) or folded_name(text) in folded_name(TITLES[session_id])


@given(st.sampled_from(list(TITLES)), st.integers(0, 30), st.integers(1, 30))
def test_every_part_of_a_title_or_an_id_finds_its_session(
    named: Any, session_id: str, start: int, length: int
) -> None:
    for name in filter(None, (session_id, TITLES[session_id])):
        assert session_id in found(named, name[start : start + length].upper())


def test_pages_hold_every_session_once(named: Any) -> None:
    seen: list[str] = []
    before = ""
    for _ in range(len(TITLES)):
        answer = questions.ask(named, "search_sessions", {"before": before, "limit": "2"})
        seen += [row["session_id"] for row in answer.records()]
        if not answer.truncated:
            break
        before = seen[-1]
    assert seen == list(reversed(TITLES))


def test_sessions_of_the_same_moment_are_paged_too(tmp_path: Path) -> None:
    connection = books.open_books(
        books.write(tmp_path / "state.db", sessions=[books.session(f"s{n}", title="same") for n in range(7)])
    )
    seen: list[str] = []
    while True:
        before = seen[-1] if seen else ""
        answer = questions.ask(connection, "search_sessions", {"q": "SAME", "before": before, "limit": "3"})
        seen += [row["session_id"] for row in answer.records()]
        if not answer.truncated:
            break
    assert seen == sorted(seen, reverse=True) and len(seen) == 7


def test_the_newest_activity_comes_first_and_filters_hold(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("old", title="plan", started_at=1780000000.0, source="telegram", model="acme/M-1"),
            books.session("new", title="plan", started_at=1780315200.0),
        ],
        messages=[books.message("old", 1780400000.0)],
    )
    connection = books.open_books(path)
    assert found(connection, "plan") == ["old", "new"]
    assert found(connection, "plan", source="cli") == ["new"]
    assert found(connection, "plan", model="m-1") == ["old"]


async def test_json_and_csv_answer(tmp_path: Path, make_datasette: Any) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session("s_1", title="A.b")])
    client = (await make_datasette(path)).client
    rows = (await client.get("/state/search_sessions.json?_shape=objects&q=a-B")).json()["rows"]
    assert [row["session_id"] for row in rows] == ["s_1"]
    assert "s_1" in (await client.get("/state/search_sessions.csv?q=S-1")).text
    for q in ("%00", "%22", "%25", "a%00b"):
        for form in ("", ".json", ".csv"):
            assert (await client.get(f"/state/search_sessions{form}?q={q}")).status_code == 200


@given(st.text(st.characters(max_codepoint=127), max_size=12))
def test_stored_bytes_are_folded_like_what_is_typed(text: str) -> None:
    assert folded_name(text.encode()) == folded_name(text)
