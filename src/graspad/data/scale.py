"""z-scores by the statistics of the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

_PART = 65_536

# A reading a million spreads away is as wrong as can be; much further out, squares in float32 would overflow.
_FARTHEST = 1e6


@dataclass(frozen=True)
class Scale:
    """Centre and spread of each sensor in normal operation."""

    mean: Float[ndarray, " sensor"]
    std: Float[ndarray, " sensor"]

    @classmethod
    def of(cls, rows: Float[ndarray, "row sensor"]) -> Scale:
        """Measure the training rows, missing values apart; a sensor that never moved keeps its unit (its spread is 1).

        >>> Scale.of(np.array([[1.0, 5.0], [3.0, 5.0]])).std
        array([1., 1.])
        """
        mean, std = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        # Rounding gives a constant column a tiny spread; relative to its size that is still nothing.
        moved = (np.nanmax(rows, axis=0) > np.nanmin(rows, axis=0)) & (std > 1e-12 * np.abs(mean))
        return cls(mean, np.where(moved, std, 1.0))

    def apply(self, rows: Float[ndarray, "row sensor"]) -> Float[ndarray, "row sensor"]:
        """Scaled rows in float32, as the fields take them; a part at a time, since the table may be large."""
        scaled = np.empty(rows.shape, dtype=np.float32)
        for start in range(0, len(rows), _PART):
            part = slice(start, start + _PART)
            scaled[part] = np.clip((rows[part] - self.mean) / self.std, -_FARTHEST, _FARTHEST)
        return scaled

    def undo(self, scaled: Float[ndarray, "row sensor"]) -> Float[ndarray, "row sensor"]:
        """Scaled rows back in the user's units.

        >>> Scale(np.array([20.0]), np.array([4.0])).undo(np.array([[0.5]]))
        array([[22.]])
        """
        return self.mean + self.std * scaled
