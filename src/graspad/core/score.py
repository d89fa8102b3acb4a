"""The anomaly score ξ of Equation (anomaly_score), split exactly by sensor, flow time and frequency band."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from graspad.core.path import Path
from graspad.core.spectrum import Spectrum

Velocity = Callable[[Float[Tensor, "batch sensor row"], Float[Tensor, " batch"]], Float[Tensor, "batch sensor row"]]


@dataclass(frozen=True)
class Station:
    """One flow time of R_ad with everything that does not depend on the data, as node-domain operators.

    xt = ΨBΨᵀ x1 + ΨAΨᵀ x0 and its derivative. The operators act on single rows of the table, so the data part is
    computed once per row, not once per window.
    """

    t: float
    data_to_state: Float[Tensor, "sensor sensor"]
    data_to_target: Float[Tensor, "sensor sensor"]
    source_states: Float[Tensor, "source sensor row"]
    source_targets: Float[Tensor, "source sensor row"]
    weighted_filter: Float[Tensor, "sensor sensor"]  # Ψ diag(√η) Ψᵀ
    to_modes: Float[Tensor, "mode sensor"]  # Ψᵀ


@dataclass(frozen=True)
class Shares:
    """ξ of some windows, split in two ways; both sum to the same score at every flow time."""

    by_sensor: Float[Tensor, "window time sensor"]
    by_band: Float[Tensor, "window time band"] | None

    @property
    def score(self) -> Float[Tensor, " window"]:
        """ξ itself."""
        return self.by_sensor.sum(dim=(1, 2))

    def scaled_to(self, by_sensor: Float[Tensor, "window time sensor"]) -> Shares:
        """New shares by sensor, and those by band in their old proportions at each flow time."""
        if self.by_band is None:
            return Shares(by_sensor, None)
        old, new = (part.sum(dim=2, keepdim=True) for part in (self.by_sensor, by_sensor))
        return Shares(by_sensor, self.by_band * torch.where(old > 0, new / old, 0.0))

    def logarithmic(self) -> Shares:
        """The same shares in proportion, scaled to add up to log(1 + ξ).

        >>> Shares(torch.tensor([[[1.0, 3.0]]]), None).logarithmic().by_sensor
        tensor([[[0.4024, 1.2071]]])
        """
        return self.scaled_to(self.by_sensor * (self.score.log1p() / self.score)[:, None, None])


def draw_sources(count: int, n_sensors: int, window: int, seed: int) -> Float[Tensor, "source sensor row"]:
    """X_ad: standard normal source samples, drawn once and stored with the model.

    They are kept in the node domain: drawn in spectral coordinates they would turn with the eigenbasis, and with it
    the score (Proposition 1).
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, n_sensors, window, generator=generator, dtype=torch.float32)


def stations(
    spectrum: Spectrum,
    path: Path,
    sources: Float[Tensor, "source sensor row"],
    flow_times: Float[Tensor, " time"],
    weights: str = "eta",
) -> list[Station]:
    """Prepare every flow time for scoring; `weights` is "eta" or, for GRASP-mean, "uniform"."""
    made = []
    for t in flow_times:
        at = path.at(t)
        root = at.eta.sqrt() if weights == "eta" else torch.ones_like(path.omega)
        source = sources.to(torch.float64)
        made.append(
            Station(
                t=float(t),
                data_to_state=spectrum.filter(at.beta).to(torch.float32),
                data_to_target=spectrum.filter(at.d_beta).to(torch.float32),
                source_states=(spectrum.filter(at.alpha) @ source).to(torch.float32),
                source_targets=(spectrum.filter(at.d_alpha) @ source).to(torch.float32),
                weighted_filter=spectrum.filter(root).to(torch.float32),
                to_modes=spectrum.basis.T.to(torch.float32),
            )
        )
    return made


def window_shares(
    velocity: Velocity,
    rows: Float[Tensor, "row sensor"],
    stations: list[Station],
    bands: Int[Tensor, " mode"] | None = None,
    filled: Bool[Tensor, "row sensor"] | None = None,
    batch: int = 32,
    starts: Int[Tensor, " chosen"] | None = None,
) -> Iterator[Shares]:
    """Score the windows of a table, or those with these `starts`; splits by band only if `bands` is given.

    Windows are strided views of the filtered rows: memory does not grow with the table. The weighted residual
    of a `filled` value counts as zero.
    """
    window = stations[0].source_states.shape[-1]
    for chosen in torch.split(torch.arange(len(rows) - window + 1) if starts is None else starts, batch):
        part = slice(int(chosen[0]), int(chosen[-1]) + window)
        part_filled = None if filled is None else filled[part]
        yield _shares(velocity, rows[part], stations, bands, part_filled, chosen - chosen[0])


def _shares(
    velocity: Velocity,
    rows: Float[Tensor, "row sensor"],
    stations: list[Station],
    bands: Int[Tensor, " mode"] | None,
    filled: Bool[Tensor, "row sensor"] | None,
    starts: Int[Tensor, " window"],
) -> Shares:
    _, n_sensors, window = stations[0].source_states.shape
    n_windows = len(starts)
    by_sensor = torch.zeros(n_windows, len(stations), n_sensors)
    by_band = None if bands is None else torch.zeros(n_windows, len(stations), int(bands.max()) + 1)
    for index, station in enumerate(stations):
        data_states = _windows(rows @ station.data_to_state, window, starts)
        data_targets = _windows(rows @ station.data_to_target, window, starts)
        t = torch.full((n_windows,), station.t)
        for source_state, source_target in zip(station.source_states, station.source_targets, strict=True):
            residual = velocity(data_states + source_state, t) - data_targets - source_target
            weighted = station.weighted_filter @ residual
            if filled is not None:
                weighted = weighted.masked_fill(_windows(filled, window, starts), 0.0)
            by_sensor[:, index] += weighted.square().sum(dim=-1)
            if by_band is not None and bands is not None:
                by_band[:, index].index_add_(1, bands, (station.to_modes @ weighted).square().sum(dim=-1))
    return Shares(by_sensor, by_band)


def _windows(
    rows: Shaped[Tensor, "row sensor"], window: int, starts: Int[Tensor, " window"]
) -> Shaped[Tensor, "window sensor length"]:
    views = rows.unfold(0, window, 1)
    return views if len(starts) == len(views) else views[starts]
