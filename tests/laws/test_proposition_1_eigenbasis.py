"""Proposition 1: nothing depends on the choice of eigenvectors inside a repeated eigenspace."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from graspad.config import Velocity
from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum, bands
from graspad.core.windows import Windows
from graspad.velocity.estimate import Estimator
from graspad.velocity.field import build

WINDOW = 6
SQUARE = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])


def repeated_components(copies: int) -> np.ndarray:
    """Several equal squares and two isolated sensors: every eigenvalue is repeated."""
    adjacency = np.zeros((4 * copies + 2, 4 * copies + 2), dtype=bool)
    adjacency[:-2, :-2] = np.kron(np.eye(copies), SQUARE).astype(bool)
    return adjacency


def rotated(spectrum: Spectrum, seed: int) -> Spectrum:
    """The same Laplacian with another eigenbasis Ψ̃ = ΨQ."""
    basis = spectrum.basis.clone()
    lam = spectrum.eigenvalues.numpy().round(9)
    for value in np.unique(lam):
        members = np.flatnonzero(lam == value)
        if len(members) > 1:
            turn = ortho_group.rvs(len(members), random_state=seed)
            basis[:, members] = basis[:, members] @ torch.from_numpy(turn)
    return Spectrum(spectrum.eigenvalues, basis)


@given(seed=st.integers(0, 10**6), copies=st.integers(2, 4), tau=st.floats(0.1, 8))
def test_path_and_target_do_not_change(seed, copies, tau):
    one = Spectrum.of(repeated_components(copies))
    other = rotated(one, seed)
    assert (one.basis - other.basis).abs().max() > 0.01
    point = Path.of(one, tau).at(torch.tensor([0.1, 0.6], dtype=torch.float64))
    for gains in (point.alpha, point.beta, point.d_alpha, point.d_beta, point.eta):
        torch.testing.assert_close(one.filter(gains), other.filter(gains), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["tsmixer", "gnn", "transformer"])
@pytest.mark.parametrize("seed", range(3))
def test_score_and_shares_do_not_change(kind, seed):
    adjacency = repeated_components(3)
    one = Spectrum.of(adjacency)
    other = rotated(one, seed)
    path = Path.of(one, 2.0)
    field = build(Velocity(kind=kind, hidden=16), len(adjacency), WINDOW, adjacency, seed).eval()
    rows = torch.randn(20, len(adjacency), generator=torch.Generator().manual_seed(seed))
    sources = draw_sources(2, len(adjacency), WINDOW, seed)
    band = torch.from_numpy(bands(one.eigenvalues))
    with torch.inference_mode():
        shares, turned = (
            next(window_shares(field, rows, stations(s, path, sources, flow_times(5)), band)) for s in (one, other)
        )
    torch.testing.assert_close(shares.score, turned.score, rtol=1e-4, atol=0)
    torch.testing.assert_close(shares.by_sensor, turned.by_sensor, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(shares.by_band, turned.by_band, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rank", [5, 40])
def test_closed_form_does_not_change(rank):
    """Not the score alone: the estimate of the field is the same in another eigenbasis, low rank included."""
    adjacency = repeated_components(3)
    one = Spectrum.of(adjacency)
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((len(adjacency), 4))
    driven = np.sin(np.arange(400)[:, None] / 7 + np.arange(4)) @ mixing.T
    rows = torch.from_numpy((driven + 0.3 * rng.standard_normal((400, len(adjacency)))).astype(np.float32))
    windows = Windows(rows, WINDOW, torch.arange(len(rows) - WINDOW + 1))
    scores = []
    for spectrum in (one, rotated(one, 0)):
        path = Path.of(spectrum, 2.0)
        field = Estimator(windows, spectrum, path, rank).all().with_more_noise(0.01)
        grid = [field.station(path.at(t), "eta") for t in flow_times(3)]
        scores.append(torch.cat([shares.by_sensor for shares in field.window_shares(rows, grid)]))
    torch.testing.assert_close(*scores, rtol=1e-3, atol=1e-3)


def test_bands_never_cut_an_eigenspace():
    lam = Spectrum.of(repeated_components(4)).eigenvalues
    band = bands(lam)
    for value in np.unique(lam.numpy().round(9)):
        assert len(set(band[lam.numpy().round(9) == value])) == 1
    assert set(band) == set(range(band.max() + 1))
