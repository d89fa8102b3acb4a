"""Times of single rows, as they come in a stream."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from graspad.errors import InputError


def read_time(time: Any) -> np.datetime64 | float | None:
    """A date-time, text in ISO format or a number as something that can be compared; zones are turned into UTC.

    >>> read_time("2026-01-05T10:30:00+01:00"), read_time(1700), read_time(None)
    (np.datetime64('2026-01-05T09:30:00.000000'), 1700.0, None)
    """
    if time is None or isinstance(time, np.datetime64):
        return time
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.strip())
        except ValueError:
            raise InputError(f"The time {time!r} cannot be read. Write it as 2026-01-05T10:30:00.") from None
    if isinstance(time, datetime):
        plain = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(plain.isoformat(), "us")
    if isinstance(time, bool) or not isinstance(time, int | float | np.number) or time != time:
        raise InputError(f"The time {time!r} is neither a number nor a date-time.")
    return float(time)
