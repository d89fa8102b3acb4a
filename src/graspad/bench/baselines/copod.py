"""COPOD: how far out in its own tail is each value, by empirical distributions (Li et al. 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.stats import rankdata, skew

from graspad.bench.baselines.rows import standardised_across_sensors
from graspad.bench.method import Method, RowScores, Values


class COPOD(Method):
    """In the paper's protocol: z-scores across the sensors of a row, tails of the test series itself.

    The z-scores leave ties that hang on the last bit of rounding, so other implementations differ in the third digit.
    """

    seeded = False

    @property
    def settings(self) -> dict[str, Any]:
        """COPOD has none of its own."""
        return {"rows": "z-score across sensors", "fitted_on": "test"}

    def fit(self, train: Values, seed: int) -> None:
        """Nothing: the protocol is unsupervised and fits on the rows it scores."""

    def score(self, test: Values) -> RowScores:
        """Σ_n max(tail on the side to which sensor n is skewed, mean of both tails)."""
        rows = standardised_across_sensors(test)
        left, right = _tail(rows), _tail(-rows)
        with np.errstate(invalid="ignore"):
            sign = np.nan_to_num(np.sign(skew(rows, axis=0)))
        skewed = left * (sign <= 0) + right * (sign >= 0)
        return RowScores.pointwise(np.maximum(skewed, (left + right) / 2).sum(axis=1))


def _tail(rows: Values) -> Float[ndarray, "row sensor"]:
    """−log F(x), F the share of values ≤ x."""
    return -np.log(rankdata(rows, method="max", axis=0) / len(rows))
