"""The loop: line in, reading and incidents out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graspad.alarms.incidents import plain_time
from graspad.errors import InputError
from graspad.stream import Reading, Stream
from graspad.watch.journal import Journal
from graspad.watch.rows import Reader
from graspad.watch.source import Source
from graspad.webhook import Outbox

# A file can be read again, so its state is saved now and then; standard input cannot, so it is after every row.
_ROWS_BETWEEN_SAVES = 500
# So many times in a row drift is judged the same before it is told.
_SURE = 3
_TOP = 3


@dataclass
class Watch:
    """One watch: a stream, where its rows come from, and where its lines go."""

    stream: Stream
    source: Source
    reader: Reader
    journal: Journal
    webhook: str | None = None
    readings: bool = True
    on_problem: Callable[[str], None] = lambda told: None
    _waited: int = 0  # events in the outbox when the state was last saved
    _drift: dict[str, Any] = field(default_factory=lambda: {"told": "fine", "seen": "fine", "times": 0})

    def __post_init__(self) -> None:
        saved = self.journal.saved
        if saved:
            self.stream.restore(saved["stream"])
            self.reader.header, self._drift = saved["header"], saved["drift"]
            self.source.position = saved["position"] or 0
        self._outbox = None
        if self.webhook is not None:
            self._outbox = Outbox(self.webhook, saved.get("outbox", ()), on_problem=self.on_problem)

    def run(self) -> None:
        """Until the lines end; for a file that is followed, they do not."""
        unsaved = self._save([])  # from now on a restart knows how long the output was before it began
        for line in self.source.lines():
            if line is None:  # nothing to do: a good moment
                if unsaved or self._outbox_moved():
                    unsaved = self._save([])
                continue
            records = self._records(line)
            unsaved += 1
            due = not self.source.lasting or unsaved >= _ROWS_BETWEEN_SAVES
            if due or any(record["type"] != "reading" for record in records):
                unsaved = self._save(records)
            else:
                self.journal.write(records)

    def close(self, seconds: float) -> int:
        """Save, after the receiver had so long to take what waits; gives how many events still wait."""
        left = self._outbox.close(seconds) if self._outbox is not None else []
        self._save([])
        self.journal.close()
        return len(left)

    def _records(self, line: str) -> list[dict[str, Any]]:
        try:
            found = self.reader.read(line)
            if found is None:
                return []
            reading = self.stream.push(*found)
        except InputError as error:
            if self.stream.rows == 0:
                raise  # the very first rows are wrong: so will be all others
            self.on_problem(f"{line[:60]!r}: {error}")
            return [{"type": "error", "line": line[:200], "message": str(error)}]
        incidents = [{"type": "incident", "event": kind, **incident.record(_TOP)} for kind, incident in reading.events]
        if self._outbox is not None:
            for incident in incidents:
                self._outbox.add(incident)
        return [*([_reading(reading)] if self.readings else []), *incidents, *self._drifted()]

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

    def _save(self, records: list[dict[str, Any]]) -> int:
        waiting = [] if self._outbox is None else self._outbox.waiting
        self._waited = len(waiting)
        content = {
            "stream": self.stream.state(),
            "position": self.source.position,
            "header": self.reader.header,
            "drift": self._drift,
            "outbox": waiting,
        }
        self.journal.save(content, records)
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
