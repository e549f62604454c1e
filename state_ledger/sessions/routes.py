"""Which model a session runs on and through whom. Source: session-db, section 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state_ledger.content import from_json, json_text
from state_ledger.sessions import set_columns
from state_ledger.sqlite import Connection
from state_ledger.surrogates import scrub_optional
from state_ledger.writing.writer import Writer

LOCK = "browser_model_lock"
"""The key of `model_config` under which a client keeps the model that its user chose."""


def update_session_model(writer: Writer, session_id: str, model: str | None) -> None:
    """Sets the model; drops the lock on another one and the system prompt that was made for it."""
    lock = f"$.{LOCK}"
    writer.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET model = ?, system_prompt = NULL, model_config ="
            " CASE WHEN NOT json_valid(model_config) THEN model_config"
            f" WHEN json_type(model_config, '{lock}') IS NULL THEN model_config"
            f" ELSE json_remove(model_config, '{lock}') END WHERE id = ?",
            (scrub_optional(model), session_id),
        )
    )


def update_session_billing_route(
    writer: Writer,
    session_id: str,
    *,
    provider: str | None,
    base_url: str | None,
    billing_mode: str | None = None,
) -> None:
    """Sets provider and base URL, the mode where one is given; drops the system prompt."""
    given = {} if billing_mode is None else {"billing_mode": billing_mode}
    set_columns(writer, session_id, billing_provider=provider, billing_base_url=base_url, system_prompt=None, **given)


def update_session_runtime_lock(
    writer: Writer,
    session_id: str,
    *,
    model: str | None = None,
    provider: str | None = None,
    model_options: Mapping[str, Any] | None = None,
    route_source: str | None = None,
    confirmed: bool = False,
) -> None:
    """Notes which model the user chose, as `browser_model_lock` in `model_config`; what is not given stays.

    `confirmed` is noted always. Everything else in `model_config` stays as it is; nothing happens
    for an unknown session.
    Raises ValueError if `model_config` is not a JSON object: nothing can be added to it then.
    """
    given = {"model": model, "provider": provider, "model_options": model_options, "route_source": route_source}
    chosen = {name: value for name, value in given.items() if value is not None}

    def work(connection: Connection) -> None:
        row = connection.execute("SELECT model_config FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            return
        config = _object(row[0], session_id)
        before = config.get(LOCK)
        config[LOCK] = {**(before if isinstance(before, dict) else {}), **chosen, "confirmed": bool(confirmed)}
        connection.execute("UPDATE sessions SET model_config = ? WHERE id = ?", (json_text(config), session_id))

    writer.write(work)


def _object(stored: str | None, session_id: str) -> dict[str, Any]:
    try:
        config = from_json(stored) if stored else {}
    except (TypeError, ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise ValueError(
            f"The model_config of session {session_id} is not a JSON object; replace it with update_session_meta first."
        )
    return config
