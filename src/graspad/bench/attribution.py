"""Where the signal of anomalous rows lies: flow time × frequency quantile, the paper's attribution heat maps."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.bench import figures
from graspad.bench.datasets import Series, SeriesData
from graspad.config import PAPER, RECIPE, Settings

if TYPE_CHECKING:
    from graspad.model import Model

# The paper's ten flow times and its plain sum, on the closed form; neighbouring windows say nearly the same.
_SETTINGS = RECIPE.override(scoring=dict(PAPER.scoring) | {"stride": RECIPE.scoring.stride})
# The field does not depend on the flow times at which it is asked; its normal scores, which nobody asks for here, do.
_FITTED = _SETTINGS.override(scoring=dict(_SETTINGS.scoring) | {"flow_times": 1})
_WEIGHTS: tuple[Literal["uniform", "eta"], ...] = ("uniform", "eta")


def write(series: Sequence[Series], out: Path) -> list[Path]:
    """Heat maps of one set as CSV and figure. Each series counts alike: its shares are normalised before the mean."""
    maps = np.mean([attribution(one.load()) for one in series], axis=0)
    name = series[0].set
    out.mkdir(parents=True, exist_ok=True)
    table, picture = out / f"attribution_{name}.csv", out / f"attribution_{name}.png"
    flow_times = _flow_times()
    with table.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["weights", "flow_time", *(f"quantile_{n + 1}" for n in range(maps.shape[2])), "series"])
        for weights, shares in zip(_WEIGHTS, maps, strict=True):
            for t, row in zip(flow_times, shares, strict=True):
                lines.writerow([weights, f"{t:.4f}", *(f"{100 * share:.3f}" for share in row), len(series)])
    figures.save(figures.attribution_heatmaps(maps[0], maps[1], flow_times, f"{name}, {len(series)} series"), picture)
    return [table, picture]


def attribution(data: SeriesData) -> Float[ndarray, "weights time quantile"]:
    """Shares of the squared velocity residuals of the anomalous rows, unweighted and weighted, each summing to 1."""
    from graspad.detector import GraspDetector

    with warnings.catch_warnings(record=True):
        model = GraspDetector(_FITTED).fit(data.train).model_
    maps = np.stack([_shares(model, _weighted(weights), data) for weights in _WEIGHTS])
    return maps / maps.sum(axis=(1, 2), keepdims=True)


def _shares(model: Model, settings: Settings, data: SeriesData) -> Float[ndarray, "time quantile"]:
    eigenvalues = model.spectrum.eigenvalues.numpy()
    model = replace(model, settings=settings, views=tuple(replace(view, settings=settings) for view in model.views))
    explained = model.explain(model.rows(data.test), n_bands=len(eigenvalues))
    by_band = np.nansum(explained.by_flow_time[data.labels], axis=0)
    # One band for each eigenspace: its share stands at its first mode, and is evened out from there.
    by_mode = np.zeros((len(by_band), len(eigenvalues)))
    by_mode[:, [int(np.argmin(np.abs(eigenvalues - low))) for low, _ in explained.bands]] = by_band
    return figures.band_shares_to_quantiles(eigenvalues, by_mode)


def _weighted(weights: Literal["uniform", "eta"]) -> Settings:
    return _SETTINGS.override(scoring=dict(_SETTINGS.scoring) | {"weights": weights})


def _flow_times() -> list[float]:
    from graspad.core.path import flow_times

    return flow_times(_SETTINGS.scoring.flow_times).tolist()
