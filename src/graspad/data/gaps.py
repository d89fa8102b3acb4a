"""Missing values: short gaps are filled forward, longer ones make rows that get no score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.data.windows import count_in_windows


@dataclass(frozen=True)
class Rows:
    """Values without holes, and what is known of the holes that were there.

    A filled value is not an observation: its residual counts as zero, and a row made up mostly of them raises no alarm.
    A `lost` row lies in a longer gap; no window that holds one is scored.
    """

    values: Float[ndarray, "row sensor"]
    filled: Bool[ndarray, "row sensor"] | None  # None where nothing was missing
    lost: Bool[ndarray, " row"]

    @classmethod
    def of(cls, values: Float[ndarray, "row sensor"], limit: int) -> Rows:
        """Repeat a sensor's last value for up to `limit` missing rows; rows with a longer gap are lost.

        A stream cannot know how long a gap will be, so the first `limit` rows of a longer one are filled too.

        >>> rows = Rows.of(np.array([[1.0], [np.nan], [np.nan], [4.0]]), limit=1)
        >>> rows.values.ravel().tolist(), rows.lost.tolist()
        ([1.0, 1.0, 1.0, 4.0], [False, False, True, False])
        """
        missing = np.isnan(values)
        if not missing.any():
            return cls(values, None, np.zeros(len(values), dtype=bool))
        row = np.arange(len(values))[:, None]
        last = np.maximum.accumulate(np.where(missing, -1, row), axis=0)
        carried = np.take_along_axis(values, np.maximum(last, 0), axis=0)
        # Before the first observation there is nothing to repeat; the row is lost, its value only has to be finite.
        return cls(
            np.where(last >= 0, carried, 0.0), missing, ((row - last > limit) | ((last < 0) & missing)).any(axis=1)
        )

    @property
    def mostly_filled(self) -> Bool[ndarray, " row"]:
        """Rows in which more values were filled than observed."""
        return np.zeros(len(self.lost), dtype=bool) if self.filled is None else self.filled.mean(axis=1) > 0.5

    def part(self, rows: slice) -> Rows:
        """Some of the rows."""
        return Rows(self.values[rows], None if self.filled is None else self.filled[rows], self.lost[rows])

    def averaged(self, every: int) -> Rows:
        """Means of `every` rows each; an incomplete one at the end is left out.

        A mean is filled where most of its values were, and lost where one of its rows was.

        >>> Rows.of(np.array([[1.0], [3.0], [4.0]]), limit=0).averaged(2).values.tolist()
        [[2.0]]
        """
        if every == 1:
            return self
        count = len(self.values) // every

        def blocks(part: ndarray) -> ndarray:
            return part[: count * every].reshape(count, every, *part.shape[1:])

        filled = None if self.filled is None else np.mean(blocks(self.filled), axis=1) > 0.5
        return Rows(blocks(self.values).mean(axis=1), filled, np.any(blocks(self.lost), axis=1))

    def whole_windows(self, window: int) -> Bool[ndarray, " window"]:
        """Which windows hold no lost row."""
        return count_in_windows(self.lost, window) == 0


class Feed:
    """Rows that come one by one, with gaps filled as `Rows.of` does; the last `kept` of them stay at hand."""

    def __init__(self, sensors: int, limit: int, kept: int) -> None:
        self.limit, self.kept = limit, kept
        self.last = np.full(sensors, np.nan, dtype=np.float32)  # the last observed value of each sensor
        self.age = np.zeros(sensors, dtype=np.int64)  # rows since then
        self.values = np.empty((0, sensors), dtype=np.float32)
        self.filled = np.empty((0, sensors), dtype=bool)
        self.lost = np.empty(0, dtype=bool)

    def push(
        self, values: Float[ndarray, " sensor"], left_out: bool = False, filled: Bool[ndarray, " sensor"] | None = None
    ) -> None:
        """Take the next row of scaled values, NaN where one is missing; a row that is `left_out` is lost.

        Of values that were filled before they came, `filled` tells which.
        """
        missing = np.isnan(values)
        self.age = np.where(missing, self.age + 1, 0)
        self.last = np.where(missing, self.last, values)
        unknown = np.isnan(self.last)
        lost = left_out or bool(((self.age > self.limit) | unknown).any())
        self.values = self._longer(self.values, np.where(unknown, 0, self.last))
        self.filled = self._longer(self.filled, missing if filled is None else filled)
        self.lost = self._longer(self.lost, np.array(lost))

    def latest(self, count: int) -> Rows:
        """The last rows, as many as there are."""
        return Rows(self.values[-count:], self.filled[-count:], self.lost[-count:])

    def _longer(self, kept: ndarray, new: ndarray) -> ndarray:
        return np.concatenate([kept[-self.kept + 1 :], new[None]]) if self.kept > 1 else new[None]
