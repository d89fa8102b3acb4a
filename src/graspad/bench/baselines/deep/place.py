"""From one error per window to one score per row."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.bench.method import RowScores
from graspad.data.windows import causal

Place = Literal["centre", "last"]


def on_rows(errors: Float[ndarray, " window"], span: int, place: Place) -> RowScores:
    """Put the error of each window of `span` rows on its centre or on its last row.

    In `overlap`, the rows before the first place and after the last one take the nearest error. `causal` is honest
    whatever the place: an error is known once the last row of its window is, and the first rows have none.

    >>> errors = np.array([1.0, 2.0, 5.0])
    >>> on_rows(errors, span=4, place="centre").overlap
    array([1., 1., 1., 2., 5., 5.])
    >>> on_rows(errors, span=4, place="last").overlap
    array([1., 1., 1., 1., 2., 5.])
    >>> on_rows(errors, span=4, place="centre").causal
    array([nan, nan, nan,  1.,  2.,  5.])
    """
    before = span // 2 if place == "centre" else span - 1
    return RowScores(np.pad(errors, (before, span - 1 - before), mode="edge"), causal(errors, span))
