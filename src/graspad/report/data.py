"""What a report is made of: plain arrays and names, so that any detector can have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from graspad.alarms.incidents import Incident
from graspad.errors import InputError
from graspad.simulate import Fault


@dataclass(frozen=True)
class ReportData:
    """The scored table, its incidents and the sensor graph; `values` are in the user's own units.

    Shapes are not in the types: wrong ones are a user's mistake and get an error of our own.
    """

    title: str
    timestamps: ndarray | None  # (row,) datetime64, or None for row numbers
    values: ndarray  # (row, sensor)
    sensors: tuple[str, ...]
    score: ndarray  # (row,), NaN where there is none
    threshold: float
    false_alarms: str  # in words, such as "0.1 % of rows"
    incidents: tuple[Incident, ...]
    adjacency: ndarray  # (sensor, sensor) bool
    summary: dict[str, str]  # what else the reader should know, such as {"fit": "normal.parquet"}
    units: dict[str, str] | None = None
    descriptions: dict[str, str] | None = None
    truth: tuple[Fault, ...] = ()  # faults that are known: for demos and benchmarks
    expected: ndarray | None = None  # (row, sensor), what would have been normal; NaN where that is not known

    def __post_init__(self) -> None:
        rows, sensors = len(self.score), len(self.sensors)
        if not rows or not sensors:
            raise InputError(f"A report needs rows and sensors. Got {rows} rows of {sensors} sensors.")
        _check_shape("values", self.values, (rows, sensors))
        if self.expected is not None:
            _check_shape("expected values", self.expected, (rows, sensors))
        _check_shape("adjacency", self.adjacency, (sensors, sensors))
        if self.timestamps is not None:
            _check_shape("timestamps", self.timestamps, (rows,))
            if not np.issubdtype(self.timestamps.dtype, np.datetime64):
                raise InputError(
                    f"The timestamps of a report must be numpy datetime64. Got {self.timestamps.dtype}. "
                    "Give None to number the rows instead."
                )
        spans = [(incident.start, incident.end) for incident in self.incidents]
        for start, end in spans + [(fault.start, fault.end) for fault in self.truth]:
            if not 0 <= start < end <= rows:
                raise InputError(f"The rows [{start}, {end}) do not lie within the {rows} rows of the table.")

    def unit(self, sensor: str) -> str:
        """The unit of a sensor, or nothing."""
        return (self.units or {}).get(sensor, "")

    def description(self, sensor: str) -> str:
        """What a sensor measures, or nothing."""
        return (self.descriptions or {}).get(sensor, "")


def _check_shape(name: str, array: ndarray, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InputError(
            f"The {name} of a report must have shape {expected}, after its score and sensors. Got {array.shape}."
        )
