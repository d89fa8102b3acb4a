"""From results to means: over the seeds of each series, then over the series; and differences paired by series."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal, TypeVar

from graspad.bench.results import Row
from graspad.bench.roster import Sweep, swept

Verb = Literal["fit", "score"]
Key = TypeVar("Key", bound=Hashable)

# Deviations below this are rounding: the method does not depend on the seed.
_NO_DEVIATION = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean and its uncertainty; `spread` is None where one value alone cannot tell."""

    mean: float
    spread: float | None


def by_method(rows: Iterable[Row], data_set: str) -> dict[str, list[Row]]:
    """The units of a set that did not fail, by method."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.set == data_set and not row.error:
            found.setdefault(row.method, []).append(row)
    return found


def series_of(rows: Iterable[Row]) -> set[str]:
    """The series that occur."""
    return {row.series for row in rows}


def seeds_per_series(rows: Iterable[Row]) -> list[int]:
    """How many seeds each series has."""
    return [len(of_series) for of_series in _by(lambda row: row.series, rows).values()]


def over_seeds(rows: Iterable[Row], column: str) -> Estimate | None:
    """Mean over the series of each one's mean over seeds, and the sample deviation over the seeds of their mean.

    Where some series have fewer seeds than others, the deviation is that on the series which all seeds have: means
    over different series differ by more than seeds do. Series without a value do not count; None if there is none.
    """
    found = defined(rows, column)
    if not found:
        return None
    by_seed = _by(lambda row: row.seed, found).values()
    common = set.intersection(*map(series_of, by_seed))
    means = [fmean(row.numbers[column] for row in units if row.series in common) for units in by_seed if common]
    return Estimate(fmean(_by_series(found, column).values()), stdev(means) if len(means) > 1 else None)


def total(rows: Iterable[Row], column: str) -> float | None:
    """Sum over the series of each one's mean over seeds; None if there is no value."""
    by_series = _by_series(rows, column)
    return sum(by_series.values()) if by_series else None


def seconds_per_row(rows: Iterable[Row], verb: Verb) -> float | None:
    """Seconds that a training row takes to fit, or a test row to score, over all series and seeds."""
    seconds, counted = f"{verb}_seconds", {"fit": "train_rows", "score": "rows"}[verb]
    timed = [row for row in defined(rows, seconds) if row.numbers.get(counted, 0) > 0]
    total = sum(row.numbers[counted] for row in timed)
    return sum(row.numbers[seconds] for row in timed) / total if timed else None


def paired(rows: Iterable[Row], reference: Iterable[Row], column: str) -> Estimate | None:
    """Mean over the series that both have of the difference to a reference, ± its standard error over those series.

    A series' value is its mean over seeds. This is the noise that remains for methods that no seed changes: other
    series of the same kind would have given another mean.
    """
    ours, theirs = _by_series(rows, column), _by_series(reference, column)
    found = _estimate([ours[series] - theirs[series] for series in ours if series in theirs])
    if found is None or found.spread is None:
        return found
    return Estimate(found.mean, found.spread / len(ours.keys() & theirs.keys()) ** 0.5)


def in_seed_deviations(rows: Sequence[Row], reference: Sequence[Row], column: str) -> float | None:
    """The difference to a reference, on the series both have, over the deviation between seeds.

    That deviation is the root mean square of the two methods' own; None if it is zero or not known.
    """
    both = series_of(defined(rows, column)) & series_of(defined(reference, column))
    ours, theirs = (over_seeds((row for row in of if row.series in both), column) for of in (rows, reference))
    if ours is None or theirs is None or ours.spread is None or theirs.spread is None:
        return None
    deviation = ((ours.spread**2 + theirs.spread**2) / 2) ** 0.5
    return (ours.mean - theirs.mean) / deviation if deviation > _NO_DEVIATION else None


def sweep(rows: Sequence[Row], quantity: Sweep) -> dict[str, dict[float, list[Row]]]:
    """By set and by value of the varied quantity, in rising order: the units on the series that all values have."""
    found = {}
    for data_set in dict.fromkeys(row.set for row in rows):
        varied = {swept(method): units for method, units in by_method(rows, data_set).items()}
        values = {key[1]: units for key, units in varied.items() if key is not None and key[0] == quantity}
        common = set.intersection(*map(series_of, values.values())) if values else set()
        if common:
            found[data_set] = {v: [row for row in values[v] if row.series in common] for v in sorted(values)}
    return found


def defined(rows: Iterable[Row], column: str) -> list[Row]:
    """The units in which a column has a value."""
    return [row for row in rows if column in row.numbers]


def _by(key: Callable[[Row], Key], rows: Iterable[Row]) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _by_series(rows: Iterable[Row], column: str) -> dict[str, float]:
    units = _by(lambda row: row.series, defined(rows, column))
    return {series: fmean(row.numbers[column] for row in of_series) for series, of_series in units.items()}


def _estimate(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    return Estimate(fmean(values), stdev(values) if len(values) > 1 else None)
