"""How closely the expected curve follows normal rows, and how little a faulty sensor, by flow time (docs/math.md).

    python benchmarks/expected.py --out results/expected.csv

Fits two weeks of the simulated plant and looks at three later ones, with each kind of fault and in good health.
Distances are in units of a sensor's spread; `followed` is the part of the guilty sensors' deviation that the curve
repeats.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace

import numpy as np

from graspad import GraspDetector, simulate
from graspad.expected import Expectation

WEEKS = (1, 2, 3)
# Flow times, each with a number of them that has it among R_ad.
TIMES = ((0.05, 10), (1 / 6, 3), (0.25, 10), (0.5, 3), (5 / 6, 3))


def root_mean_square(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(values).mean(axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    model = GraspDetector().fit(simulate.normal(days=14, seed=0).values).model_
    view = model.views[0]
    table = []
    for t, count in TIMES:
        settings = view.settings.override(scoring=dict(view.settings.scoring) | {"flow_times": count})
        expectation = Expectation.of(replace(view, settings=settings), near=t)
        for week in WEEKS:
            healthy = model.rows(simulate.faulty(seed=week, kinds=()).values)
            off = root_mean_square(expectation.of_rows(healthy) - healthy.values)
            known = {"t": t, "week": week, "normal_median": float(np.median(off)), "normal_worst": float(off.max())}
            for kind in simulate.FAULT_KINDS:
                run = simulate.faulty(seed=week, kinds=[kind])
                (fault,) = run.faults
                place = np.ix_(np.arange(fault.start, fault.end), [run.sensors.index(name) for name in fault.sensors])
                rows, wanted = model.rows(run.values), run.labels() == 1
                seen, true = (part.values[place].astype(np.float64) for part in (rows, healthy))
                expected = expectation.of_rows(rows, wanted)[place]
                deviation = seen - true
                distances = {
                    "seen_from_true": root_mean_square(deviation.ravel()),
                    "expected_from_seen": root_mean_square((expected - seen).ravel()),
                    "expected_from_true": root_mean_square((expected - true).ravel()),
                    "followed": np.sum((expected - true) * deviation) / np.sum(deviation**2),
                }
                row = known | {"fault": kind} | distances
                table.append({key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()})
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
