"""Peak memory of each deep baseline on a long and wide table: windows are views of its rows, never copies of all.

    python benchmarks/baselines_memory.py            # 400,000 rows × 72 sensors; results/baselines_memory.csv

Each method has a process of its own, one core, and a time to train on the table; then it learns from its first thousand
rows and has as much time to score all of them (`--seconds`). What a batch needs is in use after the first few; GDN,
which keeps an error of each sensor, needs a little more at the end.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "baselines_memory.csv"


class _OverError(Exception):
    """The time is over."""


def ended(work: Callable[[], Any], seconds: float) -> bool:
    """Work for so many seconds of the processor at most, and say whether it was done by then."""

    def stop(*_: object) -> None:
        raise _OverError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        work()
    except _OverError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return True


def measure(name: str, rows: int, sensors: int, seconds: float) -> tuple[bool, bool, float]:
    """Whether training and scoring were done in time, and the process's peak in GB, libraries and data included."""
    import torch

    from graspad.bench.methods import build

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    table = np.sin(np.arange(rows) / 50)[:, None] * rng.standard_normal(sensors)
    table += 0.1 * rng.standard_normal(table.shape)
    method = build(name)
    trained = ended(lambda: method.fit(table, seed=0), seconds)
    method = replace(method, epochs=1)
    method.fit(table[:1000], seed=0)
    scored = ended(lambda: method.score(table), seconds)
    return trained, scored, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def main() -> None:
    from graspad.bench.roster import BASELINES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--sensors", type=int, default=72)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--methods", default=",".join(list(BASELINES)[2:]), help="the deep baselines if left out")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "rows", "sensors", "seconds", "training_ended", "scoring_ended", "peak_gb"])
        for name in options.methods.split(","):
            with context.Pool(1) as alone:
                trained, scored, peak = alone.apply(measure, (name, options.rows, options.sensors, options.seconds))
            print(f"{name:20} {peak:.2f} GB")
            size = [options.rows, options.sensors, f"{options.seconds:g}"]
            writer.writerow([name, *size, trained, scored, f"{peak:.2f}"])
            file.flush()


if __name__ == "__main__":
    main()
