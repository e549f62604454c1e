"""The Datasette plugins; their files live in the top-level `plugins/` folder."""

from state_ledger.assets import folder

__path__ = [str(folder("plugins"))]
