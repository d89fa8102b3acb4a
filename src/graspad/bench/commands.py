"""`graspad bench`: run methods, show tables beside the paper's, import published data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from graspad.errors import InputError

if TYPE_CHECKING:
    from graspad.bench.run import Unit

app = typer.Typer(
    help="Run methods on benchmark data and show the results beside the paper's.",
    no_args_is_help=True,
)
console = Console()

Results = Annotated[list[Path], typer.Option(help="Results of `graspad bench run`; may be repeated.")]
DataFolder = Annotated[Path, typer.Option(help="Folder with <SET>/<SET>_<series>_{train,test}.parquet or .csv files.")]


@app.command()
def run(
    data: DataFolder,
    out: Annotated[Path, typer.Option(help="CSV for the results; one that exists is completed.")],
    methods: Annotated[
        str, typer.Option(help="Names separated by commas, or all of the main table; see `bench methods`.")
    ],
    sets: Annotated[str | None, typer.Option(help="Names separated by commas; all in the folder if left out.")] = None,
    seeds: Annotated[str, typer.Option(help="Such as 0, 0,1,2 or 0:3 (3 not included).")] = "0",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first series of each set, for a smoke run.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Only every k-th series of each set, by name, as a sample.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Units at a time, one thread each.")] = 1,
    timeout: Annotated[float | None, typer.Option(min=0, help="Seconds after which a unit counts as failed.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run units again that failed before.")] = False,
) -> None:
    """Run methods on series and write one CSV line for each (set, series, method, seed) as it ends.

    Stopped, even killed, and started again with the same command it goes on where it was. A unit that fails is a line
    with its error. The exact settings of each method go to a JSON file beside the CSV. Methods whose result does not
    depend on a seed run with the first one only.

    Example: graspad bench run --data data --sets SMAP --methods grasp,hbos,hbos-smooth --seeds 0:3 --out smap.csv
    """
    from graspad.bench.datasets import find_series
    from graspad.bench.methods import chosen
    from graspad.bench.record import Record
    from graspad.bench.run import plan
    from graspad.bench.run import run as run_units

    names = methods.split(",")
    series = [one for group in _by_set(find_series(data, _names(sets))) for one in group[::every][:limit]]
    units = plan(series, names, _seeds(seeds))
    with Record(out) as record:
        built = chosen(names)
        record.note_settings(built.items())
        done = record.done(retry)
        todo = [unit for unit in units if done.get(unit.key) != unit.config]
        changed = sum(unit.key in done for unit in todo)
        console.print(
            f"{len(series)} series, {len(built)} methods: {len(units)} units, {len(units) - len(todo)} done before"
            + (f", {changed} to be run again with changed settings" if changed else ""),
            highlight=False,
            soft_wrap=True,
        )
        failed = 0
        with _bar() as bar:
            task = bar.add_task("", total=len(todo))

            def on_line(unit: Unit, line: dict[str, Any]) -> None:
                nonlocal failed
                failed += "error" in line
                bar.console.print(_told(unit, line), highlight=False, markup=False, soft_wrap=True)
                bar.advance(task)

            run_units(todo, record, jobs, timeout, on_line)
    told = f", {failed} units failed; see its error column" if failed else ""
    console.print(f"{out}: complete{told}", highlight=False, soft_wrap=True)


@app.command()
def table(
    results: Results,
    out: Annotated[Path | None, typer.Option(help="Folder for tables.md, tables.tex and the figures.")] = None,
) -> None:
    """Show the results beside the paper's numbers, mean ± deviation over seeds.

    Example: graspad bench table --results results/main.csv --out docs/benchmark
    """
    from graspad.bench.tables import render, write_all

    if out is None:
        typer.echo(render(results))
        return
    for file in write_all(results, out):
        console.print(str(file), highlight=False)


@app.command()
def attribution(
    data: DataFolder,
    out: Annotated[Path, typer.Option(help="Folder for one CSV and one figure for each set.")],
    sets: Annotated[str | None, typer.Option(help="Names separated by commas; all in the folder if left out.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Only every k-th series of each set, by name, as a sample.")] = 1,
) -> None:
    """Draw which flow times and graph frequencies the signal of anomalous rows lies in, with and without weights.

    Example: graspad bench attribution --data data --sets SMAP --every 7 --out docs/benchmark
    """
    from graspad.bench.attribution import write
    from graspad.bench.datasets import find_series

    for group in _by_set(find_series(data, _names(sets))):
        for file in write(group[::every], out):
            console.print(str(file), highlight=False)


@app.command(name="import")
def import_(
    name: Annotated[str, typer.Argument(help="smap, msl, smd, cicids or swan.")],
    source: Annotated[Path, typer.Option("--from", help="Folder with the published original.")],
    out: Annotated[Path, typer.Option(help="Folder in which the set's folder is made.")],
    check: Annotated[bool, typer.Option(help="Insist on the published numbers of rows and events.")] = True,
) -> None:
    """Cut a published data set as mTSBench does, and so the paper.

    Example: graspad bench import smap --from telemanom/data --out data
    """
    from graspad.bench.importers import import_original

    imported = import_original(name, source, out, check)
    console.print(f"{imported.set}: {imported.series} series, {imported.rows:,} rows → {out}", highlight=False)
    for remark in imported.remarks:
        console.print(f"note: {remark}", highlight=False)


@app.command()
def methods() -> None:
    """List the methods.

    Example: graspad bench methods
    """
    from graspad.bench.methods import METHODS, build

    listed = Table.grid("", "", padding=(0, 2))
    for name in METHODS:
        listed.add_row(name, build(name).about)
    console.print(listed, highlight=False)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _seeds(text: str) -> list[int]:
    try:
        first, colon, end = text.partition(":")
        seeds = list(range(int(first), int(end))) if colon else [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise InputError(f"Seeds must look like 0, 0,1,2 or 0:3. Got {text!r} instead.")
    return seeds


def _by_set(series: list[Any]) -> list[list[Any]]:
    groups: dict[str, list[Any]] = {}
    for one in series:
        groups.setdefault(one.set, []).append(one)
    return list(groups.values())


def _bar() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _told(unit: Unit, line: dict[str, Any]) -> str:
    if "error" in line:
        return f"{unit}: failed, {line['error']}"
    figures = f"PRC {line['prc']:.4f}  ROC {line['roc']:.4f}  Best-F1 {line['best_f1']:.4f}"
    return f"{unit}: {figures}  fit {line['fit_seconds']:.1f} s  score {line['score_seconds']:.1f} s"
