"""The one set of migrations, in the order of their versions.

Versions that only added tables, columns or indexes have no module: those are found by comparing the
file with `state_ledger.schema`, whatever its version says. Versions 10 and 11 built index layouts that
23 replaced; an index is made in the last layout at once.
"""

from __future__ import annotations

from importlib import import_module

from sqlite_utils import Migrations

MIGRATIONS = Migrations("state-ledger")
"""Each migration takes a `sqlite_utils.Database` inside a transaction of the caller."""

MODULES = ("v16_delegates", "v18_gateway_peers", "v20_usage_rows", "v22_usage_key", "v23_text_index")

TEXT_INDEX = "v23_text_index"
"""The one that rewrites the full-text indexes, which takes long for a big store."""


def load() -> Migrations:
    """The set with every migration registered."""
    for module in MODULES:
        import_module(f"state_ledger.migrations.{module}")
    return MIGRATIONS


def version(name: str) -> int:
    """The schema version that a migration leads to, from its name."""
    return int(name[1:3])
