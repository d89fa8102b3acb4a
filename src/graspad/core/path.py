"""The graph-spectral path (Theorem 1), its residual scale ρ (Lemma 1) and the score weight η.

With κ(x) = (1 − e^{−2x})/(2x), so that sinh x = x·eˣ·κ(x) and κ(0) = 1, every coefficient is a product of bounded
factors: nothing overflows for large ω and ω = 0 needs no special case.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from graspad.core.spectrum import Spectrum

Coefficient = Float[Tensor, "*times mode"]

# Below this |y| the Taylor series of expm1(y)/y, cut after _TERMS terms, is exact to float64.
_SERIES_BELOW = 0.05
_TERMS = 11


@dataclass(frozen=True)
class PathPoint:
    """The path's coefficients at some flow times, one column per graph-frequency mode."""

    alpha: Coefficient  # on the source
    beta: Coefficient  # on the data
    d_alpha: Coefficient
    d_beta: Coefficient
    rho: Coefficient  # velocity residual = ρ · endpoint residual
    log_eta: Coefficient

    @property
    def eta(self) -> Coefficient:
        """η = sinh²(ωt)/ω²; it saturates at the largest number of its type where e^{2ωt} is larger than that."""
        return self.log_eta.exp().clamp(max=torch.finfo(self.log_eta.dtype).max)


@dataclass(frozen=True)
class Path:
    """α_k(t) x̂0 + β_k(t) x̂1 with one ω_k = √(τ λ_k) per mode; ω = 0 is the linear path."""

    omega: Float[Tensor, " mode"]

    @classmethod
    def of(cls, spectrum: Spectrum, tau: float) -> Path:
        """The path of a graph at Dirichlet weight τ.

        >>> Path(torch.zeros(1)).at(torch.tensor(0.25)).beta
        tensor([0.2500])
        """
        return cls((tau * spectrum.eigenvalues).sqrt())

    def at(self, t: Float[Tensor, "*times"]) -> PathPoint:
        """Coefficients at flow times t in (0, 1); the path itself also at 0 and 1."""
        t = t[..., None]
        s = 1 - t
        omega = self.omega
        done, left, whole = _kappa(omega * t), _kappa(omega * s), _kappa(omega)
        fade, rise = torch.exp(-omega * t), torch.exp(-omega * s)
        return PathPoint(
            alpha=s * fade * left / whole,
            beta=t * rise * done / whole,
            d_alpha=-fade * (1 + torch.exp(-2 * omega * s)) / (2 * whole),
            d_beta=rise * (1 + torch.exp(-2 * omega * t)) / (2 * whole),
            rho=rise / (s * left),
            log_eta=2 * (torch.log(t * done) + omega * t),
        )


def flow_times(count: int) -> Float[Tensor, " time"]:
    """R_ad: `count` equally spaced midpoints of (0, 1), the midpoint rule for an integral over flow time.

    >>> flow_times(4)
    tensor([0.1250, 0.3750, 0.6250, 0.8750], dtype=torch.float64)
    """
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def _kappa(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """κ(x) = expm1(−2x)/(−2x), by its series near 0 so that derivatives are right there too."""
    y = -2 * x
    near = y.abs() < _SERIES_BELOW
    series = torch.ones_like(y)
    for n in range(_TERMS, 1, -1):
        series = 1 + series * y / n
    # The untaken branch must stay finite: autograd multiplies it by zero.
    safe = torch.where(near, torch.ones_like(y), y)
    return torch.where(near, series, torch.expm1(safe) / safe)
