import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from graspad.data.table import Table
from graspad.errors import InputError

COLUMNS = {
    "score": np.array([np.nan, 2.0, 3.0]),
    "alarm": np.array([False, True, False]),
    "reason": np.array(["warm-up", None, None], dtype=object),
}
TIMES = pd.date_range("2025-01-01", periods=3, freq="min")


def test_pandas_keeps_index_order_and_time():
    frame = pd.DataFrame({"when": TIMES, "a": [1, 2, 3], "b": [1.5, 2.5, 3.5]}, index=[7, 3, 3])
    table = Table.of(frame)
    assert table.sensors == ("a", "b")
    out = table.give_back(COLUMNS)
    assert isinstance(out, pd.DataFrame)
    assert out.index.tolist() == [7, 3, 3]
    assert out.columns.tolist() == ["when", "score", "alarm", "reason"]
    assert out["when"].tolist() == TIMES.tolist()
    assert np.isnan(out["score"].iloc[0])


def test_polars_and_pyarrow_get_nulls():
    frame = pl.DataFrame({"a": [1, 2, 3], "when": TIMES.to_numpy()})
    for native in (frame, frame.to_arrow()):
        out = Table.of(native).give_back(COLUMNS)
        assert type(out) is type(native)
        as_polars = pl.DataFrame(out)
        assert as_polars["score"].to_list() == [None, 2.0, 3.0]
        assert as_polars["reason"].to_list() == ["warm-up", None, None]
        assert as_polars["when"].to_list() == frame["when"].to_list()


def test_numpy_gives_a_structured_array():
    out = Table.of(np.zeros((3, 2))).give_back(COLUMNS)
    assert out["score"][1:].tolist() == [2, 3]
    assert out["reason"].tolist() == ["warm-up", None, None]


def test_reordered_columns_are_put_in_order():
    table = Table.of(pl.DataFrame({"b": [1.0], "a": [2.0]}))
    assert table.in_order(["a", "b"]).tolist() == [[2, 1]]


def test_an_array_is_taken_in_the_order_of_its_columns():
    assert Table.of(np.array([[1.0, 2.0]])).in_order(["b", "a"]).tolist() == [[1, 2]]


def test_missing_and_unknown_sensors_are_told_by_name():
    table = Table.of(pl.DataFrame({"a": [1.0], "c": [2.0]}))
    with pytest.raises(InputError, match=r"Missing: \['b'\]\. Not known: \['c'\]"):
        table.in_order(["a", "b"])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.zeros(5), r"two dimensions.*Got shape \(5,\)"),
        (np.array([["a"]]), "hold real numbers"),
        ([[1, 2]], "pandas, polars or pyarrow table or a 2-D numpy array"),
        (pa.table({"a": [1], "name": ["x"]}), "column 'name' holds String, not numbers"),
        (pd.DataFrame({"t": TIMES, "u": TIMES, "a": 1}), r"2 date-time columns: \['t', 'u'\]"),
    ],
    ids=["1-d", "text array", "list", "text column", "two times"],
)
def test_wrong_tables_are_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        Table.of(wrong)
