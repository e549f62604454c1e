"""The settings of an instance: what can be set, its defaults, what is wrong with a value.

They stand under `plugins: state-ledger:` in the user's metadata or configuration file; the shipped
`metadata.yaml` holds every key with its default and a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from state_ledger.budgets.budget import Budget, WrongBudget, as_budgets
from state_ledger.errors import SettingsError, StateLedgerError
from state_ledger.ledger import days
from state_ledger.ledger.apportion import DAY_RULES

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook

PLUGIN = "state-ledger"

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::(?P<port>[0-9]{1,5}))?")


class Host(NamedTuple):
    """A host name in lower case without a final dot, IPv6 in brackets; port: None if it is not said."""

    name: str
    port: int | None


def parse_host(text: str) -> Host | None:
    """`Example.org:8001` -> its name and port; None for what cannot be a host."""
    match = _HOST.fullmatch(text.lower())
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else None
    return Host(match["name"], port) if port is None or 0 < port < 65536 else None


def parse_allowed_host(entry: str) -> tuple[bool, Host] | None:
    """An entry of `allowed_hosts` as (whether it stands for the names below, host); None if it is none."""
    below = entry.startswith("*.")
    host = parse_host(entry[2:] if below else entry)
    if host is None or (below and host.name.startswith("[")):
        return None
    return below, host


@dataclass(frozen=True)
class Settings:
    """One instance's settings.

    zone: IANA name of the zone whose days are shown; '' is the server's.
    day_rule: which day a long session belongs to, where the address does not say.
    max_cost_per_1000_tokens: dollars; a row that claims more cannot be true and is set aside.
    implausible_from_usd: dollars; amounts below it are never set aside for their rate.
    allowed_hosts: host names other than loopback under which the instance may be asked.
    cors: whether CORS headers that Datasette sends are let through.
    snapshot: whether every store is read from a private snapshot taken at start.
    redact: whether secrets in texts are replaced wherever the instance shows them.
    lake, clickhouse, postgresql: where the books of a fleet are, one of them: a folder or URL, or a server.
    fleet_refresh_s: seconds after which they are looked at again, when somebody asks.
    fleet_allow: which of the visitors who may see the instance see the fleet, an allow block as Datasette's.
    budgets: what a store may use in a day, a week or a month.
    prices: the user's own price table, a YAML file; '' for none.
    companion: whether the app makes and refreshes the companion of every store it shows.
    metrics: whether the figures of the stores are given to Prometheus.
    query_time_limit_ms: milliseconds that a question of a page or a canned query may take.
    query_memory_mb: megabytes that SQLite may take in the app, for all that is asked at one time.
    max_limit: the most rows that a question gives.
    heavy_at_once: how many exports, searches, questions and the like are worked on at a time.
    heavy_waiting: how many more may wait for their turn before one is sent away.
    markdown_columns: columns, by table, whose text is shown as Markdown.
    markdown_max_characters, markdown_max_brackets: above these, text is cut or shown as it is.
    """

    zone: str = ""
    day_rule: str = "activity"
    max_cost_per_1000_tokens: float = 1.0
    implausible_from_usd: float = 5.0
    allowed_hosts: tuple[str, ...] = ()
    cors: bool = False
    snapshot: bool = False
    redact: bool = False
    prices: str = ""
    companion: bool = False
    metrics: bool = False
    lake: str = ""
    clickhouse: str = ""
    postgresql: str = ""
    fleet_refresh_s: int = 60
    fleet_allow: bool | Mapping[str, Any] = True
    budgets: tuple[Budget, ...] = ()
    query_time_limit_ms: int = 5000
    query_memory_mb: int = 512
    max_limit: int = 10000
    heavy_at_once: int = 2
    heavy_waiting: int = 60
    markdown_columns: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({"messages": ("content",)})
    )
    markdown_max_characters: int = 20000
    markdown_max_brackets: int = 200

    @cached_property
    def zone_name(self) -> str:
        """The IANA name of the zone in force."""
        return self.zone or days.server_zone()

    @cached_property
    def price_book(self) -> PriceBook:
        """The price list: the user's table over the package. Raises PriceTableError for a table that is wrong."""
        from state_ledger.prices import PriceBook  # commands without a price need none of it

        return PriceBook(self.prices or None)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], *, source: str | Path | None = None) -> Settings:
        """The settings of a mapping, defaults for what it leaves out.

        source: the YAML file the mapping was read from; an error then names file and line.
        Raises SettingsError for an unknown key or a value that cannot be meant.
        """
        if not isinstance(given, Mapping):
            raise SettingsError(PLUGIN, given, "a mapping of setting names to values", file=source)
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in given.items():
            try:
                if key not in known:
                    raise _Wrong(_nearest(str(key), known))
                if value is not None:
                    values[key] = _READERS[key](value)
            except WrongBudget as wrong:
                inner = ".".join(str(part) for part in (key, wrong.at, wrong.key) if part)
                line = line_of_setting(source, inner) if source else None
                raise SettingsError(inner, wrong.value, wrong.allowed, file=source, line=line) from None
            except _Wrong as wrong:
                line = line_of_setting(source, str(key)) if source else None
                raise SettingsError(str(key), value, str(wrong), file=source, line=line) from None
        return cls(**values)


class _Wrong(ValueError):
    """What a value must be, as the end of a sentence."""


def _nearest(key: str, known: set[str]) -> str:
    import difflib  # for an error only

    near = difflib.get_close_matches(key, known, 1, 0.5)
    return f"left out: there is no such setting{f'; did you mean {near[0]}' if near else ''}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("text")
    return value.strip()


def _zone(value: Any) -> str:
    name = _text(value)
    try:
        if name:
            days.zone(name)
    except days.UnknownZone:
        raise _Wrong("an IANA time zone such as Europe/Berlin, or empty for the server's") from None
    return name


def _day_rule(value: Any) -> str:
    if value not in DAY_RULES:
        raise _Wrong(f"one of {', '.join(DAY_RULES)}")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _allow(value: Any) -> bool | Mapping[str, Any]:
    if isinstance(value, bool):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return MappingProxyType(dict(value))
    raise _Wrong("true, false, or a mapping such as {id: [ada, grace]}, as in Datasette's allow blocks")


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise _Wrong("a number above 0")
    return float(value)


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _Wrong(f"a whole number from {low} to {high}")
        return value

    return read


def _hosts(value: Any) -> tuple[str, ...]:
    entries = [value] if isinstance(value, str) else value
    if isinstance(entries, (list, tuple)) and all(isinstance(entry, str) for entry in entries):
        names = tuple(entry.strip().lower() for entry in entries)
        if all(map(parse_allowed_host, names)):
            return names
    raise _Wrong(
        "a host name or a list of them, each like books.example.org, *.example.org or books.example.org:8443"
    )


def _columns(value: Any) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise _Wrong("a mapping of table names to lists of column names")
    found = {}
    for table, columns in value.items():
        entries = [columns] if isinstance(columns, str) else columns
        if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, str) for entry in entries):
            raise _Wrong("a mapping of table names to lists of column names")
        found[str(table)] = tuple(entries)
    return MappingProxyType(found)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "zone": _zone,
    "day_rule": _day_rule,
    "max_cost_per_1000_tokens": _positive,
    "implausible_from_usd": _positive,
    "allowed_hosts": _hosts,
    "cors": _flag,
    "snapshot": _flag,
    "redact": _flag,
    "prices": _text,
    "companion": _flag,
    "budgets": as_budgets,
    "metrics": _flag,
    "lake": _text,
    "clickhouse": _text,
    "postgresql": _text,
    "fleet_refresh_s": _whole(1, 86_400),
    "fleet_allow": _allow,
    "query_time_limit_ms": _whole(50, 600_000),
    "query_memory_mb": _whole(32, 1_000_000),
    "max_limit": _whole(1, 1_000_000),
    "heavy_at_once": _whole(1, 64),
    "heavy_waiting": _whole(0, 10_000),
    "markdown_columns": _columns,
    "markdown_max_characters": _whole(100, 1_000_000),
    "markdown_max_brackets": _whole(0, 5_000),
}


def read_file(path: str | Path) -> Settings:
    """The settings in a metadata or configuration file, YAML or JSON; defaults where it has none.

    Raises SettingsError for one that cannot be meant, StateLedgerError for a file that cannot be read.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        plugins = content.get("plugins") if isinstance(content, Mapping) else None
    except (OSError, ValueError, OverflowError, RecursionError, yaml.YAMLError) as error:
        # ValueError: YAML takes 2026-99-99 for a day, and `!!int x` for a number.
        raise StateLedgerError(f"{path} cannot be read as YAML or JSON: {' '.join(str(error).split())}.") from error
    given = plugins.get(PLUGIN) if isinstance(plugins, Mapping) else None
    return Settings.from_mapping({} if given is None else given, source=path)


def line_of_setting(source: str | Path, key: str) -> int | None:
    """The line of one of our settings; of a dotted key (`budgets.2.per`) that of the nearest part that is there."""
    parts = key.split(".")
    paths = [(key,), *(parts[:size] for size in range(len(parts), 0, -1))]
    return next((line for path in paths if (line := line_of(source, ("plugins", PLUGIN, *path))) is not None), None)


def line_of(source: str | Path, path: Sequence[str]) -> int | None:
    """The line, from 1, on which a nested key stands in a YAML or JSON file; None if it is not found.

    In a list the key is the number of the entry, from 1.
    """
    try:
        node = yaml.compose(Path(source).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    line = None
    for key in path:
        if isinstance(node, yaml.SequenceNode):
            if not key.isdecimal() or not 0 < int(key) <= len(node.value):
                return None
            node = node.value[int(key) - 1]
            line = int(node.start_mark.line) + 1
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = [(name, value) for name, value in pairs if getattr(name, "value", None) == key]
        if not found:
            return None
        name, node = found[-1]
        line = int(name.start_mark.line) + 1
    return line
