"""What can go wrong, each as a sentence that a user can act on."""

from __future__ import annotations

from pathlib import Path


class StateLedgerError(Exception):
    """The family: `str()` of each member is meant to be shown to the user as it is."""


class StoreAccessError(StateLedgerError):
    """A store cannot be read, or not without harm to its owner.

    path: the file.
    problem: one sentence, what is wrong.
    remedy: one sentence, how to mend it.
    snapshot_possible: whether `snapshot.take` can read the file all the same.
    """

    def __init__(
        self, path: str | Path, problem: str, remedy: str, *, snapshot_possible: bool = False
    ) -> None:
        super().__init__(f"{problem} {remedy}")
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy
        self.snapshot_possible = snapshot_possible


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
