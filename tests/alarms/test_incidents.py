import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graspad.alarms.incidents import incident, spans


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 6))
def test_spans_hold_all_alarms_and_are_far_apart(alarms, merge):
    flags = np.array(alarms, dtype=bool)
    found = list(spans(flags, merge))
    inside = np.zeros(len(flags), dtype=bool)
    for start, end in found:
        assert flags[start]
        assert flags[end - 1]
        inside[start:end] = True
        quiet = np.diff(np.flatnonzero(flags[start:end]))
        assert (quiet <= merge).all()
    assert not (flags & ~inside).any()
    assert all(later[0] - earlier[1] >= merge for earlier, later in itertools.pairwise(found))


def test_an_incident_is_told_by_its_peak_and_its_shares():
    by_sensor = np.array([[0, 0], [1.0, 2.0], [3.0, 6.0], [np.nan, np.nan], [0, 0]])
    scores = by_sensor.sum(axis=1)
    found = incident(1, 4, scores, np.linspace(1, 0.2, 5), by_sensor, by_sensor[:, ::-1], ("flow", "pump"))
    assert (found.start, found.end, found.peak, found.score) == (1, 4, 2, 9.0)
    assert found.p_value == np.linspace(1, 0.2, 5)[2]
    assert found.sensors == (("pump", 2 / 3), ("flow", 1 / 3))
    assert found.bands == (2 / 3, 1 / 3)
