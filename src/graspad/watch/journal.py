"""What a watch has written and how far it has read, so that it can be killed at any moment and go on."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graspad.errors import InputError

_FORMAT = "graspad-watch-1"


@dataclass
class Journal:
    """JSON lines to a file or to standard output, and a state file beside them.

    The state is saved with the lines that are about to be written and with the length of the output before them. After
    a kill the output is cut to that length and those lines are written again: none is lost, none is there twice.
    Standard output cannot be cut; there, the last lines may come twice.
    """

    output: Path | None
    state: Path | None
    saved: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state is not None and self.state.exists():
            self.saved = self._read(self.state)
        try:
            self._file = sys.stdout.buffer if self.output is None else self.output.open("ab")
        except OSError as error:
            told = f"The file {str(self.output)!r} cannot be written: {error.strerror or error}."
            raise InputError(told) from None
        if self.saved:
            if self.output is not None and self._file.tell() >= self.saved["written"]:
                self._file.truncate(self.saved["written"])
                self._file.seek(0, os.SEEK_END)
            self._write(self.saved["pending"])

    def write(self, records: list[dict[str, Any]]) -> None:
        """Write lines that the state need not know of yet: they would be made again."""
        self._write([_line(record) for record in records])

    def save(self, content: dict[str, Any], records: list[dict[str, Any]]) -> None:
        """Save the state, then write the lines."""
        lines = [_line(record) for record in records]
        if self.state is not None:
            written = self._file.tell() if self.output is not None else 0
            whole = content | {"format": _FORMAT, "written": written, "pending": lines}
            temporary = self.state.with_name(f".{self.state.name}.part")
            try:
                temporary.write_text(json.dumps(whole))
                os.replace(temporary, self.state)
            except OSError as error:
                told = f"The state file {str(self.state)!r} cannot be written: {error.strerror or error}."
                raise InputError(told) from None
        self._write(lines)

    def close(self) -> None:
        """Nothing more comes."""
        if self.output is not None:
            self._file.close()

    def _write(self, lines: list[str]) -> None:
        for line in lines:
            self._file.write(line.encode() + b"\n")
            self._file.flush()

    def _read(self, state: Path) -> dict[str, Any]:
        try:
            saved = json.loads(state.read_text())
            if saved["format"] == _FORMAT:
                return dict(saved)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise InputError(
            f"The state file {str(state)!r} was not written by `graspad watch`, or is damaged. "
            "Give another name, or delete it to begin anew."
        )


def _line(record: dict[str, Any]) -> str:
    """NaN is not JSON: a score that is not there is null."""
    plain = {name: None if isinstance(value, float) and value != value else value for name, value in record.items()}
    return json.dumps(plain, default=str)
