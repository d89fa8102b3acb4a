"""Runs of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool
from numpy import ndarray


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
