"""Which messages may be found: by source, role and visibility, as SQL over `m` and `s`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state_ledger.shape import Shape


@dataclass(frozen=True)
class Filters:
    """What the caller asked for.

    sources: only these; an empty list is none of them. without_sources: none of these. roles: only
    these; an empty list means all. inactive: whether rewound messages count too.
    """

    sources: tuple[str, ...] | None = None
    without_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    inactive: bool = False

    @classmethod
    def of(
        cls,
        source_filter: Sequence[str] | None,
        exclude_sources: Sequence[str] | None,
        role_filter: Sequence[str] | None,
        include_inactive: bool,
    ) -> Filters:
        sources = None if source_filter is None else _names(source_filter)
        return cls(sources, _names(exclude_sources), _names(role_filter), include_inactive)

    @property
    def tools(self) -> bool:
        """Whether tool results may be found."""
        return not self.roles or "tool" in self.roles

    def sql(self, shape: Shape) -> tuple[str, list[Any]]:
        """The condition and its parameters."""
        conditions, parameters = ["1"], list[Any]()
        if not self.inactive and shape.has("messages", "active"):
            # NULL is live: some files got the column without a default.
            visible = "coalesce(m.active, 1) = 1"
            if shape.has("messages", "compacted"):
                visible = f"({visible} OR coalesce(m.compacted, 0) = 1)"
            conditions.append(visible)
        for names, column, negation in (
            (self.sources, "s.source", ""),
            (self.without_sources or None, "s.source", "NOT "),
            (self.roles or None, "m.role", ""),
        ):
            if names is not None:
                conditions.append(f"{column} {negation}IN ({', '.join('?' * len(names))})")
                parameters += names
        return " AND ".join(conditions), parameters


def _names(given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)
