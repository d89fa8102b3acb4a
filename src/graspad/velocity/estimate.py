"""Mean and covariance of normal windows, for the closed-form field."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.velocity.gaussian import GaussianField, kept_rank
from graspad.velocity.resolvent import over_sensors

# Windows handled at once.
_CHUNK = 1024
# Subspace iteration: spare directions and passes over the data that make the leading ones accurate.
_SPARE, _PASSES = 16, 4


class Estimator:
    """Closed forms of all windows or of parts of them; at full rank a part costs only the windows that it lacks."""

    def __init__(self, windows: Windows, spectrum: Spectrum, path: Path, rank: int | None) -> None:
        size = windows.rows.shape[1] * windows.length
        self.spectrum, self.path, self.rank = spectrum, path, kept_rank(rank, size)
        self.windows = windows.mixed(spectrum.basis)
        self._moments = Moments.of(self.windows) if self.rank == size else None

    def all(self) -> GaussianField:
        """The field of all windows."""
        if self._moments is None:
            return self._low_rank(self.windows)
        return self._dense(self._moments)

    def without(self, left_out: Bool[Tensor, " window"]) -> GaussianField:
        """The field of all windows but some."""
        if self._moments is None:
            return self._low_rank(self.windows.some(~left_out))
        return self._dense(self._moments - Moments.of(self.windows.some(left_out)))

    def _dense(self, moments: Moments) -> GaussianField:
        shape, mean = (len(self.spectrum.eigenvalues), self.windows.length), moments.total / moments.count
        factor = _root(moments.products / moments.count - torch.outer(mean, mean))
        return GaussianField(mean.view(shape), factor.view(*shape, -1), 0.0, self.spectrum, self.path)

    def _low_rank(self, windows: Windows) -> GaussianField:
        """The largest principal directions are kept; the variance of the others is spread evenly."""
        shape = (len(self.spectrum.eigenvalues), windows.length)
        size, rank = shape[0] * shape[1], self.rank
        mean = torch.zeros(shape)
        for part in windows.batches(_CHUNK):
            mean += part.sum(dim=0) / len(windows)
        # Drawn in the node domain, so that the estimate does not hang on the choice of eigenbasis (Proposition 1).
        draw = torch.randn(size, min(rank + _SPARE, size), generator=torch.Generator().manual_seed(0))
        start = over_sensors(self.spectrum.basis.T, draw.to(torch.float64).view(*shape, -1)).flatten(0, 1)
        variances, directions, total = _principal_directions(windows, mean, start, rank)
        rest = max(total - float(variances.sum()), 0.0) / (size - rank)
        factor = directions * (variances - rest).clamp(min=0).sqrt()
        return GaussianField(mean, factor.view(*shape, rank), rest, self.spectrum, self.path)


@dataclass(frozen=True)
class Moments:
    """Sums over windows that give their mean and covariance. Windows can be taken away again."""

    count: int
    total: Float[Tensor, " entry"]
    products: Float[Tensor, "entry entry"]

    @classmethod
    def of(cls, windows: Windows) -> Moments:
        """Neighbouring windows share all but one row, so that long runs of them cost no more than their rows do."""
        runs = torch.tensor_split(windows.starts, torch.nonzero(windows.starts.diff() != 1)[:, 0] + 1)
        short = [run for run in runs if len(run) < windows.length]
        moments = cls._one_by_one(replace(windows, starts=torch.cat([windows.starts[:0], *short])))
        rows = windows.rows.to(torch.float64)
        for run in runs:
            if len(run) >= windows.length:
                moments += cls._sliding(rows[run[0] : run[-1] + windows.length], windows.length)
        return moments

    @classmethod
    def _one_by_one(cls, windows: Windows) -> Moments:
        """Of any windows. Products in float32, for speed, their sum in float64."""
        size = windows.rows.shape[1] * windows.length
        total, products = torch.zeros(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
        for part in windows.batches(_CHUNK):
            flat = part.flatten(1)
            total += flat.sum(dim=0)
            products += flat.T @ flat
        return cls(len(windows), total, products)

    @classmethod
    def _sliding(cls, rows: Float[Tensor, "row channel"], length: int) -> Moments:
        """Of all windows of these rows.

        The products of row i with row i + lag of each window are those of row i − 1 with row i − 1 + lag, without the
        first window's and with those of the window that would come next.
        """
        count, channels = len(rows) - length + 1, rows.shape[1]
        total = torch.stack([rows[i : i + count].sum(dim=0) for i in range(length)], dim=1)
        products = rows.new_empty(channels, length, channels, length)
        by_lag = torch.stack([rows[:count].T @ rows[lag : lag + count] for lag in range(length)], dim=2)
        for i in range(length):
            if i > 0:
                gone, come = (rows[at : at + length - i].T for at in (i - 1, i - 1 + count))
                by_lag = by_lag[..., :-1] + come[:, :1, None] * come - gone[:, :1, None] * gone
            products[:, i, :, i:] = by_lag
        later = torch.ones(length, length, dtype=torch.bool).triu().repeat(channels, channels)
        products = products.view(later.shape)
        return cls(count, total.flatten(), torch.where(later, products, products.T))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.products + other.products)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.count - other.count, self.total - other.total, self.products - other.products)


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
    """The `rank` largest variances of the windows, their directions and the total variance (subspace iteration).

    The covariance is never formed: memory stays at N·R·rank.
    """
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
