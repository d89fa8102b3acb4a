"""What fit has learnt of windows of one length and pace, and the shares of their scores."""

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

from graspad.config import Align, Settings
from graspad.core.calibrate import Levels, by_others
from graspad.core.path import Path, flow_times
from graspad.core.score import Shares, stations, window_shares
from graspad.core.spectrum import Spectrum
from graspad.crossfit import HeldOut
from graspad.data.gaps import Rows
from graspad.data.scale import Scale
from graspad.data.windows import from_averaged, to_rows
from graspad.velocity.field import Field
from graspad.velocity.gaussian import GaussianField

# Windows scored at once: enough for full speed, few enough to stay in the processor's cache.
_BATCH, _EXACT_BATCH = 32, 1024

# Into so many parts held-out windows that lie in one piece are divided, to calibrate on rows the levels do not know.
_PARTS = 5


@dataclass(frozen=True)
class Lens:
    """How a view looks at the scaled rows of a table: windows of `window` rows, each the mean of `every` of them.

    Means vary less than rows; `scale` brings them back to unit spread.
    """

    every: int
    window: int
    weight: float
    scale: Scale | None = None

    def fitted(self, rows: Rows) -> Lens:
        """This lens with the scale of the means of normal rows."""
        if self.every == 1:
            return self
        means = rows.averaged(self.every)
        return replace(self, scale=Scale.of(means.values[~means.lost].astype(np.float64)))

    def rows(self, rows: Rows) -> Rows:
        """What is seen of the rows."""
        if self.scale is None:
            return rows
        means = rows.averaged(self.every)
        return replace(means, values=self.scale.apply(means.values))


@dataclass(frozen=True)
class View:
    """The field of the windows that a lens shows, and their levels in normal operation."""

    lens: Lens
    settings: Settings
    spectrum: Spectrum
    field: Field
    sources: Float[Tensor, "source sensor row"] | None = None
    levels: Levels | None = None

    def shares(self, seen: Rows) -> Float[Tensor, "window time sensor"]:
        """ξ of each window split by flow time and sensor, before any calibration."""
        (shares,) = self._by_window(self._raw_shares(seen, None, None), seen, lambda part: [part.by_sensor])
        return shares

    def calibrated(self, held_out: Sequence[HeldOut]) -> tuple[View, Float[ndarray, " seen"]]:
        """This view with the levels of held-out normal windows, and the scores of the rows that were seen of them.

        Each part of them is scored with the levels of the others; the view itself gets the levels of all.
        """
        whole = [part.whole(self.lens.window) for part in held_out]
        if not self.settings.scoring.calibrate:
            scores = [self._placed(Shares(shares, None)).score for shares in whole]
            return self, self._normal_scores(held_out, scores)
        parts = whole if len(whole) > 1 else whole[0].tensor_split(_PARTS)
        scores = [self._placed(shares).score for shares in by_others([part for part in parts if len(part)])]
        view = replace(self, levels=Levels.of(torch.cat(whole)))
        by_part = torch.split(torch.cat(scores), [len(shares) for shares in whole])
        return view, self._normal_scores(held_out, by_part)

    def score(self, rows: Rows, batch: int | None = None) -> Float[ndarray, " window"]:
        """ξ of each window; NaN where it lies in a longer gap."""
        seen = self.lens.rows(rows)
        (score,) = self._by_window(self._shares(seen, None, batch), seen, lambda part: [part.score])
        return self._whole(score, seen)

    def explain(
        self, rows: Rows, band_of_mode: ndarray, batch: int | None
    ) -> tuple[Float[ndarray, "window sensor"], Float[ndarray, "window time band"]]:
        """ξ of each window split by sensor, and by flow time and frequency band."""
        seen = self.lens.rows(rows)
        parts = self._shares(seen, torch.from_numpy(band_of_mode), batch)
        shares = self._by_window(parts, seen, lambda part: [part.by_sensor.sum(dim=1), part.by_band])
        by_sensor, by_flow_time = (self._whole(part, seen) for part in shares)
        return by_sensor, by_flow_time

    def to_rows(self, by_window: Float[ndarray, "window *any"], rows: int, align: Align) -> Float[ndarray, "row *any"]:
        """Values of windows on the rows of the table; NaN where there is none."""
        return self.to_table(to_rows(by_window, self.lens.window, align), rows, align)

    def to_table(self, seen: Float[ndarray, "seen *any"], rows: int, align: Align) -> Float[ndarray, "row *any"]:
        """Values of the rows that are seen on the rows of the table."""
        return from_averaged(seen, self.lens.every, rows, align)

    def _placed(self, shares: Shares) -> Shares:
        """Shares as they are averaged over the windows of a row: with the logarithm no window outweighs all others."""
        return shares.logarithmic() if self.settings.scoring.logarithm else shares

    def _normal_scores(
        self, held_out: Sequence[HeldOut], scores: Sequence[Float[Tensor, " _"]]
    ) -> Float[ndarray, " seen"]:
        """Scores of whole windows, placed on the rows of each part."""
        by_row = []
        for part, known in zip(held_out, scores, strict=True):
            by_window = np.full(len(part.shares), np.nan)
            by_window[part.rows.whole_windows(self.lens.window)] = known.numpy()
            placed = to_rows(by_window, self.lens.window, self.settings.align)
            placed[part.rows.lost] = np.nan
            by_row.append(placed)
        return np.concatenate(by_row)

    def _shares(self, seen: Rows, band_of_mode: Tensor | None, batch: int | None) -> Iterator[Shares]:
        for shares in self._raw_shares(seen, band_of_mode, batch):
            yield self._placed(shares if self.levels is None else self.levels.apply(shares))

    def _raw_shares(self, seen: Rows, band_of_mode: Tensor | None, batch: int | None) -> Iterator[Shares]:
        values = torch.from_numpy(seen.values)
        filled = None if seen.filled is None else torch.from_numpy(seen.filled)
        grid, field = self.stations, self.field
        if isinstance(field, GaussianField):
            return field.window_shares(values, grid, band_of_mode, filled, batch or _EXACT_BATCH)
        return window_shares(field, values, grid, band_of_mode, filled, batch or _BATCH)

    @cached_property
    def stations(self) -> list[Any]:
        """The flow times of R_ad, ready for scoring; made once, since the closed form solves a system for each."""
        scoring, field = self.settings.scoring, self.field
        path, times = Path.of(self.spectrum, self.settings.tau), flow_times(scoring.flow_times)
        if isinstance(field, GaussianField):
            return [field.station(path.at(t), scoring.weights) for t in times]
        assert self.sources is not None
        return stations(self.spectrum, path, self.sources, times, scoring.weights)

    def _by_window(
        self, parts: Iterator[Shares], seen: Rows, pick: Callable[[Shares], list[Any]]
    ) -> list[Float[Tensor, "window *any"]]:
        """What `pick` takes from each batch, for all windows.

        Each batch is copied into one large array and let go. To keep thousands of small results among the large passing
        ones would leave the memory full of holes.
        """
        count, start = len(seen.values) - self.lens.window + 1, 0
        kept: list[Tensor] = []
        with torch.inference_mode():
            for shares in parts:
                picked = pick(shares)
                kept = kept or [torch.empty(count, *part.shape[1:]) for part in picked]
                for whole, part in zip(kept, picked, strict=True):
                    whole[start : start + len(part)] = part
                start += len(picked[0])
        return kept

    def _whole(self, values: Float[Tensor, "window *any"], seen: Rows) -> Float[ndarray, "window *any"]:
        by_window = values.numpy().astype(np.float64)
        by_window[~seen.whole_windows(self.lens.window)] = np.nan
        return by_window
