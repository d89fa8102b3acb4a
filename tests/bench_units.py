"""Hand-made results of a benchmark."""

import csv
from pathlib import Path

from graspad.bench.results import COLUMNS, Row

SENSORS = {"SMAP": 25.0, "SMD": 38.0, "CICIDS": 77.0}


def unit(
    data_set: str = "SMAP",
    series: str = "a",
    method: str = "grasp",
    seed: int = 0,
    config: str = "c",
    error: str = "",
    **numbers: float,
) -> Row:
    """One unit, by default with as many sensors as the paper's set of that name has; CICIDS is other data."""
    known = {} if error else {"sensors": SENSORS.get(data_set, 5.0), "rows": 1000.0, **numbers}
    return Row(data_set, series, method, seed, known, config, error)


def graded(prc: float, **key: object) -> Row:
    """A unit with the paper's three metrics, all different."""
    return unit(prc=prc, roc=prc / 2, best_f1=prc / 4, **key)


def write_csv(path: Path, rows: list[Row]) -> Path:
    """A results file, written without the runner."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for row in rows:
            key = {name: getattr(row, name) for name in ("set", "series", "method", "seed", "config", "error")}
            writer.writerow(key | dict(row.numbers))
    return path
