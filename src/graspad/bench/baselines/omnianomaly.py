"""OmniAnomaly: a recurrent network and a variational autoencoder on each of its states (Su et al. 2019).

`as-published` is mTSBench's. `fixed` differs in:

- Axes. Published: the memory of (window, row, sensor) is read as (row, window, sensor), so that the recurrent network
  jumps from window to window of the batch. Fixed: it runs along the rows of each window.
- State. Published: it starts at zero in the first batch of a pass, at random numbers in all others, at test too.
  Fixed: at zero.
- Scale. Published: z-scores of each array by its own statistics, although the output is a sigmoid and cannot leave
  [0, 1]. Fixed: training ranges to [0, 1].
- Loss. Published: the mean squared error plus 0.01 times the *sum* of all divergences of a window, so strong that the
  latent numbers carry nothing and the output is a constant. Fixed: 0.01 times their mean, which is the paper's lower
  bound for readings with a spread of √(0.01 sensors / 16), 0.125 for 25 sensors.
- Score. Published: of the whole window, from a random draw of the latent numbers, on the window's centre. Fixed: of the
  last row, from their means, on that row.
- Weights. Published: those of the last epoch. Fixed: those of the best one on the held-out rows.

What mTSBench left out of the paper, both leave out: the flow behind the latent numbers, the links between those of
successive rows, the recurrent decoder and a learnt spread of the readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.train import Batch, Step
from graspad.bench.method import RowScores, Values

Latent = Float[Tensor, "row batch latent"]


@dataclass(eq=False)
class OmniAnomaly(Deep["_Network"]):
    """The mean squared error of what a variational autoencoder makes of the states of a recurrent network."""

    window: int = 100
    epochs: int = 50
    learning_rate: float = 2e-3
    beta: float = 0.01

    sigmoid: ClassVar[bool] = True

    def score(self, test: Values) -> RowScores:
        """The published state depends on where a pass begins, and so here."""
        self._network.eval()
        return super().score(test)

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, as_published=not self.fixed)

    def _steps(self) -> Sequence[Step]:
        return [Step.decayed(self._network.parameters(), self._loss, self.learning_rate)]

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """|x − x̂|² + β KL(N(μ, σ²) ‖ N(0, 1)); the divergences are added up over a window, or, if fixed, averaged."""
        rebuilt, mean, log_var = self._network(windows)
        divergence = (mean.square() + log_var.exp() - 1 - log_var) / 2
        divergence = divergence.mean() if self.fixed else divergence.sum() / len(windows)
        return (rebuilt - windows).square().mean() + self.beta * divergence

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        errors = (self._network(windows)[0] - windows).square().mean(dim=1)
        return errors[:, -1] if self.fixed else errors.mean(dim=1)


class _Network(nn.Module):
    """Two recurrent layers; each state becomes 8 latent numbers, and these a row."""

    def __init__(self, sensors: int, as_published: bool, hidden: int = 32, latent: int = 8) -> None:
        super().__init__()
        self.as_published = as_published
        self.recurrent = nn.GRU(sensors, hidden, num_layers=2)
        self.encoder = _layers(hidden, hidden, 2 * latent)
        self.decoder = nn.Sequential(_layers(latent, hidden, sensors), nn.Sigmoid())

    def train(self, mode: bool = True) -> Self:
        """Also the begin of a pass over windows: the published state is zero for its first batch only."""
        self.begins = True
        return super().train(mode)

    def forward(self, windows: Batch) -> tuple[Batch, Latent, Latent]:
        """The windows rebuilt, and means and logarithms of the variances of the latent numbers."""
        batch, sensors, rows = windows.shape
        x = windows.mT.reshape(rows, batch, sensors) if self.as_published else windows.permute(2, 0, 1)
        states, _ = self.recurrent(x, self._first_state(batch))
        mean, log_var = self.encoder(states).chunk(2, dim=-1)
        drawn = self.training or self.as_published
        rebuilt = self.decoder(mean + (log_var / 2).exp() * torch.randn_like(mean) if drawn else mean)
        rebuilt = rebuilt.reshape(batch, rows, sensors).mT if self.as_published else rebuilt.permute(1, 2, 0)
        return rebuilt, mean, log_var

    def _first_state(self, batch: int) -> Float[Tensor, "layer batch hidden"] | None:
        """None is zero."""
        begins, self.begins = self.begins, False
        return torch.rand(2, batch, self.recurrent.hidden_size) if self.as_published and not begins else None


def _layers(before: int, hidden: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(before, hidden), nn.PReLU(), nn.Linear(hidden, hidden), nn.PReLU(), nn.Linear(hidden, after)
    )
