"""Whether the sensors that are named first are those that caused an incident: on SMD's labels and on a simulated plant.

    python benchmarks/root_causes.py smd --data ../shared/data    # 182 incidents: results/root_causes.csv
    python benchmarks/root_causes.py plant                        # 26 weeks of faults: results/plant_faults.csv

Fits are the same every time; --models keeps them in a folder for the next run.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from graspad import GraspDetector, simulate
from graspad.bench.datasets import find_series
from graspad.bench.root_causes import (
    Ranking,
    hit_rate,
    mean_rank,
    ndcg,
    one_named,
    ranking,
    read_incidents,
    rightly_named,
)
from graspad.bench.suspicion import BLAME, OURS, Witness, suspicions

RESULTS = Path(__file__).parents[1] / "results"
ALIGNS = ("overlap", "causal")
MEASURES = ("hit_rate_100", "hit_rate_150", "ndcg", "mean_rank")
SHOWN = (OURS, BLAME, "share", "z-score")
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("on", choices=["smd", "plant"])
    parser.add_argument("--data", type=Path, default=os.environ.get("GRASPAD_DATA"), help="folder that holds SMD")
    parser.add_argument("--weeks", type=int, default=26, help="faulty weeks of the plant")
    parser.add_argument("--models", type=Path, help="folder for fitted models")
    parser.add_argument("--inclusive", action="store_true", help="SMD: the row `end` as well; prints, writes nothing")
    options = parser.parse_args()
    if options.on == "plant":
        table = plant(options.weeks, options.models)
        write(RESULTS / "plant_faults.csv", table)
    else:
        table = smd(options.data, options.models, int(options.inclusive))
        if not options.inclusive:
            write(RESULTS / "root_causes.csv", table)


def smd(data: Path, models: Path | None, more: int) -> list[Row]:
    """Rank the sensors of each labelled incident in every way; means over incidents."""
    series = {one.name: one for one in find_series(data, ["SMD"])}
    incidents = sorted(read_incidents(data / "SMD" / "root_causes.csv"), key=lambda incident: incident.series)
    judged: dict[str, list[tuple[float, ...]]] = {}
    rng = np.random.default_rng(0)
    for name, group in groupby(incidents, key=lambda incident: incident.series):
        loaded = series[name].load()
        model = fitted(models, name, partial(GraspDetector(progress=False).fit, loaded.train)).model_
        rows, explanation = model.rows(loaded.test), model.explain(model.rows(loaded.test))
        surprise = Witness.of(model, model.rows(loaded.train)).surprise(rows)
        for incident in group:
            causes = columns(loaded.sensors, incident.sensors)
            end = incident.end + more
            ways = suspicions(surprise, explanation, model.means, rows, incident.start, end, rng)
            for way, each in ways.items():
                judged.setdefault(way, []).append(judge(ranking(each, rng), causes))
        print(name, flush=True)
    ours = np.array(judged[OURS])
    table = []
    for way, measures in judged.items():
        values = np.array(measures)
        gain = (values - ours)[:, 0]
        table.append(
            {"way": way, "incidents": len(values)}
            | {name: f"{mean:.4f}" for name, mean in zip(MEASURES, values.mean(axis=0), strict=True)}
            | {"gain_100": f"{gain.mean():.4f}", "gain_error": f"{gain.std() / len(gain) ** 0.5:.4f}"}
        )
    show(table)
    return table


def judge(ranked: Ranking, causes: set[int]) -> tuple[float, ...]:
    return hit_rate(ranked, causes, 100), hit_rate(ranked, causes, 150), ndcg(ranked, causes), mean_rank(ranked, causes)


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: its highest score over the threshold and, if it was found, what was named in each way."""

    kind: str
    sensors: tuple[str, ...]
    peak: float
    named: dict[str, tuple[bool, bool]]  # rightly; at least one


def plant(weeks: int, models: Path | None) -> list[Row]:
    """Fit on 60 normal days; which faults of the weeks are found, and whether the first three sensors are true ones."""
    normal = simulate.normal(days=60, seed=0).values
    table = []
    for align in ALIGNS:
        detector = GraspDetector(false_alarms="1/week", interval="1min", align=align, progress=False)
        detector = fitted(models, f"plant-{align}", partial(detector.fit, normal))
        witness, rng = Witness.of(detector.model_, detector.model_.rows(normal)), np.random.default_rng(0)
        outcomes = [one for week in range(1, 1 + weeks) for one in week_of_faults(detector, witness, week, rng)]
        table += summary(align, outcomes)
        spikes = sorted((one.peak, *one.sensors) for one in outcomes if one.kind == "spike")
        print(f"{align}, spikes over the threshold:", *(f"{sensor} {peak:.2f}" for peak, sensor in spikes))
    show([row for row in table if row["way"] in SHOWN or row["kind"] == "all"])
    return table


def week_of_faults(detector: GraspDetector, witness: Witness, seed: int, rng: np.random.Generator) -> Iterator[Outcome]:
    """A fault is found if an incident overlaps it, for causal scores up to a window later; of several the highest."""
    run, model = simulate.faulty(seed=seed), detector.model_
    rows, explanation = model.rows(run.values), detector.explain(run.values)
    surprise = witness.surprise(rows)
    after = model.settings.window if model.settings.align == "causal" else 0
    for fault in run.faults:
        end, named = fault.end + after, {}
        there = [incident for incident in explanation.incidents if incident.start < end and incident.end > fault.start]
        if there:
            worst = max(there, key=lambda incident: incident.score)
            reach = max(0, after - 1)
            ways = suspicions(surprise, explanation, model.means, rows, worst.start, worst.end, rng, reach)
            causes = columns(run.sensors, fault.sensors)
            for way, suspicion in ways.items():
                ranked = ranking(suspicion, rng)
                named[way] = rightly_named(ranked, causes), one_named(ranked, causes)
        peak = np.nanmax(explanation.score[fault.start : end]) / detector.threshold_.value
        yield Outcome(fault.kind, fault.sensors, float(peak), named)


def summary(align: str, outcomes: Sequence[Outcome]) -> list[Row]:
    """One line for each kind of fault and way: how many were found and named, and how far over the threshold."""
    table = []
    for kind in (*simulate.FAULT_KINDS, "all"):
        faults = [one for one in outcomes if kind in (one.kind, "all")]
        found = [one.named for one in faults if one.named]
        peaks = [one.peak for one in faults]
        counts = {"align": align, "kind": kind, "faults": len(faults), "found": len(found)}
        heights = {"lowest_peak": f"{min(peaks):.2f}", "median_peak": f"{np.median(peaks):.2f}"}
        for way in found[0] if found else ():
            rightly, one = np.sum([named[way] for named in found], axis=0)
            table.append(counts | heights | {"way": way, "rightly_named": int(rightly), "one_named": int(one)})
    return table


def columns(sensors: Sequence[str], some: Iterable[str]) -> set[int]:
    return {sensors.index(name) for name in some}


def fitted(folder: Path | None, name: str, fit: Callable[[], GraspDetector]) -> GraspDetector:
    """The model that an earlier run has kept, or a new one."""
    if folder is None:
        return fit()
    file = folder / f"{name}.grasp"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fit().save(file)
    return GraspDetector.load(file)


def show(table: Sequence[Row]) -> None:
    for row in table:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


def write(file: Path, table: Sequence[Row]) -> None:
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
