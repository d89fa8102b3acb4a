"""Alarms that belong together become one incident."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.threshold import Threshold
from graspad.errors import InvalidSettingError


@dataclass(frozen=True)
class Rules:
    """Which alarms make up an incident, in rows.

    Alarms that are not more than `merge` rows apart belong together; None takes a window's length. Fewer than
    `at_least` alarms are no incident. After one has ended, none begins for `cool_down` rows. An incident goes on while
    scores stay so high that at most `hold` times as many normal rows reach them as reach the threshold.
    """

    merge: int | None = None
    at_least: int = 1
    cool_down: int = 0
    hold: float = 10.0

    def __post_init__(self) -> None:
        for name, least in {"merge": 1, "at_least": 1, "cool_down": 0, "hold": 1}.items():
            value = getattr(self, name)
            if not (value is None and name == "merge") and (isinstance(value, bool) or not value >= least):
                raise InvalidSettingError.of(name, f"be at least {least}", value)


@dataclass(frozen=True)
class Span:
    """The rows [start, end) of an incident, its highest score and where that is, and how many of its rows alarmed."""

    start: int
    end: int
    peak: int
    score: float
    alarms: int = 1

    def with_alarm(self, row: int, score: float) -> Span:
        """The same with one more alarm."""
        alarms = self.alarms + 1
        if score > self.score:
            return Span(self.start, row + 1, row, score, alarms)
        return replace(self, end=row + 1, alarms=alarms)


@dataclass
class Tracker:
    """Follows alarms row by row, as they come; `span` is the incident under way, `rests` until when none may begin."""

    rules: Rules
    merge: int
    span: Span | None = None
    rests: int = 0

    @property
    def under_way(self) -> Span | None:
        """The incident under way, once it has enough alarms to be one."""
        return self.span if self.span is not None and self.span.alarms >= self.rules.at_least else None

    def push(self, row: int, score: float, alarm: bool, holds: bool) -> Span | None:
        """Take the next row; rows that neither alarm nor hold may be left out. Gives back an incident that has ended.

        >>> tracker = Tracker(Rules(), merge=2)
        >>> [tracker.push(row, score, score > 4, score > 3) for row, score in enumerate([5.0, 3.5, 1.0])]
        [None, None, None]
        >>> tracker.push(3, 0.0, False, False)
        Span(start=0, end=2, peak=0, score=5.0, alarms=1)
        """
        span = self.span
        if span is not None and holds and not alarm and row == span.end:
            self.span = replace(span, end=row + 1)
            return None
        ended = self._ended(row, alarm)
        if alarm:
            if self.span is not None:
                self.span = self.span.with_alarm(row, score)
            elif row >= self.rests:
                self.span = Span(row, row + 1, row, score)
        return ended

    def _ended(self, row: int, alarm: bool) -> Span | None:
        """The incident under way, if no later alarm can belong to it."""
        span = self.span
        if span is None or row - span.end + 1 < self.merge + alarm:
            return None
        ended, self.span = self.under_way, None
        if ended is not None:
            self.rests = span.end + self.rules.cool_down
        return ended


@dataclass(frozen=True)
class Incident:
    """The rows [start, end) that alarmed together, the row of the highest score, and who had a part in it.

    `sensors` has each one's share of the incident's score, the one most to blame first (`culprits`); `bands` the shares
    by frequency band, low to high. `expected` says how often normal operation reaches such a score. `times` are those
    of the first, the peak and the last row, where the data has any. The `id` stays the same when rows are added.
    """

    start: int
    end: int
    peak: int
    score: float
    p_value: float
    sensors: tuple[tuple[str, float], ...]
    bands: tuple[float, ...]
    id: str = ""
    expected: str = ""
    ongoing: bool = False
    times: tuple[Any, Any, Any] | None = None

    def record(self, top: int | None = None) -> dict[str, Any]:
        """As plain data for JSON, with the first `top` sensors; times where there are any, else row numbers."""
        start, peak, end = self.times or (self.start, self.peak, self.end - 1)
        return {
            "id": self.id,
            "start": plain_time(start),
            "peak": plain_time(peak),
            "end": plain_time(end),
            "ongoing": self.ongoing,
            "first_row": self.start,
            "rows": self.end - self.start,
            "score": self.score,
            "p_value": self.p_value,
            "expected": self.expected,
            "sensors": [{"name": name, "share": share} for name, share in self.sensors[:top]],
        }


def track(
    scores: Float[ndarray, " row"], alarms: Bool[ndarray, " row"], threshold: Threshold, rules: Rules
) -> list[tuple[Span, bool]]:
    """The incidents among all rows, as a tracker finds them, and whether each is still under way at the end."""
    tracker = Tracker(rules, rules.merge or threshold.merge)
    release = threshold.release(rules.hold)
    with np.errstate(invalid="ignore"):
        holds = scores > release
    rows = np.flatnonzero(alarms | holds)
    found = [tracker.push(int(row), float(scores[row]), bool(alarms[row]), bool(holds[row])) for row in rows]
    if len(scores) > 0 and not (len(rows) and rows[-1] == len(scores) - 1):
        found.append(tracker.push(len(scores) - 1, float("nan"), alarm=False, holds=False))
    ended = [(span, False) for span in found if span is not None]
    return [*ended, (tracker.under_way, True)] if tracker.under_way else ended


def identify(row: int, time: Any) -> str:
    """A name for the incident that begins in a row: its time, or the number of the row where there is no time.

    >>> identify(7, np.datetime64("2026-01-05T10:30:00")), identify(7, None)
    ('20260105T103000', 'row7')
    """
    if time is None:
        return f"row{row}"
    return plain_time(time).replace("-", "").replace(":", "") if isinstance(time, np.datetime64) else f"{time}"


def plain_time(time: Any) -> Any:
    """A time or a number as JSON knows it; date-times to the second, or finer where they are.

    >>> plain_time(np.datetime64("2026-01-05T10:30:00.250000000"))
    '2026-01-05T10:30:00.25'
    """
    if isinstance(time, np.datetime64):
        text = str(time.astype("datetime64[ns]"))
        return text.rstrip("0").rstrip(".")
    return time.item() if isinstance(time, np.generic) else time
