"""GCAD: by how much each sensor moves the forecast error of each other one, and how that changes (Liu et al. 2025).

The code as published does not run (it reads an argument that it does not define, and its script gives one that it does
not know); `as-published` is what it would do, with its default settings, which are those of its script for SMD. `fixed`
differs in:

- Score. Published: |G − (Ḡ + 1e-4)| / (Ḡ + 1e-4), so that a pair of sensors with no influence in either counts 1 rather
  than 0, and a weak one less than none. Fixed: |G − Ḡ| / (Ḡ + 1e-4).
- Time pattern. Published: the weight β of the diagonal, a sensor's influence on itself, is given in the script but not
  implemented. Fixed: it counts; it is 0 for SMD and so by default.

Where the published evaluation labels a window by the largest label of its rows and drops the last, incomplete batch, a
score here belongs to the row that was forecast, and all have one. Influences are averaged over the window at once, not
kept: 258 GB become one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.place import Place
from graspad.bench.baselines.deep.scaling import OneEach, Scaler, by_training, by_window
from graspad.bench.baselines.deep.train import Batch, Plan, Step, seeded
from graspad.bench.method import RowScores, Values
from graspad.core.windows import Windows

# How the forecast of one sensor, or its squared error, changes with another.
Influence = Float[Tensor, "batch on of"]
Gradients = Float[Tensor, "batch on of row"]

_LEAST = 1e-4
_SMOOTHED = 3


@dataclass(eq=False)
class GCAD(Deep["_Network"]):
    """How far the influences between sensors, within a window, are from the usual ones; mean over three windows."""

    window: int = 30
    epochs: int = 100
    learning_rate: float = 1e-4
    blocks: int = 3
    hidden: int = 1024
    # Weaker influences count as none.
    threshold: float = 0.005
    # Share of the training batches that the usual influences are taken from.
    sampled: float = 0.2
    beta: float = 0.0

    ahead: ClassVar[int] = 1

    @property
    def plan(self) -> Plan:
        """The best epoch is restored in both modes."""
        return Plan(self.epochs, patience=2, min_delta=0.0, restore=True, drop_last=True)

    @property
    def place(self) -> Place:
        """The row that was forecast."""
        return "last"

    def fit(self, train: Values, seed: int) -> None:
        """Train, then look at the usual influences."""
        super().fit(train, seed)
        with seeded(seed), torch.no_grad():
            order = torch.split(torch.randperm(len(self._trained)), self.plan.batch)
            kept = [chosen for chosen in order if torch.rand(()) < self.sampled] or order[:1]
            sums = torch.stack([self._influence(self._trained[chosen]).sum(dim=0) for chosen in kept])
            self._usual = sums.sum(dim=0) / sum(map(len, kept))

    def score(self, test: Values) -> RowScores:
        """Running means of the errors; `causal` takes the last windows, not those around."""
        return super().score(test).averaged(_SMOOTHED)

    def _scaler(self, train: Values) -> Scaler:
        return by_training(train[: self._cut(train)])

    def _split(self, train: Values) -> tuple[Windows, Windows | None]:
        cut = self._cut(train)
        self._trained = self._windows(train[:cut], "training rows before those that are held out")
        return self._trained, self._windows(train[cut - self.window :], "rows to watch")

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self.window, self.blocks, self.hidden)

    def _steps(self) -> Sequence[Step]:
        return [Step(torch.optim.Adam(self._network.parameters(), lr=self.learning_rate), self._loss)]

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        expected = self._usual if self.fixed else self._usual + _LEAST
        change = (self._influence(windows) - expected).abs() / (self._usual + _LEAST)
        total = change.mean(dim=(1, 2))
        if self.fixed:
            total += self.beta * change.diagonal(dim1=1, dim2=2).sum(dim=1) / change[0].numel()
        return total

    def _influence(self, windows: Batch) -> Influence:
        """|∂ squared error of one ∂ another|, the mean over rows; of each pair what one direction has more."""
        forecast, gradients = self._network.forecast_with_influence(windows[..., : -self.ahead])
        error = forecast - windows[..., -self.ahead :]
        influence = 2 * error.abs() * gradients
        more = (influence - influence.mT).relu() + torch.diag_embed(influence.diagonal(dim1=1, dim2=2))
        return torch.where(more < self.threshold, 0.0, more)


class _Network(nn.Module):
    """TSMixer on windows that are scaled by their own mean and spread, which count as given in derivatives."""

    def __init__(self, sensors: int, window: int, blocks: int, hidden: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Block(sensors, window, hidden) for _ in range(blocks))
        self.head = nn.Linear(window, 1)
        self.gain, self.shift = nn.Parameter(torch.ones(sensors, 1)), nn.Parameter(torch.zeros(sensors, 1))

    def forward(self, windows: Batch) -> OneEach:
        x, mean, spread = self._scaled(windows)
        for block in self.blocks:
            x = block(x)
        return self._rescaled(self.head(x), mean, spread)

    def forecast_with_influence(self, windows: Batch) -> tuple[OneEach, Influence]:
        """The forecast f, and the mean over rows of |∂f_j / ∂x_i| at (j, i), once trained.

        One pass back for all outputs: a pass for each would take the same products over the hidden layer many times.
        """
        x, mean, spread = self._scaled(windows)
        inputs = []
        for block in self.blocks:
            inputs.append(x)
            x = block(x)
        sensors = torch.eye(x.shape[1])[:, :, None]
        gradients = (sensors * self.head.weight).expand(len(x), -1, -1, -1)
        for block, given in zip(reversed(self.blocks), reversed(inputs), strict=True):
            gradients = cast(_Block, block).pulled_back(given, gradients)
        # What scaling does to a derivative: by row of the matrix for the output, by column for the input.
        unit = spread / self.gain.abs()
        return self._rescaled(self.head(x), mean, spread), gradients.abs().mean(dim=-1) * unit / unit.mT

    def _scaled(self, windows: Batch) -> tuple[Batch, OneEach, OneEach]:
        scaled, mean, spread = by_window(windows)
        return scaled * self.gain + self.shift, mean, spread

    def _rescaled(self, x: OneEach, mean: OneEach, spread: OneEach) -> OneEach:
        return (x - self.shift) / self.gain * spread + mean


class _Block(nn.Module):
    """x + ReLU(rows mixed), then x + (sensors mixed over a hidden layer), each of x scaled by the batch."""

    def __init__(self, sensors: int, window: int, hidden: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = (nn.BatchNorm1d(sensors * window) for _ in range(2))
        self.rows = nn.Linear(window, window)
        self.wide, self.narrow = nn.Linear(sensors, hidden), nn.Linear(hidden, sensors)

    def forward(self, x: Batch) -> Batch:
        x = x + self._mixed_rows(x).relu()
        return x + self.narrow(self._hidden(x).relu()).mT

    def pulled_back(self, x: Batch, gradients: Gradients) -> Gradients:
        """From derivatives with respect to what the block gives at x to those with respect to x."""
        mixed = self._mixed_rows(x)
        open_hidden = (self._hidden(x + mixed.relu()) > 0).float()
        # Summed over the hidden layer: sensors × sensors for each row, whatever the number of outputs.
        pairs = self.narrow.weight.mT[:, :, None] * self.wide.weight[:, None, :]
        mixing = (open_hidden @ pairs.flatten(1)).view(*open_hidden.shape[:2], *pairs.shape[1:])
        by_row = (gradients.permute(0, 3, 1, 2) @ mixing).permute(0, 2, 3, 1)
        gradients = gradients + by_row * _slope(self.second_norm, x)
        return gradients + (gradients * (mixed > 0)[:, None]) @ self.rows.weight * _slope(self.first_norm, x)

    def _mixed_rows(self, x: Batch) -> Batch:
        return self.rows(self.first_norm(x.flatten(1)).view_as(x))

    def _hidden(self, x: Batch) -> Float[Tensor, "batch row hidden"]:
        return self.wide(self.second_norm(x.flatten(1)).view_as(x).mT)


def _slope(norm: nn.BatchNorm1d, x: Batch) -> Float[Tensor, "sensor row"]:
    """What a trained scale multiplies each value by."""
    assert norm.running_var is not None
    return (norm.weight * (norm.running_var + norm.eps).rsqrt()).view(x.shape[1:])
