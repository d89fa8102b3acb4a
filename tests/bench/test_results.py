"""Reading the results file: the last row of a unit counts, and a spoilt file is refused by name."""

import numpy as np
import pytest

from bench_units import graded, unit, write_csv
from graspad.bench.record import Record
from graspad.bench.results import Row, read
from graspad.errors import InputError


def test_what_the_runner_writes_is_read_back(tmp_path):
    path = tmp_path / "results.csv"
    with Record(path) as record:
        figures = {"sensors": 25, "rows": 4000, "prc": 0.125, "roc": np.nan, "config": "abc"}
        record.append(("SMAP", "A-1", "hbos", 0), figures)
        record.append(("SMAP", "A-2", "hbos", 1), {"config": "abc", "error": "ValueError: a, b\nand c"})
    good, bad = read([path])
    assert good == Row("SMAP", "A-1", "hbos", 0, {"sensors": 25.0, "rows": 4000.0, "prc": 0.125}, "abc")
    assert (bad.series, bad.seed, bad.numbers) == ("A-2", 1, {})
    assert bad.error.startswith("ValueError: a, b")


def test_of_a_unit_that_occurs_again_the_last_row_counts(tmp_path):
    first = write_csv(tmp_path / "1.csv", [graded(0.1, seed=0), graded(0.2, seed=1), graded(0.3, seed=0)])
    second = write_csv(tmp_path / "2.csv", [unit(seed=1, error="boom")])
    assert [row.numbers.get("prc") for row in read([first])] == [0.3, 0.2]
    assert [row.numbers.get("prc") for row in read([first, second])] == [0.3, None]
    assert [row.numbers.get("prc") for row in read([second, first])] == [0.2, 0.3]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace("vus_pr", "vus"), ["vus_pr", "lacks the column"]),
        (lambda text: text.rstrip().rpartition(",")[0], ["line 2", "breaks off"]),
        (lambda text: text.replace("0.125", "much"), ["line 2", "prc", "'much'"]),
        (lambda text: text.replace("0.125", "nan"), ["line 2", "prc", "finite"]),
        (lambda text: text.replace("grasp,0,", "grasp,0.5,"), ["line 2", "seed", "'0.5'"]),
        (lambda text: text.replace("grasp,0,", "grasp,,"), ["line 2", "seed"]),
        (lambda text: text.splitlines()[0], ["no results", "graspad bench run"]),
        (lambda text: "", ["lacks the columns"]),
    ],
)
def test_a_spoilt_file_is_refused_by_name(tmp_path, spoil, words):
    path = write_csv(tmp_path / "mine.csv", [graded(0.125)])
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InputError) as caught:
        read([path])
    assert all(word in str(caught.value) for word in ["mine.csv", *words])


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"other\.csv.*does not exist"):
        read([tmp_path / "other.csv"])
