"""What fit has learnt, and the scores that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from graspad.config import Settings
from graspad.core.calibrate import Levels
from graspad.core.graph import Adjacency
from graspad.core.path import Path, flow_times
from graspad.core.score import Shares, stations, window_shares
from graspad.core.spectrum import Spectrum, bands
from graspad.data.scale import Scale
from graspad.data.windows import to_rows
from graspad.explain import Explanation
from graspad.velocity.field import Field
from graspad.velocity.gaussian import GaussianField

# Windows scored at once: enough for full speed, few enough to stay in the processor's cache.
_BATCH = 32


@dataclass(frozen=True)
class Model:
    """Everything a score depends on; scoring never changes it."""

    settings: Settings
    sensors: tuple[str, ...]
    scale: Scale
    adjacency: Adjacency
    spectrum: Spectrum
    sources: Float[Tensor, "source sensor row"]
    field: Field
    levels: Levels | None = None

    def calibrated(self, held_out: Float[ndarray, "row sensor"], batch: int = _BATCH) -> Model:
        """This model with shares measured against the levels they have on held-out normal rows."""
        rows = torch.from_numpy(self.scale.apply(held_out))
        with torch.inference_mode():
            return replace(self, levels=Levels.of(self._raw_shares(rows, None, batch)))

    def score(self, values: Float[ndarray, "row sensor"], batch: int = _BATCH) -> Float[ndarray, " row"]:
        """ξ of each row; NaN where it has no full window."""
        parts = [shares.score.numpy() for shares in self._shares(values, None, batch)]
        return self._rows(parts)

    def explain(self, values: Float[ndarray, "row sensor"], batch: int = _BATCH) -> Explanation:
        """ξ of each row with its exact shares."""
        frequencies = self.spectrum.eigenvalues.numpy()
        band_of_mode = bands(self.spectrum.eigenvalues)
        parts = list(self._shares(values, torch.from_numpy(band_of_mode), batch))
        by_sensor = self._rows([shares.by_sensor.numpy() for shares in parts])
        by_flow_time = self._rows([shares.by_band.numpy() for shares in parts if shares.by_band is not None])
        modes = [frequencies[band_of_mode == band] for band in range(band_of_mode.max() + 1)]
        return Explanation(
            score=by_sensor.sum(axis=1),
            by_sensor=by_sensor,
            by_flow_time=by_flow_time,
            sensors=self.sensors,
            bands=tuple((float(mode.min()), float(mode.max())) for mode in modes),
            flow_times=tuple(flow_times(self.settings.scoring.flow_times).tolist()),
        )

    def _shares(
        self, values: Float[ndarray, "row sensor"], band_of_mode: Tensor | None, batch: int
    ) -> Iterator[Shares]:
        rows = torch.from_numpy(self.scale.apply(values))
        with torch.inference_mode():
            for shares in self._raw_shares(rows, band_of_mode, batch):
                yield shares if self.levels is None else self.levels.apply(shares)

    def _raw_shares(
        self, rows: Float[Tensor, "row sensor"], band_of_mode: Tensor | None, batch: int
    ) -> Iterator[Shares]:
        scoring = self.settings.scoring
        times = flow_times(scoring.flow_times)
        path = Path.of(self.spectrum, self.settings.tau)
        if isinstance(self.field, GaussianField):
            exact = [self.field.station(path.at(t), scoring.weights) for t in times]
            return self.field.window_shares(rows, exact, band_of_mode, batch)
        sampled = stations(self.spectrum, path, self.sources, times, scoring.weights)
        return window_shares(self.field, rows, sampled, band_of_mode, batch)

    def _rows(self, parts: list[ndarray]) -> Float[ndarray, "row *any"]:
        return to_rows(np.concatenate(parts), self.settings.window, self.settings.align)
