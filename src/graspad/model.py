"""What fit has learnt, and the scores that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from graspad.config import Settings
from graspad.core.calibrate import Levels, by_others
from graspad.core.graph import Adjacency
from graspad.core.path import Path, flow_times
from graspad.core.score import Shares, stations, window_shares
from graspad.core.spectrum import Spectrum, bands
from graspad.crossfit import HeldOut
from graspad.data.gaps import Rows
from graspad.data.scale import Scale
from graspad.data.windows import to_rows
from graspad.explain import Explanation
from graspad.velocity.field import Field
from graspad.velocity.gaussian import GaussianField

# Windows scored at once: enough for full speed, few enough to stay in the processor's cache.
_BATCH, _EXACT_BATCH = 32, 1024

# Into so many parts held-out windows that lie in one piece are divided, to calibrate on rows the levels do not know.
_PARTS = 5


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

    def rows(self, values: Float[ndarray, "row sensor"]) -> Rows:
        """Values in the user's units, scaled, with short gaps filled."""
        return Rows.of(self.scale.apply(values), self.settings.gap_limit)

    def shares(self, rows: Rows) -> Float[Tensor, "window sensor"]:
        """ξ of each window split by sensor, before any calibration."""
        (shares,) = self._by_window(self._raw_shares(rows, None, None), rows, lambda part: [part.by_sensor])
        return shares

    def calibrated(self, held_out: Sequence[HeldOut]) -> tuple[Model, Float[ndarray, " row"]]:
        """This model with the levels of held-out normal windows, and the scores of their rows.

        Each part of them is scored with the levels of the others; the model itself gets the levels of all.
        """
        whole = [part.whole(self.settings.window) for part in held_out]
        if not self.settings.scoring.calibrate:
            scores = [self._placed(Shares(shares, None)).score for shares in whole]
            return self, self._normal_scores(held_out, scores)
        parts = whole if len(whole) > 1 else whole[0].tensor_split(_PARTS)
        scores = [self._placed(shares).score for shares in by_others([part for part in parts if len(part)])]
        model = replace(self, levels=Levels.of(torch.cat(whole)))
        by_part = torch.split(torch.cat(scores), [len(shares) for shares in whole])
        return model, self._normal_scores(held_out, by_part)

    def _placed(self, shares: Shares) -> Shares:
        """Shares as they are averaged over the windows of a row: with the logarithm no window outweighs all others."""
        return shares.logarithmic() if self.settings.scoring.logarithm else shares

    def _normal_scores(
        self, held_out: Sequence[HeldOut], scores: Sequence[Float[Tensor, " _"]]
    ) -> Float[ndarray, " row"]:
        """Scores of whole windows, placed on the rows of each part."""
        by_row = []
        for part, known in zip(held_out, scores, strict=True):
            by_window = torch.full((len(part.shares),), torch.nan)
            by_window[torch.from_numpy(part.rows.whole_windows(self.settings.window))] = known
            by_row.append(self._to_rows(by_window, part.rows))
        return np.concatenate(by_row)

    def score(self, rows: Rows, batch: int | None = None) -> Float[ndarray, " row"]:
        """ξ of each row; NaN where it has no full window."""
        return self._to_rows(self._window_scores(rows, batch), rows)

    def window_scores(self, rows: Rows) -> Float[ndarray, " window"]:
        """ξ of each window; NaN where it lies in a longer gap."""
        return self._whole(self._window_scores(rows, None), rows)

    def _window_scores(self, rows: Rows, batch: int | None) -> Float[Tensor, " window"]:
        (score,) = self._by_window(self._shares(rows, None, batch), rows, lambda part: [part.score])
        return score

    def explain(self, rows: Rows, batch: int | None = None, n_bands: int = 8) -> Explanation:
        """ξ of each row with its exact shares."""
        frequencies = self.spectrum.eigenvalues.numpy()
        band_of_mode = bands(self.spectrum.eigenvalues, n_bands)
        parts = self._shares(rows, torch.from_numpy(band_of_mode), batch)
        shares = self._by_window(parts, rows, lambda part: [part.by_sensor, part.by_band])
        by_sensor, by_flow_time = (self._to_rows(part, rows) for part in shares)
        modes = [frequencies[band_of_mode == band] for band in range(band_of_mode.max() + 1)]
        return Explanation(
            score=by_sensor.sum(axis=1),
            by_sensor=by_sensor,
            by_flow_time=by_flow_time,
            sensors=self.sensors,
            bands=tuple((float(mode.min()), float(mode.max())) for mode in modes),
            flow_times=tuple(self._flow_times.tolist()),
        )

    def _shares(self, rows: Rows, band_of_mode: Tensor | None, batch: int | None) -> Iterator[Shares]:
        for shares in self._raw_shares(rows, band_of_mode, batch):
            yield self._placed(shares if self.levels is None else self.levels.apply(shares))

    def _raw_shares(self, rows: Rows, band_of_mode: Tensor | None, batch: int | None) -> Iterator[Shares]:
        values = torch.from_numpy(rows.values)
        filled = None if rows.filled is None else torch.from_numpy(rows.filled)
        grid, field = self._stations, self.field
        if isinstance(field, GaussianField):
            return field.window_shares(values, grid, band_of_mode, filled, batch or _EXACT_BATCH)
        return window_shares(field, values, grid, band_of_mode, filled, batch or _BATCH)

    @cached_property
    def _stations(self) -> list[Any]:
        """The flow times of R_ad, ready for scoring; made once, since the closed form solves a system for each."""
        path, weights, field = Path.of(self.spectrum, self.settings.tau), self.settings.scoring.weights, self.field
        if isinstance(field, GaussianField):
            return [field.station(path.at(t), weights) for t in self._flow_times]
        return stations(self.spectrum, path, self.sources, self._flow_times, weights)

    @property
    def _flow_times(self) -> Float[Tensor, " time"]:
        return flow_times(self.settings.scoring.flow_times)

    def _by_window(
        self, parts: Iterator[Shares], rows: Rows, pick: Callable[[Shares], list[Any]]
    ) -> list[Float[Tensor, "window *any"]]:
        """What `pick` takes from each batch, for all windows.

        Each batch is copied into one large array and let go. To keep thousands of small results among the large passing
        ones would leave the memory full of holes.
        """
        count, start = len(rows.values) - self.settings.window + 1, 0
        kept: list[Tensor] = []
        with torch.inference_mode():
            for shares in parts:
                picked = pick(shares)
                kept = kept or [torch.empty(count, *part.shape[1:]) for part in picked]
                for whole, part in zip(kept, picked, strict=True):
                    whole[start : start + len(part)] = part
                start += len(picked[0])
        return kept

    def _to_rows(self, values: Float[Tensor, "window *any"], rows: Rows) -> Float[ndarray, "row *any"]:
        by_row = to_rows(self._whole(values, rows), self.settings.window, self.settings.align)
        by_row[rows.lost] = np.nan
        return by_row

    def _whole(self, values: Float[Tensor, "window *any"], rows: Rows) -> Float[ndarray, "window *any"]:
        by_window = values.numpy().astype(np.float64)
        by_window[~rows.whole_windows(self.settings.window)] = np.nan
        return by_window
