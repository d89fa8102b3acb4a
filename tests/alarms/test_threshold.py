import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graspad.alarms.rate import Allowed
from graspad.alarms.spans import spans
from graspad.alarms.threshold import Threshold


def of_rows(scores, share):
    return Threshold(scores, Allowed(share, "rows"), merge=1)


def per_row(scores, share, merge=20):
    return Threshold(scores, Allowed(share, "incidents", 60.0), merge)


def smooth_noise(rows, seed, window=20):
    """Means over sliding windows of heavy-tailed noise: rows depend on each other as scores do."""
    noise = np.random.default_rng(seed).standard_t(6, rows + window - 1) ** 2
    sums = np.cumsum(np.r_[0, noise])
    return (sums[window:] - sums[:-window]) / window


def count(scores, threshold):
    return len(list(spans(threshold.alarms(scores), threshold.merge)))


@given(st.integers(10, 300), st.floats(0.1, 0.9), st.integers(0, 1000))
def test_no_more_normal_rows_alarm_than_wished(count, rate, seed):
    scores = np.random.default_rng(seed).standard_normal(count).round(1)
    threshold = of_rows(scores, rate)
    assert threshold.alarms(scores).mean() <= rate + 1e-9
    # One step lower would be too low: the rate is used up, not undercut.
    below = scores[scores < threshold.value]
    if len(below):
        assert (scores > below.max()).mean() > rate - 1e-9


@given(st.integers(5, 200), st.integers(0, 1000))
def test_p_values_count_normal_rows_that_score_as_high(count, seed):
    rng = np.random.default_rng(seed)
    normal, new = rng.standard_normal(count).round(1), rng.standard_normal(20).round(1)
    expected = [(1 + sum(n >= s for n in normal)) / (count + 1) for s in new]
    np.testing.assert_allclose(of_rows(normal, 0.5).p_values(new), expected)


def test_p_values_of_exchangeable_rows_are_valid():
    rng = np.random.default_rng(0)
    p = np.concatenate([of_rows(rng.random(99), 0.1).p_values(rng.random(1)) for _ in range(4000)])
    for level in (0.01, 0.05, 0.1, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / 4000)


def test_too_low_a_share_is_told():
    with pytest.warns(UserWarning, match=r"100 held-out rows cannot show a false-alarm rate of 0\.001.*about 0\.0099"):
        (threshold := of_rows(np.arange(100.0), 0.001)).warn_if_too_rare()
    assert threshold.value == 99


def test_rows_without_a_score_do_not_count_and_do_not_alarm():
    threshold = of_rows(np.array([np.nan, 1.0, 2.0]), 0.4)
    assert threshold.p_values(np.array([3.0])) == pytest.approx([1 / 3])
    assert threshold.alarms(np.array([np.nan, 9.0])).tolist() == [False, True]


@pytest.mark.parametrize("wished", [4, 12, 40, 150])
def test_incidents_come_as_often_as_wished(wished):
    """Calibrated on 40,000 rows, counted on 800,000 others; a mean over seeds, since one calibration is luck."""
    seen = []
    for seed in range(8):
        threshold = per_row(smooth_noise(40_000, seed), wished / 40_000)
        seen.append(count(smooth_noise(800_000, 1000 + seed), threshold) / 20)
    assert wished / 1.6 < np.mean(seen) < wished * 1.6


def test_rates_beyond_the_data_come_from_the_tail():
    """Once in twice as many rows as there are: no count can show that."""
    seen = [
        count(smooth_noise(800_000, 1000 + seed), per_row(smooth_noise(20_000, seed), 1 / 40_000)) for seed in range(12)
    ]
    assert 20 / 2.5 < np.mean(seen) < 20 * 2.5


def test_a_rate_that_the_data_cannot_support_is_told_with_the_one_it_can():
    scores = smooth_noise(10_080, 0)  # a week of minutes
    with pytest.warns(UserWarning, match=r"10080 held-out rows.*as rare as once per 10 years: .*once per 4 weeks"):
        (threshold := per_row(scores, 60 / 315_569_520)).warn_if_too_rare()
    assert threshold.value == per_row(scores, 1 / 40_320).value


def test_normal_rows_without_incidents_to_speak_of_have_their_highest_score_as_threshold():
    scores = np.tile([1.0, 2.0, 3.0], 100)
    with pytest.warns(UserWarning, match=r"300 held-out rows.*once per 300|about once per 5 hours"):
        (threshold := per_row(scores, 1e-6)).warn_if_too_rare()
    assert threshold.tail is None
    assert threshold.value == 3


@hypothesis_settings(max_examples=30)
@given(st.integers(0, 100))
def test_the_higher_a_score_the_rarer_it_is_said_to_be(seed):
    scores = smooth_noise(5000, seed)
    threshold = per_row(scores, 0.001)
    assert threshold.tail is not None
    levels = np.linspace(threshold.tail.level * 1.001, scores.max() * 1.5, 30)
    rates = [threshold.incidents_per_row(level) for level in levels]
    assert (np.diff(rates) <= 0).all()
    assert 0.0005 < threshold.incidents_per_row(threshold.value) < 0.002


def test_scores_that_overflowed_do_not_stop_the_tail():
    scores = smooth_noise(5000, 0)
    scores[[100, 101, 4000]] = np.inf
    assert np.isfinite(per_row(scores, 0.001).value)


@given(st.integers(20, 300), st.floats(0.01, 0.4), st.floats(1, 50), st.integers(0, 100))
def test_the_release_lies_below_the_threshold_and_frees_so_many_normal_rows(count, share, hold, seed):
    scores = np.random.default_rng(seed).standard_normal(count)
    threshold = of_rows(scores, share)
    release = threshold.release(hold)
    over = max((scores > threshold.value).sum(), 1)
    assert release <= threshold.value
    assert (scores > release).sum() <= max(min(hold * over, count / 2), over) + 1e-9


def test_severity_is_told_as_a_time_and_never_beyond_what_the_rows_can_show():
    threshold = per_row(smooth_noise(10_080, 0), 1 / 1440)
    assert threshold.expected(threshold.value).startswith("once per")
    assert threshold.expected(1e9) == "less than once per 4 weeks"
