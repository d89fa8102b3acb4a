"""How many false alarms may come: a share of the rows, or so many incidents in a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from graspad.errors import InputError, InvalidSettingError

_SECONDS = {
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 604_800.0,
    "month": 2_629_746.0,
    "year": 31_556_952.0,
}
_SHORT = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day"}
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_MUST = "be a share of the rows in the range (0, 1), such as 0.001, or incidents in a time, such as '1/week' or '3/day'"


@dataclass(frozen=True)
class Allowed:
    """`share` of the normal rows may alarm, or, if `of` is "incidents", so many incidents may begin in each row."""

    share: float
    of: Literal["rows", "incidents"]
    interval: float | None = None  # seconds from row to row, where they are known

    @classmethod
    def wished(cls, wish: object, interval: float | None) -> Allowed:
        """Read a wish; `interval` is the time from row to row in seconds, None where nothing tells it.

        >>> Allowed.wished("1/day", interval=60.0)
        Allowed(share=0.0006944444444444445, of='incidents', interval=60.0)
        """
        if isinstance(wish, str):
            found = re.fullmatch(rf"\s*{_NUMBER}\s*(?:/|per)\s*(\w+)\s*", wish)
            if found is None or float(found[1]) <= 0 or (unit := _unit(found[2])) is None:
                raise InvalidSettingError.of("false_alarms", _MUST, wish)
            if interval is None:
                raise InputError(
                    f"false_alarms={wish!r} needs to know how far apart the rows are, and the data has no timestamps. "
                    "Give interval='1min' (or whatever it is), or a share of the rows such as false_alarms=0.001."
                )
            share = float(found[1]) * interval / unit
            if share >= 1:
                raise InvalidSettingError.of("false_alarms", f"be rarer than the rows, one in {interval:g} s", wish)
            return cls(share, "incidents", interval)
        if isinstance(wish, bool) or not isinstance(wish, int | float) or not 0 < wish < 1:
            raise InvalidSettingError.of("false_alarms", _MUST, wish)
        return cls(float(wish), "rows", interval)

    def __str__(self) -> str:
        return f"{self.share:.2%} of normal rows" if self.of == "rows" else once_per(1 / self.share, self.interval)


def seconds(interval: object) -> float:
    """The time from row to row, in seconds.

    >>> seconds("5 min"), seconds("1h"), seconds(0.5)
    (300.0, 3600.0, 0.5)
    """
    found = re.fullmatch(rf"\s*{_NUMBER}\s*([a-z]+)\s*", interval) if isinstance(interval, str) else None
    unit = _unit(found[2]) if found else None
    if found and unit:
        value = float(found[1]) * unit
    elif isinstance(interval, int | float) and not isinstance(interval, bool):
        value = float(interval)
    else:
        value = 0.0
    if not 0 < value < float("inf"):
        must = "be the time from row to row, in seconds or such as '10s', '1min', '1h' or '1day'"
        raise InvalidSettingError.of("interval", must, interval)
    return value


def once_per(rows: float, interval: float | None) -> str:
    """How often something happens that happens once in so many rows.

    >>> once_per(20_160.0, 60.0), once_per(57.1, 60.0), once_per(1500.0, None), once_per(0.5, 60.0)
    ('once per 2 weeks', 'once per hour', 'once per 1,500 rows', 'in every row')
    """
    if rows <= 1:
        return "in every row"
    if interval is None:
        return f"once per {float(f'{rows:.2g}'):,.0f} rows"
    time = rows * interval
    # A little less than a unit is one, too.
    name = next((name for name, unit in reversed(_SECONDS.items()) if time > 0.95 * unit), "second")
    count = float(f"{time / _SECONDS[name]:.2g}")
    return f"once per {name}" if 0.95 <= count <= 1 else f"once per {count:g} {name}s"


def _unit(name: str) -> float | None:
    name = name.lower()
    name = _SHORT.get(name, name)
    return _SECONDS.get(name) or _SECONDS.get(name.removesuffix("s"))
