import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graspad.data.gaps import Rows

holed = arrays(
    float, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.sampled_from([1.0, 2.0, 3.0, np.nan])
)


@given(holed, st.integers(0, 4))
def test_fills_forward_up_to_the_limit_and_loses_the_rest(values, limit):
    rows = Rows.of(values, limit)
    assert np.isfinite(rows.values).all()
    for row in range(len(values)):
        lost = False
        for sensor in range(values.shape[1]):
            back = 0
            while back <= row and np.isnan(values[row - back, sensor]):
                back += 1
            seen = back <= row
            if seen:
                assert rows.values[row, sensor] == values[row - back, sensor]
            lost |= back > limit or not seen
        assert rows.lost[row] == lost
    if rows.filled is not None:
        np.testing.assert_array_equal(rows.filled, np.isnan(values))


@given(holed, st.integers(0, 3), st.integers(1, 6))
def test_whole_windows_hold_no_lost_row(values, limit, window):
    rows = Rows.of(values, limit)
    if len(values) >= window:
        expected = [not rows.lost[w : w + window].any() for w in range(len(values) - window + 1)]
        assert rows.whole_windows(window).tolist() == expected


@given(holed, st.integers(0, 3), st.data())
def test_what_comes_later_does_not_change_a_row(values, limit, data):
    end = data.draw(st.integers(1, len(values)))
    early, all_rows = Rows.of(values[:end], limit), Rows.of(values, limit)
    np.testing.assert_array_equal(early.values, all_rows.values[:end])
    np.testing.assert_array_equal(early.lost, all_rows.lost[:end])
