"""Row by row gives what the whole table gives, and nothing is lost when a stream is interrupted."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graspad import RECIPE, GraspDetector
from graspad.alarms.incidents import Rules
from graspad.config import Look, Scoring
from graspad.errors import InputError, InvalidSettingError, NotFittedError
from graspad.stream import Stream

LOOKS = Scoring(
    flow_times=3, calibrate=True, logarithm=True, looks=(Look(length=0.5), Look(every=3, length=0.5, weight=0.5))
)
SENSORS = ("flow", "level", "pump")
ROWS = 160
# Rounding alone: products of one window and of a thousand add up in different orders.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))


@pytest.fixture(scope="module")
def detector() -> GraspDetector:
    preset = RECIPE.override(window=12, scoring=LOOKS, align="causal", gap_limit=2)
    normal = pd.DataFrame(plant(700, 0), columns=list(SENSORS))
    return GraspDetector(preset, false_alarms=0.01).fit(normal)


@st.composite
def troubled(draw: st.DrawFn) -> np.ndarray:
    """Rows with faults and gaps."""
    values = plant(ROWS, draw(st.integers(0, 50)))
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, ROWS - 1)), draw(st.integers(1, 25))
        values[start : start + length, draw(st.integers(0, 2))] += draw(st.sampled_from([-4.0, 2.0, 30.0]))
    for _ in range(draw(st.integers(0, 4))):
        start, length = draw(st.integers(0, ROWS - 1)), draw(st.integers(1, 6))
        values[start : start + length, draw(st.sampled_from([0, 1, 2, slice(None)]))] = np.nan
    return values


rules = st.builds(
    Rules, merge=st.none() | st.integers(1, 15), at_least=st.integers(1, 3), cool_down=st.sampled_from([0, 10])
)
quick = hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def same_incident(one, other) -> bool:
    facts = [(i.start, i.end, i.peak, i.id, i.ongoing, i.expected) for i in (one, other)]
    shares = [[share for _, share in sorted(i.sensors)] for i in (one, other)]
    return facts[0] == facts[1] and np.allclose(*shares, rtol=1e-3, atol=1e-4)


@quick
@given(troubled(), rules, st.booleans())
def test_row_by_row_gives_what_the_whole_table_gives(detector, values, rules, maintained):
    maintenance = [(60, 75)] if maintained else []
    out = detector.score(values, maintenance)
    told = detector.explain(values, maintenance, rules)
    stream = Stream(detector, rules=rules, maintenance=maintenance)
    readings = [stream.push(row) for row in values]
    np.testing.assert_allclose([reading.score for reading in readings], out["score"], **CLOSE)
    # Rounding may carry a score past that of a normal row next to it.
    one = 1.01 / (~np.isnan(detector.threshold_.normal_scores)).sum()
    np.testing.assert_allclose([reading.p_value for reading in readings], out["p_value"], rtol=0, atol=one)
    assert [reading.alarm for reading in readings] == out["alarm"].tolist()
    reasons = [None if reading.status == "scored" else reading.status for reading in readings]
    assert reasons == out["reason"].tolist()
    closed = [incident for reading in readings for kind, incident in reading.events if kind == "closed"]
    under_way = [readings[-1].incident] if readings[-1].incident else []
    assert len(closed) + len(under_way) == len(told.incidents)
    assert all(map(same_incident, [*closed, *under_way], told.incidents))
    opened = [incident.id for reading in readings for kind, incident in reading.events if kind == "opened"]
    assert opened == [incident.id for incident in told.incidents]


@quick
@given(troubled(), st.integers(0, ROWS - 1), st.integers(1, 4))
def test_a_restored_stream_has_the_same_future(detector, values, cut, cadence):
    stream = Stream(detector, cadence)
    for row in values[:cut]:
        stream.push(row)
    saved = json.loads(json.dumps(stream.state(), allow_nan=False))
    again = Stream(detector, cadence)
    again.restore(saved)
    for row in values[cut:]:
        np.testing.assert_equal(vars(again.push(row)), vars(stream.push(row)))
    assert again.state() == stream.state()


@quick
@given(troubled(), troubled(), st.integers(1, ROWS))
def test_no_reading_depends_on_later_rows(detector, values, others, cut):
    one, other = Stream(detector), Stream(detector)
    for row, changed in zip(values, np.r_[values[:cut], others[cut:]], strict=True):
        first, second = one.push(row), other.push(changed)
        if first.row < cut:
            np.testing.assert_equal(vars(first), vars(second))


def test_a_stream_saved_in_the_middle_of_an_incident_closes_it_once(detector):
    values = plant(ROWS, 3)
    values[80:100, 1] += 6
    stream, events = Stream(detector), []
    for number, row in enumerate(values):
        reading = stream.push(row)
        events += [(kind, incident.id) for kind, incident in reading.events]
        if number == 90:
            assert reading.incident is not None
            assert reading.top_sensors(1) == ["level"]
            stream, saved = Stream(detector), stream.state()
            stream.restore(saved)
    assert len(events) == len(set(events))
    assert {kind for kind, _ in events} == {"opened", "closed"}


def test_a_lasting_incident_names_the_few_that_explain_it_in_a_stream_as_in_a_table():
    """Twelve sensors follow two sources; two of them rise a little together, while all others swing far more."""
    sources = np.column_stack([np.sin(np.arange(900) / 9), np.sin(np.arange(900) / 40)])
    rng = np.random.default_rng(0)
    values = 3 * sources @ rng.standard_normal((2, 12)) + 0.1 * rng.standard_normal((900, 12))
    values[800:860, [4, 9]] += 1.0
    preset = RECIPE.override(window=12, scoring=LOOKS, align="causal")
    detector = GraspDetector(preset, false_alarms=0.01).fit(values[:700])
    stream = Stream(detector)
    readings = [stream.push(row) for row in values[700:]]
    told = [
        max(incidents, key=lambda incident: incident.score)
        for incidents in (
            [incident for reading in readings for kind, incident in reading.events if kind == "closed"],
            detector.explain(values[700:]).incidents,
        )
    ]
    for incident in told:
        assert {name for name, _ in incident.sensors[:2]} == {"4", "9"}
    assert [name for name, _ in told[0].sensors] == [name for name, _ in told[1].sensors]
    assert set(readings[150].top_sensors(2)) == {"4", "9"}


def test_a_model_for_history_serves_a_stream_with_the_threshold_of_causal_scores(detector):
    preset = RECIPE.override(window=12, scoring=LOOKS, align="overlap", gap_limit=2)
    history = GraspDetector(preset, false_alarms=0.01).fit(pd.DataFrame(plant(700, 0), columns=list(SENSORS)))
    values = plant(ROWS, 4)
    values[50:60, 2] += 3
    one, other = Stream(history), Stream(detector)
    for row in values:
        np.testing.assert_equal(vars(one.push(row)), vars(other.push(row)))


def test_every_kth_row_is_scored_and_incidents_still_hold_together(detector):
    values = plant(ROWS, 5)
    values[60:110, 0] += 9
    full, sparse = Stream(detector), Stream(detector, cadence=4)
    both = [(full.push(row), sparse.push(row)) for row in values]
    scored = [pair for pair in both if not np.isnan(pair[1].score)]
    assert len(scored) == pytest.approx(len([f for f, _ in both if not np.isnan(f.score)]) / 4, abs=1)
    np.testing.assert_allclose([f.score for f, _ in scored], [s.score for _, s in scored])
    assert {s.status for f, s in both if f.row % 4 != 3 and f.row > 20} == {"skipped"}
    kinds = [kind for _, reading in both for kind, _ in reading.events]
    assert kinds == ["opened", "closed"]


def test_late_rows_change_nothing(detector):
    start = datetime(2026, 1, 5, tzinfo=timezone(timedelta(hours=1)))
    stream = Stream(detector)
    for number, row in enumerate(plant(30, 6)):
        reading = stream.push(row, start + timedelta(minutes=number))
    assert reading.time == np.datetime64("2026-01-04T23:29:00")
    before = stream.state()
    for late in ("2026-01-04T23:29:00", "2026-01-04T22:00:00Z"):
        assert stream.push([9e9, 0, 0], late).status == "late"
    assert stream.state() == before


def test_incidents_have_times_and_ids_of_their_first_row(detector):
    values = plant(ROWS, 7)
    values[80:90, 1] += 20
    stream, events = Stream(detector), []
    for number, row in enumerate(values):
        events += stream.push(
            dict(zip(SENSORS, row, strict=True)), f"2026-01-05T{number // 60:02}:{number % 60:02}"
        ).events
    (_, opened), (_, closed) = events[:2]
    assert opened.id == closed.id == "20260105T012000"
    assert closed.record()["start"] == "2026-01-05T01:20:00"
    assert closed.record()["sensors"][0]["name"] == "level"
    frame = pd.DataFrame(values, columns=list(SENSORS), index=pd.date_range("2026-01-05", periods=ROWS, freq="min"))
    (batch,) = [incident for incident in detector.explain(frame).incidents if incident.id == closed.id]
    assert batch.record()["end"] == closed.record()["end"]
    assert batch.record()["peak"] == closed.record()["peak"]


def test_rows_by_name_may_leave_out_what_was_not_measured(detector):
    named, listed = Stream(detector), Stream(detector)
    for row in plant(40, 8):
        np.testing.assert_equal(
            vars(named.push({"pump": row[2], "flow": row[0]})), vars(listed.push([row[0], None, row[2]]))
        )


@pytest.mark.parametrize(
    ("row", "time", "told"),
    [
        ([1.0, 2.0], None, "has 2 values, but the model has 3 sensors"),
        ({"flow": 1.0, "speed": 2.0}, None, "no sensor 'speed'"),
        ([1.0, "high", 2.0], None, "'level' is 'high', not a number"),
        (None, None, "A row is values by sensor name"),
        ([1.0, 2.0, 3.0], np.datetime64("NaT"), "missing"),
        ([1.0, 2.0, 3.0], np.inf, "neither a number nor a date-time"),
        ([1.0, np.inf, 2.0], None, "'level' is inf"),
        ([1.0, 2.0, 3.0], "today", "'today' cannot be read"),
        ([1.0, 2.0, 3.0], "2026-01-05", "has a time, but those before had none"),
    ],
)
def test_a_row_that_cannot_be_taken_is_told_and_changes_nothing(detector, row, time, told):
    stream = Stream(detector)
    stream.push([0.0, 0.0, 0.0])
    before = stream.state()
    with pytest.raises(InputError, match=told):
        stream.push(row, time)
    assert stream.state() == before


def test_what_cannot_be_streamed_is_told(detector):
    with pytest.raises(NotFittedError):
        Stream(GraspDetector())
    with pytest.raises(InvalidSettingError, match="cadence"):
        Stream(detector, cadence=0)
    with pytest.raises(InputError, match="belongs to another model"):
        Stream(detector, cadence=2).restore(Stream(detector).state())


def test_memory_stays_as_it_is(detector):
    stream, sizes = Stream(detector), []
    for row in np.tile(plant(100, 9), (9, 1)):
        stream.push(row)
        sizes.append(len(json.dumps(stream.state())))
    assert max(sizes[600:]) <= 1.02 * max(sizes[300:600])


def test_a_row_of_a_data_frame_is_taken_by_its_names(detector):
    turned = pd.Series({"pump": 3.0, "level": 2.0, "flow": 1.0})
    by_series, by_list = Stream(detector), Stream(detector)
    for _ in range(15):
        one, other = by_series.push(turned), by_list.push([1.0, 2.0, 3.0])
    assert one.score == other.score
    assert one.status == "scored"
