"""The sensor graph as numbers for an SVG: one layout a report, one colouring an incident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from graspad.report.data import ReportData
from graspad.report.layout import WIDTH, Layout, place
from graspad.report.words import percent, shorten

# Beyond these a node-link drawing says nothing any more.
_MOST_SENSORS = 200
_MOST_LINKS = 3000
_LABEL, _LETTER = 12, 7.4  # letters of a label; width of one
_NAMED = 4  # sensors whose labels stand out


@dataclass(frozen=True)
class Node:
    """A circle with its label; `heat` is the share against the largest one, `loud` marks the named sensors."""

    x: float
    y: float
    radius: float
    heat: float
    label: str
    title: str
    loud: bool


@dataclass(frozen=True)
class Drawing:
    """The nodes, quiet ones first so that the loud lie on top, and the links of the loud ones as an SVG path."""

    nodes: tuple[Node, ...]
    links: str


@dataclass(frozen=True)
class Graph:
    """What all drawings of a report share."""

    layout: Layout
    adjacency: Bool[ndarray, "sensor sensor"]
    width: float
    height: float
    links: str  # SVG path; empty if there are too many to draw
    caption: str

    @classmethod
    def of(cls, data: ReportData) -> Graph | None:
        """The graph of a report; None if a drawing would not help."""
        if not 1 < len(data.sensors) <= _MOST_SENSORS:
            return None
        adjacency = data.adjacency.astype(bool)
        adjacency = (adjacency | adjacency.T) & ~np.eye(len(adjacency), dtype=bool)
        widths = np.array([_LETTER * len(shorten(name, _LABEL)) for name in data.sensors])
        layout = place(adjacency, widths)
        amount = int(np.triu(adjacency).sum())
        caption = "Size and colour: share of the score. Lines: links of the sensor graph."
        if not amount:
            caption = "Size and colour: share of the score. No sensors are linked with each other."
        elif amount > _MOST_LINKS:
            caption += f" Of {amount:,} links only those of the named sensors are drawn."
        links = _path(layout, np.argwhere(np.triu(adjacency))) if amount <= _MOST_LINKS else ""
        return cls(layout, adjacency, WIDTH, layout.height, links, caption)

    def draw(self, data: ReportData, shares: Mapping[str, float]) -> Drawing:
        """Colour the nodes by their shares."""
        share = np.array([max(0.0, shares.get(name, 0.0)) for name in data.sensors])
        order = np.argsort(share, kind="stable")
        loud = [index for index in order[-_NAMED:] if share[index] >= 0.03]
        nodes = tuple(
            Node(
                x=round(float(self.layout.points[index, 0]), 1),
                y=round(float(self.layout.points[index, 1]), 1),
                radius=round(4.5 + 13 * float(np.sqrt(min(share[index], 1.0))), 1),
                heat=round(float(share[index] / max(share.max(), 1e-12)), 3),
                label=shorten(data.sensors[index], _LABEL),
                title=_title(data, data.sensors[index], share[index]),
                loud=index in loud,
            )
            for index in order
        )
        pairs = [(one, other) for one in loud for other in np.flatnonzero(self.adjacency[one])]
        return Drawing(nodes, _path(self.layout, np.array(pairs, dtype=int).reshape(-1, 2)))


def _path(layout: Layout, pairs: ndarray) -> str:
    ends = layout.points[pairs]
    return "".join(f"M{a:.0f} {b:.0f}L{c:.0f} {d:.0f}" for (a, b), (c, d) in ends)


def _title(data: ReportData, sensor: str, share: float) -> str:
    about = data.description(sensor)
    return f"{sensor}{f', {about}' if about else ''}: {percent(share)} of the score"
