"""JSON of records, as fast as Python has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def _encoder() -> Callable[[Any], str]:
    """An encoder that is made once: the standard library makes one for each value, a fifth of the time."""
    make = getattr(json.encoder, "c_make_encoder", None)
    plain = json.JSONEncoder(ensure_ascii=False, default=str).encode
    if make is None:
        return plain
    try:
        pieces = make(None, str, json.encoder.encode_basestring, None, ": ", ", ", False, False, True)
        if "".join(pieces({"ü": [1, None, 0.5]}, 0)) != plain({"ü": [1, None, 0.5]}):
            return plain
    except TypeError:  # its parameters are not promised
        return plain
    return lambda value: "".join(pieces(value, 0))


encode: Callable[[Any], str] = _encoder()
"""JSON text of a value, letters as they are."""
