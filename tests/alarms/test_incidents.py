import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.alarms.incidents import Incident, Rules, Span, Tracker, identify, plain_time, track
from graspad.alarms.rate import Allowed
from graspad.alarms.spans import spans
from graspad.alarms.threshold import Threshold
from graspad.errors import InvalidSettingError

# A tenth of the normal scores is over 89, hold=2 frees what is over 79.
NORMAL = Threshold(np.arange(100.0), Allowed(0.1, "rows", 60.0), merge=3)
QUIET, HOLDS, ALARM = 0.0, 85.0, 95.0

rules = st.builds(
    Rules,
    merge=st.none() | st.integers(1, 6),
    at_least=st.integers(1, 3),
    cool_down=st.integers(0, 8),
    hold=st.sampled_from([1.0, 2.0]),
)
rows = st.lists(st.sampled_from([QUIET, HOLDS, ALARM, 97.0, np.nan]), max_size=40).map(np.array)


def found(scores, **rules):
    scores = np.array(scores)
    return [
        (span.start, span.end)
        for span, _ in track(scores, NORMAL.alarms(scores), NORMAL, Rules(**{"hold": 2.0} | rules))
    ]


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


@given(rows, st.integers(1, 6))
def test_without_hold_and_cool_down_incidents_are_runs_of_alarms(scores, merge):
    alarms = NORMAL.alarms(scores)
    plain = Rules(merge=merge, hold=1.0)
    assert [(span.start, span.end) for span, _ in track(scores, alarms, NORMAL, plain)] == list(spans(alarms, merge))


@given(rows, rules)
def test_row_by_row_and_all_at_once_are_the_same(scores, rules):
    alarms, release = NORMAL.alarms(scores), NORMAL.release(rules.hold)
    tracker = Tracker(rules, rules.merge or NORMAL.merge)
    ended = [
        tracker.push(row, float(score), bool(alarm), bool(score > release))
        for row, (score, alarm) in enumerate(zip(scores, alarms, strict=True))
    ]
    one_by_one = [(span, False) for span in ended if span]
    one_by_one += [(tracker.under_way, True)] if tracker.under_way else []
    assert track(scores, alarms, NORMAL, rules) == one_by_one


@given(rows, rules)
def test_an_incident_keeps_its_start_when_rows_are_added(scores, rules):
    alarms = NORMAL.alarms(scores)
    whole = {span.start: span for span, _ in track(scores, alarms, NORMAL, rules)}
    for cut in range(len(scores)):
        for span, ongoing in track(scores[:cut], alarms[:cut], NORMAL, rules):
            assert span.start in whole
            if not ongoing:
                assert span == whole[span.start]


def test_an_incident_goes_on_while_the_score_stays_high():
    assert found([QUIET, ALARM, HOLDS, HOLDS, QUIET, HOLDS, QUIET]) == [(1, 4)]
    assert found([HOLDS, HOLDS, ALARM]) == [(2, 3)]  # but nothing begins below the threshold
    assert found([ALARM, HOLDS, HOLDS, QUIET, QUIET, ALARM]) == [(0, 6)]  # merged from where it was held


def test_too_few_alarms_are_no_incident():
    assert found([ALARM, QUIET, ALARM, *[QUIET] * 5, ALARM, *[QUIET] * 4], at_least=2) == [(0, 3)]


def test_none_begins_while_the_last_one_cools_down():
    scores = [ALARM, *[QUIET] * 4, ALARM, *[QUIET] * 5, ALARM]
    assert found(scores) == [(0, 1), (5, 6), (11, 12)]
    assert found(scores, cool_down=8) == [(0, 1), (11, 12)]
    assert found([ALARM, *[QUIET] * 3, *[ALARM] * 9], cool_down=8) == [(0, 1), (9, 13)]  # it lasts: it is told then


def test_the_peak_is_the_first_highest_alarm():
    scores = np.array([QUIET, ALARM, 97.0, 97.0, ALARM])
    ((span, ongoing),) = track(scores, NORMAL.alarms(scores), NORMAL, Rules())
    assert (span, ongoing) == (Span(1, 5, 2, 97.0, alarms=4), True)


def test_a_record_is_json_with_times():
    times = tuple(np.array(["2026-01-05T10:30", "2026-01-05T10:31", "2026-01-05T10:40"], dtype="datetime64[ns]"))
    name = identify(7, times[0])
    incident = Incident(7, 18, 8, 95.0, 0.01, (("pump", 0.7), ("flow", 0.3)), (1.0,), name, "once per day", True, times)
    record = json.loads(json.dumps(incident.record(top=1)))
    assert record == {
        "id": "20260105T103000",
        "start": "2026-01-05T10:30:00",
        "peak": "2026-01-05T10:31:00",
        "end": "2026-01-05T10:40:00",
        "ongoing": True,
        "first_row": 7,
        "rows": 11,
        "score": 95.0,
        "p_value": 0.01,
        "expected": "once per day",
        "sensors": [{"name": "pump", "share": 0.7}],
    }


def test_ids_follow_whatever_clock_there_is():
    assert identify(3, None) == "row3"
    assert identify(3, np.int64(1700)) == "1700"
    assert identify(3, np.datetime64("2026-01-05T10:30:00.5")) == "20260105T103000.5"
    assert plain_time(np.datetime64("2026-01-05T10:00:00")) == "2026-01-05T10:00:00"


@pytest.mark.parametrize("wrong", [{"merge": 0}, {"at_least": 0}, {"cool_down": -1}, {"hold": 0.5}, {"at_least": True}])
def test_rules_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidSettingError, match=next(iter(wrong))):
        Rules(**wrong)
