"""The chart of the score over the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graspad.alarms.incidents import Incident
from graspad.report.clock import Clock
from graspad.report.data import ReportData
from graspad.report.marks import Figure, axis, base, css, shades, time_axis, trace
from graspad.report.thin import thin
from graspad.report.words import chart_text, percent
from graspad.simulate import Fault

_BUCKETS = 1500  # about one a pixel, and some more to zoom into


def overview(data: ReportData, clock: Clock, numbered: Mapping[int, Incident]) -> Figure:
    """Score and threshold over time, incidents shaded, the worst of them numbered, known faults in a band above."""
    kept = thin(data.score, _BUCKETS)
    ends = clock.band(0, clock.rows)
    top = 0.87 if data.truth else 0.97
    line = trace(clock, kept, data.score[kept], "--score") | {"hovertemplate": "score %{y:.4~g}<br>%{x}<extra></extra>"}
    level = {
        "x": ends,
        "y": [data.threshold] * 2,
        "mode": "lines",
        "line": {"color": css("--ink"), "width": 1.2, "dash": "dash"},
        "hoverinfo": "skip",
    }
    layout: Figure = {
        "height": 360,
        "margin": {"l": 56, "r": 16, "t": 14, "b": 40},
        "hovermode": "closest",
        "xaxis": time_axis(clock) | {"range": ends},
        "yaxis": axis() | {"domain": [0, top]} | _range(data),
        "yaxis3": {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
        "shapes": shades(data, clock, 0, clock.rows, (0.0, top)),
    }
    traces = [line, level, _flags(clock, numbered)]
    if data.truth:
        layout["yaxis2"] = axis() | {"domain": [0.9, 1], "range": [-1, 1], "visible": False}
        layout["shapes"] += [_bar(clock, fault) for fault in data.truth]
        traces += [_hover_bar(clock, fault) for fault in data.truth] + [_kinds(clock, data.truth)]
    return {"data": traces, "layout": base() | layout}


def _flags(clock: Clock, numbered: Mapping[int, Incident]) -> Figure:
    """The numbers of the incidents at the top of their shades, over the peaks, where they hide little."""
    return {
        "x": clock.axis(np.array([incident.peak for incident in numbered.values()], dtype=int)),
        "y": [0.95] * len(numbered),  # inside, or they would not feel the mouse
        "yaxis": "y3",
        "customdata": list(numbered),
        "text": [str(place) for place in numbered],
        "mode": "markers+text",
        "marker": {"size": 19, "color": css("--alarm"), "opacity": 1, "line": {"color": css("--card"), "width": 1.5}},
        "textfont": {"color": css("--card"), "size": 11},
        "cliponaxis": False,
        "hovertext": [_hover(clock, place, incident) for place, incident in numbered.items()],
        "hoverinfo": "text",
    }


def _hover(clock: Clock, place: int, incident: Incident) -> str:
    sensors = [f"{chart_text(name)} {percent(share)}" for name, share in incident.sensors[:3]]
    lines = [f"<b>Incident {place}</b>", clock.interval(incident.start, incident.end), *sensors]
    return "<br>".join([*lines, "<i>click for details</i>"])


def _bar(clock: Clock, fault: Fault) -> Figure:
    first, last = clock.band(fault.start, fault.end)
    place = {"type": "rect", "x0": first, "x1": last, "yref": "y2", "y0": -0.95, "y1": -0.65}
    # The outline keeps the shortest fault in sight.
    return place | {"fillcolor": css("--truth"), "line": {"color": css("--truth"), "width": 2}}


def _hover_bar(clock: Clock, fault: Fault) -> Figure:
    """Shapes have no hover, so there is a line of unseen points on the bar."""
    lines = [f"<b>Known fault: {chart_text(fault.kind)}</b>", chart_text(fault.description)]
    first, last = clock.band(fault.start, fault.end)
    return {
        "x": np.linspace(first, last, 25).tolist(),
        "y": [-0.8] * 25,
        "yaxis": "y2",
        "mode": "markers",
        "marker": {"opacity": 0},
        "hovertext": "<br>".join([*lines, clock.interval(fault.start, fault.end)]),
        "hoverinfo": "text",
    }


def _kinds(clock: Clock, truth: Sequence[Fault]) -> Figure:
    """Names over the bars, turned inwards near the right edge."""
    late = [fault.start > 0.85 * clock.rows for fault in truth]
    places = [fault.end - 1 if turned else fault.start for fault, turned in zip(truth, late, strict=True)]
    return {
        "x": clock.axis(np.array(places)),
        "y": [0.35] * len(truth),
        "yaxis": "y2",
        "mode": "text",
        "text": [chart_text(fault.kind) for fault in truth],
        "textposition": ["middle left" if turned else "middle right" for turned in late],
        "textfont": {"color": css("--truth"), "size": 12},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }


def _range(data: ReportData) -> Figure:
    """A log axis when the incidents would flatten everything else; the threshold is always in view."""
    levels = np.r_[data.score, data.threshold]
    levels = levels[np.isfinite(levels)]
    if not len(levels):
        return {"range": [0, 1], "showticklabels": False}
    low, high = float(levels.min()), float(levels.max())
    if low > 0 and high > 20 * float(np.median(levels)):
        # A few rows near zero must not take up half of the axis.
        low, high = np.log10(max(float(np.quantile(levels, 0.01)), 1e-5 * high)), np.log10(high)
        pad = 0.06 * (high - low)
        return {"type": "log", "range": [low - pad, high + 2.5 * pad], "dtick": 1, "tickformat": ".4~g"}
    pad = 0.06 * (high - low) or 1.0
    return {"range": [low - pad, high + 2.5 * pad], "tickformat": ".4~g"}
