"""What the page says in words: key figures, the incidents, and known faults beside what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graspad.alarms.incidents import Incident
from graspad.report.clock import Clock
from graspad.report.data import ReportData
from graspad.report.marks import in_incident
from graspad.report.words import count, number, percent, small
from graspad.simulate import Fault

DETAILED = 12  # incidents with charts of their own
_LISTED = 500  # incidents in the table
_BARS = 6  # sensors with a bar of their own


@dataclass(frozen=True)
class Figure:
    """One of the large numbers on top."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """A sensor's part of an incident's score."""

    name: str
    share: str
    width: float  # in percent
    about: str = ""
    true: bool = False  # the sensor is one of a known fault's


@dataclass(frozen=True)
class Entry:
    """One line of the table of incidents."""

    place: int
    incident: Incident
    start: str
    end: str
    interval: str
    duration: str
    seconds: float
    score: str
    ratio: str
    p_value: str
    bars: tuple[Bar, ...]
    detailed: bool
    known: tuple[Fault, ...]


@dataclass(frozen=True)
class Finding:
    """One line of the table of known faults."""

    fault: Fault
    interval: str
    entry: Entry | None  # the worst incident in its rows
    delay: str


def entries(data: ReportData, clock: Clock) -> list[Entry]:
    """The incidents in order of time, numbered from 1; of very many, the worst."""
    ranked = worst_first(data.incidents)
    detailed = {id(incident) for incident in ranked[:DETAILED]}
    listed = sorted(ranked[:_LISTED], key=lambda incident: incident.start)
    return [_entry(data, clock, place, item, id(item) in detailed) for place, item in enumerate(listed, 1)]


def worst_first(incidents: Sequence[Incident]) -> list[Incident]:
    """By peak score, and of equal ones the longest; the first `DETAILED` have charts of their own."""
    return sorted(incidents, key=_badness, reverse=True)


def _times_threshold(data: ReportData, score: float) -> str:
    ratio = score / data.threshold if data.threshold > 0 else np.nan
    return f"{ratio:,.{1 if ratio < 100 else 0}f} × threshold" if ratio >= 1 else ""


def _badness(incident: Incident) -> tuple[float, int]:
    return (incident.score if not np.isnan(incident.score) else -np.inf), incident.end - incident.start


def _entry(data: ReportData, clock: Clock, place: int, incident: Incident, detailed: bool) -> Entry:
    seconds = clock.lasts(incident.start, incident.end)
    known = tuple(fault for fault in data.truth if fault.start < incident.end and incident.start < fault.end)
    return Entry(
        place=place,
        incident=incident,
        start=clock.label(incident.start),
        end=clock.label(incident.end - 1),
        interval=clock.interval(incident.start, incident.end),
        duration=clock.say(seconds),
        seconds=seconds,
        score=number(incident.score),
        ratio=_times_threshold(data, incident.score),
        p_value=small(incident.p_value),
        bars=bars(data, incident, {name for fault in known for name in fault.sensors}),
        detailed=detailed,
        known=known,
    )


def bars(data: ReportData, incident: Incident, true: set[str]) -> tuple[Bar, ...]:
    """The largest shares."""
    made = []
    for name, share in incident.sensors[:_BARS]:
        about = ", ".join(text for text in (data.description(name), data.unit(name)) if text)
        made.append(Bar(name, percent(share), round(100 * min(max(share, 0.0), 1.0), 1), about, name in true))
    return tuple(made)


def others(incident: Incident) -> str:
    """What the sensors without a bar have together."""
    rest = incident.sensors[_BARS:]
    return f"{count(len(rest), 'other sensor')}: {percent(sum(share for _, share in rest))}" if rest else ""


def findings(data: ReportData, clock: Clock, listed: Sequence[Entry]) -> list[Finding]:
    """Each known fault with the worst incident that overlaps it, and how long after its start the first one began."""
    made = []
    for fault in data.truth:
        hits = [entry for entry in listed if fault in entry.known]
        worst = max(hits, key=lambda entry: _badness(entry.incident), default=None)
        delay = ""
        if hits:
            first = max(fault.start, hits[0].incident.start)
            delay = clock.say(clock.elapsed(fault.start, first)) if first > fault.start else "at once"
        made.append(Finding(fault, clock.interval(fault.start, fault.end), worst, delay))
    return made


def key_figures(data: ReportData, clock: Clock) -> list[Figure]:
    """Rows, period, incidents, time in alarm, threshold."""
    inside = in_incident(data)
    worst = _times_threshold(data, max(map(_badness, data.incidents), default=(np.nan, 0))[0])
    seconds = sum(clock.lasts(incident.start, incident.end) for incident in data.incidents)
    period = Figure("Period", clock.say(clock.lasts(0, clock.rows)), clock.period())
    return [
        Figure("Rows", f"{clock.rows:,}", count(len(data.sensors), "sensor") + _missing(data)),
        *([period] if clock.times is not None else []),
        Figure("Incidents", f"{len(data.incidents):,}", f"worst: {worst}" if worst else ""),
        Figure("Time in alarm", clock.say(seconds) if data.incidents else "none", f"{percent(inside.mean())} of rows"),
        Figure("Threshold", number(data.threshold), f"false alarms: {data.false_alarms}"),
    ]


def _missing(data: ReportData) -> str:
    missing = int(np.isnan(data.score).sum())
    return f", {count(missing, 'row')} without a score" if missing else ""


def verdict(data: ReportData, clock: Clock, listed: Sequence[Entry]) -> str:
    """The report in one sentence."""
    if np.isnan(data.score).all():
        return "No row has a score, so nothing can be said about this data."
    if not listed:
        over = int((data.score > data.threshold).sum())
        return (
            f"No incident: {count(over, 'row')} over the threshold did not add up to one."
            if over
            else "Nothing over the threshold: this data looks like normal operation."
        )
    worst = max(listed, key=lambda entry: _badness(entry.incident))
    sentence = f"{count(len(data.incidents), 'incident')}. The worst is number {worst.place}, {worst.interval}"
    if not worst.bars:
        return sentence + "."
    top = worst.bars[0]
    about = data.description(top.name)
    return f"{sentence}: {top.share} of its score is from {top.name}{f' ({about})' if about else ''}."
