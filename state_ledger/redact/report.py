"""What was replaced, by kind and number; never what it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """Kinds of secrets with how often each was replaced."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, number: int = 1) -> None:
        self.counts[kind] += number

    @property
    def total(self) -> int:
        """How many replacements there were."""
        return self.counts.total()

    def as_dict(self) -> dict[str, int]:
        """By kind, the most frequent first."""
        return dict(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))

    def __str__(self) -> str:
        """`2 openai keys, 1 password`, or `nothing`."""
        if not self.counts:
            return "nothing"
        return ", ".join(f"{number:,} {_plural(kind, number)}" for kind, number in self.as_dict().items())


def _plural(kind: str, number: int) -> str:
    if number == 1:
        return kind
    head, _, rest = kind.partition(" in a ")
    plural = head + ("es" if head.endswith("s") else "s") if not head.endswith("credentials") else head
    return f"{plural} in a {rest}" if rest else plural
