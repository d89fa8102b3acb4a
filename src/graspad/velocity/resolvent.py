"""The resolvent J = (I + Λ^½ C Λ^½)⁻¹ of the closed form at one flow time, with every entry or at low rank.

Vectors are windows in spectral coordinates, flattened (mode, row) to D = N·R entries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Spectral = Float[Tensor, "batch mode length"]
Centred = Float[Tensor, "batch sensor row"]

# Smaller entries change no score, but as subnormal numbers they, or their products, slow a processor thirtyfold.
_NOTHING = 1e-16


@dataclass(frozen=True)
class Station(ABC):
    """One flow time of the exact score, in the node domain: x1 − m goes in, its weighted residual comes out.

    `noise_*` is the part of the score that the source adds on average, which no window can change.
    """

    noise_by_sensor: Float[Tensor, " sensor"]
    noise_by_mode: Float[Tensor, " mode"]

    @abstractmethod
    def residual(self, centred: Centred) -> Centred:
        """The weighted residual of windows from which the mean was taken, apart from the source's part."""


class Resolvent(ABC):
    """J, and what the score makes of it."""

    @abstractmethod
    def apply(self, x: Spectral) -> Spectral:
        """J x for each state of the batch."""

    @abstractmethod
    def rest_energy(self) -> float:
        """‖I − J‖²_F: the part of the score that the source adds on average."""

    @abstractmethod
    def station(
        self, basis: Float[Tensor, "sensor mode"], root: Float[Tensor, " mode"], gain: Float[Tensor, " mode"]
    ) -> Station:
        """Ψ diag(gain) J diag(root) Ψᵀ as a map of windows, root = β/α and gain the root of the weights over η."""


@dataclass(frozen=True)
class DenseStation(Station):
    """One matrix for all of it: cheaper than two thin ones as soon as the rank exceeds half the entries."""

    matrix: Float[Tensor, "entry entry"]

    def residual(self, centred: Centred) -> Centred:
        """One product."""
        return (centred.flatten(1) @ self.matrix).view_as(centred)


@dataclass(frozen=True)
class DenseResolvent(Resolvent):
    """Every entry of J."""

    matrix: Float[Tensor, "entry entry"]

    @classmethod
    def of(
        cls, precision: Float[Tensor, " mode"], covariance: Float[Tensor, "entry entry"], noise: float
    ) -> DenseResolvent:
        """(I + Λ^½ (C + s²I) Λ^½)⁻¹ for Λ = diag(precision)."""
        scale = precision.sqrt().repeat_interleave(len(covariance) // len(precision))
        inverse = scale[:, None] * covariance * scale
        inverse.diagonal().add_(1 + noise * scale.square())
        return cls(torch.cholesky_inverse(torch.linalg.cholesky(inverse)))

    def apply(self, x: Spectral) -> Spectral:
        """One product."""
        return (x.flatten(1) @ self.matrix).view_as(x)

    def rest_energy(self) -> float:
        """‖I‖² − 2 tr J + ‖J‖²."""
        return float(len(self.matrix) - 2 * self.matrix.trace() + self.matrix.square().sum())

    def station(
        self, basis: Float[Tensor, "sensor mode"], root: Float[Tensor, " mode"], gain: Float[Tensor, " mode"]
    ) -> DenseStation:
        """Operators over sensors are absorbed from both sides."""
        modes, size = len(root), len(self.matrix)
        left = basis * gain
        resolvent = self.matrix.T  # symmetric, and the inverse comes column by column
        rest = torch.eye(size, dtype=root.dtype) - resolvent
        gram = rest.reshape(modes, -1) @ rest.reshape(modes, -1).T
        mixed = (left @ resolvent.reshape(modes, -1)).view(size, modes, -1)
        matrix = ((basis * root) @ mixed).view(size, size)
        parts = (((left @ gram) * left).sum(dim=1), gain**2 * gram.diagonal(), matrix.T)
        return DenseStation(*map(_single, parts))


@dataclass(frozen=True)
class LowRankStation(Station):
    """`local` (a filter over sensors) minus `inward` then `outward` (rank r)."""

    local: Float[Tensor, "sensor sensor"]
    inward: Float[Tensor, "entry rank"]
    outward: Float[Tensor, "rank entry"]

    def residual(self, centred: Centred) -> Centred:
        """Two thin products."""
        local = (self.local @ centred).flatten(1)
        return torch.addmm(local, centred.flatten(1) @ self.inward, self.outward, alpha=-1).view_as(centred)


@dataclass(frozen=True)
class LowRankResolvent(Resolvent):
    """J = diag(d) − U Uᵀ, by Woodbury's identity an r × r solve; d is the same for all rows of a mode."""

    diagonal: Float[Tensor, " mode"]
    low_rank: Float[Tensor, "mode length rank"]

    @classmethod
    def of(
        cls, precision: Float[Tensor, " mode"], factor: Float[Tensor, "mode length rank"], noise: float
    ) -> LowRankResolvent:
        """(I + Λ^½ (FFᵀ + s²I) Λ^½)⁻¹ for Λ = diag(precision)."""
        d = 1 / (1 + noise * precision)
        scaled = precision.sqrt()[:, None, None] * factor
        inner = torch.eye(factor.shape[-1], dtype=factor.dtype) + _gram(d.sqrt()[:, None, None] * scaled)
        root = torch.linalg.cholesky(inner)
        right = (d[:, None, None] * scaled).flatten(0, 1)
        low_rank = torch.linalg.solve_triangular(root.T, right, upper=True, left=False)
        return cls(d, low_rank.view_as(factor))

    def apply(self, x: Spectral) -> Spectral:
        """Two thin products."""
        u = self.low_rank.flatten(0, 1)
        return x * self.diagonal[:, None] - ((x.flatten(1) @ u) @ u.T).view_as(x)

    def rest_energy(self) -> float:
        """By mode, and added."""
        return float(self._rest(torch.eye(len(self.diagonal), dtype=self.diagonal.dtype)).sum())

    def station(
        self, basis: Float[Tensor, "sensor mode"], root: Float[Tensor, " mode"], gain: Float[Tensor, " mode"]
    ) -> LowRankStation:
        """Operators over sensors are absorbed into the factors."""
        inward, outward = (over_sensors(basis * side, self.low_rank).flatten(0, 1) for side in (root, gain))
        local = (basis * (gain * self.diagonal * root)) @ basis.T
        parts = (self._rest(basis * gain), self._rest(torch.diag(gain)), local, inward, outward.T)
        return LowRankStation(*map(_single, parts))

    def _rest(self, mixing: Float[Tensor, "out mode"]) -> Float[Tensor, " out"]:
        """Mean energy of mixing · (I − J) x0, summed over the rows of each output; I − J = diag(1 − d) + U Uᵀ."""
        length, rest = self.low_rank.shape[1], 1 - self.diagonal
        mixed = over_sensors(mixing, self.low_rank)
        cross = (over_sensors(mixing * rest, self.low_rank) * mixed).sum(dim=(1, 2))
        both = ((mixed @ _gram(self.low_rank)) * mixed).sum(dim=(1, 2))
        return length * (mixing * rest).square().sum(dim=1) + 2 * cross + both


def over_sensors(
    mixing: Float[Tensor, "out mode"], factor: Float[Tensor, "mode length rank"]
) -> Float[Tensor, "out length rank"]:
    """An operator over sensors, or their modes, on each column of a factor."""
    return torch.einsum("ok,klr->olr", mixing, factor)


def _gram(factor: Float[Tensor, "mode length rank"]) -> Float[Tensor, "rank rank"]:
    flat = factor.flatten(0, 1)
    return flat.T @ flat


def _single(part: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """In the precision of scores."""
    return torch.where(part.abs() > _NOTHING, part, 0).to(torch.float32).contiguous()
