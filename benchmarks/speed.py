"""How long the default detector takes to fit and to score.

    GRASPAD_DATA=../shared/data python benchmarks/speed.py sets     # SMAP and SMD beside the paper's A100
    python benchmarks/speed.py cost                                 # against rows, sensors, window and flow times

`sets` fits each series and scores its test file, model in memory and data on disk, and adds a line to
results/speed_sets.csv as each series ends; a run that was stopped goes on where it was, and a file that was moved away
is made anew. `cost` changes one quantity at a time on made-up tables, measures the machine's float32 matrix products
in the same run, and writes results/speed_cost.csv and docs/speed.png; `figure` draws that again.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch

from graspad import GraspDetector
from graspad.bench.datasets import LABEL, Series, find_series
from graspad.config import RECIPE, Look
from graspad.data.table import Table

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "results"

# Seconds of scoring on the paper's A100 and the rows scored in them; of its 18 SMD machines 16 are to be had.
A100 = {"SMAP": (38.4, 408_160), "SMD": (31.7 * 16 / 18, 233_065)}

# Of the pictures of benchmarks.
STYLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.92",
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
}


@dataclass(frozen=True)
class Times:
    """Seconds of fit, of making a fitted model ready (the first call does that), and of scoring a table."""

    fit: float
    prepare: float
    score: float

    @classmethod
    def of(cls, detector: GraspDetector, normal: Table, read_new: Callable[[], Table]) -> Times:
        first = normal.values[: detector.get_params()["preset"].window]
        with warnings.catch_warnings(record=True):  # advice for users of a detector, once for each series
            fit = seconds(lambda: detector.fit(normal))
            prepare = seconds(lambda: detector.score(first))
            return cls(fit, prepare, seconds(lambda: detector.score(read_new())))

    def best(self, other: Times) -> Times:
        return Times(*map(min, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Case:
    rows: int = 20_000
    sensors: int = 38
    window: int = 50
    flow_times: int = 3

    def table(self) -> Table:
        rng = np.random.default_rng(0)
        waves = np.sin(np.arange(self.rows)[:, None] / 50 + rng.uniform(0, 2 * np.pi, self.sensors))
        return Table.of(waves + 0.1 * rng.standard_normal((self.rows, self.sensors)))

    def times(self) -> Times:
        scoring = dict(RECIPE.scoring) | {"flow_times": self.flow_times}
        detector = GraspDetector(RECIPE.override(window=self.window, scoring=scoring), progress=False)
        table = self.table()
        return Times.of(detector, table, lambda: table)

    @property
    def flops(self) -> float:
        """Of scoring: a product with a matrix of (sensors · rows)² for each window of each look and flow time."""
        total, scoring = 0.0, RECIPE.scoring
        for look in (Look(), *scoring.looks):
            window = round(look.length * self.window)
            windows = (self.rows // look.every - window + 1) / scoring.stride
            total += 2.0 * (self.sensors * window) ** 2 * self.flow_times * windows
        return total


# All of them at full rank, which ends at sensors · window = 2048.
FACTORS = {
    "rows": (0.25, 1, 2),
    "sensors": (0.25, 0.5, 1),
    "window": (0.2, 0.5, 1),
    "flow_times": (1 / 3, 1, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    commands = parser.add_subparsers(dest="command", required=True)
    sets = commands.add_parser("sets", help="SMAP and SMD beside the paper's A100")
    sets.add_argument("--every", type=int, default=1, help="only each k-th series of a set, for a trial")
    sets.add_argument("--out", type=Path, default=RESULTS / "speed_sets.csv")
    cost = commands.add_parser("cost", help="against rows, sensors, window and flow times")
    cost.add_argument("--rows", type=int, default=Case.rows, help="fewer for a trial")
    cost.add_argument("--repeats", type=int, default=2)
    figure = commands.add_parser("figure", help="draw the results of `cost` again")
    for command in (cost, figure):
        command.add_argument("--out", type=Path, default=RESULTS / "speed_cost.csv")
        command.add_argument("--picture", type=Path, default=REPOSITORY / "docs" / "speed.png")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.command == "sets":
        if "GRASPAD_DATA" not in os.environ:
            parser.error("set GRASPAD_DATA to the folder that holds SMAP and SMD")
        measure_sets(Path(os.environ["GRASPAD_DATA"]), options.every, options.out)
        return
    if options.command == "cost":
        measure_cost(Case(rows=options.rows), options.repeats, options.out)
    draw(options.out, options.picture)


def measure_sets(folder: Path, every: int, out: Path) -> None:
    known = {(line["set"], line["series"]): line for line in read(out)} if out.exists() else {}
    chosen = [series for name in A100 for series in find_series(folder, [name])[::every]]
    for series in chosen:
        if (series.set, series.name) not in known:
            known[series.set, series.name] = line = measure(series)
            append(out, line)
            print(*line.values(), sep="  ", flush=True)
    print(f"\nseconds\n{'set':6}{'series':>8}{'rows':>10}{'fit':>10}{'prepare':>10}{'score':>10}{'score, A100':>14}")
    for name, (paper, paper_rows) in A100.items():
        lines = [known[series.set, series.name] for series in chosen if series.set == name]
        columns = ("rows", "fit_seconds", "prepare_seconds", "score_seconds")
        rows, fit, prepare, score = (sum(float(line[column]) for line in lines) for column in columns)
        # A part of a set is compared with the same share of the paper's time.
        of_paper = paper * rows / paper_rows
        print(f"{name:6}{len(lines):>8}{rows:>10,.0f}{fit:>10.1f}{prepare:>10.1f}{score:>10.1f}{of_paper:>14.1f}")


def measure(series: Series) -> dict[str, Any]:
    def sensors(file: Path) -> Table:
        return Table.of(file, drop=[LABEL])

    normal = sensors(series.train)
    times = Times.of(GraspDetector(RECIPE, progress=False), normal, lambda: sensors(series.test))
    train_rows, n_sensors = normal.values.shape
    size = {"sensors": n_sensors, "train_rows": train_rows, "rows": len(sensors(series.test).values)}
    return {"set": series.set, "series": series.name} | size | {"threads": torch.get_num_threads()} | rounded(times)


def measure_cost(base: Case, repeats: int, out: Path) -> None:
    """The best of some rounds through all cases, so that a slow spell of the machine spoils no case."""
    varied = [
        replace(base, **{name: round(getattr(base, name) * factor)})
        for name, factors in FACTORS.items()
        for factor in factors
    ]
    best: dict[Case, Times] = {}
    speed = 0.0
    for _ in range(repeats):
        for case in dict.fromkeys([base, *varied]):
            times = case.times()
            best[case] = times.best(best.get(case, times))
            speed = max(speed, product_speed())
            print(case, *(f"{name} {value:.2f} s" for name, value in asdict(times).items()), sep="  ", flush=True)
    out.unlink(missing_ok=True)
    for case, times in best.items():
        reached = case.flops / times.score
        speeds = {"score_gflops": f"{reached / 1e9:.0f}", "product_gflops": f"{speed / 1e9:.0f}"}
        line = asdict(case) | {"threads": torch.get_num_threads()} | rounded(times) | speeds
        append(out, line | {"share": f"{reached / speed:.2f}"})
    print(f"matrix products {speed / 1e9:.0f} Gflop/s, scoring {base.flops / best[base].score / 1e9:.0f} Gflop/s")


def product_speed(size: int = 2048, repeats: int = 5) -> float:
    """The machine's float32 matrix products, in flop/s."""
    left, right = torch.randn(2, size, size)
    return 2 * size**3 / min(seconds(lambda: left @ right) for _ in range(repeats))


def draw(results: Path, picture: Path) -> None:
    """Seconds against each quantity, the others as in the base case, and the bound of the products."""
    names = [field.name for field in fields(Case)]
    measured = {Case(*(int(line[name]) for name in names)): line for line in read(results)}
    base = next(iter(measured))
    with mpl.rc_context(STYLE):
        figure, panels = plt.subplots(1, 4, figsize=(10, 2.9), sharey=True, layout="constrained")
        for axes, name in zip(panels, names, strict=True):
            along = sorted(
                (case for case in measured if replace(case, **{name: getattr(base, name)}) == base),
                key=lambda case: getattr(case, name),
            )
            x = [getattr(case, name) for case in along]
            for column, colour in (("fit", "#b5367a"), ("score", "#2d1160")):
                y = [float(measured[case][f"{column}_seconds"]) for case in along]
                axes.plot(x, y, "o-", color=colour, label=column)
            bound = [case.flops / float(measured[case]["product_gflops"]) / 1e9 for case in along]
            axes.plot(x, bound, "--", color="0.45", linewidth=1.2, label="score, if the matrix products were all")
            axes.set(xscale="log", yscale="log", xlabel=name.replace("_", " "))
            axes.set_xticks(x, [f"{value:,}" for value in x])
            axes.minorticks_off()
        panels[0].set_ylabel("seconds")
        panels[0].yaxis.set_major_formatter("{x:g}")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.savefig(picture, dpi=150, metadata={"Software": None})
        plt.close(figure)


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def rounded(times: Times) -> dict[str, str]:
    return {f"{name}_seconds": f"{value:.3f}" for name, value in asdict(times).items()}


def read(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def append(file: Path, *lines: dict[str, Any]) -> None:
    new = not file.exists()
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, lines[0].keys())
        if new:
            writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
