"""HBOS: how rare are a row's values, each sensor for itself (Goldstein & Dengel 2012)."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.bench.baselines.rows import standardised_across_sensors
from graspad.bench.method import Method, RowScores, Values


class HBOS(Method):
    """In the paper's protocol: z-scores across the sensors of a row, histograms of the test series itself.

    With 5 bins it gives the paper's SMAP row to all four digits.
    """

    seeded = False

    def __init__(self, bins: int = 5) -> None:
        self.bins = bins

    @property
    def settings(self) -> dict[str, Any]:
        """The number of bins."""
        return {"bins": self.bins, "rows": "z-score across sensors", "fitted_on": "test"}

    def fit(self, train: Values, seed: int) -> None:
        """Nothing: the protocol is unsupervised and fits on the rows it scores."""

    def score(self, test: Values) -> RowScores:
        """−Σ_n log2(density of the bin of sensor n + 0.1)."""
        columns = standardised_across_sensors(test).T
        return RowScores.pointwise(
            -np.sum([np.log2(_densities(column, self.bins) + 0.1) for column in columns], axis=0)
        )


def _densities(values: Float[ndarray, " row"], bins: int) -> Float[ndarray, " row"]:
    """For each value the density of its bin; bins are closed on the right, the first one on both sides."""
    try:
        density, edges = np.histogram(values, bins, density=True)
    except ValueError:  # values that differ in the last digits only cannot be binned: they are one value
        density, edges = np.histogram(np.full(len(values), values[0]), bins, density=True)
        return np.full(len(values), density.max())
    return density[np.clip(np.digitize(values, edges, right=True) - 1, 0, bins - 1)]
