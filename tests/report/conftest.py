"""A small plant to report on, the same in every test; each test changes what it is about."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graspad.alarms.incidents import Incident
from graspad.report import ReportData

SENSORS = ("FT-1", "PT-2", "TT-3", "VT-4", "LT-5")


@pytest.fixture
def plant() -> Callable[..., ReportData]:
    """Ten hours of five sensors, with an incident from 03:20 to 04:09 that FT-1 caused."""
    rng = np.random.default_rng(0)
    rows, start, end = 600, 200, 250
    values = rng.standard_normal((rows, len(SENSORS)))
    values[start:end, 0] += 8
    energy = rng.gamma(1, 0.2, (rows, len(SENSORS)))
    energy[start:end, 0] += 30
    energy[:20] = np.nan
    score = energy.sum(axis=1)
    shares = energy[start:end].sum(axis=0) / energy[start:end].sum()
    named = sorted(zip(SENSORS, shares.tolist(), strict=True), key=lambda pair: -pair[1])
    peak = start + int(score[start:end].argmax())
    adjacency = np.zeros((len(SENSORS), len(SENSORS)), dtype=bool)
    adjacency[[0, 1, 1, 2], [1, 0, 2, 1]] = True
    data = ReportData(
        title="Pump house",
        timestamps=np.datetime64("2025-06-03T00:00", "s") + np.arange(rows) * np.timedelta64(60, "s"),
        values=values,
        sensors=SENSORS,
        score=score,
        threshold=6.0,
        false_alarms="0.1 % of rows",
        incidents=(Incident(start, end, peak, float(score[peak]), 0.001, tuple(named), (0.5, 0.5)),),
        adjacency=adjacency,
        summary={"fit": "normal.parquet"},
        units={"FT-1": "m3/h"},
        descriptions={"FT-1": "feed flow"},
    )

    def change(**changes: Any) -> ReportData:
        return replace(data, **changes)

    return change
