"""The shape of a word list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """What people talk about: things, places, and sentence patterns of this theme alone."""

    things: tuple[str, ...]
    places: tuple[str, ...]
    titles: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Language:
    """A language: patterns that fit every theme, and its themes.

    space: what stands between two sentences.
    summary: how a summary of the earlier conversation begins.
    """

    code: str
    space: str
    summary: str
    titles: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    steps: tuple[str, ...]
    themes: dict[str, Theme]
