"""The command line of a watch."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from graspad.options import AtLeast, CoolDown, Drop, Maintenance, Merge, ModelFile


def watch(
    model: ModelFile,
    source: Annotated[
        Path | None, typer.Argument(help="CSV or JSON-lines file to follow as it grows. Default, or -: standard input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Append the JSON lines there. Default: standard output.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Remember there how far it got: killed and started again, it goes on.")
    ] = None,
    webhook: Annotated[str | None, typer.Option(help="Post each incident there as it opens and closes.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop at the end of the file.")] = False,
    only_incidents: Annotated[bool, typer.Option("--only-incidents", help="No line for every row.")] = False,
    cadence: Annotated[int, typer.Option(help="Score every k-th row only.")] = 1,
    time_column: Annotated[
        str | None, typer.Option("--time", help="Column with the time; found by itself if alone.")
    ] = None,
    at_least: AtLeast = 1,
    merge: Merge = None,
    cool_down: CoolDown = 0,
    maintenance: Maintenance = None,
    drop: Drop = None,
) -> None:
    """Score rows as they come; write readings and incidents as JSON lines.

    Example: graspad watch pump7.grasp live.csv -o alarms.jsonl --state pump7.state --webhook https://example.com/hook

    tail -f live.jsonl | graspad watch pump7.grasp --only-incidents
    """
    import torch

    from graspad.alarms.incidents import Rules
    from graspad.detector import GraspDetector
    from graspad.stream import Stream
    from graspad.watch.journal import Journal
    from graspad.watch.rows import Reader
    from graspad.watch.run import Watch
    from graspad.watch.source import Source

    torch.set_num_threads(1)  # one row is too little to share out
    stream = Stream(GraspDetector.load(model), cadence, Rules(merge, at_least, cool_down), maintenance or ())
    watching = Watch(
        stream,
        Source(None if source == Path("-") else source, follow=not once),
        Reader(tuple(stream.sensors), time_column, drop or ()),
        Journal(output, state),
        webhook,
        readings=not only_incidents,
        on_problem=_tell,
        name=model.stem,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, watching.interrupt)
    try:
        watching.run()
    except BrokenPipeError:
        sys.exit(0)  # nobody reads any more
    finally:
        if left := watching.close(seconds=10):
            kept = f"they are kept in {state}" if state else "give --state to keep them next time"
            _tell(f"{left} events could not be posted; {kept}.")


def _tell(text: str) -> None:
    typer.echo(f"note: {text}", err=True)
