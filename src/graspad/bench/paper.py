"""The paper's numbers as data: paper.csv holds its tables, digit for digit; SETS what it says about each data set.

The tables count where they and the prose disagree: TSMixer on SWAN has PRC 0.7556 in the table, 0.7552 in the text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Source = Literal["main", "ablation", "architecture"]

METRICS = {"prc": "PRC", "roc": "ROC", "best_f1": "Best-F1"}
SEEDS = 10


@dataclass(frozen=True)
class DataSet:
    """A data set of the paper (Appendix E.1) and the seconds GRASP takes to score it on an A100 (Appendix E.10)."""

    series: int
    sensors: int
    score_seconds: float | None = None


SETS = {
    "SMAP": DataSet(series=51, sensors=26, score_seconds=38.4),
    "SMD": DataSet(series=18, sensors=39, score_seconds=31.7),
    "CICIDS": DataSet(series=6, sensors=73),
    "SWAN": DataSet(series=1, sensors=39),
}


@dataclass(frozen=True)
class Value:
    """A mean over ten seeds, and its deviation where the paper gives one."""

    mean: float
    std: float | None = None


def value(source: Source, system: str, data_set: str, metric: str) -> Value | None:
    """What the paper reports, or None; `metric` is prc, roc or best_f1.

    >>> value("main", "GRASP", "SMAP", "prc")
    Value(mean=0.3149, std=0.0087)
    >>> value("ablation", "GRASP-lin", "SMD", "roc")
    Value(mean=0.8366, std=None)
    """
    row = _rows().get((source, system, data_set))
    if row is None:
        return None
    std = row[f"{metric}_std"]
    return Value(float(row[metric]), float(std) if std else None)


def same_data(data_set: str, sensors: Iterable[float | None]) -> bool:
    """Whether series with so many sensors can be the paper's.

    A set of the same name may hold other columns, as extracts of CIC-IDS-2017 do; no number of the paper belongs
    beside it. The paper counts one column too many, the label or the time, so one sensor less is right as well.

    >>> same_data("SMAP", [25, 25]), same_data("CICIDS", [77, 10]), same_data("PLANT", [25])
    (True, False, False)
    """
    printed = SETS[data_set].sensors if data_set in SETS else -1
    return printed > 0 and all(count in (printed, printed - 1) for count in sensors)


@cache
def _rows() -> dict[tuple[str, str, str], dict[str, str]]:
    text = resources.files("graspad.bench").joinpath("paper.csv").read_text(encoding="utf-8")
    return {(row["table"], row["system"], row["set"]): row for row in csv.DictReader(text.splitlines())}
