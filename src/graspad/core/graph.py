"""The sensor graph G: which sensors behave alike in normal operation (paper, Experiments, first paragraph)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.spatial.distance import pdist, squareform

from graspad.errors import InputError

Adjacency = Bool[ndarray, "sensor sensor"]


def from_data(rows: Float[ndarray, "row sensor"], edge_threshold: float = 0.5) -> Adjacency:
    """Link sensors whose scaled training signals are close: exp(−(υ_ij/ι)²) ≥ threshold, ι = std(Υ).

    Υ holds the Euclidean distances between the sensors' whole training signals and ι is taken over all its entries,
    the zero diagonal included, as the formula says. On z-scored rows a constant sensor is at distance √rows from every
    sensor that moved, and ι ≤ √rows: at any threshold above 1/e, constant sensors are linked with each other and no one
    else.

    >>> t = np.linspace(0, 20, 400)
    >>> from_data(np.stack([np.sin(t), np.sin(t), np.cos(3 * t), np.cos(7 * t)], axis=1)).astype(int)
    array([[0, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 0, 0],
           [0, 0, 0, 0]])
    """
    if rows.shape[1] < 2:
        return np.zeros((rows.shape[1], rows.shape[1]), dtype=bool)
    distances = squareform(pdist(rows.T))
    iota = distances.std()
    # ι = 0 only when all sensors are the same signal; every weight is then exp(0) = 1.
    weights = np.exp(-np.square(distances / iota)) if iota > 0 else np.ones_like(distances)
    return _without_loops(weights >= edge_threshold)


def from_user(graph: object, sensors: Sequence[str]) -> Adjacency:
    """The user's own graph: an adjacency matrix in the order of the sensors, or pairs of sensor names.

    >>> from_user([("pump", "flow")], ["flow", "level", "pump"]).astype(int)
    array([[0, 0, 1],
           [0, 0, 0],
           [1, 0, 0]])
    """
    if hasattr(graph, "__array__"):
        return _from_matrix(np.asarray(graph), len(sensors))
    if isinstance(graph, Iterable) and not isinstance(graph, str | bytes):
        return _from_edges(list(graph), sensors)
    raise InputError(
        "The graph must be an adjacency matrix (array) or a list of pairs of sensor names, "
        f'such as [("pump", "flow")]. Got {type(graph).__name__}.'
    )


def erdos_renyi(n_sensors: int, n_edges: int, seed: int) -> Adjacency:
    """A graph with `n_edges` edges placed uniformly at random: the ablation GRASP-ER (G(n, M), same sparsity)."""
    pairs = np.stack(np.triu_indices(n_sensors, k=1))
    chosen = np.random.default_rng(seed).choice(pairs.shape[1], size=n_edges, replace=False)
    adjacency = np.zeros((n_sensors, n_sensors), dtype=bool)
    adjacency[tuple(pairs[:, chosen])] = True
    return adjacency | adjacency.T


def count_edges(adjacency: Adjacency) -> int:
    """Number of undirected edges."""
    return int(np.triu(adjacency, k=1).sum())


def laplacian(adjacency: Adjacency) -> Float[ndarray, "sensor sensor"]:
    """Symmetric normalised Laplacian L = I − D^{−1/2} A D^{−1/2}.

    An isolated sensor gets a zero row, so that the multiplicity of λ = 0 is the number of connected components, as the
    remark after Theorem 1 says; its path is then the linear one.
    """
    degree = adjacency.sum(axis=1)
    inverse_root = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0.0)
    return np.diag((degree > 0).astype(float)) - inverse_root[:, None] * adjacency * inverse_root[None, :]


def _from_matrix(matrix: ndarray, n_sensors: int) -> Adjacency:
    if matrix.shape != (n_sensors, n_sensors):
        raise InputError(
            f"The graph has shape {matrix.shape}, but there are {n_sensors} sensors. "
            f"Give a {n_sensors} × {n_sensors} matrix in the order of the columns, or a list of pairs of sensor names."
        )
    if not np.isin(matrix, (0, 1)).all():
        raise InputError("The graph must hold only 0 and 1. Threshold the weights first, for example `weights >= 0.5`.")
    adjacency = matrix.astype(bool)
    if not np.array_equal(adjacency, adjacency.T):
        raise InputError("The graph must be symmetric. Use `matrix | matrix.T` if direction does not matter.")
    return _without_loops(adjacency)


def _from_edges(edges: list[object], sensors: Sequence[str]) -> Adjacency:
    position = {name: index for index, name in enumerate(sensors)}
    adjacency = np.zeros((len(sensors), len(sensors)), dtype=bool)
    for edge in edges:
        if not isinstance(edge, tuple | list) or len(edge) != 2:
            raise InputError(f'Each edge must be a pair of sensor names, such as ("pump", "flow"). Got {edge!r}.')
        unknown = [name for name in edge if name not in position]
        if unknown:
            raise InputError(f"The graph names {unknown[0]!r}, which is not a sensor. The sensors are {list(sensors)}.")
        i, j = position[edge[0]], position[edge[1]]
        adjacency[i, j] = adjacency[j, i] = True
    return _without_loops(adjacency)


def _without_loops(adjacency: Adjacency) -> Adjacency:
    return adjacency & ~np.eye(len(adjacency), dtype=bool)
