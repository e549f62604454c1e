"""Prices out of the package `genai-prices`, from the data it is installed with; nothing is ever fetched.

Its data are read rather than its calculation used, since that prices single requests: a sum of requests has no
size by which a tier could be chosen, buckets overlap there, and a missing cache price is filled in silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timezone
from functools import cached_property
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from state_ledger.ledger.models import canonical_model
from state_ledger.prices.price import BUCKETS, Match, Price

NAME = "genai-prices"

SELF_HOSTED = frozenset({"custom", "local", "ollama", "lmstudio", "lm-studio", "llamacpp", "llama.cpp", "vllm"})
"""Providers that stand for any address: only a known address tells what such a call costs."""

_LOCAL = re.compile(
    r"localhost|.*\.local|.*\.internal|127\..*|10\..*|192\.168\..*|172\.(1[6-9]|2\d|3[01])\..*|0\.0\.0\.0|::1|\[::1\]"
)
_VERSION = re.compile(r"(?<=\d)-(?=\d{1,2}(?:\D|$))")
_COMPACT_DATE = re.compile(r"(?<=[-@])(20\d\d)(\d\d)(\d\d)$")


class Package:
    """The installed package; `available` is False where it is not there. Reading it is put off until it is asked."""

    @cached_property
    def providers(self) -> list[Any]:
        """The providers of the package's own data; [] without the package."""
        try:
            from genai_prices.data import providers
        except ImportError:
            return []
        return list(providers)

    @property
    def available(self) -> bool:
        return bool(self.providers)

    @cached_property
    def source(self) -> str:
        """Name and version."""
        try:
            return f"{NAME} {metadata.version(NAME)}"
        except metadata.PackageNotFoundError:
            return NAME

    @cached_property
    def dated(self) -> str:
        """The latest price change that the data know of and that has come, ISO date; '' if they have no dates."""
        today = datetime.now(timezone.utc).date()
        known = [
            day for provider in self.providers for model in provider.models for day in starts(model) if day <= today
        ]
        return max(known).isoformat() if known else ""

    def find(self, model: str, provider: str, base_url: str) -> tuple[Any, Any, Match] | None:
        """(provider, model, match) of the package for a model as stored; None where it has no price for it."""
        if not self.available or not model.strip():
            return None
        billed, by_id = self._provider(provider, base_url)
        if billed is not None:
            found = self._model(billed, model)
            if found is not None:
                entry, match = found
                return billed, entry, "alias" if match == "exact" and not by_id else match
        name = provider.strip().lower()
        if billed is None and (name in SELF_HOSTED or is_local(base_url)):
            return None
        maker = self._maker(model)
        if maker is None or maker is billed:
            return None
        found = self._model(maker, model)
        if found is None:
            return None
        # Another's price, unless nobody said who billed.
        return maker, found[0], "fuzzy" if name or base_url.strip() else found[1]

    def _provider(self, name: str, base_url: str) -> tuple[Any | None, bool]:
        """The package's provider, and whether the name is its own: by id, by the package's rule, by address."""
        name, base_url = name.strip().lower(), base_url.strip()
        if name and name not in SELF_HOSTED:
            for provider in self.providers:
                if provider.id == name:
                    return provider, True
            for provider in self.providers:
                if provider.provider_match is not None and provider.provider_match.is_match(name):
                    return provider, False
        if base_url:
            for provider in self.providers:
                if re.match(provider.api_pattern, base_url):
                    return provider, False
        return None, False

    def _maker(self, model: str) -> Any | None:
        prefix = model.strip().lower().rpartition("/")[0].rpartition("/")[2]
        if prefix:
            named, _by_id = self._provider(prefix, "")
            if named is not None:
                return named
        name = canonical_model(model)
        return next((p for p in self.providers if p.model_match is not None and p.model_match.is_match(name)), None)

    def _model(self, provider: Any, model: str) -> tuple[Any, Match] | None:
        """A model of a provider: one of the names in its data first, then what only begins alike."""
        stored = model.strip().lower()
        names = list(dict.fromkeys(spellings(stored)))
        lists = [provider.models]
        for other in provider.fallback_model_providers or ():
            lists += [each.models for each in self.providers if each.id == other]
        for models in lists:
            for name in names:
                for entry in models:
                    if entry.id.lower() == name:
                        return entry, "exact" if name == stored else "alias"
                for entry in models:
                    if name in equals(entry.match):
                        return entry, "alias"
            for name in names:
                for entry in models:
                    if entry.is_match(name):
                        same = canonical_model(entry.id) in {canonical_model(each) for each in names}
                        return entry, "alias" if same else "fuzzy"
        return None

    def price(self, found: tuple[Any, Any, Match], day: date) -> Price | None:
        """The price that holds on a day, UTC; None where the data give no price per token."""
        provider, model, match = found
        prices, timed = _on(model, day)
        values, tiers = {}, []
        for bucket in BUCKETS:
            value: Any = getattr(prices, f"{bucket}_mtok", None)
            if hasattr(value, "base"):
                tiers += [tier.start for tier in value.tiers]
                value = value.base
            values[bucket] = value
        if all(value is None for value in values.values()):
            return None
        notes = []
        if tiers:
            notes.append(f"base tier; the price changes with prompts above {min(tiers):,} tokens")
        if timed:
            notes.append("standard price; at some hours of the day another one holds")
        if getattr(prices, "requests_kcount", None) is not None:
            notes.append("without its fee per request")
        return Price(model.id, provider.id, match, self.source, self.dated, note="; ".join(notes), **values)


def is_local(base_url: str) -> bool:
    """Whether an address is one of this machine or of a private network."""
    text = base_url.strip().lower()
    try:
        host = urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return False
    return bool(_LOCAL.fullmatch(host)) or (bool(host) and "." not in host and ":" not in host)


def spellings(stored: str) -> Iterator[str]:
    """Names under which a model may stand in a list, the stored one first.

    Without what stands before the last slash, without a date or with one in dashes, and with a version as `4.5`
    where the store has `4-5`.
    """
    prefix, slash, _name = stored.rpartition("/")
    plain = canonical_model(stored)
    for name in (stored, f"{prefix}{slash}{plain}", stored.rpartition("/")[2], plain):
        yield name
        yield _COMPACT_DATE.sub(r"\1-\2-\3", name)
    for name in (f"{prefix}{slash}{plain}", plain):
        yield _VERSION.sub(".", name)


def equals(match: Any) -> frozenset[str]:
    """The names that a rule of the package takes as equal, lower case."""
    if hasattr(match, "equals"):
        return frozenset({match.equals.lower()})
    parts = getattr(match, "or_", ())
    return frozenset().union(*(equals(part) for part in parts)) if parts else frozenset()


def starts(model: Any) -> list[date]:
    """The days on which prices of a model begin."""
    conditional = model.prices if isinstance(model.prices, list) else []
    return [each.constraint.start_date for each in conditional if hasattr(each.constraint, "start_date")]


def _on(model: Any, day: date) -> tuple[Any, bool]:
    """The prices of a day, and whether others hold at some hours. The last that fits holds, else the first."""
    if not isinstance(model.prices, list):
        return model.prices, False
    timed = any(hasattr(each.constraint, "start_time") for each in model.prices)
    dated = [each for each in model.prices if not hasattr(each.constraint, "start_time")]
    for each in reversed(dated):
        if each.constraint is None or each.constraint.start_date <= day:
            return each.prices, timed
    return (dated or model.prices)[0].prices, timed
