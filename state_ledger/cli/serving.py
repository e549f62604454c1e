"""`state-ledger serve`: shows stores in the browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import click

from state_ledger import access, snapshot
from state_ledger.budgets import given as budget_options
from state_ledger.cli import output
from state_ledger.cli.given import copied
from state_ledger.errors import StoreAccessError
from state_ledger.fleet.places import VARIABLES, is_folder
from state_ledger.homes import cache_folder, expanded
from state_ledger.postgresql import VARIABLE as ADDRESSES
from state_ledger.postgresql import is_address
from state_ledger.stores import find_stores

PORT = 8001
DEMO_BYTES = 12 << 20
"""The room that a demo store takes."""
FLAGS = frozenset(
    {"--reload", "--cors", "--memory", "--root", "--default-deny", "--headers", "--help-settings", "--pdb",
     "--create", "--crossdb", "--nolock"}
)  # fmt: skip
"""Options of `datasette serve` that take no value, on 0.65 and 1.0."""
PAIRS = frozenset({"--setting", "-s"})
"""Those that take two values; any other takes one."""


@dataclass
class Arguments:
    """What was given to `serve`: stores, addresses of databases that are shown by copies, the rest for Datasette."""

    paths: list[Path] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def value(self, *names: str) -> str | None:
        """The value of an option, None if it was not given."""
        for at, word in enumerate(self.options):
            name, equals, value = word.partition("=")
            if name in names:
                return value if equals else "".join(self.options[at + 1 : at + 2])
        return None

    def setting(self, key: str) -> str | None:
        """The value of a Datasette setting given with `--setting key value`, None if it was not."""
        words = [*self.options, ""]
        triples = zip(words, words[1:], words[2:], strict=False)
        return next((value for word, name, value in triples if word in PAIRS and name == key), None)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PATH|ADDRESS]... [DATASETTE OPTIONS]...")
@click.option("-h", "--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("-p", "--port", type=click.IntRange(0, 65535), help="Port; by default 8001 or a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--snapshot", "snapshots", is_flag=True, help="Show private copies, taken now.")
@click.option("--companion", is_flag=True, help="Keep a search index of each store in your cache folder.")
@click.option("--lake", metavar="URL", help="Show the books of a fleet: the lake that its hosts push to.")
@click.option("--clickhouse", metavar="DSN", help="Show those that a ClickHouse server holds, or fill it from --lake.")
@click.option("--postgresql", metavar="DSN", help="Show those that a PostgreSQL server holds, or fill it from --lake.")
@budget_options.budget_option
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords wherever text is shown.")
@click.option("--prices", metavar="FILE", help="Your own price table (YAML), over those of genai-prices.")
@output.told()
def serve(
    arguments: tuple[str, ...],
    host: str,
    port: int | None,
    no_browser: bool,
    snapshots: bool,
    companion: bool,
    lake: str | None,
    clickhouse: str | None,
    postgresql: str | None,
    redact: bool,
    budgets: tuple[str, ...],
    prices: str | None,
) -> None:
    """Shows stores in the browser, without changing a byte of them.

    Without a PATH: the stores of this user ($HERMES_HOME or ~/.hermes, with its profiles), or a
    demo store if there is none; with a fleet, no store. An ADDRESS is a database of Hermes' PostgreSQL
    backend; it is shown by a private copy that is kept up to date. Options that are not listed go to
    `datasette serve`.

    \b
    Examples:
      state-ledger serve
      state-ledger serve state.db --port 9000 --no-browser
      state-ledger serve --budget 50/month --budget 5/day,source=cron
      state-ledger serve a.db b.db --setting sql_time_limit_ms 3000
      state-ledger serve postgresql://reader@db.example.com/hermes
      state-ledger serve --lake s3://books/fleet
    """
    given = split_arguments(arguments)
    fleets = {"lake": lake, "clickhouse": clickhouse, "postgresql": postgresql}
    named = {kind: place for kind, place in fleets.items() if place is not None}
    if clickhouse is not None and postgresql is not None:
        raise click.UsageError("Name --clickhouse or --postgresql, not both.")
    chosen_by_name = bool(given.paths or given.addresses or named or given.value("-i", "--immutable"))
    paths = given.paths if chosen_by_name else _own_stores()
    served = _readable([*paths, *map(copied, given.addresses)], snapshots)
    port = _free_port(host) if port is None or port == 0 else port
    address = _address(given, host, port)
    once = given.value("--get") is not None or "--help-settings" in given.options
    if not once and given.value("--uds") is None:
        click.echo(f"Serving on {address}  (Ctrl-C ends it)")
        if not no_browser:
            _open_browser_later(host, port, address)
    command = [sys.executable, "-m", "datasette", "serve", *map(str, served)]
    command += ["--host", host, "--port", str(port), *given.options]
    # The plugin takes the snapshots, in the process that shows and removes them.
    chosen = {
        "STATE_LEDGER_SNAPSHOT": snapshots,
        "STATE_LEDGER_COMPANION": companion,
        "STATE_LEDGER_REDACT": redact,
    }
    environment = {**os.environ, **{name: "1" for name, wanted in chosen.items() if wanted}}
    if given.addresses:  # not among the arguments, which every user of the machine can see
        environment[ADDRESSES] = "\n".join(given.addresses)
    for kind, place in named.items():
        # Not on the command line, which every user of the machine can read: it may hold a password.
        environment[VARIABLES[kind]] = str(expanded(place).absolute()) if is_folder(kind, place) else place
    if budgets:
        environment[budget_options.VARIABLE] = "\n".join(budgets)
    if prices is not None:
        environment["STATE_LEDGER_PRICES"] = str(expanded(prices).absolute())
    _become(command, environment)


def split_arguments(arguments: Sequence[str]) -> Arguments:
    """Tells stores from options with their values: `FLAGS` take none, `PAIRS` two, any other one."""
    found = Arguments()
    words = list(arguments)
    while words:
        word = words.pop(0)
        if is_address(word):
            found.addresses.append(word)
        elif not word.startswith("-") or word == "-":
            found.paths.append(Path(word))
        elif word in ("-o", "--open"):
            continue  # the browser is opened anyway, when the address answers
        else:
            found.options.append(word)
            values = 0 if "=" in word or word in FLAGS else 2 if word in PAIRS else 1
            found.options += words[:values]
            del words[:values]
    return found


def _own_stores() -> list[Path]:
    found = find_stores()
    if found:
        return found
    # A folder a day, so that the last weeks of the demo are the last weeks; never a new file in the
    # place of one that another window may still be showing, whose sidecars it would inherit.
    now = datetime.now(timezone.utc)
    folder = cache_folder() / "demo"
    path = folder / f"{now:%Y-%m-%d}" / "demo.db"
    if not path.exists():
        try:
            for older in folder.glob("*-*-*"):
                shutil.rmtree(older, ignore_errors=True)
            _make_demo(path, now)
        except OSError as error:  # a home that cannot be written: as long as this process, which Datasette becomes
            place = snapshot.private_folder(DEMO_BYTES)
            if place is None:
                raise click.ClickException(f"{path} could not be written: {error.strerror}.") from error
            path = place / "demo.db"
            _make_demo(path, now)
    click.echo(f"No store of your own was found; this is a demo store, made up: {path}")
    return [path]


def _make_demo(path: Path, now: datetime) -> None:
    from state_ledger.demo import make_demo

    with suppress(FileExistsError):  # made by another window a moment ago
        make_demo(path, now=now)


def _readable(paths: Sequence[Path], snapshots: bool) -> list[Path]:
    """The files to serve; one that is named twice, perhaps by a link, only by its first name.

    A store that cannot be read, or only by a snapshot that is not wanted, is named with its remedy
    and left out. Raises click.ClickException if none is left.
    """
    files: dict[str, Path] = {}
    for path in paths:
        files.setdefault(os.path.realpath(path), path.absolute())
    served: list[Path] = []
    refusals: list[str] = []
    for path in files.values():
        try:
            access.check(path)
        except StoreAccessError as refusal:
            if not (snapshots and refusal.snapshot_possible):
                refusals.append(str(refusal))
                continue
        served.append(path)
    if paths and not served:
        raise click.ClickException("\n".join(refusals))
    for sentence in refusals:
        click.echo(f"Left out: {sentence}", err=True)
    return served


def _free_port(host: str) -> int:
    for port in (PORT, 0):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise click.ClickException(f"This machine cannot listen on {host}; name another address with --host.")


def _address(given: Arguments, host: str, port: int) -> str:
    scheme = "https" if given.value("--ssl-certfile") else "http"
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    base = (given.setting("base_url") or "/").strip("/")
    return f"{scheme}://{shown}:{port}/{base}{'/' if base else ''}"


def _open_browser_later(host: str, port: int, address: str) -> None:
    """Starts a process that opens the browser when the port answers: a thread would not outlive exec."""
    code = "import sys; from state_ledger.cli.serving import open_when_answering as f; f(*sys.argv[1:])"
    connect_to = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    quiet = subprocess.DEVNULL
    arguments = [sys.executable, "-c", code, connect_to, str(port), address]
    subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet)


def open_when_answering(host: str, port: str, address: str, patience_s: float = 60.0) -> None:
    """Opens `address` once something listens on host and port; gives up when the parent process ends."""
    parent, deadline = os.getppid(), time.monotonic() + patience_s
    while time.monotonic() < deadline and os.getppid() == parent:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            webbrowser.open(address)
            return


def _become(command: list[str], environment: dict[str, str]) -> None:
    """Lets Datasette take the place of this process, so that signals and exit codes are its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(command[0], command, environment)
    try:
        sys.exit(subprocess.call(command, env=environment))
    except KeyboardInterrupt:
        sys.exit(130)
