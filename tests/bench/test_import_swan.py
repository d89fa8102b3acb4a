"""SWAN-SF from a small file as NeurIPS-TS writes it, and from the arrays that are passed on."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graspad.bench.importers import import_original, swan
from graspad.bench.importers.layout import Counts, Rows, split_in_time
from graspad.errors import InputError
from imported import assert_written, loaded

RNG = np.random.default_rng(0)


def write_swan(folder: Path, rows: int = 47) -> tuple[np.ndarray, np.ndarray]:
    values, labels = RNG.normal(size=(rows, 38)), RNG.integers(0, 2, rows)
    columns = {f"SENSOR_{place}": values[:, place] for place in range(38)}
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"label": labels, **columns}).write_csv(folder / "swan_sf.csv")
    return values, labels


def test_swan(tmp_path):
    values, labels = write_swan(tmp_path / "original" / "data")
    imported = import_original("swan", tmp_path / "original", tmp_path / "out", check=False)
    assert (imported.set, imported.series) == ("SWAN", 1)
    data = loaded(tmp_path / "out")["sf"]
    assert data.sensors == tuple(f"SENSOR_{place}" for place in range(38))
    np.testing.assert_array_equal(data.train, [values[row] for row in range(9) if labels[row] == 0])
    assert_written(tmp_path / "out" / "SWAN" / "SWAN_sf_val.parquet", values[9:18], labels[9:18])
    np.testing.assert_array_equal(data.test, values[18:])
    np.testing.assert_array_equal(data.labels, labels[18:])


def test_counts_of_swan_are_checked(tmp_path):
    _, labels = write_swan(tmp_path)
    normal = int(np.sum(labels[:9] == 0))
    assert len(list(swan.read(tmp_path, Counts(check=True), swan.Size(38, 47, normal)))) == 1
    for size, told in (
        (swan.Size(39, 47, normal), "38 sensors"),
        (swan.Size(38, 48, normal), "47 rows"),
        (swan.Size(38, 47, normal + 1), f"{normal} train rows"),
    ):
        with pytest.raises(InputError, match=rf"swan_sf\.csv' has {told}, but the published data has"):
            list(swan.read(tmp_path, Counts(check=True), size))
    splits = split_in_time(Rows.normal(np.empty((swan.SIZE.rows, 0))), with_val=True)
    assert {split: len(part) for split, part in splits.items()} == {"train": 24000, "val": 24000, "test": 72000}


def test_halves_of_swan_are_not_taken_for_the_published_split(tmp_path):
    source = tmp_path / "original"
    source.mkdir()
    parts = {
        "train": RNG.normal(size=(20, 38)),
        "test": RNG.normal(size=(20, 38)),
        "test_label": RNG.integers(0, 2, 20),
    }
    for part, values in parts.items():
        np.save(source / f"NIPS_TS_Swan_{part}.npy", values)
    with pytest.raises(InputError, match=r"no labels for the rows of '.*NIPS_TS_Swan_train\.npy'.*--no-check"):
        import_original("swan", source, tmp_path / "out")
    imported = import_original("swan", source, tmp_path / "out", check=False)
    assert len(imported.remarks) == 1
    data = loaded(tmp_path / "out")["sf"]
    np.testing.assert_array_equal(data.train, parts["train"])
    np.testing.assert_array_equal(data.test, parts["test"])
    np.testing.assert_array_equal(data.labels, parts["test_label"])
    np.save(source / "NIPS_TS_Swan_train.npy", parts["train"][:, 1:])
    with pytest.raises(InputError, match=r"The series 'sf' has 38 columns in its test rows, but 37 elsewhere"):
        import_original("swan", source, tmp_path / "out", check=False)
