"""CICIDS from small day files as published, against the rules applied by hand, row by row."""

import math
from pathlib import Path

import numpy as np
import pytest

from graspad.bench.importers import cicids, import_original
from graspad.bench.importers.layout import Counts, Rows, split_in_time
from graspad.errors import InputError
from imported import assert_written, loaded

RNG = np.random.default_rng(0)
HEADER = (
    " Destination Port, Flow Duration, Total Fwd Packets, Total Backward Packets,Total Length of Fwd Packets,"
    " Total Length of Bwd Packets, Fwd Packet Length Max, Fwd Packet Length Min, Fwd Packet Length Mean,"
    " Fwd Packet Length Std,Bwd Packet Length Max, Bwd Packet Length Min, Bwd Packet Length Mean,"
    " Bwd Packet Length Std,Flow Bytes/s, Flow Packets/s, Flow IAT Mean, Flow IAT Std, Flow IAT Max, Flow IAT Min,"
    "Fwd IAT Total, Fwd IAT Mean, Fwd IAT Std, Fwd IAT Max, Fwd IAT Min,Bwd IAT Total, Bwd IAT Mean, Bwd IAT Std,"
    " Bwd IAT Max, Bwd IAT Min,Fwd PSH Flags, Bwd PSH Flags, Fwd URG Flags, Bwd URG Flags, Fwd Header Length,"
    " Bwd Header Length,Fwd Packets/s, Bwd Packets/s, Min Packet Length, Max Packet Length, Packet Length Mean,"
    " Packet Length Std, Packet Length Variance,FIN Flag Count, SYN Flag Count, RST Flag Count, PSH Flag Count,"
    " ACK Flag Count, URG Flag Count, CWE Flag Count, ECE Flag Count, Down/Up Ratio, Average Packet Size,"
    " Avg Fwd Segment Size, Avg Bwd Segment Size, Fwd Header Length,Fwd Avg Bytes/Bulk, Fwd Avg Packets/Bulk,"
    " Fwd Avg Bulk Rate, Bwd Avg Bytes/Bulk, Bwd Avg Packets/Bulk,Bwd Avg Bulk Rate,Subflow Fwd Packets,"
    " Subflow Fwd Bytes, Subflow Bwd Packets, Subflow Bwd Bytes,Init_Win_bytes_forward, Init_Win_bytes_backward,"
    " act_data_pkt_fwd, min_seg_size_forward,Active Mean, Active Std, Active Max, Active Min,Idle Mean, Idle Std,"
    " Idle Max, Idle Min, Label"
)


def write_day(file: Path, rows: int, attacks: set[int], broken: dict[int, str]) -> list[list[str]]:
    """A day file as published: spaces in the header, values that are no numbers, a label in a Windows encoding."""
    lines = []
    for row in range(rows):
        line = [str(value) for value in RNG.integers(0, 10**8, 78)]
        line[14] = broken.get(row, "12.5")
        lines.append([*line, "Web Attack \x96 XSS" if row in attacks else "BENIGN"])
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join([HEADER, *(",".join(line) for line in lines), "," * 78])
    file.write_bytes(text.encode("latin1") + b"\r\n")
    return lines


def literal_day(lines: list[list[str]], with_val: bool) -> dict[str, tuple[list[list[float]], list[int]]]:
    kept = [line for line in lines if all(math.isfinite(float(value or "nan")) for value in line[:-1])]
    bulk = [place for place, name in enumerate(HEADER.split(",")) if "Bulk" in name]
    clean = [
        ([float(value) for place, value in enumerate(line[:-1]) if place not in bulk], int(line[-1] != "BENIGN"))
        for line in kept
    ]
    lead, rest = clean[: math.floor(0.2 * len(clean))], clean[math.floor(0.2 * len(clean)) :]
    held_back = math.floor(0.25 * len(rest)) if with_val else 0
    splits = {"train": [row for row in lead if row[1] == 0], "val": rest[:held_back], "test": rest[held_back:]}
    return {split: ([row[0] for row in part], [row[1] for row in part]) for split, part in splits.items() if part}


BROKEN = {3: "Infinity", 4: "NaN", 20: "", 33: "inf"}


def test_cicids(tmp_path):
    folder = tmp_path / "original" / "MachineLearningCVE"
    days = {
        "0": write_day(folder / "Wednesday-workingHours.pcap_ISCX.csv", 53, {1, 2, 3, 30, 31, 50}, BROKEN),
        "7": write_day(folder / "Friday-WorkingHours-Afternoon-DDos.pcap_ISCX.csv", 38, {0, 9, 10}, {}),
    }
    write_day(folder / "Monday-WorkingHours.pcap_ISCX.csv", 20, set(), {})
    imported = import_original("CICIDS", tmp_path / "original", tmp_path / "out", check=False)
    assert (imported.set, imported.series) == ("CICIDS", 2)
    assert (
        "Wednesday-workingHours.pcap_ISCX.csv: 5 rows with a missing or infinite value were left out."
        in imported.remarks
    )
    assert any("Friday-WorkingHours-Morning*.csv" in remark for remark in imported.remarks)
    series = loaded(tmp_path / "out")
    for name, lines in days.items():
        literal = literal_day(lines, with_val=name == "0")
        assert len(series[name].sensors) == 72
        np.testing.assert_array_equal(series[name].train, literal["train"][0])
        np.testing.assert_array_equal(series[name].test, literal["test"][0])
        np.testing.assert_array_equal(series[name].labels, literal["test"][1])
        val = tmp_path / "out" / "CICIDS" / f"CICIDS_{name}_val.parquet"
        assert val.exists() == ("val" in literal)
        if "val" in literal:
            assert_written(val, *literal["val"])
    names = series["0"].sensors
    assert names[0] == "Destination Port"
    assert names.index("Fwd Header Length.1") > names.index("Fwd Header Length")


def test_counts_of_cicids_are_checked(tmp_path):
    file = tmp_path / "Thursday-WorkingHours-Morning-WebAttacks.pcap_ISCX.csv"
    write_day(file, 50, {0, 5, 20, 21, 40}, {30: "Infinity"})
    right = {"series": "2", "file": "thursday-workinghours-morning", "rows": 49, "train": 7, "events": 2}
    assert len(list(cicids.read(tmp_path, Counts(check=True), [cicids.Day(**right)]))) == 1
    for what, told in (
        ("rows", "rows without missing or infinite values"),
        ("train", "train rows"),
        ("events", "test events"),
    ):
        wrong = cicids.Day(**right | {what: 1000})
        with pytest.raises(InputError, match=rf"WebAttacks.*csv' has {right[what]} {told}, but .* 1,000\..*--no-check"):
            list(cicids.read(tmp_path, Counts(check=True), [wrong]))
    with pytest.raises(InputError, match=r"There is no file 'Wednesday-WorkingHours\*\.csv'.*--no-check"):
        import_original("cicids", tmp_path, tmp_path / "out")
    file.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"WebAttacks.*csv' has no column 'Label'"):
        list(cicids.read(tmp_path, Counts(check=False)))
    file.write_text("a,Label\nx,BENIGN\n")
    with pytest.raises(InputError, match=r"WebAttacks.*csv' cannot be read: .*conversion error"):
        list(cicids.read(tmp_path, Counts(check=False)))
    with pytest.raises(InputError, match=r"There is no file such as 'Wednesday-WorkingHours\.pcap_ISCX\.csv'"):
        list(cicids.read(tmp_path / "out", Counts(check=False)))


def test_published_days_have_the_published_test_rows():
    """The six test files of mTSBench and the one `val`; that of the train rows is in the importer itself."""
    found = {}
    for day in cicids.DAYS:
        splits = split_in_time(Rows.normal(np.empty((day.rows, 0))), day.with_val)
        found[day.series] = [len(splits[split]) for split in ("val", "test") if split in splits]
        assert day.train <= len(splits["train"])
    assert found == {"0": [138281, 414844], "2": [136185], "3": [230716], "5": [152729], "6": [228877], "7": [180569]}
