"""Where an anomaly's signal lies, on data whose answer is known."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from graspad.bench.attribution import attribution, write
from graspad.bench.datasets import Series, SeriesData

ROWS, SENSORS = 1200, 8


def twins(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Four pairs of sensors that follow the same slow signal: linked in the graph, equal at low frequency."""
    signals = np.sin(np.arange(rows)[:, None] / np.array([17, 29, 41, 53]) + np.arange(4))
    return np.repeat(signals, 2, axis=1) + 0.05 * rng.standard_normal((rows, SENSORS))


@pytest.fixture(scope="module")
def data() -> SeriesData:
    rng = np.random.default_rng(0)
    test = twins(rng, 300)
    labels = np.zeros(300, dtype=bool)
    labels[120:180] = True
    test[labels, 0] += 1.0  # twins part: a signal of high graph frequency
    test[labels, 1] -= 1.0
    return SeriesData(tuple("abcdefgh"), twins(rng, ROWS), test, labels)


def test_maps_sum_to_one_and_parting_twins_are_seen_at_high_frequency(data):
    unweighted, weighted = attribution(data)
    for shares in (unweighted, weighted):
        assert shares.shape == (10, 8)
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
        assert shares[:, 4:].sum() > 0.8
    # η grows with the flow time: weights move the signal to the end of the flow.
    late = slice(7, None)
    assert weighted[late].sum() > unweighted[late].sum()


def test_files_hold_what_is_drawn(data, tmp_path: Path):
    class Loaded(Series):
        def load(self) -> SeriesData:
            return data

    table, picture = write([Loaded("TOY", "a", tmp_path, tmp_path)], tmp_path / "out")
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert len(lines) == 20
    for weights in ("uniform", "eta"):
        shares = [float(line[f"quantile_{n}"]) for line in lines if line["weights"] == weights for n in range(1, 9)]
        assert sum(shares) == pytest.approx(100, abs=0.1)
    assert picture.read_bytes().startswith(b"\x89PNG")
