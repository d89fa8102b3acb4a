"""Held-out flow-matching loss of the closed form by ridge, on the normal rows of each training series. No labels.

    python benchmarks/ridge.py            all series in GRASPAD_DATA and the simulated plant → results/ridge.csv

The loss is the mean score (plain sum) of windows that the field was not fitted on: by Equation (loss), weighted as the
score is, at the scored flow times. Resumable: series that have a line are skipped.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from graspad import GraspDetector
from graspad.bench.datasets import find_series
from graspad.config import RECIPE
from graspad.simulate import normal

RIDGES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
OUT = Path("results/ridge.csv")


def losses(normal: np.ndarray) -> list[float]:
    """The mean held-out score for each ridge; a detector keeps the scores of its held-out rows, ascending."""
    found = []
    for ridge in RIDGES:
        settings = RECIPE.override(
            velocity=dict(RECIPE.velocity) | {"ridge": ridge}, scoring=dict(RECIPE.scoring) | {"calibrate": False}
        )
        detector = GraspDetector(settings, false_alarms=0.5, align="causal").fit(normal)
        found.append(float(detector.threshold_.normal_scores.mean()))
    return found


def main() -> None:
    done = {tuple(line[:2]) for line in csv.reader(OUT.open())} if OUT.exists() else set()
    with OUT.open("a", newline="") as file:
        lines = csv.writer(file)
        if not done:
            lines.writerow(["set", "series", *RIDGES, "best"])
        series = [("plant", "seed 0", lambda: normal(days=14, seed=0).values)]
        if folder := os.environ.get("GRASPAD_DATA"):
            series += [(s.set, s.name, lambda s=s: s.load().train) for s in find_series(Path(folder), ["SMAP", "SMD"])]
        for set_name, name, load in series:
            if (set_name, name) in done:
                continue
            found = losses(load())
            best = RIDGES[int(np.argmin(found))]
            lines.writerow([set_name, name, *(f"{loss:.1f}" for loss in found), best])
            file.flush()
            print(set_name, name, best)


if __name__ == "__main__":
    main()
