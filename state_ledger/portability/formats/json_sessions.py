"""JSON: a session, or a list of sessions, in the shape of `SessionDB.export_session` with its rows of calls."""

from __future__ import annotations

from collections.abc import Iterator

from state_ledger.portability.export import Export
from state_ledger.portability.formats.json_text import encode
from state_ledger.portability.plan import Part


def write(export: Export) -> Iterator[bytes]:
    """One object for a single session, else an array; not valid JSON if it was cut off."""
    alone = export.scope.kind == "session"
    if not alone:
        yield b"[\n"
    for number, part in enumerate(export.plan.parts):
        if number:
            yield b",\n"
        yield from _session(export, part)
    export.must_be_whole()
    yield b"\n" if alone else b"\n]\n"


def _session(export: Export, part: Part) -> Iterator[bytes]:
    session = encode(export.session(part))
    usage = [{name: value for name, value in call.items() if name != "session_id"} for call in export.usage(part)]
    calls = f', "usage": {encode(usage)}' if usage else ""
    yield f'{session[:-1]}{calls}, "messages": ['.encode()
    between = ""
    for page in export.pages(part):
        text = ",\n".join([encode(export.messages.record(row, part.states)) for row in page])
        if text:
            yield f"{between}{text}".encode()
            between = ",\n"
    yield b"]}"
