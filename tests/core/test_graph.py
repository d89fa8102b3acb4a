import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csgraph

from graspad.core import graph
from graspad.core.spectrum import Spectrum
from graspad.data.scale import Scale
from graspad.errors import InputError

SENSORS = ["flow", "level", "pump"]
tables = arrays(float, st.tuples(st.integers(5, 30), st.integers(2, 7)), elements=st.floats(-100, 100, width=32))


@given(tables)
def test_follows_the_formula_pair_by_pair(rows):
    """The paper's formula, written out with loops."""
    n = rows.shape[1]
    distances = [
        [np.sqrt(sum((rows[r, i] - rows[r, j]) ** 2 for r in range(len(rows)))) for j in range(n)] for i in range(n)
    ]
    flat = [d for line in distances for d in line]
    mean = sum(flat) / n**2
    iota = np.sqrt(sum((d - mean) ** 2 for d in flat) / n**2)
    adjacency = graph.from_data(rows)
    for i in range(n):
        for j in range(n):
            weight = np.exp(-((distances[i][j] / iota) ** 2)) if iota > 0 else 1.0
            if abs(weight - 0.5) > 1e-9:
                assert adjacency[i, j] == (i != j and weight >= 0.5)


@given(tables, st.integers(1, 3))
def test_constant_sensors_are_linked_with_each_other_and_no_one_else(rows, constants):
    table = np.concatenate([rows, np.tile(np.arange(constants) * 7.0, (len(rows), 1))], axis=1)
    scaled = Scale.of(table).apply(table).astype(float)
    moved = np.ptp(scaled, axis=0) > 0
    adjacency = graph.from_data(scaled)
    assert not adjacency[np.ix_(moved, ~moved)].any()
    if moved.any():
        assert graph.count_edges(adjacency[np.ix_(~moved, ~moved)]) == (~moved).sum() * ((~moved).sum() - 1) // 2


def test_one_sensor_has_no_edges_and_a_linear_path():
    adjacency = graph.from_data(np.arange(10.0)[:, None])
    assert adjacency.tolist() == [[False]]
    assert Spectrum.of(adjacency).eigenvalues.tolist() == [0]


def test_identical_sensors_are_all_linked():
    assert graph.count_edges(graph.from_data(np.tile(np.arange(10.0)[:, None], (1, 4)))) == 6


@given(st.integers(2, 12), st.data())
def test_random_graph_has_the_wished_number_of_edges(n, data):
    edges = data.draw(st.integers(0, n * (n - 1) // 2))
    seed = data.draw(st.integers(0, 1000))
    adjacency = graph.erdos_renyi(n, edges, seed)
    assert graph.count_edges(adjacency) == edges
    assert np.array_equal(adjacency, adjacency.T)
    assert not adjacency.diagonal().any()
    assert np.array_equal(adjacency, graph.erdos_renyi(n, edges, seed))


@given(st.integers(1, 10), st.floats(0, 1), st.integers(0, 1000))
def test_spectrum_counts_components_and_stays_in_range(n, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, k=1)
    adjacency = upper | upper.T
    spectrum = Spectrum.of(adjacency)
    reach = np.linalg.matrix_power(adjacency.astype(float) + np.eye(n), n) > 0
    components = len({tuple(line) for line in reach})
    assert (spectrum.eigenvalues < 1e-9).sum() == components
    assert spectrum.eigenvalues.max() <= 2
    rebuilt = spectrum.filter(spectrum.eigenvalues).numpy()
    np.testing.assert_allclose(rebuilt, graph.laplacian(adjacency), atol=1e-12)


@given(st.integers(1, 10), st.floats(0, 1), st.integers(0, 1000))
def test_laplacian_agrees_with_scipy(n, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, k=1)
    adjacency = upper | upper.T
    expected = csgraph.laplacian(adjacency.astype(float), normed=True)
    np.testing.assert_allclose(graph.laplacian(adjacency), expected, atol=1e-12)


def test_own_graph_by_matrix_and_by_names():
    matrix = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 0]])
    by_matrix = graph.from_user(matrix, SENSORS)
    by_names = graph.from_user([("pump", "flow"), ("flow", "pump")], SENSORS)
    assert np.array_equal(by_matrix, by_names)
    assert not by_matrix.diagonal().any()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.zeros((2, 2)), r"shape \(2, 2\), but there are 3 sensors"),
        (np.full((3, 3), 0.4), "only 0 and 1"),
        (np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]), "symmetric"),
        ([("pump", "valve")], "'valve', which is not a sensor"),
        ([("pump",)], r"pair of sensor names, such as"),
        ("pump-flow", "Got str"),
        (7, "Got int"),
    ],
)
def test_wrong_graphs_are_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        graph.from_user(wrong, SENSORS)
