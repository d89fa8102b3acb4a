"""What fit has learnt, and the scores that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.lasting import WindowMeans
from graspad.config import Align, Settings
from graspad.core.graph import Adjacency
from graspad.core.path import flow_times
from graspad.core.spectrum import Spectrum, bands
from graspad.data.gaps import Rows
from graspad.data.scale import Scale
from graspad.expected import Expectation
from graspad.explain import Explanation
from graspad.velocity.gaussian import GaussianField
from graspad.velocity.hybrid import HybridField
from graspad.view import View

ByWindow = Float[ndarray, "_ *any"]


@dataclass(frozen=True)
class Model:
    """Everything a score depends on; scoring never changes it. The first view is that of the windows themselves."""

    settings: Settings
    sensors: tuple[str, ...]
    scale: Scale
    adjacency: Adjacency
    spectrum: Spectrum
    views: tuple[View, ...]

    def rows(self, values: Float[ndarray, "row sensor"]) -> Rows:
        """Values in the user's units, scaled, with short gaps filled."""
        return Rows.of(self.scale.apply(values), self.settings.gap_limit)

    def score(self, rows: Rows, aligns: Sequence[Align], batch: int | None = None) -> list[Float[ndarray, " row"]]:
        """ξ of each row, once for each alignment; NaN where it has no full window."""
        views = self._seeing(rows)
        return [
            self._on_rows(views, [view.score(rows, align, batch) for view in views], rows, align) for align in aligns
        ]

    def explain(self, rows: Rows, batch: int | None = None, n_bands: int = 8) -> Explanation:
        """ξ of each row with its exact shares."""
        frequencies = self.spectrum.eigenvalues.numpy()
        band_of_mode = bands(self.spectrum.eigenvalues, n_bands)
        views = self._seeing(rows)
        align = self.settings.align
        split = zip(*(view.explain(rows, align, band_of_mode, batch) for view in views), strict=True)
        by_sensor, by_flow_time = (self._on_rows(views, part, rows, align) for part in split)
        modes = [frequencies[band_of_mode == band] for band in range(band_of_mode.max() + 1)]
        return Explanation(
            score=by_sensor.sum(axis=1),
            by_sensor=by_sensor,
            by_flow_time=by_flow_time,
            sensors=self.sensors,
            bands=tuple((float(mode.min()), float(mode.max())) for mode in modes),
            flow_times=tuple(flow_times(self.settings.scoring.flow_times).tolist()),
        )

    def expected(self, rows: Rows, wanted: Bool[ndarray, " row"] | None = None) -> Float[ndarray, "row sensor"]:
        """What the field takes the rows to be if they are normal, in the user's units.

        NaN where a row has no whole window; if only some rows are `wanted`, others cost nothing and are NaN too.
        """
        return self.scale.undo(self._expectation.of_rows(rows, wanted))

    @cached_property
    def means(self) -> WindowMeans | None:
        """How the means of normal windows vary, by the closed form; a network alone does not know."""
        field = self.views[0].field
        closed_form = field.closed_form if isinstance(field, HybridField) else field
        if not isinstance(closed_form, GaussianField):
            return None
        return WindowMeans.of(self.settings.window, *(part.numpy() for part in closed_form.window_means()))

    @cached_property
    def _expectation(self) -> Expectation:
        return Expectation.of(self.views[0])

    def _seeing(self, rows: Rows) -> list[View]:
        """The views that find a window in so few rows."""
        return [view for view in self.views if len(rows.values) // view.lens.every >= view.lens.window]

    def _on_rows(
        self, views: Sequence[View], by_view: Sequence[ByWindow], rows: Rows, align: Align
    ) -> Float[ndarray, "row *any"]:
        placed = [
            view.to_rows(by_window, len(rows.values), align) for view, by_window in zip(views, by_view, strict=True)
        ]
        by_row = together(views, placed)
        by_row[rows.lost] = np.nan
        return by_row


def together(views: Sequence[View], by_view: Sequence[Float[ndarray, "row *any"]]) -> Float[ndarray, "row *any"]:
    """The weighted mean over the views that know a row; NaN where none does.

    Views of longer windows need more rows before they can say anything: until then the others stand for them.
    """
    if len(by_view) == 1:
        return by_view[0]
    total, weight = np.zeros_like(by_view[0]), np.zeros_like(by_view[0])
    for view, values in zip(views, by_view, strict=True):
        known = ~np.isnan(values)
        total[known] += view.lens.weight * values[known]
        weight[known] += view.lens.weight
    with np.errstate(invalid="ignore"):
        return total / weight
