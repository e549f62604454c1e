"""What can go wrong, each as a sentence that a user can act on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from state_ledger.sqlite import says_damaged, sqlite3


class StateLedgerError(Exception):
    """The family: `str()` of each member is meant to be shown to the user as it is."""


class StoreAccessError(StateLedgerError):
    """A store cannot be read, or not without harm to its owner.

    path: the file.
    problem: one sentence, what is wrong.
    remedy: one sentence, how to mend it.
    snapshot_possible: whether `snapshot.take` can read the file all the same.
    """

    def __init__(self, path: str | Path, problem: str, remedy: str, *, snapshot_possible: bool = False) -> None:
        super().__init__(f"{problem} {remedy}")
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy
        self.snapshot_possible = snapshot_possible


class NoHomeError(StateLedgerError):
    """This user has no folder in which state-ledger could keep a file."""


class StoreUnreadableError(StoreAccessError):
    """A store cannot be read, or not to its end: most likely the file is damaged.

    error: what SQLite said; None where the damage was seen otherwise. problem: one sentence instead of the usual
    one, which says what SQLite said.
    """

    def __init__(self, path: str | Path, error: Exception | None, problem: str = "") -> None:
        named = shlex.quote(str(path))
        remedy = f"Look with: state-ledger check {named}"
        if error is None or says_damaged(error):
            remedy = (
                f"See what is damaged with: state-ledger check {named}. Then restore it from a backup, or copy what "
                f"can be read with: state-ledger repair {named} NEW"
            )
        super().__init__(path, problem or f"SQLite cannot read {path} ({error}).", remedy)


class SettingsError(StateLedgerError):
    """A setting has a value it cannot have.

    key: dotted name, for instance `day_rule`; value: what was given; allowed: what could be given,
    in words. file and line (from 1) name the place where it is written, when that is known.
    """

    def __init__(
        self,
        key: str,
        value: object,
        allowed: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
    ) -> None:
        place = "" if file is None else f"{file}: " if line is None else f"{file}, line {line}: "
        super().__init__(f"{place}The setting {key} is {value!r}; it must be {allowed}.")
        self.key = key
        self.value = value
        self.allowed = allowed
        self.file = file
        self.line = line


class ParameterError(StateLedgerError):
    """A question was asked with a value it cannot take.

    name: the parameter; value: the text that was given; why: what is wrong with it and what is
    taken instead, as the end of a sentence, without a full stop.
    """

    def __init__(self, name: str, value: object, why: str) -> None:
        super().__init__(f"{name}={value!s} cannot be used: {why}.")
        self.name = name
        self.value = value
        self.why = why


class StoreBusyError(StateLedgerError, sqlite3.OperationalError):
    """Another program kept the store locked for longer than a write waits; nothing was stored.

    path: the store. waited_s: seconds spent on the attempt. holder: who has the lock, for instance
    `process 4711 (python -m gateway)`, None where the system does not tell.
    Also a `sqlite3.OperationalError`, which is what programs written for such stores catch.
    """

    def __init__(self, path: str | Path, waited_s: float, holder: str | None = None, *, doing: str = "stored") -> None:
        by = f" by {holder}" if holder else " by another program"
        super().__init__(
            f"{path} is locked{by}, and stayed so for {waited_s:.1f} s: nothing was {doing}. "
            "Try again, or end that program if it hangs."
        )
        self.path = Path(path)
        self.waited_s = waited_s
        self.holder = holder


class StoreFullError(StateLedgerError, sqlite3.OperationalError):
    """There was no room for a write; nothing of it was stored, and what was there before is intact."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"There is no room left for {path}: this write was not stored. Free some space on its disk, "
            "then write again."
        )
        self.path = Path(path)


class PostgresqlError(StateLedgerError):
    """A PostgreSQL database cannot be read, or not to its end; the sentence has no password in it."""


class BackupError(StateLedgerError):
    """A backup could not be made, verified or restored; the store and older backups are as they were."""


class SchemaTooNewError(StateLedgerError):
    """A store of a newer schema lacks columns that a write needs, or was to be rewritten.

    path: the store. version: its schema version. absent: the missing columns, `{table: (column, …)}`;
    empty where nothing is missing but the file as a whole was to be rewritten.
    """

    def __init__(self, path: str | Path, version: int, absent: Mapping[str, tuple[str, ...]]) -> None:
        parts = [f"{table} ({', '.join(columns)})" if columns else table for table, columns in absent.items()]
        why = f" and lacks what a write needs: {'; '.join(parts)}" if parts else " and does not rewrite"
        super().__init__(
            f"{path} has schema {version}, which is newer than this program knows{why}. It can be read; update "
            "state-ledger to write to it."
        )
        self.path = Path(path)
        self.version = version
        self.absent = dict(absent)


class CompressionSessionBusyError(StateLedgerError, RuntimeError):
    """A session is being compressed by another process, so that nothing may be added to it now.

    session_id: the session. holder: who compresses it, None where nobody does: then the caller's own
    lock, which was needed, has run out or was never taken.
    """

    def __init__(self, session_id: str, holder: str | None = None) -> None:
        super().__init__(
            f"Session {session_id} is being compressed by {holder}. Write again when that is done."
            if holder
            else f"The compression lock of session {session_id} is nobody's. Take it, then try again."
        )
        self.session_id = session_id
        self.holder = holder


class CompressionSessionClosedError(StateLedgerError, RuntimeError):
    """A session was ended by compression: the conversation goes on in its successor.

    session_id: the closed session.
    """

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"Session {session_id} was closed by compression. Write to its successor (get_compression_tip)."
        )
        self.session_id = session_id
