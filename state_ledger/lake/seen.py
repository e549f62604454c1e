"""How a store was when it was last pushed, noted on this machine: where nothing was written since, nothing is read."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from state_ledger import private, unfinished
from state_ledger.companion import rollups
from state_ledger.errors import StateLedgerError
from state_ledger.homes import cache_folder


class Seen:
    """The note on one store in one lake. Whatever is wrong with it, a push reads the store instead."""

    def __init__(self, store: Path, url: str, host: str, profile: str) -> None:
        self.store = store
        named = "\0".join((os.path.realpath(store), url, host, profile))
        self._name = hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:24] + ".json"

    def now(self) -> str:
        """How the files of the store are now; '' where a later write might not show in them."""
        with suppress(OSError):
            when = rollups.moment(self.store)
            return when if rollups.settled(when, time.time()) else ""
        return ""

    def is_as_pushed(self, manifest_id: str) -> bool:
        """Whether nothing can have been written since the push that made a manifest."""
        with suppress(StateLedgerError, OSError, ValueError, KeyError, TypeError):
            told = json.loads((self._folder() / self._name).read_bytes())
            return bool(told["manifest"] == manifest_id and told["moment"] == rollups.moment(self.store))
        return False

    def note(self, manifest_id: str, moment: str) -> None:
        """Notes that a manifest tells all of the store as it was at a moment, if no write shows since."""
        with suppress(StateLedgerError, OSError):
            if not moment or rollups.moment(self.store) != moment:
                return
            folder = self._folder()
            private.folder(folder)
            part = unfinished.place(self._name, folder)
            with private.writing(part) as file:
                file.write(json.dumps({"manifest": manifest_id, "moment": moment}).encode())
            part.replace(folder / self._name)

    def _folder(self) -> Path:
        return cache_folder() / "lake"
