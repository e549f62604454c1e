"""A lake as a reader sees it: the stores that are in it, each in one whole state, and the rows of their files."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from state_ledger.lake import manifest
from state_ledger.lake.errors import LakeDamaged, LakeError, LakeTooNew
from state_ledger.lake.manifest import FORMAT, DataFile, StoreState
from state_ledger.lake.names import LAKE, STORES, ManifestName, part, read_manifest_name
from state_ledger.lake.place import Place, place_of

if TYPE_CHECKING:
    import pyarrow

KIND = "state-ledger lake"
"""What `lake.json` says that it is."""


class Wrong(NamedTuple):
    """What is wrong with a store in a lake, as a sentence. left_out: whether nothing of the store can be read."""

    host: str
    profile: str
    why: str
    left_out: bool = False

    def __str__(self) -> str:
        name = f"{self.host}/{self.profile}"
        return f"{name} is left out: {self.why}" if self.left_out else f"{self.why} The state before it is used."


class Lake:
    """One lake, open to be read.

    place: its files. wrong: what could not be read, as of the last call of `stores` or `store`.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.wrong: list[Wrong] = []

    @classmethod
    def open(cls, url: str | Path) -> Lake:
        """The lake at a path or URL. Raises LakeError if there is none, LakeTooNew, LakeMissing."""
        place = place_of(url)
        if not is_lake(place):
            raise LakeError(f"There is no lake at {place.url}. Make one with: state-ledger lake push --to {place.url}")
        return cls(place)

    @property
    def url(self) -> str:
        """Where it is, as it may be shown."""
        return self.place.url

    @property
    def notices(self) -> list[str]:
        """`wrong` as sentences."""
        return [str(each) for each in self.wrong]

    def stores(self) -> list[StoreState]:
        """The current state of every store, by host and profile.

        A manifest that is damaged or of a newer format is passed over for the one before it, and named in
        `notices`; so is a store that has no other. Raises LakeError if the lake cannot be listed.
        """
        self.wrong = []
        found = []
        for _store, names in sorted(self.manifests().items()):
            state = self.current(names)
            if state is not None:
                found.append(state)
        return found

    def store(self, host: str, profile: str) -> StoreState | None:
        """The current state of one store; None if the lake has none that can be read. `notices` as `stores`."""
        self.wrong = []
        return self.current(self.manifests(host, profile).get((host, profile), []))

    def manifests(self, host: str = "", profile: str = "") -> dict[tuple[str, str], list[ManifestName]]:
        """The manifests of every store, or of one, the newest first."""
        below = f"{STORES}/{part(host)}/{part(profile)}" if host else STORES
        found: dict[tuple[str, str], list[ManifestName]] = defaultdict(list)
        for file in self.place.list(below):
            name = read_manifest_name(file.path)
            if name is not None:
                found[name.host, name.profile].append(name)
        return {store: sorted(names, key=lambda each: each.id, reverse=True) for store, names in found.items()}

    def current(self, names: Sequence[ManifestName]) -> StoreState | None:
        """The state that counts among the manifests of one store, given newest first."""
        readable: list[StoreState] = []
        wrong: list[str] = []
        for name in names:
            if readable and name.sequence < readable[0].sequence:
                break
            try:
                readable.append(self.state(name))
            except (LakeDamaged, LakeTooNew) as error:
                wrong.append(str(error))
        if readable:
            self.wrong += [Wrong(names[0].host, names[0].profile, each) for each in wrong]
            return manifest.latest(readable)
        if wrong:
            self.wrong.append(Wrong(names[0].host, names[0].profile, wrong[0], left_out=True))
        return None

    def state(self, name: ManifestName) -> StoreState:
        """The state that one manifest tells. Raises LakeDamaged, LakeTooNew, LakeError."""
        content = self.place.read(name.path)
        if content is None:
            raise LakeDamaged(f"The manifest {name.id} of {name.host}/{name.profile} is not there any more.")
        return manifest.read(name, content)

    def table(self, file: DataFile) -> pyarrow.Table:
        """The rows of a data file. Raises LakeDamaged with what is wrong with it, LakeMissing."""
        from state_ledger.lake import parquet

        content = self.place.read(file.path)
        wrong = problem(file, content)
        if wrong or content is None:
            raise LakeDamaged(wrong)
        return parquet.read(content, file)

    def local_path(self, file: DataFile) -> Path | None:
        """Where a data file lies on this machine; None where the lake is elsewhere.

        Raises LakeDamaged if it is not there or has another size; its bytes are not looked at.
        """
        path = self.place.local(file.path)
        if path is None:
            return None
        found = self.place.look(file.path)
        if found is None or found.bytes != file.bytes:
            raise LakeDamaged(_wrong_size(file, None if found is None else found.bytes))
        return path


def is_lake(place: Place) -> bool:
    """Whether there is a lake of a format that we know. Raises LakeTooNew, LakeError for something else."""
    content = place.read(LAKE)
    if content is None:
        return False
    try:
        told = json.loads(content)
        kind, number = told["kind"], int(told["format"])
    except (ValueError, RecursionError, KeyError, TypeError):
        raise LakeDamaged(f"{LAKE} of {place.url} is damaged. Push to it again to mend that.") from None
    if kind != KIND:
        raise LakeError(f"{place.url} holds something else than a lake of state-ledger.")
    if number > FORMAT:
        raise LakeTooNew(f"The lake {place.url} is of format {number}, newer than this program knows: update it.")
    return True


def problem(file: DataFile, content: bytes | None) -> str:
    """What is wrong with the bytes of a data file, as a sentence; '' if they are what the manifest says."""
    if content is None or len(content) != file.bytes:
        return _wrong_size(file, None if content is None else len(content))
    if hashlib.sha256(content).hexdigest() != file.sha256:
        return f"{file.path} is damaged: its bytes are not those that were pushed."
    return ""


def _wrong_size(file: DataFile, size: int | None) -> str:
    if size is None:
        return f"{file.path} is missing."
    return f"{file.path} has {size:,} bytes in the place of {file.bytes:,}."
