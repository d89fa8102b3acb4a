"""From a scored table to the plain data a report is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from graspad.alarms.incidents import Incident
from graspad.core.graph import count_edges
from graspad.data.table import Table
from graspad.detector import GraspDetector
from graspad.explain import Explanation
from graspad.report.data import ReportData
from graspad.report.facts import DETAILED, worst_first
from graspad.report.signals import shown
from graspad.simulate import Fault


def report_data(
    detector: GraspDetector,
    table: Table,
    explanation: Explanation,
    title: str,
    source: str,
    units: Mapping[str, str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    truth: tuple[Fault, ...] = (),
) -> ReportData:
    """What the report shows of a table that `detector` has explained; `source` says where the model came from."""
    model = detector.model_
    clock, values = table.timestamps, table.in_order(model.sensors)
    return ReportData(
        title=title,
        timestamps=clock if clock is not None and np.issubdtype(clock.dtype, np.datetime64) else None,
        values=values,
        sensors=model.sensors,
        score=explanation.score,
        threshold=detector.threshold_.value,
        false_alarms=str(detector.threshold_.granted),
        incidents=explanation.incidents,
        adjacency=model.adjacency,
        summary={
            "model": source,
            "field": model.settings.velocity.kind,
            "window": f"{model.settings.window} rows, {model.settings.align}",
            "graph": f"{count_edges(model.adjacency)} links",
        },
        units=dict(units or {}),
        descriptions=dict(descriptions or {}),
        truth=truth,
        expected=model.expected(model.rows(values), _charted(explanation.incidents, len(values))),
    )


def _charted(incidents: Sequence[Incident], rows: int) -> Bool[ndarray, " row"]:
    """The rows that the report shows in detail: only there it is worth knowing what was expected."""
    charted = np.zeros(rows, dtype=bool)
    for incident in worst_first(incidents)[:DETAILED]:
        charted[slice(*shown(incident, rows))] = True
    return charted
