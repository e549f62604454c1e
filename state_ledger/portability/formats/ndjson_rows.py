"""NDJSON: one message a line as a flat object, for tools that read rows of JSON."""

from __future__ import annotations

from collections.abc import Iterator

from state_ledger.portability.export import Export
from state_ledger.portability.formats.json_text import encode


def write(export: Export) -> Iterator[bytes]:
    """The messages; the transfer breaks where it cannot be whole."""
    names = (*export.messages.columns, "state")
    for page in export.flat_pages():
        text = "\n".join([encode(dict(zip(names, row, strict=True))) for row in page])
        if text:
            yield f"{text}\n".encode()
    export.must_be_whole()
