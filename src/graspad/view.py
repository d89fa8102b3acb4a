"""What fit has learnt of windows of one length and pace, and the shares of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
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
from graspad.data.windows import from_averaged, thinned, to_rows
from graspad.velocity.field import Field
from graspad.velocity.gaussian import GaussianField

Starts = Int[Tensor, " chosen"]
ByAlign = dict[Align, Float[ndarray, " seen"]]

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
        starts = torch.arange(self._count(seen))
        shape = (self.settings.scoring.flow_times, len(self.spectrum.eigenvalues))
        parts = ([part.by_sensor] for part in self._raw_shares(seen, starts, None, None))
        (shares,) = _gathered(parts, starts, len(starts), shape)
        return shares

    def calibrated(self, held_out: Sequence[HeldOut]) -> tuple[View, ByAlign]:
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

    def score(self, rows: Rows, align: Align, batch: int | None = None) -> Float[ndarray, " window"]:
        """ξ of the windows that the rows need; NaN where one is not needed or lies in a longer gap."""
        seen = self.lens.rows(rows)
        starts = self._needed(seen, align)
        parts = ([part.score] for part in self._shares(seen, starts, None, batch))
        (score,) = _gathered(parts, starts, self._count(seen), ())
        return score.numpy().astype(np.float64)

    def explain(
        self, rows: Rows, align: Align, band_of_mode: ndarray, batch: int | None
    ) -> tuple[Float[ndarray, "window sensor"], Float[ndarray, "window time band"]]:
        """ξ of the same windows split by sensor, and by flow time and frequency band."""
        seen = self.lens.rows(rows)
        starts = self._needed(seen, align)
        shares = self._shares(seen, starts, torch.from_numpy(band_of_mode), batch)
        parts = ([part.by_sensor.sum(dim=1), part.by_band] for part in shares)
        shapes = (len(band_of_mode),), (self.settings.scoring.flow_times, int(band_of_mode.max()) + 1)
        by_sensor, by_flow_time = _gathered(parts, starts, self._count(seen), *shapes)
        return by_sensor.numpy().astype(np.float64), by_flow_time.numpy().astype(np.float64)

    def latest(self, seen: Rows) -> Float[ndarray, " sensor"] | None:
        """ξ of the window that these rows are, split by sensor; None where they fill none, or lie in a longer gap."""
        if len(seen.values) < self.lens.window or seen.lost.any():
            return None
        if seen.filled is not None and not seen.filled.any():
            seen = replace(seen, filled=None)
        with torch.inference_mode():
            (shares,) = self._shares(seen, torch.zeros(1, dtype=torch.int64), None, None)
            return shares.by_sensor.sum(dim=1)[0].numpy().astype(np.float64)

    def to_rows(self, by_window: Float[ndarray, "window *any"], rows: int, align: Align) -> Float[ndarray, "row *any"]:
        """Values of windows on the rows of the table; NaN where there is none."""
        return self.to_table(to_rows(by_window, self.lens.window, align), rows, align)

    def to_table(self, seen: Float[ndarray, "seen *any"], rows: int, align: Align) -> Float[ndarray, "row *any"]:
        """Values of the rows that are seen on the rows of the table."""
        return from_averaged(seen, self.lens.every, rows, align)

    def _placed(self, shares: Shares) -> Shares:
        """Shares as they are averaged over the windows of a row: with the logarithm no window outweighs all others."""
        return shares.logarithmic() if self.settings.scoring.logarithm else shares

    def _normal_scores(self, held_out: Sequence[HeldOut], scores: Sequence[Float[Tensor, " _"]]) -> ByAlign:
        """Scores of whole windows, placed on the rows of each part, in every alignment."""
        by_align = {}
        for align in get_args(Align):
            by_row = []
            for part, known in zip(held_out, scores, strict=True):
                by_window = np.full(len(part.shares), np.nan)
                by_window[part.rows.whole_windows(self.lens.window)] = known.numpy()
                placed = to_rows(by_window, self.lens.window, align)
                placed[part.rows.lost] = np.nan
                by_row.append(placed)
            by_align[align] = np.concatenate(by_row)
        return by_align

    def _count(self, seen: Rows) -> int:
        return len(seen.values) - self.lens.window + 1

    def _needed(self, seen: Rows, align: Align) -> Starts:
        """The whole windows that make up the scores of the rows."""
        window, stride = self.lens.window, self.settings.scoring.stride if align == "overlap" else 1
        return torch.from_numpy(thinned(seen.whole_windows(window), min(stride, window)))

    def _shares(self, seen: Rows, starts: Starts, band_of_mode: Tensor | None, batch: int | None) -> Iterator[Shares]:
        for shares in self._raw_shares(seen, starts, band_of_mode, batch):
            yield self._placed(shares if self.levels is None else self.levels.apply(shares))

    def _raw_shares(
        self, seen: Rows, starts: Starts, band_of_mode: Tensor | None, batch: int | None
    ) -> Iterator[Shares]:
        if len(starts) == 0:
            return iter(())
        values = torch.from_numpy(seen.values)
        filled = None if seen.filled is None else torch.from_numpy(seen.filled)
        grid, field = self.stations, self.field
        if isinstance(field, GaussianField):
            return field.window_shares(values, grid, band_of_mode, filled, batch or _EXACT_BATCH, starts)
        return window_shares(field, values, grid, band_of_mode, filled, batch or _BATCH, starts)

    @cached_property
    def stations(self) -> list[Any]:
        """The flow times of R_ad, ready for scoring; made once, since the closed form solves a system for each."""
        scoring, field = self.settings.scoring, self.field
        path, times = Path.of(self.spectrum, self.settings.tau), flow_times(scoring.flow_times)
        if isinstance(field, GaussianField):
            return [field.station(path.at(t), scoring.weights) for t in times]
        assert self.sources is not None
        return stations(self.spectrum, path, self.sources, times, scoring.weights)


def _gathered(
    parts: Iterator[list[Any]], starts: Starts, windows: int, *shapes: tuple[int, ...]
) -> list[Float[Tensor, "window *any"]]:
    """The parts of each batch in one large array, in the places of their windows; NaN elsewhere.

    Each batch is copied and let go. To keep thousands of small results among the large passing ones would leave the
    memory full of holes.
    """
    whole, done = [torch.full((windows, *shape), torch.nan) for shape in shapes], 0
    with torch.inference_mode():
        for batch in parts:
            places = starts[done : done + len(batch[0])]
            for array, part in zip(whole, batch, strict=True):
                array[places] = part
            done += len(places)
    return whole
