"""What a watch has written and how far it has read, so that it can be killed at any moment and go on."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graspad.errors import InputError

_FORMAT = "graspad-watch-2"


@dataclass
class Journal:
    """JSON lines to a file or to standard output, and a state file beside them.

    The state is saved with the lines that are about to be written and with the length of the output before them. After
    a kill the output is cut to that length and those lines are written again (`resume`): none is lost, none is there
    twice. Only the file that the state speaks of is cut, and only if the watch was not ended in good order: what others
    have added since stays. Standard output cannot be cut; there, the last lines may come twice.
    """

    output: Path | None
    state: Path | None
    saved: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state is not None and self.state.exists():
            self.saved = self._read(self.state)
        if self.output is None:
            self._file = sys.stdout.buffer
            return
        try:
            self._file = self.output.open("ab")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise InputError(f"Another watch writes to {str(self.output)!r}. Give another --output.") from None
        except OSError as error:
            raise InputError(_cannot_write("file", self.output, error)) from None

    def resume(self) -> None:
        """Once it is clear that the state fits: bring the output to where it says."""
        if not self.saved:
            return
        same = self.output is not None and self.saved["output"] == self._identity()
        if same and not self.saved["ended"] and self._file.tell() >= self.saved["written"]:
            self._file.truncate(self.saved["written"])
            self._file.seek(0, os.SEEK_END)
        self._write(self.saved["pending"])

    def write(self, records: list[dict[str, Any]]) -> None:
        """Write lines that the state need not know of yet: they would be made again."""
        self._write([_line(record) for record in records])

    def save(self, content: dict[str, Any], records: list[dict[str, Any]], ended: bool = False) -> None:
        """Save the state, then write the lines; `ended` in good order, if none will follow."""
        lines = [_line(record) for record in records]
        if self.state is not None:
            written = self._file.tell() if self.output is not None else 0
            about = {"format": _FORMAT, "output": self._identity(), "written": written, "ended": ended}
            temporary = self.state.with_name(f".{self.state.name}.part")
            try:
                temporary.write_text(json.dumps(content | about | {"pending": lines}))
                os.replace(temporary, self.state)
            except OSError as error:
                raise InputError(_cannot_write("state file", self.state, error)) from None
        self._write(lines)

    def close(self) -> None:
        """Nothing more comes."""
        if self.output is not None:
            with suppress(OSError):  # told before, when it was written
                self._file.close()

    def refused(self, why: str) -> InputError:
        """The error for a state that does not fit, with what to do."""
        return InputError(
            f"The state file {str(self.state)!r} does not fit: {why}. Give another --state to begin anew."
        )

    def _identity(self) -> list[Any] | None:
        """Which file the output is."""
        if self.output is None:
            return None
        about = os.fstat(self._file.fileno())
        return [about.st_dev, about.st_ino]

    def _write(self, lines: list[str]) -> None:
        try:
            for line in lines:
                self._file.write(line.encode() + b"\n")
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(_cannot_write("output", self.output or "standard output", error)) from None

    def _read(self, state: Path) -> dict[str, Any]:
        try:
            saved = json.loads(state.read_text())
            needed = {"stream", "place", "header", "drift", "outbox", "output", "written", "ended", "pending"}
            if saved["format"] == _FORMAT and needed <= saved.keys():
                return dict(saved)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        raise InputError(
            f"The state file {str(state)!r} was not written by `graspad watch`, or is damaged. "
            "Give another name, or delete it to begin anew."
        )


def _cannot_write(what: str, path: Path | str, error: OSError) -> str:
    return f"The {what} {str(path)!r} cannot be written: {error.strerror or error}."


def _line(record: dict[str, Any]) -> str:
    """NaN is not JSON: a score that is not there is null."""
    plain = {name: None if isinstance(value, float) and value != value else value for name, value in record.items()}
    return json.dumps(plain, default=str)
