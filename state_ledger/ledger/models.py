"""One name per model, although stores spell it in several ways (accounting rule 4)."""

from __future__ import annotations

import re
from functools import lru_cache

_DATE_SUFFIX = re.compile(r"[-@_]20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])$")


@lru_cache(maxsize=4096)
def canonical_model(stored: str | bytes | None) -> str:
    """The name under which a model's figures are summed.

    The rule: what stands before the last slash (a provider or router) goes, letters become lower
    case, a date at the end (`-20250929`, `-2025-09-29`, `@20250929`) goes. Nothing else: `:free`,
    `-mini` or a version number make another model. An empty or missing name is `unknown`.

    >>> canonical_model("Anthropic/Claude-Sonnet-4-5-20250929")
    'claude-sonnet-4-5'
    """
    if stored is None:
        return "unknown"
    name = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else stored
    name = name.strip().rstrip("/").rpartition("/")[2].strip().lower()
    return _DATE_SUFFIX.sub("", name) or "unknown"
