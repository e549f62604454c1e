"""Secrets in text, replaced by what they were: `[redacted: openai key]`.

Rules of our own and no detector from elsewhere. The maintained one, detect-secrets 1.5, is made for code:
line by line, it found 50 of the 93 secrets in the corpus of the tests, took 19 of the 99 other texts for
secrets, and needed 0.8 s for 17 kB of prose, where an export has a hundred megabytes.
"""

from __future__ import annotations

import re
from typing import Any

from state_ledger.redact.report import Report
from state_ledger.redact.rules import EMAIL, HOME, RULES, Rule

__all__ = ["Redactor", "Report", "decode", "placeholder", "redact"]

DEEPEST = 200
"""Deepest nesting of a value that is walked; what lies deeper is replaced as a whole."""


def placeholder(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"[redacted: {kind}]"


def redact(text: str, *, emails: bool = False, home_paths: bool = False) -> tuple[str, Report]:
    """The text without its secrets, and what was replaced.

    Costs little where there is nothing to find: text without any of the words that secrets come with
    is given back as it is. Redacting twice changes nothing more.
    """
    redactor = Redactor(emails=emails, home_paths=home_paths)
    return redactor.text(text), redactor.report


def decode(stored: bytes) -> str:
    """Stored text as it may be shown: what is not UTF-8 and what is secret replaced. A `text_factory` of SQLite."""
    return _shown.text(str(stored, "utf-8", "replace"))


class Redactor:
    """Redacts the texts of one page or export and keeps count.

    emails: whether addresses are replaced too. home_paths: whether the user's name in paths is.
    report: what was replaced so far.
    """

    def __init__(self, *, emails: bool = False, home_paths: bool = False) -> None:
        self.report = Report()
        self._rules = (*RULES, *((EMAIL,) if emails else ()), *((HOME,) if home_paths else ()))

    def text(self, text: str) -> str:
        """The text without its secrets."""
        lower = _lower(text)
        for rule in self._rules:
            for word in rule.words:
                if word in lower:
                    redacted = self._apply(rule, text, lower)
                    if redacted is not text:
                        text, lower = redacted, _lower(redacted)
                    break
        return text

    def value(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """A JSON value with every text in it redacted, keys excepted; the rest as it is.

        A text under a key such as `password` is a secret by its name.
        """
        if isinstance(value, str):
            return self._under(name, value) if name else self.text(value)
        if depth > DEEPEST:
            return self._count("deeply nested value", 1)
        if isinstance(value, list):
            return [self.value(item, name, depth + 1) for item in value]
        if isinstance(value, dict):
            return {key: self.value(item, str(key), depth + 1) for key, item in value.items()}
        return value

    def _under(self, name: str, text: str) -> str:
        redacted = self.text(text)
        if redacted != text or "\n" in text:
            return redacted
        lead = f"{name}: "
        named = self.text(lead + text)
        return named[len(lead) :] if named.startswith(lead) else redacted

    def _apply(self, rule: Rule, text: str, lower: str) -> str:
        pieces: list[str] = []
        done = 0
        for match in rule.pattern.now.finditer(lower if rule.lower else text):
            start, end = match.span("secret" if "secret" in rule.pattern.now.groupindex else 0)
            secret = text[start:end]
            if start > match.start():
                secret = secret.rstrip(_CLOSING)
            if secret and _is_one(rule, match, text, secret):
                pieces += (text[done:start], self._count(rule.kind, 1))
                done = start + len(secret)
        return "".join((*pieces, text[done:])) if pieces else text

    def _count(self, kind: str, number: int) -> str:
        self.report.add(kind, number)
        return placeholder(kind)


_CLOSING = ".:*_)]}"
"""Signs that end a sentence or a piece of markup rather than a secret."""

_IN_A_WORD = re.compile(r"[A-Za-z0-9_]\Z")
_AFTER_AN_ESCAPE = re.compile(r"\\(?:[nrtbf]|u[0-9a-fA-F]{4})\Z")


def _is_one(rule: Rule, match: re.Match[str], text: str, secret: str) -> bool:
    at = match.start()
    if rule.before is not None and not rule.before.search(match.string, max(0, at - 24), at):
        return False
    # A letter before it may be the end of an escape: arguments of tools are JSON inside a text.
    in_a_word = _IN_A_WORD.search(text, max(0, at - 1), at) and not _AFTER_AN_ESCAPE.search(text, max(0, at - 6), at)
    if rule.whole and in_a_word:
        return False
    return not secret.startswith("[redacted") and (rule.check is None or rule.check(secret))


def _lower(text: str) -> str:
    """The text in lower case, each character in its place (`İ` would become two)."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


_shown = Redactor()
