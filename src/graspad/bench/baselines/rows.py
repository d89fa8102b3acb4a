"""The preprocessing of HBOS and COPOD in mTSBench, and so in the paper."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def standardised_across_sensors(rows: Float[ndarray, "row sensor"]) -> Float[ndarray, "row sensor"]:
    """Each row as z-scores over its own sensors; a row in which all are equal becomes zero.

    It hides how far a row lies from the others. It is kept because the paper's numbers come from it.
    """
    centred = rows - rows.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(centred / rows.std(axis=1, ddof=1, keepdims=True))
