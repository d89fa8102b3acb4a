"""USAD: two autoencoders with one encoder, the second trained to tell the first one's output (Audibert et al. 2020).

`as-published` is mTSBench's implementation with the settings that give the paper's SMAP row (windows of 100 rows,
learning rate 1e-3). `fixed` differs in:

- Scale. Published: z-scores of each array by its own statistics, although the output is a sigmoid and cannot leave
  [0, 1]: most of the score is how far the z-scores are from there. Fixed: training ranges to [0, 1].
- Adversary. Published: one optimiser lowers the sum of both losses, in which the adversarial terms cancel. Fixed: each
  loss has its own optimiser and its own autoencoder, and the second one's adversarial term counts.
  Nothing holds the second one back then: after ten epochs on SMD's machine-1-3, AE2(AE1(x)) is off by 0.77 in the mean
  square, AE1(x) by 0.007, and the score is worse than chance, for any weights α and β that keep the second term.
- Training. Published: early stopping on a loss whose weight falls with the epoch, so that it hardly ever stops. Fixed:
  all rows and all epochs, as losses of different epochs cannot be compared.

Layers, window, learning rate and the weights of the score are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.place import Place
from graspad.bench.baselines.deep.train import Batch, Loss, Plan, Step

Flat = Float[Tensor, "batch value"]


@dataclass(eq=False)
class USAD(Deep["_Network"]):
    """What two autoencoders miss of a window: α |x − AE1(x)|² + β |x − AE2(AE1(x))|², means over its values."""

    window: int = 100
    epochs: int = 10
    learning_rate: float = 1e-3
    alpha: float = 0.1
    beta: float = 0.9

    sigmoid: ClassVar[bool] = True

    @property
    def plan(self) -> Plan:
        """Early stopping as published; none if fixed."""
        return Plan(self.epochs, held_out=0.0) if self.fixed else Plan(self.epochs)

    @property
    def place(self) -> Place:
        """The score is of the window as a whole."""
        return "centre"

    def _build(self, sensors: int) -> _Network:
        return _Network(self.window * sensors)

    def _steps(self) -> Sequence[Step]:
        if not self.fixed:
            return [self._step(self._loss, self._network)]
        encoder, first, second = self._network.encoder, self._network.first, self._network.second
        return [self._step(self._first_loss, encoder, first), self._step(self._second_loss, encoder, second)]

    def _step(self, loss: Loss, *parts: nn.Module) -> Step:
        weights = [weight for part in parts for weight in part.parameters()]
        return Step.decayed(weights, loss, self.learning_rate)

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """(|x − AE1(x)|² + |x − AE2(x)|²) / n: what is left of the published sum of both losses."""
        x = _flat(windows)
        code = self._network.encoder(x)
        return (_distance(x, self._network.first(code)) + _distance(x, self._network.second(code))).mean() / (epoch + 1)

    def _first_loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """|x − AE1(x)|² / n + (1 − 1/n) |x − AE2(AE1(x))|²."""
        x, once, twice = self._rebuilt(windows)
        return (_distance(x, once) / epoch + (1 - 1 / epoch) * _distance(x, twice)).mean()

    def _second_loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """|x − AE2(x)|² / n − (1 − 1/n) |x − AE2(AE1(x))|²."""
        x, _, twice = self._rebuilt(windows)
        own = self._network.second(self._network.encoder(x))
        return (_distance(x, own) / epoch - (1 - 1 / epoch) * _distance(x, twice)).mean()

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        x, once, twice = self._rebuilt(windows)
        return self.alpha * _distance(x, once) + self.beta * _distance(x, twice)

    def _rebuilt(self, windows: Batch) -> tuple[Flat, Flat, Flat]:
        """x, AE1(x) and AE2(AE1(x))."""
        x = _flat(windows)
        once = self._network.first(self._network.encoder(x))
        return x, once, self._network.second(self._network.encoder(once))


class _Network(nn.Module):
    """One encoder to 5 numbers, two decoders."""

    def __init__(self, values: int, hidden: int = 16, latent: int = 5) -> None:
        super().__init__()
        self.encoder = _layers(values, hidden, hidden, latent, last=nn.ReLU())
        self.first = _layers(latent, hidden, hidden, values, last=nn.Sigmoid())
        self.second = _layers(latent, hidden, hidden, values, last=nn.Sigmoid())


def _layers(*sizes: int, last: nn.Module) -> nn.Sequential:
    """Linear layers with ReLU between them and another function at the end."""
    linear = [nn.Sequential(nn.Linear(before, after), nn.ReLU()) for before, after in pairwise(sizes)]
    linear[-1][1] = last
    return nn.Sequential(*linear)


def _flat(windows: Batch) -> Flat:
    return windows.mT.flatten(1)


def _distance(one: Flat, other: Flat) -> Float[Tensor, " batch"]:
    return (one - other).square().mean(dim=1)
