"""A threshold without labels for methods that set none: GRASP's own calibration, on their own scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from graspad.alarms.rate import Allowed
from graspad.alarms.threshold import Threshold
from graspad.bench.method import Method, Scores, Values
from graspad.errors import InputError

# GRASP's default, and the part of the training rows that calibrates where a method learns from all of them.
_ALLOWED = Allowed(0.001, "rows")
_LAST = 0.2


def alarms(
    scores: Scores, fitted: Method, fresh: Callable[[], Method], train: Values, seed: int
) -> Bool[ndarray, " row"] | None:
    """The rows whose score is higher than all but a thousandth of those of held-out training rows.

    They are those that the method held out itself, or the last ones, by a second one that is fitted without them. None
    where they are too few to be scored, or have no score.
    """
    rows, method = fitted.held_out(train), fitted
    try:
        if rows is None:
            cut, method = round(len(train) * (1 - _LAST)), fresh()
            method.fit(train[:cut], seed)
            rows = train[cut:]
        normal = method.score(rows).overlap
    except InputError:
        return None
    if np.isnan(normal).all():
        return None
    return Threshold(normal, _ALLOWED, merge=1).alarms(scores)
