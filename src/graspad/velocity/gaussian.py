"""The closed-form field: the population-optimal velocity when normal windows are Gaussian. No training, no sampling.

In spectral coordinates, flattened to vectors of N·R entries, let x1 ~ N(m, C) with C = FFᵀ + s²I, and let
Λ = diag((β/α)²) at flow time t. With the resolvent J = (I + Λ^½ C Λ^½)⁻¹,

    endpoint posterior mean   μ(xt) = m + Λ^−½ (I − J) A⁻¹ (xt − B m)
    weighted residual of x1   Λ^½ (x1 − μ(xt)) = J Λ^½ (x1 − m) − (I − J) x0
    its mean square over x0   ‖J Λ^½ (x1 − m)‖² + ‖I − J‖²_F

By Lemma 1, η ρ² = (β/α)²: the last line is exactly the expected score at t, so no source has to be drawn.

With n windows, D = N·R and rank r the estimate takes n·N·D products at full rank, else about 10·n·D·r; each flow time
D³ at full rank, else D·r²; a window's score 2·D² or 4·D·r for each flow time. The model holds D·r numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from graspad.config import CLOSED_FORM
from graspad.core.path import Path, PathPoint
from graspad.core.score import Shares
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.velocity.field import Field, FlowTime, State
from graspad.velocity.resolvent import DenseResolvent, LowRankResolvent, Resolvent, Station


class GaussianField(Field):
    """V^p for Gaussian windows with mean m and covariance FFᵀ + s²I (spectral coordinates)."""

    def __init__(
        self,
        mean: Float[Tensor, "mode length"],
        factor: Float[Tensor, "mode length rank"],
        noise: float,
        spectrum: Spectrum,
        path: Path,
    ) -> None:
        super().__init__()
        self.mean: Tensor
        self.factor: Tensor
        self.noise: Tensor
        self.register_buffer("mean", mean.to(torch.float32))
        self.register_buffer("factor", factor.to(torch.float32))
        self.register_buffer("noise", torch.tensor(noise, dtype=torch.float64))
        self.spectrum, self.path = spectrum, path

    def with_more_noise(self, variance: float) -> GaussianField:
        """The same field with `variance` added to every direction: the least that any direction is given."""
        if self._is_dense:
            _ = self._covariance  # it is the same for both: work it out once
        field = copy(self)
        field._buffers = self._buffers | {"noise": self.noise + variance}
        return field

    def loss(self, windows: Windows, t: float) -> float:
        """The mean expected score of windows at one flow time: the flow-matching loss, weighted as the score is."""
        at = self.path.at(torch.tensor(t, dtype=torch.float64))
        resolvent, root = self.resolvent(at), (at.beta / at.alpha)[:, None]
        spectral = windows.mixed(self.spectrum.basis)[slice(None)]
        residual = resolvent.apply(root * (spectral - self.mean))
        return float(residual.square().sum()) / len(windows) + resolvent.rest_energy()

    def forward(self, xt: State, t: FlowTime) -> State:
        """V^p = (α̇/α) x̂t + ρ μ(xt), back in the node domain."""
        basis = self.spectrum.basis
        spectral = basis.T @ xt.to(torch.float64)
        velocity = torch.empty_like(spectral)
        for time in torch.unique(t):
            here = t == time
            at = self.path.at(time.to(torch.float64))
            velocity[here] = (at.d_alpha / at.alpha)[:, None] * spectral[here] + at.rho[:, None] * self.posterior_mean(
                spectral[here], at
            )
        return (basis @ velocity).to(xt.dtype)

    def posterior_mean(
        self, xt: Float[Tensor, "batch mode length"], at: PathPoint
    ) -> Float[Tensor, "batch mode length"]:
        """μ(xt) = E[x̂1 | x̂t]: what the field takes the window to be."""
        mean = self.mean.to(torch.float64)
        deviation = (xt - at.beta[:, None] * mean) / at.alpha[:, None]
        shrunk = deviation - self.resolvent(at).apply(deviation)
        return mean + (at.alpha / at.beta)[:, None] * shrunk

    def station(self, at: PathPoint, weights: str) -> Station:
        """Prepare one flow time of the exact score, with weights "eta" or "uniform"."""
        gain = torch.ones_like(at.eta) if weights == "eta" else 1 / at.eta.sqrt()
        return self.resolvent(at).station(self.spectrum.basis, at.beta / at.alpha, gain)

    def window_means(self) -> tuple[Float[Tensor, " sensor"], Float[Tensor, "sensor sensor"]]:
        """Mean and covariance of what each sensor is on average over the rows of a window."""
        basis, length = self.spectrum.basis, self.mean.shape[1]
        factor = basis @ self.factor.to(torch.float64).mean(dim=1)
        alone = self.noise / length * torch.eye(len(basis), dtype=torch.float64)
        return basis @ self.mean.to(torch.float64).mean(dim=1), factor @ factor.T + alone

    def window_shares(
        self,
        rows: Float[Tensor, "row sensor"],
        stations: list[Station],
        bands: Int[Tensor, " mode"] | None = None,
        filled: Bool[Tensor, "row sensor"] | None = None,
        batch: int = 32,
        starts: Int[Tensor, " chosen"] | None = None,
    ) -> Iterator[Shares]:
        """The score of all windows, or of those with these `starts`, exactly averaged over all sources.

        The weighted residual of a `filled` value counts as zero, as in the sampled score.
        """
        basis = self.spectrum.basis.to(torch.float32)
        mean = basis @ self.mean
        windows = rows.unfold(0, mean.shape[1], 1)
        for part in torch.split(torch.arange(len(windows)) if starts is None else starts, batch):
            hidden = None if filled is None else filled.unfold(0, mean.shape[1], 1)[part]
            # Into a tensor with rows innermost: a plain difference keeps the strides of the view, and every station
            # would copy it anew.
            centred = torch.sub(windows[part], mean, out=rows.new_empty(len(part), *mean.shape))
            by_sensor = torch.empty(len(centred), len(stations), centred.shape[1])
            by_band = None if bands is None else torch.zeros(len(centred), len(stations), int(bands.max()) + 1)
            for index, station in enumerate(stations):
                residual = station.residual(centred)
                if hidden is not None:
                    residual.masked_fill_(hidden, 0.0)
                if by_band is not None and bands is not None:
                    energy = (basis.T @ residual).square().sum(dim=-1) + station.noise_by_mode
                    by_band[:, index].index_add_(1, bands, energy)
                torch.add(residual.square_().sum(dim=-1), station.noise_by_sensor, out=by_sensor[:, index])
            yield Shares(by_sensor, by_band)

    def resolvent(self, at: PathPoint) -> Resolvent:
        """J at one flow time."""
        precision, noise = (at.beta / at.alpha) ** 2, float(self.noise)
        if self._is_dense:
            return DenseResolvent.of(precision, self._covariance, noise)
        return LowRankResolvent.of(precision, self.factor.to(torch.float64), noise)

    @property
    def _is_dense(self) -> bool:
        return self.factor.shape[-1] == self.mean.numel()

    @cached_property
    def _covariance(self) -> Float[Tensor, "entry entry"]:
        factor = self.factor.to(torch.float64).flatten(0, 1)
        return factor @ factor.T


def kept_rank(rank: int | None, size: int) -> int:
    """How many directions of windows with `size` entries are kept: all of them where that can be afforded.

    >>> kept_rank(None, 1900), kept_rank(None, 25_000), kept_rank(10, 1900)
    (1900, 256, 10)
    """
    if rank is None:
        return size if size <= CLOSED_FORM.full else CLOSED_FORM.leading
    return min(rank, size)
