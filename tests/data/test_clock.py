"""Times of single rows and of periods."""

import datetime

import numpy as np
import pandas as pd
import pytest

from graspad.data.clock import read_time
from graspad.data.table import check_period, read_period
from graspad.errors import InputError


@pytest.mark.parametrize(
    ("time", "read"),
    [
        ("2026-01-05 10:30:00", np.datetime64("2026-01-05T10:30:00")),
        ("2026-01-05T10:30:00.123456789", np.datetime64("2026-01-05T10:30:00.123456789")),
        (datetime.datetime(2026, 1, 5, 10, 30), np.datetime64("2026-01-05T10:30:00")),
        (pd.Timestamp("2026-01-05T10:30", tz="Asia/Tokyo"), np.datetime64("2026-01-05T01:30:00")),
        (1_769_934_000_000_000_001, 1_769_934_000_000_000_001),
        (np.int64(7), 7),
        (0.5, 0.5),
    ],
)
def test_times_are_read_as_they_are_written(time, read):
    assert read_time(time) == read
    assert isinstance(read_time(time), type(read))


@pytest.mark.parametrize("time", [pd.NaT, np.datetime64("NaT"), np.nan, np.inf, True, "soon"])
def test_what_is_no_time_is_refused(time):
    with pytest.raises(InputError, match="time"):
        read_time(time)


def test_a_day_at_the_end_of_a_period_counts_as_a_whole():
    first, last = read_period("2026-01-05/2026-01-05", dated=True)
    assert first <= np.datetime64("2026-01-05T00:00") < np.datetime64("2026-01-05T23:59:59") <= last
    assert last < np.datetime64("2026-01-06")


def test_a_zone_is_turned_into_utc():
    first, last = read_period("2026-01-05T10:00+05:00/2026-01-05T12:00+05:00", dated=True)
    assert (first, last) == (np.datetime64("2026-01-05T05:00"), np.datetime64("2026-01-05T07:00"))


def test_a_period_is_of_times_or_of_rows():
    check_period("500/620")
    check_period(("2026-01-05", "2026-01-06"))
    for wrong in ("monday", "7/3", "2026-01-06/2026-01-05", None):
        with pytest.raises(InputError, match="cannot be read"):
            check_period(wrong)
