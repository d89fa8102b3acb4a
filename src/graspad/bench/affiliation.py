"""Affiliation metrics (Huet, Navarro and Rossi 2022): how near alarms and events are, against an alarm at random.

Row i is the time [i, i+1). Time is cut into one zone E per event J at the midpoints between events, and within a zone

    precision = mean over alarmed x of     P(dist(X, J) > dist(x, J)),        1 where x is in J
    recall    = mean over y in J of        P(|X − y| > dist(y, alarms)),      1 where y alarms

with X uniform on E. With j = |J|, e = |E|, m the distance from J (or y) to the nearer edge of E, and d the distance in
question, the probabilities are 1 − (j + d + min(d, m))/e and 1 − (d + min(d, m))/e, integrated here in closed form.
Precision averages over the zones with an alarm, recall over all zones (0 where nothing alarms).
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from graspad.alarms.spans import spans


def affiliation_f1(labels: Bool[ndarray, " row"], levels: Int[ndarray, " row"]) -> float:
    """Best F1 of affiliation precision and recall over the thresholds; 0 if nothing ever alarms, NaN without an event.

    >>> round(affiliation_f1(np.array([False, True, True, False]), np.array([0, 1, 2, 0])), 9)
    1.0
    """
    if not labels.any():
        return math.nan
    precision, recall = affiliation(labels, levels)
    return float(np.max(2 * precision * recall / (precision + recall + 1e-15), initial=0.0))


def affiliation(
    labels: Bool[ndarray, " row"], levels: Int[ndarray, " row"]
) -> tuple[Float[ndarray, " threshold"], Float[ndarray, " threshold"]]:
    """Precision and recall at the thresholds q = 0 … max(levels) − 1, at which the rows with levels > q alarm.

    >>> precision, recall = affiliation(np.array([True, False, False, False]), np.array([0, 1, 0, 0]))
    >>> float(precision[0]), float(recall[0])
    (0.625, 0.8125)
    """
    zones = _Zones(labels)
    level, count = levels[zones.row], int(levels.max())

    def over_each_threshold(weights: Float[ndarray, " piece"]) -> Float[ndarray, "zone threshold"]:
        cell = zones.zone * (count + 1) + level
        table = np.bincount(cell, weights, minlength=len(zones.start) * (count + 1)).reshape(-1, count + 1)
        return np.cumsum(table[:, ::-1], axis=1)[:, -2::-1]

    alarmed = over_each_threshold(zones.end - zones.begin)
    credit = over_each_threshold(zones.credit())
    precision = np.divide(credit, alarmed, out=np.zeros_like(credit), where=alarmed > 0).sum(axis=0)
    precision /= np.count_nonzero(alarmed, axis=0)

    recall, pieces = np.empty(count), np.arange(len(level))
    for threshold in range(count):
        still = level[pieces] > threshold
        if threshold > 0 and still.all():  # common: between outliers the thresholds pass over no score
            recall[threshold] = recall[threshold - 1]
            continue
        pieces = pieces[still]
        recall[threshold] = zones.recall(pieces).mean()
    return precision, recall


class _Zones:
    """Time cut at every row and at the midpoints between events: pieces [begin, end), each of one row and one zone."""

    def __init__(self, labels: Bool[ndarray, " row"]) -> None:
        self.start, self.stop = np.array(list(spans(labels, merge=1)), dtype=float).T
        edges = np.r_[0, (self.stop[:-1] + self.start[1:]) / 2, len(labels)]
        self.low, self.high = edges[:-1], edges[1:]
        cuts = np.union1d(np.arange(len(labels) + 1), edges)
        self.begin, self.end = cuts[:-1], cuts[1:]
        self.row = self.begin.astype(int)
        self.zone = np.searchsorted(edges, self.begin, side="right") - 1

    def credit(self) -> Float[ndarray, " piece"]:
        """∫ P(dist(X, J) > dist(x, J)) dx over each piece."""
        start, stop = self.start[self.zone], self.stop[self.zone]
        low, high = self.low[self.zone], self.high[self.zone]
        edge = np.minimum(start - low, high - stop)

        def integral(distance: Float[ndarray, " piece"]) -> Float[ndarray, " piece"]:
            """∫ d + min(d, m) from 0 to the distance."""
            beyond = np.maximum(distance - edge, 0)
            return (distance**2 + np.minimum(distance, edge) ** 2) / 2 + edge * beyond

        ends = [np.maximum(np.maximum(start - x, x - stop), 0) for x in (self.begin, self.end)]
        near, far = np.minimum(*ends), np.maximum(*ends)
        length = self.end - self.begin
        lost = ((stop - start) * length + integral(far) - integral(near)) / (high - low)
        return np.where(far > 0, length - lost, length)

    def recall(self, alarmed: Int[ndarray, " alarmed"]) -> Float[ndarray, " zone"]:
        """Mean of P(|X − y| > dist(y, alarms)) over each event, given the pieces that alarm.

        Between two alarms d <= m. Between an alarm and an edge of the zone, min(d, m) is as if an alarm stood on the
        edge, and d as if the alarm were mirrored behind the edge.
        """
        zone = self.zone[alarmed]
        first = np.append(True, zone[1:] != zone[:-1])
        last = np.append(first[1:], True)
        begin, end = self.begin[alarmed], self.end[alarmed]
        # One gap before each alarm, and one after the last of each zone.
        left = np.r_[np.where(first, self.low[zone], np.roll(end, 1)), end[last]]
        right = np.r_[begin, self.high[zone[last]]]
        mirror_left = left - np.r_[first * (begin - self.low[zone]), np.zeros(last.sum())]
        mirror_right = right + np.r_[np.zeros(len(zone)), self.high[zone[last]] - end[last]]
        zone = np.r_[zone, zone[last]]

        low, high = np.maximum(left, self.start[zone]), np.minimum(right, self.stop[zone])
        of_event = low < high
        low, high, zone = low[of_event], high[of_event], zone[of_event]
        lost = _tent(low, high, left[of_event], right[of_event])
        lost += _tent(low, high, mirror_left[of_event], mirror_right[of_event])
        size = (self.stop - self.start) * (self.high - self.low)
        recall = 1 - np.bincount(zone, lost, minlength=len(size)) / size
        recall[np.bincount(self.zone[alarmed], minlength=len(size)) == 0] = 0
        return recall


def _tent(
    low: Float[ndarray, " gap"],
    high: Float[ndarray, " gap"],
    left: Float[ndarray, " gap"],
    right: Float[ndarray, " gap"],
) -> Float[ndarray, " gap"]:
    """∫ min(y − left, right − y) dy from low to high."""
    half = (right - left) / 2

    def integral(y: Float[ndarray, " gap"]) -> Float[ndarray, " gap"]:
        return np.where(y - left < half, (y - left) ** 2 / 2, half**2 - (right - y) ** 2 / 2)

    return integral(high) - integral(low)
