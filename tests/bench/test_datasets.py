"""Benchmark folders as people have them: what is right is read, what is wrong is told with the file and the fix."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench.datasets import Series, find_series
from graspad.errors import InputError

LABELS = [0, 1, 1, 0]


def write(file: Path, columns: dict) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(columns)
    (frame.write_csv if file.suffix == ".csv" else frame.write_parquet)(file)
    return file


def rows(labels=LABELS, **sensors) -> dict:
    sensors = sensors or {"a": [1.0, 2.0, 3.0, 4.0], "b": [0, 0, 1, 1]}
    return {"timestamp": range(len(next(iter(sensors.values())))), **sensors} | (
        {"is_anomaly": labels} if labels else {}
    )


def write_series(folder: Path, stem: str, suffix: str = "csv", **replaced: dict) -> None:
    for split in ("train", "test"):
        write(folder / f"{stem}_{split}.{suffix}", replaced.get(split, rows()))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "labels", [LABELS, [0.0, 1.0, 1.0, 0.0], [False, True, True, False], ["false", "True", "True", "false"]], ids=repr
)
def test_what_is_written_is_loaded(tmp_path, suffix, labels):
    write_series(tmp_path / "SET", "SET_one", suffix, test=rows(labels))
    (series,) = find_series(tmp_path, None)
    assert (series.set, series.name) == ("SET", "one")
    data = series.load()
    assert data.sensors == ("a", "b")
    for values in (data.train, data.test):
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, [[1, 0], [2, 0], [3, 1], [4, 1]])
    assert data.labels.dtype == bool
    np.testing.assert_array_equal(data.labels, [False, True, True, False])


def test_sets_come_as_asked_and_series_by_name(tmp_path):
    for name in ("B", "A", "C"):
        for series in ("x-2", "x-10", "x-1"):
            write_series(tmp_path / name, f"{name}_{series}")
    names = ["x-1", "x-10", "x-2"]
    asked = find_series(tmp_path, ["C", "A", "C"])
    assert [(one.set, one.name) for one in asked] == [("C", name) for name in names] + [("A", name) for name in names]
    assert [one.set for one in find_series(tmp_path, None)[::3]] == ["A", "B", "C"]


def test_downloads_of_mtsbench_are_read_unchanged(tmp_path):
    dated = rows() | {"timestamp": ["2005-07-24 00:00:00", "2005-07-24 00:30:00", "2005-07-24 01:00:00", "later"]}
    write_series(tmp_path / "CalIt2", "CalIt2_traffic", train=dated, test=dated)
    write_series(tmp_path / "creditcard", "creditcard")  # one series, no name of its own
    write_series(tmp_path / "cicids", "cicids_0")
    write(tmp_path / "cicids" / "cicids_0_val.csv", rows())
    write_series(tmp_path / "SMAP", "SMAP_A-1", train=rows(labels=None))
    write(tmp_path / "SMAP" / "SMAP_P-7_train.csv", rows(labels=None))  # published without test rows
    (tmp_path / "SMAP" / "root_causes.csv").write_text("not,a,series\n")
    (tmp_path / "data_summary.csv").write_text("Folder,File\n")
    found = find_series(tmp_path, None)
    assert {(one.set, one.name) for one in found} == {
        ("CalIt2", "traffic"),
        ("creditcard", "creditcard"),
        ("cicids", "0"),
        ("SMAP", "A-1"),
    }
    for one in found:
        assert one.load().sensors == ("a", "b")
    assert find_series(tmp_path, ["CICIDS"]) == [one for one in found if one.set == "cicids"]


def test_a_folder_with_the_files_themselves_is_a_set(tmp_path):
    write_series(tmp_path / "plant", "pump")
    write_series(tmp_path / "plant", "plant_fan")
    for sets in (None, ["plant"]):
        assert [(one.set, one.name) for one in find_series(tmp_path / "plant", sets)] == [
            ("plant", "fan"),
            ("plant", "pump"),
        ]


def test_anomalous_rows_in_training_are_the_methods_affair(tmp_path):
    write_series(tmp_path / "SET", "SET_one", train=rows(labels=["?", "!", "", "1"]))
    assert len(find_series(tmp_path, None)[0].load().train) == 4


def test_missing_readings_stay_missing(tmp_path):
    write_series(tmp_path / "SET", "SET_one", test=rows(a=[1.0, None, 3.0, 4.0], b=[None] * 4))
    np.testing.assert_array_equal(
        find_series(tmp_path, None)[0].load().test, [[1, np.nan], [np.nan, np.nan], [3, np.nan], [4, np.nan]]
    )


@given(order=st.permutations(["a", "b", "c", "d"]), suffix=st.sampled_from(["csv", "parquet"]))
def test_the_order_of_the_columns_does_not_matter(tmp_path_factory, order, suffix):
    folder = tmp_path_factory.mktemp("order")
    columns = {name: [float(ord(name)), 0.5, 0.25, -1.0] for name in order}
    write_series(
        folder / "SET", "SET_one", suffix, train=rows(**{name: columns[name] for name in "abcd"}), test=rows(**columns)
    )
    data = find_series(folder, None)[0].load()
    assert data.sensors == tuple("abcd")
    np.testing.assert_array_equal(data.test, data.train)


def test_wrong_folders_are_told(tmp_path):
    with pytest.raises(InputError, match=r"There is no folder '.*nowhere'.*SMAP/SMAP_A-1_train\.parquet"):
        find_series(tmp_path / "nowhere", None)
    with pytest.raises(InputError, match="There is no data in"):
        find_series(tmp_path, None)
    write(tmp_path / "plant" / "train" / "pump.csv", rows())
    for folder, sets in ((tmp_path, None), (tmp_path / "plant", ["plant"])):
        with pytest.raises(InputError, match=r"pump\.csv'\. Name the files of a series like SMAP/SMAP_A-1_train"):
            find_series(folder, sets)
    write_series(tmp_path / "SET", "SET_one")
    write_series(tmp_path / "OTHER", "OTHER_one")
    with pytest.raises(InputError, match=r"No file in '.*plant' has the layout.*train/pump\.csv"):
        find_series(tmp_path, ["SET", "plant"])
    with pytest.raises(InputError, match=r"There is no set 'SETT' in .* The sets there are \['OTHER', 'SET'\]"):
        find_series(tmp_path, ["SETT"])


@pytest.mark.parametrize("missing", ["train", "test"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_missing_file_is_named(tmp_path, missing, suffix):
    write_series(tmp_path / "SET", "SET_one", suffix)
    write_series(tmp_path / "SET", "SET_two", suffix)
    (tmp_path / "SET" / f"SET_two_{missing}.{suffix}").unlink()
    with pytest.raises(InputError, match=rf"but no '.*SET_two_{missing}\.{suffix}'. Add it"):
        find_series(tmp_path, None)


def test_two_files_for_the_same_rows_are_refused(tmp_path):
    write_series(tmp_path / "SET", "SET_one")
    write(tmp_path / "SET" / "SET_one_test.parquet", rows())
    with pytest.raises(InputError, match=r"SET_one_test\.csv' and '.*SET_one_test\.parquet'.*Keep one"):
        find_series(tmp_path, None)


MISTAKES = {
    "no labels": ({"test": rows(labels=None)}, r"one_test\.csv' has no column 'is_anomaly'\. Add it"),
    "other labels": (
        {"test": rows(labels=[0, 1, 2, -1])},
        r"'is_anomaly' of '.*one_test\.csv' holds -1, 2\. Write 1 .*0",
    ),
    "words": ({"test": rows(labels=["no", "yes", "no", "no"])}, r"one_test\.csv' holds 'no', 'yes'\. Write 1"),
    "a label missing": ({"test": rows(labels=[0, None, 1, 0])}, r"one_test\.csv' holds None\. Write 1"),
    "text": ({"train": rows(a=list("wxyz"), b=[1] * 4)}, r"one_train\.csv' cannot be used.*'a' holds text such as 'w'"),
    "no sensors": ({"test": {"timestamp": [0, 1], "is_anomaly": [0, 1]}}, r"one_test\.csv' has 2 rows and 0 sensors"),
    "one row": ({"train": rows(a=[1.0], labels=[0])}, r"one_train\.csv' has 1 rows and 1 sensors; at least 2 rows"),
    "no rows": ({"test": rows(a=[], labels=None)}, r"one_test\.csv' has 0 rows"),
    "a second clock": (
        {"train": rows(a=[1] * 4, time=[1, 2, 3, 4])},
        r"one_train\.csv' has a time column 'time' among",
    ),
    "other sensors": (
        {"train": rows(a=[1.0] * 4, c=[1.0] * 4)},
        r"one_train\.csv' and '.*one_test\.csv' must have the same sensors, but "
        r"'.*one_test\.csv' has no \['c'\], and '.*one_train\.csv' has no \['b'\]",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_files_are_named_with_the_fix(tmp_path, mistake):
    replaced, told = MISTAKES[mistake]
    write_series(tmp_path / "SET", "SET_one", **replaced)
    (series,) = find_series(tmp_path, None)
    with pytest.raises(InputError, match=told):
        series.load()


def test_damaged_and_vanished_files_are_named(tmp_path):
    write_series(tmp_path / "SET", "SET_one", "parquet")
    (series,) = find_series(tmp_path, None)
    series.test.write_text("no parquet at all")
    with pytest.raises(InputError, match=r"SET_one_test\.parquet' cannot be read"):
        series.load()
    with pytest.raises(InputError, match=r"There is no file '.*gone\.csv'"):
        Series("SET", "one", series.train.with_name("gone.csv"), series.test).load()


def test_real_sets_have_the_published_size(real_data):
    found = find_series(real_data, ["SMAP", "SMD"])
    assert [sum(one.set == name for one in found) for name in ("SMAP", "SMD")] == [51, 16]
    smap = [one.load() for one in found if one.set == "SMAP"]
    assert {data.train.shape[1] for data in smap} == {25}
    # The anomaly rate that mTSBench's 51 test files have on average.
    assert round(float(np.mean([data.labels.mean() for data in smap])), 4) == 0.1205
    machine = next(one for one in found if one.set == "SMD").load()
    assert (machine.sensors[0], machine.sensors[-1], machine.train.shape[1]) == ("cpu_r", "udp_snd_buf_errs", 38)
