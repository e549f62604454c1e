"""The full-text indexes: present, readable here, filled, finished, and able to find a word that is there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from state_ledger import storage
from state_ledger.full_text import CJK, INDEXES, TRIGRAMS, health, parts
from state_ledger.full_text import layout as text_layout
from state_ledger.health.finding import Finding
from state_ledger.health.patient import Patient
from state_ledger.sqlite import UNREADABLE

SAMPLE = 200
"""Newest messages in which a word is looked for that the index has to find."""
_WORD = re.compile(r"\b[A-Za-z]{4,20}\b")
_TRIGRAMS_SINCE = 10
"""The schema version that brought the trigram index (store-format, section 1.6)."""
_SEEN = 2000
"""Characters of a message that an index of any layout holds; some cut the end of long tool results off."""


def glance(patient: Patient) -> Iterator[Finding]:
    """By a few look-ups: which indexes there are, and which of them cannot be asked."""
    present = storage.text_indexes(patient.connection)
    for index in INDEXES:
        if index.name not in present:
            older = index is TRIGRAMS and patient.shape is not None and (patient.shape.version or 0) < _TRIGRAMS_SINCE
            yield Finding(
                f"text-index:{index.name}",
                "note" if older else "warning",
                f"The search index {index.name} is missing: searching goes through the messages one by one.",
                patient.command("migrate"),
            )
    for name in (name for name in present if name.startswith("messages_fts")):
        yield _usable(patient, name)
    if patient.shape is not None and patient.shape.has("state_meta"):
        yield from _marks(patient, present)


def examine(patient: Patient) -> Iterator[Finding]:
    """Entry by entry: does each index know the rows it should, and find a word of one of them?"""
    for name in storage.text_indexes(patient.connection):
        if name.startswith("messages_fts") and _reason(patient, name) is None:
            yield from _rows(patient, name)
            yield from _one_match(patient, name)


def reads_nul_differently(patient: Patient, name: str) -> bool:
    """Whether an index may disagree with its own copy of a text only since SQLite reads it differently by now.

    The trigram tokenizer stops at a NUL up to SQLite 3.40 and reads on later; an index with a copy of its text
    (versions 11 to 22) is compared with that copy.
    """
    if name != TRIGRAMS.name or re.search(r"content\s*=", _sql(patient, name), re.I):
        return False
    found = patient.connection.execute("SELECT 1 FROM main.messages WHERE instr(content, char(0)) LIMIT 1").fetchone()
    return found is not None


def tokenizer_of(sql: str) -> str:
    """The tokenizer that the definition of an index names; FTS5's own where it names none."""
    found = re.search(r"tokenize\s*=\s*(['\"])(.*?)\1", sql, re.I | re.S)
    return found[2].split()[0] if found and found[2].strip() else "unicode61"


def _sql(patient: Patient, name: str) -> str:
    row = patient.connection.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


def _source(patient: Patient, name: str) -> str:
    """What an index takes its text from; for one that keeps a copy, the messages."""
    found = re.search(r"content\s*=\s*'?([\w]+)'?", _sql(patient, name))
    return found[1] if found else "messages"


def _reason(patient: Patient, name: str) -> str | None:
    if name == CJK.name and _mark(patient, "fts_cjk_stale") not in (None, "0"):
        return "stale"
    source = _source(patient, name)
    return health.why_unusable(patient.connection, name, source, when_half_built=True)


def _usable(patient: Patient, name: str) -> Finding:
    tokenizer = tokenizer_of(_sql(patient, name))
    kind = f"text-index:{name}"
    lost = [part for part in parts.missing(patient.connection) if part.startswith(f"{name}_")]
    reason = _reason(patient, name)
    if lost:
        return Finding(
            kind, "error",
            f"The search index {name} has lost its table {lost[0]}: no message can be stored until it is made anew.",
            patient.command("optimize", "--rebuild-index", name),
        )  # fmt: skip
    if reason is None:
        return Finding(
            kind, "ok", f"The search index {name} (tokenizer {tokenizer}) answers.", figures={"tokenizer": tokenizer}
        )
    if reason == "stale":
        return Finding(
            kind,
            "note",
            f"The search index {name} is marked as stale; searches go round it.",
            patient.command("migrate"),
        )
    if "no such tokenizer" in reason:
        return Finding(
            kind, "note",
            f"The search index {name} needs the tokenizer {tokenizer}, which is not here; searches go round it.",
            "Set HERMES_FTS5_CJK_SO to the extension, if you have it.",
            {"tokenizer": tokenizer},
        )  # fmt: skip
    return Finding(kind, "error", f"{reason} No message is lost.", patient.command("optimize", "--rebuild-index", name))


def _marks(patient: Patient, present: list[str]) -> Iterator[Finding]:
    for family, index in (("fts", "search indexes"), ("fts_cjk", "search index messages_fts_cjk")):
        waiting = health.rows_waiting(patient.connection, family)
        if waiting is not None:
            yield Finding(
                f"rebuild:{family}", "warning",
                f"The {index} were left half built: messages {waiting[0] + 1:,} to {waiting[1]:,} are not in yet.",
                patient.command("migrate"), {"indexed_up_to": waiting[0], "goal": waiting[1]},
            )  # fmt: skip
    if _mark(patient, text_layout.OFFER_KEY) == "1" and present:
        yield Finding(
            "text-layout", "note", "The search indexes have the layout of an earlier version, which takes more room.",
            patient.command("migrate"),
        )  # fmt: skip


def _mark(patient: Patient, key: str) -> str | None:
    try:
        return text_layout.mark(patient.connection, key)
    except UNREADABLE:
        return None


def _rows(patient: Patient, name: str) -> Iterator[Finding]:
    """Compares the ids in an index with those of its source, apart from those that a rebuild has yet to reach."""
    source = _source(patient, name)
    waiting = health.rows_waiting(patient.connection, "fts_cjk" if name == CJK.name else "fts") or (0, 0)
    missing, surplus = patient.connection.execute(
        f"SELECT (SELECT count(*) FROM main.{source} AS m WHERE NOT (m.id > ? AND m.id <= ?)"
        f" AND NOT EXISTS (SELECT 1 FROM main.{name}_docsize AS d WHERE d.id = m.id)),"
        f" (SELECT count(*) FROM main.{name}_docsize AS d WHERE NOT EXISTS"
        f" (SELECT 1 FROM main.messages AS m WHERE m.id = d.id))",
        waiting,
    ).fetchone()
    if missing or surplus:
        said = [f"lacks {missing:,} messages"] if missing else []
        said += [f"holds {surplus:,} that are not in the store (any more)"] if surplus else []
        yield Finding(
            f"text-rows:{name}", "warning", f"The search index {name} {' and '.join(said)}.",
            patient.command("optimize", "--rebuild-index", name), {"missing": missing, "surplus": surplus},
        )  # fmt: skip


def _one_match(patient: Patient, name: str) -> Iterator[Finding]:
    """Takes a word of a message that is in the index, and asks for it."""
    source = _source(patient, name)
    rows = patient.connection.execute(
        f"SELECT m.id, substr(m.content, 1, {_SEEN}) FROM main.{source} AS m"
        f" WHERE EXISTS (SELECT 1 FROM main.{name}_docsize AS d WHERE d.id = m.id) ORDER BY m.id DESC LIMIT {SAMPLE}"
    ).fetchall()
    known = ((number, found[0]) for number, text in rows if (found := _WORD.search(str(text or "").partition("\0")[0])))
    number, word = next(known, (None, ""))
    if number is None:
        return
    try:
        hit = patient.connection.execute(
            f"SELECT 1 FROM main.{name} WHERE {name} MATCH ? AND rowid = ?", (f'"{word}"', number)
        ).fetchone()
    except UNREADABLE as error:
        yield Finding(
            f"text-match:{name}", "error",
            f"The search index {name} is damaged ({error}); the messages are not, they are still there.",
            patient.command("optimize", "--rebuild-index", name),
        )  # fmt: skip
        return
    if hit is None:
        yield Finding(
            f"text-match:{name}", "warning",
            f"The search index {name} does not find a word that stands in message {number:,}.",
            patient.command("optimize", "--rebuild-index", name),
        )  # fmt: skip

