"""Times and durations as an engineer would write them; without timestamps, row numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int, Shaped
from numpy import ndarray

_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


@dataclass(frozen=True)
class Clock:
    """When each row was measured; `note` tells why timestamps that were given could not be used."""

    rows: int
    times: Shaped[ndarray, " row"] | None  # datetime64[us], never falling
    step: float  # seconds from one row to the next, as a rule
    note: str = ""

    @classmethod
    def of(cls, timestamps: Shaped[ndarray, " row"] | None, rows: int) -> Clock:
        """Use the timestamps if they can order the rows.

        >>> Clock.of(None, 5).interval(1, 3)
        'rows 1 – 2'
        """
        if timestamps is None:
            return cls(rows, None, 1.0)
        times = timestamps.astype("datetime64[us]")
        steps = np.diff(times) / np.timedelta64(1, "s")
        wrong = int(np.isnat(times).sum()) or int((steps < 0).sum())
        if wrong:
            note = f"The timestamps are missing or run backwards in {wrong:,} rows, so rows are numbered instead."
            return cls(rows, None, 1.0, note)
        return cls(rows, times, float(np.median(steps)) if len(steps) else 0.0)

    def axis(self, rows: Int[ndarray, " any"]) -> list[float]:
        """Places on a chart's time axis: milliseconds since 1970 (UTC, so that no viewer's time zone shifts them)."""
        if self.times is None:
            return [float(row) for row in rows]
        return [micros / 1000 for micros in self.times[rows].astype(np.int64).tolist()]

    def band(self, start: int, end: int) -> list[float]:
        """Both edges of the rows [start, end) on that axis, half a step wider, so that a single row has a width."""
        first, last = self.axis(np.array([start, end - 1]))
        half = 0.5 if self.times is None else 500 * self.step
        return [first - half, last + half]

    def label(self, row: int) -> str:
        """One moment."""
        if self.times is None:
            return f"row {row:,}"
        return str(self.times[row].astype(f"datetime64[{self._resolution()}]")).replace("T", " ")

    def interval(self, start: int, end: int) -> str:
        """First and last moment of the rows [start, end); the day is not said twice.

        >>> minutes = np.datetime64("2025-06-03T23:50") + np.arange(90) * np.timedelta64(1, "m")
        >>> Clock.of(minutes, 90).interval(20, 80)
        '2025-06-04 00:10 – 01:09'
        """
        if self.times is None:
            return f"row {start:,}" if end - start == 1 else f"rows {start:,} – {end - 1:,}"
        first, last = self.label(start), self.label(end - 1)
        if first == last:
            return first
        return f"{first} – {last[11:] if last[:10] == first[:10] and last[11:] else last}"

    def period(self) -> str:
        """First and last moment of all rows; from three days on, the days are enough."""
        first, last = self.label(0), self.label(self.rows - 1)
        if self.times is None or self.elapsed(0, self.rows - 1) < 3 * 86400:
            return self.interval(0, self.rows)
        return f"{first[:10]} – {last[:10]}"

    def elapsed(self, first: int, last: int) -> float:
        """Seconds from one row to another; the number of rows if there are no times."""
        if self.times is None:
            return float(last - first)
        return float((self.times[last] - self.times[first]) / np.timedelta64(1, "s"))

    def lasts(self, start: int, end: int) -> float:
        """Seconds that the rows [start, end) last, each for one step; their number if there are no times."""
        return self.elapsed(start, end - 1) + (1.0 if self.times is None else self.step)

    def say(self, seconds: float) -> str:
        """A duration in its two largest units.

        >>> Clock.of(np.array(["2025-06-03"], dtype="datetime64[s]"), 1).say(19_680.0)
        '5 h 28 min'
        """
        if self.times is None:
            return f"{seconds:,.0f} row{'' if seconds == 1 else 's'}"
        for (unit, size), (lower, small) in pairwise(_UNITS):
            parts = round(seconds / small)
            if parts * small >= size:
                count, rest = divmod(parts, round(size / small))
                return f"{count} {unit} {rest} {lower}" if rest else f"{count} {unit}"
        return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"

    def _resolution(self) -> str:
        return "D" if self.step >= 86400 else "m" if self.step >= 60 else "s" if self.step >= 1 else "ms"
