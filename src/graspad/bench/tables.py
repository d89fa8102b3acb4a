"""Our numbers beside the paper's: every table of the benchmark, and all of them with the figures in one go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from graspad.bench import figures, mtsbench, paper
from graspad.bench.aggregate import (
    Estimate,
    Verb,
    defined,
    in_seed_deviations,
    over_seeds,
    paired,
    seconds_per_row,
    seeds_per_series,
    series_of,
    sweep,
    total,
)
from graspad.bench.blocks import NOTHING, Block, blocks, notes, paper_notes
from graspad.bench.markup import Table, significant
from graspad.bench.paper import METRICS
from graspad.bench.results import Row, read
from graspad.bench.roster import (
    ABLATIONS,
    HYBRIDS,
    NETWORKS,
    SWEEPS,
    SYSTEMS,
    TRIVIAL,
    is_variant,
    name,
    ordered,
    swept,
)

EXTRA = {
    "vus_pr": "VUS-PR",
    "vus_roc": "VUS-ROC",
    "affiliation_f1": "affiliation F1",
    "event_f1": "event F1",
    "best_f1": "Best-F1",
    "alarm_f1": "alarm F1",
    "false_alarm_rate": "false alarm rate",
    "events_found": "events found",
    "delay": "delay",
}
_SPREAD = "± is the sample deviation over seeds of the mean over the series they share, a dash where there is one seed"
_SAMPLE = "† a sample of the series: not comparable with the rows over all of them"


def main_table(rows: Sequence[Row]) -> Table:
    """All systems of the paper, our recipe, other methods and the trivial ones."""
    return _beside_paper(rows, "Main results beside the paper's", "main", SYSTEMS, _main_methods(rows))


def causal_table(rows: Sequence[Row]) -> Table:
    """The main table for scores that look at no later row."""
    said = ["The paper does not say how it aligns windows with rows; its values are those of the main table"]
    title, methods = "Causal scores beside the paper's", _main_methods(rows)
    return _beside_paper(rows, title, "main", SYSTEMS, methods, "causal_", said)


def architecture_table(rows: Sequence[Row]) -> Table:
    """The velocity networks."""
    said = [f"Our networks have the recipe's short training, the paper's 1500 epochs; {name('grasp')} has no network"]
    methods = [*NETWORKS, *HYBRIDS, "grasp", *TRIVIAL]
    return _beside_paper(rows, "Velocity networks beside the paper's", "architecture", NETWORKS, methods, said=said)


def ablation_table(rows: Sequence[Row], of: str = "grasp") -> Table:
    """What weights, graph and path are worth: differences to GRASP against the noise of seeds and of series.

    `of` names what was ablated, our recipe or a network.
    """
    ablations = ABLATIONS[of]
    beside = ablations | {method: name(method) for method in TRIVIAL}
    made, found = [], blocks(rows)
    for block in found:
        grasp, variants = block.units.get(of, []), beside if block.tried(ablations) else {of: "GRASP"}
        for metric, label in METRICS.items():
            whole = block.paper("ablation", "GRASP", metric)
            for method, system in variants.items():
                units, theirs = block.units.get(method, []), block.paper("ablation", system, metric)
                deviations = in_seed_deviations(units, grasp, metric)
                differences = (
                    _spread(paired(units, grasp, metric), sign="+"),
                    NOTHING if deviations is None else f"{deviations:+z.1f}",
                    _difference(theirs, whole),
                )
                numbers = (_spread(over_seeds(units, metric)), _papers(theirs))
                shown = differences if method != of else [NOTHING] * len(differences)
                made.append((block.name, label, system, *block.extent(method), *numbers, *shown))
    header = ("set", "metric", "variant", "series", "seeds", "ours", "paper", "Δ paired", "Δ / seed dev.", "paper's Δ")
    said = [
        "Δ is the difference to GRASP. Paired: mean over the series that both have, ± its standard error over series",
        "Seed deviation: root mean square of the two methods' own, a dash where no seed changes them or there is one",
        _SPREAD,
        *notes(found, beside, METRICS),
        *paper_notes(found),
    ]
    if of == "grasp":
        return _table("Ablations of our recipe", header, made, said, words=3)
    said.append(
        f"The paper's values are of {NETWORKS['grasp-tsmixer']}; a GNN also takes its neighbours from the graph"
    )
    return _table(f"Ablations of a network, {name(of)}", header, made, said, words=3)


def sample_table(rows: Sequence[Row], of: str = "grasp-paper") -> Table:
    """All methods on exactly the series that one of them has, so that its row can be compared."""
    sample = _sample(rows, of)
    # A sweep has its own table, on its own series; here it helps only where it has all of these.
    partial = {m for m in {row.method for row in rows} if swept(m) and not _covers(_sample(rows, m), sample)}
    kept = [row for row in rows if row.series in sample.get(row.set, ()) and row.method not in partial]
    said = [] if sample else [f"{name(of)} was not measured"]
    return _plain(kept, f"All methods on the series of {name(of)}", METRICS, said)


def extra_metrics_table(rows: Sequence[Row]) -> Table:
    """Metrics that the paper does not report, and what alarms at a threshold set without labels achieve."""
    said = [
        "Best-F1 takes the threshold that suits the labels best; alarm F1, false alarm rate (share of normal rows), "
        "events found (share) and delay (rows) belong to the threshold that a method sets itself, without labels"
    ]
    return _plain([row for row in rows if not is_variant(row.method)], "Further metrics", EXTRA, said)


def mtsbench_table(rows: Sequence[Row]) -> Table:
    """VUS-PR of the baselines beside mTSBench's own, on the series that it covers."""
    made = []
    for block in blocks(rows):
        if not block.papers_data:
            continue
        published = mtsbench.SETS[block.name]
        for method, mean in published.vus_pr.items():
            units = [row for row in block.units.get(method, []) if row.series not in published.without]
            ours, theirs = over_seeds(units, "vus_pr"), paper.Value(mean)
            if ours is not None:
                extent = (f"{len(series_of(units))} of {published.series}", str(max(seeds_per_series(units))))
                numbers = (_spread(ours), _papers(theirs), _difference(ours, theirs))
                made.append((block.name, name(method), *extent, *numbers))
    header = ("set", "method", "series", "seeds", "VUS-PR", "mTSBench", "Δ")
    said = ["mTSBench takes the defaults of its wrappers, which are not always the paper's settings (ours)", _SPREAD]
    return _table("VUS-PR beside mTSBench's", header, made, said)


def sensitivity_table(rows: Sequence[Row]) -> Table:
    """The numbers behind the sensitivity figures."""
    made = []
    for quantity, symbol in SWEEPS.items():
        for data_set, values in sweep(rows, quantity).items():
            for value, units in values.items():
                extent = (f"{value:g}", str(len(series_of(units))), str(max(seeds_per_series(units))))
                numbers = [_spread(over_seeds(units, metric)) for metric in METRICS]
                made.append((symbol, data_set, *extent, *numbers, _per_1000_rows(units, "score")))
    header = ("varied", "set", "value", "series", "seeds", *METRICS.values(), "score s / 1000 rows")
    said = ["Each sweep is on the series that all of its values have", _SPREAD]
    methods = ordered(row.method for row in rows if swept(row.method))
    return _table("Sensitivity", header, made, [*said, *notes(blocks(rows), methods, METRICS)])


def time_table(rows: Sequence[Row]) -> Table:
    """Seconds to fit and to score all series of a set, and a thousand training or test rows."""
    verbs: tuple[Verb, Verb] = ("fit", "score")
    made, found = [], blocks([row for row in rows if not swept(row.method)])
    for block in found:
        for method in _measured_and_trivial(block):
            units = block.units.get(method, [])
            is_grasp = method in ("grasp", "grasp-paper") and block.papers_data
            numbers = (
                *(_seconds(total(units, f"{verb}_seconds")) for verb in verbs),
                *(_per_1000_rows(units, verb) for verb in verbs),
                _seconds(paper.SETS[block.name].score_seconds if is_grasp else None),
            )
            made.append((block.name, name(method), *block.extent(method), *numbers))
    per_row = [f"{verb} s / 1000 rows" for verb in verbs]
    header = ("set", "method", "series", "seeds", "fit s", "score s", *per_row, "paper, score s")
    said = [
        "Sum over the series, mean over seeds, one processor core a series; the paper's is one A100 GPU",
        *notes(found, ordered(row.method for row in rows if not swept(row.method)), {}),
        *paper_notes(found),
    ]
    return _table("Time", header, made, said)


def render(results: Sequence[Path]) -> str:
    """All tables as Markdown."""
    return "\n\n".join(table.markdown() for table in _tables(read(results)))


def write_all(results: Sequence[Path], out: Path) -> list[Path]:
    """Write tables.md, tables.tex and the figures into a folder; gives back what was written."""
    rows = read(results)
    made = _tables(rows)
    out.mkdir(parents=True, exist_ok=True)
    markdown, latex = out / "tables.md", out / "tables.tex"
    markdown.write_text("\n\n".join(table.markdown() for table in made) + "\n", encoding="utf-8")
    parts = ["% needs the packages booktabs and adjustbox", *(table.latex() for table in made)]
    latex.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return [markdown, latex, *figures.write_all(rows, out)]


def _tables(rows: Sequence[Row]) -> list[Table]:
    """The tables that have something to say about these results; the main table always has."""
    methods = {row.method for row in rows}
    made = [main_table(rows)]
    if any(defined(rows, f"causal_{metric}") for metric in METRICS):
        made.append(causal_table(rows))
    made += [ablation_table(rows, of) for of, variants in ABLATIONS.items() if methods & (variants.keys() - {of})]
    if methods & NETWORKS.keys():
        made.append(architecture_table(rows))
    seen: list[dict[str, set[str]]] = [{}]
    for method in ("grasp-paper", *NETWORKS, *HYBRIDS):
        sample = _sample(rows, method)
        whole = {data_set: series_of(row for row in rows if row.set == data_set) for data_set in sample}
        if sample not in (whole, *seen):
            made.append(sample_table(rows, method))
            seen.append(sample)
    if any(sweep(rows, quantity) for quantity in SWEEPS):
        made.append(sensitivity_table(rows))
    made.append(extra_metrics_table(rows))
    if (beside := mtsbench_table(rows)).rows:
        made.append(beside)
    return [*made, time_table(rows)]


def _beside_paper(
    rows: Sequence[Row],
    title: str,
    source: paper.Source,
    systems: Mapping[str, str],
    methods: Collection[str],
    prefix: str = "",
    said: Sequence[str] = (),
) -> Table:
    """Ours, the paper's and the difference for each metric; a set that was not measured keeps one row."""
    made, found = [], blocks(rows)
    reference = "grasp-tsmixer" if source == "architecture" else "grasp-paper"
    for block in found:
        for method in methods if block.tried(methods) else [reference]:
            cells = [block.name, name(method), *block.extent(method)]
            for metric in METRICS:
                ours = over_seeds(block.units.get(method, []), prefix + metric)
                theirs = block.paper(source, systems.get(method), metric)
                difference = _difference(ours, theirs)
                mark = "" if difference == NOTHING else block.mark(method) or block.paper_mark
                cells += [_spread(ours), _papers(theirs), difference + mark]
            made.append(tuple(cells))
    header = ["set", "method", "series", "seeds"]
    for label in METRICS.values():
        header += [label, f"{label} paper", f"{label} Δ"]
    labels = {prefix + metric: label for metric, label in METRICS.items()}
    said = [*said, f"{_SPREAD}; the paper's is over {paper.SEEDS}", *notes(found, methods, labels), *paper_notes(found)]
    return _table(title, header, made, said)


def _plain(rows: Sequence[Row], title: str, metrics: Mapping[str, str], said: Sequence[str]) -> Table:
    """Our numbers alone, of the methods that were measured and the trivial ones."""
    made, found = [], blocks(rows)
    for block in found:
        for method in _measured_and_trivial(block):
            units = block.units.get(method, [])
            numbers = [_spread(over_seeds(units, metric), 1 if metric == "delay" else 4) for metric in metrics]
            made.append((block.name, name(method), *block.extent(method), *numbers))
    said = [*said, _SPREAD, *notes(found, ordered(row.method for row in rows), metrics)]
    return _table(title, ("set", "method", "series", "seeds", *metrics.values()), made, said)


def _table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], said: Sequence[str], words: int = 2
) -> Table:
    sampled = [_SAMPLE] if any("†" in cell for row in rows for cell in row) else []
    return Table(title, tuple(header), tuple(map(tuple, rows)), tuple(f"{note}." for note in [*sampled, *said]), words)


def _main_methods(rows: Iterable[Row]) -> list[str]:
    return ordered([*SYSTEMS, *TRIVIAL, *(row.method for row in rows if not is_variant(row.method))])


def _measured_and_trivial(block: Block) -> list[str]:
    tried = ordered([*block.units, *block.failed])
    return ordered([*tried, *TRIVIAL]) if tried else []


def _sample(rows: Iterable[Row], method: str) -> dict[str, set[str]]:
    """The series that a method has, by set."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if row.method == method and not row.error:
            found.setdefault(row.set, set()).add(row.series)
    return found


def _covers(sample: dict[str, set[str]], other: dict[str, set[str]]) -> bool:
    return all(other[data_set] <= sample.get(data_set, set()) for data_set in other)


def _spread(estimate: Estimate | None, digits: int = 4, sign: str = "") -> str:
    if estimate is None:
        return NOTHING
    spread = NOTHING if estimate.spread is None else f"{estimate.spread:.{digits}f}"
    return f"{estimate.mean:{sign}z.{digits}f} ± {spread}"


def _papers(value: paper.Value | None) -> str:
    """The paper's tables of variants give no deviation.

    >>> _papers(paper.Value(0.3149, 0.0087)), _papers(paper.Value(0.291)), _papers(None)
    ('0.3149 ± 0.0087', '0.2910', '–')
    """
    if value is None:
        return NOTHING
    return f"{value.mean:.4f}" if value.std is None else f"{value.mean:.4f} ± {value.std:.4f}"


def _difference(ours: Estimate | paper.Value | None, theirs: paper.Value | None) -> str:
    return NOTHING if ours is None or theirs is None else f"{ours.mean - theirs.mean:+z.4f}"


def _seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else significant(seconds, 3)


def _per_1000_rows(units: Sequence[Row], verb: Verb) -> str:
    per_row = seconds_per_row(units, verb)
    return _seconds(None if per_row is None else 1000 * per_row)
