"""Where a PostgreSQL database is, as its user wrote it; never shown whole, since a password may be in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from state_ledger.errors import PostgresqlError
from state_ledger.homes import cache_folder

SCHEMES = ("postgresql://", "postgres://")

_MEANT_BY = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "service": "PGSERVICE",
             "options": "PGOPTIONS"}  # fmt: skip
"""What says which rows are read, with the variables of libpq for what an address leaves out."""
_SECRET = ("password", "sslpassword")
_SEARCH_PATH = re.compile(r"""search_path\s*=\s*['"\\]*([^\s,'"\\]+)""")


def is_address(text: object) -> bool:
    """Whether a word of a command line is the address of a PostgreSQL database and not the name of a file."""
    return isinstance(text, str) and text.startswith(SCHEMES)


@dataclass(frozen=True)
class Address:
    """A database.

    text: for libpq alone. name: how it is shown, `host/database`. schema: the first of its search path, '' where
    the address names none. key: tells it from others, without telling what they are.
    """

    text: str = field(repr=False)
    name: str
    schema: str
    key: str

    @classmethod
    def of(cls, text: str) -> Address:
        """Raises PostgresqlError for an address that cannot be meant; the sentence quotes nothing of it."""
        given = _parts(text)
        meant = {name: given.get(name) or os.environ.get(variable, "") for name, variable in _MEANT_BY.items()}
        host = meant["host"] or given.get("hostaddr", "")
        host = "localhost" if host.startswith(("/", "@")) or not host else host
        database = meant["dbname"] or meant["user"]
        name = meant["service"] if meant["service"] and not meant["dbname"] else f"{host}/{database}".rstrip("/")
        found = _SEARCH_PATH.search(meant["options"])
        digest = hashlib.sha256(json.dumps([meant, given.get("hostaddr", "")]).encode("utf-8", "surrogateescape"))
        return cls(text, name, found.group(1) if found else "", digest.hexdigest()[:16])

    def __str__(self) -> str:
        return self.name

    @property
    def copy_path(self) -> Path:
        """Where its copy is kept. A schema of its own is how one database holds several profiles."""
        folder = copies_folder() / self.key
        if self.schema not in ("", "public", "$user"):
            folder = folder / "profiles" / _for_file(self.schema)
        return folder / f"{_for_file(self.name)}.db"

    def without_secrets(self, said: str) -> str:
        """What somebody said, without the passwords that he may have quoted."""
        secrets = [_parts(self.text).get(name, "") for name in _SECRET] + [os.environ.get("PGPASSWORD", "")]
        for secret in filter(None, secrets):
            said = said.replace(secret, "…")
        return said


def copies_folder() -> Path:
    """The folder of all copies of this user."""
    return cache_folder() / "postgresql"


def _parts(text: str) -> dict[str, str]:
    """An address taken apart as libpq does, without libpq: a copy is found without it too.

    A `/`, `?` or second `@` in a password has to be percent-encoded: libpq would take what follows for a host,
    a port or a database, and quote it in its errors.
    """
    rest = text.partition("://")[2]
    authority, _, behind = _split(rest)
    credentials, _, hosts = authority.rpartition("@")
    path, _, query = behind.partition("?")
    user, _, password = credentials.partition(":")
    pairs = [each.rpartition(":") if re.search(r":\d*$", each) else (each, "", "") for each in hosts.split(",")]
    found = {
        "user": user, "password": password, "dbname": path,
        "host": ",".join(host.strip("[]") for host, _, _ in pairs), "port": ",".join(port for _, _, port in pairs),
    }  # fmt: skip
    if "@" in behind or "@" in credentials or any(":" in host and not host.startswith("[") for host, _, _ in pairs):
        raise PostgresqlError(
            "This address of a PostgreSQL database cannot be read. Write postgresql://user@host/database, with every "
            "special character of a name or password percent-encoded (@ is %40, / is %2F, : is %3A), or leave the "
            "password to PGPASSWORD or ~/.pgpass."
        )
    decoded = {name: unquote(value) for name, value in found.items() if value}
    return decoded | dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))


def _split(rest: str) -> tuple[str, str, str]:
    """The authority, and what comes behind it without its first slash; a query may follow at once."""
    found = re.match(r"([^/?]*)(/?)(.*)", rest, re.DOTALL)
    assert found is not None  # it matches everything
    return found.group(1), found.group(2), found.group(3)


def _for_file(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "database"
