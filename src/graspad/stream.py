"""Rows one by one: the causal score of a table, its alarms and incidents, as they come."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.alarms.case import Case
from graspad.alarms.culprits import BEFORE
from graspad.alarms.drift import Drift
from graspad.alarms.incidents import Incident, Rules, Span, Tracker
from graspad.causal import CausalScorer
from graspad.data.clock import read_time
from graspad.data.gaps import Feed
from graspad.data.packing import pack, unpack
from graspad.data.table import Periods, check_period, read_period
from graspad.detector import GraspDetector, check_finite
from graspad.errors import InputError, InvalidSettingError, NotFittedError

Status = Literal["scored", "warm-up", "gap", "maintenance", "filled", "skipped", "late"]
Event = tuple[Literal["opened", "closed"], Incident]
Row = Mapping[str, float | None] | Sequence[float | None] | ndarray

_STATE_FORMAT = 2


@dataclass(frozen=True)
class Reading:
    """What a row means, by it and the rows before it.

    `status` is "scored", or says why there is no score ("warm-up", "gap", "maintenance", "skipped" by the cadence,
    "late": its time is not after that of the row before, and it changes nothing) or no alarm ("filled": most of its
    values were missing). `incident` is the one under way; `events` are those that open or close with this row.
    """

    row: int
    time: Any
    status: Status
    score: float = np.nan
    p_value: float = np.nan
    alarm: bool = False
    incident: Incident | None = None
    events: tuple[Event, ...] = ()

    def top_sensors(self, count: int = 3) -> list[str]:
        """The sensors most to blame for the incident under way."""
        return [] if self.incident is None else [name for name, _ in self.incident.sensors[:count]]


class Stream:
    """A fitted detector that takes rows one by one, in constant memory.

    It gives the scores that `GraspDetector(align="causal")` gives for all rows at once, but for rounding: the largest
    relative difference is below 1e-4, and that for very small scores. `drift` watches whether the scores of quiet rows
    are still those of the fit.

    Parameters
    ----------
    detector : a fitted detector, of either alignment.
    cadence : score every k-th row only; the rows between are remembered, not scored.
    rules : which alarms make up an incident.
    maintenance : periods to leave out, as in `GraspDetector.score`; may be changed at any time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> normal = np.sin(np.arange(400) / 7)[:, None] + 0.1 * rng.standard_normal((400, 3))
    >>> stream = Stream(GraspDetector(window=16, false_alarms=0.02).fit(normal))
    >>> [stream.push(row).status for row in normal[:20]][-1]
    'scored'
    """

    def __init__(
        self, detector: GraspDetector, cadence: int = 1, rules: Rules | None = None, maintenance: Periods = ()
    ) -> None:
        if not hasattr(detector, "model_"):
            raise NotFittedError("This GraspDetector is not fitted yet. Call fit(normal) with normal rows first.")
        if isinstance(cadence, bool) or not isinstance(cadence, int) or cadence < 1:
            raise InvalidSettingError.of("cadence", "be a whole number of rows, at least 1", cadence)
        for period in maintenance:
            check_period(period)
        self.cadence, self.rules, self.maintenance = cadence, rules or Rules(), maintenance
        self._model, self._threshold = detector.model_, detector.thresholds_["causal"]
        self._release = self._threshold.release(self.rules.hold)
        # The first time takes long: not when the first alarm comes.
        self._threshold.expected(self._threshold.value)
        _ = self._model.means
        self._scorer = CausalScorer(self._model, BEFORE + self._model.settings.window)
        self._tracker = Tracker(self.rules, self.rules.merge or self._threshold.merge)
        self._case: Case | None = None
        self._time: Any = None
        self._holds = False
        self.drift = Drift(self._threshold)

    @property
    def rows(self) -> int:
        """How many rows have come, late ones apart."""
        return self._scorer.rows

    @property
    def time(self) -> Any:
        """The time of the last row, late ones apart; None where rows have none."""
        return self._time

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors of a row, in the model's order."""
        return self._model.sensors

    @property
    def window(self) -> int:
        """Rows of a window."""
        return self._model.settings.window

    def push(self, row: Row, time: Any = None) -> Reading:
        """Take the next row: values by sensor name, or all of them in the model's order; None or NaN are missing.

        A row that cannot be taken raises an InputError and changes nothing.
        """
        values, time = self._values(row), self._checked(time)
        number = self.rows
        if time is not None and self._time is not None and not time > self._time:
            return Reading(number, time, "late")
        left_out = self._left_out(time)
        self._time = time
        self._scorer.push(values, left_out)
        skipped = self.rows % self.cadence != 0
        shares = None if skipped else self._scorer.shares()
        score = np.nan if shares is None else float(shares.sum())
        mostly_filled = bool(self._scorer.last.mostly_filled[0])
        alarm = score > self._threshold.value and not mostly_filled
        if not skipped:
            self._holds = score > self._release
            self.drift.push(score, alarm)
        events = self._follow(number, score, alarm, shares)
        p_value = float(self._threshold.p_values(np.array([score]))[0])
        status = self._status(shares is not None, left_out, skipped, mostly_filled)
        return Reading(number, time, status, score, p_value, alarm, self._under_way(), events)

    def state(self) -> dict[str, Any]:
        """All that later readings depend on, apart from the detector and the settings, as plain data for JSON."""
        scorer, span = self._scorer, self._tracker.span
        return {
            "format": _STATE_FORMAT,
            "model": self._fingerprint(),
            "rows": scorer.rows,
            "time": pack(self._time),
            "holds": bool(self._holds),
            "feeds": [pack(vars(feed)) for feed in self._feeds()],
            "sights": [pack({"shares": sight.shares, "stale": sight.stale}) for sight in scorer.sights],
            "span": None if span is None else asdict(span),
            "rests": self._tracker.rests,
            "case": None if self._case is None else pack(asdict(self._case)),
            "drift": self.drift.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> Stream:
        """Go on as the stream did whose state this is: same detector, same settings."""
        if (
            not isinstance(state, Mapping)
            or state.get("format") != _STATE_FORMAT
            or state.get("model") != self._fingerprint()
        ):
            raise InputError(
                "The state belongs to another model, or to other settings of the stream. "
                "Restore it with those it was saved with, or begin anew without it; so after a new fit or recalibrate."
            )
        scorer = self._scorer
        for feed, saved in zip(self._feeds(), state["feeds"], strict=True):
            vars(feed).update(unpack(saved))
        for sight, saved in zip(scorer.sights, state["sights"], strict=True):
            vars(sight).update(unpack(saved))
        scorer.rows, self._time, self._holds = state["rows"], unpack(state["time"]), state["holds"]
        self._tracker.span = None if state["span"] is None else Span(**state["span"])
        self._tracker.rests = state["rests"]
        self._case = None if state["case"] is None else Case.restored(unpack(state["case"]))
        self.drift.restore(state["drift"])
        return self

    def _follow(
        self, row: int, score: float, alarm: bool, shares: Float[ndarray, " sensor"] | None
    ) -> tuple[Event, ...]:
        """Bring the incidents up to this row; gives those that open or close with it."""
        events: list[Event] = []
        before, feed = self._tracker.span, self._scorer.feed
        ended = self._tracker.push(row, score, alarm, self._holds)
        if ended is not None and self._case is not None:
            events.append(("closed", self._described(self._case, ended, ongoing=False)))
        span = self._tracker.span
        if span is None:
            self._case = None
            return tuple(events)
        if before is None or before.start != span.start:
            self._case = Case.opened(feed.values, feed.lost, self.window - 1, self._time)
        assert self._case is not None
        self._case.add(row, span, self._time, feed.values[-1], bool(feed.lost[-1]), shares)
        if not self._case.told and (incident := self._under_way()) is not None:
            self._case.told = True
            events.append(("opened", incident))
        return tuple(events)

    def _under_way(self) -> Incident | None:
        span = self._tracker.under_way
        if span is None or self._case is None:
            return None
        return self._described(self._case, span, ongoing=True)

    def _described(self, case: Case, span: Span, ongoing: bool) -> Incident:
        return case.incident(span, self._model.sensors, self._threshold, ongoing, self._model.means)

    def _status(self, scored: bool, left_out: bool, skipped: bool, mostly_filled: bool) -> Status:
        if left_out:
            return "maintenance"
        if scored:
            return "filled" if mostly_filled else "scored"
        if skipped:
            return "skipped"
        return "warm-up" if self.rows < self.window else "gap"

    def _values(self, row: Row) -> Float[ndarray, " sensor"]:
        """The values in the model's order."""
        sensors = self._model.sensors
        if hasattr(row, "to_dict"):  # a row of a data frame knows its names
            row = row.to_dict()
        if isinstance(row, Mapping):
            unknown = [name for name in row if name not in sensors]
            if unknown:
                raise InputError(f"There is no sensor {unknown[0]!r} in the model. Leave it out, or fit with it.")
            listed = [row.get(name) for name in sensors]
        else:
            if isinstance(row, str) or not hasattr(row, "__iter__"):
                raise InputError(f"A row is values by sensor name, or a list of them. Got {row!r} instead.")
            listed = list(row)
            if len(listed) != len(sensors):
                raise InputError(f"The row has {len(listed)} values, but the model has {len(sensors)} sensors.")
        for name, value in zip(sensors, listed, strict=True):
            if not (value is None or isinstance(value, int | float | np.number | np.bool_)):
                raise InputError(f"The value of {name!r} is {value!r}, not a number. Leave it empty if it is missing.")
        values = np.array([np.nan if value is None else float(value) for value in listed])
        check_finite(values[None], sensors)
        return values

    def _checked(self, time: Any) -> Any:
        time = read_time(time)
        if self.rows and (time is None) != (self._time is None):
            told = "has no time, but those before had one" if time is None else "has a time, but those before had none"
            raise InputError(f"The row {told}. Give a time with every row, or with none.")
        if (
            time is not None
            and self._time is not None
            and isinstance(time, np.datetime64) != isinstance(self._time, np.datetime64)
        ):
            raise InputError(f"The time {time} is of another kind than that of the row before, {self._time}.")
        return time

    def _left_out(self, time: Any) -> bool:
        clock = self.rows if time is None else time
        periods = (read_period(period, isinstance(clock, np.datetime64)) for period in self.maintenance)
        return any(first <= clock <= last for first, last in periods)

    def _feeds(self) -> list[Feed]:
        scorer = self._scorer
        return [scorer.feed, *(sight.means for sight in scorer.sights if sight.means is not None)]

    def _fingerprint(self) -> str:
        """Tells apart models and settings that a state does not fit."""
        model, digest = self._model, hashlib.sha256()
        digest.update(repr((model.sensors, model.settings, self.cadence, self.rules)).encode())
        for part in (model.scale.mean, model.scale.std, self._threshold.normal_scores):
            digest.update(part.tobytes())
        return digest.hexdigest()[:16]
