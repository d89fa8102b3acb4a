"""The demo: a simulated plant, a day with hidden faults, and what the detector makes of it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid

from graspad import simulate
from graspad.config import RECIPE, Scoring, Training
from graspad.detector import GraspDetector

# Small enough for a minute or two on two cores.
_BRIEF = RECIPE.override(
    training=Training(budget=200, unit="steps", validate_every=50, anneal=True, validation_windows=512),
    scoring=Scoring(sources=1, flow_times=5),
)


def run(console: Console, seed: int) -> None:
    """Fit on normal days, score days with faults and print each fault beside the truth."""
    normal, faulty = simulate.normal(days=7, seed=seed), simulate.faulty(days=4, seed=seed + 1)
    console.print(f"Simulated plant: {len(normal.sensors)} sensors, {len(normal.values):,} normal rows, one a minute.")
    detector = GraspDetector(_BRIEF, false_alarms=0.005, seed=seed).fit(normal.values)
    report = detector.training_report_
    console.print(
        f"Learnt in {report.seconds:.0f} s: held-out velocity error {report.initial_loss:.2f} → {report.best_loss:.2f}."
    )
    explanation = detector.explain(faulty.values)
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
    console.print(f"Alarms in the {len(healthy):,} healthy rows: {healthy.mean():.1%} (wished: 0.5%).")
