"""The command line; each command imports what it needs, so that --help answers at once."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import graspad

app = typer.Typer(
    name="graspad",
    help="Find anomalies in multivariate time series: learn normal behaviour, score new data, name the guilty sensors.",
    no_args_is_help=True,
    add_completion=False,
)
console = Console()


@app.command()
def version() -> None:
    """Print the version.

    Example: graspad version
    """
    typer.echo(graspad.__version__)


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Seed of data and model.")] = 0) -> None:
    """Fit on a small simulated plant, score a day with hidden faults and name the guilty sensors.

    Example: graspad demo
    """
    from graspad.demo import run

    run(console, seed)
