"""The stylesheet: contrast of every colour in both schemes."""

from __future__ import annotations

import re

import pytest

from state_ledger.assets import folder
from state_ledger.pages import charts
from state_ledger.pages.transcript_messages import ROLES

CSS = (folder("static") / "ledger.css").read_text(encoding="utf-8")


def scheme(name: str) -> dict[str, str]:
    """The custom properties of one colour scheme, the dark ones laid over the light ones."""
    blocks = re.findall(r":root\s*\{(.*?)\}", CSS, re.DOTALL)
    assert len(blocks) == 2, "one block per scheme"
    colours: dict[str, str] = {}
    for block in blocks[: 1 if name == "light" else 2]:
        colours.update(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block))
    return colours


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def styled_alone(css: str) -> set[str]:
    """The classes that a sheet styles wherever they stand: rules for `.name` and nothing before or after it."""
    plain = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    selectors = [part.strip() for group in re.findall(r"([^{}]+)\{", plain) for part in group.split(",")]
    return {selector[1:] for selector in selectors if re.fullmatch(r"\.[\w-]+", selector)}


def test_a_class_means_one_thing_where_two_sheets_meet() -> None:
    """The frame's sheet is on every transcript: a class that both style alone would wear the rules of both."""
    transcript = (folder("static") / "transcript.css").read_text(encoding="utf-8")
    states = {"live", "compacted", "taken-back", *(role.lower() for role in ROLES)}
    assert styled_alone(CSS) & (styled_alone(transcript) | states) == {"role"}, "who spoke, on both"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_has_aa_contrast_on_every_ground_it_stands_on(name: str) -> None:
    colours = scheme(name)
    pairs = [
        (text, ground)
        for text in ("ink", "muted", "accent", "warning", "danger")
        for ground in ("paper", "surface", "raised")
    ]
    pairs += [("ink", "mark"), ("ink", "warning-soft"), ("accent", "accent-soft"), ("accent", "warning-soft"),
              ("surface", "accent")]  # fmt: skip
    low = {f"{a} on {b}": round(contrast(colours[a], colours[b]), 2) for a, b in pairs
           if contrast(colours[a], colours[b]) < 4.5}  # fmt: skip
    assert not low


@pytest.mark.parametrize("name", ["light", "dark"])
def test_chart_colours_and_control_borders_have_three_to_one(name: str) -> None:
    colours = scheme(name)
    shapes = [f"series-{n}" for n in range(charts.SERIES)] + ["series-other", "rule-strong", "warning"]
    low = {s: round(contrast(colours[s], colours["surface"]), 2) for s in shapes
           if contrast(colours[s], colours["surface"]) < 3}  # fmt: skip
    assert not low
