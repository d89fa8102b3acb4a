"""FITS: every fourth row of a window, and a complex linear map of its low frequencies that fills in the rest (Xu 2024).

`as-published` is mTSBench's. `fixed` differs in:

- Scale. Published: z-scores of each array by its own statistics, the test rows too. Fixed: by the training rows.
- Place. Published: the error of the last row, on the centre of its window, 50 rows before. Fixed: on the last row.
- Weights. Published: those of the last epoch. Fixed: those of the best one on the held-out rows.

Each sensor has a map of its own, and each window its own mean and spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.scaling import by_window
from graspad.bench.baselines.deep.train import Batch, Step
from graspad.errors import InvalidSettingError


@dataclass(eq=False)
class FITS(Deep["_Network"]):
    """The mean squared error, at the last row, of what the low frequencies of every fourth row make of a window."""

    window: int = 100
    epochs: int = 50
    learning_rate: float = 1e-3
    every: int = 4
    frequencies: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window % self.every:
            raise InvalidSettingError.of("window", f"be a multiple of {self.every}", self.window)
        if self.frequencies > (most := (self.window // 2 + 1) // self.every):
            raise InvalidSettingError.of("frequencies", f"be at most {most} for this window", self.frequencies)

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self.every, self.frequencies)

    def _steps(self) -> Sequence[Step]:
        optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate)
        return [Step(optimizer, self._loss, StepLR(optimizer, step_size=5, gamma=0.75))]


class _Network(nn.Module):
    """One complex linear map per sensor, from the low frequencies of the rows kept to those of all rows."""

    def __init__(self, sensors: int, every: int, frequencies: int) -> None:
        super().__init__()
        self.every, self.frequencies = every, frequencies
        bound = frequencies**-0.5
        # Real at first: it is a real layer that is cast to complex numbers.
        draw = torch.empty(sensors, frequencies + 1, every * frequencies).uniform_(-bound, bound)
        self.weight, self.bias = (nn.Parameter(part.to(torch.complex64)) for part in (draw[:, :-1], draw[:, -1:]))

    def forward(self, windows: Batch) -> Batch:
        kept, mean, spread = by_window(windows[..., :: self.every], correction=1)
        low = torch.fft.rfft(kept)[..., : self.frequencies].transpose(0, 1)
        filled = torch.baddbmm(self.bias, low, self.weight).transpose(0, 1)
        # As many times longer, as many times more energy; frequencies above are zero.
        return self.every * torch.fft.irfft(filled, n=windows.shape[-1]) * spread + mean
