import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.alarms.rate import Allowed, once_per, seconds
from graspad.errors import InputError, InvalidSettingError


@pytest.mark.parametrize(
    ("wish", "interval", "share"),
    [
        ("1/week", 60.0, 1 / 10_080),
        ("3/day", 1.0, 3 / 86_400),
        (" 0.5 per hour ", 10.0, 0.5 / 360),
        ("2 / Months", 3600.0, 2 * 3600 / 2_629_746),
        ("1/min", 0.1, 1 / 600),
    ],
)
def test_wishes_are_read(wish, interval, share):
    allowed = Allowed.wished(wish, interval)
    assert allowed.of == "incidents"
    assert allowed.share == pytest.approx(share)


@pytest.mark.parametrize("wish", ["often", "1/fortnight", "-1/week", "0/day", "1", "/week", 0, 1, 1.5, True, None])
def test_other_wishes_are_refused(wish):
    with pytest.raises(InvalidSettingError, match=r"'false_alarms' parameter must be a share of the rows .* '1/week'"):
        Allowed.wished(wish, 60.0)


def test_a_rate_in_time_asks_for_the_time_between_rows():
    with pytest.raises(InputError, match=r"no timestamps\. Give interval='1min'"):
        Allowed.wished("1/week", None)


def test_a_rate_above_that_of_the_rows_is_refused():
    with pytest.raises(InvalidSettingError, match="rarer than the rows, one in 3600 s"):
        Allowed.wished("2/hour", 3600.0)


@pytest.mark.parametrize("interval", ["soon", "5 fortnights", "-1s", 0, -1, float("nan"), float("inf"), True, None])
def test_an_interval_that_is_none_is_refused(interval):
    with pytest.raises(InvalidSettingError, match="'interval' parameter must be the time from row to row"):
        seconds(interval)


@given(st.floats(200, 1e9), st.floats(0.01, 86_400))
def test_words_for_a_rate_mean_that_rate(rows, interval):
    *number, unit = once_per(rows, interval).removeprefix("once per ").split()
    count = number[0] if number else 1
    assert float(count) >= 1
    assert float(count) * seconds(f"1 {unit}") == pytest.approx(
        rows * interval, rel=0.06, abs=np.inf if rows < 2 else 0
    )
