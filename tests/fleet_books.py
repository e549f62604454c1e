"""A lake for the pages of a fleet: three stores of two hosts, a session in two of them, one with its messages."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import books
from tests.books import call, message, session

NOON = 1780315200.0
SECRET = "sk-proj-" + "Ab3" * 16
"""What looks like a key of a model provider."""

HAS_ENGINE = all(find_spec(name) for name in ("pyarrow", "duckdb", "sqlglot"))
needs_engine = pytest.mark.skipif(not HAS_ENGINE, reason="pyarrow, duckdb or sqlglot is not installed")

PRICED = {"cost_status": "estimated", "cost_source": "provider"}


def stores(folder: Path) -> dict[tuple[str, str], Path]:
    """The stores by host and profile."""
    paths = {
        place: folder / "-".join(place) / "state.db"
        for place in (("web-01", "default"), ("web-01", "coder"), ("db.example.org", "default"))
    }
    for path in paths.values():
        path.parent.mkdir(parents=True)
    shared: Any = session("copied", title="Seen by two", started_at=NOON - 900, input_tokens=10)
    books.write(
        paths["web-01", "default"],
        sessions=[
            session("s1", title="Lighthouse", model="m", end_reason="compression", ended_at=NOON + 60),
            session("s2", title="Lighthouse, on", parent_session_id="s1", model="m", started_at=NOON + 61),
            session("lost", title="Without its parent", parent_session_id="gone"),
            shared,
        ],
        usage=[
            call("s1", input_tokens=100, cache_read_tokens=300, output_tokens=5, api_call_count=2,
                 estimated_cost_usd=0.5, **PRICED),
            call("s2", input_tokens=50, output_tokens=5, api_call_count=1, estimated_cost_usd=0.25, **PRICED),
            call("copied", input_tokens=10, api_call_count=1, estimated_cost_usd=0.01, **PRICED),
        ],
        messages=[
            message("s1", NOON, content=f"the keeper's key is {SECRET}", role="user"),
            message("s1", NOON + 1, content="<b>kept</b>", role="assistant"),
            message("copied", NOON - 800, content="only one of two"),
        ],
    )  # fmt: skip
    books.write(
        paths["web-01", "coder"],
        sessions=[session("c1", title="Coder at work", model="n", profile_name="")],
        usage=[call("c1", "n", input_tokens=7, api_call_count=1, estimated_cost_usd=2.0, **PRICED)],
        messages=[message("c1", NOON + 5, content="unsaid")],
    )
    books.write(
        paths["db.example.org", "default"],
        sessions=[session("d1", title="Far away", model="m"), shared],
        usage=[
            call("d1", input_tokens=1000, api_call_count=4, actual_cost_usd=4.0, cost_status="actual",
                 cost_source="provider"),
            call("copied", input_tokens=10, api_call_count=1, estimated_cost_usd=0.01, **PRICED),
        ],
        messages=[message("d1", NOON + 9, content="far away")],
    )  # fmt: skip
    return paths


def lake(folder: Path) -> Path:
    """The lake in this folder, with the messages of the first store as they are, secrets and all."""
    from state_ledger.lake.manifest import Options
    from state_ledger.lake.push import push

    target = folder / "lake"
    for number, ((host, profile), path) in enumerate(stores(folder / "stores").items()):
        options = Options(with_messages=number == 0, redacted=number != 0)
        push(path, target, host=host, profile=profile, options=options)
    return target
