"""SMD from OmniAnomaly: `train/`, `test/` and `test_label/`, each with a file `machine-1-1.txt` and so on.

mTSBench keeps the machines with at least 10 labelled segments and cuts off the start of their test rows, up to the
middle between two segments; the train rows are kept whole. The rest of machine-1-2 is divided into `val` and `test`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Bool
from numpy import ndarray

from graspad.bench.importers.layout import (
    Counts,
    Rebuilt,
    Rows,
    hold_back,
    labelled,
    load_array,
    load_labels,
    need,
    numbered,
    segments,
)
from graspad.errors import InputError

SENSORS = (
    "cpu_r",
    "load_1",
    "load_5",
    "load_15",
    "mem_shmem",
    "mem_u",
    "mem_u_e",
    "total_mem",
    "disk_q",
    "disk_r",
    "disk_rb",
    "disk_svc",
    "disk_u",
    "disk_w",
    "disk_wa",
    "disk_wb",
    "si",
    "so",
    "eth1_fi",
    "eth1_fo",
    "eth1_pi",
    "eth1_po",
    "tcp_tw",
    "tcp_use",
    "active_opens",
    "curr_estab",
    "in_errs",
    "in_segs",
    "listen_overflows",
    "out_rsts",
    "out_segs",
    "passive_opens",
    "retransegs",
    "tcp_timeouts",
    "udp_in_dg",
    "udp_out_dg",
    "udp_rcv_buf_errs",
    "udp_snd_buf_errs",
)
_ENOUGH = 10  # segments
_DIVIDED = "machine-1-2"


@dataclass(frozen=True)
class Machine:
    """Counts of a machine in mTSBench: rows cut off the test file, rows and events that remain."""

    offset: int
    train: int
    test: int
    events: int


MACHINES = {
    "machine-1-2": Machine(15478, 23694, 4930, 4),
    "machine-1-3": Machine(8485, 23702, 15218, 8),
    "machine-1-4": Machine(13623, 23706, 10084, 8),
    "machine-1-6": Machine(5105, 23688, 18584, 24),
    "machine-1-7": Machine(6566, 23697, 17131, 9),
    "machine-1-8": Machine(3332, 23698, 20367, 16),
    "machine-2-1": Machine(10988, 23693, 12706, 9),
    "machine-2-2": Machine(18241, 23699, 5459, 7),
    "machine-2-3": Machine(9476, 23688, 14213, 6),
    "machine-2-4": Machine(4777, 23689, 18912, 16),
    "machine-2-5": Machine(6221, 23688, 17468, 17),
    "machine-2-7": Machine(5508, 23696, 18188, 16),
    "machine-2-9": Machine(17599, 28722, 11123, 6),
    "machine-3-2": Machine(10551, 23702, 13152, 6),
    "machine-3-3": Machine(4818, 23703, 18885, 21),
    "machine-3-5": Machine(14574, 23690, 9117, 7),
    "machine-3-6": Machine(16325, 28726, 12401, 7),
    "machine-3-10": Machine(5042, 23692, 18651, 9),
}


def read(source: Path, counts: Counts, machines: Mapping[str, Machine] = MACHINES) -> Iterator[Rebuilt]:
    """The machines that mTSBench keeps, one at a time."""
    root = need(source, "test_label/machine-*.txt").parents[1]
    labels = {file.stem: load_labels(file) for file in sorted(root.glob("test_label/machine-*.txt"))}
    kept = {name: flags for name, flags in labels.items() if len(segments(flags)) >= _ENOUGH}
    for name in sorted(machines.keys() ^ kept.keys()):
        there = f"{len(segments(labels[name]))} labelled segments" if name in labels else "no labels"
        fate = "keeps" if name in machines else "drops"
        counts.differ(f"{name} has {there} in {str(root / 'test_label')!r}, but the published split {fate} it.")
    if not kept:
        raise InputError(f"No machine in {str(root / 'test_label')!r} has {_ENOUGH} labelled segments. Is it SMD?")
    for name, flags in kept.items():
        yield _machine(root, name, flags, counts, machines.get(name))


def cut_row(labels: Bool[ndarray, " row"]) -> int:
    """Where mTSBench cuts: k = max(4, ⌊n/5⌋) of n segments go; ⌊(last row of the k-th + first row of the next)/2⌋."""
    found = segments(labels)
    dropped = max(4, len(found) // 5)
    return int(found[dropped - 1, 1] + found[dropped, 0]) // 2


def _machine(
    root: Path, name: str, labels: Bool[ndarray, " row"], counts: Counts, published: Machine | None
) -> Rebuilt:
    train_file, test_file, label_file = (root / part / f"{name}.txt" for part in ("train", "test", "test_label"))
    train, whole = load_array(train_file), labelled(load_array(test_file), labels, label_file)
    offset = cut_row(labels)
    rest = whole[offset:]
    splits = {"train": Rows.normal(train), **hold_back(rest, len(rest) * 2 // 5 if name == _DIVIDED else 0)}
    if published:
        counts.expect(train_file, "rows", published.train, len(train))
        counts.expect(label_file, "rows before the cut", published.offset, offset)
        counts.expect(test_file, "test rows after the cut", published.test, len(splits["test"]))
        counts.expect(label_file, "events after the cut", published.events, len(segments(splits["test"].labels)))
    counts.expect(test_file, "columns", len(SENSORS), whole.values.shape[1])
    columns = whole.values.shape[1]
    return Rebuilt(name, SENSORS if columns == len(SENSORS) else numbered(columns), splits)
