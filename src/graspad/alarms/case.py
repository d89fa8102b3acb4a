"""The evidence of an incident under way, gathered row by row in constant memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.culprits import Course, ranked
from graspad.alarms.incidents import Incident, Span, identify
from graspad.alarms.threshold import Threshold

BySensor = Float[ndarray, " sensor"]


@dataclass
class Case:
    """Shares of an incident's rows, and how far each sensor left its course; `new_*` of rows after its present end.

    Those belong to it only if it goes on. `times` are those of its first, its peak and its last row.
    """

    course: Course
    times: list[Any]
    shares: BySensor
    left: BySensor
    new_shares: BySensor
    new_left: BySensor
    told: bool = False

    @classmethod
    def opened(cls, values: Float[ndarray, "row sensor"], lost: Bool[ndarray, " row"], reach: int, time: Any) -> Case:
        """With the rows up to the first alarm, which may be due to any of the last `reach` before it."""
        first = max(0, len(values) - 1 - reach)
        course = Course.of(values[:first][~lost[:first]])
        none = np.zeros(values.shape[1])
        left = course.left(values[first:-1][~lost[first:-1]])
        return cls(course, [time] * 3, none, left, none, none)

    def add(self, row: int, span: Span, time: Any, values: BySensor | None, shares: BySensor | None) -> None:
        """Take a row, with its values unless it is lost, and its shares if it has a score."""
        if values is not None:
            self.new_left = np.maximum(self.new_left, self.course.left(values[None]))
        if shares is not None:
            self.new_shares = self.new_shares + shares
        if span.end == row + 1:
            none = np.zeros_like(self.left)
            self.shares, self.new_shares = self.shares + self.new_shares, none
            self.left, self.new_left = np.maximum(self.left, self.new_left), none
            self.times[2] = time
            if span.peak == row:
                self.times[1] = time

    def incident(self, span: Span, sensors: tuple[str, ...], threshold: Threshold, ongoing: bool) -> Incident:
        """What is known so far."""
        total = self.shares.sum()
        parts = self.shares / total if total > 0 else self.shares
        return Incident(
            span.start,
            span.end,
            span.peak,
            span.score,
            float(threshold.p_values(np.array([span.score]))[0]),
            ranked(sensors, parts, self.left),
            bands=(),
            id=identify(span.start, self.times[0]),
            expected=threshold.expected(span.score),
            ongoing=ongoing,
            times=None if self.times[0] is None else (self.times[0], self.times[1], self.times[2]),
        )
