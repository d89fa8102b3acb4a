"""Whether false alarms come as often as they were wished for, on a simulated plant in good health and on SMD, and, on
SMD, what is found of what is labelled.

    python benchmarks/false_alarms.py plant                               # 60 normal days, then 52 weeks or more
    GRASPAD_DATA=../shared/data python benchmarks/false_alarms.py smd     # the test rows

One fit serves all wishes, for they only move the threshold. Each command adds its lines to results/false_alarms.csv, in
place of older ones, and draws docs/false_alarms.png.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from graspad import GraspDetector, simulate
from graspad.alarms.incidents import Rules, track
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
Scores = dict[Align, np.ndarray]
Scored = tuple[Scores, np.ndarray]  # with the labels of the rows


@dataclass
class Count:
    """Incidents that were wished for and that came, over so many weeks of normal rows; labelled ones, and found."""

    data: str
    align: Align
    wish: str
    weeks: float
    wished: float
    came: int
    labelled: int = 0
    found: int = 0


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
            found = f"; found {count.found} of {count.labelled}" if count.labelled else ""
            print(f"{count.align:8} {count.wish:8} {numbers}{found}")
    draw(read())


def plant(days: int, weeks: int) -> list[Count]:
    """Fit on normal days, count incidents in weeks that follow other random numbers, four at a time."""
    detector = GraspDetector(progress=False).fit(simulate.normal(days=days, seed=0).values)
    months = (simulate.normal(days=28, seed=seed) for seed in range(1, 1 + weeks // 4))
    scored = [(detector.scores_by_alignment(month.values), np.zeros(len(month.values), dtype=bool)) for month in months]
    return tally(f"plant, fit on {days} days", [(detector, scored)])


def smd() -> list[Count]:
    """Fit on each machine's training rows, count in its test rows."""
    series, fitted = find_series(Path(os.environ["GRASPAD_DATA"]), ["SMD"]), []
    for one in series:
        data = one.load()
        detector = GraspDetector(progress=False).fit(data.train)
        fitted.append((detector, [(detector.scores_by_alignment(data.test), data.labels)]))
    return tally(f"SMD, {len(series)} machines", fitted)


def tally(name: str, fitted: Sequence[tuple[GraspDetector, list[Scored]]]) -> list[Count]:
    """Count the incidents of all tables at the threshold of each wish, as `explain` and a stream find them.

    False ones are those of the rows that are labelled normal; a window that touches an anomaly may alarm with reason. A
    labelled anomaly is found if one of its rows alarms.
    """
    counts = [Count(name, align, wish, 0.0, 0.0, 0) for align in ALIGNS for wish in WISHES]
    for detector, tables in fitted:
        for count in counts:
            known, allowed = detector.thresholds_[count.align], Allowed.wished(count.wish, MINUTE)
            threshold = Threshold(known.normal_scores, allowed, known.merge)
            for by_align, labels in tables:
                near = np.convolve(labels, np.ones(2 * known.merge + 1), mode="same") > 0
                normal = np.where(near, np.nan, by_align[count.align])
                rows = int((~np.isnan(normal)).sum())
                count.weeks += rows * MINUTE / WEEK
                count.wished += rows * threshold.granted.share
                count.came += len(track(normal, threshold.alarms(normal), threshold, Rules()))
                alarms, events = threshold.alarms(by_align[count.align]), list(spans(labels, merge=1))
                count.labelled += len(events)
                count.found += sum(bool(alarms[start:stop].any()) for start, stop in events)
    return counts


def read() -> list[Count]:
    if not RESULTS.exists():
        return []
    kinds = {"weeks": float, "wished": float, "came": int, "labelled": int, "found": int}
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
