"""An autoencoder on single rows, as PyOD and mTSBench have it.

`as-published` is mTSBench's; of the three sizes that it names, the one that is nearest to the paper's rows. `fixed`
differs in:

- Scale. Published: each row to [0, 1] over its own sensors, which hides its amplitude, then z-scores by the training
  rows, in which a sensor that never moved is divided by 1e-8. Fixed: z-scores by the training rows, nothing else.
- Output. Published: a ReLU at the end, so that no value below a sensor's mean can be rebuilt. Fixed: none.
- Weights. Published: those of the last epoch; the "best" ones kept are an alias of them. Fixed: those of the epoch with
  the lowest loss on the last 20 % of the training rows, which are not trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.scaling import Scaler
from graspad.bench.baselines.deep.train import Batch, Plan, Step
from graspad.bench.method import Values


@dataclass(eq=False)
class AutoEncoder(Deep["_Network"]):
    """The Euclidean distance of a row from what an autoencoder makes of it."""

    window: int = 1
    epochs: int = 50
    hidden: tuple[int, int] = (32, 16)
    learning_rate: float = 1e-3
    dropout: float = 0.2

    @property
    def plan(self) -> Plan:
        """All epochs in both modes."""
        held_out = 0.2 if self.fixed else 0.0
        return Plan(self.epochs, held_out=held_out, patience=self.epochs, restore=self.fixed, drop_last=True)

    def _scaler(self, train: Values) -> Scaler:
        return super()._scaler(train) if self.fixed else _by_row_then_sensor(train)

    def _build(self, sensors: int) -> _Network:
        return _Network(self.window * sensors, self.hidden, self.dropout, ends_with_relu=not self.fixed)

    def _steps(self) -> Sequence[Step]:
        weights = self._network.parameters()
        return [Step(torch.optim.Adam(weights, lr=self.learning_rate, weight_decay=1e-5), self._loss)]

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        return self._residual(windows).flatten(1).norm(dim=1)


class _Network(nn.Module):
    """values → hidden → fewer → hidden → values."""

    def __init__(self, values: int, hidden: tuple[int, int], dropout: float, ends_with_relu: bool) -> None:
        super().__init__()

        def layer(before: int, after: int) -> nn.Module:
            return nn.Sequential(nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU(), nn.Dropout(dropout))

        wide, narrow = hidden
        self.layers = nn.Sequential(
            layer(values, wide), layer(wide, narrow), layer(narrow, wide), nn.Linear(wide, values)
        )
        if ends_with_relu:
            self.layers.append(nn.ReLU())

    def forward(self, windows: Batch) -> Batch:
        return self.layers(windows.flatten(1)).view_as(windows)


def _by_row_then_sensor(train: Values) -> Scaler:
    """Each row to [0, 1] over its sensors, then z-scores by the training rows; a spread of 0 counts as 1e-8."""
    mean, std = (statistic(_across_sensors(train), axis=0) for statistic in (np.mean, np.std))
    spread = np.where(std == 0, 1e-8, std)
    return lambda rows: ((_across_sensors(rows) - mean) / spread).astype(np.float32)


def _across_sensors(rows: Values) -> Values:
    low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
    return (rows - low) / np.where(high > low, high - low, 1.0)
