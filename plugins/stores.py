"""Stores on a Datasette instance: found among its databases, named for their URLs, opened without harm."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from datasette import hookimpl

from state_ledger import access, allocator, ledger, postgresql
from state_ledger.budgets.given import VARIABLE as BUDGETS_VARIABLE
from state_ledger.budgets.given import with_budgets
from state_ledger.connection import guard
from state_ledger.errors import StateLedgerError, StoreAccessError, StoreUnreadableError
from state_ledger.plugins import compat, settings_file
from state_ledger.plugins.store_database import StoreConnection, StoreDatabase, StoreRefused
from state_ledger.search import functions
from state_ledger.shape import Shape
from state_ledger.sqlite import UNREADABLE, Connection, read_only_uri, sqlite3
from state_ledger.stores import Store, name_stores, profile_of
from state_ledger.watch import Watches

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.database import Database

    from state_ledger.health.patient import Patient
    from state_ledger.settings import Settings

SNAPSHOT_VARIABLE = "STATE_LEDGER_SNAPSHOT"
"""`1`: take a snapshot of every store at start, as the setting `snapshot` does."""

REDACT_VARIABLE = "STATE_LEDGER_REDACT"
"""`1`: replace secrets wherever text of a store is shown, as the setting `redact` does."""

PRICES_VARIABLE = "STATE_LEDGER_PRICES"
"""The user's price table, as the setting `prices` names it."""


# Plain classes: `datasette serve .` runs this file a second time as a module that `sys.modules` does
# not have, which dataclasses need.


class StoreState:
    """One store that is being served.

    store: its file (of a snapshot: the file it was taken of), its name in URLs, its profile.
    shape: its live tables; renewed when the file changes them.
    snapshot_taken_at: epoch seconds if what is shown is a snapshot or the copy of a database, else None.
    copy_of: the database, `host/database`, of which the file is a copy that may be renewed; '' for any other.
    """

    def __init__(self, store: Store, shape: Shape, snapshot_taken_at: float | None = None) -> None:
        self.store = store
        self.shape = shape
        copy = postgresql.copy_at(store.path)
        self.copy_of = copy.name if copy is not None else ""
        self.snapshot_taken_at = copy.taken_at if copy is not None and snapshot_taken_at is None else snapshot_taken_at
        self._renewed = copy is not None and snapshot_taken_at is None

    def taken_at(self) -> float | None:
        """When what is shown was so, for all that is not the store itself; of a copy, as it is by now."""
        copy = postgresql.copy_at(self.store.path) if self._renewed else None
        return self.snapshot_taken_at if copy is None else copy.taken_at

    def patient(self, connection: Connection, settings: Settings) -> Patient:
        """The store under examination, over a connection of this instance."""
        from state_ledger.health.patient import LIVE, SNAPSHOT, Patient

        how = LIVE if self.snapshot_taken_at is None else SNAPSHOT
        return Patient(self.store.path, connection, self.shape, how, settings)


class Registry:
    """The stores of one Datasette instance by database name, its settings, and its canned queries once made.

    registering: their registration on Datasette 1.0, once it has begun. left_out: stores that could not be
    opened beside others that could, with the reason. watches: what tells that a store has changed.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores: dict[str, StoreState] = {}
        self.queries: dict[str, dict[str, Any]] = {}
        self.registering: asyncio.Future[None] | None = None
        self.left_out: dict[str, str] = {}
        self.watches = Watches()


class _Found(NamedTuple):
    """A database of the instance that is a store, before it has a name. path: what is opened."""

    database: Database
    path: Path
    source: Path
    taken_at: float | None
    shape: Shape


def registry(datasette: Datasette) -> Registry:
    """What this instance serves. Raises StoreRefused for a setting that cannot be used."""
    held: Registry | None = getattr(datasette, "_state_ledger", None)
    if held is None:
        try:
            settings = settings_file.load(datasette)
            if os.environ.get(REDACT_VARIABLE) == "1":
                settings = replace(settings, redact=True)
            settings = with_budgets(settings, os.environ.get(BUDGETS_VARIABLE, "").splitlines())
            if os.environ.get(PRICES_VARIABLE):
                settings = replace(settings, prices=os.environ[PRICES_VARIABLE])
            if settings.prices:
                settings.price_book  # noqa: B018 - a table that cannot be used stops the start
            held = Registry(settings)
        except StateLedgerError as error:
            raise StoreRefused(error) from error
        datasette._state_ledger = held
    return held


@hookimpl(tryfirst=True)
def register_output_renderer(datasette: Datasette) -> None:
    """No renderer: this is the one hook that runs while an instance is made, on both Datasette lines.

    Datasette 1.0 connects to its databases before it calls `startup`, and a connection that Datasette
    makes by itself may do harm before `prepare_connection` is called (with `cache_size_kb` it reads).
    """
    take_over_stores(datasette)
    held = registry(datasette)
    if held.stores:
        allocator.keep_one_arena()
    if held.settings.redact:
        # Own SQL can take a secret apart, and the file itself holds them all.
        for setting in ("default_allow_sql", "allow_download"):
            compat.set_default(datasette, setting, False)


@hookimpl(tryfirst=True)
def startup(datasette: Datasette) -> None:
    """For databases that were added to the instance since it was made."""
    take_over_stores(datasette)


def take_over_stores(datasette: Datasette) -> None:
    """Puts a StoreDatabase, under the name of its profile, in the place of every store's database.

    A store that cannot be read without harm is left out, and named on the pages, where others can be.
    Raises StoreRefused where it is the only one.
    """
    held = registry(datasette)
    wanted = held.settings.snapshot or os.environ.get(SNAPSHOT_VARIABLE) == "1"
    others = [each for each in datasette.databases.values() if each.path is not None]
    found: list[_Found] = []
    refused: dict[str, StoreRefused] = {}
    for database in others:
        if isinstance(database, StoreDatabase):
            continue
        try:
            each = _examine(database, wanted)
        except StoreRefused as refusal:
            refused[database.name] = refusal
            continue
        if each is not None:
            found.append(each)
    if refused and not found and not held.stores:
        raise next(iter(refused.values()))
    paths_left_out = {name: Path(str(datasette.databases[name].path)) for name in refused}
    for name in refused:
        datasette.remove_database(name)
    order = list(datasette.databases)
    old_names = [each.database.name for each in found]
    stores = name_stores([each.source for each in found], taken=set(order) - set(old_names))
    for name in old_names:
        datasette.remove_database(name)
    for each, store in zip(found, stores, strict=True):
        mutable = each.database.is_mutable or access.Sidecars.of(each.path).wal_bytes > 0
        datasette.add_database(StoreDatabase(datasette, str(each.path), is_mutable=mutable), name=store.name)
        held.stores[store.name] = StoreState(store, each.shape, each.taken_at)
    renamed = dict(zip(old_names, (store.name for store in stores), strict=True))
    databases = datasette.databases
    kept = (renamed.get(name, name) for name in order if name not in refused)
    datasette.databases = {name: databases[name] for name in kept}
    for name, path in paths_left_out.items():
        (store,) = name_stores([path], taken={*datasette.databases, *held.left_out})
        held.left_out[store.name] = refused[name].message
        click.echo(f"Left out: {refused[name].message}", err=True)


@hookimpl(specname="prepare_connection", tryfirst=True)
def refuse_harm(conn: Connection, database: str, datasette: Datasette) -> None:
    """Refuses before anything reads, for databases that a plugin added and connected to at once."""
    served = datasette.databases.get(database)
    if served is None or served.path is None or isinstance(served, StoreDatabase):
        return
    refusal = _refusal(Path(served.path), immutable=not served.is_mutable)
    if refusal is not None:
        raise StoreRefused(refusal)


@hookimpl(specname="prepare_connection", trylast=True)
def open_the_books(conn: Connection, database: str, datasette: Datasette) -> None:
    """Gives a store's connection the ledger's views and takes from it what could write.

    Last, since what other plugins register has to be there before the guard closes the door.
    """
    served = datasette.databases.get(database)
    if served is None or served.path is None:
        return
    held = registry(datasette)
    state = held.stores.get(database)
    known = None
    if isinstance(served, StoreDatabase) and isinstance(conn, StoreConnection):
        conn.stamp = served.look(conn)
        known = state.shape if state is not None and conn.stamp == served.shape_stamp else None
    profile = state.store.profile if state is not None else profile_of(served.path)
    try:
        shape = ledger.install(conn, shape=known, profile=profile, settings=held.settings)
    except sqlite3.DatabaseError:
        if isinstance(served, StoreDatabase):
            raise
        return  # nothing that SQLite can read as a store: Datasette says what is wrong with it
    if not shape.is_store:
        return
    if held.settings.redact:
        from state_ledger import redact

        # Here and not on pages: every cell, snippet, export and answer to a query passes.
        conn.text_factory = redact.decode
    functions.install(conn)
    guard(conn)
    if state is not None and isinstance(served, StoreDatabase):
        state.shape = shape
        served.shape_stamp = conn.stamp


def _examine(database: Database, snapshot_wanted: bool) -> _Found | None:
    """What there is to know about a database that is a store; None for any other. Raises StoreRefused."""
    path = Path(os.path.abspath(database.path))  # noqa: PTH100
    refusal = _refusal(path, immutable=not database.is_mutable)
    if refusal is not None and not (snapshot_wanted and refusal.snapshot_possible):
        raise StoreRefused(refusal)
    # A file that nobody has open is whole without its sidecars, and is looked at without making any.
    whole = access.at_rest(path) and not access.Sidecars.of(path).wal_bytes
    immutable = whole or refusal is not None or not database.is_mutable
    shape = _shape(path, immutable=immutable)
    if shape is None and refusal is None:
        problem = _unreadable(path, immutable=immutable) if path.exists() else None
        if problem is not None:
            raise StoreRefused(problem)
        return None
    if not snapshot_wanted:
        return _Found(database, path, path, None, shape) if shape else None
    from state_ledger import snapshot

    try:
        taken = snapshot.take(path)
    except StateLedgerError as error:
        raise StoreRefused(error) from error
    shape = _shape(taken.path)
    return _Found(database, taken.path, path, taken.taken_at, shape) if shape else None


def _refusal(path: Path, *, immutable: bool) -> StoreAccessError | None:
    """Why this database must not be opened; None if it may be, or is none of ours to judge."""
    try:
        if immutable:
            access.header_of(path)
        else:
            access.check(path)
    except StoreAccessError as refusal:
        if not path.exists() or path.stat().st_size == 0:
            return None  # a database yet to be made
        if refusal.snapshot_possible and _is_something_else(path):
            return None
        return refusal
    return None


def _is_something_else(path: Path) -> bool:
    """Whether a file that we would not open is no store. Reads it as immutable, which makes no sidecars."""
    if access.Sidecars.of(path).wal_bytes:  # its tables may be in the log, which is not read so
        return False
    try:
        with closing(sqlite3.connect(read_only_uri(path, immutable=True), uri=True)) as connection:
            return not Shape.read(connection).is_store
    except UNREADABLE:
        return False


def _unreadable(path: Path, *, immutable: bool) -> StoreAccessError | None:
    """What SQLite says of a file whose tables it cannot read; Datasette would end the start with a traceback."""
    try:
        with closing(sqlite3.connect(read_only_uri(path, immutable=immutable), uri=True)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            Shape.read(connection)
    except UNREADABLE as error:
        return StoreUnreadableError(path, error)
    return None


def _shape(path: Path, *, immutable: bool = False) -> Shape | None:
    """The shape of a file that is a store and can be read, else None."""
    try:
        with closing(sqlite3.connect(read_only_uri(path, immutable=immutable), uri=True)) as connection:
            shape = Shape.read(connection)
    except UNREADABLE:
        return None
    return shape if shape.is_store else None
