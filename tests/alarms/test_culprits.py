import numpy as np
import pytest

from graspad.alarms.culprits import BEFORE, Course, blame, course_left, ranked


def test_the_way_from_the_course_is_measured_by_what_the_sensor_did_just_before():
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.full(300, 2.0), 3 * rng.standard_normal(300), rng.standard_normal(300)])
    rows[250:260] += [1.0, 1.0, 0.0]
    left = course_left(rows, np.zeros(300, dtype=bool), 250, 260)
    # The first stood still, so that one spread is far for it.
    assert left[0] == pytest.approx(1 / 0.1)
    before = rows[250 - BEFORE : 250]
    expected = np.abs(rows[250:260] - np.median(before, axis=0)).max(axis=0) / (before.std(axis=0) + 0.1)
    np.testing.assert_allclose(left, expected)


def test_rows_in_a_gap_have_no_say():
    rows = np.zeros((300, 2))
    lost = np.zeros(300, dtype=bool)
    rows[240:245, 0], lost[240:245] = 50.0, True
    rows[252, 0], lost[252] = 70.0, True
    rows[255, 1] = 1.0
    assert course_left(rows, lost, 250, 260) == pytest.approx([0, 10])


def test_with_next_to_nothing_before_normal_operation_is_the_course():
    course = Course.of(np.full((3, 2), 7.0))
    assert course.left(np.array([[2.2, -1.1]])) == pytest.approx([2, 1])
    assert Course.of(np.zeros((50, 2))).left(np.zeros((0, 2))).tolist() == [0, 0]


def test_blame_needs_both_a_surprise_and_a_move():
    # A sensor that follows the plant, one that is merely linked, the culprit.
    shares, left = np.array([0.01, 0.5, 0.49]), np.array([9.0, 1.0, 9.0])
    assert blame(shares, left).argmax() == 2


def test_a_sensor_that_is_somewhere_else_needs_a_share_too():
    """A pump that was off and runs now has gone far, but nobody is surprised by it."""
    assert blame(np.array([0.001, 0.4]), np.array([400.0, 6.0])).argmax() == 1


def test_the_few_that_explain_an_incident_are_named_before_all_others():
    shares, left = np.array([0.1, 0.5, 0.3, 0.1]), np.array([9.0, 9.0, 9.0, 8.0])
    named = ranked(("a", "b", "c", "d"), shares, left, few=[3, 1])
    assert named == (("d", 0.1), ("b", 0.5), ("c", 0.3), ("a", 0.1))
