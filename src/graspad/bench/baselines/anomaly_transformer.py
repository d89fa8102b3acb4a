"""Anomaly Transformer: rows that attend to their neighbours only are suspicious (Xu et al. 2022).

`as-published` is mTSBench's, with window and learning rate of its list of tuned settings; the default of its wrapper,
100 rows and 1e-4, takes twice the time. `fixed` differs in:

- Scale. Published: z-scores of each array by its own statistics, the test rows too. Fixed: by the training rows.
- Score. Published: a row's error times its share in the softmax over the window of −50 times the *sum* of the layers'
  discrepancies, so sharp that most shares are 0 in float32, and with them the scores. Fixed: of minus their mean, as in
  the paper.
- Place. Published: the score of the last row is put on the window's centre. Fixed: on that row.
- Weights. Published: those of the last epoch. Fixed: those of the best one on the held-out rows. In both, an epoch is
  better if both of the two losses are no larger.

The authors' own code stops early on the test rows, and scores each row in one window only, wherever it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from graspad.bench.baselines.deep.embedding import Embedding
from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.train import Batch, Plan, Step

Rows = Float[Tensor, "batch row width"]
Attention = Float[Tensor, "batch head row other"]
Discrepancy = Float[Tensor, "*layer batch row"]


@dataclass(eq=False)
class AnomalyTransformer(Deep["_Network"]):
    """The squared error of the last row, times its share of how closely its attention follows a bell around it."""

    window: int = 50
    epochs: int = 10
    learning_rate: float = 1e-3
    width: int = 512
    heads: int = 8
    layers: int = 3
    # How much the discrepancy counts against the error in training.
    weight: float = 3.0

    @property
    def plan(self) -> Plan:
        """Ends after seven epochs in which one of the two losses was larger."""
        return Plan(self.epochs, patience=7, min_delta=0.0, restore=self.fixed)

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self.window, self.width, self.heads, self.layers)

    def _steps(self) -> Sequence[Step]:
        optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate)
        return [Step(optimizer, self._loss, LambdaLR(optimizer, lambda done: 0.5 ** max(done - 1, 0)))]

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """The gradient is that of both losses of the minimax game together: the discrepancy turns it round itself."""
        rebuilt, discrepancies = self._network(windows)
        return 2 * (rebuilt - windows).square().mean() + self.weight * discrepancies.mean()

    def _watched(self, windows: Batch, epoch: int) -> Float[Tensor, " 2"]:
        """Both losses: attention gains by discrepancy, the bells by agreement."""
        rebuilt, discrepancies = self._network(windows)
        error, discrepancy = (rebuilt - windows).square().mean(), self.weight * discrepancies.mean()
        return torch.stack([error - discrepancy, error + discrepancy])

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        rebuilt, discrepancies = self._network(windows)
        weighed = discrepancies.mean(dim=0) if self.fixed else 50 * discrepancies.sum(dim=0)
        return (-weighed).softmax(dim=-1)[:, -1] * (rebuilt - windows)[..., -1].square().mean(dim=1)


class _Network(nn.Module):
    """An encoder of transformer layers, each of which also tells how far its attention is from a bell."""

    def __init__(self, sensors: int, rows: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embedding = Embedding(sensors, rows, width, dropout=0.0)
        self.layers = nn.ModuleList(_Layer(rows, width, heads) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, sensors))

    def forward(self, windows: Batch) -> tuple[Batch, Discrepancy]:
        """The windows rebuilt, and the discrepancies of each layer and row."""
        x, discrepancies = self.embedding(windows).mT, []
        for layer in self.layers:
            x, discrepancy = layer(x)
            discrepancies.append(discrepancy)
        return self.head(x).mT, torch.stack(discrepancies)


class _Layer(nn.Module):
    """Attention and two linear layers; each is added to what it sees, and normalised."""

    falloff: Float[Tensor, "row other"]

    def __init__(self, rows: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        # Queries, keys, values and the spread of each head's bell.
        self.projection = nn.Linear(width, 3 * width + heads)
        self.out = nn.Linear(width, width)
        self.forth = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.attended, self.ended = nn.LayerNorm(width), nn.LayerNorm(width)
        row = torch.arange(float(rows))
        self.register_buffer("falloff", -(row[:, None] - row).square() / 2)

    def forward(self, x: Rows) -> tuple[Rows, Discrepancy]:
        width = x.shape[-1]
        *parts, spread = self.projection(x).split([width, width, width, self.heads], dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attention = (query * query.shape[-1] ** -0.5 @ key.mT).softmax(dim=-1)
        x = self.attended(x + self.out((attention @ value).transpose(1, 2).flatten(2)))
        discrepancy = _Discrepancy.apply(self._bell(spread.mT), attention)  # type: ignore[no-untyped-call]
        return self.ended(x + self.forth(x)), discrepancy

    def _bell(self, spread: Float[Tensor, "batch head row"]) -> Attention:
        """exp(−(t − s)² / 2σ²) as shares of row s, with σ between 0 and 2."""
        sigma = 3 ** ((5 * spread).sigmoid() + 1e-5) - 1
        return (self.falloff * sigma.pow(-2)[..., None]).softmax(dim=-1)


class _Discrepancy(torch.autograd.Function):
    """KL(bell ‖ attention) + KL(attention ‖ bell) for each row, mean over heads.

    The gradient for the attention has the other sign: going down, the bell follows the attention, and the attention
    flees the bell. Written out, as autograd would take twice the time and the memory.
    """

    @staticmethod
    def forward(context: Any, bell: Attention, attention: Attention) -> Discrepancy:
        difference = (bell + 1e-4).log_().sub_((attention + 1e-4).log_())
        context.save_for_backward(bell, attention, difference)
        return (bell - attention).mul_(difference).sum(dim=-1).mean(dim=1)

    @staticmethod
    def backward(context: Any, slope: Discrepancy) -> tuple[Attention, Attention]:  # type: ignore[override]
        bell, attention, difference = context.saved_tensors
        slope = slope[:, None, :, None] / bell.shape[1]
        gap = bell - attention
        down = (gap / (bell + 1e-4)).add_(difference).mul_(slope)
        return down, gap.div_(attention + 1e-4).add_(difference).mul_(slope)
