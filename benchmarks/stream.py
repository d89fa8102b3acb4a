"""How long a stream takes for a row, and how much of the time of a batch that is.

    python benchmarks/stream.py                       # 38 sensors, the default recipe, one core
    python benchmarks/stream.py --sensors 100 --cadence 5

Prints the median and the 99 % quantile of milliseconds a row, with its writing to results/stream.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np
import torch

from graspad import GraspDetector
from graspad.stream import Stream

RESULTS = Path(__file__).parents[1] / "results" / "stream.csv"
WARM_UP = 300  # rows until every window is full


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sensors", type=int, default=38)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--cadence", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    detector = GraspDetector(progress=False).fit(walks(10_000, options.sensors, seed=0))
    stream, milliseconds = Stream(detector, options.cadence), []
    new = walks(WARM_UP + options.rows, options.sensors, seed=1)
    new[WARM_UP + options.rows // 2 :, 0] += 50  # half of the rows are in an incident
    for row in new:
        began = time.perf_counter()
        stream.push(row)
        milliseconds.append(1000 * (time.perf_counter() - began))
    began = time.perf_counter()
    state = json.dumps(stream.state())
    saving = 1000 * (time.perf_counter() - began)
    began = time.perf_counter()
    detector.scores_by_alignment(new)
    batch = 1000 * (time.perf_counter() - began) / len(new)
    middle, high, most = np.quantile(milliseconds[WARM_UP:], [0.5, 0.99, 1])
    facts = {
        "sensors": options.sensors,
        "cadence": options.cadence,
        "rows": options.rows,
        "p50_ms": round(middle, 2),
        "p99_ms": round(high, 2),
        "max_ms": round(most, 2),
        "batch_ms": round(batch, 3),
        "state_kb": round(len(state) / 1000, 1),
        "state_ms": round(saving, 2),
    }
    print(json.dumps(facts, indent=2))
    write(facts)


def walks(rows: int, sensors: int, seed: int) -> np.ndarray:
    """Slow common movements with noise, as machines have them."""
    rng = np.random.default_rng(seed)
    common = np.cumsum(rng.standard_normal((rows, 4)), axis=0) / 30
    return common @ np.random.default_rng(9).standard_normal((4, sensors)) + rng.standard_normal((rows, sensors))


def write(facts: dict[str, object]) -> None:
    """Replace the line with the same sensors and cadence."""
    old = list(csv.DictReader(RESULTS.open(newline=""))) if RESULTS.exists() else []
    same = ("sensors", "cadence")
    kept = [line for line in old if any(line[name] != str(facts[name]) for name in same)]
    with RESULTS.open("w", newline="") as file:
        lines = csv.DictWriter(file, list(facts))
        lines.writeheader()
        lines.writerows([*kept, facts])


if __name__ == "__main__":
    main()
