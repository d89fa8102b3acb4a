"""CSV and Parquet files, read and written by whichever data frame library is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import narwhals as nw
from numpy import ndarray

from graspad.errors import InputError

_BACKENDS = ("pyarrow", "polars", "pandas")


def read_frame(path: str | os.PathLike[str]) -> Any:
    """The file as a data frame of the first library of pyarrow, polars and pandas that is installed."""
    file = Path(path)
    kind = _kind(file)
    if not file.is_file():
        raise InputError(f"There is no file {str(file)!r}. Check the path.")
    try:
        read = nw.read_csv if kind == "csv" else nw.read_parquet
        return nw.to_native(read(str(file), backend=_backend()))
    except Exception as error:  # each library has its own errors for a damaged file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = " Columns must be separated by commas, decimals written with a point." if kind == "csv" else ""
        raise InputError(f"The file {str(file)!r} cannot be read as {kind.upper()}: {reason}.{hint}") from None


def frame_of(columns: Mapping[str, ndarray]) -> Any:
    """A data frame of the same library as `read_frame` uses."""
    return nw.to_native(nw.from_dict(dict(columns), backend=_backend()))


def write_frame(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a data frame to CSV or Parquet; the file appears only once it is complete."""
    file = Path(path)
    kind = _kind(file)
    part = file.with_name(f".{file.name}.part")
    table = nw.from_native(frame, eager_only=True)
    try:
        (table.write_csv if kind == "csv" else table.write_parquet)(str(part))
        part.replace(file)
    except OSError as error:
        raise InputError(f"The file {str(file)!r} cannot be written: {error.strerror or error}.") from None
    finally:
        part.unlink(missing_ok=True)


def _kind(file: Path) -> str:
    suffix = file.suffix.casefold()
    if suffix in (".csv", ".parquet"):
        return suffix[1:]
    raise InputError(f"The file {str(file)!r} must end in .csv or .parquet.")


def _backend() -> ModuleType:
    for name in _BACKENDS:
        if find_spec(name):
            return import_module(name)
    raise InputError("Reading files needs pyarrow, polars or pandas. Type: pip install 'graspad[parquet]'")
