"""Several looks at the rows: each is a detector of its own on averaged rows, and a score is their weighted mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graspad import GraspDetector
from graspad.config import RECIPE, Look
from graspad.data.gaps import Rows
from graspad.data.windows import from_averaged, thinned


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)[:, None]
    return np.sin(t / 9 + np.array([0, 0.3, 1, 2, 2.1])) + 0.1 * rng.standard_normal((rows, 5))


def with_looks(*looks: Look, **changes):
    return RECIPE.override(scoring=dict(RECIPE.scoring) | {"looks": looks}, **changes)


@pytest.mark.parametrize("align", ["overlap", "causal"])
def test_a_score_is_the_weighted_mean_of_detectors_on_averaged_rows(align):
    normal, new = plant(1200, 0), plant(203, 1)
    new[100:130, 2] += 1
    both = GraspDetector(
        with_looks(Look(every=4, length=0.5, weight=0.25), window=16), align=align, false_alarms=0.01
    ).fit(normal)
    first = GraspDetector(with_looks(window=16), align=align, false_alarms=0.01).fit(normal)
    means = normal.reshape(-1, 4, 5).mean(axis=1)
    slow = GraspDetector(with_looks(window=8), align=align, false_alarms=0.01, graph=both.model_.adjacency).fit(means)
    by_mean = slow.decision_function(new[:200].reshape(-1, 4, 5).mean(axis=1))
    by_row = np.full(203, np.nan)
    for row in range(203):
        mean = row // 4 if align == "overlap" else (row + 1) // 4 - 1
        by_row[row] = by_mean[min(mean, 49)] if mean >= 0 else np.nan
    fine = first.decision_function(new)
    expected = np.where(np.isnan(by_row), fine, (fine + 0.25 * by_row) / 1.25)
    np.testing.assert_allclose(both.decision_function(new), expected, rtol=1e-3, atol=1e-3)


def test_a_look_is_left_out_where_the_rows_are_too_few():
    looks = (Look(length=0.5), Look(every=10, length=0.5), Look(every=50))
    detector = GraspDetector(with_looks(*looks, window=10), false_alarms=0.02).fit(plant(300, 0))
    assert [view.lens.every for view in detector.model_.views] == [1, 1, 10]
    few = detector.decision_function(plant(30, 1))  # three means: no window of five
    assert np.isfinite(few).all()


def test_a_look_is_left_out_where_gaps_leave_it_no_window():
    normal = plant(1000, 0)
    for start in range(60, 1000, 60):
        normal[start : start + 8] = np.nan
    detector = GraspDetector(with_looks(Look(every=10), window=10), false_alarms=0.02).fit(normal)
    assert [view.lens.every for view in detector.model_.views] == [1]


def test_slow_and_brief_faults_are_told_apart_by_the_looks():
    detector = GraspDetector(with_looks(Look(length=0.4), Look(every=10, length=0.5), window=20)).fit(plant(3000, 0))
    brief, slow = plant(900, 1), plant(900, 1)
    brief[500, 1] += 1.5
    slow[400:650, 1] += 0.15
    heights = []
    for data in (brief, slow):
        rows = detector.model_.rows(data)
        by_view = [view.to_rows(view.score(rows, "overlap"), 900, "overlap")[480:600] for view in detector.model_.views]
        heights.append([scores.max() for scores in by_view])
    (_, short, long), (_, short_slow, long_slow) = heights
    assert short > long
    assert long_slow > short_slow


@given(arrays(np.float64, (23, 2), elements=st.floats(-10, 10)), st.integers(1, 6))
def test_means_know_what_was_missing(values, every):
    values[7, 0] = np.nan
    rows = Rows.of(values, limit=0)
    means = rows.averaged(every)
    assert len(means.values) == len(values) // every
    lost = 7 // every
    expected = [index == lost for index in range(len(means.lost))]
    assert means.lost.tolist() == expected
    known = [index for index in range(len(means.lost)) if not means.lost[index]]
    blocks = [values[index * every : (index + 1) * every].mean(axis=0) for index in known]
    np.testing.assert_allclose(means.values[known], blocks, atol=1e-12)


@given(st.integers(1, 7), st.integers(1, 60))
def test_no_causal_row_knows_a_mean_that_is_not_complete(every, rows):
    last_rows = (np.arange(rows // every) + 1) * every - 1.0
    if len(last_rows):
        placed = from_averaged(last_rows, every, rows, "causal")
        assert (np.isnan(placed) | (placed <= np.arange(rows))).all()
        assert np.isnan(placed).sum() == every - 1


def test_a_row_has_a_score_as_soon_as_the_shortest_look_has_a_window():
    settings = with_looks(Look(length=0.5), window=16, gap_limit=0)
    detector = GraspDetector(settings, align="causal", false_alarms=0.01)
    detector.fit(plant(600, 0))
    new = plant(60, 1)
    new[20:30] = np.nan  # the look of 8 rows is back before that of 16
    out = detector.score(new)
    known = [*range(7, 20), *range(37, 60)]
    assert np.flatnonzero(~np.isnan(out["score"])).tolist() == known
    assert out["reason"].tolist() == [
        "warm-up" if row < 7 else None if row in known else "gap" for row in range(len(out))
    ]


@pytest.mark.parametrize("stride", [1, 3, 100])
def test_with_a_stride_a_score_is_the_mean_over_every_kth_window_of_each_stretch(stride):
    settings = with_looks(window=8, gap_limit=0)
    settings = settings.override(scoring=dict(settings.scoring) | {"stride": stride})
    new = plant(70, 1)
    new[[20, 40]] = np.nan
    normal = plant(400, 0)
    detector = GraspDetector(settings, false_alarms=0.01).fit(normal)
    ending_at = GraspDetector(settings, false_alarms=0.01, align="causal").fit(normal).decision_function(new)
    expected = np.full(70, np.nan)
    for first, last in ((0, 12), (21, 32), (41, 62)):  # the windows of each stretch
        chosen = [*range(first, last, min(stride, 8)), last]
        for row in range(first, last + 8):
            expected[row] = np.mean([ending_at[start + 7] for start in set(chosen) if start <= row < start + 8])
    np.testing.assert_allclose(detector.decision_function(new), expected, rtol=1e-4, atol=1e-4)
    explanation = detector.explain(new)
    np.testing.assert_allclose(explanation.by_sensor.sum(axis=1), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(explanation.by_band.sum(axis=1), expected, rtol=1e-4, atol=1e-4)


@given(arrays(bool, st.integers(0, 60)), st.integers(1, 9), st.integers(0, 5))
def test_thinned_windows_cover_the_same_rows(whole, every, more):
    window = every + more
    chosen = thinned(whole, every)
    assert whole[chosen].all()
    every_row, kept = (
        {row for start in starts for row in range(start, start + window)}
        for starts in (np.flatnonzero(whole).tolist(), chosen.tolist())
    )
    assert every_row == kept
