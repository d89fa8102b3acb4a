"""Any data frame or array in; as many rows out, in the same order, with the same index and of the same type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.errors import InputError


@dataclass(frozen=True)
class Table:
    """Sensor values as one float64 array, with what is needed to answer in the caller's own type."""

    values: Float[ndarray, "row sensor"]
    sensors: tuple[str, ...]
    time: str | None
    native: Any

    @classmethod
    def of(cls, data: Any) -> Table:
        """Read a pandas, polars or pyarrow table or a 2-D numpy array; a date-time column is kept apart as time.

        >>> Table.of(np.zeros((3, 2))).sensors
        ('0', '1')
        """
        if isinstance(data, np.ndarray):
            return cls._of_array(data)
        try:
            frame = nw.from_native(data, eager_only=True)
        except TypeError:
            raise InputError(
                "The data must be a pandas, polars or pyarrow table or a 2-D numpy array of rows × sensors. "
                f"Got {type(data).__module__}.{type(data).__name__}."
            ) from None
        return cls._of_frame(frame, data)

    @classmethod
    def _of_array(cls, data: ndarray) -> Table:
        if data.ndim != 2 or not np.issubdtype(data.dtype, np.number) or np.iscomplexobj(data):
            raise InputError(
                "A numpy array must have two dimensions, rows × sensors, and hold real numbers. "
                f"Got shape {data.shape} of {data.dtype}."
            )
        names = tuple(str(index) for index in range(data.shape[1]))
        return cls(data.astype(np.float64), names, None, None)

    @classmethod
    def _of_frame(cls, frame: nw.DataFrame[Any], native: object) -> Table:
        times = [name for name, kind in frame.schema.items() if kind.is_temporal()]
        sensors = [name for name in frame.columns if name not in times]
        wrong = [name for name in sensors if not (frame.schema[name].is_numeric() or frame.schema[name] == nw.Boolean)]
        if wrong:
            raise InputError(
                f"The column {wrong[0]!r} holds {frame.schema[wrong[0]]}, not numbers. "
                "Drop it, or turn it into numbers or date-times before you give it to graspad."
            )
        if len(times) > 1:
            raise InputError(f"There are {len(times)} date-time columns: {times}. Keep one and drop the others.")
        columns = [frame.get_column(name).cast(nw.Float64).to_numpy() for name in sensors]
        values = np.stack(columns, axis=1) if columns else np.empty((len(frame), 0))
        return cls(values, tuple(str(name) for name in sensors), times[0] if times else None, native)

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
        answer = nw.to_native(out)
        index = nw.maybe_get_index(frame)
        if index is not None:
            answer.index = index
        if self.time is None:
            return answer
        return nw.to_native(nw.concat([frame.select(self.time), nw.from_native(answer)], how="horizontal"))

    def in_order(self, sensors: Sequence[str]) -> Float[ndarray, "row sensor"]:
        """The values with the columns in the model's order; a numpy array has no names and is taken as it is."""
        if self.native is None and len(self.sensors) == len(sensors):
            return self.values
        missing = [name for name in sensors if name not in self.sensors]
        extra = [name for name in self.sensors if name not in sensors]
        if missing or extra:
            raise InputError(
                "The sensors are not those the detector was fitted on."
                + (f" Missing: {missing}." if missing else "")
                + (f" Not known: {extra}; drop them." if extra else "")
            )
        return self.values[:, [self.sensors.index(name) for name in sensors]]
