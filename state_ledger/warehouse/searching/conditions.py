"""What a query needs of a text, as a condition in an engine's SQL.

The condition holds for every message that matches, and for some that do not. Text goes into it as bound values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from state_ledger.search import match
from state_ledger.search import text as _text
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.searching.index import PAIRS, SEARCHED, pairs
from state_ledger.warehouse.searching.needed import All, Needed, Tree

TEXTS = ("text", "tool_name", "tool_calls")
"""The columns of `held_messages` that are searched."""


class Conditions(ABC):
    """Writes one condition. values: what it binds, by name."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.values: dict[str, Any] = {}

    def of(self, tree: Tree | None) -> str:
        """SQL that is true, false or NULL on `held_messages` as `m`; within a WHERE, where NULL is false."""
        if tree is None:
            return "1 = 1"
        if isinstance(tree, Needed):
            return self._of_needed(tree)
        joint = " AND " if isinstance(tree, All) else " OR "
        return f"({joint.join(map(self.of, tree.parts))})"

    @abstractmethod
    def _of_needed(self, needed: Needed) -> str: ...

    def bound(self, value: str) -> str:
        """Where a text stands in the SQL."""
        name = next((name for name, known in self.values.items() if known == value), f"q{len(self.values)}")
        self.values[name] = value
        return self._dialect.text(self._dialect.parameter(name, "text"))


class InColumns(Conditions):
    """DuckDB: by what the columns hold, without an index.

    RE2 finds a word of A to Z in any case at a third of what folding the texts costs; only texts that are not
    ASCII are folded, by DuckDB's own functions, which take away all accents and not only some. Nothing but AND and OR
    stands around the tests: within any function, DuckDB works out all of them for all texts.
    """

    def _of_needed(self, needed: Needed) -> str:
        one_of = [f"({' AND '.join(self._holds(f'm.{name}', each) for each in needed.segments)})" for name in TEXTS]
        if needed.escaped:
            one_of.append(self._escapes(needed.escaped))
        return f"({' OR '.join(one_of)})"

    def _holds(self, column: str, segment: str) -> str:
        beyond = f"strlen({column}) <> length({column})"
        if segment.isascii():
            pattern = self.bound(f"(?i){_literal(segment)}")
            folded = f"contains({_folded(column)}, {self.bound(segment)})"
            return f"(regexp_matches({column}, {pattern}) OR ({beyond} AND {folded}))"
        tests = []
        for plain, letters in groupby(segment, _is_plain):
            part = "".join(letters)
            if plain:
                tests.append(f"contains({column}, {self.bound(part)})")
            else:
                tests.append(f"({beyond} AND contains({_folded(column)}, {_folded(self.bound(part))}))")
        return f"({' AND '.join(tests)})"

    def _escapes(self, letters: str) -> str:
        """Of JSON written in ASCII: each letter as an escape, in whatever case its digits are, or as itself."""
        spelled = [
            " AND ".join(f"contains(lower(m.tool_calls), {self.bound(code)})" for code in _codes(letter))
            for letter in letters
        ]
        each = [
            f"(contains(m.tool_calls, {self.bound(letter)}) OR ({codes}))"
            for letter, codes in zip(letters, spelled, strict=True)
        ]
        # Where none is an escape, they stand as they were typed, which is looked for anyway.
        return f"(contains(m.tool_calls, '\\u') AND ({' OR '.join(spelled)}) AND {' AND '.join(each)})"


class InIndex(Conditions):
    """ClickHouse: by the column that is folded as we fold, and its indexes (`index`)."""

    def _of_needed(self, needed: Needed) -> str:
        either = " AND ".join(map(self._holds, needed.segments))
        if not needed.escaped:
            return f"({either})"
        spelled = [" AND ".join(map(self._like, _codes(letter))) for letter in needed.escaped]
        each = [
            f"({self._like(_text.fold(letter))} OR ({codes}))"
            for letter, codes in zip(needed.escaped, spelled, strict=True)
        ]
        return f"(({either}) OR (({' OR '.join(spelled)}) AND {' AND '.join(each)}))"

    def _holds(self, segment: str) -> str:
        tests = [self._like(segment)]
        for pair in sorted(pairs(segment)):
            tests.append(f"has(m.{PAIRS}, {self.bound(pair)})")
        return " AND ".join(tests)

    def _like(self, part: str) -> str:
        escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"m.{SEARCHED} LIKE {self.bound(f'%{escaped}%')}"


class OnlyRuns(Conditions):
    """PostgreSQL: how it folds letters depends on the database, so that only what nothing is folded to is asked for."""

    def _of_needed(self, needed: Needed) -> str:
        parts = [
            "".join(letters) for each in needed.segments for plain, letters in groupby(each, _is_plain) if plain
        ]
        if not parts:
            return "1 = 1"
        bound = [self.bound(part) for part in parts]
        one_of = [f"({' AND '.join(f'strpos(m.{name}, {part}) > 0' for part in bound)})" for name in TEXTS]
        return f"({' OR '.join([*one_of, self._may_be_escaped()])})"

    def _may_be_escaped(self) -> str:
        return f"strpos(m.tool_calls, {self.bound(chr(92) + 'u')}) > 0"


_WRITERS: Mapping[str, type[Conditions]] = {"duckdb": InColumns, "clickhouse": InIndex, "postgresql": OnlyRuns}


def writer(dialect: Dialect) -> Conditions:
    """What writes the condition for an engine. Raises KeyError for an engine that is none of these."""
    return _WRITERS[dialect.name](dialect)


_FROM, _TO = "".join(_text.SAME), "".join(_text.SAME.values())


def _folded(sql: str) -> str:
    quoted = _TO.replace("'", "''")
    return f"translate(strip_accents(lower({sql})), '{_FROM}', '{quoted}')"


def _is_plain(letter: str) -> bool:
    """Whether nothing else is folded to a character, and it to nothing else, by us and by any engine."""
    return _text.is_unspaced(letter) or (
        not letter.isascii() and not letter.isalnum() and letter.lower() == letter == letter.upper()
    )


def _literal(segment: str) -> str:
    """Text in ASCII as a pattern of RE2."""
    return "".join(each if each.isalnum() else f"\\x{ord(each):02x}" for each in segment)


def _codes(letter: str) -> list[str]:
    """How JSON in ASCII spells a character, backslashes aside: `u6842`, of one beyond the first plane two."""
    return match.escaped(letter).split("\\")[1:]
