"""Why a row scored as it did: exact shares of its score by sensor and by frequency band."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.incidents import Incident, incident, spans


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

    def with_incidents(
        self, alarms: Bool[ndarray, " row"], p_values: Float[ndarray, " row"], merge: int
    ) -> Explanation:
        """The same with incidents: alarms less than `merge` rows apart, each with its shares."""
        by_band = self.by_band
        found = tuple(
            incident(start, end, self.score, p_values, self.by_sensor, by_band, self.sensors)
            for start, end in spans(alarms, merge)
        )
        return replace(self, incidents=found)

    def top_sensors(self, start: int, end: int, count: int = 3) -> list[tuple[str, float]]:
        """The sensors with the largest part of the score over rows start … end−1, each with its share of 1."""
        energy = np.nansum(self.by_sensor[start:end], axis=0)
        total = energy.sum()
        order = np.argsort(-energy, kind="stable")[:count]
        return [(self.sensors[index], float(energy[index] / total) if total > 0 else 0.0) for index in order]
