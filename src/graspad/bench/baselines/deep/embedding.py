"""How transformers and their like see a window: as a row of vectors that know where they are."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.train import Batch


def sinusoids(rows: int, width: int) -> Float[Tensor, "row width"]:
    """Sines and cosines of the row in turn, slower from pair to pair: sin(t / 10000^(j/width)), j = 0, 2, 4, …

    >>> sinusoids(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    angles = torch.arange(float(rows))[:, None] * rates(width)[::2]
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


def rates(width: int) -> Float[Tensor, " width"]:
    """10000^(−j/width)."""
    return 10_000.0 ** (-torch.arange(width) / width)


class Embedding(nn.Module):
    """Each row and its two neighbours as a vector, plus where it is; the first row and the last are neighbours."""

    def __init__(self, sensors: int, rows: int, width: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(sensors, width, kernel_size=3, padding=1, padding_mode="circular", bias=False)
        nn.init.kaiming_normal_(self.convolution.weight)
        self.register_buffer("places", sinusoids(rows, width).mT)
        self.dropout = nn.Dropout(dropout)

    def forward(self, windows: Batch) -> Float[Tensor, "batch width row"]:
        """The rows of the windows as vectors."""
        return self.dropout(self.convolution(windows) + self.places)
