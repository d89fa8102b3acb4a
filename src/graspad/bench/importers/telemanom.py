"""SMAP and MSL from telemanom: `labeled_anomalies.csv`, `train/<channel>.npy` and `test/<channel>.npy`.

A labelled sequence [a, b] covers the rows a … b, b included. A channel that is listed twice (P-2) counts with its first
line. Both arrays are kept whole, but for one channel of each set whose test rows are halved into `val` and `test`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.bench.importers.layout import Counts, Rebuilt, Rows, hold_back, load_array, need, numbered, segments
from graspad.errors import InputError

_TABLE = "labeled_anomalies.csv"


@dataclass(frozen=True)
class Spacecraft:
    """What mTSBench keeps of a spacecraft's channels, and the counts it ends up with."""

    set: str
    sensors: int
    left_out: frozenset[str]
    halved: str
    channels: int
    events: int  # labelled segments in the test rows
    anomalous: int  # test rows


SMAP = Spacecraft("SMAP", 25, frozenset({"D-12", "D-13", "P-7"}), "G-7", channels=51, events=64, anomalous=51_269)
MSL = Spacecraft("MSL", 55, frozenset({"T-9"}), "T-13", channels=26, events=33, anomalous=7_553)


@dataclass(frozen=True)
class _Channel:
    sequences: list[list[int]]
    rows: int

    def labels(self, rows: int) -> Bool[ndarray, " row"]:
        labels = np.zeros(rows, dtype=bool)
        for first, last in self.sequences:
            labels[first : last + 1] = True
        return labels


def read(source: Path, counts: Counts, craft: Spacecraft) -> Iterator[Rebuilt]:
    """The channels of a spacecraft, one at a time."""
    table = need(source, _TABLE)
    channels = _channels(table, craft)
    _check_labels(table, channels, counts, craft)
    arrays = need(source, f"test/{next(iter(channels))}.npy").parents[1]
    for name, channel in channels.items():
        train, test = (_load(arrays / split / f"{name}.npy", counts, craft) for split in ("train", "test"))
        counts.expect(arrays / "test" / f"{name}.npy", "rows", channel.rows, len(test))
        rows = Rows(test, channel.labels(len(test)))
        tested = hold_back(rows, _held_back(name, len(rows), craft))
        yield Rebuilt(name, numbered(test.shape[1]), {"train": Rows.normal(train), **tested})


def _load(file: Path, counts: Counts, craft: Spacecraft) -> Float[ndarray, "row sensor"]:
    values = load_array(file)
    counts.expect(file, "columns", craft.sensors, values.shape[1])
    return values


def _channels(table: Path, craft: Spacecraft) -> dict[str, _Channel]:
    """What the table of labels says of each channel that is kept."""
    channels: dict[str, _Channel] = {}
    try:
        with table.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                name = line["chan_id"]
                if line["spacecraft"] == craft.set and name not in craft.left_out and name not in channels:
                    channels[name] = _Channel(json.loads(line["anomaly_sequences"]), int(line["num_values"]))
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"The file {str(table)!r} is not telemanom's table of labels: {error!r}.") from None
    if not channels:
        raise InputError(f"The file {str(table)!r} lists no channel of {craft.set}. Is it telemanom's table of labels?")
    return channels


def _check_labels(table: Path, channels: Mapping[str, _Channel], counts: Counts, craft: Spacecraft) -> None:
    """The table alone tells whether the labels are the published ones, before anything is written."""
    counts.expect(table, f"channels of {craft.set} to import", craft.channels, len(channels))
    tested = []
    for name, channel in channels.items():
        labels = channel.labels(channel.rows)
        tested.append(labels[_held_back(name, len(labels), craft) :])
    counts.expect(table, f"test events of {craft.set}", craft.events, sum(len(segments(one)) for one in tested))
    counts.expect(table, f"anomalous test rows of {craft.set}", craft.anomalous, sum(int(one.sum()) for one in tested))


def _held_back(name: str, rows: int, craft: Spacecraft) -> int:
    """How many of the test rows mTSBench holds back as `val`."""
    return rows // 2 if name == craft.halved else 0
