"""CATCH: attention between sensors within bands of frequencies, with a learned mask of who may attend (Wu et al. 2025).

`as-published` is the authors' code with the settings of its script for PSM, the lightest of all: with its default
widths a window of 25 sensors takes 10 GFLOP. `fixed` differs in:

- Learning rates. Published: a schedule is made but never moved on, so that the first epoch runs at 1/25 of both rates,
  and all at Adam's β₁ = 0.95; from the second epoch the mask has the rate of the others. Fixed: both rates as given,
  β₁ = 0.9. In either they are halved with each epoch after the second.
- Mask. Published: drawn at random for held-out and test rows too. Fixed: the more likely value.
- Masked. Published: whom a sensor may not attend gets −log 1e10 before the division by √64, which still leaves e⁻²·⁹.
  Fixed: after it, which leaves 1e-10.
- Tail. Published: the last rows, too few for a window, score 0. Fixed: they are scored in a window that ends with them.

In both, rows are scored in windows side by side, while `causal` takes the last row of each window at stride 1. The mask
learns ten times an epoch, from all gradients since; with fewer than ten batches, at each one, where the published code
divides by zero. A mean over neighbourhoods counts all that cover a row, where it counts those with any error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from graspad.bench.baselines.deep.method import Deep
from graspad.bench.baselines.deep.place import Place
from graspad.bench.baselines.deep.scaling import Scaler, by_training, by_window
from graspad.bench.baselines.deep.train import Batch, Loss, Plan, Step, seeded
from graspad.bench.method import RowScores, Scores, Values
from graspad.core.windows import Windows
from graspad.data.windows import causal, overlap

Spectrum = Float[Tensor, "batch sensor frequency"]
Tokens = Float[Tensor, "band sensor width"]
Mask = Float[Tensor, "band sensor other"]
Attention = Float[Tensor, "band sensor head other"]

_PART = 32


@dataclass(eq=False)
class CATCH(Deep["_Network"]):
    """Squared error of a row, and a share of the errors of its neighbourhood's spectrum, means over sensors."""

    window: int = 192
    epochs: int = 3
    learning_rate: float = 5e-3
    mask_learning_rate: float = 1e-3
    # Bands of the spectrum, and what a sensor is in each.
    band: int = 16
    stride: int = 8
    width: int = 16
    layers: int = 1
    heads: int = 4
    head_width: int = 64
    hidden: int = 32
    # The heads take twice as many numbers from each band.
    band_width: int = 16
    dropout: float = 0.2
    # Weights of the spectrum's error and of the contrast between those attended and all; of how few are attended.
    spectrum_weight: float = 0.005
    contrast_weight: float = 0.005
    temperature: float = 0.07
    sparsity: float = 0.5
    # Rows of a neighbourhood, and the weight of its spectrum in the score.
    neighbourhood: int = 32
    score_weight: float = 0.5

    @property
    def plan(self) -> Plan:
        """The best epoch is restored in both modes."""
        return Plan(self.epochs, min_delta=0.0, restore=True)

    @property
    def place(self) -> Place:
        """Each row has a score of its own; what is known of a window is that of its last."""
        return "last"

    def score(self, test: Values) -> RowScores:
        """Windows side by side for the rows, and at stride 1 for what is known at each."""
        windows = self._windows(test, "test rows")
        with seeded(self._seed):
            rows = self._side_by_side(windows)
            began = time.process_time()
            known = causal(self._each(windows), self.window)
            return RowScores(rows, known, causal_seconds=time.process_time() - began)

    def _side_by_side(self, windows: Windows) -> Scores:
        starts = torch.arange(0, len(windows), self.window)
        rows = len(windows) + self.window - 1
        tail = rows % self.window
        if self.fixed and tail:
            starts = torch.cat([starts, torch.tensor([rows - self.window])])
        parts = Windows(windows.rows, self.window, starts).batches(self.plan.batch)
        scores = np.concatenate([self._row_errors(part) for part in parts])
        if not tail:
            return scores.ravel()
        whole, last = (scores[:-1], scores[-1, -tail:]) if self.fixed else (scores, np.zeros(tail))
        return np.concatenate([whole.ravel(), last])

    @torch.no_grad()
    def _row_errors(self, windows: Batch) -> Float[np.ndarray, "batch row"]:
        residual = self._residual(windows)
        squares = residual.square().mean(dim=1).double().numpy()
        spectra = _size(residual.unfold(-1, self.neighbourhood, 1)).mean(dim=1)
        return squares + self.score_weight * overlap(spectra.double().numpy().T, self.neighbourhood).T

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        """At the last row, which is in one neighbourhood only."""
        residual = self._residual(windows)
        spectrum = _size(residual[..., -self.neighbourhood :])
        return (residual[..., -1].square() + self.score_weight * spectrum).mean(dim=1)

    def _residual(self, windows: Batch) -> Batch:
        return self._network(windows)[0] - windows

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        rebuilt, spectrum, contrast = self._network(windows)
        scaled, _, _ = by_window(windows)
        off = (spectrum - torch.fft.fft(scaled)).abs().mean()
        squares = (rebuilt - windows).square().mean()
        return squares + self.contrast_weight * contrast + self.spectrum_weight * off

    def _watched(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        return self._residual(windows).square().mean()

    def _scaler(self, train: Values) -> Scaler:
        return by_training(train[: self._cut(train)])

    def _split(self, train: Values) -> tuple[Windows, Windows | None]:
        windows, held_out = super()._split(train)
        self._batches = math.ceil(len(windows) / self.plan.batch)
        return windows, held_out

    def _build(self, sensors: int) -> _Network:
        return _Network(sensors, self)

    def _steps(self) -> Sequence[Step]:
        mask = list(self._network.mask.parameters())
        others = [weight for name, weight in self._network.named_parameters() if not name.startswith("mask.")]
        return [
            _Seldom(*self._learning(mask, self.mask_learning_rate), every=max(1, min(self._batches // 10, 100))),
            _InParts(*self._learning(others, self.learning_rate)),
        ]

    def _learning(self, weights: list[nn.Parameter], rate: float) -> tuple[Optimizer, Loss, LRScheduler]:
        """What lowers the loss at a rate that halves with each epoch after the second."""
        optimizer = torch.optim.Adam(weights, lr=rate, betas=(0.9 if self.fixed else 0.95, 0.999))
        first, later = (1.0, 1.0) if self.fixed else (1 / 25, self.learning_rate / rate)
        schedule = LambdaLR(optimizer, lambda done: later * 0.5 ** (done - 1) if done else first)
        return optimizer, self._loss, schedule


class _InParts(Step):
    """The same update, a few windows at a time: attention within all bands of 128 windows would take gigabytes."""

    def __call__(self, windows: Batch, epoch: int) -> None:
        """Add up the gradients of the parts."""
        self.optimizer.zero_grad()
        for part in torch.split(windows, _PART):
            torch.autograd.backward(self.loss(part, epoch) * (len(part) / len(windows)))
        self.optimizer.step()


@dataclass
class _Seldom(Step):
    """Goes down what the gradients of several batches add up to; another step computes them."""

    every: int = 1

    def __post_init__(self) -> None:
        self._seen = (0, 0)

    def __call__(self, windows: Batch, epoch: int) -> None:
        """Update at every so many batches of the epoch."""
        last, count = self._seen
        self._seen = epoch, count + 1 if epoch == last else 1
        if self._seen[1] % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


class _Network(nn.Module):
    """From bands of the spectrum to the whole of it, and back to rows."""

    def __init__(self, sensors: int, settings: CATCH) -> None:
        super().__init__()
        self.band, self.stride, self.draws_always = settings.band, settings.stride, not settings.fixed
        window, dropout, out = settings.window, settings.dropout, 2 * settings.band_width
        bands = (window - settings.band) // settings.stride + 1
        self.mask = nn.Linear(2 * settings.band, sensors, bias=False)
        nn.init.zeros_(self.mask.weight)
        self.embed = nn.Sequential(nn.Linear(2 * settings.band, settings.width), nn.Dropout(dropout))
        self.layers = nn.ModuleList(_Layer(settings) for _ in range(settings.layers))
        self.to_bands = nn.Sequential(nn.Dropout(dropout), nn.Linear(settings.width, out))
        self.real, self.imaginary = (
            nn.Sequential(nn.Linear(out, out), nn.Flatten(start_dim=-2), _Head(bands * out, window)) for _ in range(2)
        )
        self.to_rows = nn.Linear(2 * window, window)

    def forward(self, windows: Batch) -> tuple[Batch, Spectrum, Float[Tensor, ""]]:
        """The window rebuilt, its spectrum rebuilt, and the contrast."""
        scaled, mean, spread = by_window(windows)
        bands = torch.fft.fft(scaled).unfold(-1, self.band, self.stride).transpose(1, 2)
        given = torch.cat([bands.real, bands.imag], dim=-1).flatten(0, 1)
        mask, x = self.drawn(given), self.embed(given)
        contrasts = []
        for layer in self.layers:
            x, contrast = layer(x, mask)
            contrasts.append(contrast)
        x = self.to_bands(x).unflatten(0, bands.shape[:2]).transpose(1, 2)
        spectrum = torch.complex(self.real(x), self.imaginary(x))
        rebuilt = torch.fft.ifft(spectrum)
        rows = self.to_rows(torch.cat([rebuilt.real, rebuilt.imag], dim=-1))
        return rows * spread + mean, spectrum, torch.stack(contrasts).mean()

    def drawn(self, given: Float[Tensor, "band sensor number"]) -> Mask:
        """1 where a sensor may attend to another, else 0; gradients are those of the probability σ(2s).

        The published draw is a Gumbel softmax over (s, −s); the difference of its two draws is logistic.
        """
        strength = 2 * self.mask(given)
        if self.training or self.draws_always:
            strength = strength + torch.rand_like(strength).logit()
        likely = strength.sigmoid()
        mask = (strength >= 0).float() - likely.detach() + likely
        itself = torch.eye(mask.shape[-1])
        return mask * (1 - itself) + itself


class _Layer(nn.Module):
    """Masked attention between sensors, then two linear layers, each added to what it was given.

    A head is wider than what it is given, so its weights are multiplied with each other first: queries and keys q and k
    of x are never made, only x (W_q W_kᵀ) xᵀ.
    """

    def __init__(self, settings: CATCH) -> None:
        super().__init__()
        self.settings = settings
        width, inner, dropout = settings.width, settings.heads * settings.head_width, settings.dropout
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, inner) for _ in range(3))
        self.attended, self.dropout = nn.Linear(inner, width), nn.Dropout(dropout)
        self.feed = nn.Sequential(
            *(nn.LayerNorm(width), nn.Linear(width, settings.hidden), nn.GELU(), nn.Dropout(dropout)),
            *(nn.Linear(settings.hidden, width), nn.Dropout(dropout)),
        )

    def forward(self, x: Tokens, mask: Mask) -> tuple[Tokens, Float[Tensor, ""]]:
        given = nn.functional.pad(self.norm(x), (0, 1), value=1.0)
        query, key, value = (self._by_head(part) for part in (self.query, self.key, self.value))
        scores = (_through(given, query @ key.mT).flatten(1, 2) @ given.mT).view(*x.shape[:2], len(query), -1)
        by_length, by_other = (
            (_through(given, part @ part.mT) * given[:, :, None]).sum(dim=-1).clamp(min=1e-20).rsqrt()
            for part in (query, key)
        )
        cosine = (scores * by_length[..., None] * by_other.mT[:, None]).mean(dim=2)
        mixed = (self._weights(scores, mask[:, :, None]).flatten(1, 2) @ given).view(*x.shape[:2], -1)
        out = value @ self.attended.weight.mT.reshape(len(value), -1, x.shape[-1])
        x = x + self.dropout(mixed @ out.flatten(0, 1) + self.attended.bias)
        return x + self.feed(x), self._contrast(cosine, mask)

    def _by_head(self, layer: nn.Linear) -> Float[Tensor, "head width_and_one head_width"]:
        both = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
        return both.view(self.settings.heads, -1, both.shape[1]).mT

    def _weights(self, scores: Attention, mask: Float[Tensor, "band sensor 1 other"]) -> Attention:
        scale, none = self.settings.head_width**-0.5, torch.where(mask == 0, -math.log(1e10), 0.0)
        if self.settings.fixed:
            return (scores * (mask * scale) + none).softmax(dim=-1)
        return (scores * (mask * scale) + none * scale).softmax(dim=-1)

    def _contrast(self, cosine: Float[Tensor, "band sensor other"], mask: Mask) -> Float[Tensor, ""]:
        """How much of all similarity the mask leaves out, and how much it leaves in beyond each sensor itself."""
        similar = (cosine / self.settings.temperature).exp()
        left_out = -((similar * mask).sum(dim=-1) / similar.sum(dim=-1)).log().mean()
        sensors = mask.shape[-1]
        left_in = (torch.eye(sensors) - mask).abs().sum(dim=(1, 2)).mean() / max(1, sensors * (sensors - 1))
        return left_out + self.settings.sparsity * left_in


class _Head(nn.Module):
    """Three layers that each add to their input, and a linear one."""

    def __init__(self, numbers: int, window: int) -> None:
        super().__init__()
        self.adding = nn.ModuleList(nn.Linear(numbers, numbers) for _ in range(3))
        self.last = nn.Linear(numbers, window)

    def forward(self, x: Float[Tensor, "batch sensor number"]) -> Spectrum:
        for layer in self.adding:
            x = layer(x).relu() + x
        return self.last(x)


def _through(
    given: Float[Tensor, "band sensor width"], maps: Float[Tensor, "head width mapped"]
) -> Float[Tensor, "band sensor head mapped"]:
    """A linear map for each head."""
    return (given @ maps.transpose(0, 1).flatten(1)).view(*given.shape[:2], len(maps), -1)


def _size(rows: Float[Tensor, "*any row"]) -> Float[Tensor, "*any"]:
    """The mean absolute value of the spectrum."""
    return torch.fft.fft(rows).abs().mean(dim=-1)
