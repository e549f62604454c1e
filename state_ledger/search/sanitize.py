"""A query as text for FTS5's own MATCH, for programs that write MATCH themselves."""

from __future__ import annotations

import re

from state_ledger.search.query import MAX_CHARACTERS, OPERATORS, TOKEN, readable

_BARE = re.compile(r"[^\W_]+")


def sanitize_fts5_query(query: str) -> str:
    """The query as text that FTS5's MATCH accepts: whole words with punctuation stand in quotes.

    `src/main.py` becomes `"src/main.py"`, `sp_new*` becomes `"sp_new"*`, `hello AND` becomes `hello`.
    Returns "" when nothing is left to look for.
    """
    clean, _closed = readable(query[:MAX_CHARACTERS])
    raw = [match.groups() for match in TOKEN.finditer(clean)]
    last_place = len(raw) - 1
    out: list[str] = []
    pending: str | None = None
    for place, (phrase, star, word) in enumerate(raw):
        if word is None:
            text, prefix = phrase, star
        elif word in OPERATORS or (last_place and place in (0, last_place) and word.upper() in OPERATORS):
            pending = word.upper() if 0 < place < last_place else pending
            continue
        else:
            text, prefix = word.strip("*"), "*" if word.endswith("*") else ""
        if not any(letter.isalnum() or not letter.isascii() for letter in text):
            continue
        if pending and out:
            out.append(pending)
        pending = None
        plain = _BARE.fullmatch(text) and text.upper() not in OPERATORS
        out.append((text if plain else f'"{text}"') + prefix)
    return " ".join(out)
