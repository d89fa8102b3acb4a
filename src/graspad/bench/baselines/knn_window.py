"""Distance to the nearest training windows: memory without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.neighbors import NearestNeighbors

from graspad.bench.method import Method, RowScores, Values
from graspad.data.scale import Scale
from graspad.data.windows import causal, overlap

# Windows compared at once; all of a long series laid out side by side would not fit the memory.
_PART = 2048


class KNNWindow(Method):
    """Mean distance of a window to its nearest z-scored training windows.

    A long training series is thinned evenly to at most `memory` windows; neighbours overlap in all but a few rows.
    """

    seeded = False

    def __init__(self, window: int = 50, neighbours: int = 5, memory: int = 10_000) -> None:
        self.window, self.neighbours, self.memory = window, neighbours, memory

    @property
    def settings(self) -> dict[str, Any]:
        """Rows of a window, how many neighbours, how many training windows are kept."""
        return {"window": self.window, "neighbours": self.neighbours, "memory": self.memory}

    def fit(self, train: Values, seed: int) -> None:
        """Keep the training windows."""
        self._scale = Scale.of(train)
        windows = self._windows(train)
        kept = np.linspace(0, len(windows) - 1, min(len(windows), self.memory)).round().astype(int)
        self._nearest = NearestNeighbors(n_neighbors=min(self.neighbours, len(kept)), algorithm="brute")
        self._nearest.fit(_flat(windows[kept]))

    def score(self, test: Values) -> RowScores:
        """Mean distance, placed on rows as GRASP's score is."""
        windows = self._windows(test)
        parts = (windows[start : start + _PART] for start in range(0, len(windows), _PART))
        distances = np.concatenate([self._nearest.kneighbors(_flat(part))[0].mean(axis=1) for part in parts])
        return RowScores(overlap(distances, self.window), causal(distances, self.window))

    def _windows(self, values: Values) -> Float[ndarray, "window sensor row"]:
        return sliding_window_view(self._scale.apply(values), self.window, axis=0)


def _flat(windows: Float[ndarray, "window sensor row"]) -> Float[ndarray, "window value"]:
    return windows.reshape(len(windows), -1)
