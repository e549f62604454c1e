"""Demo stores: a schema-23 `state.db` that shows everything the pages explain.

All content is made up. The same seed and the same end give the same rows on any day and machine.
"""

from __future__ import annotations

from state_ledger.demo.store import DEFAULT_END, Demo, make_demo

__all__ = ["DEFAULT_END", "Demo", "make_demo"]
