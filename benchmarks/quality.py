"""What accuracy costs: the default detector with fewer windows, or fewer looks, at the same rows.

    python benchmarks/quality.py --data ../shared/data    # all series: results/quality.csv, docs/quality.png
    python benchmarks/quality.py figure                   # draws it again

Each series is fitted once, then scored in every way, so that all ways share their fields and levels. A line is added as
each series ends; a run that was stopped goes on where it was. Seconds are the processor's, on one core.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch

from graspad import GraspDetector
from graspad.bench.datasets import Series, find_series
from graspad.bench.metrics import headline
from graspad.config import RECIPE
from graspad.model import Model
from speed import STYLE, append, read

REPOSITORY = Path(__file__).parents[1]
STRIDES = (1, 2, 5, 10, 25, 50)
# How many of the recipe's looks: the windows themselves, then shorter ones, then means of rows.
LOOKS = (1, 2, 3)
METRICS = ("prc", "roc", "best_f1")
COLUMNS = ("set", "series", "rows", "looks", "stride", *METRICS, "score_seconds")
COLOURS = ("#2d1160", "#b5367a", "#f0803c")
Line = dict[str, str]
Way = tuple[str, int, int]  # set, looks, stride
Table = dict[Way, tuple[tuple[float, ...], float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "figure"], default="run")
    parser.add_argument("--data", type=Path, default=os.environ.get("GRASPAD_DATA"), help="folder with SMAP and SMD")
    parser.add_argument("--every", type=int, default=1, help="only each k-th series of a set, for a trial")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results" / "quality.csv")
    parser.add_argument("--picture", type=Path, default=REPOSITORY / "docs" / "quality.png")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "run":
        if options.data is None:
            parser.error("name the folder that holds SMAP and SMD with --data")
        run(options.data, options.every, options.out)
    table = means(options.out)
    for (data_set, looks, stride), (numbers, seconds) in table.items():
        print(f"{data_set:6}{looks} looks, stride {stride:<4}", *(f"{n:.4f}" for n in numbers), f"{seconds:8.1f} s")
    draw(table, options.picture)


def run(folder: Path, every: int, out: Path) -> None:
    known = {(line["set"], line["series"]) for line in read(out)} if out.exists() else set()
    for name in ("SMAP", "SMD"):
        for series in find_series(folder, [name])[::every]:
            if (series.set, series.name) not in known:
                lines = list(measure(series))
                append(out, *lines)
                print(series.set, series.name, flush=True)


def measure(series: Series) -> Iterator[Line]:
    data = series.load()
    with warnings.catch_warnings(record=True):  # advice for users of a detector
        model = GraspDetector(RECIPE, progress=False).fit(data.train).model_
    for looks in LOOKS:
        for stride in STRIDES:
            # The default of each is measured with every other one.
            if looks == max(LOOKS) or stride == RECIPE.scoring.stride:
                changed = _thinned(model, looks, stride)
                began = time.process_time()
                (scores,) = changed.score(changed.rows(data.test), ["overlap"])
                seconds = time.process_time() - began
                numbers = (f"{number:.6f}" for number in headline(data.labels, scores))
                facts = (series.set, series.name, len(data.test), looks, stride)
                yield dict(zip(COLUMNS, (*map(str, facts), *numbers, f"{seconds:.4f}"), strict=True))


def _thinned(model: Model, looks: int, stride: int) -> Model:
    settings = RECIPE.override(scoring=dict(RECIPE.scoring) | {"stride": stride})
    thinned = replace(model, views=tuple(replace(view, settings=settings) for view in model.views[:looks]))
    for view in thinned.views:
        _ = view.stations  # made in fit
    return thinned


def means(results: Path) -> Table:
    """Means of the metrics over the series and the seconds of all of them, for each way."""
    table: Table = {}
    for way, found in groupby(sorted(read(results), key=_way), key=_way):
        lines = list(found)
        numbers = tuple(fmean(float(line[metric]) for line in lines) for metric in METRICS)
        table[way] = (numbers, sum(float(line["score_seconds"]) for line in lines))
    return table


def _way(line: Line) -> Way:
    return line["set"], int(line["looks"]), int(line["stride"])


def draw(table: Table, picture: Path) -> None:
    sets = list(dict.fromkeys(data_set for data_set, _, _ in table))
    with mpl.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(sets), figsize=(4.6 * len(sets), 3.2), layout="constrained", squeeze=False)
        for axes, data_set in zip(panels[0], sets, strict=True):
            ways = {way[1:]: found for way, found in table.items() if way[0] == data_set}
            windows = {way: found for way, found in ways.items() if way[0] == max(LOOKS)}
            looks = {way: found for way, found in ways.items() if way[1] == RECIPE.scoring.stride}
            for index, (metric, colour) in enumerate(zip(("PRC", "ROC", "Best-F1"), COLOURS, strict=True)):
                for varied, marker, told in (
                    (windows, "o-", "every 1st to 50th window"),
                    (looks, "s:", "one, two, three looks"),
                ):
                    along = sorted((seconds, numbers[index]) for numbers, seconds in varied.values())
                    axes.plot(*zip(*along, strict=True), marker, color=colour, label=f"{metric}, {told}")
            axes.set(xscale="log", xlabel="processor seconds to score the set", title=data_set)
            low, high = axes.get_xlim()
            axes.set_xticks(ticks := [x for x in (0.1, 1, 2, 5, 10, 20, 50, 100) if low <= x <= high], map(str, ticks))
            axes.minorticks_off()
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
        figure.savefig(picture, dpi=150, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
