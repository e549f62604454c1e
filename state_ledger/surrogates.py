"""Lone surrogates: what Python strings can hold and UTF-8, hence SQLite, cannot (accounting rule 17)."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def scrub(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, the replacement character."""
    return text if text.isascii() else _SURROGATE.sub("�", text)


def scrub_optional(text: str | None) -> str | None:
    """`scrub` for a column that may be NULL; what is no text is passed through."""
    return scrub(text) if isinstance(text, str) else text
