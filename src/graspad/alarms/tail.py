"""How often normal operation reaches a score: peaks over a level, and a generalised Pareto tail beyond the highest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.stats import genpareto

from graspad.alarms.spans import spans

# The level is the highest of these quantiles that leaves enough incidents to see the shape of the tail.
_LEVELS = (0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8)
_ENOUGH = 30
# With fewer peaks than this, or none that differ, there is no tail to speak of.
_FEWEST = 8
# A tail that ends just above the highest peak is an artefact of few peaks, and its rates would be exceeded on average;
# so is one without a variance.
_SHAPES = (-0.1, 0.5)
# How many times rarer than once in all normal rows the tail may be asked about.
_BEYOND = 4


@dataclass(frozen=True)
class Tail:
    """Incidents of normal operation: `rate` per row have a peak over `level`, by how much is generalised Pareto.

    Rows that lie close together are not independent, since their windows overlap. So rows over a level that are less
    than a window apart count as one incident, with one peak.
    """

    level: float
    rate: float
    shape: float
    scale: float
    rows: int

    @classmethod
    def of(cls, scores: Float[ndarray, " row"], merge: int) -> Tail | None:
        """The tail of normal scores in the order of time; None where they hold too few incidents to show one."""
        known = scores[~np.isnan(scores)]
        for quantile in _LEVELS:
            level = float(np.quantile(known, quantile, method="lower"))
            peaks = incident_peaks(scores, level, merge)
            peaks = peaks[np.isfinite(peaks)]  # held-out data may overflow
            if len(peaks) >= _ENOUGH:
                break
        excess = peaks - level
        if len(excess) < _FEWEST or not excess.max() > 0:
            return None
        shape = float(np.clip(genpareto.fit(excess, floc=0)[0], *_SHAPES))
        scale = genpareto.fit(excess, fc=shape, floc=0)[2]
        return cls(level, len(peaks) / len(known), shape, float(scale), len(known))

    @property
    def rarest(self) -> float:
        """The lowest rate per row that may be asked for."""
        return 1 / (_BEYOND * self.rows)

    def per_row(self, score: float) -> float:
        """How many incidents of normal operation begin in each row that reach a score, at most `rate`.

        (1 + ξz)^(−1/ξ), asked for in every row of an incident; scipy would take a third of a millisecond.
        """
        z = max(0.0, (score - self.level) / self.scale)
        if self.shape == 0:
            return self.rate * math.exp(-z)
        return self.rate * math.exp(-math.log1p(self.shape * z) / self.shape) if self.shape * z > -1 else 0.0

    def score_at(self, per_row: float) -> float:
        """The score that so many incidents per row reach, for rates below `rate`."""
        return float(self.level + genpareto.isf(per_row / self.rate, self.shape, scale=self.scale))


def incident_peaks(scores: Float[ndarray, " row"], level: float, merge: int) -> Float[ndarray, " incident"]:
    """The highest score of each incident over a level.

    >>> incident_peaks(np.array([0, 5, 3, 0, 0, 0, 4, np.nan, 1]), 2.0, merge=2)
    array([5., 4.])
    """
    with np.errstate(invalid="ignore"):
        over = scores > level
    return np.array([np.nanmax(scores[start:end]) for start, end in spans(over, merge)])
