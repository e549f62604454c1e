"""HTML: one page that needs nothing else, to read, to print and to share (case 20).

Everything from a store is escaped first; then code gets its frame. No script, no image, no link, and
a policy that would forbid them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from state_ledger import assets
from state_ledger.portability import figures
from state_ledger.portability.export import Export
from state_ledger.portability.figures import Saying
from state_ledger.portability.plan import Part

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_FENCED = re.compile(r"^(`{3,}|~{3,})[ \t]*([^\n`]*)\n(.*?)(?:^\1[`~]*[ \t]*$\n?|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]{1,300})`")
_BOLD = re.compile(r"\*\*([^*\n]{1,300})\*\*")
_HEADING = re.compile(r"^#{1,6} +([^\n]{1,300})$", re.MULTILINE)
_MOST_FENCES = 500


def write(export: Export) -> Iterator[bytes]:
    """The page in pieces; its foot says whether it is all."""
    yield _head(export).encode()
    several = len(export.plan.parts) > 1
    for number, part in enumerate(export.plan.parts, 1):
        yield _session(export, part, number if several else 0).encode()
        for page in export.pages(part):
            yield "".join(_message(figures.saying(export, part, row)) for row in page).encode()
        yield b"</section>\n"
    state = "whole" if export.whole else "broken"
    foot = f'<footer class="{state}"><p>{escape(figures.ending(export))}</p></footer>'
    yield f"</main>\n{foot}\n</body>\n</html>\n".encode()


def _head(export: Export) -> str:
    title = escape(figures.heading(export))
    css = assets.folder("static").joinpath("export.css").read_text(encoding="utf-8")
    notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in figures.left_out(export))
    counts = export.counts
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<header><h1>{title}</h1>\n"
        f'<p class="counts">{counts["sessions"]:,} session{"s" * (counts["sessions"] != 1)},'
        f' {counts["messages"]:,} message{"s" * (counts["messages"] != 1)}.'
        f" Exported by {escape(export.tool)} on {export.made_at:%Y-%m-%d %H:%M} UTC.</p>\n{notes}</header>\n<main>\n"
    )


def _session(export: Export, part: Part, number: int) -> str:
    session = export.session(part, figures.SHOWN)
    facts = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
        for label, value in figures.facts(session, export.usage(part), export.options.zone, len(part.ids))
    )
    count = f'<span class="number">{number}</span> ' if number else ""
    return f"<section>\n<h2>{count}{escape(figures.title_of(session))}</h2>\n<dl>{facts}</dl>\n"


def _message(said: Saying) -> str:
    role = said.role if said.role in figures.SPEAKERS else "other"
    kind = f"{role} {said.state.replace(' ', '-')}"
    pieces = [
        f'<article class="{kind}" id="m{said.number}">\n<h3><span class="who">{escape(said.who)}</span>'
        f' <time>{escape(said.when)}</time> <span class="id">#{said.number}</span></h3>\n'
    ]
    if said.note:
        pieces.append(f'<p class="note">{said.note}</p>\n')
    if said.reasoning:
        pieces.append(f"<details><summary>Reasoning</summary>{text(said.reasoning)}</details>\n")
    if said.text:
        body = text(said.text)
        if role == "tool" and len(said.text) > 600:
            body = f"<details><summary>Result, {len(said.text):,} characters</summary>{body}</details>"
        pieces.append(f"{body}\n")
    for name, arguments in said.calls:
        pieces.append(
            f"<details class='call'><summary>Calls <code>{escape(name) or 'a tool'}</code></summary>"
            f"<pre><code>{escape(arguments)}</code></pre></details>\n"
        )
    pieces.append("</article>\n")
    return "".join(pieces)


def text(content: str) -> str:
    """A message as HTML: paragraphs as they are written, code in frames, nothing else."""
    content = content.replace("\x00", "�").replace("\r\n", "\n")
    if content.count("```") + content.count("~~~") > _MOST_FENCES:
        return f'<div class="text">{escape(content)}</div>'
    pieces: list[str] = []
    done = 0
    for match in _FENCED.finditer(content):
        pieces += (_prose(content[done : match.start()]), _block(match[3], match[2].strip()))
        done = match.end()
    pieces.append(_prose(content[done:]))
    return "".join(pieces)


def _prose(content: str) -> str:
    content = content.strip("\n")
    if not content.strip():
        return ""
    marked = _CODE.sub(r"<code>\1</code>", escape(content))
    marked = _BOLD.sub(r"<strong>\1</strong>", marked) if "<code>" not in marked else marked
    marked = _HEADING.sub(r'<b class="heading">\1</b>', marked)
    return f'<div class="text">{marked}</div>'


def _block(content: str, language: str) -> str:
    named = f'<span class="language">{escape(language[:40])}</span>' if language else ""
    return f"<pre>{named}<code>{escape(content.rstrip(chr(10)))}</code></pre>"
