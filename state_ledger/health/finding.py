"""One thing that was found, and a report of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEVERITIES = ("ok", "note", "warning", "error")
"""From what is as it should be to what loses data or hides it."""


@dataclass(frozen=True)
class Finding:
    """kind: a word by which the same finding is known again. severity: one of `SEVERITIES`.

    sentence: what is the case; it names no title and no text of a message. remedy: the command that mends
    it, or one sentence on what to do where no command can; '' where there is nothing to mend.
    figures: the numbers in the sentence, by name (bytes, rows, process numbers).
    """

    kind: str
    severity: str
    sentence: str
    remedy: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_trouble(self) -> bool:
        """Whether somebody should do something: warning or above."""
        return SEVERITIES.index(self.severity) >= SEVERITIES.index("warning")

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "sentence": self.sentence,
            "remedy": self.remedy or None,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True)
class Report:
    """All findings on one store, the worst first.

    how: how it was read: `live`, `at rest` (nobody had it open), `snapshot` (a private copy), or `not` at all.
    full: whether everything was looked at, or only what is quick.
    """

    path: Path
    how: str
    full: bool
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> str:
        """The worst severity, `ok` where nothing was found."""
        return worst(self.findings)

    @property
    def is_well(self) -> bool:
        """Whether nobody has to do anything."""
        return not any(finding.is_trouble for finding in self.findings)

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "path": str(self.path),
            "ok": self.is_well,
            "severity": self.severity,
            "read": self.how,
            "full": self.full,
            "findings": [finding.record() for finding in self.findings],
        }


def worst(findings: Iterable[Finding]) -> str:
    """The worst severity of some findings."""
    return max((finding.severity for finding in findings), key=SEVERITIES.index, default="ok")


def sorted_by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, otherwise as they came."""
    return tuple(sorted(findings, key=lambda finding: -SEVERITIES.index(finding.severity)))
