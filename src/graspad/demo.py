"""The demo: a simulated plant, a week with hidden faults, and what the detector makes of it."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table as Grid

from graspad import simulate
from graspad.detector import GraspDetector


def run(console: Console, seed: int) -> None:
    """Fit on normal days, score days with faults and print each fault beside the truth."""
    normal, faulty = simulate.normal(days=14, seed=seed), simulate.faulty(days=7, seed=seed + 1)
    console.print(f"Simulated plant: {len(normal.sensors)} sensors, {len(normal.values):,} normal rows, one a minute.")
    began = time.perf_counter()
    detector = GraspDetector(false_alarms=0.001, seed=seed).fit(normal.values)
    console.print(f"Learnt normal behaviour in {time.perf_counter() - began:.1f} s.")
    began = time.perf_counter()
    explanation = detector.explain(faulty.values)
    console.print(f"Scored {len(faulty.values):,} new rows in {time.perf_counter() - began:.1f} s.")
    alarms = detector.threshold_.alarms(explanation.score)
    grid = Grid("fault", "true sensors", "rows", "alarms", "largest shares", title="New data with hidden faults")
    for fault in faulty.faults:
        inside = slice(fault.start, fault.end)
        named = [(faulty.sensors[int(name)], share) for name, share in explanation.top_sensors(fault.start, fault.end)]
        grid.add_row(
            fault.kind,
            " ".join(fault.sensors),
            str(fault.end - fault.start),
            f"{alarms[inside].mean():.0%}",
            "  ".join(f"{name} {share:.0%}" for name, share in named),
        )
    console.print(grid)
    healthy = alarms[faulty.labels() == 0]
    console.print(f"Alarms in the {len(healthy):,} healthy rows: {healthy.mean():.1%} (wished: 0.1%).")
