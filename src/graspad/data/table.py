"""Any data frame, array or file in; as many rows out, in the same order, with the same index and of the same type."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy import ndarray

from graspad.data.clock import read_time
from graspad.data.files import read_frame
from graspad.errors import InputError

# A column of numbers with one of these names is a clock, not a sensor; the last three are how a row number that was
# written along with a table comes back.
CLOCK_NAMES = {"timestamp", "time", "datetime", "date", "ts", "index", "", "unnamed: 0"}

# Each with its first and its last time, as a pair or as text with a slash between.
Periods = Sequence[Any]


@dataclass(frozen=True)
class Table:
    """Sensor values as one float64 array (NaN = missing), with what is needed to answer in the caller's own type."""

    values: Float[ndarray, "row sensor"]
    sensors: tuple[str, ...]
    timestamps: Shaped[ndarray, " row"] | None
    time: str | None  # the column that holds the timestamps; None if they are the index, or if there are none
    native: Any

    @classmethod
    def of(cls, data: Any, drop: Collection[str] = ()) -> Table:
        """Read a pandas, polars or pyarrow table, a 2-D numpy array or a CSV or Parquet file; leave out columns `drop`.

        The time column is the one that holds date-times, text that reads as date-times, or numbers under a name such
        as "timestamp". All other columns are sensors.

        >>> Table.of(np.zeros((3, 2))).sensors
        ('0', '1')
        """
        if isinstance(data, Table):
            return data
        if isinstance(data, np.ndarray):
            return cls._of_array(data)
        if isinstance(data, str | os.PathLike):
            data = read_frame(data)
        try:
            frame = nw.from_native(data, eager_only=True)
        except TypeError:
            raise InputError(
                "The data must be a pandas, polars or pyarrow table, a 2-D numpy array of rows × sensors, "
                f"or the path of a CSV or Parquet file. Got {type(data).__module__}.{type(data).__name__}."
            ) from None
        except nw.exceptions.DuplicateError:
            names = [str(name) for name in data.columns]
            repeated = next(name for name in names if names.count(name) > 1)
            raise InputError(f"There are several columns named {repeated!r}. Rename or drop all but one.") from None
        unknown = [name for name in drop if name not in frame.columns]
        if unknown:
            raise InputError(f"There is no column {unknown[0]!r} to drop. The columns are {list(frame.columns)}.")
        return cls._of_frame(frame.drop(list(drop)))

    @classmethod
    def _of_array(cls, data: ndarray) -> Table:
        if data.ndim != 2 or not np.issubdtype(data.dtype, np.number) or np.iscomplexobj(data):
            raise InputError(
                "A numpy array must have two dimensions, rows × sensors, and hold real numbers. "
                f"Got shape {data.shape} of {data.dtype}."
            )
        names = tuple(str(index) for index in range(data.shape[1]))
        return cls(data.astype(np.float64), names, None, None, None)

    @classmethod
    def _of_frame(cls, frame: nw.DataFrame[Any]) -> Table:
        clocks = {name: clock for name in frame.columns if (clock := _clock(frame.get_column(name))) is not None}
        if len(clocks) > 1:
            raise InputError(f"There are {len(clocks)} time columns: {list(clocks)}. Keep one and drop the others.")
        sensors = [name for name in frame.columns if name not in clocks]
        values = np.empty((len(frame), len(sensors)))
        for place, name in enumerate(sensors):
            values[:, place] = _numbers(frame.get_column(name))
        time = next(iter(clocks), None)
        timestamps = clocks[time] if time else _index_clock(frame)
        # Of the caller's table only the clock and the index are kept: the values are needed once.
        index = nw.maybe_get_index(frame)
        kept = nw.to_native(frame)[[]] if index is not None and not time else nw.to_native(frame.select(time or []))
        return cls(values, tuple(str(name) for name in sensors), timestamps, time, kept)

    def check_time(self) -> None:
        """Refuse rows that are not in time order: windows would make no sense."""
        if self.timestamps is not None:
            _check_clock(self.timestamps)

    @property
    def interval(self) -> float | None:
        """Seconds from row to row, as most rows have it; None where there are no date-times to tell.

        >>> stamps = np.array(["2026-01-01T00:00", "2026-01-01T00:05", "2026-01-01T00:10"], dtype="datetime64[s]")
        >>> Table(np.zeros((3, 1)), ("a",), stamps, None, None).interval
        300.0
        """
        if self.timestamps is None or self.timestamps.dtype.kind != "M" or len(self.timestamps) < 2:
            return None
        step = float(np.median(np.diff(self.timestamps)) / np.timedelta64(1, "ns")) / 1e9
        return step if step > 0 else None

    def within(self, periods: Periods) -> Bool[ndarray, " row"]:
        """The rows of some periods, each from its first time up to its last; row numbers where there are no times.

        >>> Table.of(np.zeros((5, 2))).within([(1, 2), (4, 9)])
        array([False,  True,  True, False,  True])
        """
        clock = np.arange(len(self.values)) if self.timestamps is None else self.timestamps
        inside = np.zeros(len(self.values), dtype=bool)
        for period in periods:
            first, last = read_period(period, clock.dtype.kind == "M")
            inside |= (clock >= first) & (clock <= last)
        return inside

    def give_back(self, columns: Mapping[str, ndarray]) -> Any:
        """The columns as a table like the one that came in; for a numpy array, as a structured array."""
        if self.native is None:
            kinds = [(name, values.dtype) for name, values in columns.items()]
            rows = np.empty(len(self.values), dtype=kinds)
            for name, values in columns.items():
                rows[name] = values
            return rows
        frame = nw.from_native(self.native, eager_only=True)
        made = {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
        out = nw.from_dict(made, backend=frame.implementation)
        numbers = [nw.col(name) for name, values in columns.items() if values.dtype.kind == "f"]
        out = out.with_columns(nw.when(~number.is_nan()).then(number) for number in numbers)
        # A column without any text would have no type.
        texts = [name for name, values in columns.items() if values.dtype == object]
        out = out.with_columns(nw.col(*texts).cast(nw.String)) if texts else out
        answer = nw.to_native(out)
        index = nw.maybe_get_index(frame)
        if index is not None:
            answer.index = index
        if self.time is None:
            return answer
        return nw.to_native(nw.concat([frame.select(self.time), nw.from_native(answer)], how="horizontal"))

    def give_back_values(self, values: Float[ndarray, "row sensor"], sensors: Sequence[str]) -> Any:
        """Values of these sensors as a table like the one that came in, its columns in their order; or as an array."""
        if self.native is None:
            return values
        return self.give_back({name: values[:, sensors.index(name)] for name in self.sensors})

    def in_order(self, sensors: Sequence[str]) -> Float[ndarray, "row sensor"]:
        """The values with the columns in the model's order; a numpy array has no names and is taken as it is."""
        if self.sensors == tuple(sensors) or (self.native is None and len(self.sensors) == len(sensors)):
            return self.values
        missing = [name for name in sensors if name not in self.sensors]
        extra = [name for name in self.sensors if name not in sensors]
        if missing or extra:
            raise InputError(
                "The sensors are not those the detector was fitted on."
                + (f" Missing: {missing}." if missing else "")
                + (f" Not known: {extra}; drop them." if extra else "")
            )
        wrong = next(name for name, expected in zip(self.sensors, sensors, strict=True) if name != expected)
        warnings.warn(
            f"The columns are not in the order of the model, from {wrong!r} on; they were put in order by name.",
            stacklevel=4,
        )
        return self.values[:, [self.sensors.index(name) for name in sensors]]


def read_period(period: Any, dated: bool) -> tuple[Any, Any]:
    """The first and the last time of a period: a pair, or text such as "2026-01-05T10:00/2026-01-05T12:00".

    A day as the last time counts as a whole. Times with a zone are turned into UTC, as those of the rows are.

    >>> read_period("10/20", dated=False)
    (10.0, 20.0)
    """
    try:
        first, last = period.split("/") if isinstance(period, str) else period
        pair = (_moment(first), _moment(last, end=True)) if dated else (float(first), float(last))
        if pair[0] <= pair[1]:
            return pair
    except (ValueError, TypeError, InputError):
        pass
    form = "two times, such as 2026-01-05T10:00/2026-01-05T12:00" if dated else "two numbers of rows, such as 500/620"
    raise InputError(f"The period {period!r} cannot be read. Give {form}, the first not after the last.")


def check_period(period: Any) -> None:
    """Refuse what is a period neither of times nor of rows, before the rows tell which it must be."""
    try:
        read_period(period, dated=False)
    except InputError:
        read_period(period, dated=True)


def _moment(time: Any, end: bool = False) -> np.datetime64:
    moment = read_time(time)
    if not isinstance(moment, np.datetime64):
        raise ValueError(time)
    day = isinstance(time, str) and len(time.strip()) == len("2026-01-05")
    return moment + np.timedelta64(1, "D") - np.timedelta64(1, "ns") if end and day else moment


def _clock(column: nw.Series[Any]) -> ndarray | None:
    """The column as timestamps, or None if it is not a clock."""
    if column.dtype.is_temporal():
        return column.to_numpy()
    if column.dtype.is_numeric():
        return column.to_numpy() if str(column.name).casefold() in CLOCK_NAMES else None
    if column.dtype in (nw.String, nw.Categorical, nw.Object) and column.null_count() < len(column):
        try:
            return column.cast(nw.String).str.to_datetime().to_numpy()
        except Exception:  # each backend has its own error for text that is no date-time
            example = next((value for value in column.to_list() if value is not None), None)
            raise InputError(
                f"The column {column.name!r} holds text such as {example!r}, which is neither a number nor a time. "
                "Drop it, or write numbers, or times as YYYY-MM-DD HH:MM:SS."
            ) from None
    return None


def _numbers(column: nw.Series[Any]) -> ndarray:
    if column.null_count() == len(column):
        return np.full(len(column), np.nan)
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"The column {column.name!r} holds {column.dtype}, not numbers. Drop it, or turn it into numbers."
        )
    return column.cast(nw.Float64).to_numpy()


def _index_clock(frame: nw.DataFrame[Any]) -> ndarray | None:
    index = nw.maybe_get_index(frame)
    if index is None or getattr(index.dtype, "kind", "") != "M":
        return None
    return np.asarray(index if index.tz is None else index.tz_convert(None))


def _check_clock(timestamps: Shaped[ndarray, " row"]) -> None:
    empty = np.flatnonzero(np.isnat(timestamps) if timestamps.dtype.kind == "M" else timestamps != timestamps)
    if len(empty):
        raise InputError(f"The time in row {empty[0]} is missing ({len(empty)} such rows). Drop these rows.")
    back = np.flatnonzero(timestamps[1:] < timestamps[:-1])
    if len(back):
        raise InputError(
            f"Time goes back from row {back[0]} ({timestamps[back[0]]}) to row {back[0] + 1} "
            f"({timestamps[back[0] + 1]}). Sort the rows by time first."
        )
    same = np.flatnonzero(timestamps[1:] == timestamps[:-1])
    if len(same):
        raise InputError(
            f"Rows {same[0]} and {same[0] + 1} have the same time, {timestamps[same[0]]} ({len(same)} such pairs). "
            "Keep one row for each time."
        )
