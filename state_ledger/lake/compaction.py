"""Clearing a lake: files that nothing names any more, old manifests, and the months of past years put in one.

What was current within the grace stays, whoever reads it: a file goes when no manifest that stays names it and it
is older than the grace; a manifest goes when enough newer ones are there and its successor is older than the grace.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from state_ledger.lake import fingerprint, manifest, parquet
from state_ledger.lake.errors import LakeDamaged, LakeTooNew
from state_ledger.lake.manifest import Period, StoreState, Totals
from state_ledger.lake.names import DATA, STORES, ManifestName, part, read_manifest_name
from state_ledger.lake.place import PART, Listed
from state_ledger.lake.reading import Lake
from state_ledger.lake.tables import tables

SMALL_BYTES = 16 << 20
"""A past year whose months take less than this together is kept in one."""

FEW_FILES = 12
"""And only where it has more files than this."""

MANIFEST, DATA_FILE, LEFTOVER = "old manifest", "data file", "unfinished file"


@dataclass(frozen=True)
class Plan:
    """What would be done. remove: files with what each is, in the order in which they go. merge: years of stores that
    would be put in one. waiting: files that go when they are older than the grace.
    """

    remove: Sequence[tuple[str, Listed]]
    merge: Sequence[tuple[StoreState, str]]
    waiting: int

    @property
    def bytes(self) -> int:
        """What would be freed."""
        return sum(file.bytes for _kind, file in self.remove)

    @property
    def counts(self) -> Counter[str]:
        """How many files of each kind would go."""
        return Counter(kind for kind, _file in self.remove)


def plan(lake: Lake, *, grace_s: float, keep: int, merge: bool = True, now: float | None = None) -> Plan:
    """What there is to clear. keep: manifests of each store that stay, 1 at least. Raises LakeError."""
    before = (time.time() if now is None else now) - grace_s
    listed = {file.path: file for file in lake.place.list()}
    wanted: set[str] = set()
    untouched: list[str] = []
    remove: list[tuple[str, Listed]] = []
    waiting = 0
    for (host, profile), names in sorted(_manifests(listed).items()):
        readable = 0
        successor = float("inf")  # of the newest there is none: it stays
        for name in names:
            file = listed[name.path]
            try:
                state = lake.state(name)
            except LakeTooNew:
                # What a newer version means by a file is not known: nothing of this store goes.
                untouched += [f"/host={part(host)}/profile={part(profile)}/", f"{STORES}/{part(host)}/{part(profile)}/"]
                break
            except LakeDamaged:
                if readable and file.modified < before:
                    remove.append((MANIFEST, file))
                continue
            if readable >= max(keep, 1) and successor < before:
                remove.append((MANIFEST, file))
            else:
                waiting += readable >= max(keep, 1)
                wanted.update(each.path for each in state.files)
            readable += 1
            successor = file.modified
    remove = [(kind, file) for kind, file in remove if not any(each in file.path for each in untouched)]
    for path, file in sorted(listed.items()):
        kind = LEFTOVER if path.endswith(PART) else DATA_FILE if path.startswith(f"{DATA}/") else ""
        if not kind or path in wanted or any(each in path for each in untouched):
            continue
        if file.modified < before:
            remove.append((kind, file))
        else:
            waiting += 1
    return Plan(remove, list(_years(lake)) if merge else [], waiting)


def carry_out(lake: Lake, planned: Plan) -> None:
    """Does what was planned. Killed at any instant, it leaves a whole lake, and what is left is planned again.

    Raises LakeError; LakeDamaged for a year of which a file is damaged, which `verify` names.
    """
    years: dict[str, list[str]] = defaultdict(list)
    states = {state.manifest_id: state for state, _year in planned.merge}
    for state, year in planned.merge:
        years[state.manifest_id].append(year)
    for manifest_id, found in years.items():
        merge_years(lake, states[manifest_id], found)
    # A merge, or a push meanwhile, may have taken up a file that nothing named when it was planned to go.
    named = {file.path for state in lake.stores() for file in state.files}
    for _kind, file in planned.remove:
        if file.path not in named:
            lake.place.remove(file.path)


def merge_years(lake: Lake, state: StoreState, years: Sequence[str]) -> None:
    """Puts the months of some years of a store in one each.

    The new state says that its store was read when that of the old was: a push at the same time wins over it.
    """
    periods, files = dict(state.periods), list(state.files)
    for year in years:
        months = _months(state, year)
        found = [periods.pop(month) for month in months]
        periods[year] = Period(
            fingerprint.added([each.digest for each in found]),
            sum((each.totals for each in found), Totals()),
            sum((each.kept for each in found), Totals()),
        )
        concerned = [file for file in files if file.month in months]
        files = [file for file in files if file.month not in months]
        for table in (table for table in tables() if table.session):
            parts = [file for file in concerned if file.table == table.name]
            with parquet.Writing(lake.place, table, (state.host, state.profile), year, ()) as writing:
                for part_of_year in sorted(parts, key=lambda file: file.month):
                    writing.add(lake.table(part_of_year))
                made = writing.finish()
            files += [] if made is None else [made]
        # Tables that only another version knows cannot be put in one by this one; none are lost.
        known = {table.name for table in tables()}
        files += [file for file in concerned if file.table not in known]
    merged = replace(state, sequence=state.sequence + 1, periods=periods, files=manifest.in_order(files))
    name, content = manifest.write(merged)
    lake.place.write(name.path, content)


def _manifests(listed: dict[str, Listed]) -> dict[tuple[str, str], list[ManifestName]]:
    found: dict[tuple[str, str], list[ManifestName]] = defaultdict(list)
    for path in listed:
        name = read_manifest_name(path)
        if name is not None:
            found[name.host, name.profile].append(name)
    return {store: sorted(names, key=lambda each: each.id, reverse=True) for store, names in found.items()}


def _years(lake: Lake) -> Iterator[tuple[StoreState, str]]:
    """Past years with many small files."""
    this_year = datetime.now(timezone.utc).strftime("%Y")
    for state in lake.stores():
        for year in sorted({month[:4] for month in state.periods if month[:4].isdigit() and month[:4] < this_year}):
            months = _months(state, year)
            files = [file for file in state.files if file.month in months]
            settled = all(state.periods[month].digest not in ("", "-") for month in months)
            small = sum(file.bytes for file in files) < SMALL_BYTES
            if len(months) > 1 and settled and small and len(files) > FEW_FILES:
                yield state, year


def _months(state: StoreState, year: str) -> list[str]:
    """The months of a year that have files of their own, the year itself where some of it is in one already."""
    return sorted(period for period in state.periods if period[:4] == year)
