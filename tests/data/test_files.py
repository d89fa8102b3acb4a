import numpy as np
import polars as pl
import pytest

from graspad.data.files import read_frame, write_frame
from graspad.data.table import Table
from graspad.errors import InputError

FRAME = pl.DataFrame({"when": ["2025-01-01 00:00:00", "2025-01-01 00:01:00"], "flow": [1.5, None], "on": [0, 1]})


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "DATA.CSV"])
def test_what_is_written_is_read(tmp_path, name):
    write_frame(FRAME, tmp_path / name)
    table = Table.of(tmp_path / name)
    assert (table.time, table.sensors) == ("when", ("flow", "on"))
    np.testing.assert_array_equal(table.values, [[1.5, 0], [np.nan, 1]])
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("precious")
    with pytest.raises(Exception, match="nested"):
        write_frame(pl.DataFrame({"a": [[1]]}), file)
    assert file.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [file]


def test_wrong_files_are_told(tmp_path):
    with pytest.raises(InputError, match=r"There is no file '.*missing\.csv'"):
        read_frame(tmp_path / "missing.csv")
    with pytest.raises(InputError, match=r"must end in \.csv or \.parquet"):
        read_frame(tmp_path / "data.xlsx")
    (tmp_path / "bad.parquet").write_text("no parquet at all")
    with pytest.raises(InputError, match=r"bad\.parquet' cannot be read as PARQUET"):
        read_frame(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        write_frame(FRAME, tmp_path / "nowhere" / "data.csv")
