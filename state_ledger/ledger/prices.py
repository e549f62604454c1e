"""`ledger_prices`: the list price of every model of the store, and from when to when it holds (accounting rule 10)."""

from __future__ import annotations

from state_ledger.ledger.columns import column, listed
from state_ledger.shape import Shape

KEY = ("model", "billing_provider", "billing_base_url")

PRICED = ("valid_from", "valid_until", "from_epoch", "until_epoch", "input_price", "output_price",
          "cache_read_price", "cache_write_price", "price_source", "price_date", "priced_as", "price_match",
          "price_note")  # fmt: skip


def views(shape: Shape) -> list[tuple[str, str]]:
    """The view of prices as (name, SELECT).

    For each (model, provider, base URL) as stored its rows cover all of time without overlapping, so that a join on
    them and on a moment neither drops nor doubles a row. Nothing is looked up before the view is asked, and then
    once, however it is joined.
    """
    key = {name: f"coalesce(u.{name}, '')" for name in KEY}
    stored = {name: column(shape, "sessions", name, "s") for name in KEY}
    session = f"coalesce({stored['model']}, 'unknown'), coalesce({stored[KEY[1]]}, ''), coalesce({stored[KEY[2]]}, '')"
    used = (
        f"SELECT {listed(key)} FROM ledger_usage_rows AS u UNION SELECT {session} FROM main.sessions AS s"
    )
    return [("ledger_prices", listed_for(used))]


def listed_for(used: str) -> str:
    """The SELECT of the view for the models that `used` gives: rows of the columns of KEY, each once, without NULLs."""
    told = ", ".join(f"CAST(u.{name} AS BLOB)" for name in KEY)
    cells = {name: f"json_extract(p.value, '$.{name}')" for name in PRICED}
    return (
        f"WITH priced AS MATERIALIZED (SELECT u.*, canonical_model(CAST(u.model AS BLOB)) AS canonical_model,"
        f" {listed(cells)} FROM ({used}) AS u CROSS JOIN json_each(price_spans({told})) AS p) SELECT * FROM priced"
    )
