"""Times of single rows, as they come in a stream."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from graspad.errors import InputError


def read_time(time: Any) -> np.datetime64 | int | float | None:
    """A date-time, text in ISO format or a number as something that can be compared; zones are turned into UTC.

    >>> read_time("2026-01-05T10:30:00+01:00"), read_time(1700), read_time(None)
    (np.datetime64('2026-01-05T09:30:00'), 1700, None)
    """
    if time is None:
        return None
    if isinstance(time, str):
        return _of_text(time.strip())
    if isinstance(time, datetime):
        time = _of_date(time)
    if isinstance(time, np.datetime64):
        if np.isnat(time):
            raise InputError("The time of the row is missing (NaT). Give one with every row, or with none.")
        return time
    if isinstance(time, bool) or not isinstance(time, int | float | np.number) or not np.isfinite(time):
        raise InputError(f"The time {time!r} is neither a number nor a date-time.")
    return time.item() if isinstance(time, np.number) else time


def _of_text(text: str) -> np.datetime64:
    try:
        time = datetime.fromisoformat(text)
        # datetime ends at microseconds, and such text has no zone to turn.
        finer = time.tzinfo is None and len(text.partition(".")[2]) > 6
        return np.datetime64(text.replace(" ", "T")) if finer else _of_date(time)
    except ValueError:
        raise InputError(f"The time {text!r} cannot be read. Write it as 2026-01-05T10:30:00.") from None


def _of_date(time: datetime) -> np.datetime64:
    if time != time:  # pandas' NaT is a datetime
        return np.datetime64("NaT")
    plain = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(plain.isoformat())
