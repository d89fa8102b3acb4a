import json
from itertools import groupby

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graspad.alarms.drift import Drift
from graspad.alarms.rate import Allowed
from graspad.alarms.threshold import Threshold
from graspad.errors import InputError
from graspad.simulate import normal

WINDOW = 10
DAY = 290  # rows, so that a day does not hold a whole number of anything


def scores_of(rows, seed, daily=0.0):
    """Means over sliding windows: rows depend on each other as scores do, and on the hour of the day."""
    noise = np.random.default_rng(seed).standard_exponential(rows + WINDOW - 1)
    level = 1 + daily * np.sin(2 * np.pi * np.arange(rows) / DAY)
    return np.convolve(noise, np.full(WINDOW, 1 / WINDOW), "valid") + level


def threshold_of(scores, share=0.001, merge=WINDOW):
    return Threshold(scores, Allowed(share, "rows"), merge)


def verdicts(drift, threshold, scores):
    """One at first and one every few blocks, without repetitions."""
    seen = [drift.verdict]
    for row, (score, alarm) in enumerate(zip(scores.tolist(), threshold.alarms(scores).tolist(), strict=True)):
        drift.push(score, alarm)
        if row % (5 * WINDOW) == 0:
            seen.append(drift.verdict)
    return [verdict for verdict, _ in groupby(seen)]


@pytest.fixture(scope="module")
def threshold():
    return threshold_of(scores_of(5000, seed=0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("daily", [0.0, 1.0], ids=["steady", "daily cycle"])
def test_normal_rows_stay_fine(daily, seed):
    """Ten times as long as the calibration."""
    threshold = threshold_of(scores_of(5000, seed, daily))
    new = scores_of(50_000, 100 + seed, daily)
    assert verdicts(Drift(threshold), threshold, new) == ["fine"]


def test_another_mix_of_the_same_regimes_is_fine_but_not_one_that_never_was():
    """Days of rest in the calibration, each longer than the memory is: at rest for long is nothing new."""
    at_rest = np.arange(6000) // 1500 % 2
    rested = threshold_of(scores_of(6000, 0) - 0.8 * at_rest)
    busy = threshold_of(scores_of(6000, 0))
    rest = scores_of(6000, 1) - 0.8
    assert verdicts(Drift(rested), rested, rest) == ["fine"]
    assert verdicts(Drift(busy), busy, rest) == ["fine", "recalibrate"]


def test_slow_drift_asks_for_a_new_threshold_before_a_new_model(threshold):
    new = scores_of(40_000, 1) + np.linspace(0, 1.2, 40_000)
    seen = verdicts(drift := Drift(threshold), threshold, new)
    assert seen[:2] == ["fine", "recalibrate"]
    assert seen[-1] == "refit"
    assert "alarm" not in seen
    assert "fit(normal) again" in drift.sentence


def test_drift_beyond_the_threshold_is_still_drift(threshold):
    """By and by every row alarms; what came slowly is no incident even then."""
    new = scores_of(40_000, 1) + np.linspace(0, 4, 40_000)
    seen = verdicts(Drift(threshold), threshold, new)
    assert threshold.alarms(new)[-1000:].all()
    assert seen[-1] == "refit"
    assert "alarm" not in seen


def test_higher_scores_mean_too_low_a_threshold_and_lower_ones_too_high_a_one(threshold):
    for shift, word in [(0.3, "low"), (-0.5, "high")]:
        new = scores_of(10_000, 1) + np.linspace(0, shift, 10_000)
        drift = Drift.of(threshold, new, threshold.alarms(new))
        assert drift.verdict == "recalibrate"
        assert f"threshold is too {word} now" in drift.sentence


def test_falling_scores_never_ask_for_more_than_a_new_threshold(threshold):
    slowly, at_once = np.linspace(0, -1.5, 20_000), np.full(20_000, -0.8)
    for shift in (slowly, at_once):
        seen = verdicts(Drift(threshold), threshold, scores_of(20_000, 1) + shift)
        assert set(seen) == {"fine", "recalibrate"}
        assert seen[-1] == "recalibrate"


def test_a_jump_over_the_threshold_is_an_alarm_for_as_long_as_it_lasts(threshold):
    new = scores_of(6000, 1)
    new[3000:4000] += 5
    assert verdicts(drift := Drift(threshold), threshold, new[:4000]) == ["fine", "alarm"]
    assert "of the recent rows alarm" in drift.sentence
    assert verdicts(drift, threshold, new[4000:]) == ["alarm", "fine"]


def test_a_jump_below_the_threshold_is_an_alarm_first(threshold):
    """Nothing tells an incident that stays from a new way of normal operation, but it is not called drift at once."""
    new = scores_of(20_000, 1)
    new[3000:] += 0.8
    assert threshold.alarms(new).mean() < 0.2
    seen = verdicts(Drift(threshold), threshold, new)
    assert seen[:2] == ["fine", "alarm"]
    assert seen[-1] == "refit"


def test_what_alarms_does_not_count_as_drift(threshold):
    new = scores_of(20_000, 1)
    new[::3] += 9
    drift = Drift.of(threshold, new, threshold.alarms(new))
    assert drift.verdict == "fine"
    # Rows of filled values score high, too, and raise no alarm.
    assert Drift.of(threshold, new, np.zeros(len(new), dtype=bool)).state()["memory"] == drift.state()["memory"]


def test_rows_without_a_score_are_passed_over(threshold):
    new = scores_of(1003, 1) + 0.5
    gappy = np.insert(new, np.repeat(np.arange(0, 1000, 7), 3), np.nan)
    known, with_gaps = (Drift.of(threshold, scores, threshold.alarms(scores)) for scores in (new, gappy))
    assert with_gaps.state() == known.state()
    normal_with_gaps = np.insert(threshold.normal_scores, 2000, np.full(50, np.nan))
    assert Drift(threshold_of(normal_with_gaps)).state() == Drift(threshold).state()


@hypothesis_settings(max_examples=10)
@given(st.integers(0, 3000))
def test_a_restored_state_has_the_same_future(threshold, cut):
    new = scores_of(3000, 1) + np.linspace(0, 1.5, 3000)
    whole, before = Drift(threshold), Drift(threshold)
    verdicts(before, threshold, new[:cut])
    restored = Drift(threshold)
    restored.restore(json.loads(json.dumps(before.state())))
    verdicts(whole, threshold, new[:cut])
    assert verdicts(restored, threshold, new[cut:]) == verdicts(whole, threshold, new[cut:])
    assert restored.state() == whole.state()
    assert restored.sentence == whole.sentence


@pytest.mark.parametrize("other", [threshold_of(scores_of(5000, 3)), threshold_of(scores_of(5000, 0), merge=20)])
def test_a_state_of_another_threshold_is_refused(threshold, other):
    with pytest.raises(InputError, match="belongs to another threshold"):
        Drift(threshold).restore(Drift(other).state())


def test_memory_does_not_grow_with_the_rows_new_or_normal(threshold):
    long = threshold_of(scores_of(200_000, 0))
    for calibrated in (threshold, long):
        drift = Drift(calibrated)
        verdicts(drift, calibrated, scores_of(20_000, 1))
        assert len(drift.state()["memory"]) == len(Drift(calibrated).state()["memory"]) <= 130


@pytest.mark.parametrize("rows", [1, WINDOW, 3 * WINDOW, 20 * WINDOW])
def test_few_normal_rows_cannot_show_drift_but_alarms_are_alarms(rows):
    threshold = threshold_of(scores_of(rows, 0))
    drift = Drift(threshold)
    verdicts(drift, threshold, scores_of(1000, 1) - 0.9)
    assert drift.verdict == "fine"
    assert "too few" in drift.sentence
    verdicts(drift, threshold, scores_of(1000, 1) + 5)
    assert drift.verdict == "alarm"


def test_scores_that_never_change_are_fine():
    """A third is no binary fraction: sums must be rounded alike in calibration and stream."""
    threshold = threshold_of(np.full(5000, 1 / 3))
    assert verdicts(Drift(threshold), threshold, np.full(5000, 1 / 3)) == ["fine"]


def distance_of(learnt, window=50):
    """A light score: the squared Mahalanobis distance of a row, its logarithm averaged over the rows up to it."""
    mean, deviation = learnt.mean(axis=0), learnt.std(axis=0) + 1e-3
    inverse = np.linalg.inv(np.cov(((learnt - mean) / deviation).T) + 0.1 * np.eye(learnt.shape[1]))

    def scores(values):
        z = np.clip((values - mean) / deviation, -20, 20)
        distances = np.log1p(((z @ inverse) * z).mean(axis=1))
        means = np.convolve(distances, np.full(window, 1 / window), "valid")
        return np.r_[np.full(window - 1, np.nan), means]

    return scores


def test_weeks_of_the_simulated_plant_are_fine_with_its_days_nights_and_weekends():
    values = normal(days=42, seed=11).values
    learnt, held_out, new = np.split(values, [7 * 1440, 21 * 1440])
    scores = distance_of(learnt)
    threshold = threshold_of(scores(held_out), merge=50)
    assert verdicts(Drift(threshold), threshold, scores(new)) == ["fine"]


def test_real_servers(real_data):
    """A quiet server is fine, a lifted one drifts, and one that is not itself for most of the time alarms."""

    def values(machine, split):
        frame = pl.read_parquet(real_data / "SMD" / f"SMD_{machine}_{split}.parquet")
        return frame.drop("timestamp", "is_anomaly").to_numpy().astype(float)

    learnt, held_out, new = np.array_split(values("machine-2-4", "train"), 3)
    scores = distance_of(learnt)
    threshold = threshold_of(scores(held_out), merge=50)
    assert verdicts(Drift(threshold), threshold, scores(new)) == ["fine"]
    drifting = scores(new) + np.linspace(0, 2 * np.nanstd(threshold.normal_scores), len(new))
    assert verdicts(Drift(threshold), threshold, drifting) == ["fine", "recalibrate", "refit"]

    learnt, held_out = np.array_split(values("machine-3-5", "train"), 2)
    scores = distance_of(learnt)
    threshold = threshold_of(scores(held_out), merge=50)
    new = scores(values("machine-3-5", "test"))
    assert threshold.alarms(new).mean() > 0.5
    assert verdicts(Drift(threshold), threshold, new)[:2] == ["fine", "alarm"]
