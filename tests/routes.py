"""Addresses for every route that a running Datasette has, made from the patterns of its own table.

A route that is added is asked by itself: whatever its pattern captures under a name that is known here gets
the values given for it, and everything else the shortest text that the pattern takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

try:
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_parse as parser  # type: ignore[no-redef]

Values = Mapping[str, Sequence[str]]


def addresses(pattern: re.Pattern[str], values: Values) -> list[str]:
    """The addresses of a route: one for each combination of the values of the groups that it captures.

    Values that the route does not take are left out, as long as another is left.
    """
    groups = {number: name for name, number in pattern.groupindex.items()}
    made = list(dict.fromkeys(_texts(parser.parse(pattern.pattern), groups, values)))
    taken = [text for text in made if pattern.match(text)]
    assert taken, f"no address could be made for {pattern.pattern}"
    return taken


def _texts(parsed: Any, groups: Mapping[int, str], values: Values) -> Iterator[str]:
    for pieces in product(*(_piece(str(kind), argument, groups, values) for kind, argument in parsed)):
        yield "".join(pieces)


def _piece(kind: str, argument: Any, groups: Mapping[int, str], values: Values) -> list[str]:
    """What one part of a pattern may stand for."""
    if kind == "LITERAL":
        return [chr(argument)]
    if kind == "ANY":
        return ["x"]
    if kind == "NOT_LITERAL":
        return ["x" if argument != ord("x") else "y"]
    if kind == "IN":
        return [next(char for char in "x0aA-_ " if _takes(argument, char))]
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = argument
        repeated = [text * max(least, 1) for text in _texts(inner, groups, values)]
        return ["", *repeated] if least == 0 and most == 1 else repeated
    if kind == "BRANCH":
        return [text for branch in argument[1] for text in _texts(branch, groups, values)]
    if kind == "SUBPATTERN":
        number, inner = argument[0], argument[-1]
        known = values.get(groups.get(number, ""), ())
        return list(known) or list(_texts(inner, groups, values))
    assert kind in ("AT", "ASSERT", "ASSERT_NOT"), kind
    return [""]


def _takes(members: Any, char: str) -> bool:
    negated = any(str(kind) == "NEGATE" for kind, _value in members)
    found = any(
        (str(kind) == "LITERAL" and value == ord(char))
        or (str(kind) == "RANGE" and value[0] <= ord(char) <= value[1])
        or (str(kind) == "CATEGORY" and bool(re.match(_CATEGORIES[str(value)], char)))
        for kind, value in members
    )
    return found is not negated


_CATEGORIES = {"CATEGORY_WORD": r"\w", "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s"}
