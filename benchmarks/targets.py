"""What speed, size and memory are promised: every target, declared once, in the order of the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One promise. part: what measures it.

    at: the sizes of store on which it is promised, where not on all; on others it is measured for information.
    """

    key: str
    area: str
    text: str
    part: str
    at: tuple[str, ...] = ()


def _of(area: str, part: str, *rows: tuple[str, str] | tuple[str, str, tuple[str, ...]]) -> list[Target]:
    return [Target(row[0], area, row[1], part, row[2] if len(row) == 3 else ()) for row in rows]


TARGETS: dict[str, Target] = {
    target.key: target
    for target in (
        *_of(
            "Semantic layer", "views",
            ("views", "creating the views ≤ 2 ms on a new connection"),
        ),
        *_of(
            "Semantic layer", "books",
            ("books", "the ledger's total = plain SQL that counts every call once, to the cent"),
            ("no scan", "no question of the home and cost pages of 30 days reads through all messages"),
        ),
        *_of(
            "Pages", "json",
            ("json", "JSON of a canned query ≤ 1.3 × its SQL on bare SQLite + 2 one-row pages"),
        ),
        *_of(
            "Pages", "pages",
            ("pages", "home and cost pages of 30 days ≤ 1.3 × their questions on bare SQLite + 3 one-row pages"),
            ("own pages", "the same in the stricter form: ≤ 1.3 × bare + 1.5 one-row pages"),
        ),
        *_of(
            "Pages", "stock",
            ("stock page", "Datasette's own page of a canned query, 50 rows: ≤ 1.3 × bare + 4 one-row pages (a watch)"),
        ),
        *_of(
            "Pages", "start",
            ("start", "start to first page ≤ 1.2 × Datasette without plugins on an empty file"),
        ),
        *_of(
            "Pages", "memory",
            ("memory", "memory after a walk through every page ≤ 100 MB above idle"),
        ),
        *_of(
            "Transcripts", "transcript",
            ("transcript", "500 messages ≤ 1.3 × rendering their Markdown + 5 one-row pages"),
            ("again", "the same a second time ≥ 3 × faster"),
            ("long session", "a page of a session of 15,000 messages costs no more than one of 200"),
        ),
        *_of(
            "Search", "search",
            ("newest", "newest 20 with snippets, every class of terms: p99 ≤ 20 × the 20 ids alone"),
            ("newest grows", "newest 20, common words: p50 on M ≤ 2 × that on S"),
            ("best", "best match ≤ 3 × count(*) of the same MATCH + 12 ms"),
            ("rank", "best match of terms in 40,000 messages and more ≥ 10 × faster than ORDER BY rank", ("M", "L")),
            ("two characters", "two Korean or Chinese characters, common: count ≥ 50 × faster than LIKE, no companion",
             ("M", "L")),
            ("rare characters", "two characters, rare: complete in ≤ 1 × LIKE, no companion"),
            ("recall", "the same set of messages as LIKE, with and without a companion"),
        ),
        *_of(
            "Search", "latin",
            ("latin in cjk", "Latin letters inside Chinese at the speed of the Chinese around them (≤ 1.5 ×)"),
        ),
        *_of(
            "Search", "companion",
            ("with companion", "two characters ≥ 500 × faster than LIKE with a companion", ("M", "L")),
            ("companion size", "the companion's index ≤ 1.3 × the bytes of the text in it"),
            ("companion share", "the companion's index ≤ 10 % of the trigram index", ("M", "L")),
            ("companion build", "made with ≤ 1.5 × the CPU of the same pairs into a bare FTS5 table"),
            ("rollup", "cost per model and cache ratio ≥ 20 × less CPU from the rollup, equal rows", ("L",)),
        ),
        *_of(
            "Search", "hermes search",
            ("hermes search", "search ≥ 5 × faster than Hermes 0.19.0 on the same file, every class of terms"),
            ("hermes hits", "with every message that Hermes finds"),
        ),
        *_of(
            "Storage", "append",
            ("append bare", "append, one writer: rate ≥ 0.9 × the same statements on bare SQLite"),
            ("append hermes", "append, one writer: rate ≥ Hermes 0.19.0"),
            ("append turn", "append_messages of 10: rate ≥ 1.3 × ten appends"),
            ("crowd", "8 writers without pause: rate ≥ 0.8 × BEGIN IMMEDIATE with 30 s of patience"),
            ("crowd lost", "8 writers without pause: nothing lost, nothing failed"),
        ),
        *_of(
            "Storage", "append tail",
            ("append tail", "append into a store with its full-text setting: CPU p99 ≤ 0.25 × SQLite's default"),
        ),
        *_of(
            "Storage", "readers",
            ("readers", "JSON page while 2 writers append: p50 ≤ 1.3 × quiet"),
        ),
        *_of(
            "Storage", "hermes read",
            ("hermes read", "get_messages, list_sessions_rich, search_messages: at least as fast as Hermes 0.19.0"),
        ),
        *_of(
            "Exports", "export",
            ("csv", "all messages as CSV ≤ 1.3 × sqlite3 + csv.writer"),
            ("jsonl", "all messages as JSON Lines ≤ 1.5 × sqlite3 + json.dumps"),
        ),
        *_of(
            "Exports", "export memory",
            ("export memory", "300,000 messages exported in < 100 MB above idle, by the command and by the app",
             ("M", "L")),
        ),
        *_of(
            "Other tools", "peers",
            ("peers", "an answer ≥ 10 × faster than each of five other tools (`python -m benchmarks.peers`)"),
        ),
    )
}  # fmt: skip

