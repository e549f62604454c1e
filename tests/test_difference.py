"""The difference between what is shown and what was sent: complete, bounded, and text all through."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.pages.difference import difference


def sides(html: str) -> tuple[str, str]:
    """What is shown and what was sent, taken out of the difference again."""
    body = html.removeprefix('<pre class="difference">').removesuffix("</pre>")
    shown = re.sub(r"</?del>", "", re.sub(r"<ins>.*?</ins>", "", body, flags=re.DOTALL))
    sent = re.sub(r"</?ins>", "", re.sub(r"<del>.*?</del>", "", body, flags=re.DOTALL))
    return unescape(shown), unescape(sent)


TEXT = st.text(alphabet="ab <>&\n\"'é桂", max_size=40)


@given(TEXT, TEXT)
def test_both_texts_can_be_read_from_it(shown: str, sent: str) -> None:
    assert sides(difference(shown, sent)) == (shown, sent)


@given(st.text(max_size=30), st.text(max_size=30))
def test_nothing_in_it_is_markup_but_its_own(shown: str, sent: str) -> None:
    assert set(re.findall(r"<[^>]*>", difference(shown, sent))) <= {
        '<pre class="difference">', "</pre>", "<del>", "</del>", "<ins>", "</ins>",
    }  # fmt: skip


def test_words_are_marked_whole() -> None:
    html = difference("the kite flies", "<memory>x</memory> the kite sinks")
    assert "<ins>&lt;memory&gt;x&lt;/memory&gt; </ins>the kite <del>flies</del><ins>sinks</ins>" in html


def test_long_stretches_that_are_the_same_are_left_out() -> None:
    html = difference("word " * 1000 + "a", "word " * 1000 + "b")
    assert "4,200 characters that are the same" in html and len(html) < 1200


@pytest.mark.parametrize(
    ("shown", "sent"),
    [("ab" * 10_000, "ba" * 10_000), ("a b\n" * 5000, "b a\n" * 5000), ("x\n" * 10_000, "y" * 20_000), ("", "z" * 9)],
)
def test_texts_that_would_take_long_are_compared_coarsely(shown: str, sent: str) -> None:
    began = time.process_time()
    html = difference(shown, sent)
    assert time.process_time() - began < 5
    assert "<ins>" in html
