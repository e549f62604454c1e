"""axe-core, which looks for faults that keep people from using a page: fetched from npm once, for tests only.

`python3 -m tests.axe` fetches it, or ends with what is wrong; it needs nothing but Python and npm. The package is
kept in the user's cache folder and used only if it is, byte for byte, the one that was released.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.1"
SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""Of the package as npm gives it, in base64."""

SCRIPT = "package/axe.min.js"


class Unavailable(Exception):
    """There is no axe-core here and none can be had; the text says why."""


def kept_at() -> Path:
    """Where the package is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "state-ledger-tests" / f"axe-core-{VERSION}.tgz"


def script() -> str:
    """The script that does the looking, fetched first if it is not there; raises Unavailable."""
    package = kept_at()
    if not package.is_file():
        fetch(package)
    check(package)
    with tarfile.open(package) as archive:
        member = archive.extractfile(SCRIPT)
        assert member is not None, f"{SCRIPT} is a file of every release"
        return member.read().decode("utf-8")


def fetch(package: Path) -> None:
    """Writes the package to a file, whole or not at all; raises Unavailable."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("there is no npm to fetch axe-core with")
    package.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=package.parent) as folder:
        asked = [npm, "pack", f"axe-core@{VERSION}", "--silent", "--ignore-scripts", "--pack-destination", folder]
        try:
            done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            raise Unavailable("npm did not fetch axe-core in two minutes") from None
        made = Path(folder) / package.name
        if done.returncode or not made.is_file():
            raise Unavailable(f"npm cannot fetch axe-core {VERSION}: {done.stderr.strip()[-300:] or 'it says nothing'}")
        check(made)
        made.replace(package)


def check(package: Path) -> None:
    """Raises Unavailable if a package is not the one that was released."""
    if base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode("ascii") != SHA512:
        raise Unavailable(f"{package} is not axe-core {VERSION} as it was released: remove it")


if __name__ == "__main__":
    try:
        print(f"axe-core {VERSION}: {len(script()):,} characters, kept at {kept_at()}")
    except Unavailable as missing:
        sys.exit(f"The pages cannot be looked over for accessibility: {missing}.")
