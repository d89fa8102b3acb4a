"""Whether false alarms come as often as they were wished for: on a simulated plant in good health, and on SMD.

    python benchmarks/false_alarms.py plant                               # 60 normal days, then 52 weeks or more
    GRASPAD_DATA=../shared/data python benchmarks/false_alarms.py smd     # the test rows that are labelled normal

One fit serves all wishes, for they only move the threshold. Each command adds its lines to results/false_alarms.csv, in
place of older ones, and draws docs/false_alarms.png.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from graspad import GraspDetector, simulate
from graspad.alarms.rate import Allowed
from graspad.alarms.spans import spans
from graspad.alarms.threshold import Threshold
from graspad.bench.datasets import find_series
from graspad.config import Align

REPOSITORY = Path(__file__).parents[1]
RESULTS, PICTURE = REPOSITORY / "results" / "false_alarms.csv", REPOSITORY / "docs" / "false_alarms.png"
WISHES = ("1/day", "3/week", "1/week", "1/month")
MINUTE, WEEK = 60.0, 604_800.0
ALIGNS: tuple[Align, ...] = ("overlap", "causal")


@dataclass
class Count:
    """Incidents that were wished for and that came, over so many weeks of normal rows."""

    data: str
    align: str
    wish: str
    weeks: float
    wished: float
    came: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=["plant", "smd", "figure"])
    parser.add_argument("--days", type=int, default=60, help="normal days of the plant to fit on")
    parser.add_argument("--weeks", type=int, default=104, help="weeks of the plant to count in")
    options = parser.parse_args()
    if options.data != "figure":
        counts = plant(options.days, options.weeks) if options.data == "plant" else smd()
        others = [count for count in read() if count.data != counts[0].data]
        write([*others, *counts])
        for count in counts:
            numbers = f"wished {count.wished:7.1f}, came {count.came:5} in {count.weeks:.1f} weeks"
            print(f"{count.align:8} {count.wish:8} {numbers}")
    draw(read())


def plant(days: int, weeks: int) -> list[Count]:
    """Fit on normal days, count incidents in weeks that follow other random numbers, four at a time."""
    normal = simulate.normal(days=days, seed=0)
    months = [simulate.normal(days=28, seed=seed) for seed in range(1, 1 + weeks // 4)]
    counts: list[Count] = []
    for align in ALIGNS:
        detector = GraspDetector(align=align, progress=False).fit(normal.values)
        scores = [detector.decision_function(month.values) for month in months]
        counts += tally(f"plant, fit on {days} days", align, [(detector, scores)])
    return counts


def smd() -> list[Count]:
    """Fit on each machine's training rows, count in its test rows that are labelled normal."""
    counts: list[Count] = []
    series = find_series(Path(os.environ["GRASPAD_DATA"]), ["SMD"])
    for align in ALIGNS:
        fitted = []
        for one in series:
            data = one.load()
            detector = GraspDetector(align=align, progress=False).fit(data.train)
            scores = detector.decision_function(data.test)
            # A window that touches an anomaly may alarm with reason.
            near = np.convolve(data.labels, np.ones(2 * detector.model_.settings.window + 1), mode="same") > 0
            fitted.append((detector, [np.where(near, np.nan, scores)]))
        counts += tally(f"SMD, {len(series)} machines", align, fitted)
    return counts


def tally(name: str, align: Align, fitted: Iterable[tuple[GraspDetector, list[np.ndarray]]]) -> list[Count]:
    """Count the incidents of all tables at the threshold of each wish."""
    counts = [Count(name, align, wish, 0.0, 0.0, 0) for wish in WISHES]
    for detector, tables in fitted:
        known = detector.threshold_
        for count in counts:
            allowed = Allowed.wished(count.wish, MINUTE)
            with warnings.catch_warnings(record=True):
                threshold = Threshold(known.normal_scores, allowed, known.merge)
            rows = sum(int((~np.isnan(scores)).sum()) for scores in tables)
            count.weeks += rows * MINUTE / WEEK
            count.wished += rows * max(allowed.share, threshold.rarest)
            count.came += sum(len(list(spans(threshold.alarms(scores), threshold.merge))) for scores in tables)
    return counts


def read() -> list[Count]:
    if not RESULTS.exists():
        return []
    kinds = {"weeks": float, "wished": float, "came": int}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [Count(**{name: kinds.get(name, str)(value) for name, value in row.items()}) for row in rows]


def write(counts: list[Count]) -> None:
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(Count)])
        lines.writeheader()
        for count in counts:
            lines.writerow(asdict(count) | {"weeks": f"{count.weeks:.2f}", "wished": f"{count.wished:.2f}"})


def draw(counts: list[Count]) -> None:
    """Rates per week, wished and observed; the band is a factor of two."""
    names = list(dict.fromkeys(count.data for count in counts))
    figure, panels = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3.8), squeeze=False, layout="constrained")
    for panel, name in zip(panels[0], names, strict=True):
        line = np.geomspace(0.1, 20, 2)
        panel.fill_between(line, line / 2, line * 2, color="0.92", label="within a factor of two")
        panel.plot(line, line, color="0.6", linewidth=1)
        for align, colour, mark in zip(ALIGNS, ("#b5367a", "#2d115f"), ("o", "s"), strict=True):
            some = [count for count in counts if (count.data, count.align) == (name, align)]
            rates = [(count.wished / count.weeks, count.came / count.weeks) for count in some]
            panel.plot(*zip(*rates, strict=True), mark, color=colour, label=align)
        panel.set(xscale="log", yscale="log", title=name, xlabel="wished incidents a week", ylabel="came")
        panel.legend(frameon=False)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
