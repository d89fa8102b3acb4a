"""GraspDetector: fit on normal sensor data, then score, predict and explain new data. Start reading here."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from sklearn.base import BaseEstimator

from graspad import store
from graspad.alarms.incidents import Rules
from graspad.alarms.rate import Allowed, seconds
from graspad.alarms.threshold import Threshold
from graspad.config import PRESETS, Align, Look, Settings
from graspad.core import graph as graphs
from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.crossfit import HeldOut, cross_fit
from graspad.data.gaps import Rows
from graspad.data.scale import Scale
from graspad.data.table import Periods, Table
from graspad.errors import InputError, InvalidSettingError, NotFittedError
from graspad.explain import Explanation
from graspad.model import Model, together
from graspad.progress import training_bar
from graspad.train import TrainingReport, train
from graspad.velocity.estimate import Estimator
from graspad.velocity.field import Field, build
from graspad.velocity.hybrid import RANK, RIDGE, HybridField
from graspad.view import ByAlign, Lens, View


class GraspDetector(BaseEstimator):  # type: ignore[misc]
    """Flow matching along a graph-spectral path for anomalies in multivariate time series.

    Parameters
    ----------
    preset : "recipe" (our defaults), "paper" (the paper's budget: hours on two cores) or a `graspad.Settings`.
    false_alarms : share of normal rows that may raise an alarm, such as 0.001, or how many incidents may come without
        cause, such as "1/week" or "3/day".
    interval : time from row to row, in seconds or such as "1min"; None takes it from the timestamps of the data.
    window, tau, align, field : replace that value of the preset. R, the rows of a window; τ, the weight of the graph
        in the path, 0 for the linear path; "overlap" (a row's score is the mean over the windows that cover it) or
        "causal" (the window that ends there, as in a stream); "gaussian" (the closed form), a network, "tsmixer",
        "gnn" or "transformer", or "hybrid-" and the name of a network (the closed form and a network for the rest).
    graph : None to learn it from the data, "random" for as many edges at random places, an adjacency matrix, or
        pairs of sensor names.
    seed : the same seed, data and machine give the same model.
    progress : show a progress bar; None shows it on a terminal only.

    Examples
    --------
    >>> from graspad.config import RECIPE
    >>> rng = np.random.default_rng(0)
    >>> normal = np.sin(np.arange(400) / 7)[:, None] + 0.1 * rng.standard_normal((400, 3))
    >>> quick = RECIPE.override(window=16, training={"budget": 20, "unit": "steps"})
    >>> detector = GraspDetector(quick, false_alarms=0.02).fit(normal)
    >>> detector.score(normal).dtype.names
    ('score', 'p_value', 'alarm', 'reason')
    """

    def __init__(
        self,
        preset: str | Settings = "recipe",
        *,
        false_alarms: float | str = 0.001,
        interval: float | str | None = None,
        window: int | None = None,
        tau: float | None = None,
        align: str | None = None,
        field: str | None = None,
        graph: object = None,
        seed: int = 0,
        progress: bool | None = None,
    ) -> None:
        self.preset = preset
        self.false_alarms = false_alarms
        self.interval = interval
        self.window = window
        self.tau = tau
        self.align = align
        self.field = field
        self.graph = graph
        self.seed = seed
        self.progress = progress

    def fit(self, normal: object, y: object = None) -> GraspDetector:
        """Learn the velocity field of normal rows and calibrate the threshold on rows held out from it.

        A network or hybrid learns from the first 80 % of the rows (in time); the rest validates and calibrates. The
        closed form alone is fitted five times without a fifth of the rows, which calibrates, and then with all of them.
        `y` is ignored; it is there for scikit-learn's pipelines.
        """
        settings = self._settings()
        table = Table.of(normal)
        allowed = Allowed.wished(self.false_alarms, self._interval(table))
        cut = _check_rows(table, settings)
        known = slice(None if settings.velocity.kind == "gaussian" else cut)
        scale = Scale.of(table.values[known])
        rows = Rows.of(scale.apply(table.values), settings.gap_limit)
        learning = rows.part(known)
        adjacency = self._adjacency(learning.values[~learning.lost], table.sensors, settings)
        spectrum = Spectrum.of(adjacency)
        self.training_report_: TrainingReport | None = None
        if settings.velocity.kind == "gaussian":
            normal, fitted = rows, _closed_forms(rows, spectrum, settings)
        else:
            normal = rows.part(slice(cut, None))
            field = self._network(learning, normal, adjacency, spectrum, settings)
            sources = draw_sources(settings.scoring.sources, len(table.sensors), settings.window, self.seed)
            view = View(Lens(1, settings.window, 1.0), settings, spectrum, field, sources)
            fitted = [view.calibrated([HeldOut(normal, view.shares(normal))])]
        views = tuple(view for view, _ in fitted)
        self.model_ = Model(settings, table.sensors, scale, adjacency, spectrum, views)
        self.thresholds_ = {}
        for align in get_args(Align):
            placed = [view.to_table(scores[align], len(normal.values), align) for view, scores in fitted]
            self.thresholds_[align] = Threshold(together(views, placed), allowed, merge=settings.window)
        self.threshold_.warn_if_too_rare()
        return self

    def recalibrate(self, normal: object) -> GraspDetector:
        """Set the threshold anew by other normal rows, on which the detector was not fitted; nothing else changes.

        For a plant that has aged a little, or for a detector that is to be moved to a sister machine.
        """
        table = Table.of(normal)
        scores = self.scores_by_alignment(table)
        count = int((~np.isnan(scores[self._model.settings.align])).sum())
        if count < 2 * self._model.settings.window:
            raise InputError(
                f"{count} of the {len(table.values)} rows have a score, but {2 * self._model.settings.window} are "
                "needed to set a threshold. Give more normal rows."
            )
        old = self.threshold_
        self.thresholds_ = {align: Threshold(scores[align], old.allowed, old.merge) for align in scores}
        self.threshold_.warn_if_too_rare()
        return self

    @property
    def threshold_(self) -> Threshold:
        """The threshold of the scores in the detector's own alignment; a stream takes the causal one."""
        return self.thresholds_[self._model.settings.align]

    def _network(
        self, learning: Rows, held_out: Rows, adjacency: graphs.Adjacency, spectrum: Spectrum, settings: Settings
    ) -> Field:
        window, last = settings.window, 100 * settings.training.validation_share
        windows = _whole_windows(learning, window, f"first {100 - last:g} % of the data")
        held_out_windows = _whole_windows(held_out, window, f"last {last:g} % of the data")
        velocity, path = settings.velocity, Path.of(spectrum, settings.tau)
        field = build(velocity, learning.values.shape[1], window, adjacency, self.seed)
        if velocity.hybrid:
            closed_form = Estimator(windows, spectrum, path, velocity.rank or RANK).all()
            noisy = closed_form.with_more_noise(velocity.ridge or RIDGE)
            field = HybridField(noisy, field, flow_times(settings.scoring.flow_times))
        with training_bar(self.progress) as on_progress:
            self.training_report_ = train(
                field, windows, held_out_windows, spectrum, path, settings.training, self.seed, on_progress
            )
        return field

    def decision_function(self, data: object) -> Float[ndarray, " row"]:
        """The bare score of each row, higher = more anomalous; NaN where a row has no full window."""
        return self._scores(self._rows(Table.of(data)))

    def scores_by_alignment(
        self, data: object, aligns: Sequence[Align] = ("overlap", "causal")
    ) -> dict[Align, Float[ndarray, " row"]]:
        """The bare scores of each row in some alignments, by default in all."""
        return dict(zip(aligns, self._model.score(self._rows(Table.of(data)), aligns), strict=True))

    def score(self, data: object, maintenance: Periods = ()) -> Any:
        """Score, p-value and alarm of each row, as a table of the type, index and time column that came in.

        `reason` says why a row has no score, "warm-up" (fewer rows before it than a window needs), "gap" (its windows
        lie in a longer gap) or "maintenance", or why it raises no alarm, "filled" (most of its values were missing and
        filled forward). `maintenance` lists periods that are left out, each with its first and last time, or with its
        first and last row where there are no times: no window that holds a row of one is scored.
        """
        table = Table.of(data)
        rows = self._rows(table, maintenance)
        scores = self._scores(rows)
        reasons = _reasons(scores, rows, self._model.settings)
        reasons[table.within(maintenance)] = "maintenance"
        return table.give_back(
            {
                "score": scores,
                "p_value": self.threshold_.p_values(scores),
                "alarm": self._alarms(scores, rows),
                "reason": reasons,
            }
        )

    def predict(self, data: object) -> ndarray:
        """1 for rows over the threshold, 0 for the others."""
        rows = self._rows(Table.of(data))
        return self._alarms(self._scores(rows), rows).astype(np.int64)

    def explain(self, data: object, maintenance: Periods = (), rules: Rules | None = None) -> Explanation:
        """Exact shares of each row's score by sensor, flow time and frequency band, and the incidents they make up."""
        table = Table.of(data)
        rows = self._rows(table, maintenance)
        explanation, settings = self._model.explain(rows), self._model.settings
        alarms = self._alarms(explanation.score, rows)
        reach = settings.window - 1 if settings.align == "causal" else 0
        clock = table.timestamps
        means = self._model.means
        return explanation.with_incidents(rows, alarms, self.threshold_, clock, rules or Rules(), reach, means)

    def expected(self, data: object) -> Any:
        """What each row would be if it were normal, as a table of the type, index and columns that came in.

        In the units of the data, to be laid beside it; empty where a row lies in a longer gap.
        """
        table = Table.of(data)
        return table.give_back_values(self._model.expected(self._rows(table)), self._model.sensors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to one file; an older file there is replaced only once the new one is complete."""
        store.save(store.Saved(self._model, self.thresholds_, self.training_report_, self.get_params()), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraspDetector:
        """The detector that `save` wrote; on the same machine it scores as before, bit for bit."""
        saved = store.load(path, cls().get_params())
        detector = cls(**saved.parameters)
        detector.model_, detector.thresholds_, detector.training_report_ = saved.model, saved.thresholds, saved.report
        return detector

    @property
    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("This GraspDetector is not fitted yet. Call fit(normal) with normal rows first.")
        return self.model_

    def _rows(self, table: Table, maintenance: Periods = ()) -> Rows:
        if len(table.values) == 0:  # no column can be told for a clock then
            raise InputError(f"There are no rows. Give at least {self._model.settings.window}.")
        table.check_time()
        values = table.in_order(self._model.sensors)
        check_finite(values, self._model.sensors)
        window = self._model.settings.window
        if len(values) < window:
            raise InputError(
                f"There are {len(values)} rows, but a window has {window}. "
                f"Give at least {window} rows, or fit with a smaller `window`."
            )
        rows = self._model.rows(values)
        return replace(rows, lost=rows.lost | table.within(maintenance)) if maintenance else rows

    def _scores(self, rows: Rows) -> Float[ndarray, " row"]:
        (scores,) = self._model.score(rows, [self._model.settings.align])
        return scores

    def _alarms(self, scores: Float[ndarray, " row"], rows: Rows) -> Bool[ndarray, " row"]:
        """Rows over the threshold; filled values have no part in a score, and a row made up mostly of them no alarm."""
        return self.threshold_.alarms(scores) & ~rows.mostly_filled

    def _settings(self) -> Settings:
        if not isinstance(self.preset, Settings) and self.preset not in PRESETS:
            raise InvalidSettingError.of("preset", f"be one of {list(PRESETS)} or a graspad.Settings", self.preset)
        preset = self.preset if isinstance(self.preset, Settings) else PRESETS[self.preset]
        velocity = None if self.field is None else dict(preset.velocity) | {"kind": self.field}
        return preset.override(window=self.window, tau=self.tau, align=self.align, velocity=velocity)

    def _interval(self, table: Table) -> float | None:
        """Seconds from row to row: as given, or the usual step of the timestamps, or not known."""
        return table.interval if self.interval is None else seconds(self.interval)

    def _adjacency(
        self, scaled: Float[ndarray, "row sensor"], sensors: tuple[str, ...], settings: Settings
    ) -> graphs.Adjacency:
        if self.graph is not None and not isinstance(self.graph, str):
            return graphs.from_user(self.graph, sensors)
        learnt = graphs.from_data(scaled.astype(np.float64), settings.edge_threshold)
        if self.graph is None:
            return learnt
        if self.graph == "random":
            return graphs.erdos_renyi(len(sensors), graphs.count_edges(learnt), self.seed)
        raise InvalidSettingError.of("graph", "be None, 'random', a matrix or pairs of sensor names", self.graph)


def _closed_forms(rows: Rows, spectrum: Spectrum, settings: Settings) -> list[tuple[View, ByAlign]]:
    """A calibrated view of the windows, and one for each further look that finds enough of them; with normal scores."""
    looks = (Look(), *settings.scoring.looks)
    lenses = [Lens(look.every, max(2, round(look.length * settings.window)), look.weight) for look in looks]
    first = _closed_form(rows, lenses[0], spectrum, settings)
    blocks = 1 / settings.training.validation_share
    further = []
    for lens in lenses[1:]:
        means = rows.averaged(lens.every)
        if len(means.values) >= blocks * lens.window and means.whole_windows(lens.window).any():
            with suppress(InputError):  # gaps may leave some windows, but too few
                further.append(_closed_form(rows, lens, spectrum, settings))
    return [first, *further]


def _closed_form(rows: Rows, lens: Lens, spectrum: Spectrum, settings: Settings) -> tuple[View, ByAlign]:
    lens = lens.fitted(rows)
    seen, velocity = lens.rows(rows), settings.velocity
    windows = _whole_windows(seen, lens.window, "data")
    field, held_out = cross_fit(
        seen,
        windows,
        blocks=round(1 / settings.training.validation_share),
        ridge=velocity.ridge,
        estimator=Estimator(windows, spectrum, Path.of(spectrum, settings.tau), velocity.rank),
        score=lambda field, part: View(lens, settings, spectrum, field).shares(part),
    )
    view, scores = View(lens, settings, spectrum, field).calibrated(held_out)
    _ = view.stations  # part of fit, so that the first row is scored as fast as all others
    return view, scores


# Beyond this, not even float64 can square and add up.
_HUGE = 1e100


def _check_rows(table: Table, settings: Settings) -> int:
    """Check the training rows and say where the held-out part begins."""
    if not table.sensors:
        raise InputError("The data has no sensor columns. Give one numeric column per sensor.")
    table.check_time()
    check_finite(table.values, table.sensors)
    share = settings.training.validation_share
    cut = round(len(table.values) * (1 - share))
    if min(cut, len(table.values) - cut) < settings.window:
        needed = math.ceil(settings.window / min(share, 1 - share)) + 1
        raise InputError(
            f"There are {len(table.values)} rows, but {needed} are needed: parts of {share:.0%} are held out and must "
            f"fill a window of {settings.window} rows. Give more rows, or a smaller `window`."
        )
    empty = np.flatnonzero(np.isnan(table.values[:cut]).all(axis=0))
    if len(empty):
        raise InputError(
            f"The sensor {table.sensors[empty[0]]!r} has no value in the first {cut} rows, from which the detector "
            "learns. Drop it, or give rows in which it was measured."
        )
    return cut


def check_finite(values: Float[ndarray, "row sensor"], sensors: tuple[str, ...]) -> None:
    """Refuse values that no score can be made of, missing ones apart."""
    bad = np.abs(values) > _HUGE
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"The sensor {sensors[column]!r} is {values[row, column]} in row {row} ({bad.sum()} infinite values in "
            "all). Leave such values empty: short gaps are filled, longer ones get no score."
        )


def _whole_windows(rows: Rows, window: int, part: str) -> Windows:
    starts = np.flatnonzero(rows.whole_windows(window))
    if len(starts) == 0:
        raise InputError(
            f"No {window} rows in a row are without a longer gap in the {part}. "
            "Fill the gaps, drop the sensor with the most of them, or use a smaller `window`."
        )
    return Windows(torch.from_numpy(rows.values), window, torch.from_numpy(starts))


def _reasons(scores: Float[ndarray, " row"], rows: Rows, settings: Settings) -> ndarray:
    reasons = np.full(len(scores), None, dtype=object)
    reasons[rows.mostly_filled] = "filled"
    unknown = np.isnan(scores)
    reasons[unknown] = "gap"
    if settings.align == "causal":
        warm_up = slice(settings.window - 1)
        reasons[warm_up][unknown[warm_up]] = "warm-up"
    return reasons
