"""The command line; each command imports what it needs, so that --help answers at once.

Exit codes: 0 done, 1 `check` found errors, 2 wrong input or usage, 130 stopped by ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

import graspad
from graspad.bench import commands as bench
from graspad.errors import GraspError
from graspad.options import AsJson, AtLeast, CoolDown, Data, Drop, Maintenance, Merge, ModelFile
from graspad.watch.command import watch

if TYPE_CHECKING:
    from graspad.data.table import Table
    from graspad.detector import GraspDetector
    from graspad.explain import Explanation

app = typer.Typer(
    name="graspad",
    help="Find anomalies in multivariate time series: learn normal behaviour, score new data, name the guilty sensors."
    "\n\nExit codes: 0 done, 1 check found errors, 2 wrong input or usage, 130 stopped by ctrl-C.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.command()(watch)
console = Console()
errors = Console(stderr=True)


def main() -> None:
    """Run the command line; what a user can mend is told in one line, without a traceback."""
    # Set before torch loads its threads: on busy cores they would spin while they wait for each other, and a fit of
    # seconds would take minutes.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    warnings.showwarning = lambda message, *_: errors.print(f"note: {message}", markup=False, highlight=False)
    try:
        app()
    except GraspError as error:
        errors.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


@app.command()
def check(
    normal: Data,
    new: Annotated[Path | None, typer.Argument(help="Data to be scored later: tells how far it has shifted.")] = None,
    window: Annotated[int, typer.Option(help="Rows of a window.")] = 50,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Look for what would stop or mislead a fit: stuck, constant, doubled, gappy, jumping sensors, odd sampling, shift.

    Example: graspad check normal.parquet new.parquet --drop is_anomaly
    """
    from graspad.data.check import check as examine
    from graspad.data.check import check_shift
    from graspad.data.table import Table

    table = Table.of(normal, drop or ())
    findings = examine(table.values, table.sensors, table.timestamps, window=window)
    if new is not None:
        later = Table.of(new)
        later = Table.of(new, [name for name in drop or () if name in later.sensors])
        findings += check_shift(table.values, later.values, table.sensors, later.sensors, window=window)
    failed = any(finding.level == "error" for finding in findings)
    if as_json:
        _print_json({"rows": len(table.values), "sensors": table.sensors, "findings": [asdict(f) for f in findings]})
    else:
        console.print(f"{normal}: {len(table.values):,} rows, {len(table.sensors)} sensors", highlight=False)
        grid = Grid("", "topic", "finding", box=None, show_header=False, padding=(0, 2, 0, 0))
        colour = {"error": "red", "warning": "yellow", "note": "cyan"}
        for finding in findings:
            level = finding.level
            grid.add_row(f"[{colour[level]}]{level}[/]", finding.topic, _plain(finding.message))
        console.print(grid if findings else "Nothing to complain about.", highlight=False)
    if failed:
        raise typer.Exit(1)


@app.command()
def fit(
    normal: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model.")],
    false_alarms: Annotated[
        str, typer.Option(help="Incidents that may come without cause, such as 1/week, or a share of normal rows.")
    ] = "0.001",
    interval: Annotated[
        str | None, typer.Option(help="Time from row to row, such as 1min, where the file has no timestamps.")
    ] = None,
    preset: Annotated[str, typer.Option(help="recipe (ours) or paper (the paper's budget: hours).")] = "recipe",
    field: Annotated[str | None, typer.Option(help="gaussian, tsmixer, gnn, transformer or hybrid-tsmixer, …")] = None,
    window: Annotated[int | None, typer.Option(help="Rows of a window.")] = None,
    tau: Annotated[float | None, typer.Option(help="Weight of the graph in the path; 0 is the linear path.")] = None,
    align: Annotated[str | None, typer.Option(help="overlap (best for history) or causal (as in a stream).")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, data and machine: same model.")] = 0,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Learn normal behaviour from a file and write a model.

    Example: graspad fit normal.parquet -o pump7.grasp --false-alarms 1/week
    """
    from graspad.data.table import Table
    from graspad.detector import GraspDetector

    table = Table.of(normal, drop or ())
    began = time.perf_counter()
    detector = GraspDetector(
        preset,
        false_alarms=_number(false_alarms),
        interval=None if interval is None else _number(interval),
        field=field,
        window=window,
        tau=tau,
        align=align,
        seed=seed,
    ).fit(table)
    seconds = time.perf_counter() - began
    detector.save(output)
    report = detector.training_report_
    if report is not None and report.interrupted:
        errors.print(f"note: stopped by ctrl-C after {report.steps} steps; the best weights so far are kept.")
    facts = _model_facts(detector) | {"rows": len(table.values), "seconds": round(seconds, 2), "model": str(output)}
    text = (
        f"Learnt {facts['sensors']} sensors from {len(table.values):,} rows in {seconds:.1f} s: "
        f"{facts['edges']} links, window {facts['window']}, threshold {facts['threshold']:.4g} "
        f"(false alarms: {detector.threshold_.granted}) → {output}"
    )
    _tell(facts, text, as_json)


@app.command()
def score(
    model: ModelFile,
    new: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file for the scores.")],
    maintenance: Maintenance = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Score every row of a file: score, p_value, alarm and, where there is no score, the reason.

    Example: graspad score pump7.grasp new.parquet -o scored.parquet
    """
    import numpy as np

    from graspad.data.files import write_frame

    detector, table = _load(model, new, drop)
    began = time.perf_counter()
    out = detector.score(table, maintenance or ())
    seconds = time.perf_counter() - began
    write_frame(out, output)
    alarms, reasons = np.asarray(out["alarm"]), np.asarray(out["reason"])
    facts = {
        "rows": len(table.values),
        "alarms": int(alarms.sum()),
        "without_score": int(np.isin(reasons, ["gap", "warm-up", "maintenance"]).sum()),
        "seconds": round(seconds, 2),
        "output": str(output),
    }
    text = (
        f"Scored {facts['rows']:,} rows in {seconds:.1f} s: {facts['alarms']:,} alarms, "
        f"{facts['without_score']:,} rows without a score → {output}"
    )
    _tell(facts, text, as_json)


@app.command()
def explain(
    model: ModelFile,
    new: Data,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML report there.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the incidents to a CSV, Parquet or JSON file.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Sensors to name for each incident.")] = 3,
    at_least: AtLeast = 1,
    merge: Merge = None,
    cool_down: CoolDown = 0,
    maintenance: Maintenance = None,
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """List the incidents of a file with the sensors to blame, and draw them.

    Example: graspad explain pump7.grasp new.parquet --report report.html

    graspad explain pump7.grasp new.parquet -o incidents.csv --at-least 3 --cool-down 60
    """
    from graspad.alarms.incidents import Rules

    detector, table = _load(model, new, drop)
    explanation = detector.explain(table, maintenance or (), Rules(merge, at_least, cool_down))
    records = [incident.record(top) for incident in explanation.incidents]
    if output is not None:
        _write_incidents(explanation, records, output, top)
    if report is not None:
        from graspad.report import write
        from graspad.summary import report_data

        write(report_data(detector, table, explanation, title=f"{new.name}: incidents", source=str(model)), report)
    if as_json:
        _print_json({"incidents": records})
        return
    grid = Grid("start", "end", "rows", "peak score", "expected", "sensors to blame", title=f"Incidents in {new.name}")
    for item in records:
        named = "  ".join(f"{sensor['name']} {sensor['share']:.0%}" for sensor in item["sensors"])
        # With a space a narrow terminal breaks a time in two lines; without, it would cut off the hours.
        start, end = (str(item[time]).replace("T", " ") for time in ("start", "end"))
        end += " …" if item["ongoing"] else ""
        columns = (start, end, item["rows"], f"{item['score']:.3g}", item["expected"], named)
        grid.add_row(*(_plain(str(column)) for column in columns))
    console.print(grid if explanation.incidents else "Nothing over the threshold.", highlight=False)
    if report is not None:
        console.print(f"Report: {report}", highlight=False)


@app.command()
def recalibrate(
    model: ModelFile,
    normal: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the model; may be the same file.")],
    drop: Drop = None,
    as_json: AsJson = False,
) -> None:
    """Set the threshold anew by other normal rows, not those of the fit; what was learnt stays as it is.

    Example: graspad recalibrate pump7.grasp last_month.parquet -o pump7.grasp
    """
    detector, table = _load(model, normal, drop)
    before = detector.threshold_.value
    detector.recalibrate(table).save(output)
    facts = _model_facts(detector) | {"rows": len(table.values), "model": str(output)}
    text = (
        f"Threshold {before:.4g} → {facts['threshold']:.4g} by {len(table.values):,} normal rows "
        f"(false alarms: {detector.threshold_.granted}) → {output}"
    )
    _tell(facts, text, as_json)


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for normal, faulty and faults files.")],
    days: Annotated[float, typer.Option(help="Days of normal data; half as many of faulty data.")] = 14,
    seed: Annotated[int, typer.Option(help="Same seed: same plant.")] = 0,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV instead of Parquet.")] = False,
) -> None:
    """Write data of a simulated cooling-water station: normal days, days with faults, and the truth about them.

    Example: graspad simulate -o plant
    """
    from graspad.demo import write_plant

    for file in write_plant(output, days, seed, "csv" if csv else "parquet"):
        console.print(str(file), highlight=False)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for data, model and report.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the plant and its faults.")] = 0,
) -> None:
    """Simulate a plant, learn its normal days, find the faults in new ones, name the sensors and write report.html.

    Example: graspad demo
    """
    from graspad.demo import run

    run(console, output, seed)


@app.command()
def version() -> None:
    """Print the version.

    Example: graspad version
    """
    typer.echo(graspad.__version__)


def _number(text: str) -> float | str:
    """What was typed, as a number if it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def _load(model: Path, new: Path, drop: list[str] | None) -> tuple[GraspDetector, Table]:
    from graspad.data.table import Table
    from graspad.detector import GraspDetector

    return GraspDetector.load(model), Table.of(new, drop or ())


def _model_facts(detector: GraspDetector) -> dict[str, Any]:
    from graspad.core.graph import count_edges

    model = detector.model_
    return {
        "sensors": len(model.sensors),
        "edges": count_edges(model.adjacency),
        "window": model.settings.window,
        "align": model.settings.align,
        "field": model.settings.velocity.kind,
        "threshold": detector.threshold_.value,
        "false_alarms": detector.false_alarms,
    }


def _write_incidents(explanation: Explanation, records: list[dict[str, Any]], output: Path, top: int) -> None:
    from graspad.data.files import write_frame
    from graspad.errors import InputError

    if output.suffix.casefold() != ".json":
        if output.suffix.casefold() not in (".csv", ".parquet"):
            raise InputError(f"The file {str(output)!r} must end in .csv, .parquet or .json.")
        write_frame(explanation.table(top), output)
        return
    try:
        output.write_text(json.dumps(records, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"The file {str(output)!r} cannot be written: {error.strerror or error}.") from None


def _tell(facts: dict[str, Any], text: str, as_json: bool) -> None:
    """The outcome of a command, for a program or for a person."""
    if as_json:
        _print_json(facts)
    else:
        console.print(text, highlight=False, soft_wrap=True)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, indent=2, default=str))


def _plain(text: str) -> str:
    """Names from a file must not be read as colours."""
    return text.replace("[", r"\[")
