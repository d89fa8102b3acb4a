"""The pieces both kinds of chart are put together from, as plotly's plain dicts.

Colours are {"css": "--name"}: page.js looks them up in the style sheet, so that a chart follows light and dark.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from graspad.alarms.spans import spans
from graspad.report.clock import Clock
from graspad.report.data import ReportData
from graspad.report.thin import plain

Figure = dict[str, Any]
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def css(name: str) -> Figure:
    """A colour of the style sheet."""
    return {"css": name}


def base() -> Figure:
    """What every layout begins with."""
    return {
        "showlegend": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": css("--muted"), "activecolor": css("--ink")},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 12, "color": css("--muted")},
        "hoverlabel": {
            "bgcolor": css("--card"),
            "bordercolor": css("--line"),
            "font": {"family": _FONT, "color": css("--ink"), "size": 12},
            "align": "left",
        },
    }


def axis() -> Figure:
    """A value axis; only time can be zoomed."""
    return {"gridcolor": css("--line"), "zeroline": False, "fixedrange": True, "ticklabeloverflow": "hide past div"}


def time_axis(clock: Clock) -> Figure:
    """Date-time or row number."""
    line = {
        "showgrid": False,
        "zeroline": False,
        "linecolor": css("--line"),
        "ticks": "outside",
        "tickcolor": css("--line"),
    }
    if clock.times is None:
        return line | {"type": "linear", "tickformat": ",d", "hoverformat": ",d", "title": {"text": "row"}}
    return line | {"type": "date", "hoverformat": "%Y-%m-%d %H:%M" + ("" if clock.step >= 60 else ":%S")}


def trace(clock: Clock, rows: Int[ndarray, " kept"], values: Float[ndarray, " kept"], colour: str) -> Figure:
    """A line over time; a lone value between two gaps has no line to be seen by, so it gets a dot."""
    known = np.r_[False, np.isfinite(values), False]
    lone = known[1:-1] & ~known[:-2] & ~known[2:]
    return {
        "x": clock.axis(rows),
        "y": plain(values),
        "mode": "lines+markers" if lone.any() else "lines",
        "marker": {"size": (4.0 * lone).tolist() if lone.any() else 4, "color": css(colour), "line": {"width": 0}},
        "line": {"color": css(colour), "width": 1.3},
    }


def shade(clock: Clock, start: int, end: int, span: tuple[float, float]) -> Figure:
    """The rows [start, end) of an incident, from one height of the page to the other; never thinner than a line."""
    first, last = clock.band(start, end)
    return {
        "type": "rect",
        "x0": first,
        "x1": last,
        "yref": "paper",
        "y0": span[0],
        "y1": span[1],
        "layer": "below",
        "fillcolor": css("--alarm-band"),
        "line": {"width": 1, "color": css("--alarm-band")},
    }


def in_incident(data: ReportData) -> Bool[ndarray, " row"]:
    """Which rows lie in an incident."""
    inside = np.zeros(len(data.score), dtype=bool)
    for incident in data.incidents:
        inside[incident.start : incident.end] = True
    return inside


def shades(data: ReportData, clock: Clock, start: int, end: int, span: tuple[float, float]) -> list[Figure]:
    """The incidents within the rows [start, end); what less than a pixel parts is one, so that thousands draw fast."""
    inside = in_incident(data)[start:end]
    pieces = spans(inside, merge=1 + len(inside) // 1000)
    return [shade(clock, start + first, start + last, span) for first, last in pieces]
