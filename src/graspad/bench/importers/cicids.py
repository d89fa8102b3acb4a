"""CICIDS from the day files of CIC-IDS-2017 (MachineLearningCSV.zip): one CSV per day or half day, last column `Label`.

Known are mTSBench's row and segment counts of its six series. Inferred, because only then do these counts come out:

- which day file each number stands for, and that rows keep the file's order;
- rows with a missing or infinite value (in Flow Bytes/s or Flow Packets/s) are deleted;
- the first fifth of what remains, without its attacks, is train, and the rest is test;
- of series 0, the first quarter of that rest is `val`, since its val and test rows are four fifths of the day. (Other
  mTSBench sets with such a `val`, creditcard for one, have counts that rule out that train is made of the `val` rows.)

Which 72 sensors it keeps is a guess (its summary says 73 and counts one column too many): here the 78 features without
the six averages over bulk transfers, which are zero throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graspad.bench.importers.layout import Counts, Rebuilt, Rows, find, segments, split_in_time
from graspad.errors import InputError

_LABEL, _BENIGN, _BULK = "Label", "BENIGN", "Bulk"
_SENSORS = 72


@dataclass(frozen=True)
class Day:
    """A day file, by the start of its name, and mTSBench's counts of the series made of it."""

    series: str
    file: str
    rows: int  # without those that have a missing or infinite value
    train: int
    events: int  # in the test rows
    with_val: bool = False


DAYS = (
    Day("0", "Wednesday-WorkingHours", 691_406, 66_766, 11_202, with_val=True),
    Day("2", "Thursday-WorkingHours-Morning", 170_231, 33_466, 1_536),
    Day("3", "Thursday-WorkingHours-Afternoon", 288_395, 57_679, 36),
    Day("5", "Friday-WorkingHours-Morning", 190_911, 38_180, 1_425),
    Day("6", "Friday-WorkingHours-Afternoon-PortScan", 286_096, 56_847, 2_099),
    Day("7", "Friday-WorkingHours-Afternoon-DDos", 225_711, 25_784, 19),
)


def read(source: Path, counts: Counts, days: Sequence[Day] = DAYS) -> Iterator[Rebuilt]:
    """The days with attacks that mTSBench keeps, one at a time."""
    files = {day: file for day in days if (file := find(source, f"{day.file}*.csv"))}
    if not files:
        raise InputError(f"There is no file such as '{days[0].file}.pcap_ISCX.csv' in {str(source)!r} or below it.")
    for day in days:
        if day not in files:
            counts.differ(f"There is no file '{day.file}*.csv' in {str(source)!r} or below it.")
    for day, file in files.items():
        sensors, rows = _read_day(file, counts)
        splits = split_in_time(rows, day.with_val)
        counts.expect(file, "rows without missing or infinite values", day.rows, len(rows))
        counts.expect(file, "train rows", day.train, len(splits["train"]))
        counts.expect(file, "test events", day.events, len(segments(splits["test"].labels)))
        yield Rebuilt(day.series, sensors, splits)


def _read_day(file: Path, counts: Counts) -> tuple[tuple[str, ...], Rows]:
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        raise InputError("Importing CICIDS needs pyarrow. Type: pip install 'graspad[bench]'") from None
    # One day has labels in a Windows encoding; of the labels only BENIGN matters.
    encoding = "latin1"
    with file.open(encoding=encoding) as lines:
        names = _distinct([name.strip() for name in lines.readline().split(",")])
    sensors = tuple(name for name in names if name != _LABEL and _BULK not in name)
    if _LABEL not in names or not sensors:
        raise InputError(
            f"The file {str(file)!r} has no column {_LABEL!r} beside features. Is it a CIC-IDS-2017 day file?"
        )
    try:
        table = csv.read_csv(
            file,
            read_options=csv.ReadOptions(column_names=names, skip_rows=1, encoding=encoding),
            convert_options=csv.ConvertOptions(
                include_columns=[*sensors, _LABEL],
                column_types={_LABEL: pyarrow.string(), **dict.fromkeys(sensors, pyarrow.float64())},
            ),
        )
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"The file {str(file)!r} cannot be read: {error}. Is it a CIC-IDS-2017 day file?") from None
    values = np.empty((len(table), len(sensors)))
    for place, name in enumerate(sensors):
        values[:, place] = table[name].to_numpy()
    labels = np.array([label.strip().upper() != _BENIGN for label in table[_LABEL].to_pylist()], dtype=bool)
    whole = np.all(np.isfinite(values), axis=1)
    if len(sensors) != _SENSORS:
        counts.remarks.append(f"{file.name} gives {len(sensors)} sensors, mTSBench has {_SENSORS}.")
    counts.remarks.append(f"{file.name}: {np.sum(~whole):,} rows with a missing or infinite value were left out.")
    return sensors, Rows(values, labels)[whole]


def _distinct(names: list[str]) -> list[str]:
    """Names with a number after those that repeat one, as in the published header.

    >>> _distinct(["a", "b", "a"])
    ['a', 'b', 'a.1']
    """
    return [
        f"{name}.{names[:place].count(name)}" if name in names[:place] else name for place, name in enumerate(names)
    ]
