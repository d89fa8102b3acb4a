import math
from dataclasses import asdict, astuple, fields

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from graspad.bench.metrics import (
    Metrics,
    evaluate,
    event_f1,
    headline,
    inflated_point_adjusted_f1,
    threshold_levels,
)
from graspad.bench.volume import vus
from graspad.errors import InputError

RANK_METRICS = ("prc", "roc", "best_f1", "vus_pr", "vus_roc")
ALARM_METRICS = ("alarm_precision", "alarm_recall", "alarm_f1", "false_alarm_rate", "events_found", "delay")


@st.composite
def series(draw, longest=40):
    """Labels with both kinds of rows, scores with ties, alarms."""
    labels = draw(st.lists(st.booleans(), min_size=2, max_size=longest).filter(lambda rows: 0 < sum(rows) < len(rows)))
    same = {"min_size": len(labels), "max_size": len(labels)}
    scores = draw(st.lists(st.integers(-6, 6), **same))
    alarms = draw(st.lists(st.booleans(), **same))
    return np.array(labels), np.array(scores, dtype=float), np.array(alarms)


def runs(flags):
    """The rows of every run of ones."""
    found = []
    for row, flag in enumerate(flags):
        if flag and row and flags[row - 1]:
            found[-1].append(row)
        elif flag:
            found.append([row])
    return found


def f1(precision, recall, eps):
    return 2 * precision * recall / (precision + recall + eps)


@given(series())
def test_headline_agrees_with_its_definitions(case):
    labels, scores, _ = case
    points = []
    for threshold in sorted(set(scores), reverse=True):
        alarms = scores >= threshold
        points.append(((labels & alarms).sum() / alarms.sum(), (labels & alarms).sum() / labels.sum()))
    previous = [0, *(recall for _, recall in points)]
    prc = sum(precision * (recall - old) for (precision, recall), old in zip(points, previous, strict=False))
    pairs = [(a > b) + (a == b) / 2 for a in scores[labels] for b in scores[~labels]]
    best_f1 = max(f1(precision, recall, 1e-5) for precision, recall in points)
    np.testing.assert_allclose(headline(labels, scores), (prc, sum(pairs) / len(pairs), best_f1))
    assert headline(labels, scores)[:2] == pytest.approx(
        (average_precision_score(labels, scores), roc_auc_score(labels, scores))
    )
    assert headline(labels, scores) == astuple(evaluate(labels, scores))[:3]


def hbos(rows, bins):
    """Histogram scores as mTSBench computes them: on the test rows, each scaled across its sensors."""
    spread = rows.std(axis=1, ddof=1, keepdims=True)
    scaled = np.where(spread > 0, (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1), 0)
    scores = np.zeros(len(rows))
    for sensor in scaled.T:
        density, edges = np.histogram(sensor, bins, density=True)
        bin_of = np.clip(np.digitize(sensor, edges, right=True) - 1, 0, bins - 1)
        scores -= np.log2(density[bin_of] + 0.1)
    return scores


def smap(folder, bins):
    """Name, labels and HBOS scores of every SMAP series."""
    for file in sorted((folder / "SMAP").glob("*_test.parquet")):
        frame = pl.read_parquet(file)
        rows = frame.drop("timestamp", "is_anomaly").to_numpy().astype(float)
        name = file.stem.removeprefix("SMAP_").removesuffix("_test")
        yield name, frame["is_anomaly"].to_numpy() == 1, hbos(rows, bins)


def test_the_papers_hbos_row_on_smap(real_data):
    judged = [headline(labels, scores) for _, labels, scores in smap(real_data, bins=5)]
    assert len(judged) == 51
    assert np.mean(judged, axis=0).round(4).tolist() == [0.1897, 0.5650, 0.2664]


def test_the_vus_pr_that_mtsbench_published_for_hbos_on_smap(real_data):
    areas = {name: vus(labels, scores)[0] for name, labels, scores in smap(real_data, bins=10)}
    published = set(areas) - {"A-7", "G-4", "R-1"}
    assert len(published) == 48
    assert np.mean([areas[name] for name in published]).round(4) == 0.1961


@given(series())
def test_levels_count_the_thresholds_below_a_score(case):
    _, scores, _ = case
    thresholds = np.linspace(scores.min(), scores.max(), 100)
    assert threshold_levels(scores).tolist() == [sum(score > t for t in thresholds) for score in scores]


@given(series())
def test_event_f1_agrees_with_its_definition(case):
    labels, scores, _ = case
    expected = []
    for threshold in np.linspace(scores.min(), scores.max(), 100):
        alarms = scores > threshold
        recall = np.mean([alarms[event].any() for event in runs(labels)])
        precision = labels[alarms].mean() if alarms.any() else 0
        expected.append(f1(precision, recall, 1e-15))
    assert event_f1(labels, threshold_levels(scores)) == pytest.approx(max(expected))


@given(series())
def test_point_adjusted_f1_agrees_with_its_definition(case):
    labels, scores, _ = case
    expected = []
    for threshold in np.linspace(scores.min(), scores.max(), 100):
        alarms = scores > threshold
        for event in runs(labels):
            alarms[event] = alarms[event].any()
        expected.append(2 * (labels & alarms).sum() / (labels.sum() + alarms.sum()))
    assert inflated_point_adjusted_f1(labels, threshold_levels(scores)) == pytest.approx(max(expected))


@pytest.mark.parametrize("metric", [event_f1, inflated_point_adjusted_f1])
@pytest.mark.parametrize("row", [0, 1, -2, -1])
def test_events_at_the_ends_of_a_series_count_whole(metric, row):
    labels = np.array([1, 1, 0, 0, 0, 1, 1], dtype=bool)
    levels = np.zeros(7, dtype=int)
    levels[row] = 1
    assert metric(labels, levels) == pytest.approx(2 / 3)


def test_point_adjustment_flatters_random_scores():
    rng = np.random.default_rng(0)
    labels = np.zeros(20_000, dtype=bool)
    labels[3_000:5_000] = True
    metrics = evaluate(labels, rng.random(20_000))
    assert metrics.best_f1 < 0.2
    assert metrics.inflated_pa_f1 > 0.9


@given(series())
def test_alarm_metrics_agree_with_their_definitions(case):
    labels, scores, alarms = case
    metrics = evaluate(labels, scores, alarms)
    rows, found = range(len(labels)), sum(labels & alarms)
    firsts = [[row - event[0] for row in event if alarms[row]][:1] for event in runs(labels)]
    delays = [first[0] for first in firsts if first]
    expected = {
        "alarm_precision": found / sum(alarms) if any(alarms) else math.nan,
        "alarm_recall": found / sum(labels),
        "alarm_f1": f1_score(labels, alarms, zero_division=0),
        "false_alarm_rate": sum(alarms[row] for row in rows if not labels[row]) / sum(~labels),
        "events_found": len(delays) / len(firsts),
        "delay": sum(delays) / len(delays) if delays else math.nan,
    }
    assert {name: getattr(metrics, name) for name in ALARM_METRICS} == pytest.approx(expected, nan_ok=True)


def test_alarm_metrics_by_hand():
    labels = np.array([0, 1, 1, 1, 0, 0, 1, 1, 0, 1])
    alarms = np.array([1, 0, 0, 1, 0, 0, 1, 1, 0, 0])
    metrics = evaluate(labels, np.zeros(10), alarms)
    assert [getattr(metrics, name) for name in ALARM_METRICS] == pytest.approx([3 / 4, 1 / 2, 3 / 5, 1 / 4, 2 / 3, 1])


@given(series())
def test_all_but_the_delay_lie_between_0_and_1(case):
    values = asdict(evaluate(*case))
    del values["delay"]
    assert all(math.isnan(value) or -1e-12 <= value <= 1 + 1e-12 for value in values.values()), values


@given(series())
def test_rank_metrics_know_only_the_order_and_no_metric_the_unit(case):
    labels, scores, _ = case
    metrics, squeezed, doubled = (evaluate(labels, s) for s in (scores, np.arctan(scores) - 3, 2 * scores))
    for name in RANK_METRICS:
        assert getattr(squeezed, name) == pytest.approx(getattr(metrics, name))
    assert astuple(doubled) == pytest.approx(astuple(metrics), nan_ok=True)


@given(series())
def test_scores_and_alarms_equal_to_the_labels_are_perfect(case):
    labels, _, _ = case
    metrics = evaluate(labels, labels.astype(float), labels)
    assert metrics.best_f1 == pytest.approx(1, abs=1e-5)
    scored = (*RANK_METRICS[:2], *RANK_METRICS[3:], "affiliation_f1", "event_f1", "inflated_pa_f1", *ALARM_METRICS[:3])
    assert [getattr(metrics, name) for name in scored] == pytest.approx([1] * len(scored))
    assert (metrics.false_alarm_rate, metrics.events_found, metrics.delay) == (0, 1, 0)


def test_without_an_anomaly_only_the_false_alarm_rate_is_defined():
    metrics = evaluate(np.zeros(4), np.arange(4.0), np.array([0, 1, 0, 0]))
    assert metrics.false_alarm_rate == 0.25
    assert sum(math.isnan(value) for value in astuple(metrics)) == len(fields(Metrics)) - 1
    assert np.isnan(headline(np.zeros(4), np.arange(4.0))).all()


def test_without_a_normal_row_roc_and_false_alarms_are_undefined():
    metrics = evaluate(np.ones(4), np.arange(4.0), np.array([0, 1, 0, 0]))
    undefined = {name for name, value in asdict(metrics).items() if math.isnan(value)}
    assert undefined == {"roc", "vus_roc", "false_alarm_rate"}
    assert (metrics.prc, metrics.vus_pr) == pytest.approx((1, 1))


def test_without_alarms_given_nothing_is_said_of_them():
    metrics = evaluate(np.array([0, 1]), np.array([0.0, 1.0]))
    assert all(math.isnan(getattr(metrics, name)) for name in ALARM_METRICS)


@pytest.mark.parametrize("value", [0.0, -3.5, np.nan, np.inf, -np.inf])
def test_constant_scores(value):
    labels = np.array([0, 1, 0, 0, 1])
    metrics = evaluate(labels, np.full(5, value))
    assert (metrics.prc, metrics.roc) == (0.4, 0.5)
    assert metrics.best_f1 == pytest.approx(f1(0.4, 1, 1e-5))
    assert (metrics.affiliation_f1, metrics.event_f1, metrics.inflated_pa_f1) == (0, 0, 0)


@given(series(), st.data())
def test_rows_without_a_score_rank_below_all_others(case, data):
    labels, scores, _ = case
    missing = np.array(data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))))
    lowest = np.where(missing, -7, scores)
    metrics, expected = evaluate(labels, np.where(missing, np.nan, scores)), evaluate(labels, lowest)
    for name in RANK_METRICS:
        assert getattr(metrics, name) == pytest.approx(getattr(expected, name))
    # Even −inf is a score.
    worst = np.where(missing, np.nan, np.where(scores == scores.min(), -np.inf, scores))
    assert headline(labels, worst) == pytest.approx(headline(labels, lowest))


@given(series(), st.data())
def test_missing_and_infinite_scores_stay_in_the_finite_range_of_the_thresholds(case, data):
    _, scores, _ = case
    kinds = st.sampled_from([0.0, np.nan, np.inf, -np.inf])
    odd = np.array(data.draw(st.lists(kinds, min_size=len(scores), max_size=len(scores)))) + scores
    finite = odd[np.isfinite(odd)]
    levels = threshold_levels(odd)
    if len(set(finite)) > 1:
        low, high = finite.min(), finite.max()
        plain = [{np.inf: high, -np.inf: low}.get(score, low if score != score else score) for score in odd]
        assert levels.tolist() == threshold_levels(np.array(plain)).tolist()
    else:
        order = [-1 if score != score else 0 if score == -np.inf else 2 if score == np.inf else 1 for score in odd]
        above = [rank > min(order) for rank in order]
        assert (levels > 0).tolist() == above


def test_infinite_scores_rank_highest_and_lowest():
    labels = np.array([1, 0, 1, 0, 0])
    scores = np.array([np.inf, 1.0, 2.0, -np.inf, 1.5])
    assert astuple(evaluate(labels, scores))[:2] == (1, 1)
    assert evaluate(labels, np.where(labels == 1, np.inf, 0.0)).event_f1 == pytest.approx(1)


def test_scores_too_far_apart_to_subtract():
    levels = threshold_levels(np.array([-1.7e308, 0.0, 1.7e308]))
    assert levels.tolist() == threshold_levels(np.array([-1.0, 0.0, 1.0])).tolist()


@pytest.mark.parametrize(
    ("labels", "scores", "alarms", "told"),
    [
        ([0, 1, 0], [0.1, 0.2], None, r"There are 3 labels, but the scores have the shape \(2,\)"),
        ([0, 1], [[0.1], [0.2]], None, r"the scores have the shape \(2, 1\)"),
        ([0, 1], [0.1, 0.2], [0], r"There are 2 labels, but the alarms have the shape \(1,\)"),
        ([0, 2], [0.1, 0.2], None, "The labels hold .*2.* Write 0 for normal rows and 1 for anomalous"),
        ([0.0, np.nan], [0.1, 0.2], None, "The labels hold .*nan"),
        (["0", "1"], [0.1, 0.2], None, "The labels hold .*'0'"),
        ([0, 1], [0.1, 0.2], [0, 3], "The alarms hold .*3"),
        ([0, 1], ["a", "b"], None, "The scores are of type .* Give one number per row"),
        ([], [], None, "at least one row"),
    ],
)
def test_what_cannot_be_judged_is_told(labels, scores, alarms, told):
    alarms = None if alarms is None else np.array(alarms)
    with pytest.raises(InputError, match=told):
        evaluate(np.array(labels), np.array(scores), alarms)
    if alarms is None:
        with pytest.raises(InputError, match=told):
            headline(np.array(labels), np.array(scores))
