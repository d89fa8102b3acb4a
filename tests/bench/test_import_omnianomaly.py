"""SMD from small files in OmniAnomaly's format, against the rules applied by hand; and the real machines."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench.importers import import_original, omnianomaly
from graspad.bench.importers.layout import Counts
from graspad.errors import InputError
from imported import assert_written, loaded, table

RNG = np.random.default_rng(0)
# Rows cut off in mTSBench, number of labelled segments, last row of the last segment dropped, first row of the next.
CUTS = {
    "machine-1-2": (15478, 10, 15417, 15540),
    "machine-1-3": (8485, 12, 5660, 11310),
    "machine-1-4": (13623, 12, 13375, 13872),
    "machine-1-6": (5105, 30, 5044, 5167),
    "machine-1-7": (6566, 13, 6033, 7099),
    "machine-1-8": (3332, 20, 3070, 3594),
    "machine-2-1": (10988, 13, 9804, 12173),
    "machine-2-2": (18241, 11, 17941, 18541),
    "machine-2-3": (9476, 10, 8000, 10953),
    "machine-2-4": (4777, 20, 4578, 4976),
    "machine-2-5": (6221, 21, 6025, 6417),
    "machine-2-7": (5508, 20, 4986, 6030),
    "machine-2-9": (17599, 10, 17285, 17914),
    "machine-3-2": (10551, 10, 9203, 11900),
    "machine-3-3": (4818, 26, 4577, 5059),
    "machine-3-5": (14574, 11, 14394, 14755),
    "machine-3-6": (16325, 11, 15862, 16788),
    "machine-3-10": (5042, 13, 3598, 6486),
}


def literal_segments(labels) -> list[list[int]]:
    found: list[list[int]] = []
    for row, label in enumerate(labels):
        if label and (row == 0 or not labels[row - 1]):
            found.append([row, row])
        elif label:
            found[-1][1] = row
    return found


def literal_cut(labels) -> int:
    found = literal_segments(labels)
    dropped = max(4, math.floor(0.2 * len(found)))
    (_, end), (start, _) = found[dropped - 1], found[dropped]
    return math.floor((end + start) / 2)


def labels_of(machine: str, rows: int = 30_000) -> np.ndarray:
    """Labels with the real segments around the cut, and others in the right number before and after."""
    _, count, end, start = CUTS[machine]
    labels, dropped = np.zeros(rows, dtype=bool), max(4, math.floor(0.2 * count))
    labels[[*range(0, 2 * (dropped - 1), 2), end - 1, end]] = True
    labels[range(start, start + 2 * (count - dropped), 2)] = True
    return labels


@pytest.mark.parametrize("machine", CUTS)
def test_the_published_cuts_come_out(machine):
    published = omnianomaly.MACHINES[machine]
    assert omnianomaly.cut_row(labels_of(machine)) == CUTS[machine][0] == published.offset
    assert machine == "machine-1-2" or len(literal_segments(labels_of(machine)[published.offset :])) == published.events


def test_every_published_machine_is_covered():
    assert CUTS.keys() == omnianomaly.MACHINES.keys()


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=10, max_size=40), st.integers(0, 5))
def test_the_cut_by_rule(spans, lead):
    labels = np.concatenate([np.zeros(lead), *(np.repeat([1, 0], span) for span in spans)]).astype(bool)
    cut = omnianomaly.cut_row(labels)
    assert cut == literal_cut(labels)
    assert not labels[cut] or cut == literal_segments(labels)[max(4, len(spans) // 5)][0]
    assert len(literal_segments(labels[cut:])) == len(spans) - max(4, len(spans) // 5)


def write_smd(folder: Path, columns: int = 38) -> dict[str, dict[str, np.ndarray]]:
    written = {}
    for name, count in (("machine-1-1", 9), ("machine-1-2", 11), ("machine-3-10", 25)):
        labels = np.concatenate(
            [np.repeat([0, 1], [2 + place % 3, 1 + place % 4]) for place in range(count)] + [[0] * 7]
        )
        train, test = RNG.uniform(size=(6, columns)).round(6), RNG.uniform(size=(len(labels), columns)).round(6)
        written[name] = {"train": train, "test": test, "test_label": labels}
        for part, values in written[name].items():
            (folder / part).mkdir(parents=True, exist_ok=True)
            np.savetxt(
                folder / part / f"{name}.txt", values, fmt="%d" if part == "test_label" else "%.6f", delimiter=","
            )
    return written


@pytest.mark.parametrize("source", [".", "ServerMachineDataset"])
def test_smd(tmp_path, source):
    originals = write_smd(tmp_path / "OmniAnomaly" / "ServerMachineDataset")
    imported = import_original("smd", tmp_path / "OmniAnomaly" / source, tmp_path / "out", check=False)
    assert (imported.set, imported.series) == ("SMD", 2)
    assert any(remark.startswith("machine-2-9 has no labels in") for remark in imported.remarks)
    series = loaded(tmp_path / "out")
    assert series.keys() == {"machine-1-2", "machine-3-10"}  # nine segments are not enough
    for name, data in series.items():
        original = originals[name]
        start = literal_cut(original["test_label"])
        if name == "machine-1-2":
            rest = len(original["test_label"]) - start
            end, start = start, start + int(0.4 * rest)
            val = tmp_path / "out" / "SMD" / "SMD_machine-1-2_val.parquet"
            assert_written(val, original["test"][end:start], original["test_label"][end:start])
        np.testing.assert_array_equal(data.train, original["train"])
        np.testing.assert_array_equal(data.test, original["test"][start:])
        np.testing.assert_array_equal(data.labels, original["test_label"][start:])


def test_counts_of_smd_are_checked(tmp_path):
    originals = write_smd(tmp_path)
    machines = {}
    for name, held_back in (("machine-1-2", True), ("machine-3-10", False)):
        labels = originals[name]["test_label"]
        offset = literal_cut(labels)
        start = offset + int(0.4 * (len(labels) - offset)) * held_back
        rest = labels[start:]
        machines[name] = omnianomaly.Machine(offset, 6, len(rest), len(literal_segments(rest)))
    counts = Counts(check=True)
    assert len(list(omnianomaly.read(tmp_path, counts, machines))) == 2
    assert counts.remarks == []
    with pytest.raises(InputError, match=r"machine-1-2 has 11 labelled segments .* drops it.*--no-check"):
        list(omnianomaly.read(tmp_path, counts, {"machine-3-10": machines["machine-3-10"]}))
    with pytest.raises(InputError, match=r"machine-1-1 has 9 labelled segments .* keeps it.*--no-check"):
        list(omnianomaly.read(tmp_path, counts, machines | {"machine-1-1": machines["machine-1-2"]}))
    labels = originals["machine-3-10"]["test_label"].copy()
    labels[np.flatnonzero(labels)[-1] + 2] = 1  # one event more
    np.savetxt(tmp_path / "test_label" / "machine-3-10.txt", labels, fmt="%d")
    with pytest.raises(InputError, match=r"machine-3-10\.txt' has \d+ .*, but the published data has \d+\."):
        list(omnianomaly.read(tmp_path, counts, machines))
    np.savetxt(tmp_path / "test_label" / "machine-3-10.txt", labels[:-1], fmt="%d")
    with pytest.raises(InputError, match=r"machine-3-10\.txt' has \d+ labels for \d+ rows"):
        list(omnianomaly.read(tmp_path, Counts(check=False), machines))
    np.savetxt(tmp_path / "test_label" / "machine-3-10.txt", labels * 2, fmt="%d")
    with pytest.raises(InputError, match=r"machine-3-10\.txt' must hold only 0 and 1, but also has \[2\.0\]"):
        list(omnianomaly.read(tmp_path, Counts(check=False), machines))


def test_published_machines_are_the_real_ones(real_data):
    for name, machine in omnianomaly.MACHINES.items():
        train, test = (real_data / "SMD" / f"SMD_{name}_{split}.parquet" for split in ("train", "test"))
        if not train.exists():
            assert name in ("machine-2-9", "machine-3-6")
            continue
        sensors, values, labels = table(test)
        assert tuple(sensors) == omnianomaly.SENSORS
        assert (machine.train, machine.test) == (len(table(train)[1]), len(values))
        assert machine.events == len(literal_segments(labels))
        first = literal_segments(labels)[0][0]
        assert name == "machine-1-2" or CUTS[name][3] == machine.offset + first


def test_smd_rebuilt_from_its_original_is_the_real_one(tmp_path, real_data):
    real, name = real_data / "SMD", "machine-1-2"
    train, val, test = (table(real / f"SMD_{name}_{split}.parquet") for split in ("train", "val", "test"))
    labels = labels_of(name)[: omnianomaly.MACHINES[name].offset]
    whole = np.concatenate([np.zeros((len(labels), 38)), val[1], test[1]])
    parts = {"train": train[1], "test": whole, "test_label": np.concatenate([labels, val[2], test[2]])}
    for part, values in parts.items():
        (tmp_path / part).mkdir()
        np.savetxt(tmp_path / part / f"{name}.txt", values, fmt="%d" if part == "test_label" else "%.9g", delimiter=",")
    imported = import_original("smd", tmp_path, tmp_path / "out", check=False)
    assert not any(
        remark.startswith(("'", name)) for remark in imported.remarks
    )  # all counts of this machine are right
    for file in imported.files:
        (sensors, values, flags), theirs = table(file), table(real / file.name)
        assert sensors == theirs[0]
        np.testing.assert_array_equal(values.astype(np.float32), theirs[1])
        np.testing.assert_array_equal(flags, theirs[2])
    assert len(imported.files) == 3
