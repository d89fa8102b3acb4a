"""The closed-form field: the population-optimal velocity when normal windows are Gaussian. No training, no sampling.

In spectral coordinates, flattened to vectors of N·R entries, let x1 ~ N(m, C) with C = FFᵀ + s²I, and let
Λ = diag((β/α)²) at flow time t. With the resolvent J = (I + Λ^½ C Λ^½)⁻¹,

    endpoint posterior mean   μ(xt) = m + Λ^−½ (I − J) A⁻¹ (xt − B m)
    weighted residual of x1   Λ^½ (x1 − μ(xt)) = J Λ^½ (x1 − m) − (I − J) x0
    its mean square over x0   ‖J Λ^½ (x1 − m)‖² + ‖I − J‖²_F

By Lemma 1, η ρ² = (β/α)²: the last line is exactly the expected score at t, so no source has to be drawn.

With n windows, D = N·R and rank r the estimate takes n·D² products at full rank, else about 10·n·D·r; each flow time D³
at full rank, else D·r²; a window's score 2·D² or 4·D·r for each flow time. The model holds D·r numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from graspad.core.path import Path, PathPoint
from graspad.core.score import Shares
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.velocity.field import Field, FlowTime, State

# Windows handled at once in a product with the covariance; at low rank it is never formed: memory stays at N·R·rank.
_CHUNK = 1024
# Up to so many entries of a window (80 sensors at 50 rows) every direction is kept, beyond that the leading ones.
_FULL, _LEADING = 4096, 256
# Subspace iteration: spare directions and passes over the data that make the leading ones accurate.
_SPARE, _PASSES = 16, 4


@dataclass(frozen=True)
class Moments:
    """Sums over windows that give their mean and covariance. Windows can be taken away again."""

    count: int
    total: Float[Tensor, " entry"]
    products: Float[Tensor, "entry entry"]

    @classmethod
    def of(cls, windows: Windows) -> Moments:
        """Products in float32, for speed, their sum in float64."""
        size = windows.rows.shape[1] * windows.length
        total, products = torch.zeros(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
        for part in windows.batches(_CHUNK):
            flat = part.flatten(1)
            total += flat.sum(dim=0)
            products += flat.T @ flat
        return cls(len(windows), total, products)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.count - other.count, self.total - other.total, self.products - other.products)

    @property
    def mean(self) -> Float[Tensor, " entry"]:
        """The mean window."""
        return self.total / self.count


@dataclass(frozen=True)
class Resolvent:
    """J = diag(d) − U Uᵀ, by Woodbury's identity an r × r solve; d is the same for all rows of a mode."""

    diagonal: Float[Tensor, " mode"]
    low_rank: Float[Tensor, "mode length rank"]

    @classmethod
    def of(
        cls, precision: Float[Tensor, " mode"], factor: Float[Tensor, "mode length rank"], noise: float
    ) -> Resolvent:
        """(I + Λ^½ (FFᵀ + s²I) Λ^½)⁻¹ for Λ = diag(precision)."""
        d = 1 / (1 + noise * precision)
        scaled = precision.sqrt()[:, None, None] * factor
        inner = torch.eye(factor.shape[-1], dtype=factor.dtype) + _gram(d.sqrt()[:, None, None] * scaled)
        root = torch.linalg.cholesky(inner)
        right = (d[:, None, None] * scaled).flatten(0, 1)
        low_rank = torch.linalg.solve_triangular(root.T, right, upper=True, left=False)
        return cls(d, low_rank.view_as(factor))

    def apply(self, x: Float[Tensor, "batch mode length"]) -> Float[Tensor, "batch mode length"]:
        """J x for each state of the batch."""
        u = self.low_rank.flatten(0, 1)
        return x * self.diagonal[:, None] - ((x.flatten(1) @ u) @ u.T).view_as(x)


@dataclass(frozen=True)
class Station(ABC):
    """One flow time of the exact score, in the node domain: x1 − m goes in, its weighted residual comes out.

    `noise_*` is the part of the score that the source adds on average, which no window can change.
    """

    noise_by_sensor: Float[Tensor, " sensor"]
    noise_by_mode: Float[Tensor, " mode"]

    @abstractmethod
    def residual(self, centred: Float[Tensor, "batch sensor row"]) -> Float[Tensor, "batch sensor row"]:
        """The weighted residual of windows from which the mean was taken, apart from the source's part."""


@dataclass(frozen=True)
class LowRankStation(Station):
    """`local` (a filter over sensors) minus `inward` then `outward` (rank r)."""

    local: Float[Tensor, "sensor sensor"]
    inward: Float[Tensor, "entry rank"]
    outward: Float[Tensor, "rank entry"]

    def residual(self, centred: Float[Tensor, "batch sensor row"]) -> Float[Tensor, "batch sensor row"]:
        """Two thin products."""
        local = (self.local @ centred).flatten(1)
        return torch.addmm(local, centred.flatten(1) @ self.inward, self.outward, alpha=-1).view_as(centred)


@dataclass(frozen=True)
class DenseStation(Station):
    """One matrix for all of it: cheaper than two as soon as the rank exceeds half the entries."""

    matrix: Float[Tensor, "entry entry"]

    def residual(self, centred: Float[Tensor, "batch sensor row"]) -> Float[Tensor, "batch sensor row"]:
        """One product."""
        return (centred.flatten(1) @ self.matrix).view_as(centred)


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

    @classmethod
    def of(
        cls, windows: Windows, spectrum: Spectrum, path: Path, rank: int | None, ridge: float = 0.0
    ) -> GaussianField:
        """Estimate mean and covariance from normal windows.

        The `rank` largest principal directions are kept; the variance of the others is spread evenly. `ridge` is added
        to every direction: the least variance, in units of each sensor's own, that any direction is given.
        """
        size = windows.rows.shape[1] * windows.length
        windows, rank = windows.mixed(spectrum.basis), kept_rank(rank, size)
        if rank == size:
            return cls.from_moments(Moments.of(windows), spectrum, path, ridge)
        mean = sum(part.sum(dim=0) for part in windows.batches(_CHUNK)) / torch.tensor(float(len(windows)))
        # Drawn in the node domain, so that the estimate does not hang on the choice of eigenbasis (Proposition 1).
        draw = torch.randn(size, min(rank + _SPARE, size), generator=torch.Generator().manual_seed(0))
        start = _over_sensors(spectrum.basis.T, draw.to(torch.float64).view(*mean.shape, -1)).flatten(0, 1)
        variances, directions, total = _principal_directions(windows, mean, start, rank)
        rest = max(total - float(variances.sum()), 0.0) / (size - rank)
        factor = directions * (variances - rest).clamp(min=0).sqrt()
        return cls(mean, factor.view(*mean.shape, rank), rest + ridge, spectrum, path)

    @classmethod
    def from_moments(cls, moments: Moments, spectrum: Spectrum, path: Path, ridge: float = 0.0) -> GaussianField:
        """Keep every direction."""
        modes, mean = len(spectrum.eigenvalues), moments.mean
        factor = _root(moments.products / moments.count - torch.outer(mean, mean))
        return cls(mean.view(modes, -1), factor.view(modes, -1, len(mean)), ridge, spectrum, path)

    def with_more_noise(self, variance: float) -> GaussianField:
        """The same field with `variance` added to every direction."""
        if self._is_dense:
            _ = self._covariance  # it is the same for both: work it out once
        field = copy(self)
        field._buffers = self._buffers | {"noise": self.noise + variance}
        return field

    def loss(self, windows: Windows, t: float) -> float:
        """The mean expected score of windows at one flow time: the flow-matching loss, weighted as the score is."""
        at = self.path.at(torch.tensor(t, dtype=torch.float64))
        if not self._is_dense:
            station = self._low_rank_station(at, at.beta / at.alpha, torch.ones_like(at.alpha))
            mean = self.spectrum.basis.to(torch.float32) @ self.mean
            energy = sum(float(station.residual(part - mean).square().sum()) for part in windows.batches(_CHUNK))
            return energy / len(windows) + float(station.noise_by_sensor.sum())
        # Energies are the same in spectral coordinates, where no operator over sensors has to be formed.
        root, resolvent = at.beta / at.alpha, self._dense_resolvent(at.beta / at.alpha)
        narrow, energy = resolvent.to(torch.float32), 0.0
        for part in windows.mixed(self.spectrum.basis).batches(_CHUNK):
            centred = root[:, None].to(torch.float32) * (part - self.mean)
            energy += float((centred.flatten(1) @ narrow).square().sum())
        rest = len(resolvent) - 2 * resolvent.trace() + resolvent.square().sum()
        return energy / len(windows) + float(rest)

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
        shrunk = deviation - self._resolvent(at).apply(deviation)
        return mean + (at.alpha / at.beta)[:, None] * shrunk

    def station(self, at: PathPoint, weights: str) -> Station:
        """Prepare one flow time of the exact score, with weights "eta" or "uniform"."""
        root = at.beta / at.alpha
        gain = torch.ones_like(root) if weights == "eta" else 1 / at.eta.sqrt()
        return self._dense_station(root, gain) if self._is_dense else self._low_rank_station(at, root, gain)

    def _dense_station(self, root: Float[Tensor, " mode"], gain: Float[Tensor, " mode"]) -> DenseStation:
        basis, (modes, length) = self.spectrum.basis, self.mean.shape
        resolvent = self._dense_resolvent(root).view(modes, length, modes, length)
        matrix = torch.einsum("sk,kalb,nl->nbsa", basis * gain, resolvent, basis * root)
        rest = torch.eye(modes * length, dtype=root.dtype).view_as(resolvent) - resolvent
        by_mode, by_sensor = (
            torch.einsum("ok,kalb->oalb", mixing, rest).square().sum(dim=(1, 2, 3))
            for mixing in (torch.diag(gain), basis * gain)
        )
        parts = (by_sensor, by_mode, matrix.reshape(modes * length, -1))
        return DenseStation(*(part.to(torch.float32).contiguous() for part in parts))

    def _dense_resolvent(self, root: Float[Tensor, " mode"]) -> Float[Tensor, "entry entry"]:
        """J, every entry of it."""
        scale = root.repeat_interleave(self.mean.shape[1])
        inverse = scale[:, None] * self._covariance * scale
        inverse.diagonal().add_(1 + float(self.noise) * scale.square())
        return torch.cholesky_inverse(torch.linalg.cholesky(inverse))

    def _low_rank_station(
        self, at: PathPoint, root: Float[Tensor, " mode"], gain: Float[Tensor, " mode"]
    ) -> LowRankStation:
        basis, resolvent = self.spectrum.basis, self._resolvent(at)
        inward = _over_sensors(basis * root, resolvent.low_rank)
        outward = _over_sensors(basis * gain, resolvent.low_rank)
        by_sensor, by_mode = _noise(basis * gain, resolvent), _noise(torch.diag(gain), resolvent)
        local = (basis * (gain * resolvent.diagonal * root)) @ basis.T
        parts = (by_sensor, by_mode, local, inward.flatten(0, 1), outward.flatten(0, 1).T)
        return LowRankStation(*(part.to(torch.float32).contiguous() for part in parts))

    def window_shares(
        self,
        rows: Float[Tensor, "row sensor"],
        stations: list[Station],
        bands: Int[Tensor, " mode"] | None = None,
        filled: Bool[Tensor, "row sensor"] | None = None,
        batch: int = 32,
    ) -> Iterator[Shares]:
        """The score of every window, exactly averaged over all sources, `batch` windows at a time.

        The weighted residual of a `filled` value counts as zero, as in the sampled score.
        """
        basis = self.spectrum.basis.to(torch.float32)
        mean = basis @ self.mean
        windows = rows.unfold(0, mean.shape[1], 1)
        for start in range(0, len(windows), batch):
            part = slice(start, start + batch)
            hidden = None if filled is None else filled.unfold(0, mean.shape[1], 1)[part]
            centred = windows[part] - mean
            by_sensor = torch.zeros(centred.shape[:2])
            by_band = None if bands is None else torch.zeros(len(centred), len(stations), int(bands.max()) + 1)
            for index, station in enumerate(stations):
                residual = station.residual(centred)
                if hidden is not None:
                    residual = residual.masked_fill(hidden, 0.0)
                by_sensor += residual.square().sum(dim=-1) + station.noise_by_sensor
                if by_band is not None and bands is not None:
                    energy = (basis.T @ residual).square().sum(dim=-1) + station.noise_by_mode
                    by_band[:, index].index_add_(1, bands, energy)
            yield Shares(by_sensor, by_band)

    @property
    def _is_dense(self) -> bool:
        return self.factor.shape[-1] == self.mean.numel()

    @cached_property
    def _covariance(self) -> Float[Tensor, "entry entry"]:
        factor = self.factor.to(torch.float64).flatten(0, 1)
        return factor @ factor.T

    def _resolvent(self, at: PathPoint) -> Resolvent:
        return Resolvent.of((at.beta / at.alpha) ** 2, self.factor.to(torch.float64), float(self.noise))


class Estimator:
    """Closed forms of parts of the same windows; a part that lacks only a few of them costs little more than those."""

    def __init__(self, windows: Windows, spectrum: Spectrum, path: Path, rank: int | None) -> None:
        size = windows.rows.shape[1] * windows.length
        self.windows, self.spectrum, self.path, self.rank = windows, spectrum, path, rank
        dense = kept_rank(rank, size) == size
        self._spectral = windows.mixed(spectrum.basis)
        self._all = Moments.of(self._spectral) if dense else None

    def without(self, left_out: Bool[Tensor, " window"]) -> GaussianField:
        """The field of all windows but some."""
        if self._all is None:
            return GaussianField.of(self.windows.some(~left_out), self.spectrum, self.path, self.rank)
        moments = self._all - Moments.of(self._spectral.some(left_out))
        return GaussianField.from_moments(moments, self.spectrum, self.path)


def kept_rank(rank: int | None, size: int) -> int:
    """How many directions of windows with `size` entries are kept: all of them where that can be afforded.

    >>> kept_rank(None, 1900), kept_rank(None, 25_000), kept_rank(10, 1900)
    (1900, 256, 10)
    """
    if rank is None:
        return size if size <= _FULL else _LEADING
    return min(rank, size)


def _root(covariance: Float[Tensor, "entry entry"]) -> Float[Tensor, "entry entry"]:
    """F with FFᵀ = C, up to the rounding that may have left C with slightly negative variances."""
    lift = 1e-6 * max(float(covariance.diagonal().max()), 1.0)
    while True:
        root, failed = torch.linalg.cholesky_ex(covariance + lift * torch.eye(len(covariance), dtype=torch.float64))
        if not failed:
            return root
        lift *= 10


def _principal_directions(
    windows: Windows, mean: Float[Tensor, "mode length"], start: Float[Tensor, "entry start"], rank: int
) -> tuple[Float[Tensor, " rank"], Float[Tensor, "entry rank"], float]:
    """The `rank` largest variances of the windows, their directions and the total variance (subspace iteration)."""
    found, image, total = start, start, 0.0
    for _ in range(_PASSES + 1):
        found = torch.linalg.qr(image).Q
        narrow = found.to(mean.dtype)
        image, total = torch.zeros_like(found), 0.0
        for part in windows.batches(_CHUNK):
            centred = (part - mean).flatten(1)
            image += centred.T @ (centred @ narrow)
            total += float(centred.square().sum(dtype=torch.float64))
        image /= len(windows)
    variances, turn = torch.linalg.eigh(found.T @ image)
    return variances[-rank:], found @ turn[:, -rank:], total / len(windows)


def _gram(factor: Float[Tensor, "mode length rank"]) -> Float[Tensor, "rank rank"]:
    flat = factor.flatten(0, 1)
    return flat.T @ flat


def _over_sensors(
    mixing: Float[Tensor, "out mode"], factor: Float[Tensor, "mode length rank"]
) -> Float[Tensor, "out length rank"]:
    return torch.einsum("ok,klr->olr", mixing, factor)


def _noise(mixing: Float[Tensor, "out mode"], resolvent: Resolvent) -> Float[Tensor, " out"]:
    """Mean energy of mixing · (I − J) x0, summed over the rows of each output; I − J = diag(1 − d) + U Uᵀ."""
    length = resolvent.low_rank.shape[1]
    rest = 1 - resolvent.diagonal
    mixed = _over_sensors(mixing, resolvent.low_rank)
    cross = (_over_sensors(mixing * rest, resolvent.low_rank) * mixed).sum(dim=(1, 2))
    return (
        length * (mixing * rest).square().sum(dim=1)
        + 2 * cross
        + ((mixed @ _gram(resolvent.low_rank)) * mixed).sum(dim=(1, 2))
    )
