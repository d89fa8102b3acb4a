"""Rows that a method must beat before it may claim anything: chance, no information, and smoothed simple statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.bench.method import Method, RowScores, Values
from graspad.data.scale import Scale


class Random(Method):
    """Uniform noise."""

    def fit(self, train: Values, seed: int) -> None:
        """Only the seed counts."""
        self._random = np.random.default_rng(seed)

    def score(self, test: Values) -> RowScores:
        """Any score is as good as any other."""
        return RowScores.pointwise(self._random.random(len(test)))


class Constant(Method):
    """The same score for every row: what the metrics give for knowing nothing."""

    seeded = False

    def fit(self, train: Values, seed: int) -> None:
        """Nothing."""

    def score(self, test: Values) -> RowScores:
        """Zero."""
        return RowScores.pointwise(np.zeros(len(test)))


class Energy(Method):
    """The mean squared z-score of a row, by the training rows' mean and spread."""

    seeded = False

    def fit(self, train: Values, seed: int) -> None:
        """Mean and spread; a sensor that never moved keeps its unit."""
        self._scale = Scale.of(train)

    def score(self, test: Values) -> RowScores:
        """Mean over the sensors."""
        return RowScores.pointwise(np.square(self._scale.apply(test).astype(np.float64)).mean(axis=1))


class Limits(Method):
    """How far a row is beyond the lowest and highest training values, squared, in units of their distance."""

    seeded = False

    def fit(self, train: Values, seed: int) -> None:
        """The limits; a sensor that never moved keeps its unit."""
        self._low, self._high = train.min(axis=0), train.max(axis=0)

    def score(self, test: Values) -> RowScores:
        """Mean over the sensors."""
        beyond = test - np.clip(test, self._low, self._high)
        span = np.where(self._high > self._low, self._high - self._low, 1.0)
        return RowScores.pointwise(np.square(beyond / span).mean(axis=1))


class Mahalanobis(Method):
    """The squared Mahalanobis distance of a row from the training rows."""

    seeded = False

    def __init__(self, ridge: float = 0.001) -> None:
        self.ridge = ridge

    @property
    def settings(self) -> dict[str, Any]:
        """The variance added to every z-scored sensor, so that one that never moved can be divided by."""
        return {"ridge": self.ridge}

    def fit(self, train: Values, seed: int) -> None:
        """Covariance of the z-scored training rows."""
        self._scale = Scale.of(train)
        rows = self._scale.apply(train).astype(np.float64)
        self._mean = rows.mean(axis=0)
        covariance: Float[ndarray, "sensor sensor"] = np.cov(rows, rowvar=False).reshape(rows.shape[1], -1)
        self._precision = np.linalg.inv(covariance + self.ridge * np.eye(rows.shape[1]))

    def score(self, test: Values) -> RowScores:
        """(x − m)ᵀ (C + ridge·I)⁻¹ (x − m)."""
        centred = self._scale.apply(test).astype(np.float64) - self._mean
        return RowScores.pointwise(np.einsum("rn,nm,rm->r", centred, self._precision, centred, optimize=True))


class Smoothed(Method):
    """Another method's scores, averaged over as many rows as a window of GRASP has."""

    def __init__(self, inner: Method, rows: int = 50) -> None:
        self.inner, self.rows = inner, rows
        self.seeded = inner.seeded

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the method within, and the rows of the mean."""
        return {**self.inner.settings, "averaged_rows": self.rows}

    @property
    def about(self) -> str:
        """What is within, and the rows of the mean."""
        return f"{self.inner.about} Averaged over {self.rows} rows."

    def fit(self, train: Values, seed: int) -> None:
        """Fit the method within."""
        self.inner.fit(train, seed)

    def score(self, test: Values) -> RowScores:
        """Running means."""
        return self.inner.score(test).averaged(self.rows)
