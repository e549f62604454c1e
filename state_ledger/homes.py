"""The folders of this user: Hermes Agent's, and those in which state-ledger keeps files of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from state_ledger import private
from state_ledger.errors import NoHomeError


def home() -> Path | None:
    """The user's home; None where the system knows none, as for a number without a name in a container."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def hermes_home(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of Hermes Agent, `$HERMES_HOME`, else `~/.hermes`; None where there is no home to look in."""
    environ = os.environ if environ is None else environ
    named = environ.get("HERMES_HOME", "").strip()
    if named:
        return expanded(named)
    at_home = home()
    return None if at_home is None else at_home / ".hermes"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what can be made again, by the habit of the system; it may not exist yet.

    Without a home: a folder of this user's in the one for temporary files. Raises NoHomeError if that is not this
    user's alone.
    """
    found = _folder_of_ours(environ, "XDG_CACHE_HOME", "Caches", ".cache")
    return _temporary() if found is None else found


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what cannot be made again, by the habit of the system; it may not exist yet.

    Raises NoHomeError where there is no home: what lies in a folder for temporary files is soon gone.
    """
    found = _folder_of_ours(environ, "XDG_DATA_HOME", "Application Support", ".local/share")
    if found is None:
        raise NoHomeError(
            "This user has no home folder to keep files in. Name a folder, or let XDG_DATA_HOME or HOME name one."
        )
    return found


def expanded(path: str | Path) -> Path:
    """A path with the home it begins with, if that is known; else as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _folder_of_ours(
    environ: Mapping[str, str] | None, variable: str, on_macos: str, elsewhere: str
) -> Path | None:
    environ = os.environ if environ is None else environ
    windows = sys.platform == "win32"
    if base := environ.get("LOCALAPPDATA" if windows else variable):
        return expanded(base) / "state-ledger"
    at_home = home()
    if at_home is None:
        return None
    within = "AppData/Local" if windows else f"Library/{on_macos}" if sys.platform == "darwin" else elsewhere
    return at_home / within / "state-ledger"


def _temporary() -> Path:
    """Made at once, and looked at after: where everybody writes, another user could have been first."""
    folder = Path(tempfile.gettempdir()) / f"state-ledger-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        alone = private.is_ours(folder, 0o077)
    except OSError as error:
        raise NoHomeError(f"{folder} cannot be made ({error.strerror}). Let HOME name a folder of yours.") from error
    if not alone:
        raise NoHomeError(f"{folder} is not yours alone. Let HOME name a folder that is.")
    return folder
