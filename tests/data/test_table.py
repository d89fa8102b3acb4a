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
    with pytest.warns(UserWarning, match="from 'b' on"):
        assert table.in_order(["a", "b"]).tolist() == [[2, 1]]


def test_an_array_is_taken_in_the_order_of_its_columns():
    assert Table.of(np.array([[1.0, 2.0]])).in_order(["b", "a"]).tolist() == [[1, 2]]


def test_missing_and_unknown_sensors_are_told_by_name():
    table = Table.of(pl.DataFrame({"a": [1.0], "c": [2.0]}))
    with pytest.raises(InputError, match=r"Missing: \['b'\]\. Not known: \['c'\]"):
        table.in_order(["a", "b"])


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame, lambda d: pl.DataFrame(d).to_arrow()])
def test_missing_values_are_nan_in_every_frame(as_frame):
    table = Table.of(as_frame({"a": [1.0, None, 3.0], "on": [True, False, True]}))
    np.testing.assert_array_equal(table.values, [[1, 1], [np.nan, 0], [3, 1]])


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame, lambda d: pl.DataFrame(d).to_arrow()])
def test_time_may_be_text_or_numbers(as_frame):
    text = Table.of(as_frame({"when": ["2025-01-01 00:00:00", "2025-01-01 00:01:00"], "a": [1.0, 2.0]}))
    assert (text.time, text.sensors) == ("when", ("a",))
    assert np.diff(text.timestamps) == np.timedelta64(60, "s")
    numbers = Table.of(as_frame({"Timestamp": [5, 6], "a": [1.0, 2.0]}))
    assert (numbers.time, numbers.sensors) == ("Timestamp", ("a",))


def test_a_date_index_is_the_clock():
    table = Table.of(pd.DataFrame({"a": [1, 2, 3]}, index=TIMES))
    assert table.time is None
    assert table.timestamps.tolist() == TIMES.to_numpy().tolist()


def test_a_row_number_that_came_along_is_no_sensor(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}).to_csv(tmp_path / "with_index.csv")
    assert Table.of(tmp_path / "with_index.csv").sensors == ("a",)


def test_a_column_without_any_value_is_a_sensor_not_a_clock():
    table = Table.of(pl.DataFrame({"a": [1.0, 2.0], "b": pl.Series([None, None], dtype=pl.String)}))
    assert table.sensors == ("a", "b")
    assert np.isnan(table.values[:, 1]).all()


def test_reasons_are_text_even_when_there_are_none():
    columns = COLUMNS | {"reason": np.full(3, None, dtype=object)}
    out = Table.of(pl.DataFrame({"a": [1.0, 2.0, 3.0]})).give_back(columns)
    assert out.schema["reason"] == pl.String


def test_columns_can_be_left_out():
    frame = pl.DataFrame({"a": [1.0], "is_anomaly": [0]})
    assert Table.of(frame, drop=["is_anomaly"]).sensors == ("a",)
    with pytest.raises(InputError, match="no column 'label' to drop"):
        Table.of(frame, drop=["label"])


def clocked(*times: str) -> pd.DataFrame:
    return pd.DataFrame({"when": pd.to_datetime(list(times)), "a": range(len(times))})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.zeros(5), r"two dimensions.*Got shape \(5,\)"),
        (np.array([["a"]]), "hold real numbers"),
        ([[1, 2]], "pandas, polars or pyarrow table, a 2-D numpy array"),
        (
            pa.table({"a": [1], "name": ["x"]}),
            "column 'name' holds text such as 'x', which is neither a number nor a time",
        ),
        (pl.DataFrame({"a": [[1, 2]]}), r"column 'a' holds List\(Int64\), not numbers"),
        (pd.DataFrame({"t": TIMES, "u": TIMES, "a": 1}), r"2 time columns: \['t', 'u'\]"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns named 'a'"),
        (clocked("2025-01-01", "2025-01-03", "2025-01-02"), r"Time goes back from row 1 .*to row 2.*Sort the rows"),
        (clocked("2025-01-01", "2025-01-02", "2025-01-02"), "Rows 1 and 2 have the same time.*Keep one row"),
        (clocked("2025-01-01", "NaT", "2025-01-02"), "time in row 1 is missing"),
    ],
)
def test_wrong_tables_are_refused(wrong, told):
    with pytest.raises(InputError, match=told):
        Table.of(wrong).check_time()
