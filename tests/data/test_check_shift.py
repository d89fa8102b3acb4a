"""The data doctor on two tables: what has shifted between the rows to learn from and the rows to score."""

import numpy as np

from doctor import NAMES, changed, healthy, only
from graspad.data.check import check_shift


def test_a_shifted_sensor_is_told_and_the_worst_comes_first():
    new = healthy(seed=1) + np.array([0, 5, 50])
    findings = check_shift(healthy(), new, NAMES)
    assert [(finding.level, finding.topic, finding.sensor) for finding in findings] == [
        ("warning", "shift", "c"),
        ("warning", "shift", "b"),
    ]
    assert "in 100% of the rows to score" in findings[0].message


def test_a_few_rows_out_of_range_are_no_shift():
    new = healthy(seed=1)
    new[:90, 1] = 40
    assert check_shift(healthy(), new, NAMES) == []
    new[:110, 1] = 40
    only(check_shift(healthy(), new, NAMES), "warning", "shift")


def test_a_new_level_within_the_range_is_a_shift_if_it_was_rare():
    old = changed([7], 100.0)
    assert check_shift(old, healthy(seed=1), NAMES) == []
    finding = only(check_shift(old, healthy(seed=1) + np.array([0, 5, 0]), NAMES), "warning", "shift")
    assert "'b' has a median of 15.05 in the rows to score against 10.03" in finding.message
    assert "to 100 in 0% of the rows" in finding.message


def test_many_shifted_sensors_are_summed_up():
    many = [f"s{number}" for number in range(10)]
    old = np.tile(healthy()[:, :1], 10)
    findings = check_shift(old, old + np.arange(10, 20), many)
    assert [finding.sensor for finding in findings] == ["s9", "s8", "s7", None]
    assert findings[-1].message.startswith("And 7 more sensors with the same trouble (shift): 's6', 's5'")


def test_sensors_are_matched_by_name():
    old, new = healthy(), healthy(seed=1)
    assert check_shift(old, new[:, ::-1], NAMES, NAMES[::-1]) == []
    findings = check_shift(old, new, NAMES, ("a", "x", "c"))
    assert [(finding.level, finding.topic, finding.sensor) for finding in findings] == [
        ("error", "sensors", "b"),
        ("error", "sensors", "x"),
    ]


def test_a_sensor_that_wakes_up_or_falls_asleep():
    asleep = changed(slice(None), 10.0)
    awake = asleep.copy()
    awake[5, 1] = 11.0
    assert only(check_shift(asleep, awake, NAMES), "note", "shift").sensor == "b"
    assert only(check_shift(asleep, healthy(seed=1), NAMES), "warning", "shift").sensor == "b"
    assert check_shift(asleep, asleep, NAMES) == []
    assert only(check_shift(healthy(), asleep, NAMES), "warning", "stuck").sensor == "b"


def test_too_few_rows_to_score():
    only(check_shift(healthy(), healthy(49), NAMES), "error", "rows")
    assert check_shift(healthy(), healthy()[:50], NAMES, window=50) == check_shift(healthy(), healthy()[:50], NAMES)
