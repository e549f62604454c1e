"""What people type into the search box and what stores hold as content: read without ever complaining, and safely."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import content
from state_ledger.redact import Redactor, redact
from state_ledger.search import query
from state_ledger.search.term import Term
from state_ledger.sqlite import sqlite3
from tests.fuzz import examples
from tests.secrets_corpus import TRUE


def law(number: int) -> settings:
    return settings(max_examples=examples(number), suppress_health_check=list(HealthCheck))


# -- the language of queries -----------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["AND", "OR", "NOT", "and", "NEAR", "(", ")", "((", "))", '"', '""', "*", "**", "-", "a", "b*", "c d", "main()",
    "(x", "y)", "桂林",
     "\x00", "\ud83d", "don't", "a:b", "{", "^", "col:", "\u202e", '"a b"*', "NOT(", ")OR(", "\u3000", "'", "--",
     "x" * 300]
) | st.text(max_size=6)  # fmt: skip
TYPED = st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=40)


def written(node: query.Node) -> str:
    """A query in its longest form, which leaves nothing to be understood."""
    if isinstance(node, Term):
        return f'"{node.text}"{"*" if node.prefix else ""}'
    if isinstance(node, query.Not):
        return f"NOT {_within(node.part, query.And, query.Or)}"
    if isinstance(node, query.And):
        return " AND ".join(_within(part, query.Or, query.And) for part in node.parts)
    return " OR ".join(_within(part, query.Or) for part in node.parts)


def _within(node: query.Node, *kinds: type) -> str:
    return f"( {written(node)} )" if isinstance(node, kinds) else written(node)


@law(30)
@given(TYPED, st.booleans())
def test_whatever_is_typed_means_the_same_when_it_is_written_out(typed: str, edges: bool) -> None:
    found = query.parse(typed, edges_in_any_case=edges)
    if found.root is None:
        assert found.hints, "nothing is looked for, and nobody says why"
        return
    assert all(term.text.strip() and "\x00" not in term.text for term in found.terms)
    assert set(found.wanted) <= set(found.terms) and found.wanted
    canonical = written(found.root)
    if len(canonical) <= query.MAX_CHARACTERS:
        assert query.parse(canonical).root == found.root


@law(20)
@given(st.integers(1, 3000), st.sampled_from(["(", "( a ", "NOT ", "NOT ( ", "a OR ", ") ", '" ', "* ", "(a AND "]))
def test_depth_and_length_of_a_query_have_an_end(times: int, piece: str) -> None:
    query.parse(piece * times)
    query.parse(piece * times + "a" + " )" * times)


# -- content ---------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()),
max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "text", "image_url", "source", "content", "data", "media_type", "url", "refusal",
        "image"])
        | st.text(st.characters(exclude_categories=()), max_size=4),
        inner | st.sampled_from(["text", "image", "data:image/png;base64,AAAA", "data:", "tool_result"]),
        max_size=4,
    ),
    max_leaves=10,
)
STORED = (
    JSON.map(lambda value: content.PREFIX + json.dumps(value))
    | st.text(max_size=20).map(lambda text: content.PREFIX + text)
    | st.binary(max_size=20).map(lambda raw: content.PREFIX.encode() + raw)
    | st.text(max_size=20) | st.binary(max_size=30)
    | st.sampled_from([content.PREFIX + "[" * 3000, content.PREFIX + '{"content":[' * 400 + "1" + "]}" * 400,
                       content.PREFIX + "[" * 400 + "]" * 400, content.PREFIX + "9" * 5000,
                       content.PREFIX + '"\\ud83d"',
                       content.PREFIX + '{"content":[' * 60 + '"\\udc00"' + "]}" * 60, content.PREFIX * 3, "\x00", 3,
                       2.5, True])
)  # fmt: skip


@law(50)
@given(STORED)
def test_any_content_is_shown_as_text_that_can_be_sent(stored: Any) -> None:
    shown = content.decode(stored)
    if not isinstance(stored, str) or stored.startswith(content.PREFIX):
        shown.text.encode("utf-8")
    if isinstance(stored, str) and not stored.startswith(content.PREFIX):
        assert shown.text == stored
    assert shown.parts is None or all(isinstance(part, dict) for part in shown.parts)
    for part in shown.parts or ():
        kind, text = content.shown(part)
        assert isinstance(kind, str) and isinstance(text, str)
    restored = content.restore(stored)
    if isinstance(stored, str) and restored is not stored:
        json.dumps(restored, ensure_ascii=False).encode("utf-8")


@law(30)
@given(JSON)
def test_any_value_can_be_stored_and_comes_back_the_same_from_then_on(value: Any) -> None:
    stored = content.encode(value)
    with sqlite3.connect(":memory:") as connection:
        (held,) = connection.execute("SELECT ?", (stored,)).fetchone()
    assert held == stored
    again = content.encode(content.restore(held))
    assert again == stored or again != again


SECRETS = st.sampled_from([around.format(secret) for _kind, around, secret in TRUE])


@law(30)
@given(STORED | SECRETS, st.booleans(), st.booleans())
def test_redaction_comes_to_an_end_and_changes_nothing_more_the_second_time(
    stored: Any, emails: bool, homes: bool
) -> None:
    text = content.decode(stored).text
    once, _report = redact(text, emails=emails, home_paths=homes)
    assert redact(once, emails=emails, home_paths=homes)[0] == once


@law(30)
@given(
    st.sampled_from(TRUE), JSON, st.sampled_from(["\n", "\n\n", " \n", "\r\n", "\n\u202e"]), st.sampled_from(["\n",
    "\n.", "\r\n"])
)  # fmt: skip
def test_no_company_of_a_secret_lets_it_through(known: tuple[str, str, str], other: Any, before: str,
after: str) -> None:
    _kind, around, secret = known
    company = json.dumps(other)
    text = f"{company}{before}{around.format(secret)}{after}{company}"
    assert secret not in redact(text)[0]
    held = {"a": [other, {"text": text}], "text": around.format(secret)}
    assert secret not in json.dumps(Redactor().value(held), ensure_ascii=False)


@pytest.mark.parametrize("escape", ["\\ud83d", "\\uDC00", "\\ud83d\\ud83d", "\\\\ud83d\\udc00"])
def test_a_lone_surrogate_that_json_spells_out_is_replaced_and_a_pair_is_not(escape: str) -> None:
    assert "\ufffd" in content.decode(f'\x00json:["a{escape}"]').text
    assert content.decode('\x00json:["\\ud83d\\ude00"]').text == "😀"
