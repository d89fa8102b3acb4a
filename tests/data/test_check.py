import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from doctor import NAMES, ROWS, TIMES, changed, healthy, only
from graspad import simulate
from graspad.config import RECIPE
from graspad.data.check import Finding, check, check_shift


def test_a_healthy_table_has_no_findings():
    assert check(healthy(), NAMES, TIMES) == []
    assert check_shift(healthy(), healthy(seed=1), NAMES) == []


# --- the table as a whole ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", range(40, 60))
def test_too_few_rows_is_told_exactly_when_fit_would_refuse(rows):
    cut = round(rows * (1 - RECIPE.training.validation_share))
    refused = rows - cut < 10
    findings = [finding for finding in check(healthy(rows), NAMES, window=10) if finding.topic == "rows"]
    assert [finding.level for finding in findings] == ["error"] * refused
    assert all(f"There are {rows} rows, but 51 are needed" in finding.message for finding in findings)


def test_no_sensor_and_one_sensor():
    assert only(check(np.empty((ROWS, 0)), ()), "error", "sensors").sensor is None
    assert only(check(healthy()[:, :1], ("a",)), "note", "sensors").sensor == "a"


def test_no_rows_at_all_is_one_trouble():
    only(check(np.empty((0, 3)), NAMES), "error", "rows")


def swapped(times):
    times[[300, 301]] = times[[301, 300]]


def repeated(times):
    times[500:] -= np.timedelta64(60, "s")


def unknown(times):
    times[7] = np.datetime64("NaT")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (swapped, r"^The time in row 301 \(2025-01-01T05:00:00\) is earlier .* \(1 in all\); sort"),
        (repeated, r"^The time in row 500 \(2025-01-01T08:19:00\) is the same .* \(1 in all\)"),
        (unknown, "^The time in row 7 is missing"),
    ],
)
def test_times_out_of_order_are_errors(spoil, told):
    times = TIMES.copy()
    spoil(times)
    assert re.search(told, only(check(healthy(), NAMES, times), "error", "sampling").message)


@pytest.mark.parametrize(("hole", "level"), [(180, "note"), (3600, "warning")])
def test_a_hole_in_the_times(hole, level):
    times = TIMES.copy()
    times[400:] += np.timedelta64(hole, "s")
    finding = only(check(healthy(), NAMES, times), level, "sampling")
    assert (
        f"60 s apart, but 1 of 999 intervals differ, the longest being {hole + 60} s after row 399" in finding.message
    )


def test_irregular_sampling_is_a_warning_but_jitter_is_not():
    rng = np.random.default_rng(0)
    jitter, uneven = (TIMES + rng.integers(0, width, ROWS) * np.timedelta64(1, "s") for width in (4, 50))
    assert check(healthy(), NAMES, jitter) == []
    only(check(healthy(), NAMES, uneven), "warning", "sampling")


def test_constant_sensors_are_one_note():
    finding = only(check(changed(slice(None), 7.0), NAMES), "note", "constant")
    assert (finding.sensor, "'b'" in finding.message) == ("b", True)
    finding = only(check(np.hstack([healthy(), np.full((ROWS, 2), 0.1)]), (*NAMES, "d", "e")), "note", "constant")
    assert (finding.sensor, "2 of 5 sensors never move: 'd', 'e'" in finding.message) == (None, True)


def test_a_sensor_that_wakes_up_in_the_held_out_rows():
    finding = only(check(changed(slice(850), 10.0), NAMES), "warning", "constant")
    assert "'b' first moves in row 850" in finding.message
    assert "first 800 rows" in finding.message


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x,
        lambda x: 32 + 1.8 * x,
        lambda x: -x,
        lambda x: np.round(x, 2),
        lambda x: np.where(x > 10.2, x, np.nan),
    ],
    ids=["identical", "unit", "sign", "rounded", "with gaps"],
)
def test_copies_are_found(copy):
    values = np.column_stack([healthy(), copy(healthy()[:, 2])])
    findings = [finding for finding in check(values, (*NAMES, "d")) if finding.topic == "duplicate"]
    finding = only(findings, "warning", "duplicate")
    assert finding.message.startswith("Sensor 'c' is repeated, up to unit and offset, by 'd': ")


def test_sensors_that_only_resemble_each_other_are_no_copies():
    rng = np.random.default_rng(3)
    values = healthy()
    alike = values[:, 2] + 0.02 * rng.standard_normal(ROWS)
    assert np.corrcoef(values[:, 2], alike)[0, 1] > 0.999
    assert check(np.column_stack([values, alike]), (*NAMES, "d")) == []


def test_one_great_move_shared_by_two_sensors_does_not_make_them_copies():
    values = healthy()
    values[500:502] = 1e6
    assert np.corrcoef(values.T).min() > 1 - 1e-6
    assert not [finding for finding in check(values, NAMES) if finding.topic == "duplicate"]


def test_switches_that_agree_are_only_noted():
    switch = (np.arange(ROWS) % 100 > 40).astype(float)
    only(check(np.column_stack([healthy(), switch, 1 - switch]), (*NAMES, "d", "e")), "note", "duplicate")


def test_switches_that_agree_are_compared_where_they_move():
    values = np.hstack([healthy(10_000), np.zeros((10_000, 2))])
    values[4321, 3:] = 1
    only(check(values, (*NAMES, "d", "e")), "note", "duplicate")


# --- one sensor -------------------------------------------------------------------------------------------------------


def test_a_sensor_without_values_to_learn_from_is_an_error():
    assert "no value at all" in only(check(changed(slice(None), np.nan), NAMES), "error", "missing").message
    assert "first 800 rows" in only(check(changed(slice(800), np.nan), NAMES), "error", "missing").message
    findings = check(changed(slice(799), np.nan), NAMES)
    assert "missing" not in [finding.topic for finding in findings]


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_an_error(value):
    finding = only(check(changed([40, 41], value), NAMES, TIMES), "error", "infinite")
    assert "'b' is infinite in 2 rows, first in row 40 (2025-01-01T00:40:00)" in finding.message


def test_values_too_large_to_square_are_an_error():
    assert "row 40" in only(check(changed(40, 1e200), NAMES), "error", "range").message


@pytest.mark.parametrize(("length", "level"), [(5, "note"), (6, "warning")])
def test_gaps_against_the_limit(length, level):
    finding = only(check(changed([*range(100, 100 + length), 500], np.nan), NAMES), level, "gap")
    assert (
        f"'b' lacks {length + 1} of 1,000 values in 2 gaps, the longest of {length} rows from row 100"
        in finding.message
    )
    assert ("1 gap get no score" in finding.message) == (level == "warning")
    only(check(changed([*range(100, 100 + length), 500], np.nan), NAMES, gap_limit=length), "note", "gap")


def test_a_gap_at_the_start_cannot_be_filled_forward():
    only(check(changed([0], np.nan), NAMES), "warning", "gap")


@pytest.mark.parametrize(("every", "level"), [(56, "warning"), (55, "error")])
def test_gaps_of_all_sensors_together_can_leave_too_few_windows(every, level):
    values = healthy()
    for number, row in enumerate(range(0, ROWS, every)):
        values[row : row + 11, number % 3] = np.nan  # of which 5 can be filled
    findings = check(values, NAMES)
    assert (findings[0].level, findings[0].topic, findings[0].sensor) == (level, "gap", None)
    assert ("Only 0 of 902 windows" in findings[0].message) == (level == "error")


def test_a_stuck_stretch_of_a_moving_sensor():
    finding = only(check(changed(slice(300, 400), 10.5), NAMES), "warning", "stuck")
    assert finding.sensor == "b"
    assert "repeats 10.5 for 100 rows from row 300, but else for at most 1 row" in finding.message


def test_two_stuck_stretches_are_one_finding():
    values = changed(slice(300, 400), 10.5)
    values[600:640, 1] = 11.5
    assert "one of 2 such stretches" in only(check(values, NAMES), "warning", "stuck").message


def test_rest_at_the_end_of_the_range_is_only_noted_and_repeated_rest_is_usual():
    values = changed(slice(300, 400), 0.0)
    only(check(values, NAMES), "note", "stuck")
    values[600:700, 1] = 0.0
    assert check(values, NAMES) == []


@pytest.mark.parametrize(
    "signal",
    [
        lambda rows, rng: (rows // 100) % 2,
        lambda rows, rng: (rows > 700) * 1.0,
        lambda rows, rng: (rows == 300) * 1.0,
        lambda rows, rng: np.cumsum(rng.random(len(rows)) < 0.02),
        lambda rows, rng: np.round(3 * np.sin(rows / 40)),
        lambda rows, rng: np.round(2 * np.sin(rows / 40) + 0.3 * rng.standard_normal(len(rows))),
        lambda rows, rng: (rng.random(len(rows)) < 0.5) * 1.0,
        lambda rows, rng: rng.standard_normal(len(rows))[
            np.where(rows % 100 < 10 + rows // 25, rows - rows % 100, rows)
        ],
        lambda rows, rng: np.maximum(rng.standard_normal(len(rows)), 0),
        lambda rows, rng: rng.standard_t(3, len(rows)),
        lambda rows, rng: (rows > 400) * 20 + rng.standard_normal(len(rows)),
    ],
    ids=[
        "switch",
        "step",
        "pulse",
        "counter",
        "coarse",
        "coarse noise",
        "coin",
        "holds",
        "clipped",
        "heavy tails",
        "new level",
    ],
)
def test_other_habits_are_neither_stuck_nor_jumps(signal):
    rows = np.arange(ROWS)
    values = np.column_stack([healthy(), signal(rows, np.random.default_rng(5)).astype(float)])
    assert not [finding for finding in check(values, (*NAMES, "d")) if finding.topic in ("stuck", "jump")]


@pytest.mark.parametrize("length", [1, 3, 6])
def test_jumps_are_counted(length):
    places = [row + offset for row in (200, 700) for offset in range(length)]
    finding = only(check(changed(places, 40.0), NAMES), "warning", "jump")
    assert finding.sensor == "b"
    assert "jumps 2 times for a few rows, first in row 200, by up to 3" in finding.message


def test_a_jump_that_fades_counts_once():
    assert "jumps 1 time " in only(check(changed([200, 201, 202], [60, 45, 30]), NAMES), "warning", "jump").message


def test_an_excursion_that_lasts_is_no_jump():
    assert check(changed(slice(200, 230), 40 + healthy()[200:230, 1]), NAMES) == []


def test_places_are_told_in_rows_of_the_table_although_values_are_missing_before():
    values = changed([10, 20, 30], np.nan)
    values[500, 1] = 40.0
    assert "first in row 500" in check(values, NAMES)[0].message


def test_a_number_that_stands_for_missing_is_told_and_not_called_a_jump():
    finding = only(check(changed([50, 60], -999), NAMES), "warning", "range")
    assert "'b' is -999 in 2 rows, first in row 50" in finding.message
    wide = healthy() * 60
    wide[50, 1] = 999
    assert not [finding for finding in check(wide, NAMES) if finding.topic == "range"]


# --- order, the simulated plant, anything at all ----------------------------------------------------------------------


def test_errors_come_first_then_warnings_then_notes():
    values = np.hstack([healthy(), healthy(seed=1)])
    values[10, 5], values[20:40, 3], values[300:500, 4], values[:, 0] = np.inf, np.nan, 10.5, 0
    topics = [(finding.level, finding.topic) for finding in check(values, "abcdef")]
    assert topics == [("error", "infinite"), ("warning", "gap"), ("warning", "stuck"), ("note", "constant")]


@pytest.mark.parametrize(("days", "interval"), [(14, 60), (3, 60), (20, 600)])
def test_the_healthy_plant_has_no_findings(days, interval):
    for run in (simulate.normal(days, interval_seconds=interval), simulate.faulty(days, 2, interval, kinds=())):
        assert check(run.values, run.sensors, run.timestamps) == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_the_stuck_sensor_of_the_faulty_plant_is_found(seed):
    run = simulate.faulty(days=3, seed=seed, kinds=["stuck"])
    finding = only(check(run.values, run.sensors, run.timestamps), "warning", "stuck")
    assert (finding.sensor,) == run.faults[0].sensors
    assert f"from row {run.faults[0].start - 1} " in finding.message


def test_the_spike_of_the_faulty_plant_is_found_where_it_stands_out():
    found = 0
    for seed in range(1, 8):
        run = simulate.faulty(days=3, seed=seed, kinds=["spike"])
        fault = run.faults[0]
        column = run.sensors.index(fault.sensors[0])
        usual = np.abs(np.diff(simulate.faulty(days=3, seed=seed, kinds=()).values[:, column])).max()
        findings = check(run.values, run.sensors, run.timestamps)
        if np.ptp(run.values[fault.start - 1 : fault.start + 1, column]) > 5 * usual:
            assert only(findings, "warning", "jump").sensor == fault.sensors[0]
            assert f"first in row {fault.start} " in findings[0].message
            found += 1
    assert found >= 3


@given(st.data(), array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=120))
def test_any_table_is_examined_without_a_crash(data, shape):
    rows, columns = shape[0], shape[1] % 5
    numbers = st.one_of(st.floats(width=64), st.sampled_from([0.0, 1.0, np.nan, np.inf, -999.0, 1e100, 5e-324]))
    values = data.draw(arrays(np.float64, (rows, columns), elements=numbers))
    times = data.draw(
        st.none() | arrays("M8[s]", rows, elements=st.integers(-(10**9), 10**9).map(np.datetime64("1970", "s").__add__))
    )
    names = [f"s{column}" for column in range(columns)]
    window = data.draw(st.integers(2, 20))
    findings = check(values, names, times, window=window, gap_limit=data.draw(st.integers(0, 5)))
    findings += check_shift(values, values[::-1], names, window=window)
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.message.endswith(".")
        assert finding.sensor is None or repr(finding.sensor) in finding.message


@given(st.integers(100, 800), st.integers(25, 100), st.floats(-1e4, 1e4), st.floats(1e-6, 1e6))
def test_findings_do_not_depend_on_unit_and_offset(start, length, offset, unit):
    values = changed(slice(start, start + length), 10.5)
    findings = check((values + offset) * unit, NAMES)
    assert [(finding.topic, finding.sensor) for finding in findings] == [("stuck", "b")]
