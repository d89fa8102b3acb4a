"""z-scores by the statistics of the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class Scale:
    """Centre and spread of each sensor in normal operation."""

    mean: Float[ndarray, " sensor"]
    std: Float[ndarray, " sensor"]

    @classmethod
    def of(cls, rows: Float[ndarray, "row sensor"]) -> Scale:
        """Measure the training rows; a sensor that never moved keeps its unit (its spread is taken as 1).

        >>> Scale.of(np.array([[1.0, 5.0], [3.0, 5.0]])).std
        array([1., 1.])
        """
        mean, std = rows.mean(axis=0), rows.std(axis=0)
        # Rounding gives a constant column a tiny spread; relative to its size that is still nothing.
        moved = (np.ptp(rows, axis=0) > 0) & (std > 1e-12 * np.abs(mean))
        return cls(mean, np.where(moved, std, 1.0))

    def apply(self, rows: Float[ndarray, "row sensor"]) -> Float[ndarray, "row sensor"]:
        """Scaled rows in float32, as the networks take them."""
        return ((rows - self.mean) / self.std).astype(np.float32)
