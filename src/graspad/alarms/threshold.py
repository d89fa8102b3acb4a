"""A threshold from held-out normal scores and a wished false-alarm rate, without labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray


@dataclass(frozen=True)
class Threshold:
    """Scores of normal rows that the field was not trained on, ascending, and the share of them that may alarm."""

    normal_scores: Float[ndarray, " normal"]
    false_alarms: float

    @classmethod
    def of(cls, normal_scores: Float[ndarray, " row"], false_alarms: float) -> Threshold:
        """Calibrate on held-out scores; warns when there are too few of them to show so low a rate."""
        known = np.sort(normal_scores[~np.isnan(normal_scores)])
        lowest = 1 / (len(known) + 1)
        if false_alarms < lowest:
            warnings.warn(
                f"{len(known)} held-out rows cannot show a false-alarm rate of {false_alarms:g} per row: "
                f"the highest of them is the threshold, which is good for about {lowest:.2g}. "
                "Fit on more normal rows for a lower rate.",
                stacklevel=3,
            )
        return cls(known, false_alarms)

    @property
    def value(self) -> float:
        """Scores above this are alarms.

        >>> Threshold.of(np.arange(100.0), false_alarms=0.1).value
        89.0
        """
        return float(np.quantile(self.normal_scores, 1 - self.false_alarms, method="inverted_cdf"))

    def p_values(self, scores: Float[ndarray, " row"]) -> Float[ndarray, " row"]:
        """The share of normal rows that score at least as high, counting the row itself (conformal p-value).

        >>> Threshold.of(np.array([1.0, 2.0, 3.0]), false_alarms=0.3).p_values(np.array([0.0, 2.5, 9.0, np.nan]))
        array([1.  , 0.5 , 0.25,  nan])
        """
        at_least = len(self.normal_scores) - np.searchsorted(self.normal_scores, scores, side="left")
        return np.where(np.isnan(scores), np.nan, (1 + at_least) / (1 + len(self.normal_scores)))

    def alarms(self, scores: Float[ndarray, " row"]) -> Bool[ndarray, " row"]:
        """Rows over the threshold; a row without a score raises no alarm."""
        with np.errstate(invalid="ignore"):
            return scores > self.value
