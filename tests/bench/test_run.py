"""Units are run once each, whatever happens: failures, hanging, death of the harness itself."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from graspad.bench.record import Record
from graspad.bench.results import COLUMNS
from graspad.errors import InputError

SERIES = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set TOY of six short series in mTSBench's layout."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "TOY").mkdir()
    rng = np.random.default_rng(0)
    for name in "abcdef"[:SERIES]:
        for split, rows in (("train", 300), ("test", 120)):
            values = rng.standard_normal((rows, 3))
            labels = np.zeros(rows, dtype=int)
            if split == "test":
                values[40:60] += 5
                labels[40:60] = 1
            table = np.column_stack([np.arange(rows), values, labels])
            header = "timestamp,x,y,z,is_anomaly"
            fmt = ["%d", "%.6f", "%.6f", "%.6f", "%d"]
            np.savetxt(
                folder / "TOY" / f"TOY_{name}_{split}.csv", table, header=header, comments="", delimiter=",", fmt=fmt
            )
    return folder


def command(folder: Path, out: Path, methods: str, *more: str) -> list[str]:
    base = [sys.executable, "-m", "graspad", "bench", "run", "--data", str(folder), "--out", str(out)]
    return [*base, "--methods", methods, *more]


def bench(folder: Path, out: Path, methods: str, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, out, methods, *more), env=_environment(**environment), capture_output=True, text=True
    )


def _environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | more


def lines(out: Path) -> list[dict[str, str]]:
    with open(out, newline="") as file:
        return list(csv.DictReader(file))


def keys(out: Path) -> Counter[tuple[str, ...]]:
    return Counter((line["set"], line["series"], line["method"], line["seed"]) for line in lines(out))


def test_every_unit_has_one_line(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "toy.csv"
    done = bench(folder, out, "plug_in:Plain,constant", "--seeds", "0:2", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert out.read_text().splitlines()[0] == ",".join(COLUMNS)
    expected = {("TOY", name, "plug_in:Plain", seed) for name in "abcdef" for seed in "01"}
    expected |= {("TOY", name, "constant", "0") for name in "abcdef"}
    assert keys(out) == Counter(expected)
    plain = next(line for line in lines(out) if line["method"] == "plug_in:Plain")
    assert float(plain["roc"]) > 0.9
    assert (plain["rows"], plain["train_rows"], plain["sensors"], plain["anomalous_rows"]) == ("120", "300", "3", "20")
    known = json.loads(out.with_suffix(".settings.json").read_text())["methods"]
    assert {line["config"] for line in lines(out)} == set(known)
    assert known[plain["config"]] == {"method": "plug_in:Plain", "settings": {"kind": "Plain", "version": "1"}}


def test_killed_in_the_middle_it_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    out, traces = tmp_path / "toy.csv", tmp_path / "traces"
    traces.mkdir()
    whole = command(folder, out, "plug_in:Slow", "--seeds", "0:2", "--jobs", "2")
    first = subprocess.Popen(whole, env=_environment(TRACES=str(traces)), stdout=subprocess.DEVNULL)
    while not out.exists() or len(out.read_text().splitlines()) < 4:
        assert first.poll() is None, "ended before it could be killed"
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = out.read_bytes()
    time.sleep(1.0)  # the workers end with it: nothing runs on, nothing is written
    traces_before = len(list(traces.iterdir()))
    time.sleep(0.5)
    assert len(list(traces.iterdir())) == traces_before
    assert out.read_bytes() == before
    done_before = len(lines(out))
    assert 3 <= done_before < 2 * SERIES

    out.write_bytes(before + b"TOY,f,plug_in:Slow,1,3,30")  # as if the last write had been cut short
    second = bench(folder, out, "plug_in:Slow", "--seeds", "0:2", "--jobs", "2", TRACES=str(traces))
    assert second.returncode == 0, second.stderr
    assert f"{done_before} done before" in second.stdout
    assert out.read_bytes().startswith(before)
    assert keys(out) == Counter(("TOY", name, "plug_in:Slow", seed) for name in "abcdef" for seed in "01")
    assert len(list(traces.iterdir())) - traces_before == 2 * SERIES - done_before

    third = bench(folder, out, "plug_in:Slow", "--seeds", "0:2", TRACES=str(traces))
    assert third.returncode == 0
    assert len(lines(out)) == 2 * SERIES


def test_only_the_processors_work_for_the_main_scores_counts_as_time(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "toy.csv"
    assert bench(folder, out, "plug_in:Waits", "--limit", "1").returncode == 0
    (line,) = lines(out)
    assert 0 <= float(line["fit_seconds"]) < 0.4
    assert 0 <= float(line["score_seconds"]) < 0.4


def test_a_failing_unit_is_a_line_with_its_error(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "toy.csv"
    methods = "plug_in:Fails,plug_in:Dies,plug_in:TooShort,plug_in:Hangs,plug_in:Plain"
    done = bench(folder, out, methods, "--limit", "1", "--timeout", "5", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    told = {line["method"].removeprefix("plug_in:"): line for line in lines(out)}
    assert told["Fails"]["error"] == "ArithmeticError: no such luck"
    assert "exit code 7" in told["Dies"]["error"]
    assert "119 scores for 120 rows" in told["TooShort"]["error"]
    assert told["Hangs"]["error"] == "stopped after 5 s (--timeout)"
    assert told["Plain"]["error"] == ""
    assert all(told["Fails"][name] == "" for name in ("prc", "roc", "fit_seconds"))
    assert "4 units failed" in done.stdout

    again = bench(folder, out, "plug_in:Fails,plug_in:Plain", "--limit", "1")
    assert "2 done before" in again.stdout
    assert len(lines(out)) == 5
    retried = bench(folder, out, "plug_in:Fails,plug_in:Plain", "--limit", "1", "--retry")
    assert "1 done before" in retried.stdout
    assert len(lines(out)) == 6


def test_changed_settings_run_again(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "toy.csv"
    bench(folder, out, "plug_in:Plain,plug_in:Seedless", "--limit", "2")
    changed = bench(folder, out, "plug_in:Plain", "--limit", "2", PLUG_IN_VERSION="2")
    assert "2 to be run again with changed settings" in changed.stdout
    configs = [line["config"] for line in lines(out) if line["method"] == "plug_in:Plain"]
    assert len(configs) == 4
    assert configs[:2] != configs[2:]
    assert len(json.loads(out.with_suffix(".settings.json").read_text())["methods"]) == 3


def test_every_takes_a_sample_by_name(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "toy.csv"
    bench(folder, out, "constant", "--every", "4")
    assert [line["series"] for line in lines(out)] == ["a", "e"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--methods", "grsap"], "There is no method 'grsap'. Choose from grasp,"),
        (["--methods", "os:path"], "There is no method 'os:path'"),
        (["--methods", "hbos", "--seeds", "3:1"], "Seeds must look like"),
        (["--methods", "hbos", "--sets", "SMPA"], "TOY"),
    ],
)
def test_wrong_wishes_are_told_before_anything_runs(
    folder: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    out = tmp_path / "toy.csv"
    done = subprocess.run(
        [sys.executable, "-m", "graspad", "bench", "run", "--data", str(folder), "--out", str(out), *arguments],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    for content in ("name,value\n1,2\n", "notes without an end of line"):
        foreign = tmp_path / "foreign.csv"
        foreign.write_text(content)
        with pytest.raises(InputError, match=r"foreign\.csv.*--out"), Record(foreign):
            pass
        assert foreign.read_text() == content


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "toy.csv"
    with Record(path), pytest.raises(InputError, match="Another run is writing"), Record(path):
        pass
    with Record(path):
        pass


def test_a_header_cut_short_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "toy.csv"
    path.write_text("set,series,met")
    with Record(path) as record:
        assert record.done() == {}
    assert path.read_text() == ",".join(COLUMNS) + "\n"
