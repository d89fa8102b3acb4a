"""A threshold from held-out normal scores and a wished false-alarm rate, without labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.rate import Allowed, once_per
from graspad.alarms.tail import Tail, incident_peaks

# So many incidents among the normal rows can be counted; of fewer, the tail knows more.
_COUNTED = 5


@dataclass(frozen=True)
class Threshold:
    """Scores of normal rows that the field was not trained on, in the order of time, and how many of them may alarm.

    Rows without a score are NaN. Alarms less than `merge` rows apart are one incident.
    """

    normal_scores: Float[ndarray, " row"]
    allowed: Allowed
    merge: int

    def warn_if_too_rare(self) -> None:
        """Say so where there are too few normal rows to show so low a rate, and what they are good for."""
        if self.allowed.share >= self.rarest:
            return
        count = len(self._sorted)
        if self.allowed.of == "rows":
            told = (
                f"{count} held-out rows cannot show a false-alarm rate of {self.allowed.share:g} per row: "
                f"the highest of them is the threshold, which is good for about {self.rarest:.2g}."
            )
        else:
            told = (
                f"{count} held-out rows cannot show false alarms as rare as {self.allowed}: the threshold is good for "
                f"about {self.granted}."
            )
        warnings.warn(f"{told} Fit on more normal rows for a lower rate.", stacklevel=3)

    @property
    def rarest(self) -> float:
        """The lowest rate that the normal rows can show, as a share of rows or as incidents per row."""
        count = len(self._sorted)
        if self.allowed.of == "rows":
            return 1 / (count + 1)
        return self.tail.rarest if self.tail else 1 / count

    @property
    def granted(self) -> Allowed:
        """What is allowed, or the nearest to it that the normal rows can show."""
        return replace(self.allowed, share=max(self.allowed.share, self.rarest))

    @cached_property
    def value(self) -> float:
        """Scores above this are alarms: the wished rate, or the lowest one that the normal rows can show.

        >>> Threshold(np.arange(100.0), Allowed(0.1, "rows"), merge=1).value
        89.0
        """
        if self.allowed.of == "rows":
            return float(np.quantile(self._sorted, 1 - self.allowed.share, method="inverted_cdf"))
        share = self.granted.share
        incidents = share * len(self._sorted)
        return self.tail.score_at(share) if self.tail and incidents < _COUNTED else self._lowest_with(incidents)

    @cached_property
    def tail(self) -> Tail | None:
        """How often incidents of normal operation reach high scores; None if there are too few to tell."""
        return Tail.of(self.normal_scores, self.merge)

    def incidents_per_row(self, score: float) -> float:
        """How many incidents of normal operation are expected to begin in each row that reach a score."""
        if self.tail and score > self.tail.level:
            return self.tail.per_row(score)
        return (1 + len(incident_peaks(self.normal_scores, score, self.merge))) / len(self._sorted)

    def expected(self, score: float) -> str:
        """How often normal operation reaches a score, in words; beyond what the normal rows can show, that it is rarer.

        >>> Threshold(np.arange(100.0), Allowed(0.1, "rows", 60.0), merge=1).expected(1e9)
        'less than once per 1.7 hours'
        """
        rate = self.incidents_per_row(score)
        rarest = self.tail.rarest if self.tail else 1 / len(self._sorted)
        often = once_per(1 / max(rate, rarest), self.allowed.interval)
        return f"less than {often}" if rate <= rarest else often

    def release(self, hold: float) -> float:
        """The score that `hold` times as many normal rows exceed as exceed the threshold, at most half of them.

        >>> Threshold(np.arange(100.0), Allowed(0.1, "rows"), merge=1).release(2.0)
        79.0
        """
        over = max(1, len(self._sorted) - int(np.searchsorted(self._sorted, self.value, side="right")))
        share = min(hold * over / len(self._sorted), 0.5)
        return min(self.value, float(np.quantile(self._sorted, 1 - share, method="inverted_cdf")))

    def p_values(self, scores: Float[ndarray, " row"]) -> Float[ndarray, " row"]:
        """The share of normal rows that score at least as high, counting the row itself (conformal p-value).

        >>> threshold = Threshold(np.array([2.0, 1.0, 3.0]), Allowed(0.3, "rows"), merge=1)
        >>> threshold.p_values(np.array([0.0, 2.5, 9.0, np.nan]))
        array([1.  , 0.5 , 0.25,  nan])
        """
        at_least = len(self._sorted) - np.searchsorted(self._sorted, scores, side="left")
        return np.where(np.isnan(scores), np.nan, (1 + at_least) / (1 + len(self._sorted)))

    def alarms(self, scores: Float[ndarray, " row"]) -> Bool[ndarray, " row"]:
        """Rows over the threshold; a row without a score raises no alarm."""
        with np.errstate(invalid="ignore"):
            return scores > self.value

    @cached_property
    def _sorted(self) -> Float[ndarray, " known"]:
        return np.sort(self.normal_scores[~np.isnan(self.normal_scores)])

    def _lowest_with(self, incidents: float) -> float:
        """The lowest level over which the normal rows hold at most so many incidents, coming from above.

        Further down incidents run into each other, so that their number falls again: they may fill a window each.
        """
        lowest = float(self._sorted[-1])
        for share in np.geomspace(1 / len(self._sorted), 0.5, 200):
            level = float(np.quantile(self._sorted, 1 - share, method="lower"))
            peaks = incident_peaks(self.normal_scores, level, self.merge)
            if len(peaks) > incidents or share * len(self._sorted) > incidents * self.merge:
                break
            lowest = level
        return lowest
