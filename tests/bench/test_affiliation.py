import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench.affiliation import affiliation, affiliation_f1


def runs(flags):
    """[start, stop) of every run of ones."""
    found = []
    for row, flag in enumerate(flags):
        if flag and (row == 0 or not flags[row - 1]):
            found.append([row, row + 1])
        elif flag:
            found[-1][1] = row + 1
    return found


def slow_affiliation(labels, alarms):
    """The definition: the mean over points of time of the share of the zone that lies farther away.

    All terms are linear between multiples of a quarter row, so that the midpoints of quarter rows give exact integrals.
    """
    events, count = runs(labels), len(labels)
    middles = [(one[1] + other[0]) / 2 for one, other in pairwise(events)]
    edges = [0, *middles, count]
    precisions, recalls = [], []
    for (start, stop), low, high in zip(events, edges[:-1], edges[1:], strict=True):

        def share_within(left, right, low=low, high=high):
            return max(min(right, high) - max(left, low), 0) / (high - low)

        times = [low + (step + 0.5) / 4 for step in range(round(4 * (high - low)))]
        alarmed = [time for time in times if alarms[int(time)]]
        pieces = [(max(a, low), min(b, high)) for a, b in runs(alarms) if min(b, high) > max(a, low)]
        credits = []
        for time in alarmed:
            distance = max(start - time, time - stop, 0)
            credits.append(1 - share_within(start - distance, stop + distance) if distance else 1)
        if credits:
            precisions.append(sum(credits) / len(credits))
        recovered = []
        for time in times:
            if start <= time < stop:
                distance = min((max(a - time, time - b, 0) for a, b in pieces), default=None)
                recovered.append(0 if distance is None else 1 - share_within(time - distance, time + distance))
        recalls.append(sum(recovered) / len(recovered))
    return sum(precisions) / len(precisions), sum(recalls) / len(recalls)


@st.composite
def series(draw):
    """Labels with an event, and levels of which at least one is above 0."""
    labels = draw(st.lists(st.booleans(), min_size=1, max_size=30).filter(any))
    labels = np.repeat(labels, draw(st.integers(1, 3)))
    numbers = st.just(0) | st.integers(0, 5)  # many rows that never alarm, so that gaps of all lengths occur
    levels = draw(st.lists(numbers, min_size=len(labels), max_size=len(labels)).filter(any))
    return labels, np.array(levels)


@given(series())
def test_agrees_with_the_definition_at_every_threshold(case):
    labels, levels = case
    precision, recall = affiliation(labels, levels)
    expected = [slow_affiliation(labels, levels > threshold) for threshold in range(levels.max())]
    np.testing.assert_allclose(np.stack([precision, recall], axis=1), expected, atol=1e-12)


@given(series())
def test_f1_is_the_best_over_the_thresholds(case):
    labels, levels = case
    pairs = [slow_affiliation(labels, levels > threshold) for threshold in range(levels.max())]
    assert affiliation_f1(labels, levels) == pytest.approx(max(2 * p * r / (p + r + 1e-15) for p, r in pairs))


@given(series())
def test_neither_direction_nor_unit_of_time_matters(case):
    labels, levels = case
    expected = affiliation(labels, levels)
    np.testing.assert_allclose(affiliation(labels[::-1], levels[::-1]), expected, atol=1e-12)
    np.testing.assert_allclose(affiliation(np.repeat(labels, 3), np.repeat(levels, 3)), expected, atol=1e-12)


@given(series())
def test_lies_between_0_and_1_and_the_labels_are_perfect(case):
    labels, levels = case
    for values in affiliation(labels, levels):
        assert ((values >= -1e-12) & (values <= 1 + 1e-12)).all()
    np.testing.assert_allclose(affiliation(labels, labels.astype(int)), 1)


MINUTE = 60
PAPER_EVENTS = [(0, 10), (50, 70), (170, 175)]
PAPER_ALARMS = [(5, 6), (7, 10), (11, 12), (40, 60), (115, 130), (135, 140), (165, 170)]


def paper_example():
    """The worked example of Huet et al., three hours in seconds."""
    labels, alarms = np.zeros(180 * MINUTE, dtype=bool), np.zeros(180 * MINUTE, dtype=int)
    for flags, intervals in ((labels, PAPER_EVENTS), (alarms, PAPER_ALARMS)):
        for start, stop in intervals:
            flags[start * MINUTE : stop * MINUTE] = 1
    return labels, alarms


def test_published_values_of_the_second_event():
    labels, alarms = paper_example()
    zone = slice(30 * MINUTE, 120 * MINUTE)  # half-way to the first and to the third event
    precision, recall = affiliation(labels[zone], alarms[zone])
    np.testing.assert_allclose([precision[0], recall[0]], [0.672222222, 0.944444444], atol=1e-9)


def test_a_series_is_the_mean_of_its_zones():
    labels, alarms = paper_example()
    zones = [slice(0, 30 * MINUTE), slice(30 * MINUTE, 120 * MINUTE), slice(120 * MINUTE, None)]
    parts = [affiliation(labels[zone], alarms[zone]) for zone in zones]
    np.testing.assert_allclose(affiliation(labels, alarms), np.mean(parts, axis=0))


def test_a_zone_without_alarm_has_no_precision_and_no_recall():
    labels = np.array([1, 0, 0, 0, 0, 0, 0, 1], dtype=bool)
    precision, recall = affiliation(labels, np.array([1, 0, 0, 0, 0, 0, 0, 0]))
    assert (precision[0], recall[0]) == (1, 0.5)


def test_without_an_alarm_f1_is_0_and_without_an_event_nan():
    assert affiliation_f1(np.array([False, True]), np.array([0, 0])) == 0
    assert math.isnan(affiliation_f1(np.array([False, False]), np.array([0, 1])))
