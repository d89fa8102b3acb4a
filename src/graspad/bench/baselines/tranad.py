"""TranAD: a transformer rebuilds the last row twice, the second time knowing where it failed (Tuli et al. 2022).

`as-published` is mTSBench's. `fixed` differs in:

- Scale. Published: z-scores of each array by its own statistics, although the output is a sigmoid and cannot leave
  [0, 1]. Fixed: training ranges to [0, 1].
- Activation. Published: a leaky ReLU of slope 1, which is the identity. Fixed: of slope 0.01.
- Places. Published: the sine plus the cosine of the row in each dimension. Fixed: sines and cosines in turn.
- Layers. Published: no normalisation. Fixed: LayerNorm after each sum, as in the paper.
- Score. Published: the error of the second output, on the window's centre. Fixed: the mean of both errors, on the row
  they are of.
- Weights. Published: those of the last epoch. Fixed: those of the best one on the held-out rows.

Neither has the paper's adversarial loss; the authors' own code has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.embedding import rates, sinusoids
from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.train import Batch, Step

Rows = Float[Tensor, "batch row width"]
Last = Float[Tensor, "batch 1 sensor"]


@dataclass(eq=False)
class TranAD(Deep["_Network"]):
    """The mean squared error of a last row rebuilt with the errors of a first attempt in view."""

    window: int = 10
    epochs: int = 50
    learning_rate: float = 1e-3
    dropout: float = 0.1

    sigmoid: ClassVar[bool] = True

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self.window, self.dropout, as_published=not self.fixed)

    def _steps(self) -> Sequence[Step]:
        return [Step.decayed(self._network.parameters(), self._loss, self.learning_rate)]

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """|x − x̂₁|² / n + (1 − 1/n) |x − x̂₂|² in epoch n."""
        first, second = self._both(windows)
        return first.mean() / epoch + (1 - 1 / epoch) * second.mean()

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        first, second = self._both(windows)
        return (first + second) / 2 if self.fixed else second

    def _both(self, windows: Batch) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """The mean squared errors of both attempts at the last row."""
        first, second = ((rebuilt[:, 0] - windows[..., -1]).square().mean(dim=1) for rebuilt in self._network(windows))
        return first, second


class _Network(nn.Module):
    """One encoder of windows and of errors; two decoders that ask it for the last row."""

    places: Float[Tensor, "row width"]

    def __init__(self, sensors: int, rows: int, dropout: float, as_published: bool) -> None:
        super().__init__()
        places = _sums_of_sinusoids if as_published else sinusoids
        self.register_buffer("places", places(rows, 2 * sensors))
        self.dropout = nn.Dropout(dropout)
        self.encoder = _Layer(sensors, dropout, as_published)
        self.first = _Layer(sensors, dropout, as_published, asks=True)
        self.second = _Layer(sensors, dropout, as_published, asks=True)
        self.head = nn.Sequential(nn.Linear(2 * sensors, sensors), nn.Sigmoid())

    def forward(self, windows: Batch) -> tuple[Last, Last]:
        """The last row, rebuilt without and with the errors of the first attempt."""
        x = windows.mT
        query = x[:, -1:].repeat(1, 1, 2)
        first = self.head(self.first(query, self._encoded(x, torch.zeros_like(x))))
        return first, self.head(self.second(query, self._encoded(x, (first - x).square())))

    def _encoded(self, x: Rows, errors: Rows) -> Rows:
        return self.encoder(self.dropout(torch.cat([x, errors], dim=-1) * math.sqrt(x.shape[-1]) + self.places))


class _Layer(nn.Module):
    """Attention to itself, to another sequence if it `asks`, and 16 hidden units; each is added to what it sees."""

    def __init__(self, sensors: int, dropout: float, as_published: bool, asks: bool = False) -> None:
        super().__init__()
        width = 2 * sensors

        def attention() -> nn.MultiheadAttention:
            return nn.MultiheadAttention(width, sensors, dropout=dropout, batch_first=True)

        self.itself, self.other = attention(), attention() if asks else None
        self.forth = nn.Sequential(
            *(nn.Linear(width, 16), nn.LeakyReLU(1.0 if as_published else 0.01)),
            *(nn.Dropout(dropout), nn.Linear(16, width)),
        )
        self.norms = nn.ModuleList(nn.Identity() if as_published else nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Rows, asked: Rows | None = None) -> Rows:
        to_itself, to_other, last = self.norms
        x = to_itself(x + self.dropout(self.itself(x, x, x, need_weights=False)[0]))
        if self.other is not None:
            x = to_other(x + self.dropout(self.other(x, asked, asked, need_weights=False)[0]))
        return last(x + self.dropout(self.forth(x)))


def _sums_of_sinusoids(rows: int, width: int) -> Float[Tensor, "row width"]:
    """sin(t / 10000^(j/width)) + cos(t / 10000^(j/width)), j = 0, 1, 2, …"""
    angles = torch.arange(float(rows))[:, None] * rates(width)
    return angles.sin() + angles.cos()
