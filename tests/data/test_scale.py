import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from graspad.data.scale import Scale


@given(st.integers(2, 50), st.integers(1, 5), st.integers(0, 1000))
def test_agrees_with_scikit_learn(rows, sensors, seed):
    table = 5 + 3 * np.random.default_rng(seed).standard_normal((rows, sensors))
    expected = StandardScaler().fit_transform(table)
    np.testing.assert_allclose(Scale.of(table).apply(table), expected, rtol=1e-5, atol=1e-5)


def test_a_constant_sensor_keeps_its_unit_even_when_rounding_moves_its_mean():
    table = np.full((1000, 2), [0.1, 1e9 + 0.1])
    assert Scale.of(table).std.tolist() == [1, 1]
    assert np.abs(Scale.of(table).apply(table + 2) - 2).max() < 1e-4
