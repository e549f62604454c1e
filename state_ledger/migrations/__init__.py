"""The data migrations; their files live in the top-level `migrations/` folder."""

from state_ledger.assets import folder

__path__ = [str(folder("migrations"))]
