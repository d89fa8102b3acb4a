"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Argument(help="CSV or Parquet file, one column per sensor.")]
ModelFile = Annotated[Path, typer.Argument(help="Model that `graspad fit` wrote.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column that is no sensor, such as a label; may be repeated.")]
Maintenance = Annotated[
    list[str] | None,
    typer.Option(help="Period to leave out, first/last time, such as 2026-01-05T10:00/2026-01-05T12:00; repeatable."),
]
AtLeast = Annotated[int, typer.Option(help="Alarms that make an incident; fewer are none.")]
CoolDown = Annotated[int, typer.Option(help="Rows after an incident in which no other begins.")]
Merge = Annotated[int | None, typer.Option(help="Alarms this many rows apart are one incident. Default: a window.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
