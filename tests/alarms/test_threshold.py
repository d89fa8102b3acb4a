import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.alarms.threshold import Threshold


@given(st.integers(10, 300), st.floats(0.1, 0.9), st.integers(0, 1000))
def test_no_more_normal_rows_alarm_than_wished(count, rate, seed):
    scores = np.random.default_rng(seed).standard_normal(count).round(1)
    threshold = Threshold.of(scores, rate)
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
    np.testing.assert_allclose(Threshold.of(normal, 0.5).p_values(new), expected)


def test_p_values_of_exchangeable_rows_are_valid():
    rng = np.random.default_rng(0)
    p = np.concatenate([Threshold.of(rng.random(99), 0.1).p_values(rng.random(1)) for _ in range(4000)])
    for level in (0.01, 0.05, 0.1, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / 4000)


def test_too_low_a_rate_is_told():
    with pytest.warns(UserWarning, match=r"100 held-out rows cannot show a false-alarm rate of 0\.001.*about 0\.0099"):
        threshold = Threshold.of(np.arange(100.0), 0.001)
    assert threshold.value == 99


def test_rows_without_a_score_do_not_count_and_do_not_alarm():
    threshold = Threshold.of(np.array([np.nan, 1.0, 2.0]), 0.4)
    assert len(threshold.normal_scores) == 2
    assert threshold.alarms(np.array([np.nan, 9.0])).tolist() == [False, True]
