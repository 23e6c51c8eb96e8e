"""JSON of our own artifacts, read so that whatever was read can be printed and written again."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Python's reader takes more than JSON holds: NaN, infinities, ``1e999``, halves of surrogate
    pairs. They would pass every check and fail when the value is printed.

    Raises
    ------
    ValueError
        The text is not JSON, is nested too deeply, or holds such a value.
    """
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return data
