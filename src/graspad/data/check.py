"""The data doctor: what in a table would stop fit or mislead it, in plain words and with the fix.

A doctor who cries wolf is not heard: a sensor is compared with its own habit, never with a fixed limit, and one that
stands still most of the time (a switch, a counter, a coarse reading) is not asked whether it is stuck or jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.config import RECIPE
from graspad.data.findings import (
    COPY,
    LIVELY,
    Finding,
    Index,
    Mask,
    Readings,
    absent,
    apart,
    correlation,
    counted,
    in_order,
    lively,
    moves,
    named,
    runs,
    same_signal,
    words_for,
)

_At = Callable[[Index], str]  # the words for a place in the data

_SAMPLE = 2000  # rows that suggest which sensors are copies
_HUGE = 1e100  # beyond this, sums of squares overflow
_STOPGAPS = {-999.25, -32768.0, *(sign * size for size in (999, 9999, 99999, 32767, 65535) for sign in (1.0, -1.0))}
_STUCK_ROWS, _STUCK_FACTOR = 20, 5  # a stuck stretch has so many rows and is so many times longer than all usual ones
_JUMP_ROWS, _JUMP_FACTOR = 6, 4  # a jump is over in so many rows and is so many times larger than all usual steps
_OUTSIDE = 0.1  # share of the rows to score beyond what the training rows have shown that is told as a shift


def check(
    values: Float[ndarray, "row sensor"],
    sensors: Sequence[str],
    timestamps: ndarray | None = None,
    *,
    window: int = RECIPE.window,
    gap_limit: int = RECIPE.gap_limit,
) -> list[Finding]:
    """Examine the rows meant for fit: errors first, then warnings, then notes.

    >>> [finding.topic for finding in check(np.zeros((300, 2)), ["a", "b"])]
    ['constant']
    """
    cut = round(len(values) * (1 - RECIPE.training.validation_share))
    found = [*_check_size(len(values), cut, window, sensors), *_check_times(timestamps, gap_limit)]
    lost, still, moving = np.zeros(len(values), dtype=bool), [], {}
    for column, name in enumerate(sensors if len(values) else ()):
        # One column at a time: a large table is never copied as a whole.
        readings = np.ascontiguousarray(values[:, column])
        missing, at = np.isnan(readings), partial(words_for, timestamps, None)
        unusable = list(_check_usable(readings, missing, cut, name, at))
        if unusable:
            found += unusable
            continue
        found += _check_gaps(missing, lost, name, gap_limit, at)
        rows = np.flatnonzero(~missing)
        readings, at = readings[rows], partial(words_for, timestamps, rows)
        if not moves(readings):
            still.append(name)
            continue
        moving[column] = [rows[np.argmin(readings)], rows[np.argmax(readings)]]
        found += _check_start(readings, int(np.searchsorted(rows, cut)), cut, name, at)
        stopgaps = list(_check_stopgap(readings, name, at))
        found += stopgaps or [*_check_stuck(readings, name, at), *_check_jumps(readings, name, at)]
    found += [*_check_windows(lost, cut, window), *_check_copies(values, sensors, moving)]
    return in_order([*found, *_check_still(still, len(sensors))])


def check_shift(
    train_values: Float[ndarray, "row sensor"],
    test_values: Float[ndarray, "test_row test_sensor"],
    sensors: Sequence[str],
    test_sensors: Sequence[str] | None = None,
    *,
    window: int = RECIPE.window,
) -> list[Finding]:
    """Compare rows to score with those meant for fit; without `test_sensors` both tables have the same columns.

    >>> [finding.topic for finding in check_shift(np.eye(90, 1), np.eye(90, 1) + 5, ["a"])]
    ['shift']
    """
    tested = list(sensors if test_sensors is None else test_sensors)
    found, awake = [], []
    if len(test_values) < window:
        told = f"There are {len(test_values)} rows to score, but a window has {window}; give at least {window} rows."
        found.append(Finding("error", "rows", None, told))
    for name in dict.fromkeys([*sensors, *tested]):
        if name not in tested:
            told = f"Sensor {name!r} is missing from the rows to score; add its column, or fit without it."
            found.append(Finding("error", "sensors", name, told))
        elif name not in sensors:
            told = f"Sensor {name!r} is not in the training rows; drop its column, or fit with it."
            found.append(Finding("error", "sensors", name, told))
        else:
            old, new = train_values[:, sensors.index(name)], test_values[:, tested.index(name)]
            old, new = old[np.abs(old) < _HUGE], new[np.abs(new) < _HUGE]
            if len(old) and len(new):
                shifts = list(_check_shifted(old, new, name))
                found += shifts
                awake += [name] if moves(new) and not (shifts or moves(old)) else []
    if awake:
        told = f"{counted(len(awake), 'sensor')} only moved after the training rows: {named(awake)}; each move counts "
        told += "in the unit of the data and may raise an alarm: if it is normal, fit on rows that show it."
        found.append(Finding("note", "shift", awake[0] if len(awake) == 1 else None, told))
    return in_order(found)


# --- the table as a whole ---------------------------------------------------------------------------------------------


def _check_size(rows: int, cut: int, window: int, sensors: Sequence[str]) -> Iterator[Finding]:
    if min(cut, rows - cut) < window:
        share = RECIPE.training.validation_share
        told = f"There are {rows} rows, but {math.ceil(window / min(share, 1 - share)) + 1} are needed: the last "
        told += f"{share:.0%} are held out and must fill a window of {window}; give more rows, or a smaller `window`."
        yield Finding("error", "rows", None, told)
    if not sensors:
        yield Finding("error", "sensors", None, "There are no sensor columns; give one numeric column per sensor.")
    elif len(sensors) == 1:
        told = f"Sensor {sensors[0]!r} is alone, so there is no graph to learn; add the sensors that move with it."
        yield Finding("note", "sensors", sensors[0], told)


def _check_times(times: ndarray | None, gap_limit: int) -> Iterator[Finding]:
    """Faults in the order of the times, or else in their spacing."""
    if times is None or len(times) < 2:
        return
    dated = times.dtype.kind == "M"
    steps, unit = (np.diff(times) / np.timedelta64(1, "s"), " s") if dated else (np.diff(times.astype(float)), "")
    faults = (
        (absent(times), "is missing", "fill it in, or drop the row"),
        (np.append(False, steps < 0), "is earlier than in the row before", "sort the rows by time"),
        (np.append(False, steps == 0), "is the same as in the row before", "keep one of the two"),
    )
    for wrong, what, fix in faults:
        if wrong.any():
            told = f"The time in {words_for(times, None, np.argmax(wrong))} {what} ({wrong.sum():,} in all); {fix}."
            yield Finding("error", "sampling", None, told)
    if any(wrong.any() for wrong, _, _ in faults):
        return
    usual, longest = float(np.median(steps)), np.argmax(steps)
    odd = np.abs(steps - usual) > 0.1 * usual
    if odd.any():
        told = (
            f"Rows are {usual:g}{unit} apart, but {odd.sum():,} of {len(steps):,} intervals differ, the longest being "
        )
        told += f"{steps[longest]:g}{unit} after {words_for(times, None, longest)}; "
        told += "windows count rows, not time: resample them."
        serious = odd.mean() > 0.01 or steps[longest] > (gap_limit + 1) * usual
        yield Finding("warning" if serious else "note", "sampling", None, told)


def _check_windows(lost: Mask, cut: int, window: int) -> Iterator[Finding]:
    """How many windows the long gaps of all sensors together leave whole."""
    whole = [int(np.maximum(runs(~part)[1] - window + 1, 0).sum()) for part in (lost[:cut], lost[cut:])]
    possible = max(cut - window + 1, 0) + max(len(lost) - cut - window + 1, 0)
    if sum(whole) < 0.8 * possible:
        told = f"Only {sum(whole):,} of {possible:,} windows are free of long gaps in every sensor; "
        told += "drop the sensors with the longest gaps, fill them yourself, or use a smaller `window`."
        yield Finding("warning" if all(whole) else "error", "gap", None, told, math.inf)


def _check_still(still: list[str], sensors: int) -> Iterator[Finding]:
    if still:
        told = f"{len(still)} of {sensors} sensors never move: {named(still)}; their scale is taken as 1, so that any "
        told += "later move counts in the unit of the data: drop those whose move would mean nothing."
        yield Finding("note", "constant", still[0] if len(still) == 1 else None, told)


def _check_copies(
    values: Float[ndarray, "row sensor"], sensors: Sequence[str], moving: dict[int, list[Index]]
) -> Iterator[Finding]:
    """Sensors that are the same but for unit and offset: some rows suggest the pairs, all rows decide."""
    columns = list(moving)
    if len(columns) < 2:
        return
    # With the extremes of each sensor among the rows, none of them stands still there.
    rows = [*range(0, len(values), -(-len(values) // _SAMPLE)), *(row for pair in moving.values() for row in pair)]
    alike = np.abs(correlation(values[np.ix_(rows, columns)])) > COPY
    copies: dict[int, list[int]] = {}
    for second, column in enumerate(columns):
        originals = (columns[first] for first in np.flatnonzero(alike[second, :second]))
        original = next((one for one in originals if one in copies and same_signal(values[:, [one, column]])), column)
        copies.setdefault(original, []).append(column)
    for original, group in copies.items():
        if len(group) > 1:
            others = named([sensors[column] for column in group[1:]])
            told = f"Sensor {sensors[original]!r} is repeated, up to unit and offset, by {others}: "
            told += f"what happens to it counts {len(group)} times; keep one of them."
            # Two switches may well agree for a while; two instruments do not.
            instruments = lively(np.diff(values[:, original]))
            yield Finding("warning" if instruments else "note", "duplicate", sensors[original], told, float(len(group)))


# --- one sensor -------------------------------------------------------------------------------------------------------


def _check_usable(readings: Readings, missing: Mask, cut: int, name: str, at: _At) -> Iterator[Finding]:
    infinite, huge = np.isinf(readings), np.abs(readings) > _HUGE
    if missing[: max(1, cut)].all():
        where = "at all" if missing.all() else f"in the first {cut:,} rows, from which the detector learns"
        yield Finding("error", "missing", name, f"Sensor {name!r} has no value {where}; drop its column.")
    elif infinite.any():
        told = f"Sensor {name!r} is infinite in {counted(infinite.sum(), 'row')}, first in {at(np.argmax(infinite))}; "
        yield Finding("error", "infinite", name, told + "leave such values empty.", float(infinite.mean()))
    elif huge.any():
        told = f"Sensor {name!r} is {readings[np.argmax(huge)]:g} in {at(np.argmax(huge))}, too large to be squared; "
        yield Finding("error", "range", name, told + "correct it, or change the unit.", float(huge.mean()))


def _check_gaps(missing: Mask, lost: Mask, name: str, gap_limit: int, at: _At) -> Iterator[Finding]:
    """Runs of missing values; marks in `lost` the rows that filling forward does not reach, as `Rows` does."""
    if missing.any():
        starts, lengths = runs(missing)
        long = (lengths > gap_limit) | (starts == 0)
        for start, length in zip(starts[long], lengths[long], strict=True):
            lost[start + (gap_limit if start else 0) : start + length] = True
        longest = np.argmax(lengths)
        told = f"Sensor {name!r} lacks {missing.sum():,} of {len(missing):,} values in {counted(len(starts), 'gap')}, "
        told += f"the longest of {counted(lengths[longest], 'row')} from {at(starts[longest])}; up to {gap_limit} rows "
        told += "are filled forward"
        told += f", but rows in {counted(long.sum(), 'gap')} get no score: fill or cut them." if long.any() else "."
        yield Finding("warning" if long.any() else "note", "gap", name, told, float(missing.mean()))


def _check_start(readings: Readings, start: int, cut: int, name: str, at: _At) -> Iterator[Finding]:
    """A sensor without a scale, for it moves only in the held-out rows."""
    if not moves(readings[:start]):
        told = f"Sensor {name!r} first moves in {at(np.argmax(readings != readings[0]))}, after the first {cut:,} rows "
        told += "from which its scale is taken (now as 1); fit on rows that show it moving from the start, or drop it."
        yield Finding("warning", "constant", name, told)


def _check_stopgap(readings: Readings, name: str, at: _At) -> Iterator[Finding]:
    """A number such as -999, far from all others, that stands for a missing value."""
    for number in {float(readings.min()), float(readings.max())} & _STOPGAPS:
        equal = readings == number
        low, high = readings[~equal].min(), readings[~equal].max()
        if min(abs(number - low), abs(number - high)) > 5 * max(high - low, abs(low), abs(high)):
            told = f"Sensor {name!r} is {number:g} in {counted(equal.sum(), 'row')}, first in {at(np.argmax(equal))}, "
            told += f"but else in {low:.4g} to {high:.4g}; if {number:g} stands for a missing value, leave it empty."
            yield Finding("warning", "range", name, told, float(equal.mean()))


def _check_stuck(readings: Readings, name: str, at: _At) -> Iterator[Finding]:
    """Stretches of one value, far longer than all others of a sensor that mostly moves."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(readings)) + 1, [len(readings)]])
    lengths = np.diff(edges)
    long = np.flatnonzero(lengths >= _STUCK_ROWS)
    long = long[np.argsort(-lengths[long], kind="stable")]
    count, usual = apart(lengths[long], lengths[lengths < _STUCK_ROWS].max(initial=1), _STUCK_FACTOR)
    long = long[:count]
    levels, stuck = readings[edges[long]], int(lengths[long].sum())
    lively = len(lengths) - count >= LIVELY * (len(readings) - stuck) and stuck < 0.8 * len(readings)
    # What comes back to rest at the same value is a machine that stops, not a sensor that fails.
    if count and lively and len(set(levels)) == count:
        told = f"Sensor {name!r} repeats {levels[0]:.6g} for {lengths[long[0]]:,} rows from {at(edges[long[0]])}"
        told += f" (one of {count} such stretches)" if count > 1 else ""
        told += f", but else for at most {counted(int(usual), 'row')}; unless the plant was at rest, "
        told += "the sensor was stuck: leave these values empty."
        resting = np.isin(levels, (readings.min(), readings.max())).all()
        yield Finding("note" if resting else "warning", "stuck", name, told, stuck / len(readings))


def _check_jumps(readings: Readings, name: str, at: _At) -> Iterator[Finding]:
    """Excursions of a few rows, far beyond the usual step, after which the sensor is back where it was."""
    steps, width = np.abs(np.diff(readings)), _JUMP_ROWS + 1
    if len(steps) < 10 * width or not lively(steps):
        return
    rows = np.flatnonzero(steps > _JUMP_FACTOR * np.quantile(steps, 0.99)) + 1
    rows = rows[(rows >= width) & (rows <= len(readings) - 2 * width)]
    before = np.median(readings[rows[:, None] - 1 - np.arange(width)], axis=1)
    after = np.median(readings[rows[:, None] + width + np.arange(width)], axis=1)
    sizes = np.abs(readings[rows] - before)
    # The row before must still be at home, else a jump of several rows would count several times.
    jumped = np.maximum(np.abs(after - before), np.abs(readings[rows - 1] - before)) < 0.2 * sizes
    rows, sizes = rows[jumped], sizes[jumped]
    steps[(rows[:, None] - 1 + np.arange(width + 1)).ravel()] = 0
    order = np.argsort(-sizes, kind="stable")
    count, usual = apart(sizes[order], steps.max(), _JUMP_FACTOR)
    if count:
        first, most = rows[order[:count]].min(), sizes.max()
        told = f"Sensor {name!r} jumps {counted(count, 'time')} for a few rows, first in {at(first)}, by up to "
        told += f"{most:.4g}, but else by at most {usual:.4g} a row; unless this is real, leave these values empty."
        yield Finding("warning", "jump", name, told, float(most) / usual)


def _check_shifted(old: Float[ndarray, " row"], new: Float[ndarray, " test_row"], name: str) -> Iterator[Finding]:
    """Readings to score that lie beyond what the training readings have shown."""
    low, high, middle = old.min(), old.max(), float(np.median(new))
    lower, usual, upper = np.quantile(old, [0.01, 0.5, 0.99])
    width = float(high - low) or 1.0
    outside = float(np.mean((new < low - 0.05 * width) | (new > high + 0.05 * width)))
    if outside > _OUTSIDE or not lower <= middle <= upper:
        told = f"Sensor {name!r} has a median of {middle:.4g} in the rows to score against {usual:.4g} in the training "
        told += f"rows (98% of them in {lower:.4g} to {upper:.4g}), and is out of the training range of {low:.4g} to "
        told += (
            f"{high:.4g} in {outside:.0%} of the rows to score; expect alarms: fit on newer rows, or check the sensor."
        )
        yield Finding("warning", "shift", name, told, outside + abs(middle - float(usual)) / width)
    elif len(new) >= _STUCK_ROWS and np.ptp(new) == 0 and lively(np.diff(old)):
        told = f"Sensor {name!r} moves in the training rows, but is always {middle:.6g} in the rows to score; check it."
        yield Finding("warning", "stuck", name, told)
