"""A push: what a store holds now becomes its state in the lake, by files that appear before the manifest names them.

Read are the months whose sessions have changed (`fingerprint`); after them it is looked whether something was
written meanwhile, and what that concerns is read again. So the tables of a month are of one state of it. A month
that never stood still is pushed as it was read last, and read again by the next push.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from state_ledger import stores
from state_ledger.lake import manifest, parquet, privacy, source
from state_ledger.lake.errors import LakeDamaged, LakeError
from state_ledger.lake.fingerprint import Sessions
from state_ledger.lake.gone import Former
from state_ledger.lake.manifest import DataFile, Options, Period, StoreState, Totals
from state_ledger.lake.names import LAKE, checked, this_host
from state_ledger.lake.parquet import GONE
from state_ledger.lake.place import Place, place_of
from state_ledger.lake.reading import KIND, Lake, is_lake
from state_ledger.lake.seen import Seen
from state_ledger.lake.source import Source
from state_ledger.lake.tables import WHOLE_STORE, Table, tables
from state_ledger.settings import Settings

if TYPE_CHECKING:
    import pyarrow

ROUNDS = 4
"""How often what was written to while it was read is read again."""

ASKED_FOR = "it was asked for"

ABSENT = "-"
"""In the place of the digest of a period of which the store has nothing any more."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Pushed:
    """What a push did. state: of the store in the lake, now. changed: whether that is another than before.

    why_full: why everything was read, as the end of a sentence; '' where only what has changed was. gone: how many
    sessions were missed for the first time.
    """

    state: StoreState
    changed: bool
    why_full: str = ""
    gone: int = 0


def push(
    path: str | Path,
    url: str | Path,
    *,
    host: str = "",
    profile: str = "",
    options: Options = Options(),  # noqa: B008
    full: bool = False,
    replace_other: bool = False,
    settings: Settings | None = None,
    progress: Progress = lambda _done, _total: None,
) -> Pushed:
    """Brings the state of a store in a lake up to date; a lake is made where there is none.

    host, profile: '' for the name of this machine, and the profile that the store's folder says. full: read
    everything again and write what is damaged anew. replace_other: whether a store may take the place of another.
    progress: told sessions that were read, and all there are to read.
    Raises StoreAccessError, LakeError; the lake is then as it was.
    """
    path = Path(path)
    host = checked("host", host) if host else this_host()
    profile = checked("profile", profile or stores.profile_of(path))
    settings = settings or Settings()
    place = place_of(url)
    prepare(place)
    lake = Lake(place)
    names = lake.manifests(host, profile).get((host, profile), [])
    before = lake.current(names)
    rules = source.rules(settings, profile)
    seen = Seen(path, place.url, host, profile)
    why = _why_full(before, options, rules, full)
    if before is not None and not why and seen.is_as_pushed(before.manifest_id):
        return Pushed(before, False)
    began = time.time()
    with closing(Source(path, settings, profile, with_texts=options.with_messages)) as store:
        if before is not None and not replace_other and not source.may_be_one(before.store_id, store.id):
            raise LakeError(
                f"{host}/{profile} in the lake was pushed from another store than {path}. Give this one a --profile"
                " of its own, or say --replace if it takes the place of the other."
            )
        work = _Push(store, lake, (host, profile), options, before, why, progress)
        moment = work.run(seen)
        state = StoreState(
            host, profile, names[0].sequence + 1 if names else 1, time.time(), began, rules, store.id, program(),
            options, work.periods, work.listed(),
        )  # fmt: skip
    if before is not None and _same(before, state):
        seen.note(before.manifest_id, moment)
        return Pushed(before, False, why)
    name, content = manifest.write(state)
    place.write(name.path, content)
    seen.note(name.id, moment)
    return Pushed(manifest.read(name, content), True, why, work.newly_gone)


def prepare(place: Place) -> None:
    """Makes a lake where there is none. Raises LakeError for a place that holds something else."""
    try:
        there = is_lake(place)
    except LakeDamaged:
        there = False
    if not there:
        place.write(LAKE, json.dumps({"kind": KIND, "format": manifest.FORMAT}).encode())


def program() -> str:
    """What is noted as having pushed."""
    from state_ledger import __version__

    return f"state-ledger {__version__}"


def _why_full(before: StoreState | None, options: Options, rules: str, full: bool) -> str:
    if full:
        return ASKED_FOR
    if before is None:
        return "it is the first push of this store"
    if before.options != options:
        return "other options than before say what leaves the host"
    return "" if before.rules == rules else "the rules are of another version than before"


def _same(before: StoreState, now: StoreState) -> bool:
    aside = {"sequence": 0, "pushed_at": 0.0, "read_at": 0.0, "program": "", "manifest_id": ""}
    return replace(before, **aside) == replace(now, **aside)  # type: ignore[arg-type]


class _Push:
    """The state of one push.

    periods, files: what the new state holds. newly_gone: sessions that were missed for the first time.
    """

    def __init__(
        self, store: Source, lake: Lake, named: tuple[str, str], options: Options, before: StoreState | None,
        why_full: str, progress: Progress,
    ) -> None:  # fmt: skip
        self.store, self.place, self.named, self.before, self.progress = store, lake.place, named, before, progress
        self.outgoing = privacy.Outgoing(options)
        self.hidden = {table.name: privacy.hidden(table, options) for table in tables()}
        # A year that is kept in one stays so.
        self._years = frozenset(name for name in (before.periods if before else ()) if name.isdigit())
        self.former = Former(lake, before, options.deleted, self._period_of)
        self.periods: dict[str, Period] = {}
        self.files: dict[str, list[DataFile]] = defaultdict(list)
        self.known: frozenset[str] | None = None if why_full == ASKED_FOR else frozenset()
        self.gone_before = set(self.former.gone)
        self._done = self._total = 0
        if before is not None and not why_full:
            self.periods = dict(before.periods)
            self.known = frozenset(file.path for file in before.files)
            for file in before.files:
                self.files[file.month].append(file)

    @property
    def newly_gone(self) -> int:
        return len(set(self.former.gone) - self.gone_before)

    def run(self, seen: Seen) -> str:
        """Reads what has changed. Returns the moment of the store that was read; '' where it cannot be told."""
        moment = ""
        for attempt in range(ROUNDS + 1):
            moment = seen.now()
            sessions = self.store.sessions(self._period_of)
            stored = {_name(session) for session in sessions.stored}
            changed = self._changed(sessions, stored)
            self._done, self._total = 0, sum(len(sessions.periods.get(period, ())) for period in changed)
            for period in changed:
                self._read(period, sessions, stored, attempt < ROUNDS)
            if not changed or (moment and seen.now() == moment):
                break
        self._read_whole_store()
        return moment

    def listed(self) -> tuple[DataFile, ...]:
        """All files, in the order of tables and months."""
        return manifest.in_order(file for files in self.files.values() for file in files)

    def _period_of(self, month: str) -> str:
        return month[:4] if month[:4] in self._years else month

    def _changed(self, sessions: Sessions, stored: Collection[str]) -> list[str]:
        """Periods that have to be read; `unknown` comes last, after it is known what of the others is kept."""
        found = {
            period
            for period, digest in sessions.digests.items()
            if period not in self.periods or self.periods[period].digest != digest
        }
        # A month of which the store has nothing any more still has rows in the lake.
        former = set(self.periods) | (set(self.before.periods) if self.before is not None else set())
        for period in former - set(sessions.periods):
            if period not in self.periods or self.periods[period].digest != ABSENT:
                found.add(period)
        return sorted(found | set(self.former.came_back(stored)))

    def _read(self, period: str, sessions: Sessions, stored: Collection[str], may_settle: bool) -> None:
        """Reads a period anew. stored: names of the sessions that there are. may_settle: whether it is looked once
        more whether it stood still."""
        kept = self.former.settle(period, stored, time.time())
        every_kept = {name for name, each in self.former.gone.items() if each.kept}
        # What the store still has of a session whose rows are kept would count twice.
        wanted = [each for each in sessions.periods.get(period, ()) if _name(each) not in every_kept]
        totals = kept_totals = Totals()
        with ExitStack() as open_files:
            files = {
                table.name: open_files.enter_context(
                    parquet.Writing(self.place, table, self.named, period, self.known)
                )
                for table in tables()
                if table.session
            }
            for portion in self.store.portions(sessions, wanted):
                for table, rows in self.store.rows(sessions, portion, self.hidden):
                    piece = self.outgoing.rows(table, parquet.batch(table, rows))
                    totals += parquet.totals(table.name, piece)
                    files[table.name].add(piece)
                self._done += len(portion)
                self.progress(self._done, self._total)
            for table in tables() if kept else ():
                for piece in self.former.rows(table, period, kept) if table.session else ():
                    kept_totals += parquet.totals(table.name, piece)
                    files[table.name].add(self.outgoing.rows(table, piece))
            made = [file.finish() for file in files.values()]
        self.files[period] = [file for file in made if file is not None]
        digest = sessions.digests.get(period, ABSENT) if may_settle else ""
        if self.files[period]:
            self.periods[period] = Period(digest, totals + kept_totals, kept_totals)
        else:
            self.periods.pop(period, None)
            self.files.pop(period)

    def _read_whole_store(self) -> None:
        found = []
        for table in (table for table in tables() if not table.session):
            rows = self.outgoing.rows(table, parquet.batch(table, self.store.whole(table)))
            found.append(self._stored(table, [rows]))
        found.append(self._stored(GONE, self.former.table()))
        self.files[WHOLE_STORE] = [file for file in found if file is not None]

    def _stored(self, table: Table, pieces: Sequence[pyarrow.Table]) -> DataFile | None:
        with parquet.Writing(self.place, table, self.named, WHOLE_STORE, self.known) as file:
            for piece in pieces:
                file.add(piece)
            return file.finish()


def _name(session: object) -> str:
    """A session's id as the lake has it."""
    return str(session, "utf-8", "replace") if isinstance(session, bytes) else str(session)
