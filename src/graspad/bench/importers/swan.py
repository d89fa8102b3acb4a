"""SWAN-SF as prepared by NeurIPS-TS (Lai et al., 2021): 120,000 rows in time order, 38 sensors, a label for each row.

Its script writes `swan_sf.csv`: first column `label`, then the sensors. Known are mTSBench's counts: 19,672 train,
24,000 val and 72,000 test rows. Inferred: val and test are the last four fifths, and train is the first fifth without
its anomalous rows (see `cicids` for the argument).

The arrays that many papers pass on, `NIPS_TS_Swan_{train,test,test_label}.npy`, have 60,000 rows each and no labels for
the first half. mTSBench's split cannot be made of them, since it deletes anomalous rows of that half and tests on some;
without checking, the halves are imported as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw

from graspad.bench.datasets import read_labels, read_sensors
from graspad.bench.importers.layout import (
    Counts,
    Rebuilt,
    Rows,
    find,
    labelled,
    load_array,
    load_labels,
    numbered,
    split_in_time,
)
from graspad.data.files import read_frame
from graspad.errors import InputError

_SERIES, _LABEL = "sf", "label"
_CSV, _ARRAY = "swan_sf.csv", "NIPS_TS_Swan_train.npy"


@dataclass(frozen=True)
class Size:
    """mTSBench's counts."""

    sensors: int
    rows: int
    train: int


SIZE = Size(sensors=38, rows=120_000, train=19_672)


def read(source: Path, counts: Counts, size: Size = SIZE) -> Iterator[Rebuilt]:
    """The one series there is."""
    file = find(source, _CSV)
    if file is None:
        yield _halves(source, counts)
        return
    frame = nw.from_native(read_frame(file), eager_only=True)
    if _LABEL not in frame.columns:
        raise InputError(
            f"The file {str(file)!r} has no column {_LABEL!r}. Is it what NeurIPS-TS's script has written?"
        )
    table = read_sensors(frame, [name for name in frame.columns if name != _LABEL], file)
    labels = read_labels(frame.get_column(_LABEL), file)
    splits = split_in_time(Rows(table.values, labels), with_val=True)
    counts.expect(file, "sensors", size.sensors, len(table.sensors))
    counts.expect(file, "rows", size.rows, len(labels))
    counts.expect(file, "train rows", size.train, len(splits["train"]))
    yield Rebuilt(_SERIES, table.sensors, splits)


def _halves(source: Path, counts: Counts) -> Rebuilt:
    train_file = find(source, _ARRAY)
    if train_file is None:
        told = f"There is neither {_CSV!r} nor {_ARRAY!r} in {str(source)!r} or below it"
        raise InputError(f"{told}. Give the folder of NeurIPS-TS's SWAN-SF data.")
    counts.differ(
        f"There are no labels for the rows of {str(train_file)!r}, which mTSBench's split needs; "
        f"it takes {_CSV!r}, which NeurIPS-TS's script writes."
    )
    test_file, label_file = (train_file.with_name(_ARRAY.replace("train", part)) for part in ("test", "test_label"))
    train, test = load_array(train_file), labelled(load_array(test_file), load_labels(label_file), label_file)
    return Rebuilt(_SERIES, numbered(train.shape[1]), {"train": Rows.normal(train), "test": test})
