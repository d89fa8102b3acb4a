"""Draw the figures of docs/math.md from graspad's own path: `python docs/make_figures.py`."""

from io import BytesIO
from pathlib import Path as FilePath

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from graspad.core.path import Path, PathPoint

HERE = FilePath(__file__).parent
DPI = 150
OMEGAS = (0, 1, 2, 4, 8)
COLOURS = ("0.35", *mpl.colormaps["plasma_r"]([0.22, 0.42, 0.66, 0.95]))
STYLE = {
    "backend": "agg",
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 11,
    "axes.labelsize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.92",
    "lines.linewidth": 1.7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.5,
}


def main() -> None:
    with mpl.rc_context(STYLE):
        save(draw_coefficients(), "path_coefficients.png")
        save(draw_weights(), "path_weights.png")


def draw_coefficients() -> Figure:
    """Figure 2 of the paper: α_k(t) and β_k(t)."""
    figure, (left, right) = panels()
    t, point = on_grid(0.0)
    draw(left, t, point.alpha, r"$\alpha_k(t)$, on the source")
    draw(right, t, point.beta, r"$\beta_k(t)$, on the data")
    left.set_ylim(0, 1.02)
    right.set_ylim(0, 1.02)
    return figure


def draw_weights() -> Figure:
    """Figure 3 of the paper: η_k(t); the linear scale shows the small ω_k, the log scale all of them."""
    figure, (left, right) = panels()
    t, point = on_grid(0.005)
    draw(left, t, point.eta, r"$\eta_k(t)$")
    draw(right, t, point.eta, r"$\eta_k(t)$, log scale")
    left.set_ylim(0, 4)
    left.set_yticks(range(5))
    right.set_yscale("log")
    right.set_ylim(1e-4, 1e5)
    return figure


def panels() -> tuple[Figure, tuple[Axes, Axes]]:
    return plt.subplots(1, 2, figsize=(7, 3), layout="constrained", gridspec_kw={"wspace": 0.06})


def on_grid(start: float) -> tuple[torch.Tensor, PathPoint]:
    t = torch.linspace(start, 1, 400, dtype=torch.float64)
    return t, Path(torch.tensor(OMEGAS, dtype=torch.float64)).at(t)


def draw(axes: Axes, t: torch.Tensor, curves: torch.Tensor, label: str) -> None:
    for omega, colour, curve in zip(OMEGAS, COLOURS, curves.T, strict=True):
        linear = omega == 0
        name = rf"$\omega_k = {omega}$" + (", the linear path" if linear else "")
        axes.plot(t, curve, color=colour, linestyle="--" if linear else "-", label=name)
    axes.set(xlabel="flow time $t$", ylabel=label, xlim=(0, 1))


def save(figure: Figure, name: str) -> None:
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(OMEGAS))
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    plt.close(figure)
    # A palette makes the file a third as large, and leaves out matplotlib's version, which would change the file.
    picture = Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    picture.save(HERE / name, optimize=True, dpi=(DPI, DPI))


if __name__ == "__main__":
    main()
