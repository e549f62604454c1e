"""What the files of a lake are called.

    lake.json                                                                      what it is, and in which format
    data/<table>/host=<host>/profile=<profile>/month=<month>/<content>.parquet     rows; never changed
    stores/<host>/<profile>/<sequence>-<content>.json                              manifests; never changed
"""

from __future__ import annotations

import re
import socket
import unicodedata
from datetime import datetime, timezone
from typing import NamedTuple
from urllib.parse import quote, unquote

from state_ledger.lake.errors import LakeError

LAKE = "lake.json"
STORES = "stores"
DATA = "data"

UNKNOWN = "unknown"
"""In the place of a month, for rows of sessions that are not there or have no start."""

MAY_BE_LEFT_OUT = ("title", "cwd", "git_branch", "user_id")
"""Columns that can stay on a host, besides what was said."""

_MANIFEST = re.compile(r"(?P<sequence>[0-9]{10})-(?P<content>[0-9a-f]{24})\.json")
_LONGEST = 120


class ManifestName(NamedTuple):
    """A manifest by its path. content: what begins the digest of its bytes."""

    host: str
    profile: str
    sequence: int
    content: str

    @property
    def id(self) -> str:
        return f"{self.sequence:010}-{self.content}"

    @property
    def path(self) -> str:
        return f"{STORES}/{part(self.host)}/{part(self.profile)}/{self.id}.json"


def read_manifest_name(path: str) -> ManifestName | None:
    """The manifest that a path names; None for any other file."""
    pieces = path.split("/")
    match = _MANIFEST.fullmatch(pieces[-1])
    if len(pieces) != 4 or pieces[0] != STORES or match is None:
        return None
    return ManifestName(unquote(pieces[1]), unquote(pieces[2]), int(match["sequence"]), match["content"])


def data_path(table: str, host: str, profile: str, month: str, sha256: str) -> str:
    """Where a data file lies; it is called after what is in it."""
    return f"{DATA}/{table}/host={part(host)}/profile={part(profile)}/month={month}/{sha256[:32]}.parquet"


def part(name: str) -> str:
    """A host or profile as a part of a path: what is neither letter, digit, `_` nor `-`, nor a dot within, as %XX."""
    # A name of dots alone would lead out of its folder, and one that begins with a dot would be hidden.
    quoted = quote(name, safe="", encoding="utf-8", errors="surrogateescape").replace("~", "%7E")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def checked(kind: str, name: str) -> str:
    """A host or profile as it was given, if it can be one. Raises LakeError."""
    name = name.strip()
    odd = any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name)
    if not name or odd or len(part(name)) > _LONGEST:
        raise LakeError(f"{name!r} cannot be the name of a {kind}: write 1 to {_LONGEST} characters on one line.")
    return name


def this_host() -> str:
    """The name of this machine, without its domain. Raises LakeError where it has none."""
    name = socket.gethostname().partition(".")[0]
    if not name:
        raise LakeError("This machine has no name: say --host NAME.")
    return checked("host", name)


def month_of(started_at: float | None) -> str:
    """The month, UTC, of an instant in epoch seconds; `unknown` without one."""
    if started_at is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(started_at, timezone.utc).strftime("%Y-%m")
    except (OverflowError, ValueError, OSError):
        return UNKNOWN
