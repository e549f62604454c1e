"""Where the books of a fleet are: a lake, or the server of an engine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from state_ledger.errors import StateLedgerError
from state_ledger.settings import Settings

VARIABLES = {
    "lake": "STATE_LEDGER_LAKE",
    "clickhouse": "STATE_LEDGER_CLICKHOUSE",
    "postgresql": "STATE_LEDGER_POSTGRESQL",
}
"""The environment variable of each setting that names a place; it goes before the setting."""

ENGINES = {"duckdb": "DuckDB", "clickhouse": "ClickHouse", "postgresql": "PostgreSQL"}
"""What the engines are called."""

_SECRET = re.compile(r"(?<=://)[^/@\s]*@|(?<=[?&])(?:access_key|secret_key|password|token)=[^&]*|\bpassword=\S+")


class Where(NamedTuple):
    """The address of a lake, or of the server of an engine.

    kind: the name of its setting. lake: what the server is filled from; '' where others do that.
    """

    kind: str
    address: str
    lake: str = ""

    @property
    def shown(self) -> str:
        """The address without what only its owner should know."""
        return _SECRET.sub("", self.address)

    @property
    def engine(self) -> str:
        """What answers, as it is called."""
        return ENGINES["duckdb" if self.kind == "lake" else self.kind]

    @property
    def called(self) -> str:
        """What it is, in a sentence: `the lake /srv/lake`."""
        return f"the lake {self.shown}" if self.kind == "lake" else f"the server {self.shown}"


def is_folder(kind: str, address: str) -> bool:
    """Whether an address is that of a folder of this machine."""
    return kind == "lake" and "://" not in address


def configured(settings: Settings, environment: Mapping[str, str] = os.environ) -> Where | None:
    """Where the books of this instance's fleet are; None if it shows none.

    With a lake and a server, the server is filled from the lake. Raises StateLedgerError for two servers.
    """
    given = {kind: environment.get(variable, "").strip() for kind, variable in VARIABLES.items()}
    if not any(given.values()):
        given = {kind: getattr(settings, kind) for kind in VARIABLES}
    lake = given["lake"]
    servers = [Where(kind, address, lake) for kind, address in given.items() if address and kind != "lake"]
    if len(servers) > 1:
        raise StateLedgerError(
            f"Books of a fleet are named on {len(servers)} servers, {' and '.join(each.kind for each in servers)}:"
            " name one."
        )
    return servers[0] if servers else Where("lake", lake) if lake else None
