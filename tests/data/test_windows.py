import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.data.windows import causal, overlap, to_rows


@given(st.integers(1, 20), st.integers(1, 40), st.integers(0, 1000))
def test_overlap_is_the_mean_over_covering_windows(window, count, seed):
    values = np.random.default_rng(seed).standard_normal((count, 2))
    rows = overlap(values, window)
    assert len(rows) == count + window - 1
    for row in range(len(rows)):
        covering = [values[w] for w in range(count) if w <= row < w + window]
        np.testing.assert_allclose(rows[row], np.mean(covering, axis=0), atol=1e-12)


@given(st.integers(1, 20), st.integers(1, 40))
def test_causal_is_the_window_that_ends_at_the_row(window, count):
    rows = causal(np.arange(count, dtype=float), window)
    assert np.isnan(rows[: window - 1]).all()
    assert rows[window - 1 :].tolist() == list(range(count))


def test_a_huge_value_leaves_no_trace_in_rows_it_does_not_cover():
    values = np.ones(200)
    values[50] = 1e30
    assert (overlap(values, 10)[60:] == 1).all()


@pytest.mark.parametrize("align", ["overlap", "causal"])
def test_to_rows_gives_one_value_per_row(align):
    assert to_rows(np.zeros((11, 3, 2)), 5, align).shape == (15, 3, 2)
