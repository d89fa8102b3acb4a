"""The results of a benchmark: a CSV that survives being killed, and the settings behind it."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import math
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from graspad.bench.method import Method, config_hash
from graspad.bench.results import COLUMNS
from graspad.errors import InputError

# set, series, method, seed
Key = tuple[str, str, str, int]


class Record:
    """A results file, open for one run at a time; use it in a `with` statement."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Record:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b")
        try:
            self._lock()
            self._mend()
        except InputError:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def done(self, retry: bool = False) -> dict[Key, str]:
        """The units that have a line, with the settings they ran with; with `retry` those that failed do not count."""
        lines = csv.DictReader(io.StringIO(self.path.read_text("utf-8")))
        last = {(line["set"], line["series"], line["method"], int(line["seed"])): line for line in lines}
        return {key: line["config"] for key, line in last.items() if not (retry and line["error"])}

    def append(self, key: Key, figures: dict[str, Any]) -> None:
        """Add a line in one write, and see it to the disk."""
        line = dict(zip(COLUMNS, key, strict=False)) | figures
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, lineterminator="\n").writerow({name: _cell(line.get(name)) for name in COLUMNS})
        self._write(text.getvalue().encode())

    def note_settings(self, methods: Iterable[tuple[str, Method]]) -> None:
        """Write the exact settings of the methods, by their hash, and the machine, into a JSON file beside the CSV."""
        path = self.path.with_suffix(".settings.json")
        known = json.loads(path.read_text("utf-8")) if path.exists() else {"methods": {}, "machines": []}
        for name, method in methods:
            known["methods"][config_hash(method.settings)] = {"method": name, "settings": method.settings}
        if (machine := _machine()) not in known["machines"]:
            known["machines"].append(machine)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        os.replace(part, path)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another run is writing {str(self.path)!r}. Wait for it, or give another --out; "
                "`graspad bench table` reads several files."
            ) from None

    def _mend(self) -> None:
        """Begin a new file with its header; drop a last line that was cut short."""
        self._file.seek(0)
        content = self._file.read()
        header = ",".join(COLUMNS).encode()
        first, newline, _ = content.partition(b"\n")
        if first != header if newline else not header.startswith(first):
            raise InputError(
                f"{str(self.path)!r} is no results file of this version: its first line differs. "
                "Move it away, or give another --out."
            )
        self._file.truncate(content.rfind(b"\n") + 1)
        if not newline:
            self._write(header + b"\n")

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())[:500]


def _machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = (line.partition(":")[2] for line in info.read_text().splitlines() if line.startswith("model name"))
        cpu = next(names, cpu).strip()
    libraries = {name: version(name) for name in ("graspad", "torch", "numpy", "scikit-learn")}
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), **libraries}
