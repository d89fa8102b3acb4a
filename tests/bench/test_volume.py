import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from graspad.bench.volume import vus


def slow_vus(labels, scores, widest, thresholds):
    """The definition, row by row and threshold by threshold."""
    count = len(labels)
    events = []
    for row in range(count):
        if labels[row] and (row == 0 or not labels[row - 1]):
            events.append([row, row])
        elif labels[row]:
            events[-1][1] = row
    ranked = sorted(scores, reverse=True)
    grid = [ranked[int(rank)] for rank in np.linspace(0, count - 1, thresholds)]
    areas_pr, areas_roc = [], []
    for width in range(widest + 1):
        reach = width // 2
        weights = [float(label) for label in labels]
        for first, last in events:
            for row in range(count):
                distance = max(first - row, row - last)
                if 1 <= distance <= reach:
                    weights[row] += math.sqrt(1 - distance / width)
        weights = [min(weight, 1.0) for weight in weights]
        merged = []
        for first, last in events:
            if merged and first - reach <= merged[-1][1]:
                merged[-1][1] = last + reach
            else:
                merged.append([first - reach, last + reach])
        curve = [(0.0, 0.0, 1.0)]
        for threshold in grid:
            alarms = [row for row in range(count) if scores[row] >= threshold]
            found = sum(weights[row] for row in alarms)
            credited = sum(labels) + sum(weights[row] for row in alarms if not labels[row])
            expected = (sum(labels) + credited) / 2
            hit = sum(any(low <= row <= high for row in alarms) for low, high in merged) / len(merged)
            recall = min(found / expected, 1) * hit
            curve.append((recall, (len(alarms) - found) / (count - expected), found / len(alarms)))
        steps = list(pairwise(curve))
        areas_pr.append(sum((new[0] - old[0]) * new[2] for old, new in steps))
        closed = [*steps, (curve[-1], (1.0, 1.0, 0.0))]
        areas_roc.append(sum((new[1] - old[1]) * (new[0] + old[0]) / 2 for old, new in closed))
    return sum(areas_pr) / len(areas_pr), sum(areas_roc) / len(areas_roc)


@st.composite
def series(draw, longest=60):
    """Labels with both kinds of rows, events of all lengths and gaps, and scores with ties."""
    labels = draw(st.lists(st.booleans(), min_size=2, max_size=longest).filter(lambda rows: 0 < sum(rows) < len(rows)))
    repeat = draw(st.integers(1, 4))
    labels = np.repeat(labels, repeat)
    scores = draw(st.lists(st.integers(0, 9), min_size=len(labels), max_size=len(labels)))
    return labels, np.array(scores, dtype=float)


@given(series(), st.integers(0, 14), st.integers(2, 30))
def test_agrees_with_the_definition(case, widest, thresholds):
    labels, scores = case
    np.testing.assert_allclose(vus(labels, scores, widest, thresholds), slow_vus(labels, scores, widest, thresholds))


def test_agrees_with_the_definition_at_full_size():
    rng = np.random.default_rng(3)
    labels = np.zeros(160, dtype=bool)
    for start, stop in [(0, 5), (60, 61), (63, 64), (66, 70), (120, 125), (155, 160)]:
        labels[start:stop] = True
    scores = rng.standard_normal(160) + labels
    np.testing.assert_allclose(vus(labels, scores), slow_vus(labels, scores, 100, 250))


@given(series())
def test_lies_between_0_and_1_and_knows_only_the_order(case):
    labels, scores = case
    areas = vus(labels, scores)
    assert all(0 <= area <= 1 + 1e-12 for area in areas)
    np.testing.assert_allclose(vus(labels, np.exp(scores) - 7), areas)


@given(series())
def test_scores_equal_to_the_labels_are_perfect(case):
    labels, _ = case
    np.testing.assert_allclose(vus(labels, labels.astype(float)), (1, 1))


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 50), st.integers(0, 1000))
def test_without_buffer_one_event_has_the_plain_areas(before, length, after, seed):
    labels = np.r_[np.zeros(before), np.ones(length), np.zeros(after)].astype(bool)
    scores = np.random.default_rng(seed).integers(0, 20, len(labels)).astype(float)
    plain = average_precision_score(labels, scores), roc_auc_score(labels, scores)
    np.testing.assert_allclose(vus(labels, scores, widest=0), plain)


def test_constant_scores_by_hand():
    pr, roc = vus(np.array([False, False, True, False, False]), np.zeros(5), widest=2)
    # Buffers 0 and 1 reach no row; buffer 2 reaches one on each side with credit √½.
    assert pr == pytest.approx((1 / 5 + 1 / 5 + (1 + math.sqrt(2)) / 5) / 3)
    false = (4 - math.sqrt(2)) / (4 - math.sqrt(2) / 2)
    assert roc == pytest.approx((1 / 2 + 1 / 2 + 1 - false / 2) / 3)


def test_a_row_that_two_buffers_reach_earns_all():
    pr, _ = vus(np.array([True, False, True]), np.zeros(3), widest=2)
    assert pr == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


def test_undefined_areas_are_nan():
    assert np.isnan(vus(np.zeros(4, dtype=bool), np.arange(4.0))).all()
    pr, roc = vus(np.ones(4, dtype=bool), np.arange(4.0))
    assert pr == pytest.approx(1)
    assert math.isnan(roc)
