"""Charts: well-formed, accessible, honest about gaps, legible at any number of days."""

from __future__ import annotations

from datetime import date, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from state_ledger.pages import charts
from state_ledger.pages.charts import Bar, Segment

SVG = "{http://www.w3.org/2000/svg}"


def parse(svg: str) -> ElementTree.Element:
    """The chart as a tree; raises if it is not well-formed."""
    root = ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return root if root.tag == f"{SVG}svg" else root[-1]


def days(count: int, cost: float | None = 1.0) -> list[Bar]:
    first = date(2025, 10, 20)
    return [
        Bar(
            (first + timedelta(days=n)).isoformat(),
            [Segment("alpha", cost, 0, f"/s?day={n}")],
            f"/d?day={n}",
        )
        for n in range(count)
    ]


def stacked(bars: list[Bar]) -> ElementTree.Element:
    return parse(charts.stacked_bars(bars, name="c", title="Cost", description="Dollars per day."))


@pytest.mark.parametrize("count", [1, 2, 30, 90, 400])
def test_every_day_has_its_bar_and_at_most_eight_labels(count: int) -> None:
    chart = stacked(days(count))
    pieces = [rect for rect in chart.iter(f"{SVG}rect") if rect.get("class") == "series-0"]
    assert len(pieces) == count
    labels = [text for text in chart.iter(f"{SVG}text") if "day" in (text.get("class") or "").split()]
    assert 1 <= len(labels) <= 8
    narrow = [text for text in labels if "roomy" not in (text.get("class") or "")]
    assert len(narrow) <= 4


def test_a_change_of_year_is_printed_on_the_axis() -> None:
    chart = stacked(days(90))
    labels = [t.text or "" for t in chart.iter(f"{SVG}text") if "day" in (t.get("class") or "")]
    assert sum("2025" in label for label in labels) == 1
    assert sum("2026" in label for label in labels) == 1


def test_bars_stand_side_by_side_inside_the_plot() -> None:
    rects = [r for r in stacked(days(400)).iter(f"{SVG}rect") if r.get("class") == "series-0"]
    right = 0.0
    for rect in rects:
        left = float(rect.attrib["x"].rstrip("%"))
        assert left >= right - 0.01
        right = left + float(rect.attrib["width"].rstrip("%"))
    assert right <= 100.01


def test_stack_height_is_proportional_to_the_sum() -> None:
    bars = [
        Bar("2026-01-01", [Segment("a", 3.0, 0), Segment("b", 1.0, 1)]),
        Bar("2026-01-02", [Segment("a", 2.0, 0)]),
    ]
    heights = {
        (r.get("class"), r.attrib["x"]): float(r.attrib["height"])
        for r in stacked(bars).iter(f"{SVG}rect")
        if (r.get("class") or "").startswith("series")
    }
    first = [h for (name, x), h in heights.items() if float(x.rstrip("%")) < 50]
    second = [h for (name, x), h in heights.items() if float(x.rstrip("%")) > 50]
    assert sum(first) == pytest.approx(2 * sum(second), abs=0.05)


def test_an_unknown_amount_is_a_gap_with_a_word_and_never_a_zero() -> None:
    svg = charts.stacked_bars(
        [Bar("2026-01-01", [Segment("a", None, 0)], note="3 calls of unknown cost"),
         Bar("2026-01-02", [Segment("a", 1.0, 0)])],
        name="c", title="t", description="d",
    )  # fmt: skip
    assert "1 Jan 2026: unknown; 3 calls of unknown cost" in svg
    assert "$0.00" not in svg
    assert len([c for c in parse(svg).iter(f"{SVG}circle") if c.get("class") == "ring"]) == 1


def test_a_day_without_usage_keeps_its_place_and_says_so() -> None:
    chart = stacked([Bar("2026-01-01"), *days(1)])
    titles = [t.text for t in chart.iter(f"{SVG}title")]
    assert "1 Jan 2026: no usage" in titles


@pytest.mark.parametrize(
    "svg",
    [
        charts.stacked_bars([], name="c", title="t", description="d"),
        charts.stacked_bars([Bar("2026-01-01")], name="c", title="t", description="d"),
        charts.horizontal_bars([], name="c", title="t", description="d"),
        charts.ratio_line([], name="c", title="t", description="d"),
        charts.ratio_line([("2026-01-01", None)], name="c", title="t", description="d"),
    ],
)
def test_nothing_to_draw_is_said_in_words(svg: str) -> None:
    chart = parse(svg)
    said = [t.text or "" for t in chart.iter(f"{SVG}text")]
    assert len(said) == 1 and said[0].startswith("No ")


def test_each_piece_leads_to_its_sessions_and_links_do_not_nest() -> None:
    chart = stacked(days(3))
    anchors = list(chart.iter(f"{SVG}a"))
    assert {a.get("href") for a in anchors} == {f"/{kind}?day={n}" for kind in "sd" for n in range(3)}
    for anchor in anchors:
        assert not list(anchor.iter(f"{SVG}a"))[1:]
        assert anchor.get("tabindex") == "-1"


def test_ratio_line_breaks_at_a_gap_and_stays_within_the_axis() -> None:
    chart = parse(
        charts.ratio_line(
            [("2026-01-01", 0.2), ("2026-01-02", 0.4), ("2026-01-03", None), ("2026-01-04", 0.9)],
            name="c", title="t", description="d",
        )
    )  # fmt: skip
    trend = [line for line in chart.iter(f"{SVG}line") if line.get("class") == "trend"]
    assert len(trend) == 1
    assert len([c for c in chart.iter(f"{SVG}circle") if c.get("class") == "dot"]) == 3
    assert "3 Jan 2026: no data" in [t.text for t in chart.iter(f"{SVG}title")]


def test_rows_are_scaled_to_the_longest_and_a_cent_stays_visible() -> None:
    svg = charts.horizontal_bars(
        [Bar("big", [Segment("estimated", 1000.0, 0)]), Bar("tiny", [Segment("estimated", 0.01, 0)])],
        name="c", title="t", description="d",
    )  # fmt: skip
    widths = [
        float(r.attrib["width"].rstrip("%")) for r in parse(svg).iter(f"{SVG}rect")
        if r.get("class") == "series-0"
    ]  # fmt: skip
    assert widths == [100.0, 0.2]


def test_sparkline_leaves_out_what_is_not_known() -> None:
    chart = parse(charts.sparkline([1.0, None, 0.0, 2.0], name="s", title="t", description="d"))
    assert len([r for r in chart.iter(f"{SVG}rect")]) == 2


def test_a_chart_with_links_is_a_figure_that_its_caption_describes_and_no_image() -> None:
    """An image has no inside for those who do not see it: links may not be in one."""
    bars = days(2)
    figure = ElementTree.fromstring(charts.stacked_bars(bars, name="c", title="Cost", description="Dollars per day."))
    caption, drawing = figure
    assert (figure.tag, caption.tag, caption.text) == ("figure", "figcaption", "Cost. Dollars per day.")
    assert drawing.get("aria-hidden") == "true" and drawing.get("role") is None
    assert {link.get("tabindex") for link in drawing.iter("a")} == {"-1"}


def test_a_chart_without_links_is_one_named_and_described_image() -> None:
    chart = stacked([Bar("2026-01-01", [Segment("alpha", 1.0)])])
    assert chart.get("role") == "img"
    named = (chart.get("aria-labelledby") or "").split()
    ids = {element.get("id"): element.text for element in chart.iter() if element.get("id")}
    assert [ids[name] for name in named] == ["Cost", "Dollars per day."]


@given(st.text(), st.text(), st.one_of(st.none(), st.floats()), st.integers(-3, 40))
@example("", "", 5e-324, 0)
@example("", "", 1.7e308, 0)
def test_any_text_and_any_number_gives_a_well_formed_chart(
    label: str, name: str, value: float | None, series: int
) -> None:
    bars = [Bar(label, [Segment(name, value, series, f"/x?y={name}")], f"/z?{label}", note=name)]
    for svg in (
        charts.stacked_bars(bars, name="c", title=name, description=label),
        charts.horizontal_bars(bars, name="c", title=name, description=label),
        charts.ratio_line([(label, value)], name="c", title=name, description=label),
        charts.sparkline([value], name="c", title=name, description=label),
    ):
        tree = parse(svg)
        for element in tree.iter():
            assert element.get("style") is None and not any(key.startswith("on") for key in element.attrib)
            for key in ("height", "width", "r"):
                size = (element.get(key) or "0").rstrip("%")
                assert 0 <= float(size) < 1e9


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_ticks_are_few_round_and_cover_the_maximum(maximum: float) -> None:
    ticks = charts.nice_ticks(maximum)
    assert ticks[0] == 0 and ticks[-1] >= maximum * 0.999
    assert 2 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))


def test_text_is_escaped() -> None:
    svg = charts.horizontal_bars(
        [Bar("<svg onload=alert(1)>", [Segment('"><script>', 1.0, 0, '/x?"><script>')])],
        name="c", title="<b>", description="&",
    )  # fmt: skip
    assert "<script" not in svg and "<b>" not in svg and "<svg onload" not in svg
