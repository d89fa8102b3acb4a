"""From one value per window to one value per row.

Window w covers the rows w … w+R−1. A table of n rows has n−R+1 windows.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from graspad.config import Align


def to_rows(values: Float[ndarray, "window *any"], window: int, align: Align) -> Float[ndarray, "row *any"]:
    """Give every row its value; rows without one are NaN."""
    return overlap(values, window) if align == "overlap" else causal(values, window)


def overlap(values: Float[ndarray, "window *any"], window: int) -> Float[ndarray, "row *any"]:
    """Each row gets the mean over the windows that cover it; windows that are NaN do not count.

    >>> overlap(np.array([1.0, 2.0, 6.0]), window=2)
    array([1. , 1.5, 4. , 6. ])
    """
    margin = [(window - 1, window - 1)] + [(0, 0)] * (values.ndim - 1)
    known = ~np.isnan(values)
    sums = _sliding_sum(np.pad(np.where(known, values, 0.0), margin), window)
    covering = _sliding_sum(np.pad(known.astype(np.float64), margin), window)
    return np.where(covering > 0, sums / np.maximum(covering, 1), np.nan)


def causal(values: Float[ndarray, "window *any"], window: int) -> Float[ndarray, "row *any"]:
    """Each row gets the window that ends there; the first R−1 rows get none.

    >>> causal(np.array([1.0, 2.0, 6.0]), window=2)
    array([nan,  1.,  2.,  6.])
    """
    warm_up = np.full((window - 1, *values.shape[1:]), np.nan)
    return np.concatenate([warm_up, values.astype(np.float64)])


def from_averaged(
    values: Float[ndarray, "mean *any"], every: int, rows: int, align: Align
) -> Float[ndarray, "row *any"]:
    """Each row of the table gets the value of the mean it is part of, or for "causal" of the last complete one.

    >>> from_averaged(np.array([1.0, 2.0]), 2, 5, "overlap")
    array([1., 1., 2., 2., 2.])
    >>> from_averaged(np.array([1.0, 2.0]), 2, 5, "causal")
    array([nan,  1.,  1.,  2.,  2.])
    """
    if every == 1:
        return values
    mean = np.arange(rows) // every if align == "overlap" else np.arange(1, rows + 1) // every - 1
    padded = np.concatenate([np.full((1, *values.shape[1:]), np.nan), values])
    return padded[np.minimum(mean, len(values) - 1) + 1]


def thinned(whole: Bool[ndarray, " window"], every: int) -> Int[ndarray, " chosen"]:
    """Every k-th window of each stretch of whole ones, and its last: what they cover stays covered.

    >>> thinned(np.array([1, 1, 1, 1, 1, 1, 0, 1, 1], dtype=bool), every=3)
    array([0, 3, 5, 7, 8])
    """
    windows = np.flatnonzero(whole)
    begins, ends = np.diff(windows, prepend=-2) > 1, np.diff(windows, append=len(whole) + 1) > 1
    place = np.arange(len(windows)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return windows[(place % every == 0) | ends]


def count_in_windows(flags: Bool[ndarray, " row"], window: int) -> Float[ndarray, " window"]:
    """How many flagged rows each window holds."""
    return _sliding_sum(flags.astype(np.float64), window)


def _sliding_sum(values: Float[ndarray, "row *any"], width: int) -> Float[ndarray, "sum *any"]:
    """Sums of `width` neighbours by doubling.

    A running sum would carry the rounding error of one huge value into every row after it; here each sum adds only
    its own terms, in an order that does not depend on where the table was cut.
    """
    total = np.zeros((len(values) - width + 1, *values.shape[1:]))
    block, power, offset = values, 1, 0  # block[i] is the sum of values[i : i + power]
    while power <= width:
        if width & power:
            total += block[offset : offset + len(total)]
            offset += power
        block = block[:-power] + block[power:]
        power *= 2
    return total
