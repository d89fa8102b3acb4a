"""Figures: what is drawn is what the tables say; the division of the spectrum obeys its laws."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bench_units import unit
from graspad.bench import figures, tables
from graspad.bench.blocks import blocks
from graspad.bench.results import Row
from graspad.errors import GraspError, InputError


@pytest.fixture(scope="module")
def swept():
    rng = np.random.default_rng(0)
    return [
        unit(d, s, f"grasp-{q}-{v}", k, prc=p, roc=p / 2, best_f1=p / 4, score_seconds=1.0)
        for d in ("SMAP", "SMD")
        for q, values in {"tau": (0, 0.25, 2, 8), "times": (1, 3, 10), "sources": (1, 5)}.items()
        for v in values
        for s in "ab"
        for k in range(3)
        for p in [float(rng.uniform())]
    ]


@pytest.mark.parametrize(("quantity", "symbol"), [("tau", "τ"), ("times", "|R_ad|"), ("sources", "|X_ad|")])
def test_sensitivity_draws_the_numbers_of_the_table(swept, quantity, symbol):
    table = tables.sensitivity_table(swept)
    figure = figures.sensitivity(swept, quantity)
    for axes, metric in zip(figure.axes, ("PRC", "ROC", "Best-F1"), strict=True):
        assert axes.get_title() == metric
        ticks = dict(zip((t.get_text() for t in axes.get_xticklabels()), axes.get_xticks(), strict=True))
        lines = {line.get_label().split(" ")[0]: line for line in axes.lines}
        for data_set, band in zip(("SMAP", "SMD"), axes.collections, strict=True):
            rows = [dict(zip(table.header, row, strict=True)) for row in table.rows if row[:2] == (symbol, data_set)]
            x, y = lines[data_set].get_data()
            assert list(x) == [ticks[row["value"]] for row in rows]
            assert list(x) == sorted(x)
            edges = band.get_paths()[0].vertices
            for place, mean, row in zip(x, y, rows, strict=True):
                told, spread = (float(number) for number in row[metric].split(" ± "))
                assert mean == pytest.approx(told, abs=5.1e-5)
                heights = edges[edges[:, 0] == place, 1]
                assert heights.min() == pytest.approx(told - spread, abs=1.1e-4)
                assert heights.max() == pytest.approx(told + spread, abs=1.1e-4)
        default = {"tau": "2", "times": "3", "sources": "5"}[quantity]
        assert set(lines["our"].get_xdata()) == {ticks[default]}
    assert ("paper’s" in lines) == (quantity == "times")


def test_noise_is_not_drawn_as_a_trend():
    flat = [unit("SMAP", "a", f"grasp-tau-{v}", 0, prc=0.5 + v / 1e4, roc=0.9, best_f1=0.1 * v) for v in (0, 2, 8)]
    spans = [high - low for low, high in (axes.get_ylim() for axes in figures.sensitivity(flat, "tau").axes)]
    assert spans[:2] == pytest.approx([0.1, 0.1])
    assert spans[2] > 0.8


def test_without_results_there_is_nothing_to_draw(tmp_path):
    rows = [unit("SMAP", "a", "hbos", 0, prc=0.5)]
    assert figures.sensitivity(rows, "tau") is None
    assert figures.inference_time(rows) is None
    assert figures.write_all(rows, tmp_path) == []


@pytest.fixture(scope="module")
def timed():
    seconds = {"hbos": 0.01, "grasp": 3.0, "random": 0.002, "grasp-lin": 2.0}
    rows = [unit(d, s, m, k, score_seconds=t * (1 + k)) for d in ("SMAP", "OWN") for m, t in seconds.items()
            for s in "abcd" for k in (0, 1)]  # fmt: skip
    return [*rows, *(unit(d, "c", "grasp-paper", 0, score_seconds=50.0) for d in ("SMAP", "OWN"))]


def test_bars_are_the_seconds_of_the_table_fastest_first(timed):
    figure = figures.inference_time(timed)
    table = tables.time_table(timed)
    told = {row[:2]: row[table.header.index("score s")] for row in table.rows}
    assert [axes.get_title() for axes in figure.axes] == ["SMAP (4 series)", "OWN (4 series)"]
    for axes, data_set in zip(figure.axes, ("SMAP", "OWN"), strict=True):
        names = [tick.get_text() for tick in axes.get_yticklabels()]
        assert names == ["random", "HBOS", "GRASP (recipe)", "GRASP (paper preset)"]
        widths = [bar.get_width() for bar in axes.patches]
        for name, width in zip(names[:3], widths, strict=False):
            assert width == pytest.approx(float(told[data_set, name]), rel=5e-3)
        # One series of four, all equally long.
        assert widths[3] == pytest.approx(4 * 50.0)
        assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, False, False, True]
        assert axes.get_xscale() == "log"
        assert axes.yaxis_inverted()
    smap, own = figure.axes
    assert set(smap.lines[0].get_xdata()) == {38.4}
    assert not own.lines


def test_times_scale_with_rows_not_with_series():
    rows = [Row("OWN", "short", "hbos", 0, {"rows": 100.0, "score_seconds": 1.0})]
    rows += [
        Row("OWN", s, "grasp", 0, {"rows": r, "score_seconds": 1.0}) for s, r in (("short", 100.0), ("long", 900.0))
    ]
    (own,) = [block for block in blocks(rows) if block.name == "OWN"]
    assert figures.full_score_seconds(own) == pytest.approx({"grasp": 2.0, "hbos": 10.0})
    assert list(figures.full_score_seconds(own)) == ["grasp", "hbos"]


def test_files_are_pictures_and_always_the_same(swept, timed, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
        files = figures.write_all([*swept, *timed], folder)
    names = ["sensitivity_tau.png", "sensitivity_times.png", "sensitivity_sources.png", "inference_time.png"]
    assert [file.name for file in files] == names
    for name in names:
        with Image.open(first / name) as picture:
            picture.load()
            assert picture.format == "PNG"
            assert min(picture.size) > 300
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 10
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_figures_leave_the_style_of_the_caller_alone(swept):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    figures.sensitivity(swept, "tau")
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_the_error_says_what_to_type(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GraspError, match=r"pip install 'graspad\[bench\]'"):
        figures.sensitivity(swept, "tau")


# Attribution


def test_heat_maps_show_percent_of_their_own_sum(tmp_path):
    rng = np.random.default_rng(0)
    maps = rng.uniform(size=(3, 8)), rng.uniform(size=(3, 8)) ** 4
    figure = figures.attribution_heatmaps(*maps, flow_times=(0.25, 0.5, 0.75), title="SMAP")
    for axes, shares in zip(figure.axes, maps, strict=False):
        drawn = axes.images[0].get_array()
        assert drawn.sum() == pytest.approx(100)
        np.testing.assert_allclose(drawn, 100 * shares / shares.sum())
        assert [text.get_text() for text in axes.texts] == [f"{share:.1f}" for share in drawn.ravel()]
        assert [text.get_position() for text in axes.texts] == [(q, t) for t in range(3) for q in range(8)]
        assert [tick.get_text() for tick in axes.get_xticklabels()] == list("12345678")
    left, right = figure.axes[:2]
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["0.25", "0.5", "0.75"]
    assert left.images[0].get_clim() == right.images[0].get_clim()
    with Image.open(figures.save(figure, tmp_path / "map.png")) as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize("shares", [np.zeros((2, 8)), np.full((2, 8), np.nan), np.eye(8) - 0.01])
def test_shares_that_cannot_be_percent_are_refused(shares):
    with pytest.raises(InputError, match="Shares must be finite"):
        figures.attribution_heatmaps(np.ones(shares.shape), shares, flow_times=(0.5,) * len(shares))


@st.composite
def spectra(draw):
    """Eigenvalues in any order, many of them repeated, and shares by flow time and mode."""
    eigenvalues = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.2, 2.0]), min_size=1, max_size=20)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return eigenvalues, rng.uniform(size=(3, len(eigenvalues)))


@given(spectra(), st.integers(1, 10))
def test_quantiles_are_equal_parts_of_the_spectrum(spectrum, quantiles):
    """Oracle: cut every mode into `quantiles` equal slices; a quantile then holds as many slices as there are modes."""
    eigenvalues, shares = spectrum
    expected = np.zeros((3, quantiles))
    slices = []
    for eigenvalue in sorted(set(eigenvalues)):
        members = shares[:, eigenvalues == eigenvalue]
        slices += [members.mean(axis=1) / quantiles] * (members.shape[1] * quantiles)
    for place, part in enumerate(slices):
        expected[:, place // len(eigenvalues)] += part
    found = figures.band_shares_to_quantiles(eigenvalues, shares, quantiles)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), shares.sum(axis=1))


@given(spectra(), st.randoms(use_true_random=False))
def test_quantiles_do_not_depend_on_the_order_of_modes_or_the_eigenbasis(spectrum, random):
    eigenvalues, shares = spectrum
    found = figures.band_shares_to_quantiles(eigenvalues, shares)
    order = np.array(random.sample(range(len(eigenvalues)), len(eigenvalues)))
    np.testing.assert_allclose(figures.band_shares_to_quantiles(eigenvalues[order], shares[:, order]), found)
    # Another basis of an eigenspace moves energy between its modes; eigh returns its eigenvalues with rounding.
    moved = shares.copy()
    for eigenvalue in set(eigenvalues):
        members = np.flatnonzero(eigenvalues == eigenvalue)
        moved[:, members] = 0.0
        moved[:, members[0]] = shares[:, members].sum(axis=1)
    rounded = eigenvalues + 1e-14 * np.arange(len(eigenvalues))
    np.testing.assert_allclose(figures.band_shares_to_quantiles(rounded, moved), found, atol=1e-12)


def test_eight_simple_modes_are_eight_quantiles():
    shares = np.arange(16.0).reshape(2, 8)
    np.testing.assert_allclose(figures.band_shares_to_quantiles(np.linspace(0, 2, 8), shares), shares)
