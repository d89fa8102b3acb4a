"""What a watch that goes on later must not do: lose rows, cut what is not its own, take one column for another."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graspad import RECIPE, GraspDetector, Stream
from graspad.config import Scoring
from graspad.errors import InputError
from graspad.watch.journal import Journal
from graspad.watch.rows import ColumnsError, Reader
from graspad.watch.run import Watch
from graspad.watch.source import Line, Source

SENSORS = ("flow", "level", "pump")


def values(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))


@pytest.fixture(scope="module")
def detector() -> GraspDetector:
    quick = RECIPE.override(window=10, scoring=Scoring(flow_times=2, calibrate=True, logarithm=True))
    return GraspDetector(quick, false_alarms=0.002).fit(pd.DataFrame(values(800, 0), columns=SENSORS))


class Files:
    """A folder with what a watch reads and writes."""

    def __init__(self, folder: Path, detector: GraspDetector) -> None:
        self.live, self.out, self.state = folder / "live.csv", folder / "alarms.jsonl", folder / "pump7.state"
        self.detector = detector

    def rows(self, first: int, last: int, names: tuple[str, ...] = SENSORS) -> str:
        """Rows with their number as the time, and an incident from row 60 on."""
        data = values(100, 1)
        data[60:75, 0] += 9
        order = [SENSORS.index(name) for name in names]
        return "".join(",".join(map(str, (row, *data[row, order]))) + "\n" for row in range(first, last))

    def header(self, names: tuple[str, ...] = SENSORS) -> str:
        return ",".join(("time", *names)) + "\n"

    def watch(self, source: Source | None = None, **settings: object) -> Watch:
        journal = Journal(self.out, self.state)
        try:
            return Watch(
                Stream(self.detector), source or Source(self.live, False), Reader(SENSORS), journal, **settings
            )
        except InputError:
            journal.close()
            raise

    def run(self, source: Source | None = None, **settings: object) -> None:
        watching = self.watch(source, **settings)
        watching.run()
        watching.close(seconds=0)

    def lines(self, kind: str) -> list[dict]:
        records = [json.loads(line) for line in self.out.read_text().splitlines()]
        return [record for record in records if record["type"] == kind]

    def scores(self) -> list[float]:
        return [line["score"] for line in self.lines("reading")]


@pytest.fixture
def files(tmp_path: Path, detector: GraspDetector) -> Files:
    return Files(tmp_path, detector)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, detector: GraspDetector) -> list[float]:
    files = Files(tmp_path_factory.mktemp("whole"), detector)
    files.live.write_text(files.header() + files.rows(0, 100))
    files.run()
    assert len(files.lines("incident")) == 2
    return files.scores()


def test_a_signal_waits_for_the_end_of_the_row(files, undisturbed):
    """Whatever the watch does with a row when the signal comes, the row is taken as a whole or not at all."""
    files.live.write_text(files.header() + files.rows(0, 100))
    for moment in ("read", "push", "write", "save"):
        watching = files.watch()
        owner, name = {
            "read": (watching.reader, "read"),
            "push": (watching.stream, "push"),
            "write": (watching.journal, "write"),
            "save": (watching.journal, "save"),
        }[moment]
        action, calls = getattr(owner, name), [0]

        def signalled(*words, action=action, calls=calls, watching=watching, **more):
            calls[0] += 1
            if calls[0] == 12:
                watching.interrupt()
            return action(*words, **more)

        setattr(owner, name, signalled)
        if moment == "save":
            calls[0] = 10  # there are few of them
        with pytest.raises(KeyboardInterrupt):
            watching.run()
        watching.close(seconds=0)
    files.run()
    assert files.scores() == undisturbed
    assert [line["event"] for line in files.lines("incident")] == ["opened", "closed"]


def test_a_signal_while_nothing_happens_stops_at_once(files):
    watching = files.watch()
    with pytest.raises(KeyboardInterrupt):
        watching.interrupt()
    watching.close(seconds=0)


def test_an_output_that_is_not_its_own_is_never_cut(files, tmp_path, undisturbed):
    files.live.write_text(files.header() + files.rows(0, 50))
    files.run()
    whole = files.out.read_text()
    files.out.write_text(whole + "of others\n")
    files.run()  # it was ended in good order, so what has come since is not its own
    assert files.out.read_text() == whole + "of others\n"
    other = files.out
    files.out = tmp_path / "other.jsonl"
    files.out.write_text("kept\n" * 1000)
    files.run()
    assert files.out.read_text() == "kept\n" * 1000
    assert other.exists()


def test_a_state_that_does_not_fit_is_refused_before_anything_is_touched(files, tmp_path):
    files.live.write_text(files.header() + files.rows(0, 50))
    files.run()
    before = files.out.read_bytes()
    files.detector = GraspDetector(files.detector.preset).fit(pd.DataFrame(values(1200, 5), columns=SENSORS))
    with pytest.raises(InputError, match=r"pump7\.state' does not fit: .* another --state"):
        files.watch()
    (tmp_path / "elsewhere.csv").write_text(files.header())
    with pytest.raises(InputError, match="does not fit"):
        files.watch(Source(tmp_path / "elsewhere.csv"))
    saved = json.loads(files.state.read_text())
    files.state.write_text(json.dumps(saved | {"stream": None}))
    with pytest.raises(InputError, match="does not fit"):
        files.watch()
    assert files.out.read_bytes() == before


def test_two_watches_do_not_write_to_one_file(files):
    files.live.write_text(files.header())
    first = files.watch()
    with pytest.raises(InputError, match="Another watch writes to"):
        Journal(files.out, None)
    first.close(seconds=0)


def test_a_new_file_with_other_columns_is_read_by_its_own_header(files, undisturbed):
    files.live.write_text(files.header() + files.rows(0, 40))
    files.run()
    turned = ("pump", "level", "flow")
    files.live.unlink()  # and while the watch is down
    files.live.write_text(files.header(turned) + files.rows(40, 100, turned))
    files.run()
    np.testing.assert_allclose(np.array(files.scores(), dtype=float), np.array(undisturbed, dtype=float), rtol=1e-6)


def test_a_new_file_may_go_on_without_a_header(files, undisturbed):
    files.live.write_text(files.header() + files.rows(0, 40))
    files.run()
    files.live.unlink()
    files.live.write_text(files.rows(40, 100))
    files.run()
    assert files.scores() == undisturbed


def test_rows_under_a_header_that_is_wrong_are_not_read_by_the_old_one():
    reader = Reader(SENSORS)
    assert reader.read("time,flow,level,pump", first=True) is None
    assert reader.read("1,2,3,4") == ({"flow": 2.0, "level": 3.0, "pump": 4.0}, 1)
    for line in ("time,flow,level", "5,6,7"):
        with pytest.raises(InputError, match=r"header|names none"):
            reader.read(line, first=line.startswith("time"))


def test_a_clock_that_jumps_ahead_is_told(files):
    text = files.rows(0, 20) + "999999,0,0,0\n" + files.rows(20, 60)
    files.live.write_text(files.header() + text)
    told = []
    files.run(readings=False, on_problem=told.append)
    (line,) = files.lines("error")
    assert "20 rows came late, up to 39" in line["message"]
    assert "999999" in line["message"]
    assert told == [line["message"]]


def test_events_for_a_receiver_outlive_a_watch_without_one(files):
    files.live.write_text(files.header() + files.rows(0, 100))
    files.run(webhook="http://127.0.0.1:9/nobody")
    waiting = json.loads(files.state.read_text())["outbox"]
    assert [(event["watch"], event["event"]) for event in waiting] == [("watch", "opened"), ("watch", "closed")]
    files.run()
    assert json.loads(files.state.read_text())["outbox"] == waiting


def test_switches_are_numbers(detector):
    reader = Reader(("flow", "level", "valve"))
    reader.read("flow,level,valve")
    assert reader.read("1,2,True") == ({"flow": 1.0, "level": 2.0, "valve": 1.0}, None)
    assert reader.read('{"flow": 1, "valve": false}') == ({"flow": 1.0, "valve": 0.0}, None)
    stream = Stream(detector)
    assert stream.push([1.0, True, np.False_]).status == "warm-up"


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a\nb\n",))
    writer.start()
    assert list(Source(pipe).lines()) == [Line("a", first=True), Line("b")]
    writer.join()


@pytest.mark.parametrize(
    ("lines", "settings", "told"),
    [
        (["when,flow,level"], {}, "The header lacks the model's sensors 'pump'"),
        (
            ["flow,level,pump,is_anomaly", "1,2,3,0"],
            {},
            "'is_anomaly' is no sensor of the model, and '0' is no date-time",
        ),
        (["when,flow,level,pump"], {"time": "wen"}, "There is no column 'wen'"),
        (["when,flow,level,pump"], {"drop": ["note"]}, "There is no column 'note' to drop"),
    ],
)
def test_wrong_columns_are_told(lines, settings, told):
    reader = Reader(SENSORS, **settings)
    for line in lines[:-1]:
        assert reader.read(line) is None
    with pytest.raises(ColumnsError, match=re.escape(told)):
        reader.read(lines[-1])
