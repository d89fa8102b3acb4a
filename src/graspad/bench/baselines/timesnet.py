"""TimesNet: a window is folded at its main periods, and convolved as an image (Wu et al. 2023).

`as-published` is mTSBench's. `fixed` differs in:

- Scale. Published: z-scores of each array by its own statistics, the test rows too. Fixed: by the training rows.
- Periods. Published: those of the mean spectrum of a batch, so that the score of a window depends on the windows it is
  scored with. Fixed: each window has its own.
- Place. Published: the error of the last row is put on the window's centre. Fixed: on that row.
- Weights. Published: those of the last epoch. Fixed: those of the best one on the held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad
from torch.optim.lr_scheduler import ExponentialLR

from graspad.bench.baselines.deep.embedding import Embedding
from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.train import Batch, Step

Embedded = Float[Tensor, "batch width row"]
Image = Float[Tensor, "batch width period phase"]


@dataclass(eq=False)
class TimesNet(Deep["_Network"]):
    """The mean squared error of the last row of a window that was folded at its main periods."""

    window: int = 96
    epochs: int = 50
    learning_rate: float = 1e-4
    width: int = 8
    hidden: int = 16
    periods: int = 3
    kernels: int = 6
    dropout: float = 0.1

    def _build(self, sensors: int) -> _Network:
        block = _Block(self.width, self.hidden, self.periods, self.kernels, of_batch=not self.fixed)
        return _Network(sensors, block, self.window, self.width, self.dropout)

    def _steps(self) -> Sequence[Step]:
        optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate)
        return [Step(optimizer, self._loss, ExponentialLR(optimizer, gamma=0.5))]


class _Network(nn.Module):
    """A window by its own mean and spread, embedded, through one block, and back."""

    def __init__(self, sensors: int, block: _Block, rows: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = Embedding(sensors, rows, width, dropout)
        self.block = block
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, sensors))

    def forward(self, windows: Batch) -> Batch:
        var, mean = torch.var_mean(windows, dim=-1, correction=0, keepdim=True)
        spread = (var + 1e-5).sqrt()
        return self.head(self.block(self.embedding((windows - mean) / spread)).mT).mT * spread + mean


class _Block(nn.Module):
    """Fold at each of the main periods, convolve, unfold; add up with weights that grow with the amplitude."""

    def __init__(self, width: int, hidden: int, periods: int, kernels: int, of_batch: bool) -> None:
        super().__init__()
        self.periods, self.of_batch = periods, of_batch
        self.convolutions = nn.Sequential(
            _Inception(width, hidden, kernels), nn.GELU(), _Inception(hidden, width, kernels)
        )

    def forward(self, x: Embedded) -> Embedded:
        amplitudes = torch.fft.rfft(x).abs().mean(dim=1)
        main = self._main(amplitudes)
        weights, periods = amplitudes.gather(1, main).softmax(dim=1), x.shape[-1] // main
        total = x
        for period in sorted(set(periods.flatten().tolist())):
            window, which = torch.nonzero(periods == period, as_tuple=True)
            folded = self._through_image(x.index_select(0, window), period)
            total = total.index_add(0, window, weights[window, which][:, None, None] * folded)
        return total

    def _main(self, amplitudes: Float[Tensor, "batch frequency"]) -> Int[Tensor, "batch main"]:
        """The frequencies with the largest amplitudes, of each window or of the whole batch; never 0."""
        ranked = amplitudes.mean(dim=0).expand_as(amplitudes) if self.of_batch else amplitudes
        return ranked[:, 1:].topk(self.periods, dim=1).indices + 1

    def _through_image(self, x: Embedded, period: int) -> Embedded:
        """One period is one line of the image; zeros fill the last line."""
        batch, width, rows = x.shape
        image = pad(x, (0, -rows % period)).reshape(batch, width, -1, period)
        return self.convolutions(image).flatten(2)[..., :rows]


class _Inception(nn.Module):
    """The mean of convolutions of 1, 3, 5, … pixels a side.

    It is computed as one convolution by the mean of the kernels, cut to what can meet anything but zeros.
    """

    def __init__(self, before: int, after: int, kernels: int) -> None:
        super().__init__()
        sides = range(1, 2 * kernels, 2)
        self.kernels = nn.ParameterList(
            nn.init.kaiming_normal_(torch.empty(after, before, side, side), mode="fan_out") for side in sides
        )
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, image: Image) -> Image:
        down, across = (min(len(self.kernels), size) - 1 for size in image.shape[-2:])
        kernels = [
            pad(kernel, (across - reach, across - reach, down - reach, down - reach))
            for reach, kernel in enumerate(self.kernels)
        ]
        return conv2d(image, torch.stack(kernels).mean(dim=0), self.bias, padding=(down, across))
