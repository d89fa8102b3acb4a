"""What the tests of the importers share: reading the files that an import has written."""

from pathlib import Path

import numpy as np
import polars as pl

from graspad.bench.datasets import SeriesData, find_series


def table(file: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Sensors, values and labels of a written file, whose first column must count the rows."""
    frame = pl.read_parquet(file)
    assert (frame.columns[0], frame.columns[-1]) == ("timestamp", "is_anomaly")
    assert frame["timestamp"].to_list() == list(range(len(frame)))
    return frame.columns[1:-1], frame[:, 1:-1].to_numpy(), frame["is_anomaly"].to_numpy()


def assert_written(file: Path, values, labels=None) -> None:
    _, written, flags = table(file)
    np.testing.assert_array_equal(written, values)
    np.testing.assert_array_equal(flags, np.zeros(len(written)) if labels is None else labels)


def loaded(out: Path) -> dict[str, SeriesData]:
    return {series.name: series.load() for series in find_series(out, None)}
