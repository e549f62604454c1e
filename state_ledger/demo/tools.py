"""Tools the assistant of a demo store calls, with plausible arguments and plausible output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Any

_PATHS = (
    "src/billing/invoice.py",
    "src/api/client.py",
    "tests/test_dates.py",
    "docs/setup.md",
    "config/worker.yaml",
    "scripts/backup.sh",
    "web/upload/form.ts",
    "notes/travel/packing.md",
    "recipes/lentils.md",
    "ledger/2026.csv",
)
_WORDS = (
    "index", "queue", "worker", "request", "session", "cache", "token", "invoice", "parser", "retry",
    "window", "thread", "socket", "bucket", "schema", "cursor", "filter", "signal", "handle", "buffer",
    "record", "packet",
)  # fmt: skip
_COMMANDS = ("pytest -q", "git diff --stat", "df -h", "journalctl -n 40", "ls -la", "rg -n TODO", "du -sh *")
_SITES = (
    "example.org/rail/timetable",
    "example.net/museum",
    "example.com/recipes/lentils",
    "example.org/status",
)
_MEDIAN_LINES = 15.0
_SPREAD = 1.1


@dataclass(frozen=True)
class Call:
    """One tool call: its name, its arguments as JSON text, and what came back."""

    name: str
    arguments: str
    output: str


class Toolbox:
    """Tool calls of one seed: lines of output are made once and drawn from after that."""

    def __init__(self, seed: int) -> None:
        rng = Random(f"{seed}/tools")
        self._log = tuple(_log_line(rng) for _ in range(900))
        self._code = tuple(_code_line(rng) for _ in range(700))
        self._listing = tuple(_listing_line(rng) for _ in range(500))
        self._prose = tuple(_prose_line(rng) for _ in range(600))

    def call(self, rng: Random, theme: str) -> Call:
        """A tool call that fits the theme."""
        technical = theme in ("coding", "servers")
        names = _TECHNICAL if technical else _EVERYDAY
        return self.named(rng, rng.choices(*names)[0])

    def named(self, rng: Random, name: str) -> Call:
        """A call of the tool `name`; any name is answered."""
        path, lines = rng.choice(_PATHS), min(400, max(1, round(_MEDIAN_LINES * exp(rng.gauss(0, _SPREAD)))))
        if name == "terminal":
            command = rng.choice(_COMMANDS)
            body = "\n".join(rng.choices(self._log if rng.random() < 0.6 else self._listing, k=lines))
            return Call(name, _json(command=command), _json(output=body, exit_code=int(rng.random() < 0.08)))
        if name == "read_file":
            return Call(name, _json(path=path, limit=lines), "\n".join(rng.choices(self._code, k=lines)))
        if name in ("write_file", "patch"):
            body = "\n".join(rng.choices(self._code, k=min(lines, 12)))
            return Call(name, _json(path=path, content=body), _json(success=True, lines=lines))
        if name == "search_files":
            return Call(
                name, _json(pattern=rng.choice(_WORDS)), "\n".join(rng.choices(self._listing, k=lines))
            )
        if name == "web_search":
            return Call(
                name, _json(query=f"{rng.choice(_WORDS)} {rng.choice(_WORDS)}"), self._found(rng, lines)
            )
        if name == "web_extract":
            page = "https://" + rng.choice(_SITES)
            return Call(name, _json(urls=[page]), "\n".join(rng.choices(self._prose, k=lines)))
        if name == "delegate_task":
            goal = " ".join(rng.choices(self._prose, k=2))
            return Call(name, _json(goal=goal), _json(status="completed", summary=rng.choice(self._prose)))
        return Call(name, _json(note=rng.choice(self._prose)), _json(success=True))

    def _found(self, rng: Random, lines: int) -> str:
        hits = [
            {"title": title, "url": "https://" + rng.choice(_SITES)}
            for title in rng.choices(self._prose, k=lines)
        ]
        return json.dumps({"results": hits})


_TECHNICAL = (
    ("terminal", "read_file", "patch", "search_files", "write_file", "web_search", "todo", "memory"),
    (34, 26, 13, 11, 6, 4, 4, 2),
)
_EVERYDAY = (
    ("web_search", "web_extract", "read_file", "write_file", "memory", "todo", "terminal"),
    (30, 28, 12, 10, 9, 5, 6),
)


def _json(**values: Any) -> str:
    return json.dumps(values)


def _log_line(rng: Random) -> str:
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (70, 20, 8, 2))[0]
    what = f"{rng.choice(_WORDS)} {rng.choice(_WORDS)} {rng.randrange(100000)}"
    return (
        f"{clock} {level:5} {rng.choice(_WORDS)}.{rng.choice(_WORDS)}: {what} took {rng.randrange(9000)} ms"
    )


def _code_line(rng: Random) -> str:
    name, other, number = rng.choice(_WORDS), rng.choice(_WORDS), rng.randrange(1000)
    pattern = rng.choice(
        (
            "def {name}_{other}(self, limit: int = {number}) -> None:",
            "    {name} = self._{other}.get({number})",
            "    if {name} is None or len({other}) > {number}:",
            '        raise ValueError(f"{name} {number}: {{{other}!r}}")',
            "    for {name} in sorted({other}, key=lambda row: row[{number}]):",
            "        return {name} + {other}[{number}:]",
            "    # {name} before {other}: measured, {number} ms",
        )
    )
    return str(pattern).format(name=name, other=other, number=number)


def _listing_line(rng: Random) -> str:
    size, day = rng.randrange(100, 9_000_000), rng.randrange(1, 29)
    return f"-rw-r--r-- 1 mira staff {size:>8} Nov {day:>2} {rng.choice(_PATHS)}:{rng.randrange(1, 900)}"


def _prose_line(rng: Random) -> str:
    first, second, third = rng.choices(_WORDS, k=3)
    pattern = rng.choice(
        (
            "The {first} closes at {number}:30 and opens again after the {second}.",
            "Readers say that the {first} is better than the {second}, and {number} of them came back.",
            "See also: {first}, {second} and {third} (page {number}).",
            "Section {number}. How a {first} becomes a {second}, with a note on every {third}.",
        )
    )
    return str(pattern).format(first=first, second=second, third=third, number=rng.randrange(2, 99))
