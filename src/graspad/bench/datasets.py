"""Benchmark series in mTSBench's layout, Parquet or CSV.

    <folder>/<SET>/<SET>_<series>_train.parquet      rows of normal operation
    <folder>/<SET>/<SET>_<series>_test.parquet       rows to score

The first column is the timestamp, the others are the sensors, and `is_anomaly` (0/1) is the label, which only the test
file needs. Files named `..._val` are for model selection and are left alone. mTSBench's own downloads have this layout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.data.files import read_frame
from graspad.data.table import Table
from graspad.errors import InputError

LABEL = "is_anomaly"
_FILE = re.compile(r"(?P<stem>[^.].*)_(?P<split>train|test|val)\.(csv|parquet)", re.IGNORECASE)
_EXAMPLE = "SMAP/SMAP_A-1_train.parquet and SMAP/SMAP_A-1_test.parquet (or .csv)"
_TRUTH = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
_TRAIN_ONLY = {"SMAP_P-7"}  # mTSBench publishes rows to train on, but none to test


@dataclass(frozen=True)
class SeriesData:
    """The values of a series and the labels of its test rows."""

    sensors: tuple[str, ...]
    train: Float[ndarray, "train_row sensor"]
    test: Float[ndarray, "row sensor"]
    labels: Bool[ndarray, " row"]


@dataclass(frozen=True)
class Series:
    """One series of a set and where its files are."""

    set: str
    name: str
    train: Path
    test: Path

    def load(self) -> SeriesData:
        """Read both files; the test sensors are put in the order of the train sensors."""
        train, _ = _read(self.train)
        test, labels = _read(self.test)
        if labels is None:
            raise InputError(
                f"The file {str(self.test)!r} has no column {LABEL!r}. Add it: 1 for anomalous rows, else 0."
            )
        lacking = {
            self.test: [name for name in train.sensors if name not in test.sensors],
            self.train: [name for name in test.sensors if name not in train.sensors],
        }
        if any(lacking.values()):
            told = ", and ".join(f"{str(file)!r} has no {names}" for file, names in lacking.items() if names)
            both = f"{str(self.train)!r} and {str(self.test)!r}"
            raise InputError(f"The files {both} must have the same sensors, but {told}. Add or drop these columns.")
        order = [test.sensors.index(name) for name in train.sensors]
        return SeriesData(train.sensors, train.values, test.values[:, order], read_labels(labels, self.test))


def find_series(folder: Path, sets: Sequence[str] | None) -> list[Series]:
    """All series of the sets asked for, or of every set in the folder; by set as asked, then by name.

    A folder that holds the files of one set itself counts as that set.
    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}. Give one that holds files such as {_EXAMPLE}.")
    found = {place.name: place for place in sorted(folder.iterdir()) if place.is_dir() and _splits(place)}
    if not found and _splits(folder):
        found = {folder.resolve().name: folder}
    if not found:
        raise _foreign(folder)
    wanted = list(found) if sets is None else [_named(name, found, folder) for name in sets]
    return [series for name in dict.fromkeys(wanted) for series in _pairs(name, found[name])]


def read_sensors(frame: nw.DataFrame[Any], sensors: list[str], file: Path) -> Table:
    """The columns that must be sensors."""
    try:
        table = Table.of(nw.to_native(frame.select(sensors)))
    except InputError as error:
        raise InputError(f"The file {str(file)!r} cannot be used. {error}") from None
    if table.time is not None:
        told = f"has a time column {table.time!r} among the sensors"
        raise InputError(f"The file {str(file)!r} {told}. Drop it, or rename it if it is a sensor.")
    return table


def read_labels(column: nw.Series[Any], file: Path) -> Bool[ndarray, " row"]:
    """Labels written as 0 and 1, as 0.0 and 1.0 or as true and false."""
    meaning = {value: _TRUTH.get(str(value).strip().casefold()) for value in column.unique().to_list()}
    wrong = sorted(repr(value) for value, truth in meaning.items() if truth is None)
    if wrong:
        shown = ", ".join(wrong[:5]) + (", ..." if len(wrong) > 5 else "")
        told = f"The column {column.name!r} of {str(file)!r} holds {shown}"
        raise InputError(f"{told}. Write 1 for anomalous rows and 0 for all others.")
    return np.array([meaning[value] for value in column.to_list()], dtype=bool)


def _named(name: str, found: dict[str, Path], folder: Path) -> str:
    """The set of that name; upper and lower case count only where they tell two sets apart."""
    alike = [name] if name in found else [one for one in found if one.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    if (folder / name).is_dir():
        raise _foreign(folder / name)
    raise InputError(f"There is no set {name!r} in {str(folder)!r}. The sets there are {list(found)}.")


def _splits(folder: Path) -> dict[str, dict[str, list[Path]]]:
    """The files of the layout by stem (the name up to the split) and split."""
    splits: dict[str, dict[str, list[Path]]] = {}
    for file in sorted(folder.iterdir()):
        if file.is_file() and (parts := _FILE.fullmatch(file.name)):
            splits.setdefault(parts["stem"], {}).setdefault(parts["split"].casefold(), []).append(file)
    return splits


def _pairs(name: str, folder: Path) -> list[Series]:
    pairs = []
    for stem, splits in _splits(folder).items():
        if splits.keys() <= {"val"} or (stem in _TRAIN_ONLY and "test" not in splits):
            continue
        for split, partner in (("train", "test"), ("test", "train")):
            if split not in splits:
                there = splits[partner][0]
                missing = there.with_name(f"{stem}_{split}{there.suffix}")
                raise InputError(f"There is {there.name!r}, but no {str(missing)!r}. Add it, or remove the other.")
            if len(splits[split]) > 1:
                told = " and ".join(repr(str(file)) for file in splits[split])
                raise InputError(f"There are {told}, and they may differ. Keep one.")
        prefixed = stem.casefold().startswith(f"{name}_".casefold())
        pairs.append(Series(name, stem[len(name) + 1 :] if prefixed else stem, *splits["train"], *splits["test"]))
    return sorted(pairs, key=lambda series: series.name)


def _foreign(folder: Path) -> InputError:
    example = next((file for file in sorted(folder.rglob("*")) if file.suffix.casefold() in (".csv", ".parquet")), None)
    told = f"There is no data in {str(folder)!r}."
    if example:
        seen = str(example.relative_to(folder))
        told = f"No file in {str(folder)!r} has the layout of the benchmark; the first one is {seen!r}."
    return InputError(f"{told} Name the files of a series like {_EXAMPLE}.")


def _read(file: Path) -> tuple[Table, nw.Series[Any] | None]:
    """The sensors of a file, and its labels if it has any; the first column is the timestamp, whatever its name."""
    frame = nw.from_native(read_frame(file), eager_only=True)
    sensors = [name for name in frame.columns[1:] if name != LABEL]
    if len(frame) < 2 or not sensors:
        told = f"{len(frame)} rows and {len(sensors)} sensors; at least 2 rows and 1 sensor are needed"
        columns = f"The columns must be a timestamp, the sensors and {LABEL!r}. They are {frame.columns}."
        raise InputError(f"The file {str(file)!r} has {told}. {columns}")
    return read_sensors(frame, sensors, file), frame.get_column(LABEL) if LABEL in frame.columns else None
