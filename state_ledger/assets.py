"""Where the top-level folders are: inside the package (a wheel) or beside it (a checkout)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_PACKAGE = Path(__file__).resolve().parent

HOME: Path = _PACKAGE if (_PACKAGE / "canned_queries").is_dir() else _PACKAGE.parent
"""The folder that holds `canned_queries/`, `plugins/`, `templates/`, `static/`, `metadata.yaml`."""


YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader in C where PyYAML has it: reading all front matter at start takes 8 instead of 45 ms."""


def folder(name: str) -> Path:
    """The path of one top-level entry, for instance `folder("static")`."""
    return HOME / name
