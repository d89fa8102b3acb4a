"""GDN: a graph between sensors, learned with the forecast of each from its neighbours (Deng and Hooi 2021).

`as-published` is the authors' code with the settings of its `run.sh`. `fixed` differs in:

- Usual errors. Published: median and interquartile range of the test errors, so that all test rows take part in the
  score of each. Fixed: of the errors on the training windows that are held out.
- Score. Published: the mean over the last four rows for each sensor, with the first three rows 0, then the largest
  sensor. Fixed: the largest sensor, then the mean over the last four rows or as many as there are.
- Neighbours. Published: the sensor itself is one of its five nearest. Fixed: five others.

In both, training ranges become [0, 1] as in the authors' data scripts (their median over ten rows is left out),
held out is one block of windows at a random place, and the best weights are restored. With few sensors all are
neighbours, where the published code stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.place import Place, on_rows
from graspad.bench.baselines.deep.scaling import Scaler, to_unit_range
from graspad.bench.baselines.deep.train import Batch, Plan, Step
from graspad.bench.method import RowScores, Values
from graspad.core.windows import Windows

Errors = Float[ndarray, "window sensor"]
# Median and interquartile range of each sensor's errors.
Usual = tuple[Float[ndarray, " sensor"], Float[ndarray, " sensor"]]

_SMOOTHED = 4


@dataclass(eq=False)
class GDN(Deep["_Network"]):
    """The largest error of a sensor's forecast, by the usual errors of that sensor."""

    window: int = 5
    epochs: int = 30
    learning_rate: float = 1e-3
    neighbours: int = 5
    width: int = 64
    dropout: float = 0.2

    ahead: ClassVar[int] = 1

    @property
    def plan(self) -> Plan:
        """The best epoch is restored in both modes."""
        return Plan(self.epochs, batch=32, patience=15, min_delta=0.0, restore=True)

    @property
    def place(self) -> Place:
        """The row that was forecast."""
        return "last"

    def fit(self, train: Values, seed: int) -> None:
        """Train, then look at the usual errors."""
        super().fit(train, seed)
        self._usual = _usual(self._each(self._held_out))

    def score(self, test: Values) -> RowScores:
        """Errors of all sensors, made comparable, to one number per row."""
        windows = self._windows(test, "test rows")
        errors = self._each(windows)
        median, spread = self._usual if self.fixed else _usual(errors)
        errors -= median
        errors /= spread + 0.01
        if self.fixed:
            scores = RowScores.pointwise(errors.max(axis=1)).averaged(_SMOOTHED).causal
        else:
            scores = _smoothed(errors).max(axis=1)
        return on_rows(scores, windows.length, self.place)

    def _scaler(self, train: Values) -> Scaler:
        return to_unit_range(train)

    def _split(self, train: Values) -> tuple[Windows, Windows | None]:
        windows = self._windows(train, "training rows")
        count = len(windows)
        size = max(1, int(count * self.plan.held_out))
        begin = int(torch.randint(count - size + 1, ()))
        chosen = torch.arange(count)
        inside = (begin <= chosen) & (chosen < begin + size)
        self._held_out = windows.some(inside)
        self._unseen = slice(begin + windows.length - 1, begin + size)  # rows of no other window
        return windows.some(~inside), self._held_out

    def held_out(self, train: Values) -> Values | None:
        """A piece at a random place."""
        return train[self._unseen]

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self.window, self.width, self.neighbours, self.dropout, itself=not self.fixed)

    def _steps(self) -> Sequence[Step]:
        return [Step(torch.optim.Adam(self._network.parameters(), lr=self.learning_rate), self._loss)]

    def _errors(self, windows: Batch) -> Float[Tensor, "batch sensor"]:
        return self._residual(windows)[..., 0].abs()


class _Network(nn.Module):
    """Attention of each sensor to its neighbours; which these are follows from one vector per sensor."""

    def __init__(self, sensors: int, window: int, width: int, neighbours: int, dropout: float, itself: bool) -> None:
        super().__init__()
        self.neighbours, self.itself = neighbours, itself
        self.vectors = nn.Parameter(torch.empty(sensors, width))
        nn.init.kaiming_uniform_(self.vectors, a=math.sqrt(5))
        self.features = nn.Linear(window, width, bias=False)
        nn.init.xavier_uniform_(self.features.weight)
        # How much a sensor attends, and is attended to, by its features and by its vector.
        self.by_features = nn.Parameter(torch.empty(2, 1, width))
        for part in self.by_features:
            nn.init.xavier_uniform_(part)
        self.by_vectors = nn.Parameter(torch.zeros(2, 1, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.first_norm, self.second_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, 1))

    def forward(self, windows: Batch) -> Float[Tensor, "batch sensor 1"]:
        x = self.features(windows)
        attends, attended = (
            x @ by_features[0] + self.vectors @ by_vectors[0]
            for by_features, by_vectors in zip(self.by_features, self.by_vectors, strict=True)
        )
        strength = nn.functional.leaky_relu(attends[..., :, None] + attended[..., None, :], 0.2)
        x = strength.masked_fill(~self.graph(), -math.inf).softmax(dim=-1) @ x + self.bias
        x = _normed(self.first_norm, x) * self.vectors
        return self.head(_normed(self.second_norm, x))

    @torch.no_grad()
    def graph(self) -> Bool[Tensor, "sensor neighbour"]:
        """Each sensor and those whose vectors point most nearly the same way."""
        vectors = nn.functional.normalize(self.vectors)
        cosine = vectors @ vectors.mT
        if not self.itself:
            cosine.fill_diagonal_(-math.inf)
        near = cosine.topk(min(self.neighbours, len(cosine)), dim=1).indices
        return torch.eye(len(cosine), dtype=torch.bool).scatter(1, near, value=True)


def _normed(norm: nn.BatchNorm1d, x: Float[Tensor, "batch sensor width"]) -> Float[Tensor, "batch sensor width"]:
    return norm(x.flatten(0, 1)).relu().view_as(x)


def _usual(errors: Errors) -> Usual:
    lower, median, upper = np.percentile(errors, [25, 50, 75], axis=0)
    return median, upper - lower


def _smoothed(errors: Errors) -> Errors:
    """Means over the last four rows; the first three rows are 0."""
    last = _SMOOTHED - 1
    means = np.zeros_like(errors)
    for lag in range(_SMOOTHED):
        means[last:] += errors[last - lag : len(errors) - lag] / _SMOOTHED
    return means
