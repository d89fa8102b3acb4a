import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.report.layout import LINE, WIDTH, place


def random_graph(sensors, density, seed):
    links = np.triu(np.random.default_rng(seed).random((sensors, sensors)) < density, k=1)
    return links | links.T


@given(st.integers(2, 50), st.floats(0, 1), st.integers(0, 100), st.floats(20, 90))
def test_all_nodes_lie_on_the_canvas_and_apart(sensors, density, seed, width):
    layout = place(random_graph(sensors, density, seed), np.full(sensors, width))
    assert np.isfinite(layout.points).all()
    assert (layout.points >= 0).all()
    assert (layout.points <= [WIDTH, layout.height]).all()
    gaps = np.abs(layout.points[:, None] - layout.points[None])
    covered = ((gaps < [0.8 * width, 0.5 * LINE]).all(axis=2) & ~np.eye(sensors, dtype=bool)).sum() / 2
    assert covered <= sensors / 10


def test_same_graph_same_picture():
    graph = random_graph(30, 0.1, 0)
    widths = np.full(30, 50.0)
    np.testing.assert_array_equal(place(graph, widths).points, place(graph, widths).points)


def test_linked_sensors_are_near_and_lone_ones_beneath():
    graph = np.zeros((9, 9), dtype=bool)
    graph[:4, :4] = graph[4:8, 4:8] = True
    graph &= ~np.eye(9, dtype=bool)
    points = place(graph, np.full(9, 40.0)).points
    between = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert between[:4, :4].max() < between[:4, 4:8].max()
    assert points[8, 1] > points[:8, 1].max()


@pytest.mark.parametrize("graph", [np.zeros((1, 1), bool), np.zeros((7, 7), bool), ~np.eye(25, dtype=bool)])
def test_extreme_graphs(graph):
    assert np.isfinite(place(graph, np.full(len(graph), 60.0)).points).all()
