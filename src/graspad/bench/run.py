"""Run methods on series: resumable, one process per unit, one CSV line as each unit ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from graspad.bench import calibration
from graspad.bench.datasets import Series
from graspad.bench.method import config_hash
from graspad.bench.methods import build, chosen
from graspad.bench.record import Key, Record


@dataclass(frozen=True)
class Unit:
    """One method with one seed on one series."""

    series: Series
    method: str
    seed: int
    config: str

    @property
    def key(self) -> Key:
        """What identifies its line in the results."""
        return (self.series.set, self.series.name, self.method, self.seed)

    def __str__(self) -> str:
        return f"{self.series.set} {self.series.name} {self.method} seed {self.seed}"


def plan(series: Sequence[Series], methods: Sequence[str], seeds: Sequence[int]) -> list[Unit]:
    """Every method on every series with every seed; a method without randomness gets the first seed only."""
    return [
        Unit(one, name, seed, config_hash(method.settings))
        for name, method in chosen(methods).items()
        for seed in (seeds if method.seeded else seeds[:1])
        for one in series
    ]


def run(
    units: Sequence[Unit],
    record: Record,
    jobs: int = 1,
    timeout: float | None = None,
    on_line: Callable[[Unit, dict[str, Any]], None] = lambda unit, line: None,
) -> None:
    """Run the units, `jobs` at a time, and record each as it ends: its figures, or its error.

    Whatever ends this process, the lines written so far stay, and the units under way end too.
    """
    context = _context({module for unit in units for module in build(unit.method).imports})
    pending, running = iter(units), dict[Connection, _Running]()
    try:
        while True:
            while len(running) < jobs and (unit := next(pending, None)) is not None:
                started = _Running.start(unit, timeout, context)
                running[started.connection] = started
            if not running:
                return
            for unit, line in _ended(running):
                record.append(unit.key, line | {"config": unit.config})
                on_line(unit, line)
    finally:
        for left in running.values():
            left.stop()


def _ended(running: dict[Connection, _Running]) -> Iterator[tuple[Unit, dict[str, Any]]]:
    """Wait until a unit ends or its time is over, and take those out of `running`."""
    left = min(one.deadline for one in running.values()) - time.monotonic()
    ready = wait(list(running), timeout=None if left == float("inf") else max(left, 0))
    for connection, one in list(running.items()):
        if connection in ready:
            yield one.unit, one.outcome()
        elif time.monotonic() >= one.deadline:
            yield one.unit, {"error": f"stopped after {one.timeout:g} s (--timeout)"}
        else:
            continue
        one.stop()
        del running[connection]


@dataclass(frozen=True)
class _Running:
    unit: Unit
    process: BaseProcess
    connection: Connection
    timeout: float | None
    deadline: float

    @classmethod
    def start(cls, unit: Unit, timeout: float | None, context: Any) -> _Running:
        ours, theirs = multiprocessing.Pipe()
        process = context.Process(target=_work, args=(unit, theirs))
        process.start()
        theirs.close()
        return cls(unit, process, ours, timeout, time.monotonic() + timeout if timeout else float("inf"))

    def outcome(self) -> dict[str, Any]:
        """What the process sent, or how it died."""
        try:
            return self.connection.recv()
        except EOFError:
            self.process.join()
            return {"error": f"the process died with exit code {self.process.exitcode}: out of memory?"}

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _context(imports: set[str]) -> Any:
    """A server process that has imported everything once and is copied for each unit: a new one would cost seconds."""
    for library in ("OMP", "MKL", "OPENBLAS"):  # torch obeys the first
        os.environ[f"{library}_NUM_THREADS"] = "1"
    # glibc keeps memory instead of asking for it anew at each large tensor: a tenth of a deep baseline's time.
    os.environ["MALLOC_TOP_PAD_"] = str(2**30)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["graspad.bench.run", "graspad.bench.metrics", *imports])
    return context


def _work(unit: Unit, connection: Connection) -> None:
    """In a process of its own: run a unit and send its figures, or its error."""
    threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
    try:
        line = measure(unit)
    except Exception as error:
        line = {"error": f"{type(error).__name__}: {error}"}
    connection.send(line)


def _end_with_parent(connection: Connection) -> None:
    """The parent never sends anything: when reading ends, it is gone."""
    try:
        connection.recv()
    except (EOFError, OSError):
        os._exit(1)


def measure(unit: Unit) -> dict[str, Any]:
    """Fit on the unit's training rows, score its test rows, compare with the labels.

    Times are of the processor, on one core: what else the machine does hardly shows in them. To calibrate a method
    that sets no threshold itself does not count.
    """
    from graspad.bench.metrics import evaluate, headline

    data, method = unit.series.load(), build(unit.method)
    with warnings.catch_warnings(record=True):  # advice for users of a detector, hundreds of times here
        began = time.process_time()
        method.fit(data.train, unit.seed)
        fitted = time.process_time()
        scores = method.score(data.test)
        scored = time.process_time()
        alarms = scores.alarms
        if alarms is None:
            fresh = partial(build, unit.method)
            alarms = calibration.alarms(scores.overlap, method, fresh, data.train, unit.seed)
    if len(scores.overlap) != len(data.labels) or len(scores.causal) != len(data.labels):
        raise ValueError(f"{unit.method} gave {len(scores.overlap)} scores for {len(data.labels)} rows")
    causal = dict(
        zip(("causal_prc", "causal_roc", "causal_best_f1"), headline(data.labels, scores.causal), strict=True)
    )
    return {
        "sensors": len(data.sensors),
        "train_rows": len(data.train),
        "rows": len(data.test),
        "anomalous_rows": int(data.labels.sum()),
        **asdict(evaluate(data.labels, scores.overlap, alarms)),
        **causal,
        "fit_seconds": fitted - began,
        "score_seconds": scored - fitted - scores.causal_seconds,
    }
