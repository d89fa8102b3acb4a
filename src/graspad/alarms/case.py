"""The evidence of an incident under way, gathered row by row in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.culprits import Course, ranked
from graspad.alarms.incidents import Incident, Span, identify
from graspad.alarms.lasting import WindowMeans
from graspad.alarms.threshold import Threshold

BySensor = Float[ndarray, " sensor"]


@dataclass(frozen=True)
class Evidence:
    """Of some rows: the sum of their shares, how far each sensor left its course, the sum of their values, how many."""

    shares: BySensor
    left: BySensor
    total: BySensor
    rows: int

    @classmethod
    def of(cls, course: Course, values: Float[ndarray, "row sensor"], shares: BySensor | None = None) -> Evidence:
        """Of these values, rows in longer gaps apart, with their shares if they have a score."""
        none = np.zeros(values.shape[1])
        total = values.sum(axis=0, dtype=np.float64)
        return cls(none if shares is None else shares, course.left(values), total, len(values))

    def __add__(self, other: Evidence) -> Evidence:
        """Of the rows of both."""
        left = np.maximum(self.left, other.left)
        return Evidence(self.shares + other.shares, left, self.total + other.total, self.rows + other.rows)


@dataclass
class Case:
    """What is known of an incident, and what is `new`: of rows after its present end, its own only if it goes on.

    `times` are those of its first, its peak and its last row.
    """

    course: Course
    times: list[Any]
    known: Evidence
    new: Evidence
    told: bool = False

    @classmethod
    def opened(cls, values: Float[ndarray, "row sensor"], lost: Bool[ndarray, " row"], reach: int, time: Any) -> Case:
        """With the rows up to the first alarm, which may be due to any of the last `reach` before it."""
        first = max(0, len(values) - 1 - reach)
        course = Course.of(values[:first][~lost[:first]])
        known = Evidence.of(course, values[first:-1][~lost[first:-1]])
        return cls(course, [time] * 3, known, Evidence.of(course, values[:0]))

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Case:
        """The case that `dataclasses.asdict` has taken apart."""
        course, known, new = Course(**saved["course"]), Evidence(**saved["known"]), Evidence(**saved["new"])
        return cls(course, saved["times"], known, new, saved["told"])

    def add(self, row: int, span: Span, time: Any, values: BySensor, lost: bool, shares: BySensor | None) -> None:
        """Take a row, with its values unless it is lost, and its shares if it has a score."""
        self.new += Evidence.of(self.course, values[None][: not lost], shares)
        if span.end == row + 1:
            self.known, self.new = self.known + self.new, Evidence.of(self.course, values[None][:0])
            self.times[2] = time
            if span.peak == row:
                self.times[1] = time

    def incident(
        self, span: Span, sensors: tuple[str, ...], threshold: Threshold, ongoing: bool, means: WindowMeans | None
    ) -> Incident:
        """What is known so far; `means` tell which few sensors alone explain an incident that lasts."""
        known, lasted = self.known, span.end - span.start
        few = [] if means is None else means.few(known.total, known.rows, lasted)
        total = known.shares.sum()
        parts = known.shares / total if total > 0 else known.shares
        return Incident(
            span.start,
            span.end,
            span.peak,
            span.score,
            float(threshold.p_values(np.array([span.score]))[0]),
            ranked(sensors, parts, known.left, few),
            bands=(),
            id=identify(span.start, self.times[0]),
            expected=threshold.expected(span.score),
            ongoing=ongoing,
            times=None if self.times[0] is None else (self.times[0], self.times[1], self.times[2]),
        )
