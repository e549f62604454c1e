"""Maps the top-level folders into the wheel, where `state_ledger.plugins` and its like live.

Only for a standard wheel: an editable install reads the checkout itself, so that a folder
has one place only and nothing is loaded twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MAPPED = ("plugins", "templates", "static", "canned_queries", "migrations", "metadata.yaml")


class MapFolders(BuildHookInterface):  # type: ignore[type-arg]
    """Force-includes each top-level entry, file by file, under the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        root = Path(self.root)
        for entry in MAPPED:
            source = root / entry
            files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
            for file in files:
                relative = file.relative_to(root)
                if "__pycache__" in relative.parts:
                    continue
                build_data["force_include"][str(file)] = f"state_ledger/{relative.as_posix()}"
