"""The recipe, and a GNN in its place, with sensor graphs that are learnt in other ways than the paper's.

    PYTHONPATH=benchmarks graspad bench run --data ../shared/data --sets SMAP --every 7 --out results/other_graphs.csv \
        --methods other_graphs:Correlated,other_graphs:Lagged,other_graphs:Partial,other_graphs:Nearest

and the same with `--sets SMD --every 8`, and with `GNN` behind each name. Correlated sensors are linked from 0.5 on;
lagged and partial correlations link as many pairs, the strongest; nearest links each sensor to three others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graspad.bench.grasp import Grasp
from graspad.bench.methods import METHODS
from graspad.config import RECIPE, Settings
from graspad.data.scale import Scale

_LAGS, _NEIGHBOURS = 10, 3


class _Linked(Grasp):
    """The graph comes from the training rows, before the detector sees them."""

    def __init__(self, preset: Settings = RECIPE) -> None:
        super().__init__(preset)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "graph": type(self).__name__}

    def fit(self, train: np.ndarray, seed: int) -> None:
        rows = Scale.of(train).apply(train).astype(np.float64)
        self.graph = self.links(rows)
        super().fit(train, seed)

    def links(self, rows: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Correlated(_Linked):
    """|correlation| of at least 0.5."""

    def links(self, rows: np.ndarray) -> np.ndarray:
        return _correlation(rows, rows) >= 0.5


class Lagged(_Linked):
    """The largest |correlation| with the other sensor up to ten rows before."""

    def links(self, rows: np.ndarray) -> np.ndarray:
        lagged = [_correlation(rows[lag:], rows[: len(rows) - lag]) for lag in range(_LAGS + 1)]
        return _strongest(np.max(lagged, axis=0), rows)


class Partial(_Linked):
    """|correlation| given all other sensors, with a ridge of 0.01."""

    def links(self, rows: np.ndarray) -> np.ndarray:
        precision = np.linalg.inv(np.cov(rows.T) + 0.01 * np.eye(rows.shape[1]))
        spread = np.sqrt(np.diag(precision))
        return _strongest(np.abs(precision / np.outer(spread, spread)), rows)


class Nearest(_Linked):
    """Each sensor and the three with the largest |correlation|; one that never moved has none."""

    def links(self, rows: np.ndarray) -> np.ndarray:
        alike = _correlation(rows, rows)
        np.fill_diagonal(alike, 0)
        nearest = np.argsort(-alike, axis=1)[:, :_NEIGHBOURS]
        linked = np.zeros_like(alike, dtype=bool)
        np.put_along_axis(linked, nearest, np.take_along_axis(alike, nearest, axis=1) > 0, axis=1)
        return linked | linked.T


def _with_gnn(linked: type[_Linked]) -> type[_Linked]:
    return type(f"{linked.__name__}GNN", (linked,), {"__init__": lambda self: _Linked.__init__(self, _GNN)})


_GNN = METHODS["grasp-gnn"]().preset  # type: ignore[attr-defined]
CorrelatedGNN, LaggedGNN, PartialGNN, NearestGNN = map(_with_gnn, (Correlated, Lagged, Partial, Nearest))


def _correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """|correlation| of each pair of sensors, the larger one of both orders; 0 where one never moved."""
    one, other = (part - part.mean(axis=0) for part in (one, other))
    lengths = np.outer(np.linalg.norm(one, axis=0), np.linalg.norm(other, axis=0))
    alike = np.abs(one.T @ other) / np.where(lengths > 0, lengths, np.inf)
    return np.maximum(alike, alike.T)


def _strongest(alike: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """As many pairs as are correlated."""
    upper = np.triu_indices(len(alike), k=1)
    count = int(Correlated().links(rows)[upper].sum())
    linked = np.zeros_like(alike, dtype=bool)
    first, second = (index[np.argsort(-alike[upper])[:count]] for index in upper)
    linked[first, second] = linked[second, first] = True
    return linked
