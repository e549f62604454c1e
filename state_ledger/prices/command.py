"""`state-ledger prices`: what a model costs and why, and which models of a store have a price."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from state_ledger.cli import output
from state_ledger.cli.given import StorePath

if TYPE_CHECKING:
    from state_ledger.prices import Price, PriceBook, Span

@click.command(name="prices")
@click.argument("model", required=False)
@click.option("--provider", default="", metavar="NAME", help="Provider that bills, as the store names it.")
@click.option("--base-url", default="", metavar="URL", help="Address the calls go to, as the store names it.")
@click.option("--on", "day", type=click.DateTime(["%Y-%m-%d"]), help="Price of this day (UTC); by default today.")
@click.option("--prices", "table", metavar="FILE", help="Your own price table (YAML).")
@click.option("--check", "store", type=StorePath(reads=True), metavar="PATH", help="Every model of a store.")
@output.json_option
@click.pass_context
@output.told()
def prices(
    context: click.Context,
    model: str | None,
    provider: str,
    base_url: str,
    day: datetime | None,
    table: str | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Explains the list price of MODEL, or with --check lists every model of a store with its price or "no price".

    Prices come from your own table, then from the package genai-prices as it is installed; nothing is fetched.
    Ends with 0 where there is a price (with --check: every model has one for all it used), else with 1.

    \b
    Examples:
      state-ledger prices claude-sonnet-4-5
      state-ledger prices openai/gpt-5.2 --provider openrouter --on 2026-03-01
      state-ledger prices --check ~/.hermes/state.db --prices my-prices.yaml
    """
    from state_ledger.prices import PriceBook

    if (model is None) == (store is None):
        raise click.UsageError("Name a model, or a store with --check.")
    on = day.date() if day else datetime.now(timezone.utc).date()
    if store is not None:
        complete = _check(store, table, on, as_json)
    else:
        complete = _explain(PriceBook(table), model or "", provider, base_url, on, as_json)
    context.exit(output.DONE if complete else output.NOT_WELL)


def _explain(book: PriceBook, model: str, provider: str, base_url: str, on: date, as_json: bool) -> bool:
    spans = book.spans(model, provider, base_url)
    price = book.price(model, provider, base_url, on=on)
    if as_json:
        said = {"model": model, "provider": provider, "base_url": base_url, "on": on.isoformat(),
                "price": _record(price), "prices": [_span_record(span) for span in spans],
                "sources": book.sources}  # fmt: skip
        output.echo_json(said)
        return price is not None
    if price is None:
        click.echo(output.plain(f"{model}: no price on {on}. Looked in {book.sources}."))
    else:
        click.echo(output.plain(f"{model} on {on}, dollars per million tokens:"))
        for line in _in_words(price):
            click.echo(f"  {output.plain(line)}")
    if len(spans) > 1:
        click.echo("Over time:")
        for span in spans:
            click.echo(f"  {_days(span)}: {'no price' if span.price is None else _short(span.price)}")
    return price is not None


def _in_words(price: Price) -> list[str]:
    from state_ledger.prices import BUCKETS

    lines = [f"{bucket.replace('_', ' '):<12}{_amount(price, bucket)}" for bucket in BUCKETS]
    lines.append(f"priced as {price.priced_as} ({price.match})")
    lines.append(f"from {price.source}, {price.source_date or 'without a date'}")
    return [*lines, *([f"note: {price.note}"] if price.note else [])]


def _amount(price: Price, bucket: str) -> str:
    value = price.of(bucket)
    return "no price" if value is None else f"{value:f}"


def _short(price: Price) -> str:
    from state_ledger.prices import BUCKETS

    amounts = ", ".join(f"{bucket.replace('_', ' ')} {_amount(price, bucket)}" for bucket in BUCKETS)
    return f"{amounts} ({price.match}, {price.source})"


def _days(span: Span) -> str:
    first, last = span.first, span.last
    if first and last:
        return f"{first} to {last}"
    return f"since {first}" if first else f"until {last}" if last else "always"


def _record(price: Price | None) -> dict[str, Any] | None:
    from state_ledger.prices import BUCKETS

    if price is None:
        return None
    amounts = {bucket: None if (value := price.of(bucket)) is None else float(value) for bucket in BUCKETS}
    return {**amounts, "priced_as": price.priced_as, "match": price.match, "source": price.source,
            "source_date": price.source_date, "note": price.note}  # fmt: skip


def _span_record(span: Span) -> dict[str, Any]:
    first, last = span.first, span.last
    return {
        "from": first.isoformat() if first else None,
        "until": last.isoformat() if last else None,
        "price": _record(span.price),
    }


def _check(store: Path, table: str | None, on: date, as_json: bool) -> bool:
    """Lists the models of a store; returns whether every one that was used has a complete price."""
    from state_ledger import questions
    from state_ledger.connection import open_for_reading
    from state_ledger.settings import Settings

    settings = Settings(prices=table or "")
    sources = settings.price_book.sources
    connection = open_for_reading(store, settings=settings)
    try:
        limit = {"limit": str(settings.max_limit)}
        result = questions.ask(connection, "model_prices", {"day": on.isoformat(), **limit}, settings=settings)
    finally:
        connection.close()
    rows = result.records()
    used = [row for row in rows if row["processed_tokens"]]
    lacking = [row for row in used if row["price_match"] == "none" or row["missing_buckets"]]
    if as_json:
        said = {"on": on.isoformat(), "sources": sources, "models": rows, "truncated": result.truncated,
                "without_price": len(lacking)}  # fmt: skip
        output.echo_json(said)
    else:
        for line in _listing(rows):
            click.echo(output.plain(line))
        click.echo(f"{len(used):,} of {len(rows):,} were used, {len(lacking):,} of them without a complete price.")
        click.echo(f"Prices of {on} from {sources}.")
        if result.truncated:
            click.echo(f"Cut at {settings.max_limit:,} models.", err=True)
    return not lacking and not result.truncated


def _listing(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        where = row["billing_provider"] or row["billing_base_url"]
        name = f"{row['model']}{f' by {where}' if where else ''}"
        if row["price_match"] == "none":
            lines.append(f"{name}: no price ({row['processed_tokens']:,} tokens)")
            continue
        amounts = " / ".join(
            "none" if row[f"{bucket}_price"] is None else f"{row[f'{bucket}_price']:g}"
            for bucket in ("input", "output", "cache_read", "cache_write")
        )
        missing = f"; incomplete: {row['missing_buckets'].replace(' ', ', ')}" if row["missing_buckets"] else ""
        said = f"priced as {row['priced_as']}, {row['price_match']}, {row['price_source']}"
        lines.append(f"{name}: {amounts} (input / output / cache read / cache write; {said}){missing}")
    return lines
