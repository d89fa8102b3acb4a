"""SMAP and MSL from small files in telemanom's format, against the rules applied by hand; and the real SMAP."""

import csv
from pathlib import Path

import numpy as np
import pytest

from graspad.bench.importers import import_original, telemanom
from graspad.bench.importers.layout import Counts
from graspad.errors import InputError
from imported import assert_written, loaded, table

RNG = np.random.default_rng(0)
CHANNELS = {
    "P-2": (30, [[3, 7]]),
    "G-7": (21, [[2, 4], [9, 10], [15, 20]]),  # an odd number of rows to halve
    "E-12": (12, [[8, 9], [0, 1]]),
    "D-12": (10, [[0, 9]]),
}


def write_telemanom(folder: Path, columns: int = 25, arrays: str = "data") -> dict[str, dict[str, np.ndarray]]:
    lines = [["chan_id", "spacecraft", "anomaly_sequences", "class", "num_values"]]
    lines += [[name, "SMAP", str(spans), "[point]", rows] for name, (rows, spans) in CHANNELS.items()]
    lines += [["P-2", "SMAP", "[[0, 25]]", "[point]", 30], ["M-6", "MSL", "[[1, 2]]", "[point]", 9]]
    folder.mkdir(exist_ok=True)
    with (folder / "labeled_anomalies.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    written = {}
    for name, (rows, _) in CHANNELS.items():
        written[name] = {"train": RNG.normal(size=(8, columns)), "test": RNG.normal(size=(rows, columns))}
        for split, values in written[name].items():
            (folder / arrays / split).mkdir(parents=True, exist_ok=True)
            np.save(folder / arrays / split / f"{name}.npy", values)
    return written


def literal_labels(name: str) -> list[int]:
    rows, spans = CHANNELS[name]
    return [int(any(first <= row <= last for first, last in spans)) for row in range(rows)]


@pytest.mark.parametrize("arrays", [".", "data", "data/data"])
def test_smap(tmp_path, arrays):
    originals = write_telemanom(tmp_path / "original", arrays=arrays)
    imported = import_original("smap", tmp_path / "original", tmp_path / "out", check=False)
    assert (imported.set, imported.series) == ("SMAP", 3)
    assert imported.rows == sum(8 + CHANNELS[name][0] for name in ("P-2", "G-7", "E-12"))
    names = ["P-2_train", "P-2_test", "G-7_train", "G-7_val", "G-7_test", "E-12_train", "E-12_test"]
    assert imported.files == [tmp_path / "out" / "SMAP" / f"SMAP_{name}.parquet" for name in names]
    assert sorted(imported.files) == sorted((tmp_path / "out" / "SMAP").iterdir())
    assert any("channels of SMAP" in remark and "51" in remark for remark in imported.remarks)
    series = loaded(tmp_path / "out")
    for name in ("P-2", "E-12"):
        assert series[name].sensors == tuple(f"v{place:02d}" for place in range(25))
        np.testing.assert_array_equal(series[name].train, originals[name]["train"])
        np.testing.assert_array_equal(series[name].test, originals[name]["test"])
        np.testing.assert_array_equal(series[name].labels, literal_labels(name))
    val = tmp_path / "out" / "SMAP" / "SMAP_G-7_val.parquet"
    assert_written(val, originals["G-7"]["test"][:10], literal_labels("G-7")[:10])
    np.testing.assert_array_equal(series["G-7"].test, originals["G-7"]["test"][10:])
    np.testing.assert_array_equal(series["G-7"].labels, literal_labels("G-7")[10:])


CRAFT = telemanom.Spacecraft("SMAP", 25, frozenset({"D-12"}), "G-7", channels=3, events=5, anomalous=16)


def test_counts_of_telemanom_are_checked(tmp_path):
    write_telemanom(tmp_path)
    counts = Counts(check=True)
    assert [series.name for series in telemanom.read(tmp_path, counts, CRAFT)] == ["P-2", "G-7", "E-12"]
    assert counts.remarks == []
    short = np.load(tmp_path / "data" / "test" / "E-12.npy")[:-1]
    np.save(tmp_path / "data" / "test" / "E-12.npy", short)
    with pytest.raises(InputError, match=r"E-12\.npy' has 11 rows, but the published data has 12\..*--no-check"):
        list(telemanom.read(tmp_path, counts, CRAFT))
    write_telemanom(tmp_path, columns=24)
    with pytest.raises(InputError, match=r"P-2\.npy' has 24 columns, but .* 25"):
        list(telemanom.read(tmp_path, counts, CRAFT))
    labels = tmp_path / "labeled_anomalies.csv"
    labels.write_text(labels.read_text().replace("[9, 10]", "[9, 11]"))
    with pytest.raises(InputError, match=r"labeled_anomalies\.csv' has 17 anomalous test rows of SMAP, but .* 16\."):
        list(telemanom.read(tmp_path, counts, CRAFT))
    (tmp_path / "data" / "train" / "G-7.npy").unlink()
    with pytest.raises(InputError, match=r"There is no file '.*train/G-7\.npy'"):
        list(telemanom.read(tmp_path, Counts(check=False), CRAFT))


def test_wrong_labels_end_the_import_before_anything_is_written(tmp_path):
    write_telemanom(tmp_path / "original")
    with pytest.raises(InputError, match=r"labeled_anomalies\.csv' has 3 channels of SMAP to import, but .* 51\."):
        import_original("smap", tmp_path / "original", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Rows and labelled sequences of MSL's test files in telemanom's table.
MSL = """
M-6 2049 1850-2030; M-1 2277 1110-2250; M-2 2277 1110-2250; S-2 1827 900-910; P-10 6100 4590-4720; T-4 2217 1172-1240;
T-5 2218 1200-1225; F-7 5054 1250-1450 2670-2790 3325-3425; M-3 2127 1250-1500; M-4 2038 1250-1500; M-5 2303 1250-1550;
P-15 2856 1390-1410; C-1 2264 550-750 2100-2210; C-2 2051 290-390 1540-1575; T-12 2430 630-750;
T-13 2430 690-790 1900-2050; F-4 3422 2700-2770; F-5 3922 3550-3700; D-14 2625 1630-1650 1800-2000;
T-9 1096 780-810 890-970; P-14 6100 4575-4755; T-8 1519 870-930 1330-1370; P-11 3535 1778-1898 1238-1344;
D-15 2158 1500-2140; D-16 2191 600-1250; M-7 2156 940-1040; F-8 2487 1950-2486
"""


def test_msl_at_its_published_size(tmp_path):
    source = tmp_path / "original"
    with (source.mkdir() or source / "labeled_anomalies.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["chan_id", "spacecraft", "anomaly_sequences", "class", "num_values"])
        for name, rows, *spans in (entry.split() for entry in MSL.split(";")):
            lines.writerow([name, "MSL", str([[*map(int, span.split("-"))] for span in spans]), "[point]", rows])
            for split, count in (("train", 5), ("test", int(rows))):
                (source / split).mkdir(exist_ok=True)
                np.save(source / split / f"{name}.npy", np.zeros((count, 55), dtype=np.int8))
    imported = import_original("msl", source, tmp_path / "out")
    assert (imported.series, imported.remarks) == (26, [])
    series = loaded(tmp_path / "out")
    assert "T-9" not in series
    assert len(series["T-13"].labels) == 1215
    np.testing.assert_array_equal(np.flatnonzero(series["T-13"].labels), np.arange(1900, 2051) - 1215)
    np.testing.assert_array_equal(np.flatnonzero(series["F-8"].labels), np.arange(1950, 2487))


def test_smap_rebuilt_from_its_original_is_the_real_one(tmp_path, real_data):
    real, source = real_data / "SMAP", tmp_path / "original"
    lines = [["chan_id", "spacecraft", "anomaly_sequences", "class", "num_values"]]
    lines += [[name, "SMAP", "[[5000, 7000]]", "[point]", 8000] for name in ("D-12", "D-13", "P-7")]
    for file in sorted(real.glob("*_test.parquet")):
        name = file.stem.removeprefix("SMAP_").removesuffix("_test")
        splits = {split: real / f"SMAP_{name}_{split}.parquet" for split in ("train", "val", "test")}
        parts = {split: table(part) for split, part in splits.items() if part.exists()}
        whole = [parts[split] for split in ("val", "test") if split in parts]
        labels = np.concatenate([part[2] for part in whole])
        spans, row = [], 0
        while row < len(labels):
            if labels[row]:
                first = row
                while row + 1 < len(labels) and labels[row + 1]:
                    row += 1
                spans.append([first, row])
            row += 1
        lines.append([name, "SMAP", str(spans), "[point]", len(labels)])
        for split, values in (("train", parts["train"][1]), ("test", np.concatenate([part[1] for part in whole]))):
            (source / split).mkdir(parents=True, exist_ok=True)
            np.save(source / split / f"{name}.npy", values)
    lines.append(["P-2", "SMAP", "[[5300, 6420]]", "[point]", 8209])
    with (source / "labeled_anomalies.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    imported = import_original("smap", source, tmp_path / "out")
    assert (imported.series, imported.remarks) == (51, [])
    assert [file.name for file in sorted(imported.files)] == [file.name for file in sorted(real.glob("*.parquet"))]
    for file in imported.files:
        for ours, theirs in zip(table(file), table(real / file.name), strict=True):
            np.testing.assert_array_equal(ours, theirs)
