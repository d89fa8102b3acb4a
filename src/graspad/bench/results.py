"""Read the results CSV of `graspad bench run`: one row per (set, series, method, seed)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graspad.errors import InputError

NUMBERS = (
    *("sensors", "train_rows", "rows", "anomalous_rows"),
    *("prc", "roc", "best_f1", "vus_pr", "vus_roc", "affiliation_f1", "event_f1", "inflated_pa_f1"),
    *("alarm_precision", "alarm_recall", "alarm_f1", "false_alarm_rate", "events_found", "delay"),
    *("causal_prc", "causal_roc", "causal_best_f1", "fit_seconds", "score_seconds"),
)
COLUMNS = ("set", "series", "method", "seed", *NUMBERS, "config", "error")


@dataclass(frozen=True)
class Row:
    """One unit: `numbers` by column, those that are undefined left out; a unit that failed has an `error`."""

    set: str
    series: str
    method: str
    seed: int
    numbers: Mapping[str, float]
    config: str = ""
    error: str = ""


def read(paths: Iterable[Path]) -> list[Row]:
    """All units of the files, in the order in which they first occur; of a unit that occurs again the last row counts.

    The last row counts even if it failed: an older number may belong to other settings.
    """
    files = [Path(path) for path in paths]
    units = {(row.set, row.series, row.method, row.seed): row for file in files for row in _rows(file)}
    if not units:
        names = ", ".join(str(file) for file in files) or "no file"
        raise InputError(f"There are no results in {names}. Type: graspad bench run --help")
    return list(units.values())


def _rows(path: Path) -> Iterator[Row]:
    if not path.is_file():
        raise InputError(f"The results file {str(path)!r} does not exist. `graspad bench run --out` writes one.")
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            raise InputError(
                f"The file {str(path)!r} is not a results file: it lacks the column{'s' * (len(missing) > 1)} "
                f"{', '.join(missing)}. Give the CSV that `graspad bench run --out` wrote."
            )
        for cells in lines:
            yield _row(cells, f"{str(path)!r}, line {lines.line_num}")


def _row(cells: Mapping[str, str | None], where: str) -> Row:
    text = {name: cells[name] for name in COLUMNS}
    if None in text.values():
        raise InputError(
            f"{where} breaks off. Run the same `graspad bench run` again: it mends the file and repeats that unit."
        )
    known = {name: _number(text[name] or "", name, where) for name in ("seed", *NUMBERS) if text[name]}
    seed = known.pop("seed", math.nan)
    if not seed.is_integer():
        raise InputError(f"{where}: the seed must be a whole number. Got {text['seed']!r} instead.")
    return Row(
        set=text["set"] or "",
        series=text["series"] or "",
        method=text["method"] or "",
        seed=int(seed),
        numbers=known,
        config=text["config"] or "",
        error=text["error"] or "",
    )


def _number(text: str, column: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {column} must be a finite number, or empty if undefined. Got {text!r} instead.")
    return number
