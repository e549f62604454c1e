"""The Datasette plugins; their files live in the top-level `plugins/` folder."""

from importlib import import_module

from state_ledger.assets import folder

__path__ = [str(folder("plugins"))]

# A program may import one of them before Datasette: Datasette would then register it while it is half read, without
# its hooks. So Datasette reads all of them first.
import_module("datasette.plugins")
