"""Which sensor is to blame: its share of the score, and how far it left its own course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

# So many rows before an incident tell what a sensor did just then, and fewer than this tell nothing.
BEFORE, _FEWEST = 200, 10
# In units of a sensor's spread in training. A sensor that stood still just before must move a little more than that.
_STIRS = 0.1
# Further off its course than this, a sensor is just somewhere else: how far says no more.
_ELSEWHERE = 15.0


@dataclass(frozen=True)
class Course:
    """What each sensor did just before an incident, in units of its spread in training."""

    middle: Float[ndarray, " sensor"]
    spread: Float[ndarray, " sensor"]

    @classmethod
    def of(cls, before: Float[ndarray, "row sensor"]) -> Course:
        """Of up to 200 rows before; where there are next to none, what it does in normal operation."""
        if len(before) < _FEWEST:
            return cls(np.zeros(before.shape[1]), np.ones(before.shape[1]))
        return cls(np.median(before, axis=0), before.std(axis=0, dtype=np.float64))

    def left(self, rows: Float[ndarray, "row sensor"]) -> Float[ndarray, " sensor"]:
        """How far each sensor went from its course at most, in units of its own unrest there."""
        return np.abs(rows - self.middle).max(axis=0, initial=0.0) / (self.spread + _STIRS)


def blame(shares: Float[ndarray, " sensor"], left: Float[ndarray, " sensor"]) -> Float[ndarray, " sensor"]:
    """Share × squared way from the course, 15 at most: high where the field is surprised by a sensor that has moved.

    Shares alone also blame those that are linked to it, and the way alone those that rightly follow the plant.
    """
    return shares * np.minimum(left, _ELSEWHERE) ** 2


def ranked(
    sensors: tuple[str, ...],
    shares: Float[ndarray, " sensor"],
    left: Float[ndarray, " sensor"],
    few: Sequence[int] = (),
) -> tuple[tuple[str, float], ...]:
    """The sensors with their shares: the `few` that alone explain a lasting incident, then the most to blame first."""
    order = [*few, *(index for index in np.lexsort((-shares, -blame(shares, left))) if index not in few)]
    return tuple((sensors[index], float(shares[index])) for index in order)


def course_left(
    values: Float[ndarray, "row sensor"], lost: Bool[ndarray, " row"], start: int, end: int
) -> Float[ndarray, " sensor"]:
    """How far each sensor left its course in rows [start, end), rows in longer gaps apart."""
    before = slice(max(0, start - BEFORE), start)
    return Course.of(values[before][~lost[before]]).left(values[start:end][~lost[start:end]])
