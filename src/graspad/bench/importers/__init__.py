"""From the published originals to mTSBench's layout, split as mTSBench splits them: one file for each original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from graspad.bench.importers import cicids, omnianomaly, swan, telemanom
from graspad.bench.importers.layout import Counts, Rebuilt, write_series
from graspad.errors import InputError

_Read = Callable[[Path, Counts], Iterator[Rebuilt]]

# For each original, the name of the set that is made of it and how its series are read.
ORIGINALS: dict[str, tuple[str, _Read]] = {
    "smap": ("SMAP", partial(telemanom.read, craft=telemanom.SMAP)),
    "msl": ("MSL", partial(telemanom.read, craft=telemanom.MSL)),
    "smd": ("SMD", omnianomaly.read),
    "cicids": ("CICIDS", cicids.read),
    "swan": ("SWAN", swan.read),
}


@dataclass(frozen=True)
class Imported:
    """What an import has written, and what the user should know of it."""

    set: str
    series: int
    rows: int
    files: list[Path]
    remarks: list[str]


def import_original(name: str, source: Path, out: Path, check: bool = True) -> Imported:
    """Rebuild a set from the folder with its original and write it to `<out>/<SET>`.

    With `check`, counts that are not the published ones end the import before the series in question is written.
    """
    if name.casefold() not in ORIGINALS:
        raise InputError(f"There is no importer {name!r}. There are {', '.join(ORIGINALS)}.")
    if not source.is_dir():
        raise InputError(f"There is no folder {str(source)!r}. Give the one with the published data.")
    target, read = ORIGINALS[name.casefold()]
    counts, files, series, rows = Counts(check), [], 0, 0
    for one in read(source, counts):
        files += write_series(out / target, one)
        series += 1
        rows += sum(len(part) for part in one.splits.values())
    return Imported(target, series, rows, files, counts.remarks)
