"""What the benchmark asks of a method: fit on the normal rows of a series, score its test rows."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

Values = Float[ndarray, "row sensor"]
Scores = Float[ndarray, " row"]


@dataclass(frozen=True)
class RowScores:
    """One score per test row, higher = more anomalous, NaN where there is none.

    `overlap` may look ahead, `causal` uses only rows up to its own. `alarms` come from a threshold that the method set
    itself, without labels; None leaves it to the benchmark (`calibration.alarms`). `causal_seconds` of the processor
    went into `causal` alone, and do not count as time to score.
    """

    overlap: Scores
    causal: Scores
    alarms: Bool[ndarray, " row"] | None = None
    causal_seconds: float = 0.0

    @classmethod
    def pointwise(cls, scores: Scores) -> RowScores:
        """Scores that depend on their own row alone: both alignments are the same."""
        return cls(scores, scores)

    def averaged(self, rows: int) -> RowScores:
        """Running means over `rows` rows: around the row, and up to the row. Near the ends over as many as there are.

        >>> RowScores.pointwise(np.array([0.0, 3.0, 6.0])).averaged(2).causal
        array([0. , 1.5, 4.5])
        """
        return RowScores(
            _running_mean(self.overlap, rows, before=rows // 2), _running_mean(self.causal, rows, before=rows - 1)
        )


class Method(ABC):
    """A detector under test. Subclasses are made anew for every series."""

    # False where the seed changes nothing: such a method is run once, whatever seeds are asked for.
    seeded: bool = True
    # Modules that take long to import: it is done once for all units.
    imports: ClassVar[tuple[str, ...]] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides its scores, apart from data and seed, as plain data; some methods have none."""
        return {}

    @property
    def about(self) -> str:
        """What it is, in a line."""
        return (type(self).__doc__ or "").partition("\n")[0]

    @abstractmethod
    def fit(self, train: Values, seed: int) -> None:
        """Learn from the normal rows."""

    @abstractmethod
    def score(self, test: Values) -> RowScores:
        """Score every test row; labels are never shown."""

    def held_out(self, train: Values) -> Values | None:
        """Once fitted: training rows in one piece that it did not learn from; None where it learnt from all."""
        return None


def config_hash(settings: dict[str, Any]) -> str:
    """A short name for settings; equal settings have equal names.

    >>> config_hash({"bins": 5, "rows": 50}) == config_hash({"rows": 50, "bins": 5})
    True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def _running_mean(values: Scores, rows: int, before: int) -> Scores:
    """The mean over `rows` rows from `before` rows before each row on."""
    kernel, first = np.ones(rows), rows - 1 - before
    sums, counts = np.convolve(values, kernel), np.convolve(np.ones(len(values)), kernel)
    return (sums / counts)[first : first + len(values)]
