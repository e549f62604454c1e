"""JSON that we answer ourselves, the same on both Datasette lines."""

from __future__ import annotations

import json
import math
from typing import Any

from datasette.utils.asgi import Response


def respond(body: dict[str, Any], *, status: int = 200) -> Response:
    """A body as JSON; what JSON has no word for becomes null or text."""
    return Response(
        json.dumps(finite(body), default=_as_text, ensure_ascii=False),
        status=status,
        content_type="application/json; charset=utf-8",
    )


def refuse(sentence: str, status: int) -> Response:
    """An error as Datasette spells it: a sentence and its status."""
    body = {"ok": False, "error": sentence, "status": status, "title": "This cannot be answered"}
    return respond(body, status=status)


def finite(value: Any) -> Any:
    """A value, at any depth, without infinities: JSON has no word for them, and a damaged row can hold one."""
    kind = type(value)  # tens of thousands of cells pass here, most of them text
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if kind is list or kind is tuple else value


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
