"""From a line of CSV or JSON to the values of a row and its time."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from graspad.errors import InputError

_MISSING = {"", "nan", "null", "none", "na", "n/a"}


@dataclass
class Reader:
    """Reads lines: JSON objects, or CSV with a header that names the columns.

    The time is in the column `time`; without a name, in the only one that is neither a sensor nor to be dropped.
    """

    sensors: tuple[str, ...]
    time: str | None = None
    drop: Collection[str] = ()
    header: list[str] | None = None

    def read(self, line: str) -> tuple[dict[str, Any], Any] | None:
        """The values by sensor, and the time; None for a header or an empty line."""
        if not line.strip():
            return None
        if line.lstrip().startswith("{"):
            return self._split(_json(line))
        cells = next(csv.reader([line], skipinitialspace=True))
        if self.header is None:
            self.header = self._checked(cells)
            return None
        if cells == self.header:  # a new file with the same columns
            return None
        if len(cells) != len(self.header):
            raise InputError(f"The line has {len(cells)} values, but the header names {len(self.header)} columns.")
        return self._split(dict(zip(self.header, cells, strict=True)))

    def _split(self, cells: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        name = self._time_of(cells)
        values = {sensor: _number(sensor, cells[sensor]) for sensor in self.sensors if sensor in cells}
        time = None if name is None else cells.get(name)
        return values, _clock(time)

    def _time_of(self, names: Collection[str]) -> str | None:
        if self.time is not None:
            return self.time
        others = [name for name in names if name not in self.sensors and name not in self.drop]
        if len(others) > 1:
            raise InputError(
                f"The columns {', '.join(map(repr, others))} are no sensors of the model. "
                "Name the one that holds the time with --time, and leave the others out with --drop."
            )
        return others[0] if others else None

    def _checked(self, header: list[str]) -> list[str]:
        missing = [sensor for sensor in self.sensors if sensor not in header]
        if len(missing) == len(self.sensors):
            raise InputError(
                f"The first line, {','.join(header)[:80]!r}, names none of the model's sensors. "
                "CSV needs a header with their names; or give one JSON object a line."
            )
        self._time_of(header)
        return header


def _json(line: str) -> dict[str, Any]:
    try:
        cells = json.loads(line)
    except ValueError as error:
        raise InputError(f"The line is no JSON object: {error}.") from None
    return dict(cells)


def _number(sensor: str, cell: Any) -> float | None:
    if cell is None or (isinstance(cell, str) and cell.strip().casefold() in _MISSING):
        return None
    try:
        return float(cell) if not isinstance(cell, bool) else None
    except (TypeError, ValueError):
        raise InputError(
            f"The value of {sensor!r} is {cell!r}, not a number. Leave it empty if it is missing."
        ) from None


def _clock(cell: Any) -> Any:
    """Numbers of a CSV are text; a date-time stays one."""
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            return cell or None
    return cell
