"""Places for the nodes of the sensor graph: linked sensors near each other, the others in rows beneath.

The same graph always gives the same picture, so that two reports of one plant can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.sparse.csgraph import connected_components, shortest_path

WIDTH = 520.0
LINE = 30.0  # height of a node with its label
_GAP = 8.0  # between labels
Points = Float[ndarray, "sensor 2"]


@dataclass(frozen=True)
class Layout:
    """The middle of each node within WIDTH × `height`."""

    points: Points
    height: float


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    width: float
    height: float


def place(adjacency: Bool[ndarray, "sensor sensor"], widths: Float[ndarray, " sensor"]) -> Layout:
    """Lay out the graph so that labels of these widths do not cover each other.

    >>> place(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool), np.full(3, 40.0)).points.shape
    (3, 2)
    """
    points = np.zeros((len(adjacency), 2))
    areas = (widths + _GAP) * LINE
    alone = np.flatnonzero(~adjacency.any(axis=1))
    _, part_of = connected_components(adjacency, directed=False)
    parts = [members for members in map(np.flatnonzero, part_of == np.unique(part_of)[:, None]) if len(members) > 1]
    shelf = 0.0
    if parts:
        parts.sort(key=lambda members: -float(areas[members].sum()))
        weights = [float(areas[members].sum()) for members in parts]
        # Generous with few labels, tighter with many, but never so tight that they could not be parted.
        shelf = max(2.5 * LINE, 1.6 * sum(weights) / WIDTH, min(3.4 * sum(weights) / WIDTH, 0.8 * WIDTH))
        for members, box in zip(parts, _divide(weights, _Box(0.0, 0.0, WIDTH, shelf)), strict=True):
            drawn = _fit(_stress_layout(adjacency[np.ix_(members, members)]), box)
            points[members] = _without_overlap(drawn, widths[members], box)
    if len(alone):
        columns = int(max(1, WIDTH // (widths[alone].max() + 2 * _GAP)))
        row, column = np.divmod(np.arange(len(alone)), columns)
        # Few sensors are spread over the width, many stand in columns.
        points[alone, 0] = (column + 0.5) * WIDTH / min(columns, len(alone))
        points[alone, 1] = shelf + (row + 0.5) * LINE + (LINE / 2 if parts else 0)
    return Layout(points, max(shelf, float(points[:, 1].max()) + LINE / 2) + 1.5 * _GAP)


def _divide(weights: Sequence[float], box: _Box) -> Iterator[_Box]:
    """Cut a box into one for each weight, largest weight first: halve the weights, cut across the longer side."""
    if len(weights) == 1:
        yield box
        return
    sums = np.cumsum(weights)
    cut = 1 + int(np.abs(sums[:-1] / sums[-1] - 0.5).argmin())
    share = float(sums[cut - 1] / sums[-1])
    if box.width > box.height:
        first = _Box(box.left, box.top, share * box.width, box.height)
        second = _Box(box.left + first.width, box.top, box.width - first.width, box.height)
    else:
        first = _Box(box.left, box.top, box.width, share * box.height)
        second = _Box(box.left, box.top + first.height, box.width, box.height - first.height)
    yield from _divide(weights[:cut], first)
    yield from _divide(weights[cut:], second)


def _stress_layout(links: Bool[ndarray, "sensor sensor"]) -> Points:
    """Distances on the page like the number of links between two sensors (stress majorisation, Gansner et al. 2004)."""
    hops = shortest_path(links.astype(float), unweighted=True, directed=False)
    np.fill_diagonal(hops, 1)
    weights = hops**-2
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    points = _classical_scaling(hops)
    for _ in range(120):
        between = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = -weights * hops / np.maximum(between, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        points = inverse @ pull @ points
    return points


def _classical_scaling(hops: Float[ndarray, "sensor sensor"]) -> Points:
    """A good start: the two leading axes of the doubly centred squared distances, always with the same sign."""
    squared = np.square(hops)
    np.fill_diagonal(squared, 0)
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, axes = np.linalg.eigh(-centred / 2)
    top = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    top *= np.where(top[np.abs(top).argmax(axis=0), np.arange(2)] < 0, -1, 1)
    # Sensors with the same neighbours start at the same place; a fixed nudge lets them part.
    return top + 0.05 * np.random.default_rng(0).standard_normal(top.shape)


def _fit(points: Points, box: _Box) -> Points:
    """Fill the box; a longer picture lies along its longer side."""
    low, high = points.min(axis=0), points.max(axis=0)
    unit = (points - low) / np.where(high - low > 1e-6, high - low, 1.0)
    unit = unit if ((high - low)[0] > (high - low)[1]) == (box.width > box.height) else unit[:, ::-1]
    return np.array([box.left, box.top]) + unit * np.array([box.width, box.height])


def _without_overlap(points: Points, widths: Float[ndarray, " sensor"], box: _Box) -> Points:
    """Push labels apart, along the axis where less is needed, until none touch or there is no more room."""
    sizes = np.stack([widths + _GAP, np.full(len(widths), LINE)], axis=1)
    corner, room = np.array([box.left, box.top]), np.array([box.width, box.height])
    low, high = corner + np.minimum(sizes, room) / 2, corner + room - np.minimum(sizes, room) / 2
    need = (sizes[:, None] + sizes[None]) / 2
    order = np.arange(len(points))
    # Two labels at the very same place still have to know which way to go.
    side = np.sign(order[:, None] - order[None])[..., None]
    points = np.clip(points, low, high)
    for _ in range(300):
        offset = points[:, None] - points[None]
        overlap = need - np.abs(offset)
        touching = (overlap > 0).all(axis=2) & (side[..., 0] != 0)
        if not touching.any():
            break
        direction = np.where(np.abs(offset) > 1e-9, np.sign(offset), side)
        along_x = overlap[..., 0] < overlap[..., 1]
        push = overlap * direction * np.stack([along_x, ~along_x], axis=2) * touching[..., None]
        points = np.clip(points + 0.3 * push.sum(axis=1), low, high)
    return points
