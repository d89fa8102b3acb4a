"""From a scored table to a report's data: what was expected is worked out where the report shows it, and only there."""

import numpy as np

from graspad import GraspDetector
from graspad.config import RECIPE
from graspad.data.table import Table
from graspad.summary import report_data


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))


def test_expected_values_are_there_around_the_incidents():
    settings = RECIPE.override(window=10, scoring=dict(RECIPE.scoring) | {"looks": ()})
    detector = GraspDetector(settings, false_alarms=0.005).fit(plant(2000, 0))
    new = plant(1000, 1)
    new[500:520, 1] += 3
    new[900:910] = np.nan
    explanation = detector.explain(new)
    starts, ends = zip(*((incident.start, incident.end) for incident in explanation.incidents), strict=True)
    data = report_data(detector, Table.of(new), explanation, title="", source="")
    known = np.isfinite(data.expected).all(axis=1)
    whole = detector.expected(new)
    np.testing.assert_allclose(data.expected[known], whole[known], rtol=1e-6)
    shown = np.zeros(1000, dtype=bool)
    for start, end in zip(starts, ends, strict=True):
        shown[max(0, start - 120) : end + 120] = True
    assert 0 < shown.sum() < 1000
    np.testing.assert_array_equal(known, shown & np.isfinite(whole).all(axis=1))
