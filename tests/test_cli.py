"""The command line as a user meets it: a real process, real files, exit codes and messages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

COMMANDS = ["check", "fit", "score", "explain", "recalibrate", "simulate", "demo", "version"]


def graspad(*words: object, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    code = "from graspad.cli import main; main()"
    command = [sys.executable, "-c", code, *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, env=os.environ | variables)


def plant(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))
    times = pd.date_range("2025-01-01", periods=rows, freq="min").strftime("%Y-%m-%d %H:%M:%S")
    return pd.DataFrame(values, columns=["flow", "level [m]", "pump"]).assign(when=times)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A CSV of normal rows with a text time column, a Parquet file with a fault and gaps, and a fitted model."""
    folder = tmp_path_factory.mktemp("plant")
    plant(900, 0).to_csv(folder / "normal.csv", index=False)
    new = plant(300, 1)
    new.loc[100:130, "level [m]"] += 5
    new.loc[200:220, "pump"] = np.nan
    new.to_parquet(folder / "new.parquet")
    done = graspad("fit", folder / "normal.csv", "-o", folder / "model.grasp", "--false-alarms", 0.01, "--window", 20)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Learnt 3 sensors from 900 rows" in done.stdout
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="the OpenMP of other systems has no such setting")
@pytest.mark.parametrize(("variables", "spins"), [({}, 1000), ({"GOMP_SPINCOUNT": "7"}, 7)])
def test_threads_hardly_spin_unless_the_user_wants_it(folder, variables, spins):
    words = ["score", folder / "model.grasp", folder / "none.csv", "-o", folder / "scored.csv"]
    done = graspad(*words, OMP_DISPLAY_ENV="VERBOSE", **variables)
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command):
    done = graspad(command, "--help")
    assert done.returncode == 0
    assert f"Example: graspad {command}" in done.stdout


def test_help_names_all_commands_and_exit_codes():
    done = graspad("--help")
    assert all(command in done.stdout for command in COMMANDS)
    assert "Exit codes: 0 done, 1 check found errors, 2 wrong input or usage" in " ".join(done.stdout.split())


def test_score_writes_one_row_per_row(folder):
    done = graspad("score", folder / "model.grasp", folder / "new.parquet", "-o", folder / "scored.parquet", "--json")
    facts = json.loads(done.stdout)
    out = pl.read_parquet(folder / "scored.parquet")
    assert out.columns == ["when", "score", "p_value", "alarm", "reason"]
    assert len(out) == facts["rows"] == 300
    assert out["alarm"].sum() == facts["alarms"] > 20
    assert out["alarm"][100:131].all()
    assert out["score"].null_count() == facts["without_score"] == (out["reason"] == "gap").sum() > 0
    assert out["when"].to_list() == plant(300, 1)["when"].to_list()
    as_csv = graspad("score", folder / "model.grasp", folder / "new.parquet", "-o", folder / "scored.csv")
    assert "Scored 300 rows" in as_csv.stdout
    np.testing.assert_allclose(pl.read_csv(folder / "scored.csv")["score"], out["score"])


def test_explain_names_the_sensor_and_writes_the_report(folder):
    words = ("explain", folder / "model.grasp", folder / "new.parquet", "--report", folder / "report.html")
    incidents = json.loads(graspad(*words, "--json").stdout)["incidents"]
    worst = max(incidents, key=lambda incident: incident["score"])
    assert worst["sensors"][0]["name"] == "level [m]"
    assert worst["start"] < "2025-01-01T01:50" < worst["end"]  # rows 100 to 130, in minutes after midnight
    assert "level [m]" in (folder / "report.html").read_text()
    assert "level [m]" in graspad(*words).stdout


@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_incidents_are_written_as_a_table(folder, kind):
    file = folder / f"incidents.{kind}"
    words = ("explain", folder / "model.grasp", folder / "new.parquet", "-o", file, "--at-least", 5)
    told = json.loads(graspad(*words, "--json").stdout)["incidents"]
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json}[kind](file)
    assert [str(name) for name in read["id"]] == [incident["id"] for incident in told]
    assert told


def test_maintenance_is_left_out(folder):
    period = "2025-01-01T01:30/2025-01-01T02:20"
    words = (folder / "model.grasp", folder / "new.parquet", "--maintenance", period)
    assert graspad("score", *words, "-o", folder / "m.parquet").returncode == 0
    assert (pl.read_parquet(folder / "m.parquet")["reason"] == "maintenance").sum() == 51
    left = json.loads(graspad("explain", *words, "--json").stdout)["incidents"]
    assert not any(incident["start"] < "2025-01-01T02:20" < incident["end"] for incident in left)
    wrong = graspad("score", *words[:2], "-o", folder / "m.parquet", "--maintenance", "yesterday")
    assert wrong.returncode == 2
    assert "The period 'yesterday' cannot be read. Give two times" in wrong.stderr


def test_recalibrate_writes_the_model_with_another_threshold(folder):
    words = ("recalibrate", folder / "model.grasp", folder / "normal.csv", "-o", folder / "again.grasp")
    done = graspad(*words)
    assert done.returncode == 0, done.stderr
    assert "Threshold" in done.stdout
    assert json.loads(graspad(*words, "--json").stdout)["model"].endswith("again.grasp")
    assert (
        graspad("score", folder / "again.grasp", folder / "new.parquet", "-o", folder / "by_again.csv").returncode == 0
    )


def test_check_tells_and_fails_only_on_errors(folder):
    assert graspad("check", folder / "normal.csv").returncode == 0
    shifted = graspad("check", folder / "normal.csv", folder / "new.parquet", "--json")
    assert shifted.returncode == 0
    assert {"findings", "rows", "sensors"} <= json.loads(shifted.stdout).keys()
    plant(900, 0).iloc[::-1].to_csv(folder / "backwards.csv", index=False)
    done = graspad("check", folder / "backwards.csv")
    assert done.returncode == 1
    assert "error" in done.stdout


def test_simulate_writes_data_and_truth(tmp_path):
    done = graspad("simulate", "-o", tmp_path / "plant", "--days", 4, "--csv")
    assert done.returncode == 0
    normal, faulty = (pl.read_csv(tmp_path / "plant" / f"{name}.csv") for name in ("normal", "faulty"))
    assert (len(normal), len(faulty)) == (4 * 1440, 2 * 1440)
    assert normal.columns == faulty.columns
    faults = json.loads((tmp_path / "plant" / "faults.json").read_text())
    assert {"kind", "start", "end", "sensors", "description", "from", "to"} == faults[0].keys()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fit", "missing.csv", "-o", "m"), "error: There is no file 'missing.csv'"),
        (
            ("fit", "normal.csv", "-o", "m", "--tau", "-1"),
            "error: The 'tau' parameter must be greater than or equal to 0",
        ),
        (("fit", "normal.csv", "-o", "nowhere/m"), "nowhere"),
        (("fit", "few.csv", "-o", "m"), "error: There are 40 rows, but 251 are needed"),
        (("fit", "text.csv", "-o", "m"), "error: The column 'name' holds text such as 'a'"),
        (("score", "normal.csv", "new.parquet", "-o", "s.csv"), "error: "),
        (
            ("score", "model.grasp", "labelled.csv", "-o", "s.csv"),
            "error: The sensors are not those the detector was fitted on",
        ),
        (("score", "model.grasp", "new.parquet", "-o", "s.xlsx"), "must end in .csv or .parquet"),
        (("explain", "gone.grasp", "new.parquet"), "gone.grasp"),
    ],
)
def test_what_a_user_can_mend_is_told_without_a_traceback(folder, words, told):
    plant(40, 0).to_csv(folder / "few.csv", index=False)
    plant(900, 0).assign(name="a").to_csv(folder / "text.csv", index=False)
    plant(300, 0).assign(is_anomaly=0).to_csv(folder / "labelled.csv", index=False)
    done = graspad(*words, cwd=folder)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (folder / "m").exists()
    assert not (folder / "s.csv").exists()


def test_columns_can_be_dropped(folder):
    plant(300, 0).assign(is_anomaly=0).to_csv(folder / "labelled.csv", index=False)
    words = ("score", folder / "model.grasp", folder / "labelled.csv", "-o", folder / "dropped.csv")
    assert graspad(*words, "--drop", "is_anomaly").returncode == 0


def test_too_low_a_rate_is_a_note_on_stderr(folder):
    done = graspad("fit", folder / "normal.csv", "-o", folder / "low.grasp", "--false-alarms", 0.0001, "--json")
    assert done.stderr.startswith("note: 900 held-out rows cannot show a false-alarm rate of 0.0001")
    assert json.loads(done.stdout)["rows"] == 900
