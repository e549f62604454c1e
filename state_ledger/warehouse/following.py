"""The books of a lake in DuckDB: a file in this user's cache folder for each lake, brought up to date as it is used.

The file can be made again at any time: one that is damaged or of another version is thrown away. While one process
writes it no other can have it open, so that it is open for reading between two loads, and processes wait for each
other for a while.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from state_ledger import homes, private
from state_ledger.lake.errors import LakeError
from state_ledger.questions import EngineError
from state_ledger.settings import Settings
from state_ledger.warehouse import loading
from state_ledger.warehouse.books import Warehouse

if TYPE_CHECKING:
    from state_ledger.lake.reading import Lake
    from state_ledger.warehouse.duck import DuckDB

PATIENCE_S = 60.0
"""How long a process waits for another one that has the file open."""

SHORT_PATIENCE_S = 2.0
"""How long one waits that has answers from before."""

LOOK_EVERY_S = 30.0
"""How long an answer may be behind the lake."""


class WarehouseBusyError(EngineError):
    """Another process has the file open, and kept it so for longer than one waits."""

    def __init__(self, path: Path, waited_s: float) -> None:
        super().__init__(
            f"Another process has had {path} open for more than {waited_s:.0f} s. Try again when it is done."
        )


class Followed:
    """The books of one lake, kept up to date. Used by many threads at once.

    url: the lake. notices: sentences on what is not in the answers or not up to date.
    """

    def __init__(
        self, url: str, settings: Settings, *, look_every_s: float = LOOK_EVERY_S,
        told: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.url = url
        self.notices: list[str] = []
        self._settings, self._told, self._look_every_s = settings, told, look_every_s
        self._path = path_for(url)
        self._free = threading.Condition()
        self._users = 0
        self._changing = False
        self._warehouse: Warehouse | None = None
        self._looked_at = 0.0
        self._loading = threading.Lock()

    @contextmanager
    def books(self, wait_s: float | None = None) -> Iterator[Warehouse]:
        """The books as they are now, which stay so within. Raises LakeError, EngineError where there are none yet.

        wait_s: seconds after which a load that is under way is not waited for any longer; no load is begun then,
        since something else calls `look`.
        """
        if wait_s is None and (
            self._warehouse is None or time.monotonic() - self._looked_at > self._look_every_s
        ):
            self._bring_up()
        with self._free:
            there = self._free.wait_for(lambda: not self._changing and self._warehouse is not None, wait_s)
            warehouse = self._warehouse
            if not there or warehouse is None:
                raise EngineError("The lake is being read, which goes on. Try again in a while.")
            self._users += 1
        try:
            yield warehouse
        finally:
            with self._free:
                self._users -= 1
                self._free.notify_all()

    def look(self) -> str:
        """Brings the books up to date now. Gives a text that changes with them. Raises LakeError, EngineError."""
        with self._loading:
            self._load()
            self._looked_at = time.monotonic()
        warehouse = self._warehouse
        return "" if warehouse is None else str(warehouse.state.generation)

    def close(self) -> None:
        """Gives back the file."""
        with self._alone():
            self._let_go()

    def _bring_up(self) -> None:
        if not self._loading.acquire(blocking=self._warehouse is None):
            return  # another thread is at it; what there is will do
        try:
            if self._warehouse is not None and time.monotonic() - self._looked_at <= self._look_every_s:
                return
            self._load()
            self._looked_at = time.monotonic()
        finally:
            self._loading.release()

    def _load(self) -> None:
        """Reads what the lake has and the file has not; without a change the file stays open as it is."""
        from state_ledger.lake.reading import Lake

        try:
            lake = Lake.open(self.url)
            states = lake.stores()
        except LakeError as error:
            if self._warehouse is None:
                raise
            self.notices = [f"The lake cannot be read, so that answers are as of the last time: {error}"]
            return
        self.notices = list(lake.notices)
        if self._warehouse is not None and loading.is_current(self._warehouse.dialect, states):
            return
        with self._alone():
            patience_s = PATIENCE_S if self._warehouse is None else SHORT_PATIENCE_S
            self._let_go()
            self._warehouse = self._brought_up(lake, patience_s)

    def _brought_up(self, lake: Lake, patience_s: float) -> Warehouse:
        """The books as the lake has them; as the file has them where another process keeps it from being written."""
        from state_ledger.warehouse.duck import DuckDB

        private.folder(self._path.parent)
        reader = self._open(lambda: DuckDB(self._path, read_only=True), patience_s) if self._path.exists() else None
        if reader is not None:
            usable = loading.is_of_this_format(reader)
            if usable and loading.is_current(reader, lake.stores()):
                return Warehouse(reader, self._settings)
            reader.close()
            if not usable:
                discard(self._path)
        try:
            writer = self._open(lambda: DuckDB(self._path), patience_s)
        except WarehouseBusyError as error:
            reader = DuckDB(self._path, read_only=True)
            self.notices.append(f"Answers are from before the last push: {error}")
            return Warehouse(reader, self._settings)
        try:
            self._path.chmod(0o600)
            loading.fill(writer, lake, self._told, zone=self._settings.zone_name)
        finally:
            writer.close()
        return Warehouse(self._open(lambda: DuckDB(self._path, read_only=True), PATIENCE_S), self._settings)

    def _open(self, opened: Callable[[], DuckDB], patience_s: float) -> DuckDB:
        """Opens the file, as soon as no other process has it; what is no sound file of DuckDB is thrown away."""
        from state_ledger.warehouse.duck import DuckDB, is_in_use

        began = time.monotonic()
        while True:
            try:
                return opened()
            except EngineError as error:
                if not is_in_use(error):
                    discard(self._path)
                    DuckDB(self._path).close()
                    return opened()
                if time.monotonic() - began > patience_s:
                    raise WarehouseBusyError(self._path, patience_s) from error
            time.sleep(0.05)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Within, nobody asks anything."""
        with self._free:
            self._changing = True
            self._free.wait_for(lambda: self._users == 0)
        try:
            yield
        finally:
            with self._free:
                self._changing = False
                self._free.notify_all()

    def _let_go(self) -> None:
        if self._warehouse is not None:
            self._warehouse.close()
            self._warehouse = None


def path_for(url: str) -> Path:
    """The file that holds the books of a lake."""
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    return homes.cache_folder() / "lakes" / f"{digest}.duckdb"


def discard(path: Path) -> None:
    """Removes the books of a lake, which are made again when they are next asked for."""
    for suffix in ("", ".wal"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
