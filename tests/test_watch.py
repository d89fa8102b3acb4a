"""`graspad watch` as a real process: followed files, standard input, kills, and a receiver that is down for a while."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graspad import RECIPE, GraspDetector
from graspad.config import Scoring
from graspad.errors import InputError
from graspad.stream import Stream
from graspad.watch.journal import Journal
from graspad.watch.rows import Reader
from graspad.watch.run import Watch
from graspad.watch.source import Source

SENSORS = ["flow", "level", "pump"]
ROWS = 600
PATIENCE = 60  # seconds; a busy machine takes long to start Python


def plant(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))
    times = pd.date_range("2026-01-05", periods=rows, freq="min").strftime("%Y-%m-%dT%H:%M:%S")
    return pd.DataFrame(values, columns=SENSORS).assign(when=times)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "pump7.grasp"
    quick = RECIPE.override(window=10, scoring=Scoring(flow_times=2, calibrate=True, logarithm=True))
    GraspDetector(quick, false_alarms=0.002).fit(plant(800, 0).drop(columns="when")).save(file)
    return file


@pytest.fixture(scope="module")
def troubled() -> pd.DataFrame:
    """Rows with an incident every hundred rows."""
    frame = plant(ROWS, 1)
    for start in range(60, ROWS - 30, 100):
        frame.loc[start : start + 15, SENSORS[start // 100 % 3]] += 9
    return frame


def command(model: Path, *words: object) -> list[str]:
    return [sys.executable, "-c", "from graspad.cli import main; main()", "watch", *map(str, (model, *words))]


def lines(text: str, kind: str | None = None) -> list[dict]:
    records = [json.loads(line) for line in text.splitlines()]
    return [record for record in records if kind in (None, record["type"])]


@pytest.fixture(scope="module")
def whole(model, troubled, tmp_path_factory) -> str:
    """What an undisturbed watch writes."""
    folder = tmp_path_factory.mktemp("whole")
    troubled.to_csv(folder / "live.csv", index=False)
    done = subprocess.run(command(model, folder / "live.csv", "--once"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_row_has_a_reading_and_every_incident_opens_and_closes(model, troubled, whole):
    readings, incidents = lines(whole, "reading"), lines(whole, "incident")
    assert [reading["row"] for reading in readings] == list(range(ROWS))
    assert readings[0]["time"] == "2026-01-05T00:00:00"
    assert readings[0]["score"] is None
    detector = GraspDetector.load(model)
    causal = detector.scores_by_alignment(troubled.drop(columns="when"))["causal"]
    np.testing.assert_allclose([np.nan if r["score"] is None else r["score"] for r in readings], causal, rtol=1e-4)
    opened = [incident["id"] for incident in incidents if incident["event"] == "opened"]
    closed = [incident["id"] for incident in incidents if incident["event"] == "closed"]
    assert opened == closed
    assert len(set(opened)) == len(opened) >= 5
    first = next(incident for incident in incidents if incident["event"] == "closed" and incident["first_row"] >= 60)
    assert first["sensors"][0]["name"] == "flow"
    assert first["start"].startswith("2026-01-05T01:0")


def test_standard_input_may_be_csv_or_json(model, troubled, whole):
    as_json = "".join(json.dumps(row) + "\n" for row in troubled.to_dict("records"))
    for text in (troubled.to_csv(index=False), as_json):
        done = subprocess.run(command(model), input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert lines(done.stdout, "incident") == lines(whole, "incident")
    brief = subprocess.run(command(model, "--only-incidents"), input=as_json, capture_output=True, text=True)
    assert lines(brief.stdout) == lines(whole, "incident") + lines(whole, "drift")


def test_killed_and_restarted_it_loses_no_line_and_repeats_none(model, troubled, whole, tmp_path):
    live, out, state = tmp_path / "live.csv", tmp_path / "alarms.jsonl", tmp_path / "pump7.state"
    live.write_text(troubled.iloc[:0].to_csv(index=False))
    rows = troubled.to_csv(index=False, header=False).splitlines(keepends=True)
    words = command(model, live, "-o", out, "--state", state)
    chance, written, kills = random.Random(0), 0, 0
    watching = subprocess.Popen(words)
    try:
        began = time.monotonic()
        while written < len(rows) or len(lines_of(out)) < ROWS + len(lines(whole)) - len(lines(whole, "reading")):
            assert time.monotonic() - began < 3 * PATIENCE, f"{len(lines_of(out))} lines after {kills} kills"
            assert watching.poll() is None
            # The file ends after the last kill, however late a busy machine notices that it is time for one.
            if written < (len(rows) if kills == 3 else (kills + 1) * 150 + 50):
                # Half a line at the end, now and then: it is not read before it is whole.
                count = chance.randint(1, 60)
                text = "".join(rows[written : written + count])
                with live.open("a") as file:
                    file.write(text[:-7])
                    file.flush()
                    time.sleep(0.02)
                    file.write(text[-7:])
                written += count
            time.sleep(0.05)
            if kills < 3 and len(lines_of(out)) > (kills + 1) * 150:
                watching.send_signal(signal.SIGKILL)
                watching.wait()
                kills += 1
                with out.open("a") as file:
                    file.write('{"type": "rea')  # as if it had been killed while it wrote
                watching = subprocess.Popen(words)
    finally:
        watching.kill()
        watching.wait()
    assert kills == 3
    assert lines(out.read_text()) == lines(whole)


class Ending(Source):
    """A file whose watch dies while it takes the 20th line."""

    def lines(self):
        for number, line in enumerate(super().lines(), 1):
            if number == 20:
                raise MemoryError
            yield line


def test_killed_before_anything_happened_it_repeats_no_line(model, troubled, whole, tmp_path):
    live, out, state = tmp_path / "live.csv", tmp_path / "alarms.jsonl", tmp_path / "pump7.state"
    troubled[:50].to_csv(live, index=False)
    out.write_text("kept\n")

    def watch(source: Source) -> Watch:
        return Watch(Stream(GraspDetector.load(model)), source, Reader(tuple(SENSORS)), Journal(out, state))

    for _ in range(2):
        dying = watch(Ending(live))
        with pytest.raises(MemoryError):
            dying.run()
        dying.journal.close()
        assert len(lines_of(out)) == 1 + 18
    last = watch(Source(live, follow=False))
    last.run()
    last.close(seconds=0)
    assert lines_of(out) == ["kept", *whole.splitlines()[:50]]


def lines_of(out: Path) -> list[str]:
    return out.read_text().splitlines() if out.exists() else []


def test_ctrl_c_saves_and_it_goes_on_from_there(model, troubled, whole, tmp_path):
    live, out, state = tmp_path / "live.csv", tmp_path / "alarms.jsonl", tmp_path / "pump7.state"
    troubled[:300].to_csv(live, index=False)
    watching = subprocess.Popen(command(model, live, "-o", out, "--state", state))
    began = time.monotonic()
    while sum('"reading"' in line for line in lines_of(out)) < 300:
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(PATIENCE) == 130
    troubled[300:].to_csv(live, index=False, header=False, mode="a")
    done = subprocess.run(command(model, live, "-o", out, "--state", state, "--once"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert lines(out.read_text()) == lines(whole)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def serve(port: int = 0) -> HTTPServer:
    server = HTTPServer(("127.0.0.1", port), Receiver)
    server.received = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_incidents_reach_a_receiver_that_was_down(model, troubled, whole, tmp_path):
    server = serve()
    port = server.server_port
    server.shutdown()
    server.server_close()  # nobody listens there now
    live, state = tmp_path / "live.csv", tmp_path / "pump7.state"
    troubled.to_csv(live, index=False)
    words = command(
        model, live, "-o", tmp_path / "out.jsonl", "--state", state, "--webhook", f"http://127.0.0.1:{port}/a"
    )
    environment = os.environ | {"no_proxy": "127.0.0.1"}
    watching = subprocess.Popen([*words], env=environment, stderr=subprocess.PIPE, text=True)
    began = time.monotonic()
    while not state.exists() or len(json.loads(state.read_text())["outbox"]) < len(lines(whole, "incident")):
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)
    watching.send_signal(signal.SIGKILL)  # killed while all of them wait
    watching.communicate()
    server = serve(port)
    done = subprocess.run([*words, "--once"], env=environment, capture_output=True, text=True)
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr
    assert server.received == lines(whole, "incident")  # type: ignore[attr-defined]
    assert json.loads(state.read_text())["outbox"] == []


@pytest.mark.parametrize(
    ("first_line", "words", "told"),
    [
        ("a,b,c", (), "names none of the model's sensors"),
        ("when,flow,level,pump,note", (), "'when', 'note' are no sensors of the model"),
        ("flow,level,pump", ("--maintenance", "monday"), "The period 'monday' cannot be read"),
        ("flow,level,pump\n1,2,3", ("-o", "/dev/full"), "'/dev/full' cannot be written"),
        ("flow,level,pump", ("--webhook", "ftp://x"), "url"),
        ("flow,level,pump", ("--cadence", 0), "cadence"),
        ("flow,level,pump", ("--state", "nowhere/x"), "nowhere/x"),
    ],
)
def test_what_a_user_can_mend_is_told(model, tmp_path, first_line, words, told):
    done = subprocess.run(command(model, *words), input=first_line + "\n", capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_bad_rows_are_told_and_the_others_are_scored(model, troubled):
    rows = troubled.to_csv(index=False).splitlines()[:60]
    huge, nested = f'{{"flow": {"9" * 400}}}', '{"flow": ' + "[" * 5000
    bad = {1: "1,high,2,2026-01-05", 30: "1,2", 31: '{"flow": 1, ', 32: "1,\r,2,3", 33: nested, 34: huge}
    for place, line in bad.items():
        rows.insert(place, line)
    done = subprocess.run(command(model, "-"), input=("\n".join(rows) + "\n").encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert len(lines(done.stdout.decode(), "reading")) == 59
    problems = [problem["message"] for problem in lines(done.stdout.decode(), "error")]
    assert len(problems) == len(bad)
    assert "The value of 'level' is 'high', not a number" in problems[0]
    assert "header names 4 columns" in problems[1]
    assert all(problem in done.stderr.decode() for problem in problems)


def test_a_file_that_is_replaced_begins_anew(tmp_path):
    live = tmp_path / "live.csv"
    live.write_text("a\nb\n")
    source = Source(live)
    found = source.lines()
    assert [next(found).text, next(found).text, next(found)] == ["a", "b", None]
    (tmp_path / "new.csv").write_text("c\nd")
    (tmp_path / "new.csv").replace(live)
    new = next(found)
    assert (new.text, new.first, next(found)) == ("c", True, None)  # d has no end yet
    with live.open("a") as file:
        file.write("e\nf")
    assert next(line for line in found if line).text == "de"
    (tmp_path / "newer.csv").write_text("g\n")
    (tmp_path / "newer.csv").replace(live)
    assert [line.text for line in (next(found), next(found))] == ["f", "g"]  # nobody will end f now
    found.close()


def test_missing_values_are_empty_cells_and_nulls():
    reader = Reader(("flow", "level"))
    assert reader.read("time, flow, level") is None
    assert reader.read("5, 1.5,") == ({"flow": 1.5, "level": None}, 5.0)
    assert reader.read('{"flow": null, "time": "2026-01-05"}') == ({"flow": None}, "2026-01-05")
    assert reader.read("6,NaN,2") == ({"flow": None, "level": 2.0}, 6.0)


def test_a_foreign_state_file_is_refused_and_left_alone(tmp_path):
    (tmp_path / "state").write_text("{}")
    with pytest.raises(InputError, match="was not written by"):
        Journal(None, tmp_path / "state")
    assert (tmp_path / "state").read_text() == "{}"
