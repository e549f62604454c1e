"""Markdown to read and to share: harmless wherever it is rendered (case 20).

Text of a store is written by models and strangers. Nothing of it may become HTML, an image that is
fetched, or a link that runs: outside of code what could is escaped, and code gets fences that are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from state_ledger.portability import figures
from state_ledger.portability.export import Export
from state_ledger.portability.figures import Saying
from state_ledger.portability.plan import Part

_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]+;)")
_LINK = re.compile(r"\](?=\(|\[|:)")
_HARMLESS = re.compile(r"\]\(\s*(?:https?://|mailto:)[^\s()<>\\\"']*\)")
_IMAGE = re.compile(r"!(?=\[)")


def write(export: Export) -> Iterator[bytes]:
    """A head, then session by session facts and messages; the last line says whether it is all."""
    yield _head(export).encode()
    for part in export.plan.parts:
        yield _session(export, part).encode()
        for page in export.pages(part):
            yield "".join(_message(figures.saying(export, part, row)) for row in page).encode()
    yield f"---\n\n*{figures.ending(export)}*\n".encode()


def _head(export: Export) -> str:
    lines = [f"# {line(figures.heading(export))}", ""]
    lines += [f"*{sentence}*\n" for sentence in figures.left_out(export)]
    return "\n".join(lines) + f"\nExported by {export.tool} on {export.made_at:%Y-%m-%d %H:%M} UTC.\n\n"


def _session(export: Export, part: Part) -> str:
    session = export.session(part, figures.SHOWN)
    facts = figures.facts(session, export.usage(part), export.options.zone, len(part.ids))
    listed = "".join(f"- {label}: {line(value)}\n" for label, value in facts)
    return f"## {line(figures.title_of(session))}\n\n{listed}\n"


def _message(said: Saying) -> str:
    pieces = [f"### {line(said.who)} · {said.when} · #{said.number}\n"]
    if said.note:
        pieces.append(f"*{said.note}*\n")
    if said.reasoning:
        pieces.append(f"> **Reasoning**\n>\n{_quoted(text(said.reasoning))}\n")
    if said.text:
        pieces.append(f"{text(said.text)}\n")
    for name, arguments in said.calls:
        pieces.append(f"**Calls** {line(name)}\n\n{code(arguments, 'json')}\n")
    return "\n".join(pieces) + "\n"


def text(content: str) -> str:
    """A message as Markdown that cannot do anything."""
    pieces: list[str] = []
    prose: list[str] = []
    lines = content.replace("\x00", "�").splitlines()
    place = 0
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence is None:
            prose.append(lines[place])
            place += 1
            continue
        end = _end_of_code(lines, place + 1, fence["mark"])
        if prose:
            pieces.append(_tame("\n".join(prose)))
            prose = []
        pieces.append(code("\n".join(lines[place + 1 : end]), fence["info"].strip()))
        place = end + 1
    if prose:
        pieces.append(_tame("\n".join(prose)))
    return "\n\n".join(piece.strip("\n") for piece in pieces) + "\n"


def line(content: str) -> str:
    """One line of text that stays text."""
    marked = re.sub(r"([\\`*_\[\]#|~])", r"\\\1", " ".join(content.replace("\x00", "�").split()))
    return _TAG.sub("&lt;", _ENTITY.sub("&amp;", marked))


def code(content: str, language: str = "") -> str:
    """A block of code whose fence nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    name = re.sub(r"[^A-Za-z0-9+#._-]", "", language.partition(" ")[0])[:30]
    return f"{fence}{name}\n{content}\n{fence}\n"


def _end_of_code(lines: list[str], start: int, mark: str) -> int:
    for place in range(start, len(lines)):
        stripped = lines[place].strip()
        if len(stripped) >= len(mark) and set(stripped) == {mark[0]}:
            return place
    return len(lines)


def _tame(prose: str) -> str:
    # Entities of ours and no backslashes: a backslash of the text before one would undo it.
    prose = _IMAGE.sub("&#33;", _TAG.sub("&lt;", _ENTITY.sub("&amp;", prose)))
    # Fences that are indented or quoted: they must not swallow what comes after the message.
    prose = _FENCES.sub(lambda run: f"&#{ord(run[0][0])};" * len(run[0]), prose)
    done = 0
    pieces: list[str] = []
    for match in _LINK.finditer(prose):
        harmless = _HARMLESS.match(prose, match.start())
        pieces += (prose[done : match.start()], "]" if harmless else "&#93;")
        done = match.end()
    return "".join((*pieces, prose[done:]))


_FENCES = re.compile(r"`{3,}|~{3,}")


def _quoted(content: str) -> str:
    return "\n".join(f"> {each}".rstrip() for each in content.rstrip("\n").split("\n")) + "\n"
