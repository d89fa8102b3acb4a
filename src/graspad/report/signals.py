"""The chart of the guilty sensors' signals around one incident."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.alarms.incidents import Incident
from graspad.report.clock import Clock
from graspad.report.data import ReportData
from graspad.report.marks import Figure, axis, base, css, in_incident, shades, time_axis, trace
from graspad.report.thin import thin
from graspad.report.words import chart_text, shorten

_BUCKETS = 640  # about one a pixel
_CONTEXT = 120  # rows before and after, at least
_ROOM, _LARGEST = 720, 240  # pixels: all panels with their titles; the largest panel
_TITLE, _BELOW = 30, 46  # pixels: a panel's title, the time axis
_Range = tuple[float, float]


def shown(incident: Incident, rows: int) -> tuple[int, int]:
    """The rows [start, end) of an incident's chart: with as much context on both sides as the incident is long."""
    context = max(incident.end - incident.start, _CONTEXT)
    return max(0, incident.start - context), min(rows, incident.end + context)


def signals(data: ReportData, clock: Clock, incident: Incident, named: Sequence[str]) -> Figure:
    """One panel a sensor: what was seen, what was expected instead and the range that is usual for the sensor."""
    start, end = shown(incident, clock.rows)
    quiet = ~in_incident(data)
    panel = min(_LARGEST, _ROOM / len(named) - _TITLE)
    height = len(named) * (panel + _TITLE)
    layout: Figure = {
        "height": height + _BELOW,
        "margin": {"l": 56, "r": 12, "t": 0, "b": _BELOW},
        "hovermode": "x",
        "hoversubplots": "axis",
        "xaxis": time_axis(clock) | {"range": clock.band(start, end), "anchor": _name(len(named) - 1)},
        "shapes": [],
        "annotations": [],
    }
    traces = []
    for place, sensor in enumerate(named):
        lines = _lines(data, clock, sensor, start, end)
        traces += [line | {"yaxis": _name(place)} for line in lines]
        levels = np.array([level for line in lines for level in line["y"] if level is not None])
        usual = _usual(data.values[quiet, data.sensors.index(sensor)])
        floor = 1 - (place + 1) / len(named)
        span = (floor, floor + panel / height)
        layout[_name(place).replace("y", "yaxis")] = axis() | {"domain": span, "nticks": 5} | _range(levels, usual)
        layout["annotations"].append(_title(data, sensor, span[1]))
        layout["shapes"] += [
            *_band(usual, _name(place)),
            *shades(data, clock, start, end, span),
            _peak(clock, incident.peak, span),
        ]
    return {"data": traces, "layout": base() | layout}


def _lines(data: ReportData, clock: Clock, sensor: str, start: int, end: int) -> list[Figure]:
    """What was seen of a sensor and, where that is known, what was expected."""
    column, unit = data.sensors.index(sensor), chart_text(data.unit(sensor))

    def line(values: Float[ndarray, "row sensor"], colour: str, says: str) -> Figure:
        kept = start + thin(values[start:end, column], _BUCKETS)
        hover = f"{says}%{{y:.5~g}} {unit}<extra></extra>"
        return trace(clock, kept, values[kept, column], colour) | {"hovertemplate": hover}

    lines = [line(data.values, "--signal", "")]
    if data.expected is not None and np.isfinite(data.expected[start:end, column]).any():
        expected = line(data.expected, "--expected", "expected ")
        lines.append(expected | {"line": expected["line"] | {"dash": "4px,2px"}})
    return lines


def _name(place: int) -> str:
    return f"y{place + 1}" if place else "y"


def _title(data: ReportData, sensor: str, height: float) -> Figure:
    about = ", ".join(text for text in (data.description(sensor), data.unit(sensor)) if text)
    return {
        "text": f"<b>{chart_text(shorten(sensor, 40))}</b>  {chart_text(shorten(about, 60))}",
        "showarrow": False,
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "yref": "paper",
        "y": height,
        "yanchor": "bottom",
        "font": {"color": css("--ink"), "size": 12.5},
    }


def _peak(clock: Clock, row: int, span: _Range) -> Figure:
    (at,) = clock.axis(np.array([row]))
    line = {"color": css("--alarm"), "width": 1, "dash": "dot"}
    return {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": span[0], "y1": span[1], "line": line}


def _usual(quiet: Float[ndarray, " row"]) -> _Range | None:
    """Where 98 % of a sensor's readings outside incidents lie; None if there are too few of them to say."""
    known = quiet[np.isfinite(quiet)]
    if len(known) < 50:
        return None
    low, high = np.quantile(known, [0.01, 0.99])
    return float(low), float(high)


def _band(usual: _Range | None, name: str) -> list[Figure]:
    if usual is None:
        return []
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": name, "y0": usual[0], "y1": usual[1]}
    return [{"type": "rect", "layer": "below", "fillcolor": css("--usual"), "line": {"width": 0}} | place]


def _range(levels: Float[ndarray, " level"], usual: _Range | None) -> Figure:
    levels = np.r_[levels, usual or ()]
    if not len(levels):
        return {"range": [0, 1], "showticklabels": False}
    low, high = float(levels.min()), float(levels.max())
    pad = 0.07 * (high - low) or 0.1 * abs(high) or 1.0
    return {"range": [low - pad, high + pad]}
