"""The demo: a simulated plant, two weeks of normal days, one week with hidden faults, and what the detector finds."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from graspad import simulate
from graspad.alarms.incidents import Incident
from graspad.data.check import check
from graspad.data.files import frame_of, write_frame
from graspad.data.table import Table
from graspad.detector import GraspDetector
from graspad.explain import Explanation
from graspad.report import write
from graspad.simulate import Fault, Simulation
from graspad.summary import report_data

_FALSE_ALARMS = 0.001


def write_plant(folder: Path, days: float, seed: int, kind: str = "parquet") -> list[Path]:
    """Simulate the plant and write normal data, half as many days of faulty data, and the truth about the faults."""
    folder.mkdir(parents=True, exist_ok=True)
    normal, faulty = simulate.normal(days=days, seed=seed), simulate.faulty(days=days / 2, seed=seed + 1)
    files = [folder / f"normal.{kind}", folder / f"faulty.{kind}", folder / "faults.json"]
    for run, file in zip((normal, faulty), files[:2], strict=True):
        write_frame(_frame(run), file)
    files[2].write_text(json.dumps([_truth(fault, faulty) for fault in faulty.faults], indent=2) + "\n")
    return files


def run(console: Console, folder: Path, seed: int) -> None:
    """Simulate, check, fit, score, compare with the truth and write the report."""
    console.print("[bold]1. A plant.[/] Simulating a cooling-water station …")
    write_plant(folder, days=14, seed=seed)
    faulty = simulate.faulty(days=7, seed=seed + 1)
    normal, new = Table.of(folder / "normal.parquet"), Table.of(folder / "faulty.parquet")
    console.print(
        f"   {len(normal.sensors)} sensors, one row a minute: {len(normal.values):,} normal rows, "
        f"{len(new.values):,} rows with {len(faulty.faults)} hidden faults.",
        soft_wrap=True,
    )
    findings = check(normal.values, normal.sensors, normal.timestamps)
    console.print(f"[bold]2. The data doctor[/] has {len(findings) or 'nothing'} to say about the normal rows.")

    began = time.perf_counter()
    detector = GraspDetector(false_alarms=_FALSE_ALARMS, seed=seed).fit(normal)
    detector.save(folder / "plant.grasp")
    console.print(f"[bold]3. Fit:[/] learnt normal behaviour in {time.perf_counter() - began:.1f} s.")

    began = time.perf_counter()
    write_frame(detector.score(new), folder / "scored.parquet")
    explanation = detector.explain(new)
    console.print(f"[bold]4. Score:[/] {len(new.values):,} new rows in {time.perf_counter() - began:.1f} s.\n")
    console.print(_comparison(faulty, explanation))
    _tell_false_alarms(console, faulty, explanation)
    write(
        report_data(
            detector,
            new,
            explanation,
            title="Cooling-water station: one week, simulated",
            source="two weeks of normal data",
            units={sensor.name: sensor.unit for sensor in simulate.SENSORS},
            descriptions={sensor.name: sensor.description for sensor in simulate.SENSORS},
            truth=faulty.faults,
        ),
        folder / "report.html",
    )
    console.print(f"\nOpen [bold]{folder / 'report.html'}[/] in a browser. Data, model and scores are beside it.")


def _comparison(faulty: Simulation, explanation: Explanation) -> Grid:
    grid = Grid("fault", "", "after", "true sensors", "sensors to blame", title="Hidden faults and what was found")
    for fault in faulty.faults:
        hits = [found for found in explanation.incidents if found.start < fault.end and fault.start < found.end]
        delay = max(0, min((hit.start for hit in hits), default=0) - fault.start)
        named = max(hits, key=lambda hit: hit.score).sensors[:3] if hits else ()
        words = [
            f"[green]{name}[/] {share:.0%}" if name in fault.sensors else f"{name} {share:.0%}" for name, share in named
        ]
        grid.add_row(
            fault.kind,
            "[green]found[/]" if hits else "[red]missed[/]",
            f"{delay} min" if hits else "",
            " ".join(fault.sensors),
            "  ".join(words),
        )
    return grid


def _tell_false_alarms(console: Console, faulty: Simulation, explanation: Explanation) -> None:
    outside = [incident for incident in explanation.incidents if not _explained(incident, faulty)]
    hours = sum(incident.end - incident.start for incident in outside) / 60
    days = len(faulty.values) / 1440
    console.print(
        f"False alarms: {len(outside)} in {days:g} days, {hours:.1f} hours in all"
        f" (wished: at most {_FALSE_ALARMS:.1%} of the rows, {_FALSE_ALARMS * days * 24:.1f} hours).",
        soft_wrap=True,
    )


def _explained(incident: Incident, faulty: Simulation) -> bool:
    return any(incident.start < fault.end and fault.start < incident.end for fault in faulty.faults)


def _frame(run: Simulation) -> object:
    columns = {"time": run.timestamps} | {name: run.values[:, place] for place, name in enumerate(run.sensors)}
    return frame_of(columns)


def _truth(fault: Fault, run: Simulation) -> dict[str, object]:
    times = {"from": str(run.timestamps[fault.start]), "to": str(run.timestamps[fault.end - 1])}
    return asdict(fault) | times
