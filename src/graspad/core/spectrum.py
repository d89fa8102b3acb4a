"""The graph Fourier transform: eigenvalues λ and basis Ψ of the Laplacian (paper, Preliminaries)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from graspad.core.graph import Adjacency, laplacian

# Two eigenvalues closer than this belong to one eigenspace; eigh is good to about 1e-14 here.
_SAME_EIGENVALUE = 1e-9


@dataclass(frozen=True)
class Spectrum:
    """L = Ψ diag(λ) Ψᵀ with λ ascending in [0, 2]; kept in float64."""

    eigenvalues: Float[Tensor, " mode"]
    basis: Float[Tensor, "sensor mode"]

    @classmethod
    def of(cls, adjacency: Adjacency) -> Spectrum:
        """Decompose the Laplacian of a graph."""
        eigenvalues, basis = np.linalg.eigh(laplacian(adjacency))
        return cls(torch.from_numpy(eigenvalues.clip(0.0, 2.0)), torch.from_numpy(basis))

    def filter(self, gains: Float[Tensor, "*batch mode"]) -> Float[Tensor, "*batch sensor sensor"]:
        """The node-domain operator Ψ diag(gains) Ψᵀ; it does not depend on the choice of eigenbasis (Proposition 1)."""
        return (self.basis * gains[..., None, :]) @ self.basis.T


def bands(eigenvalues: Float[Tensor, " mode"], count: int = 8) -> Int[ndarray, " mode"]:
    """The frequency band of each mode: `count` quantiles of the spectrum, whole eigenspaces only.

    A band that cut through a repeated eigenvalue would change with the choice of eigenbasis, so an eigenspace goes
    undivided to the quantile of its middle mode. Bands are numbered from 0 without gaps; fewer than `count` may remain.

    >>> bands(torch.tensor([0.0, 0.0, 0.0, 0.5, 1.0, 1.0]), count=3)
    array([0, 0, 0, 1, 2, 2])
    """
    lam = eigenvalues.numpy()
    eigenspace = np.concatenate([[0], np.cumsum(np.diff(lam) > _SAME_EIGENVALUE)])
    rank = np.arange(len(lam)) + 0.5
    middle = np.bincount(eigenspace, weights=rank) / np.bincount(eigenspace)
    quantile = np.floor(middle * count / len(lam)).astype(np.int64)
    return np.unique(quantile[eigenspace], return_inverse=True)[1]
