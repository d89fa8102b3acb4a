"""The few that explain a lasting incident, against brute force: how unusual are the sensors that are still believed?"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.alarms.lasting import WindowMeans

WINDOW = 10


def unusual(covariance: np.ndarray, shift: np.ndarray, freed: list[int]) -> float:
    """Of the sensors that are not free, by their own covariance alone."""
    believed = [sensor for sensor in range(len(shift)) if sensor not in freed]
    return shift[believed] @ np.linalg.solve(covariance[np.ix_(believed, believed)], shift[believed])


def few_by_brute_force(covariance: np.ndarray, shift: np.ndarray) -> list[int]:
    suspects: list[int] = []
    for _ in range(min(5, len(shift) // 6)):
        pairs = combinations([sensor for sensor in range(len(shift)) if sensor not in suspects], 2)
        suspects += min(pairs, key=lambda pair: unusual(covariance, shift, [*suspects, *pair]))
    need = {sensor: unusual(covariance, shift, [other for other in suspects if other != sensor]) for sensor in suspects}
    needed = sorted(suspects, key=lambda sensor: -need[sensor])
    for count in range(1, min(4, len(needed)) + 1):
        if unusual(covariance, shift, needed[:count]) <= 0.05 * unusual(covariance, shift, []):
            return needed[:count]
    return []


def normal(seed: int, sensors: int, sources: int = 3, own: float = 0.05) -> tuple[np.ndarray, np.random.Generator]:
    """The covariance of sensors that follow a few common sources, each with a little noise of its own."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((sensors, sources))
    return mixing @ mixing.T + own * np.eye(sensors), rng


def few(covariance: np.ndarray, shift: np.ndarray, lasted: int = WINDOW) -> list[int]:
    return WindowMeans.of(WINDOW, np.zeros(len(shift)), covariance).few(7 * shift, 7, lasted)


@given(seed=st.integers(0, 10**6), sensors=st.integers(1, 33), wrong=st.integers(0, 5))
def test_few_are_those_of_brute_force(seed, sensors, wrong):
    covariance, rng = normal(seed, sensors)
    shift = rng.multivariate_normal(np.zeros(sensors), covariance)
    shift[rng.permutation(sensors)[:wrong]] += 5
    assert few(covariance, shift) == few_by_brute_force(covariance, shift)


@given(seed=st.integers(0, 10**6), size=st.floats(1e-3, 1e3))
def test_it_does_not_matter_how_strong_an_incident_is_or_how_sensors_are_ordered(seed, size):
    covariance, rng = normal(seed, 15)
    shift = rng.multivariate_normal(np.zeros(15), covariance)
    shift[[2, 7]] += 5
    named, order = few(covariance, shift), rng.permutation(15)
    assert few(covariance, size * shift) == named
    assert [int(order[sensor]) for sensor in few(covariance[np.ix_(order, order)], shift[order])] == named


def test_a_group_is_named_though_one_of_them_alone_explains_next_to_nothing():
    """Power and current say the same: to free one of them leaves the other as strange as both were."""
    covariance, rng = normal(0, 16)
    power, current = 3, 11
    covariance[current] = covariance[power]
    covariance[:, current] = covariance[:, power]
    covariance[current, current] += 1e-4
    shift = rng.multivariate_normal(np.zeros(16), covariance)
    shift[[power, current]] += 8
    alone = [unusual(covariance, shift, [sensor]) for sensor in (power, current)]
    assert min(alone) > 0.7 * unusual(covariance, shift, [])
    assert set(few(covariance, shift)) == {power, current}


def test_what_is_brief_or_takes_many_sensors_has_no_few():
    covariance, rng = normal(1, 30)
    one = rng.multivariate_normal(np.zeros(30), covariance)
    one[4] += 9
    assert few(covariance, one, lasted=WINDOW) == [4]
    assert few(covariance, one, lasted=WINDOW - 1) == []
    assert few(covariance, one + 9 * rng.standard_normal(30)) == []


def test_a_plant_as_usual_has_no_few():
    covariance, _ = normal(2, 12)
    assert few(covariance, np.zeros(12)) == []


def test_sensors_that_never_moved_are_no_obstacle():
    covariance, _ = normal(3, 12)
    covariance[5] = covariance[:, 5] = 0
    shift = np.zeros(12)
    shift[[5, 8]] = 1.0, 6.0
    assert few(covariance, shift) == [8]


def test_rows_in_a_gap_have_no_say_and_those_before_may_have():
    covariance, rng = normal(4, 12)
    values = rng.multivariate_normal(np.zeros(12), covariance, 60).astype(np.float32)
    lost = np.zeros(60, dtype=bool)
    values[20:50, 6] += 5
    values[25:30, 2], lost[25:30] = 500, True
    values[15:20, 9] += 40
    means = WindowMeans.of(WINDOW, np.zeros(12), covariance)
    assert means.few_in(values, lost, 20, 50) == [6]
    assert means.few_in(values, lost, 20, 50, reach=5)[0] == 9
    assert means.few_in(values, np.ones(60, dtype=bool), 20, 50) == []


@pytest.mark.parametrize("sensors", [1, 2, 5])
def test_someone_has_to_be_believed(sensors):
    assert few(np.eye(sensors), np.full(sensors, 9.0)) == []
