"""Messages of conversations in order, page by page, and where delegates stand among them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.pages.asking import Ask
from state_ledger.pages.transcript import FOLDED, Fold, Transcript, Wanted, all_messages, read_transcript
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection
from state_ledger.transcript import UnknownSession, messages, read_family, read_scope, sent
from state_ledger.transcript.messages import Stretch
from tests import books

SETTINGS = Settings(zone="UTC")
T = 1_790_000_000.0


def said(session: str, key: int, role: str = "user", text: str = "", **others: Any) -> dict[str, Any]:
    return {"id": key, **books.message(session, others.pop("at", T + key), role, content=text or f"m{key}"), **others}


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Connection]:
    def write(**rows: Any) -> Connection:
        return books.open_books(books.write(tmp_path / "state.db", **rows))

    return write


def ids(page: Stretch) -> list[int]:
    return [message.id for message in page.messages]


def read(connection: Connection, kind: str, session: str, **wanted: Any) -> Transcript:
    return read_transcript(Ask(connection, SETTINGS), Wanted(kind, session, "UTC", **wanted))


def test_pages_follow_each_other_without_gap_or_repetition(opened: Any) -> None:
    connection = opened(sessions=[books.session("s")], messages=[said("s", n) for n in range(1, 24)])
    page = messages.first_page(connection, ["s"], 5)
    seen = ids(page)
    assert (page.before, page.after) == (None, ("s", 6))
    while page.after is not None:
        page = messages.page_after(connection, ["s"], ("s", page.messages[-1].id), 5)
        seen += ids(page)
    assert seen == list(range(1, 24))
    page = messages.last_page(connection, ["s"], 5)
    seen = ids(page)
    while page.before is not None:
        page = messages.page_before(connection, ["s"], ("s", page.messages[0].id), 5)
        seen = ids(page) + seen
    assert seen == list(range(1, 24))


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["user", "assistant", "tool"]),
                            st.sampled_from([(1, 0), (0, 1), (0, 0)]), st.integers(0, 3)), max_size=30),
    size=st.integers(1, 6), taken_back=st.booleans(),
)  # fmt: skip
@settings(max_examples=60)
def test_forwards_and_backwards_give_the_messages_of_the_views_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], size: int, taken_back: bool
) -> None:
    path = tmp_path_factory.mktemp("law") / "state.db"
    written = [
        said(session, key, role, str(text), at=T + text, active=state[0], compacted=state[1])
        for key, (session, role, state, text) in enumerate(rows, 1)
    ]
    connection = books.open_books(books.write(path, sessions=map(books.session, "ab"), messages=written))
    shown = "" if taken_back else "WHERE state <> 'taken back'"
    expected = [row[0] for row in connection.execute(f"SELECT id FROM ledger_messages {shown} ORDER BY session_id, id")]
    chain, options = ["a", "b"], {"taken_back": taken_back}
    page = messages.first_page(connection, chain, size, **options)
    forwards = [page]
    while page.after is not None:
        last = page.messages[-1]
        page = messages.page_after(connection, chain, (last.session_id, last.id), size, **options)
        forwards.append(page)
    page = messages.last_page(connection, chain, size, **options)
    backwards = [page]
    while page.before is not None:
        first = page.messages[0]
        page = messages.page_before(connection, chain, (first.session_id, first.id), size, **options)
        backwards.insert(0, page)
    assert [key for page in forwards for key in ids(page)] == expected
    assert [key for page in backwards for key in ids(page)] == expected
    for key in expected[:: max(1, len(expected) // 4)]:
        place = messages.locate(connection, key)
        assert place is not None
        around = ids(messages.page_around(connection, chain, place, size, **options))
        at = expected.index(around[0])
        assert key in around and around == expected[at : at + len(around)]
    connection.close()


def test_order_is_by_id_whatever_the_times_say(opened: Any) -> None:
    connection = opened(
        sessions=[books.session("s")],
        messages=[said("s", 1, at=T + 9), said("s", 2, at=T), said("s", 3, at=(T + 5) * 1000), said("s", 4, at=0)],
    )
    page = messages.first_page(connection, ["s"], 10)
    assert ids(page) == [1, 2, 3, 4]
    assert [message.timestamp for message in page.messages] == [T + 9, T, T + 5, None]


def test_a_page_ends_after_the_results_of_its_last_call(opened: Any) -> None:
    calls = json.dumps([{"id": f"c{n}", "function": {"name": "t", "arguments": "{}"}} for n in (1, 2)])
    connection = opened(
        sessions=[books.session("s")],
        messages=[
            said("s", 1), said("s", 2, "assistant", tool_calls=calls), said("s", 3, "tool", tool_call_id="c1"),
            said("s", 4, "tool", tool_call_id="c2"), said("s", 5, "assistant"),
        ],
    )  # fmt: skip
    assert ids(messages.first_page(connection, ["s"], 2)) == [1, 2, 3, 4]
    assert ids(messages.page_before(connection, ["s"], ("s", 5), 1)) == [2, 3, 4]
    assert ids(messages.page_after(connection, ["s"], ("s", 4), 2)) == [5]


def test_each_logical_message_comes_once_with_its_state(opened: Any) -> None:
    connection = opened(
        sessions=[books.session("s")],
        messages=[
            said("s", 1, text="old", active=0, compacted=1),
            said("s", 2, text="kept", at=T, active=0, compacted=1),
            said("s", 3, text="summary"),
            said("s", 4, text="kept", at=T),
            said("s", 5, text="undone", active=0),
        ],
    )
    page = messages.first_page(connection, ["s"], 10)
    assert [(m.id, m.state) for m in page.messages] == [(1, "compacted"), (2, "live"), (3, "live")]
    assert messages.locate(connection, 4) == ("s", 2)
    everything = messages.first_page(connection, ["s"], 10, taken_back=True)
    assert [(m.id, m.state) for m in everything.messages][-1] == (5, "taken back")


def family_rows() -> dict[str, Any]:
    """r1 -> r2 by compression; d1 delegated by r1, d2 delegated by d1, d1b continues d1; b branches off r2."""
    delegate = lambda parent: json.dumps({"_delegate_from": parent})  # noqa: E731
    call = json.dumps([{"id": "c", "function": {"name": "delegate_task", "arguments": "{}"}}])
    return {
        "sessions": [
            books.session("r1", started_at=T, end_reason="compression", ended_at=T + 50),
            books.session("r2", started_at=T + 51, parent_session_id="r1"),
            books.session("d1", started_at=T + 12, parent_session_id="r1", model_config=delegate("r1"),
                          end_reason="compression"),
            books.session("d1b", started_at=T + 30, parent_session_id="d1", model_config=delegate("r1")),
            books.session("d2", started_at=T + 15, parent_session_id="d1", model_config=delegate("d1")),
            books.session("b", started_at=T + 99, parent_session_id="r2",
                          model_config=json.dumps({"_branched_from": "r2"})),
            books.session("apart", started_at=T),
        ],
        "usage": [books.call(name, estimated_cost_usd=cost / 8, api_call_count=1, input_tokens=100)
                  for name, cost in (("r1", 1), ("r2", 2), ("d1", 4), ("d1b", 8), ("d2", 16), ("b", 32))],
        "messages": [
            said("r1", 1, at=T + 1), said("r1", 2, "assistant", at=T + 10, tool_calls=call),
            said("r1", 3, "tool", at=T + 20, tool_call_id="c"), said("r1", 4, "assistant", at=T + 40),
            said("d1", 5, at=T + 12), said("d1", 6, "assistant", at=T + 14, tool_calls=call),
            said("d1b", 7, at=T + 31), said("d2", 8, at=T + 16), said("r2", 9, at=T + 52), said("b", 10, at=T + 100),
        ],
    }  # fmt: skip


def test_a_family_is_the_work_and_what_branched_off_it(opened: Any) -> None:
    connection = opened(**family_rows())
    for name in ("r1", "r2", "d1", "d1b", "d2"):
        family = read_family(connection, name)
        assert family is not None
        assert {node.session_id for node in family.work} == {"r1", "r2", "d1", "d1b", "d2"}
        assert set(family.nodes) == {"r1", "r2", "d1", "d1b", "d2", "b"}
    branch = read_family(connection, "b")
    assert branch is not None
    assert [node.session_id for node in branch.work] == ["b"] and branch.own.parent == "r2"
    assert read_family(connection, "nobody") is None


def test_scopes_are_a_session_its_conversation_and_its_work(opened: Any) -> None:
    connection = opened(**family_rows())
    assert read_scope(connection, "session", "r2").chain_ids == ["r2"]
    assert read_scope(connection, "conversation", "r2").chain_ids == ["r1", "r2"]
    work = read_scope(connection, "work", "d2")
    assert (work.id, work.chain_ids, len(work.members)) == ("r1", ["r1", "r2"], 5)
    with pytest.raises(UnknownSession, match="no session named 'x'"):
        read_scope(connection, "work", "x")


def test_costs_are_those_of_the_scope(opened: Any) -> None:
    connection = opened(**family_rows())
    assert read(connection, "session", "r2").sums.cost_usd == 2 / 8
    assert read(connection, "conversation", "r2").sums.cost_usd == 3 / 8
    assert read(connection, "work", "r2").sums.cost_usd == 31 / 8
    assert read(connection, "work", "b").sums.cost_usd == 32 / 8


def test_delegates_are_folded_in_under_the_message_that_called_them(opened: Any) -> None:
    connection = opened(**family_rows())
    work = read(connection, "work", "r1")
    assert ids(work.page) == [1, 2, 3, 4, 9]
    [(message, [fold])] = work.folds.items()
    assert (message, fold.session_id, ids(fold.page)) == (2, "d1", [5, 6, 7])
    [(inner_message, [inner])] = fold.delegates.items()
    assert (inner_message, inner.session_id, ids(inner.page)) == (6, "d2", [8])
    card = read(connection, "session", "r1").folds
    assert [(key, [each.session_id for each in folds]) for key, folds in card.items()] == [(2, ["d1"])]


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_a_delegate_stands_on_exactly_one_page(opened: Any, size: int) -> None:
    rows = family_rows()
    rows["messages"][1] |= {"active": 0}  # the call was taken back
    connection = opened(**rows)
    found, page = [], read(connection, "conversation", "r1", size=size)
    while True:
        found += [fold.session_id for folds in page.folds.values() for fold in folds]
        if page.page.after is None:
            break
        page = read(connection, "conversation", "r1", size=size, after=page.page.messages[-1].id)
    assert found == ["d1"]


def test_a_message_opens_with_its_surroundings_wherever_it_is(opened: Any) -> None:
    connection = opened(**family_rows())
    here = read(connection, "conversation", "r1", message=9, size=2)
    assert (here.target, ids(here.page)[-1]) == (9, 9)
    inside = read(connection, "work", "r1", message=8)
    assert inside.target == 8 and 8 in {message.id for message in all_messages(inside)}
    outer: Fold = inside.folds[2][0]
    assert outer.opened and outer.delegates[6][0].opened
    other = read(connection, "session", "r1", message=9)
    assert (other.target, other.elsewhere) == (None, ("r2", 9))
    assert read(connection, "session", "r1", message=999).missing == 999
    assert read(connection, "session", "r1", after=9).elsewhere == ("r2", 9)


def test_a_delegate_of_many_messages_is_folded_in_by_its_first_ones(opened: Any) -> None:
    rows = family_rows()
    rows["messages"] += [said("d2", key, at=T + 16 + key) for key in range(100, 190)]
    work = read(opened(**rows), "work", "r1")
    inner = work.folds[2][0].delegates[6][0]
    assert len(inner.page.messages) == FOLDED and inner.page.after is not None


def test_loops_and_missing_parents_are_read_like_any_other(opened: Any) -> None:
    connection = opened(
        sessions=[
            books.session("x", parent_session_id="y", end_reason="compression"),
            books.session("y", parent_session_id="x", end_reason="compression"),
            books.session("z", parent_session_id="gone"),
            books.session("own", parent_session_id="own"),
        ],
        messages=[said("x", 1), said("y", 2), said("z", 3), said("own", 4)],
    )
    for name in ("x", "y", "z", "own"):
        for kind in ("session", "conversation", "work"):
            transcript = read(connection, kind, name)
            assert name in {node.session_id for node in transcript.scope.members}
    family = read_family(connection, "x")
    assert family is not None and {node.trouble for node in family.work} == {"loop"}
    lone = read_family(connection, "z")
    assert lone is not None and lone.own.trouble == "missing parent"


def test_a_chain_of_thousands_is_cut_and_says_so(opened: Any) -> None:
    count = 1500
    sessions = [
        books.session(f"s{n:05}", parent_session_id=f"s{n - 1:05}" if n else None, end_reason="compression")
        for n in range(count)
    ]
    connection = opened(sessions=sessions, messages=[said("s01400", 1)])
    family = read_family(connection, "s01400")
    assert family is not None and family.cut and "s01400" in family.nodes


def test_the_share_sent_verbatim_and_the_first_that_diverges(opened: Any) -> None:
    connection = opened(
        sessions=[books.session("a"), books.session("b")],
        messages=[said("a", 1), said("a", 2, api_content="x"), said("b", 3, api_content="y"), said("b", 4),
                  said("b", 5, active=0, api_content="z")],
    )  # fmt: skip
    told = sent.read_sent(connection, ["b", "a"])
    assert (told.messages, told.verbatim, told.share, told.first) == (4, 2, 0.5, ("b", 3))
    assert sent.read_sent(connection, ["a"]).first == ("a", 2)
    assert sent.read_sent(connection, []).share is None
    both = sent.read_both(connection, 2)
    assert both is not None and (both[0].shown, both[1].shown) == ("m2", "x")
    assert sent.read_both(connection, 1) is None


def test_a_store_that_does_not_record_what_was_sent_claims_nothing(opened: Any) -> None:
    connection = opened(
        sessions=[books.session("s")], messages=[said("s", 1)], without=[("messages", "api_content")]
    )  # fmt: skip
    told = sent.read_sent(connection, ["s"])
    assert (told.messages, told.verbatim, told.share, told.first) == (1, None, None, None)
    assert messages.first_page(connection, ["s"], 1).messages[0].sent_verbatim


def test_content_is_decoded_into_parts_with_images_as_placeholders(opened: Any) -> None:
    """Case 16."""
    parts = [
        {"type": "text", "text": "harbour photo"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "\u6842\u6797\u65c5\u6e38"},
    ]
    connection = opened(
        sessions=[books.session("s")],
        messages=[said("s", 1, text="\x00json:" + json.dumps(parts)), said("s", 2, text="json:[1]"),
                  said("s", 3, text="\x00json:[{broken")],
    )  # fmt: skip
    first, second, third = messages.first_page(connection, ["s"], 9).messages
    assert first.parts is not None
    assert [(kind, text.shown) for kind, text in first.parts] == [
        ("text", "harbour photo"), ("image_url", "[image: image/png, 3 bytes]"), ("text", "桂林旅游"),
    ]  # fmt: skip
    assert (second.parts, second.text.shown) == (None, "json:[1]")
    assert (third.parts, third.text.shown) == (None, "[{broken") and third.problem


def test_long_texts_are_cut_and_their_length_is_kept(opened: Any) -> None:
    connection = opened(
        sessions=[books.session("s")],
        messages=[said("s", 1, text="x" * 90_000, reasoning="r" * 90_000, api_content="y" * 90_000)],
    )
    [message] = messages.first_page(connection, ["s"], 1).messages
    assert (len(message.text.shown), message.text.length, message.bytes) == (20_000, 90_000, 90_000)


def test_the_first_page_reads_no_more_of_a_long_session_than_of_a_short_one(opened: Any) -> None:
    """Counted in messages that are decoded: the work that grows with a message's size."""
    rows = [said("long", n) for n in range(1, 15_001)] + [said("short", n) for n in range(20_001, 20_201)]
    connection = opened(sessions=[books.session("long"), books.session("short")], messages=rows)
    decoded: dict[str, int] = {}
    for name in ("long", "short"):
        count = 0

        def text(stored: object) -> str:
            nonlocal count
            count += 1
            return str(stored)

        connection.create_function("message_text", 1, text)
        assert len(messages.first_page(connection, [name], 50).messages) == 50
        assert len(messages.page_around(connection, [name], (name, rows[-1]["id"] - 90 if name == "short" else 7000),
                                        50).messages) == 50  # fmt: skip
        decoded[name] = count
    assert decoded["long"] == decoded["short"] <= 120
