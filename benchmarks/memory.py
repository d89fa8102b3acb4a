"""Peak memory of scoring a long table, from a file to scores.

    python benchmarks/memory.py --rows 1000000 --sensors 38

Makes a Parquet file of random walks, fits on its first rows, then scores the whole file in a process of its own and
prints that process's peak resident memory, and what of it is neither libraries, model nor data.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def make(file: Path, rows: int, sensors: int) -> None:
    rng = np.random.default_rng(0)
    wave = np.sin(np.arange(rows) / 50)
    columns = {f"s{n}": wave * rng.standard_normal() + 0.1 * rng.standard_normal(rows) for n in range(sensors)}
    pq.write_table(pa.table(columns), file)


def resident() -> int:
    """Bytes of this process in memory now; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def score(model: Path, file: Path) -> None:
    from graspad import GraspDetector

    detector = GraspDetector.load(model)
    values = 8 * pq.read_metadata(file).num_rows * pq.read_metadata(file).num_columns
    before, began = resident(), time.perf_counter()
    out = detector.score(file)
    seconds, peak = time.perf_counter() - began, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    above = peak - before - values
    print(f"{len(out):,} rows scored in {seconds:.1f} s. Peak resident memory {peak / 1e9:.2f} GB:")
    print(f"{before / 1e9:.2f} libraries and model, {values / 1e9:.2f} the data as float64, {above / 1e9:.2f} above.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sensors", type=int, default=38)
    parser.add_argument("--score", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.score:
        score(*options.score)
        return
    with tempfile.TemporaryDirectory() as folder:
        data, normal, model = (Path(folder, name) for name in ("data.parquet", "normal.parquet", "model.grasp"))
        make(data, options.rows, options.sensors)
        pq.write_table(pq.read_table(data).slice(0, 20_000), normal)
        fit = [sys.executable, "-m", "graspad", "fit", str(normal), "-o", str(model)]
        subprocess.run(fit, check=True)
        subprocess.run([sys.executable, __file__, "--score", str(model), str(data)], check=True)


if __name__ == "__main__":
    main()
