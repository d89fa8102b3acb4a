"""A progress bar with loss and time left, on a terminal; silence in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from graspad.train import Progress


@contextmanager
def training_bar(show: bool | None) -> Iterator[Callable[[Progress], None]]:
    """A callback for `train`; `show=None` shows the bar only when stderr is a terminal."""
    console = Console(stderr=True)
    if not (console.is_terminal if show is None else show):
        yield lambda progress: None
        return
    columns = (
        "training",
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TextColumn("{task.fields[text]}"),
    )
    with Bar(*columns, console=console, refresh_per_second=4) as bar:
        task = bar.add_task("training", total=None, text="")

        def update(progress: Progress) -> None:
            minutes, seconds = divmod(round(progress.seconds_left), 60)
            text = f"loss {progress.loss:.4f}  held-out {progress.best_loss:.4f}  {minutes}:{seconds:02d} left"
            bar.update(task, completed=progress.step, total=progress.steps, text=text)

        yield update
