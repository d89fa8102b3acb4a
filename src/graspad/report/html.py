"""From ReportData to one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from graspad.alarms.incidents import Incident
from graspad.errors import GraspError
from graspad.report.clock import Clock
from graspad.report.data import ReportData
from graspad.report.drawing import Graph
from graspad.report.facts import entries, findings, key_figures, others, verdict
from graspad.report.overview import overview
from graspad.report.signals import signals
from graspad.report.words import percent, shorten

_PANELS = 4  # sensors whose signals are drawn for an incident
_LEAST = 0.02  # the share from which a sensor's signal is worth a look


def write(data: ReportData, path: str | os.PathLike[str]) -> Path:
    """Write the report to a file and give back its path; a reader never meets half a file."""
    page, target = render(data), Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def render(data: ReportData) -> str:
    """The whole page; the same data gives the same page."""
    template, script = _tools()
    clock = Clock.of(data.timestamps, len(data.score))
    listed = entries(data, clock)
    detailed = {entry.place: entry.incident for entry in listed if entry.detailed}
    named = {place: _named(data, incident) for place, incident in detailed.items()}
    graph = Graph.of(data)
    figures = {"overview": overview(data, clock, detailed)}
    for place, incident in detailed.items():
        if named[place]:
            figures[f"signals-{place}"] = signals(data, clock, incident, named[place])
    return template.render(
        data=data,
        clock=clock,
        verdict=verdict(data, clock, listed),
        key_figures=key_figures(data, clock),
        entries=listed,
        findings=findings(data, clock, listed),
        graph=graph,
        drawings=_drawings(data, graph, detailed),
        figures=figures,
        others=others,
        percent=percent,
        shorten=shorten,
        plotly=script,
        style=_asset("page.css"),
        script=_asset("page.js"),
    )


def _named(data: ReportData, incident: Incident) -> list[str]:
    known = [(name, share) for name, share in incident.sensors if name in data.sensors]
    return [name for place, (name, share) in enumerate(known[:_PANELS]) if share >= _LEAST or place == 0]


def _drawings(data: ReportData, graph: Graph | None, detailed: Mapping[int, Incident]) -> dict[int, object]:
    if graph is None:
        return {}
    return {place: graph.draw(data, dict(incident.sensors)) for place, incident in detailed.items()}


def _tools() -> tuple[Any, str]:
    """The template, and plotly's own copy of plotly.js."""
    try:
        from jinja2 import Environment, StrictUndefined
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise GraspError(
            f"A report needs plotly and jinja2, but {error.name} is not installed. Type: pip install 'graspad[report]'"
        ) from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("page.html.j2")), get_plotlyjs()


def _asset(name: str) -> str:
    return resources.files("graspad.report").joinpath(name).read_text(encoding="utf-8")
