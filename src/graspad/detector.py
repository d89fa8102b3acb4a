"""GraspDetector: fit on normal sensor data, then score, predict and explain new data. Start reading here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from sklearn.base import BaseEstimator

from graspad.alarms.threshold import Threshold
from graspad.config import PRESETS, Settings
from graspad.core import graph as graphs
from graspad.core.path import Path
from graspad.core.score import draw_sources
from graspad.core.spectrum import Spectrum
from graspad.data.scale import Scale
from graspad.data.table import Table
from graspad.errors import InputError, InvalidSettingError, NotFittedError
from graspad.explain import Explanation
from graspad.model import Model
from graspad.progress import training_bar
from graspad.train import train
from graspad.velocity.field import build


class GraspDetector(BaseEstimator):  # type: ignore[misc]
    """Flow matching along a graph-spectral path for anomalies in multivariate time series.

    Parameters
    ----------
    preset : "recipe" (our defaults), "paper" (the paper's budget: hours on two cores) or a `graspad.Settings`.
    false_alarms : share of normal rows that may raise an alarm.
    window, tau, align, field : replace that value of the preset. R, the rows of a window; τ, the weight of the graph
        in the path, 0 for the linear path; "overlap" (a row's score is the mean over the windows that cover it) or
        "causal" (the window that ends there, as in a stream); "tsmixer", "gnn" or "transformer".
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
        false_alarms: float = 0.01,
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
        self.window = window
        self.tau = tau
        self.align = align
        self.field = field
        self.graph = graph
        self.seed = seed
        self.progress = progress

    def fit(self, normal: object, y: object = None) -> GraspDetector:
        """Learn the velocity field of normal rows and calibrate the threshold on the part held out for it.

        The first 80 % of the rows (in time) give scale, graph and training windows, the rest validates and calibrates.
        `y` is ignored; it is there for scikit-learn's pipelines.
        """
        settings = self._settings()
        table = Table.of(normal)
        cut = _check_rows(table, settings)
        scale = Scale.of(table.values[:cut])
        scaled = scale.apply(table.values)
        adjacency = self._adjacency(scaled[:cut], table.sensors, settings)
        spectrum = Spectrum.of(adjacency)
        field = build(settings.network, len(table.sensors), settings.window, adjacency, self.seed)
        with training_bar(self.progress) as on_progress:
            self.training_report_ = train(
                field,
                torch.from_numpy(scaled[:cut]),
                torch.from_numpy(scaled[cut:]),
                spectrum,
                Path.of(spectrum, settings.tau),
                settings.training,
                settings.window,
                self.seed,
                on_progress,
            )
        sources = draw_sources(settings.scoring.sources, len(table.sensors), settings.window, self.seed)
        self.model_ = Model(settings, table.sensors, scale, adjacency, spectrum, sources, field)
        self.threshold_ = Threshold.of(self.model_.score(table.values[cut:]), self.false_alarms)
        return self

    def decision_function(self, data: object) -> Float[ndarray, " row"]:
        """The bare score of each row, higher = more anomalous; NaN where a row has no full window."""
        return self._model.score(self._values(Table.of(data)))

    def score(self, data: object) -> Any:
        """Score, p-value and alarm of each row, as a table of the type, index and time column that came in.

        A row without a score says why in `reason`: "warm-up" means that fewer rows lie before it than a window needs.
        """
        table = Table.of(data)
        scores = self._model.score(self._values(table))
        return table.give_back(
            {
                "score": scores,
                "p_value": self.threshold_.p_values(scores),
                "alarm": self.threshold_.alarms(scores),
                "reason": np.array([None, "warm-up"], dtype=object)[np.isnan(scores).astype(int)],
            }
        )

    def predict(self, data: object) -> ndarray:
        """1 for rows over the threshold, 0 for the others."""
        return self.threshold_.alarms(self.decision_function(data)).astype(np.int64)

    def explain(self, data: object) -> Explanation:
        """Exact shares of each row's score by sensor, flow time and frequency band."""
        return self._model.explain(self._values(Table.of(data)))

    @property
    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("This GraspDetector is not fitted yet. Call fit(normal) with normal rows first.")
        return self.model_

    def _values(self, table: Table) -> Float[ndarray, "row sensor"]:
        values = table.in_order(self._model.sensors)
        _check_finite(values, self._model.sensors)
        _check_length(len(values), self._model.settings.window)
        return values

    def _settings(self) -> Settings:
        _check_false_alarms(self.false_alarms)
        if not isinstance(self.preset, Settings) and self.preset not in PRESETS:
            raise InvalidSettingError.of("preset", f"be one of {list(PRESETS)} or a graspad.Settings", self.preset)
        preset = self.preset if isinstance(self.preset, Settings) else PRESETS[self.preset]
        network = None if self.field is None else dict(preset.network) | {"kind": self.field}
        return preset.override(window=self.window, tau=self.tau, align=self.align, network=network)

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


def _check_false_alarms(rate: object) -> None:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
        raise InvalidSettingError.of("false_alarms", "be a share of the rows in the range (0, 1), such as 0.01", rate)


def _check_rows(table: Table, settings: Settings) -> int:
    """Check the training rows and say where the held-out part begins."""
    if not table.sensors:
        raise InputError("The data has no sensor columns. Give one numeric column per sensor.")
    _check_finite(table.values, table.sensors)
    share = settings.training.validation_share
    cut = round(len(table.values) * (1 - share))
    if min(cut, len(table.values) - cut) < settings.window:
        needed = math.ceil(settings.window / min(share, 1 - share)) + 1
        raise InputError(
            f"There are {len(table.values)} rows, but {needed} are needed: the last {share:.0%} are held out and must "
            f"fill a window of {settings.window} rows. Give more rows, or a smaller `window`."
        )
    return cut


def _check_length(rows: int, window: int) -> None:
    if rows < window:
        raise InputError(
            f"There are {rows} rows, but a window has {window}. "
            f"Give at least {window} rows, or fit with a smaller `window`."
        )


def _check_finite(values: Float[ndarray, "row sensor"], sensors: tuple[str, ...]) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"The sensor {sensors[column]!r} is {values[row, column]} in row {row} ({bad.sum()} such values in all). "
            "Fill or drop missing and infinite values first."
        )
