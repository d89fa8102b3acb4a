"""The loop: line in, reading and incidents out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from graspad.alarms.incidents import plain_time
from graspad.errors import GraspError, InputError
from graspad.stream import Reading, Stream
from graspad.watch.journal import Journal
from graspad.watch.rows import ColumnsError, Reader
from graspad.watch.source import Line, Place, Source
from graspad.webhook import Outbox

# A file can be read again, so its state is saved now and then; standard input cannot, so it is after every row.
_ROWS_BETWEEN_SAVES = 500
# So many times in a row drift is judged the same before it is told.
_SURE = 3
# So many late rows in a row are told: the clock has gone wrong, and nothing is scored.
_LATE = 20
_TOP = 3


@dataclass
class Watch:
    """One watch: a stream, where its rows come from, and where its lines go.

    Each row is taken as a whole, with its lines and its place in the source, or not at all: `interrupt`, as a handler
    of signals, waits for the end of the row.
    """

    stream: Stream
    source: Source
    reader: Reader
    journal: Journal
    webhook: str | None = None
    readings: bool = True
    on_problem: Callable[[str], None] = lambda told: None
    name: str = "watch"  # of what is watched, so that a receiver can tell the incidents of several apart
    _place: Place | None = None
    _late: int = 0
    _waited: int = 0  # events in the outbox when the state was last saved
    _drift: dict[str, Any] = field(default_factory=lambda: {"told": "fine", "seen": "fine", "times": 0})
    _busy: bool = False
    _interrupted: bool = False
    _broken: bool = False  # in the middle of a row: what is in memory must not be saved

    def __post_init__(self) -> None:
        saved = self.journal.saved
        if saved:
            try:
                self.stream.restore(saved["stream"])
                if saved["place"] is not None:
                    self.source.go_on(saved["place"])
                    self._place = self.source.begin
                self.reader.header, self._drift = saved["header"], saved["drift"]
            except GraspError as error:
                raise self.journal.refused(str(error).rstrip(".")) from None
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self.journal.refused(f"it is damaged ({error!r})") from None
        self._kept = saved.get("outbox", [])
        self._outbox = None
        if self.webhook is not None:
            self._outbox = Outbox(self.webhook, self._kept, on_problem=self.on_problem)
        self.journal.resume()

    def run(self) -> None:
        """Until the lines end; for a file that is followed, they do not."""
        unsaved = self._save([])  # from now on a restart knows how long the output was before it began
        for line in self.source.lines():
            with self._whole():
                if line is None:  # nothing to do: a good moment
                    if unsaved or self._outbox_moved():
                        unsaved = self._save([])
                    continue
                records = self._records(line)
                self._place = line.place
                unsaved += 1
                due = not self.source.lasting or unsaved >= _ROWS_BETWEEN_SAVES
                if due or any(record["type"] != "reading" for record in records):
                    unsaved = self._save(records)
                else:
                    self.journal.write(records)

    def interrupt(self, *_: Any) -> None:
        """Stop after the row that is being worked on; at once where there is none."""
        if not self._busy:
            raise KeyboardInterrupt
        self._interrupted = True

    def close(self, seconds: float) -> int:
        """Save, after the receiver had so long to take what waits; gives how many events still wait."""
        self._busy = True  # a second signal must not cut this short
        left = self._outbox.close(seconds) if self._outbox is not None else []
        if not self._broken:
            self._save([], ended=True)
        self.journal.close()
        return len(left)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        self._busy = self._broken = True
        yield
        self._busy = self._broken = False
        if self._interrupted:
            raise KeyboardInterrupt

    def _records(self, line: Line) -> list[dict[str, Any]]:
        try:
            found = self.reader.read(line.text, line.first)
            if found is None:
                return []
            reading = self.stream.push(*found)
        except InputError as error:
            if isinstance(error, ColumnsError) and self.stream.rows == 0:
                raise  # so will be all other rows
            self.on_problem(f"{line.text[:60]!r}: {error}")
            return [{"type": "error", "line": line.text[:200], "message": str(error)}]
        incidents = [
            {"type": "incident", "event": kind, "watch": self.name, **incident.record(_TOP)}
            for kind, incident in reading.events
        ]
        if self._outbox is not None:
            for incident in incidents:
                self._outbox.add(incident)
        return [*([_reading(reading)] if self.readings else []), *incidents, *self._drifted(), *self._clock(reading)]

    def _drifted(self) -> list[dict[str, Any]]:
        """A line where the verdict on drift has changed for good; it is looked at once in a window."""
        if self.stream.rows % self.stream.window:
            return []
        verdict, drift = self.stream.drift.verdict, self._drift
        if verdict == "alarm":  # the incident says so itself
            return []
        drift["times"] = drift["times"] + 1 if verdict == drift["seen"] else 1
        drift["seen"] = verdict
        if drift["times"] < _SURE or verdict == drift["told"]:
            return []
        drift["told"] = verdict
        return [{"type": "drift", "verdict": verdict, "row": self.stream.rows - 1, "told": self.stream.drift.sentence}]

    def _clock(self, reading: Reading) -> list[dict[str, Any]]:
        """A line where rows keep coming late: a clock that once jumped ahead would silence the watch for good."""
        self._late = self._late + 1 if reading.status == "late" else 0
        if self._late != _LATE:
            return []
        told = (
            f"The last {_LATE} rows came late, up to {plain_time(reading.time)}, so that none was scored; the last "
            f"that was in time has {plain_time(self.stream.time)}. If a clock jumped, begin anew with another --state."
        )
        self.on_problem(told)
        return [{"type": "error", "line": "", "message": told}]

    def _save(self, records: list[dict[str, Any]], ended: bool = False) -> int:
        waiting = self._kept if self._outbox is None else self._outbox.waiting
        self._waited = len(waiting)
        content = {
            "stream": self.stream.state(),
            "place": None if self._place is None else asdict(self._place),
            "header": self.reader.header,
            "drift": self._drift,
            "outbox": waiting,
        }
        self.journal.save(content, records, ended)
        return 0

    def _outbox_moved(self) -> bool:
        return self._outbox is not None and len(self._outbox.waiting) != self._waited


def _reading(reading: Reading) -> dict[str, Any]:
    return {
        "type": "reading",
        "row": reading.row,
        "time": plain_time(reading.time),
        "status": reading.status,
        "score": reading.score,
        "p_value": reading.p_value,
        "alarm": reading.alarm,
        "incident": None if reading.incident is None else reading.incident.id,
        "sensors": reading.top_sensors(_TOP),
    }
