"""Why a row scored as it did: exact shares of its score by sensor and by frequency band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy import ndarray

from graspad.alarms.culprits import course_left, ranked
from graspad.alarms.incidents import Incident, Rules, Span, identify, track
from graspad.alarms.lasting import WindowMeans
from graspad.alarms.threshold import Threshold
from graspad.data.files import frame_of
from graspad.data.gaps import Rows

_COLUMNS = ("id", "start", "peak", "end", "ongoing", "first_row", "rows", "score", "p_value", "expected")


@dataclass(frozen=True)
class Explanation:
    """Shares of each row's score. `by_sensor` and `by_band` both sum to `score`; rows without a score are NaN.

    `bands` gives each band's lowest and highest graph frequency λ: low = sensors that are linked move together, high =
    they move apart. `by_flow_time` splits the bands further over the flow times of R_ad. `incidents` are the alarms
    that belong together.
    """

    score: Float[ndarray, " row"]
    by_sensor: Float[ndarray, "row sensor"]
    by_flow_time: Float[ndarray, "row time band"]
    sensors: tuple[str, ...]
    bands: tuple[tuple[float, float], ...]
    flow_times: tuple[float, ...]
    incidents: tuple[Incident, ...] = ()

    @property
    def by_band(self) -> Float[ndarray, "row band"]:
        """Shares by frequency band, all flow times together."""
        return self.by_flow_time.sum(axis=1)

    def incident(
        self, span: Span, left: Float[ndarray, " sensor"], few: Sequence[int], p_value: float, **more: Any
    ) -> Incident:
        """Describe an incident by its peak and its shares.

        `left` says how far each sensor left its course, `few` which of them alone explain the incident, if any do.
        """
        parts = _shares(self.by_sensor[span.start : span.end])
        return Incident(
            span.start,
            span.end,
            span.peak,
            span.score,
            p_value,
            ranked(self.sensors, parts, left, few),
            tuple(_shares(self.by_band[span.start : span.end]).tolist()),
            **more,
        )

    def with_incidents(
        self,
        rows: Rows,
        alarms: Bool[ndarray, " row"],
        threshold: Threshold,
        timestamps: Shaped[ndarray, " row"] | None,
        rules: Rules,
        reach: int = 0,
        means: WindowMeans | None = None,
    ) -> Explanation:
        """The same with incidents; an alarm may be due to rows as far before it as `reach`.

        `means` tell which few sensors alone explain a lasting incident.
        """
        found = []
        for span, ongoing in track(self.score, alarms, threshold, rules):
            times = None if timestamps is None else timestamps[[span.start, span.peak, span.end - 1]]
            found.append(
                self.incident(
                    span,
                    course_left(rows.values, rows.lost, max(0, span.start - reach), span.end),
                    [] if means is None else means.few_in(rows.values, rows.lost, span.start, span.end, reach),
                    float(threshold.p_values(np.array([span.score]))[0]),
                    id=identify(span.start, None if times is None else times[0]),
                    expected=threshold.expected(span.score),
                    ongoing=ongoing,
                    times=None if times is None else tuple(times),
                )
            )
        return replace(self, incidents=tuple(found))

    def table(self, top: int = 3) -> Any:
        """The incidents as a data frame of pyarrow, polars or pandas, whichever is installed; the `top` sensors named.

        `frame_of` decides; `[incident.record() for incident in incidents]` is the same as plain data.
        """
        records = [incident.record(top) for incident in self.incidents]
        columns = {name: np.array([record[name] for record in records]) for name in _COLUMNS}
        named = ["; ".join(f"{sensor['name']} {sensor['share']:.0%}" for sensor in r["sensors"]) for r in records]
        return frame_of(columns | {"sensors": np.array(named, dtype=str)})

    def top_sensors(self, start: int, end: int, count: int = 3) -> list[tuple[str, float]]:
        """The sensors with the largest part of the score over rows start … end−1, each with its share of 1."""
        energy = np.nansum(self.by_sensor[start:end], axis=0)
        total = energy.sum()
        order = np.argsort(-energy, kind="stable")[:count]
        return [(self.sensors[index], float(energy[index] / total) if total > 0 else 0.0) for index in order]


def _shares(energy: Float[ndarray, "row part"]) -> Float[ndarray, " part"]:
    total = np.nansum(energy, axis=0)
    return total / total.sum() if total.sum() > 0 else np.zeros(len(total))
