"""The demo from end to end: it must find faults, name sensors, keep quiet elsewhere, and leave a report."""

import io
import re

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from graspad import GraspDetector, simulate
from graspad.demo import run


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    console = Console(file=io.StringIO(), width=140)
    run(console, folder, seed=0)
    return folder, console.file.getvalue()


def test_most_faults_are_found_and_the_true_sensor_is_named(shown):
    _, text = shown
    faults = simulate.faulty(days=7, seed=1).faults
    lines = {fault.kind: next(line for line in text.splitlines() if f"│ {fault.kind} " in line) for fault in faults}
    found = [fault for fault in faults if "found" in lines[fault.kind]]
    assert len(found) >= 4
    assert "found" in lines["coupling"]
    named = [fault for fault in found if any(name in lines[fault.kind].split("│")[-2] for name in fault.sensors)]
    assert len(named) >= len(found) - 1


def test_healthy_days_are_quiet(shown):
    hours = float(re.search(r"False alarms: \d+ in 7 days, ([\d.]+) hours", shown[1]).group(1))
    assert hours < 0.02 * 7 * 24


def test_data_model_scores_and_report_are_left_behind(shown):
    folder, _ = shown
    scored, faulty = (pl.read_parquet(folder / f"{name}.parquet") for name in ("scored", "faulty"))
    assert scored["time"].to_list() == faulty["time"].to_list()
    detector = GraspDetector.load(folder / "plant.grasp")
    # A row's score looks ahead as far as the longest window reaches.
    ahead = max(view.lens.every * view.lens.window for view in detector.model_.views)
    assert detector.score(faulty[: 400 + ahead])["score"][:400].to_list() == pytest.approx(
        scored["score"][:400].to_list(), rel=1e-3, abs=1e-3
    )
    page = (folder / "report.html").read_text()
    assert all(fault.description in page for fault in simulate.faulty(days=7, seed=1).faults)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_gaps_in_a_healthy_week_raise_no_alarm(shown, length):
    """Values that were filled forward never alarm by themselves, nor do the rows around them."""
    detector = GraspDetector.load(shown[0] / "plant.grasp")
    values = simulate.faulty(days=2, seed=5, kinds=()).values
    assert not detector.predict(values).any()
    rng = np.random.default_rng(length)
    for _ in range(values.size // (100 * length)):
        row, sensor = rng.integers(len(values) - length), rng.integers(values.shape[1])
        values[row : row + length, sensor] = np.nan
    assert not detector.predict(values).any()
