"""Stores: where they are, what they are called."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from state_ledger.homes import expanded, hermes_home

DEFAULT_PROFILE = "default"
"""The profile of a store that lies in no `profiles/<name>/` folder."""


@dataclass(frozen=True)
class Store:
    """One file.

    path: absolute, links not followed.
    name: what its URLs begin with: ASCII letters, digits, `-` and `_`, unique among the stores
        that were named together.
    profile: the name of its folder below `profiles/`, else `default`.
    """

    path: Path
    name: str
    profile: str


def profile_of(path: str | Path) -> str:
    """The profile that a store belongs to: `work` for `…/profiles/work/state.db`."""
    folder = _absolute(path).parent
    return folder.name if folder.parent.name == "profiles" else DEFAULT_PROFILE


def name_stores(paths: Iterable[str | Path], *, taken: Collection[str] = ()) -> list[Store]:
    """Names stores for their URLs, in the order given; a path given twice is one store.

    A `state.db` in `profiles/<name>/` is called after its profile, any other file after its stem.
    Two of one name, or one whose name is `taken`, get the names of the folders above in front,
    as many as it takes to tell them apart: `alpha-state`, `beta-state`.
    """
    files = list(dict.fromkeys(_absolute(path) for path in paths))
    candidates = {file: _candidates(file) for file in files}
    depth = dict.fromkeys(files, 0)
    while True:
        names = {file: candidates[file][depth[file]] for file in files}
        count = Counter(name.lower() for name in names.values())
        used = {name.lower() for name in taken}
        clashing = [
            file
            for file in files
            if (count[names[file].lower()] > 1 or names[file].lower() in used)
            and depth[file] + 1 < len(candidates[file])
        ]
        if not clashing:
            return [Store(file, names[file], profile_of(file)) for file in files]
        for file in clashing:
            depth[file] += 1


def answers_to(path: str | Path, name: str) -> bool:
    """Whether a store is meant by a name that its URLs could begin with, in any case, or by its path."""
    file = _absolute(path)
    return name.lower() in {each.lower() for each in _candidates(file)} or _absolute(name) == file


def find_stores(environ: Mapping[str, str] | None = None) -> list[Path]:
    """The stores of this user: the default one first, then those of profiles by name.

    Looks in `$HERMES_HOME`, else in `~/.hermes`, for `state.db`, and in every folder of `profiles/`
    beside it. An empty list if there is none.
    """
    home = hermes_home(environ)
    if home is None:
        return []
    found = [home / "state.db", *sorted((home / "profiles").glob("*/state.db"))]
    return [path for path in found if path.is_file()]


def _absolute(path: str | Path) -> Path:
    # Not resolve(): a link into `profiles/` is how some people name their stores.
    return Path(os.path.abspath(expanded(path)))  # noqa: PTH100


def _candidates(file: Path) -> list[str]:
    """Names for a file from the shortest to one that no other file can have."""
    in_profile = profile_of(file) != DEFAULT_PROFILE and file.stem == "state"
    base = file.parent if in_profile else file
    parts = [_for_url(base.name if in_profile else base.stem)]
    # "profiles" says nothing that the name does not.
    above = [_for_url(folder.name) for folder in base.parents if folder.name not in ("", "profiles")]
    names = [parts[0] or _digest(file)]
    for folder in above:
        parts.insert(0, folder)
        names.append("-".join(part for part in parts if part) or _digest(file))
    return [*names, f"{names[0]}-{_digest(file)}"]


def _for_url(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")


def _digest(file: Path) -> str:
    return "store-" + hashlib.sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:6]
