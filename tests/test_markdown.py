"""Markdown kept by the hash of its text: bounded, the same the second time, and within its time."""

from __future__ import annotations

import re
import threading

from hypothesis import given
from hypothesis import strategies as st

from state_ledger import markdown
from state_ledger.markdown import Cache, Page, lowered, render, softened


def test_the_second_time_comes_from_memory() -> None:
    cache = Cache()
    first = cache.render("# x\n\n*y*", max_brackets=200)
    assert cache.find("# x\n\n*y*", max_brackets=200) == (True, first)
    assert cache.find("# x\n\n*y*", max_brackets=100) == (False, None), "another limit is another answer"
    assert cache.render("# x\n\n*y*", max_brackets=200) is first


def test_what_is_too_costly_is_remembered_as_such() -> None:
    cache = Cache()
    assert cache.render("[" * 500, max_brackets=200) is None
    assert cache.find("[" * 500, max_brackets=200) == (True, None)


def test_the_cache_is_bounded_and_forgets_what_was_not_used_for_longest() -> None:
    cache = Cache(most_bytes=20_000)
    for number in range(200):
        cache.render(f"text {number} " + "word " * 50, max_brackets=200)
        cache.render("text 0 " + "word " * 50, max_brackets=200)
        assert cache.bytes <= 20_000
    assert 10 < len(cache) < 100
    assert cache.find("text 0 " + "word " * 50, max_brackets=200)[0]
    assert not cache.find("text 1 " + "word " * 50, max_brackets=200)[0]


def test_several_threads_may_use_it() -> None:
    cache = Cache(most_bytes=5_000)
    threads = [
        threading.Thread(target=lambda: [cache.render(f"*{n % 30}*", max_brackets=9) for n in range(300)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.bytes <= 5_000
    assert sum(markdown._size(html) for html in cache._kept.values()) == cache.bytes


def test_a_page_out_of_time_shows_text_as_it_is_but_for_what_is_known() -> None:
    cache = Cache()
    cache.render("*known*", max_brackets=200)
    page = Page(max_brackets=200, budget_s=-1.0, cache=cache)
    assert "<em>known</em>" in page("*known*")
    assert page("*new* <b>") == '<pre class="ledger-plain">*new* &lt;b&gt;</pre>'
    assert page.unrendered == 1
    assert page("[" * 500).startswith("<pre") and page.unrendered == 2
    assert Page(max_brackets=200, budget_s=9.0, cache=cache)("[" * 501).startswith("<pre")


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 5))
def test_headings_never_skip_a_level_of_the_page(levels: list[int], under: int) -> None:
    html = render("\n\n".join("#" * level + " x" for level in levels), max_brackets=200)
    assert html is not None
    found = [int(level) for level in re.findall(r"<h(\d)>", lowered(html, under))]
    assert len(found) == len(levels) and min(found) > under
    assert all(after <= before + 1 for before, after in zip([under, *found], found, strict=False))
    assert lowered(html, under).count("<h") == lowered(html, under).count("</h")


def test_endless_words_may_be_broken_and_nothing_else_is_touched() -> None:
    html = render("[x](https://ok.example/" + "a" * 1500 + ") " + "&amp;" * 400 + "b" * 1500, max_brackets=200)
    assert html is not None
    soft = softened(html)
    assert soft.replace("<wbr>", "") == html and soft.count("<wbr>") >= 7
    assert all("<wbr>" not in tag for tag in re.findall(r"<a [^>]*>", soft))
    assert not re.search(r"&\w*<wbr>\w*;", soft)
    assert softened("<p>short words</p>") == "<p>short words</p>"


def test_languages_of_code_are_words_and_nothing_else() -> None:
    def language(name: str) -> list[str]:
        return re.findall(r"<small>(.*?)</small>", render(f"```{name}\nx\n```", max_brackets=200) or "")

    assert [language(name) for name in ("python", "c++", "objective-c", "f#")] == [
        ["python"], ["c++"], ["objective-c"], ["f#"],
    ]  # fmt: skip
    assert language('"><script>') == [] and language("x" * 80) == []


def test_a_link_that_may_lead_nowhere_is_no_link() -> None:
    assert render("[go](javascript:alert(1)) [ok](https://ok.example)", max_brackets=200) == (
        '<p>go <a href="https://ok.example" rel="nofollow noopener noreferrer">ok</a></p>'
    )
