"""How well a ranking of sensors agrees with those that are known to have caused an incident.

A ranking lists the numbers of all sensors, the most suspicious first; n is how many of them are true causes.

    HitRate@P %   true causes among the first ⌊P n / 100⌋, over n (OmniAnomaly, InterFusion)
    NDCG@n        Σ 1/log₂(1 + rank) of the true causes among the first n, over the same sum where all n come first
    mean rank     of the true causes, 1 for the first place
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

Ranking = Int[ndarray, " sensor"]


@dataclass(frozen=True)
class LabelledIncident:
    """The rows [start, end) of a series that are labelled anomalous, and the sensors that people found responsible."""

    series: str
    start: int
    end: int
    sensors: tuple[str, ...]


def read_incidents(file: Path) -> list[LabelledIncident]:
    """SMD's labels, as columns machine, start, end and sensors (space separated).

    Its label column marks the rows from start up to, but not including, end.
    """
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            LabelledIncident(line["machine"], int(line["start"]), int(line["end"]), tuple(line["sensors"].split()))
            for line in csv.DictReader(lines)
        ]


def ranking(suspicion: Float[ndarray, " sensor"], rng: np.random.Generator) -> Ranking:
    """Sensors by falling suspicion, ties in random order: the order of the columns must not help.

    >>> ranking(np.array([0.1, 0.7, 0.2]), np.random.default_rng(0)).tolist()
    [1, 2, 0]
    """
    return np.lexsort((rng.random(len(suspicion)), -suspicion))


def hit_rate(ranked: Ranking, causes: set[int], per_cent: int) -> float:
    """HitRate@P %.

    >>> hit_rate(np.array([3, 0, 1, 2]), {0, 1}, 100), hit_rate(np.array([3, 0, 1, 2]), {0, 1}, 150)
    (0.5, 1.0)
    """
    return _hits(ranked[: len(causes) * per_cent // 100], causes) / len(causes)


def ndcg(ranked: Ranking, causes: set[int]) -> float:
    """NDCG@n.

    >>> ndcg(np.array([1, 0, 2]), {0, 1})
    1.0
    """
    worth = 1 / np.log2(2 + np.arange(len(causes)))
    return float(worth[np.isin(ranked[: len(causes)], list(causes))].sum() / worth.sum())


def mean_rank(ranked: Ranking, causes: set[int]) -> float:
    """The mean place of the true causes, from 1.

    >>> mean_rank(np.array([3, 0, 1, 2]), {3, 1})
    2.0
    """
    return float(1 + np.flatnonzero(np.isin(ranked, list(causes))).mean())


def rightly_named(ranked: Ranking, causes: set[int], top: int = 3) -> bool:
    """Whether a reader of the first three is led to the cause and nowhere else.

    One true cause must be among them. Of several, as many as fit must be there: with three or more all three are true
    ones, with two both are named.

    >>> rightly_named(np.array([7, 8, 4, 5]), {4}), rightly_named(np.array([4, 7, 5, 8]), {4, 5, 6})
    (True, False)
    """
    return _hits(ranked[:top], causes) == min(top, len(causes))


def one_named(ranked: Ranking, causes: set[int], top: int = 3) -> bool:
    """Whether at least one true cause is among the first three.

    >>> one_named(np.array([4, 7, 5, 8]), {4, 5, 6}), one_named(np.array([1, 2, 3, 4]), {4})
    (True, False)
    """
    return _hits(ranked[:top], causes) > 0


def _hits(ranked: Ranking, causes: set[int]) -> int:
    return int(np.isin(ranked, list(causes)).sum())
