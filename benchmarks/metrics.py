"""How long all metrics of one long series take.

    python benchmarks/metrics.py                 # 400,000 rows, 200 events, one core

Prints processor seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from graspad.bench.metrics import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--events", type=int, default=200)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    labels = np.zeros(options.rows, dtype=bool)
    for start in rng.integers(0, options.rows, options.events):
        labels[start : start + rng.integers(1, 500)] = True
    scores = rng.standard_normal(options.rows) + labels
    began = time.process_time()
    evaluate(labels, scores, scores > 3)
    print(f"{options.rows} rows, {options.events} events: {time.process_time() - began:.1f} s")


if __name__ == "__main__":
    main()
