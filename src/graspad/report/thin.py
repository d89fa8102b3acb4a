"""Long traces made short enough for a page: the least and the greatest value of each pixel stay."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray


def thin(values: Float[ndarray, " row"], buckets: int) -> Int[ndarray, " kept"]:
    """Indices to draw, ascending: per bucket of neighbouring rows the lowest and the highest value, and both ends.

    A bucket without any value keeps one index, so that a gap stays a gap.

    >>> thin(np.array([0.0, 1.0, 9.0, 1.0, 0.0, -5.0, 0.0, 0.0]), buckets=2)
    array([0, 2, 4, 5, 7])
    """
    count = len(values)
    if count <= 2 * buckets:
        return np.arange(count)
    size = math.ceil(count / buckets)
    padded = np.full(size * math.ceil(count / size), np.nan)
    padded[:count] = values
    table = padded.reshape(-1, size)
    known = np.isfinite(table)
    lowest = np.where(known, table, np.inf).argmin(axis=1)
    highest = np.where(known, table, -np.inf).argmax(axis=1)
    first = np.arange(len(table)) * size
    return np.unique(np.r_[0, first + lowest, first + highest, count - 1])


def plain(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON, at eight digits (more than single precision holds); what is not finite becomes a gap.

    >>> plain([1 / 3, math.nan, 20.0])
    [0.33333333, None, 20.0]
    """
    return [float(f"{value:.8g}") if math.isfinite(value) else None for value in values]
