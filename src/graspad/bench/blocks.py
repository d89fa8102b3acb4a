"""What is known of each data set, and what must be said of it below a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from graspad.bench import paper
from graspad.bench.aggregate import by_method, defined, seeds_per_series, series_of
from graspad.bench.results import Row
from graspad.bench.roster import name

NOTHING = "–"


@dataclass(frozen=True)
class Block:
    """One set: the units of each method that did not fail, and how many failed."""

    name: str
    units: Mapping[str, list[Row]]
    failed: Counter[str]

    @cached_property
    def full(self) -> int:
        """The number of series that were measured at all; the fullest row has them, unless units failed."""
        return len(series_of(row for units in self.units.values() for row in units))

    @cached_property
    def papers_data(self) -> bool:
        """Whether the paper's numbers may stand beside it; beside a gap they may."""
        return paper.same_data(self.name, (row.numbers.get("sensors") for rows in self.units.values() for row in rows))

    def tried(self, methods: Collection[str]) -> list[str]:
        """The methods that were run here, with success or without."""
        return [method for method in methods if method in self.units or method in self.failed]

    def extent(self, method: str) -> tuple[str, str]:
        """The number of series and of seeds behind a row."""
        if method not in self.units:
            return "failed" if method in self.failed else "not measured", NOTHING
        counts = seeds_per_series(self.units[method])
        seeds = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
        return f"{len(counts)} of {self.full}{self.mark(method)}", seeds

    def mark(self, method: str) -> str:
        """A dagger if a method lacks some series."""
        return " †" if len(series_of(self.units[method])) < self.full else ""

    @property
    def paper_mark(self) -> str:
        """A double dagger if the paper has more series of this set, or fewer."""
        return " ‡" if self.name in paper.SETS and self.full != paper.SETS[self.name].series else ""

    def paper(self, source: paper.Source, system: str | None, metric: str) -> paper.Value | None:
        """The paper's value, if it may stand here."""
        return paper.value(source, system, self.name, metric) if system and self.papers_data else None


def blocks(rows: Sequence[Row]) -> list[Block]:
    """The paper's sets, measured or not, then the others."""
    names = dict.fromkeys([*paper.SETS, *(row.set for row in rows)])
    return [
        Block(name, by_method(rows, name), Counter(row.method for row in rows if row.set == name and row.error))
        for name in names
    ]


def notes(found: Sequence[Block], methods: Collection[str], metrics: Mapping[str, str]) -> list[str]:
    """What a reader must know of these methods and metrics: failed units, gaps in a mean, mixed settings."""
    said = []
    failed = sum((block.failed for block in found), Counter[str]())
    if told := ", ".join(f"{name(method)} {failed[method]}" for method in methods if failed[method]):
        said.append(f"Units that failed and are left out: {told}")
    for block in found:
        gaps: dict[str, list[str]] = {}
        for method in methods:
            for gap in _gaps(block.units.get(method, []), metrics):
                gaps.setdefault(gap, []).append(name(method))
        said += [f"{block.name}: {gap}, left out of the mean of {', '.join(names)}" for gap, names in gaps.items()]
        mixed = [name(m) for m in methods if len({row.config for row in block.units.get(m, [])}) > 1]
        if mixed:
            said.append(f"{block.name}: results of different settings are mixed in {', '.join(mixed)}; run them again")
    return said


def paper_notes(found: Sequence[Block]) -> list[str]:
    """Where the data behind our numbers is not, or not all of, the paper's."""
    said = []
    for block in found:
        theirs = paper.SETS.get(block.name)
        if theirs is None or not block.units:
            continue
        if not block.papers_data:
            said.append(f"{block.name} here is other data than the paper's, whose values are left out")
        elif block.paper_mark:
            said.append(f"‡ {block.name}: {block.full} series here, {theirs.series} in the paper, not like for like")
    return said


def _gaps(units: Sequence[Row], metrics: Mapping[str, str]) -> list[str]:
    """How many series lack a metric; a metric that is undefined throughout shows in the table itself."""
    lacking: dict[int, list[str]] = {}
    for metric, label in metrics.items():
        if defined(units, metric):
            series = series_of(row for row in units if metric not in row.numbers)
            lacking.setdefault(len(series), []).append(label)
    return [f"{', '.join(labels)} undefined in {count} series" for count, labels in lacking.items() if count]
