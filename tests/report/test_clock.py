import numpy as np
import pytest

from graspad.report.clock import Clock


def clock(step="60s", rows=2000):
    amount, unit = int(step[:-1].rstrip("m")), "ms" if step.endswith("ms") else step[-1]
    return Clock.of(np.datetime64("2025-06-03T00:00", "us") + np.arange(rows) * np.timedelta64(amount, unit), rows)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.25, "250 ms"), (45.0, "45 s"), (60.0, "1 min"), (61.0, "1 min 1 s"), (3599.9, "1 h"), (9e4, "1 d 1 h")],
)
def test_durations(seconds, said):
    assert clock().say(seconds) == said


def test_one_row_lasts_one_step():
    assert clock().say(clock().lasts(5, 6)) == "1 min"
    assert Clock.of(None, 9).say(Clock.of(None, 9).lasts(5, 6)) == "1 row"


def test_seconds_are_said_only_where_they_matter():
    assert clock("60s").label(1) == "2025-06-03 00:01"
    assert clock("5s").label(1) == "2025-06-03 00:00:05"
    assert clock("86400s").interval(0, 3) == "2025-06-03 – 2025-06-05"
    assert clock("86400s").interval(0, 1) == "2025-06-03"


def test_gaps_in_time_count():
    times = np.array(["2025-06-03T00:00", "2025-06-03T00:01", "2025-06-03T05:00"], dtype="datetime64[s]")
    assert Clock.of(times, 3).elapsed(0, 2) == 5 * 3600


@pytest.mark.parametrize("wrong", ["NaT", "2020-01-01"])
def test_times_that_cannot_order_rows_are_replaced_and_told(wrong):
    times = np.datetime64("2025-06-03") + np.arange(5)
    times[3] = np.datetime64(wrong)
    told = Clock.of(times, 5)
    assert told.times is None
    assert "in 1 rows" in told.note


def test_axis_is_in_milliseconds_utc():
    assert clock().axis(np.array([0, 1])) == [1748908800000.0, 1748908860000.0]
    assert clock().band(1, 2) == [1748908830000.0, 1748908890000.0]
