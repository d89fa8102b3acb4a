"""From a line of CSV or JSON to the values of a row and its time."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graspad.data.table import CLOCK_NAMES
from graspad.errors import InputError

_MISSING = {"", "nan", "null", "none", "na", "n/a", "#n/a"}
_SWITCH = {"true": 1.0, "false": 0.0}


class ColumnsError(InputError):
    """The columns are wrong, and so no row can be read."""


@dataclass
class Reader:
    """Reads lines: JSON objects, or CSV with a header that names the columns.

    The time is in the column `time`; without a name, in the only one that is neither a sensor nor to be dropped, if it
    is called as clocks are or holds date-times.
    """

    sensors: tuple[str, ...]
    time: str | None = None
    drop: Collection[str] = ()
    header: list[str] | None = None

    def read(self, line: str, first: bool = False) -> tuple[dict[str, Any], Any] | None:
        """The values by sensor, and the time; None for a header or an empty line. `first` begins a new file."""
        if not line.strip():
            return None
        try:
            if line.lstrip().startswith("{"):
                return self._split(dict(json.loads(line)))
            cells = next(csv.reader([line], skipinitialspace=True))
        except (ValueError, csv.Error, OverflowError, RecursionError) as error:
            raise InputError(f"The line cannot be read: {error}.") from None
        if self.header is None or (first and not self._is_row(cells)):
            self.header = None  # if the new one is wrong, its rows must not be read by the old one
            self.header = self._checked(cells)
            return None
        if cells == self.header:  # files put together
            return None
        if len(cells) != len(self.header):
            raise InputError(f"The line has {len(cells)} values, but the header names {len(self.header)} columns.")
        return self._split(dict(zip(self.header, cells, strict=True)))

    def _is_row(self, cells: list[str]) -> bool:
        """Whether the first line of a new file is a row already, with the columns of the file before."""
        return len(cells) == len(self.header or ()) and any(isinstance(_clock(cell), int | float) for cell in cells)

    def _split(self, cells: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        name = self._time_of(cells)
        values = {sensor: _number(sensor, cells[sensor]) for sensor in self.sensors if sensor in cells}
        if name is None:
            return values, None
        if self.time is None and name.casefold() not in CLOCK_NAMES and not _is_date(cells[name]):
            raise ColumnsError(
                f"The column {name!r} is no sensor of the model, and {cells[name]!r} is no date-time. "
                f"Leave it out with --drop {name}, or say that it holds the time with --time {name}."
            )
        return values, _clock(cells[name])

    def _time_of(self, names: Collection[str]) -> str | None:
        if self.time is not None:
            if self.time not in names:
                raise ColumnsError(f"There is no column {self.time!r}; --time names one of {', '.join(names)[:200]}.")
            return self.time
        others = [name for name in names if name not in self.sensors and name not in self.drop]
        if len(others) > 1:
            raise ColumnsError(
                f"The columns {', '.join(map(repr, others))} are no sensors of the model. "
                "Name the one that holds the time with --time, and leave the others out with --drop."
            )
        return others[0] if others else None

    def _checked(self, header: list[str]) -> list[str]:
        missing = [sensor for sensor in self.sensors if sensor not in header]
        if len(missing) == len(self.sensors):
            raise ColumnsError(
                f"The first line, {','.join(header)[:80]!r}, names none of the model's sensors. "
                "CSV needs a header with their names; or give one JSON object a line."
            )
        if missing:
            raise ColumnsError(
                f"The header lacks the model's sensors {', '.join(map(repr, missing))}. "
                "Add these columns (their cells may be empty), or fit without them."
            )
        if unknown := [name for name in self.drop if name not in header]:
            raise ColumnsError(f"There is no column {unknown[0]!r} to drop. Leave out --drop {unknown[0]}.")
        self._time_of(header)
        return header


def _number(sensor: str, cell: Any) -> float | None:
    word = cell.strip().casefold() if isinstance(cell, str) else None
    if cell is None or word in _MISSING:
        return None
    try:
        return _SWITCH[word] if word in _SWITCH else float(cell)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"The value of {sensor!r} is {str(cell)[:40]!r}, not a number. Leave it empty if it is missing."
        ) from None


def _is_date(cell: Any) -> bool:
    try:
        datetime.fromisoformat(str(cell).strip())
    except ValueError:
        return False
    # Digits alone may pass for a date in ISO's short form.
    return isinstance(cell, str) and not cell.strip().isdigit()


def _clock(cell: Any) -> Any:
    """Numbers of a CSV are text; a date-time stays one."""
    if not isinstance(cell, str):
        return cell
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell.strip() or None
