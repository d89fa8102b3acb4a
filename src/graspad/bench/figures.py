"""The figures of the benchmark: sensitivity, inference time, attribution over flow time and graph frequency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from graspad.bench import paper
from graspad.bench.aggregate import Estimate, over_seeds, seconds_per_row, series_of, sweep
from graspad.bench.blocks import Block, blocks
from graspad.bench.markup import significant
from graspad.bench.results import Row
from graspad.bench.roster import SWEEPS, Sweep, is_variant, name
from graspad.config import PAPER, RECIPE, Settings
from graspad.errors import GraspError, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Two eigenvalues closer than this belong to one eigenspace, as in core/spectrum.py.
_SAME_EIGENVALUE = 1e-9
_DPI = 200
# The least height of a sensitivity panel: drawn larger, differences within the noise would look like trends.
_LEAST_SPAN = 0.1
_STYLE: dict[Any, object] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 10,
    "axes.labelsize": 11,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.92",
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.columnspacing": 1.5,
}
# Okabe and Ito's colours; the markers tell the lines apart without them.
_LINES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#56B4E9", "v"), ("#E69F00", "P"))
_SYMBOLS = {
    "tau": r"Dirichlet-energy weight $\tau$",
    "times": r"flow times $|\mathcal{R}_{\mathrm{ad}}|$",
    "sources": r"source samples $|\mathcal{X}_{\mathrm{ad}}|$",
}


def write_all(rows: Sequence[Row], out: Path) -> list[Path]:
    """Draw every figure that these results have data for."""
    drawn = {f"sensitivity_{quantity}.png": sensitivity(rows, quantity) for quantity in SWEEPS}
    drawn["inference_time.png"] = inference_time(rows)
    return [save(figure, out / file) for file, figure in drawn.items() if figure is not None]


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG; the same figure gives the same file."""
    with _styled():
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path


def sensitivity(rows: Sequence[Row], quantity: Sweep) -> Figure | None:
    """A panel per metric, a line per set: mean and, as a band, the deviation over seeds; None without data."""
    found = sweep(rows, quantity)
    if not found:
        return None
    values = sorted({value for by_value in found.values() for value in by_value})
    places = dict(zip(values, _places(values), strict=True))
    with _styled():
        figure = _figure(7.0, 2.7)
        panels = figure.subplots(1, len(paper.METRICS))
        for axes, (metric, label) in zip(panels, paper.METRICS.items(), strict=True):
            for (data_set, by_value), (colour, marker) in zip(found.items(), _cycle(len(found)), strict=True):
                known = {value: estimate for value in by_value if (estimate := over_seeds(by_value[value], metric))}
                count = len(series_of(row for units in by_value.values() for row in units))
                legend = f"{data_set} ({count} series)"
                _draw_line(axes, [places[value] for value in known], list(known.values()), colour, marker, legend)
            for default, style, legend in _defaults(quantity):
                if default in places:
                    axes.axvline(places[default], color="0.45", linestyle=style, linewidth=1, zorder=0, label=legend)
            axes.set(title=label, xlabel=_SYMBOLS[quantity])
            axes.set_xticks(list(places.values()), [f"{value:g}" for value in values])
            axes.grid(visible=False, axis="x")
            _widen(axes)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=len(labels) if len(labels) < 6 else 3, fontsize=9
        )
    return figure


def inference_time(rows: Sequence[Row]) -> Figure | None:
    """Seconds to score the whole test set, a panel per set, the fastest method on top; None without data.

    A method that was run on a sample of the series is scaled up to all rows and drawn hatched.
    """
    timed = {block.name: (block, times) for block in blocks(rows) if (times := full_score_seconds(block))}
    if not timed:
        return None
    columns = min(len(timed), 2)
    lines = math.ceil(len(timed) / columns)
    most = max(len(times) for _, times in timed.values())
    with _styled():
        figure = _figure(3.7 * columns, (1 + 0.2 * most) * lines)
        panels = list(figure.subplots(lines, columns, squeeze=False).flat)
        for axes in panels[len(timed) :]:
            axes.remove()
        for axes, (block, times) in zip(panels, timed.values(), strict=False):
            _draw_times(axes, block, times)
        sampled = any(block.mark(method) for block, times in timed.values() for method in times)
        scaled = "\nhatched: scaled up from a sample of the series" if sampled else ""
        figure.supxlabel(f"seconds to score the test set{scaled}", fontsize=10)
    return figure


def full_score_seconds(block: Block) -> dict[str, float]:
    """Seconds that each method takes for all test rows of a set, rising: its seconds a row, times all rows."""
    test_rows = {row.series: row.numbers.get("rows", 0.0) for units in block.units.values() for row in units}
    per_row = {m: seconds_per_row(units, "score") for m, units in block.units.items() if not is_variant(m)}
    total = sum(test_rows.values())
    return dict(sorted(((m, s * total) for m, s in per_row.items() if s is not None), key=lambda item: item[1]))


def attribution_heatmaps(
    unweighted: Float[ndarray, "time quantile"],
    weighted: Float[ndarray, "time quantile"],
    flow_times: Sequence[float],
    title: str = "",
) -> Figure:
    """Shares of the anomaly signal by flow time and graph frequency, each map in percent of its own sum."""
    maps = {"unweighted": _percent(unweighted), r"weighted by $\eta_k(t)$": _percent(weighted)}
    top = max(shares.max() for shares in maps.values())
    with _styled():
        figure = _figure(7.0, 0.95 + 0.24 * len(flow_times))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (label, shares) in zip(panels, maps.items(), strict=True):
            image = axes.imshow(shares, origin="lower", aspect="auto", cmap="Blues", vmin=0.0, vmax=top)
            for (time, quantile), share in np.ndenumerate(shares):
                colour = "white" if share > 0.55 * top else "0.15"
                axes.text(quantile, time, f"{share:.1f}", ha="center", va="center", fontsize=8, color=colour)
            axes.set(title=f"{title}, {label}" if title else label, xlabel="graph-frequency quantile, low to high")
            axes.set_xticks(range(shares.shape[1]), [str(quantile + 1) for quantile in range(shares.shape[1])])
            axes.grid(visible=False)
            axes.set_xticks(np.arange(0.5, shares.shape[1] - 1), minor=True)
            axes.set_yticks(np.arange(0.5, shares.shape[0] - 1), minor=True)
            axes.grid(which="minor", color="white", linewidth=1)
            axes.set_axisbelow(False)
            axes.tick_params(which="both", length=0)
            axes.spines[:].set_visible(False)
        panels[0].set_yticks(range(len(flow_times)), [f"{t:.2g}" for t in flow_times])
        panels[0].set_ylabel("flow time $t$")
        figure.colorbar(image, ax=panels, label="share of the signal, %", pad=0.02).outline.set_visible(False)
    return figure


def band_shares_to_quantiles(
    eigenvalues: Float[ndarray, " mode"], by_mode: Float[ndarray, "time mode"], quantiles: int = 8
) -> Float[ndarray, "time quantile"]:
    """Sum the shares of the modes within equal parts of the spectrum, lowest frequency first.

    Every quantile holds N / `quantiles` modes; a mode across a border is divided in proportion. The shares of an
    eigenspace are defined only as a whole, so each of its modes first gets their mean.

    >>> band_shares_to_quantiles(np.array([0.0, 1.0, 1.0, 2.0]), np.array([[1.0, 0.0, 4.0, 5.0]]), quantiles=2)
    array([[3., 7.]])
    """
    order = np.argsort(eigenvalues, kind="stable")
    eigenspace = np.concatenate([[0], np.cumsum(np.diff(eigenvalues[order]) > _SAME_EIGENVALUE)])
    member = (eigenspace[:, None] == np.arange(eigenspace[-1] + 1)).astype(np.float64)
    evened = by_mode[:, order] @ (member / member.sum(axis=0)) @ member.T
    mode, borders = np.arange(len(order))[:, None], np.linspace(0, len(order), quantiles + 1)
    inside = np.minimum(mode + 1, borders[1:]) - np.maximum(mode, borders[:-1])
    return evened @ inside.clip(min=0)


@contextmanager
def _styled() -> Iterator[None]:
    try:
        import matplotlib as mpl
    except ImportError:
        raise GraspError("The figures need matplotlib. Type: pip install 'graspad[bench]'") from None
    with mpl.rc_context(_STYLE):
        yield


def _figure(width: float, height: float) -> Figure:
    """A figure that belongs to no window system and needs no closing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _places(values: Sequence[float]) -> list[float]:
    """Where values stand on a logarithmic axis; zero stands one doubling before the first.

    >>> _places([0.0, 0.25, 0.5, 4.0])
    [-3.0, -2.0, -1.0, 2.0]
    """
    positive = [value for value in values if value > 0]
    zero = math.log2(min(positive, default=2.0)) - 1
    return [math.log2(value) if value > 0 else zero for value in values]


def _cycle(count: int) -> list[tuple[str, str]]:
    return [_LINES[index % len(_LINES)] for index in range(count)]


def _defaults(quantity: Sweep) -> list[tuple[float, str, str]]:
    """The recipe's value and, where it is another, the paper's, each with its line style and label."""

    def of(settings: Settings) -> float:
        scoring = settings.scoring
        return float({"tau": settings.tau, "times": scoring.flow_times, "sources": scoring.sources}[quantity])

    ours, theirs = of(RECIPE), of(PAPER)
    if ours == theirs:
        return [(ours, "--", "our and the paper’s default")]
    return [(ours, "--", "our default"), (theirs, ":", "paper’s default")]


def _draw_line(
    axes: Axes, x: Sequence[float], estimates: Sequence[Estimate], colour: str, marker: str, label: str
) -> None:
    mean = np.array([estimate.mean for estimate in estimates])
    spread = np.array([estimate.spread or 0.0 for estimate in estimates])
    axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x, mean, color=colour, marker=marker, label=label)


def _widen(axes: Axes) -> None:
    low, high = axes.get_ylim()
    more = max(0.0, _LEAST_SPAN - (high - low)) / 2
    axes.set_ylim(low - more, high + more)


def _draw_times(axes: Axes, block: Block, times: dict[str, float]) -> None:
    sampled = [bool(block.mark(method)) for method in times]
    colours = ["#0072B2" if method.startswith("grasp") else "0.72" for method in times]
    bars = axes.barh([name(method) for method in times], list(times.values()), color=colours, height=0.7)
    for bar, is_sample in zip(bars, sampled, strict=True):
        bar.set(hatch="/////" if is_sample else "", edgecolor="white", linewidth=0)
    labels = [f"{'≈ ' * part}{significant(time, 2)} s" for time, part in zip(times.values(), sampled, strict=True)]
    above = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axes.bar_label(bars, labels, padding=3, fontsize=8.5, bbox=above)
    a100 = paper.SETS[block.name].score_seconds if block.papers_data else None
    shown = [time for time in (*times.values(), a100 or 0.0) if time > 0] or [1.0]
    if a100:
        axes.axvline(a100, color="#D55E00", linestyle="--", linewidth=1.2, zorder=1.5)
        axes.annotate(
            f"paper (A100, {paper.SETS[block.name].series} series): {a100:g} s",
            xy=(a100, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color="#D55E00",
        )
    axes.set_xscale("log")
    axes.set_xlim(min(shown) / 3, max(shown) * 20)
    axes.invert_yaxis()
    axes.set_title(f"{block.name} ({block.full} series)", pad=16)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _percent(shares: Float[ndarray, "time quantile"]) -> Float[ndarray, "time quantile"]:
    total = shares.sum()
    if not (np.isfinite(total) and total > 0 and (shares >= 0).all()):
        raise InputError("Shares must be finite and not negative, and one of them above zero.")
    return 100 * shares / total
