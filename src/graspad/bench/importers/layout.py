"""What all importers share: finding the original's files, checking counts, splitting, writing mTSBench's layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from graspad.bench.datasets import LABEL
from graspad.data.files import frame_of, write_frame
from graspad.errors import InputError

_DEEPEST = 4  # folders between the one given and the file; archives unpack into a folder or two of their own


@dataclass(frozen=True)
class Rows:
    """Readings with their labels; a slice or a mask takes some of the rows.

    >>> len(Rows(np.zeros((3, 2)), np.array([False, True, False]))[1:])
    2
    """

    values: Float[ndarray, "row sensor"]
    labels: Bool[ndarray, " row"]

    @classmethod
    def normal(cls, values: Float[ndarray, "row sensor"]) -> Rows:
        """Rows of which none is anomalous."""
        return cls(values, np.zeros(len(values), dtype=bool))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | Bool[ndarray, " row"]) -> Rows:
        return Rows(self.values[rows], self.labels[rows])


@dataclass(frozen=True)
class Rebuilt:
    """One series as mTSBench splits it: `train`, `test` and sometimes `val`."""

    name: str
    sensors: tuple[str, ...]
    splits: Mapping[str, Rows]

    def __post_init__(self) -> None:
        for split, rows in self.splits.items():
            if rows.values.shape[1] != len(self.sensors):
                told = f"{rows.values.shape[1]} columns in its {split} rows, but {len(self.sensors)} elsewhere"
                raise InputError(f"The series {self.name!r} has {told}. Download its files again.")


@dataclass
class Counts:
    """Compares with what is published: a difference ends the import, or is only remarked if `check` is off."""

    check: bool
    remarks: list[str] = field(default_factory=list)

    def expect(self, file: Path, what: str, published: int, found: int) -> None:
        """Compare one count of a file."""
        if found != published:
            self.differ(f"{str(file)!r} has {found:,} {what}, but the published data has {published:,}.")

    def differ(self, told: str) -> None:
        """Tell a difference."""
        if self.check:
            raise InputError(f"{told} Check the download, or add --no-check to import it all the same.")
        self.remarks.append(told)


def find(source: Path, pattern: str) -> Path | None:
    """The first file that matches the pattern in the folder or else below it; upper and lower case do not count."""
    parts = pattern.count("/") + 1
    for depth in range(_DEEPEST):
        for place in sorted(source.glob("/".join("*" * (depth + parts)))):
            if fnmatchcase("/".join(place.parts[-parts:]).casefold(), pattern.casefold()):
                return place
    return None


def need(source: Path, pattern: str) -> Path:
    """As `find`, for a file that must be there."""
    file = find(source, pattern)
    if file is None:
        raise InputError(
            f"There is no {pattern!r} in {str(source)!r} or below it. Give the folder of the published data."
        )
    return file


def load_array(file: Path, dimensions: Literal[1, 2] = 2) -> ndarray:
    """The numbers in a .npy file or in a text file with commas."""
    if not file.is_file():
        raise InputError(f"There is no file {str(file)!r}. Is the download complete?")
    try:
        array = np.load(file) if file.suffix == ".npy" else np.loadtxt(file, delimiter=",", ndmin=dimensions)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"The file {str(file)!r} cannot be read: {error}. Download it again.") from None
    if array.ndim != dimensions or array.dtype.kind not in "fiub":
        told = f"must hold numbers in {dimensions} dimensions, not {array.dtype} of shape {array.shape}"
        raise InputError(f"The file {str(file)!r} {told}. Is it the published one?")
    return array.astype(np.float64)


def load_labels(file: Path) -> Bool[ndarray, " row"]:
    """One 0 or 1 per row."""
    labels = load_array(file, dimensions=1)
    if wrong := set(np.unique(labels).tolist()) - {0.0, 1.0}:
        raise InputError(f"The file {str(file)!r} must hold only 0 and 1, but also has {sorted(wrong)[:5]}.")
    return labels == 1


def labelled(values: Float[ndarray, "row sensor"], labels: Bool[ndarray, " label"], file: Path) -> Rows:
    """Rows with labels that came from a file of their own."""
    if len(values) != len(labels):
        told = f"has {len(labels):,} labels for {len(values):,} rows"
        raise InputError(f"The file {str(file)!r} {told}. Download both files again.")
    return Rows(values, labels)


def segments(labels: Bool[ndarray, " row"]) -> Int[ndarray, "segment 2"]:
    """First and last row of each run of anomalous rows.

    >>> segments(np.array([True, False, True, True]))
    array([[0, 0],
           [2, 3]])
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], labels, [False]))))
    return edges.reshape(-1, 2) - [0, 1]


def hold_back(rows: Rows, cut: int) -> dict[str, Rows]:
    """Test rows, of which the first may be kept apart as `val`."""
    return {"val": rows[:cut], "test": rows[cut:]} if cut else {"test": rows}


def split_in_time(rows: Rows, with_val: bool) -> dict[str, Rows]:
    """Train = the first fifth without its anomalous rows, test = the rest; `val` is the first quarter of that rest.

    >>> rows = Rows(np.zeros((10, 1)), np.arange(10) == 1)
    >>> {split: len(part) for split, part in split_in_time(rows, with_val=True).items()}
    {'train': 1, 'val': 2, 'test': 6}
    """
    lead, rest = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    return {"train": lead[~lead.labels], **hold_back(rest, len(rest) // 4 if with_val else 0)}


def numbered(count: int) -> tuple[str, ...]:
    """Names for sensors that the original does not name.

    >>> numbered(2)
    ('v00', 'v01')
    """
    return tuple(f"v{index:02d}" for index in range(count))


def write_series(folder: Path, series: Rebuilt) -> list[Path]:
    """Write each split to `<SET>/<SET>_<series>_<split>.parquet`; a file appears only once it is complete."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {str(folder)!r} cannot be made: {error.strerror}.") from None
    written = []
    for split, rows in series.splits.items():
        columns = {name: rows.values[:, place] for place, name in enumerate(series.sensors)}
        clock, labels = np.arange(len(rows), dtype=np.int32), rows.labels.astype(np.int8)
        file = folder / f"{folder.name}_{series.name}_{split}.parquet"
        write_frame(frame_of({"timestamp": clock, **columns, LABEL: labels}), file)
        written.append(file)
    return written
