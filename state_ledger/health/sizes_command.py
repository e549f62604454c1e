"""`state-ledger sizes`: what takes the room in a store."""

from __future__ import annotations

from pathlib import Path

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath
from state_ledger.homes import expanded

BAR = 30
"""Characters of the longest bar."""


@click.command()
@click.argument("path", type=StorePath())
@click.option("--exact/--estimate", default=None, help="Read the whole file for it, or a sample; by default by size.")
@output.json_option
@output.told()
def sizes(path: Path, exact: bool | None, as_json: bool) -> None:
    """Lists the tables and indexes of the store at PATH by size, biggest first; the store is only read.

    A full-text index counts with all its parts. Exact sizes need an SQLite with `dbstat`, and are asked of it for
    files up to 256 MB; otherwise they are estimated from a sample of rows. The sizes of the file and of its
    free pages are exact in any case.

    \b
    Examples:
      state-ledger sizes ~/.hermes/state.db
      state-ledger sizes ~/.hermes/state.db --json
    """
    from state_ledger import access, storage
    from state_ledger.health.patient import admit

    with admit(expanded(path).absolute()) as admitted:
        found = storage.measure(admitted.connection, exact=exact)
        log = access.Sidecars.of(admitted.path).wal_bytes
    if as_json:
        output.echo_json(
            {
                "path": str(path), "method": found.method, "file_bytes": found.file_bytes, "log_bytes": log,
                "page_size": found.page_size, "pages": found.pages, "free_pages": found.free_pages,
                "other_bytes": found.other_bytes, "by_owner": found.by_owner, "parts": list(found.parts),
            }
        )  # fmt: skip
        return
    kinds = {part.owner if part.kind == "full-text index" else part.name: part.kind for part in found.parts}
    listed = [(name, kinds[name], taken) for name, taken in found.by_owner.items()]
    listed += [("(free pages)", "", found.free_bytes), ("(other)", "", found.other_bytes)]
    most = max(taken for _name, _kind, taken in listed)
    click.echo(
        output.table(
            ("name", "kind", "bytes", "share", ""),
            [
                (name, kind, taken, f"{taken / max(found.file_bytes, 1):.1%}", "#" * round(BAR * taken / max(most, 1)))
                for name, kind, taken in listed
                if taken
            ],
        )
    )
    how = "exact" if found.method == "dbstat" else "estimated from a sample"
    click.echo(f"{found.file_bytes:,} bytes in the file, {log:,} in the log; sizes of the parts are {how}.")
