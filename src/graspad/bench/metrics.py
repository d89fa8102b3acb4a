"""How good scores and alarms are, given the labels.

Rows are judged as they are. Scores count by rank (`prc`, `roc`, `best_f1`, VUS) or at 100 equally spaced thresholds
(`affiliation_f1`, `event_f1`, `inflated_pa_f1`). A threshold that is best in hindsight is not one that a user can
choose; the `alarm_…` numbers judge the alarms that a detector raised without seeing a label.

A row without a score (NaN) ranks below all others: it is found only when every row is. A score of +inf ranks highest,
−inf lowest of those that are scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from graspad.alarms.spans import spans
from graspad.bench.affiliation import affiliation_f1
from graspad.bench.volume import vus
from graspad.errors import InputError

_THRESHOLDS = 100


@dataclass(frozen=True)
class Metrics:
    """One series judged; NaN where a number is not defined.

    Without an anomaly only `false_alarm_rate` is defined; without a normal row all but that, `roc` and `vus_roc` are.
    """

    prc: float  # average precision
    roc: float
    best_f1: float
    vus_pr: float
    vus_roc: float
    affiliation_f1: float
    event_f1: float
    inflated_pa_f1: float  # see inflated_point_adjusted_f1
    alarm_precision: float  # share of the alarms that are anomalous; NaN without an alarm
    alarm_recall: float
    alarm_f1: float
    false_alarm_rate: float  # share of the normal rows that alarm
    events_found: float  # share of the events with an alarm in them
    delay: float  # mean rows from the start of an event to its first alarm, over the events found


def evaluate(
    labels: Bool[ndarray, " row"], scores: Float[ndarray, " row"], alarms: Bool[ndarray, " row"] | None = None
) -> Metrics:
    """Judge the scores of one series and, where given, its alarms.

    >>> metrics = evaluate(np.array([0, 0, 1, 1, 0]), np.array([0.1, 0.2, 0.4, 0.9, 0.3]), np.array([0, 0, 0, 1, 0]))
    >>> metrics.prc, metrics.roc, metrics.alarm_recall, metrics.delay
    (1.0, 1.0, 0.5, 1.0)
    """
    truth, values = _flags("labels", labels), _numbers(scores)
    _same_length(truth, "scores", values)
    ranks, levels = _ranks(values), threshold_levels(values)
    if alarms is None:
        of_alarms: tuple[float, ...] = (math.nan,) * 6
    else:
        raised = _flags("alarms", alarms)
        _same_length(truth, "alarms", raised)
        of_alarms = _judge_alarms(truth, raised)
    return Metrics(
        *_headline(truth, ranks),
        *vus(truth, ranks),
        affiliation_f1(truth, levels),
        event_f1(truth, levels),
        inflated_point_adjusted_f1(truth, levels),
        *of_alarms,
    )


def headline(labels: Bool[ndarray, " row"], scores: Float[ndarray, " row"]) -> tuple[float, float, float]:
    """The three numbers of the paper's tables: average precision, area under ROC, best F1.

    Best F1 is the maximum of 2PR/(P + R + 1e-5) over the precision-recall curve.

    >>> headline(np.array([0, 1, 0, 1]), np.array([0.0, 0.0, 0.0, 0.0]))[:2]
    (0.5, 0.5)
    """
    truth, values = _flags("labels", labels), _numbers(scores)
    _same_length(truth, "scores", values)
    return _headline(truth, _ranks(values))


def _headline(labels: Bool[ndarray, " row"], ranks: Float[ndarray, " row"]) -> tuple[float, float, float]:
    if not labels.any():
        return math.nan, math.nan, math.nan
    precision, recall, _ = precision_recall_curve(labels, ranks)
    best_f1 = np.max(2 * precision * recall / (precision + recall + 1e-5))
    roc = math.nan if labels.all() else float(roc_auc_score(labels, ranks))
    return float(average_precision_score(labels, ranks)), roc, float(best_f1)


def _ranks(scores: Float[ndarray, " row"]) -> Float[ndarray, " row"]:
    """The same order in finite numbers."""
    ranks = np.unique(scores, return_inverse=True)[1].astype(float)
    ranks[np.isnan(scores)] = -1
    return ranks


def threshold_levels(scores: Float[ndarray, " row"]) -> Int[ndarray, " row"]:
    """How many of 100 thresholds, equally spaced from the lowest to the highest score, each score exceeds.

    At threshold q the rows with levels > q alarm. The lowest score never alarms, hence a constant score never does.
    An infinite score counts as the highest or lowest finite one, a missing one as the lowest; where all finite scores
    are equal, only the order is left and the ranks take their place.

    >>> threshold_levels(np.array([0.0, 0.5, 1.0, np.inf, np.nan]))
    array([ 0, 50, 99, 99,  0])
    """
    finite = scores[np.isfinite(scores)]
    if len(finite) == 0 or finite.min() == finite.max():
        values = _ranks(scores)
    else:
        values = np.nan_to_num(scores, nan=finite.min(), posinf=finite.max(), neginf=finite.min())
    # Halves, because the distance between two huge scores may overflow.
    thresholds = 2 * np.linspace(values.min() / 2, values.max() / 2, _THRESHOLDS)
    return np.searchsorted(thresholds, values)


def event_f1(labels: Bool[ndarray, " row"], levels: Int[ndarray, " row"]) -> float:
    """Best F1 of recall over events (one alarm finds an event) and precision over rows, see `threshold_levels`.

    An event that lasts to the end of the series counts whole, unlike in mTSBench, which misses its last row.

    >>> round(event_f1(np.array([False, True, True, False, True]), np.array([0, 0, 1, 0, 1])), 9)
    1.0
    """
    if not labels.any():
        return math.nan
    events, highest = _events(labels, levels)
    alarms, found = _exceeding(levels), _exceeding(levels[labels])
    precision = found / np.maximum(alarms, 1)
    recall = _exceeding(highest) / len(events)
    return float(np.max(2 * precision * recall / (precision + recall + 1e-15)))


def inflated_point_adjusted_f1(labels: Bool[ndarray, " row"], levels: Int[ndarray, " row"]) -> float:
    """Best F1 when one alarm anywhere in an event counts as an alarm in every row of it. Do not compare methods by it.

    A long event is all but certain to be hit by chance, and then pays for hundreds of rows, so that even random scores
    do well. It is here only so that papers which print nothing else can be set beside us.
    """
    if not labels.any():
        return math.nan
    events, highest = _events(labels, levels)
    found = _exceeding(highest, events[:, 1] - events[:, 0])
    false = _exceeding(levels[~labels])
    return float(np.max(2 * found / (found + false + labels.sum())))


def _events(
    labels: Bool[ndarray, " row"], levels: Int[ndarray, " row"]
) -> tuple[Int[ndarray, "event 2"], Int[ndarray, " event"]]:
    """The events [start, stop) and the highest level in each."""
    events = np.array(list(spans(labels, merge=1)))
    return events, np.maximum.reduceat(np.append(levels, 0), events.ravel())[::2]


def _exceeding(
    levels: Int[ndarray, " any"], weights: Int[ndarray, " any"] | None = None
) -> Float[ndarray, " threshold"]:
    """How many (or how much weight) have levels > q, for every threshold q."""
    return np.cumsum(np.bincount(levels, weights, minlength=_THRESHOLDS + 1)[::-1])[-2::-1].astype(float)


def _judge_alarms(labels: Bool[ndarray, " row"], alarms: Bool[ndarray, " row"]) -> tuple[float, ...]:
    """The last six fields of `Metrics`."""
    false_alarm_rate = _mean(alarms[~labels])
    if not labels.any():
        return math.nan, math.nan, math.nan, false_alarm_rate, math.nan, math.nan
    f1 = 2 * np.count_nonzero(labels & alarms) / (labels.sum() + alarms.sum())
    delays = [np.flatnonzero(alarms[start:stop])[:1] for start, stop in spans(labels, merge=1)]
    return (
        _mean(labels[alarms]),
        _mean(alarms[labels]),
        float(f1),
        false_alarm_rate,
        _mean(np.array([len(delay) for delay in delays])),
        _mean(np.concatenate(delays)),
    )


def _mean(values: ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _flags(name: str, values: ndarray) -> Bool[ndarray, " row"]:
    """The values as booleans, provided they are nothing but 0 and 1."""
    flags = np.asarray(values)
    if flags.ndim != 1 or len(flags) == 0:
        raise InputError(f"The {name} have the shape {flags.shape}. Give one 0 or 1 per row, and at least one row.")
    others = flags[(flags != 0) & (flags != 1)]
    if len(others):
        raise InputError(
            f"The {name} hold {others[0]!r}. Write 0 for normal rows and 1 for anomalous ones, nothing else."
        )
    return flags.astype(bool)


def _numbers(scores: ndarray) -> Float[ndarray, " row"]:
    values = np.asarray(scores)
    if values.dtype.kind not in "fiub":
        raise InputError(f"The scores are of type {values.dtype}. Give one number per row, NaN where there is none.")
    return values.astype(float)


def _same_length(labels: ndarray, name: str, values: ndarray) -> None:
    if values.shape != labels.shape:
        raise InputError(
            f"There are {len(labels)} labels, but the {name} have the shape {values.shape}. Give one per label."
        )
