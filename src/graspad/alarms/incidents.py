"""Alarms that belong together become one incident."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray


@dataclass(frozen=True)
class Incident:
    """The rows [start, end) that alarmed together, the row of the highest score, and who had a part in it."""

    start: int
    end: int
    peak: int
    score: float
    p_value: float
    sensors: tuple[tuple[str, float], ...]  # by share of the incident's score, largest first
    bands: tuple[float, ...]  # shares by frequency band, low to high


def spans(alarms: Bool[ndarray, " row"], merge: int) -> Iterator[tuple[int, int]]:
    """Runs [start, end) of alarms; runs with fewer than `merge` quiet rows between them are one.

    >>> list(spans(np.array([0, 1, 1, 0, 1, 0, 0, 0, 1], dtype=bool), merge=2))
    [(1, 5), (8, 9)]
    """
    rows = np.flatnonzero(alarms)
    if len(rows):
        breaks = np.flatnonzero(np.diff(rows) > merge)
        for first, last in zip(np.r_[0, breaks + 1], np.r_[breaks, len(rows) - 1], strict=True):
            yield int(rows[first]), int(rows[last]) + 1


def incident(
    start: int,
    end: int,
    scores: Float[ndarray, " row"],
    p_values: Float[ndarray, " row"],
    by_sensor: Float[ndarray, "row sensor"],
    by_band: Float[ndarray, "row band"],
    sensors: tuple[str, ...],
) -> Incident:
    """Describe the rows [start, end) by their peak and by their shares of the whole score."""
    peak = start + int(np.nanargmax(scores[start:end]))
    parts = _shares(by_sensor[start:end])
    order = np.argsort(-parts, kind="stable")
    return Incident(
        start,
        end,
        peak,
        float(scores[peak]),
        float(p_values[peak]),
        tuple((sensors[index], float(parts[index])) for index in order),
        tuple(_shares(by_band[start:end]).tolist()),
    )


def _shares(energy: Float[ndarray, "row part"]) -> Float[ndarray, " part"]:
    total = np.nansum(energy, axis=0)
    return total / total.sum() if total.sum() > 0 else np.zeros(len(total))
