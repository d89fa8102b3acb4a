"""What the data doctor says: findings, their order and their words, and the small tools they are made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

Index = int | np.integer
Mask = Bool[ndarray, " row"]
Readings = Float[ndarray, " reading"]

# In the order in which they are told.
_LEVELS = ["error", "warning", "note"]
_TOPICS = ["rows", "sensors", "sampling", "missing", "infinite", "range"]
_TOPICS += ["gap", "shift", "constant", "stuck", "jump", "duplicate"]
_TOP = 3  # sensors told in full for each topic; the others are only named

LIVELY = 0.5  # share of the steps in which a sensor must move to be asked whether it is stuck or jumps
COPY = 1 - 1e-5  # correlation of a copy, which may be rounded


@dataclass(frozen=True)
class Finding:
    """One thing to know about the data; an error is what fit or score would refuse."""

    level: Literal["error", "warning", "note"]
    topic: str
    sensor: str | None
    message: str
    severity: float = 0.0  # among the findings of the same level and topic


def moves(readings: Readings) -> bool:
    """Whether the sensor has a spread of its own, as `Scale` sees it."""
    return bool(np.ptp(readings) > 0 and readings.std() > 1e-12 * abs(readings.mean()))


def lively(steps: Float[ndarray, " step"]) -> bool:
    """Whether a sensor moves often enough to be asked whether it is stuck or jumps."""
    return bool(np.count_nonzero(np.abs(steps) > 0) >= LIVELY * len(steps))


def apart(sizes: ndarray, rest: np.number[Any], factor: int) -> tuple[int, float]:
    """How many of the falling sizes stand apart from all that follow, by a factor, and the largest that follows."""
    line = np.append(sizes, rest)
    count = int(np.flatnonzero(np.append(True, line[:-1] >= factor * line[1:]))[-1])
    return count, float(line[count])


def runs(mask: Mask) -> tuple[Int[ndarray, " run"], Int[ndarray, " run"]]:
    """Starts and lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return edges[::2], edges[1::2] - edges[::2]


def same_signal(pair: Float[ndarray, "row 2"]) -> bool:
    """Whether two sensors move as one, and not only in a few great moves that they share."""
    pair = pair[~np.isnan(pair).any(axis=1)]
    inner = np.clip(pair, *np.quantile(pair, [0.05, 0.95], axis=0)) if len(pair) else pair
    parts = [pair, inner] if np.ptp(inner, axis=0).any() else [pair]
    return all(abs(correlation(part)[0, 1]) > COPY for part in parts)


def correlation(values: Float[ndarray, "row sensor"]) -> Float[ndarray, "sensor sensor"]:
    """Correlation of each pair of sensors over the rows where both have a value; 0 where one stands still there."""
    there = ~np.isnan(values)
    count = np.maximum(there.T.astype(float) @ there, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.nan_to_num((values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0), posinf=0, neginf=0)
        mean = scaled.T @ there / count
        variance = (scaled**2).T @ there / count - mean**2
        covariance = scaled.T @ scaled / count - mean * mean.T
        return np.where(np.minimum(variance, variance.T) > 1e-9, covariance / np.sqrt(variance * variance.T), 0)


def in_order(found: list[Finding]) -> list[Finding]:
    """Errors first, then by topic and severity; of many sensors with the same trouble the lesser are only named."""

    def place(finding: Finding) -> tuple[int, int]:
        return _LEVELS.index(finding.level), _TOPICS.index(finding.topic)

    told = []
    for _, group in groupby(sorted(found, key=lambda finding: (*place(finding), -finding.severity)), key=place):
        findings = list(group)
        rest = [finding.sensor for finding in findings[_TOP:] if finding.sensor is not None]
        if len(rest) > 1:
            message = f"And {len(rest)} more sensors with the same trouble ({findings[0].topic}): {named(rest)}."
            findings[_TOP:] = [Finding(findings[0].level, findings[0].topic, None, message)]
        told += findings
    return told


def named(names: Sequence[str]) -> str:
    """Some names in a row."""
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def words_for(times: ndarray | None, rows: ndarray | None, index: Index) -> str:
    """The words for a place in the data."""
    row = int(index if rows is None else rows[index])
    if times is None or absent(times)[row]:
        return f"row {row}"
    return f"row {row} ({times[row].astype('M8[s]') if times.dtype.kind == 'M' else times[row]})"


def absent(times: ndarray) -> Mask:
    """Where a time is missing."""
    return np.isnat(times) if times.dtype.kind == "M" else np.isnan(times.astype(float))


def counted(number: Index, noun: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" + "s" * bool(number != 1)
