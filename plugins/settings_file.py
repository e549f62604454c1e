"""The user's file that holds our settings: read through Datasette, found again for what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from state_ledger.errors import SettingsError
from state_ledger.plugins import compat
from state_ledger.settings import PLUGIN, Settings, line_of, line_of_setting

if TYPE_CHECKING:
    from datasette.app import Datasette

METADATA_NAMES = ("metadata.json", "metadata.yaml", "metadata.yml")
CONFIGURATION_NAMES = ("datasette.json", "datasette.yaml", "datasette.yml")
"""What Datasette reads from a folder that it serves; of each kind the first that exists."""


def load(datasette: Datasette) -> Settings:
    """The settings of an instance, defaults for what the user does not set.

    Raises SettingsError for what cannot be meant, with file and line where a file says it. To name
    the file it has to run on the thread of the command line.
    """
    given = datasette.plugin_config(PLUGIN)
    given = {} if given is None else given
    try:
        return Settings.from_mapping(given)
    except SettingsError as error:
        for file in _files(datasette):
            whole = error.key == PLUGIN
            line = line_of(file, ("plugins", PLUGIN)) if whole else line_of_setting(file, error.key)
            if line is not None:
                key, value, allowed = error.key, error.value, error.allowed
                raise SettingsError(key, value, allowed, file=file, line=line) from None
        raise


def _files(datasette: Datasette) -> Iterator[Path]:
    """Every file that Datasette read settings from, the one that wins first."""
    context = click.get_current_context(silent=True)
    kinds = [("metadata", METADATA_NAMES)]
    if compat.IS_1:  # moves what it finds in the metadata over what the configuration says
        kinds.append(("config", CONFIGURATION_NAMES))
    for option, names in kinds:
        given = context.params.get(option) if context is not None else None
        if given is not None:
            yield Path(given.name)
        elif datasette.config_dir is not None:
            inside = [Path(datasette.config_dir, name) for name in names]
            yield from [path for path in inside if path.is_file()][:1]
