"""Volume under the surface (Paparrizos et al. 2022): ROC and PR that forgive an alarm a few rows beside an event.

Around every event lies a buffer of ℓ//2 rows on each side, in which an alarm d rows away earns the credit √(1 − d/ℓ);
a row that the buffers of two events reach earns 1. With P anomalous rows, credit C_t of the buffer rows that alarm at
threshold t, and TP_t = anomalous rows that alarm + C_t:

    precision = TP_t / alarms                recall = min(TP_t / P_t, 1) · share of the buffered events that are hit
    P_t = P + C_t / 2                        false positive rate = (alarms − TP_t) / (rows − P_t)

Buffered events that overlap count as one. The thresholds are the scores at 250 equally spaced ranks, `score >= t`.
VUS is the mean over ℓ = 0 … 100 of the area under the curve: a step sum for PR, trapezoids closed at (1, 1) for ROC.
This is mTSBench's definition; TSB-AD takes ℓ from a period of the data, so its numbers cannot be compared.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from scipy.integrate import trapezoid

from graspad.alarms.spans import spans


def vus(
    labels: Bool[ndarray, " row"], scores: Float[ndarray, " row"], widest: int = 100, thresholds: int = 250
) -> tuple[float, float]:
    """VUS-PR and VUS-ROC of scores without NaN; both NaN without an anomaly, VUS-ROC NaN without a normal row.

    >>> vus(np.array([False, False, True, True]), np.array([0.1, 0.2, 0.3, 0.4]), widest=0)
    (1.0, 1.0)
    """
    if not labels.any():
        return math.nan, math.nan
    grid = np.sort(scores)[::-1][np.linspace(0, len(scores) - 1, thresholds).astype(int)]
    caught = np.searchsorted(-grid, -scores)  # the first threshold at which the row alarms
    events = np.array(list(spans(labels, merge=1)))
    rows, nearest, second = _buffer_rows(labels, events, widest // 2)

    def up_to_each_threshold(at: Int[ndarray, " any"], weights: Float[ndarray, " any"] | None = None) -> ndarray:
        return np.cumsum(np.bincount(at, weights, minlength=thresholds))

    alarms, anomalous, positives = up_to_each_threshold(caught), up_to_each_threshold(caught[labels]), labels.sum()
    hit_at = np.minimum.reduceat(np.append(caught, thresholds), events.ravel())[::2]
    areas = []
    for width in range(widest + 1):
        reach = width // 2
        # What a wider buffer adds to an event are the two rows at its ends.
        for ends in (events[:, 0] - reach, events[:, 1] - 1 + reach):
            hit_at = np.minimum(hit_at, caught[np.clip(ends, 0, len(caught) - 1)])
        apart = events[1:, 0] - reach > events[:-1, 1] - 1 + reach
        hit_together = np.minimum.reduceat(hit_at, np.append(0, np.flatnonzero(apart) + 1))
        hit = up_to_each_threshold(hit_together) / len(hit_together)

        near = slice(np.searchsorted(nearest, reach, side="right"))
        credit = np.where(second[near] <= reach, 1.0, np.sqrt(1 - nearest[near] / max(width, 1)))
        credits = up_to_each_threshold(caught[rows[near]], credit)
        found, expected = anomalous + credits, positives + credits / 2
        recall = np.minimum(found / expected, 1) * hit
        area_pr = np.sum(np.diff(recall, prepend=0) * found / alarms)
        if positives < len(labels):
            false = (alarms - found) / (len(labels) - expected)
            areas.append((area_pr, trapezoid(np.r_[0, recall, 1], np.r_[0, false, 1])))
        else:
            areas.append((area_pr, math.nan))
    pr, roc = np.mean(areas, axis=0)
    return float(pr), float(roc)


def _buffer_rows(
    labels: Bool[ndarray, " row"], events: Int[ndarray, "event 2"], reach: int
) -> tuple[Int[ndarray, " near"], Float[ndarray, " near"], Float[ndarray, " near"]]:
    """Normal rows within reach of an event, nearest first, and how far the nearest and the second event are."""
    rows = np.flatnonzero(~labels)
    following = np.searchsorted(events[:, 0], rows)
    ends, starts = np.r_[-np.inf, -np.inf, events[:, 1] - 1], np.r_[events[:, 0], np.inf, np.inf]
    # Where an event is short, the two nearest may lie on the same side.
    before = rows - ends[following], rows - ends[following + 1]
    after = starts[following] - rows, starts[following + 1] - rows
    distances = np.sort([*before, *after], axis=0)[:2]
    order = np.argsort(distances[0], kind="stable")[: np.count_nonzero(distances[0] <= reach)]
    return rows[order], distances[0, order], distances[1, order]
