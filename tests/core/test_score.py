"""The score against its own equation, written out with loops."""

import numpy as np
import pytest
import torch

from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum
from oracle import random_graph

SENSORS, WINDOW, ROWS = 5, 4, 11


def swirl(xt, t):
    """Any smooth field will do; this one mixes sensors, rows and flow time."""
    return torch.roll(xt, 1, dims=1).sin() + t[:, None, None] * torch.roll(xt, 1, dims=2)


@pytest.mark.parametrize("weights", ["eta", "uniform"])
@pytest.mark.parametrize("tau", [0.0, 2.0])
def test_score_follows_the_equation(weights, tau):
    rng = np.random.default_rng(0)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    path, sources, times = Path.of(spectrum, tau), draw_sources(3, SENSORS, WINDOW, 0), flow_times(4)
    rows = rng.standard_normal((ROWS, SENSORS)).astype(np.float32)
    grid = stations(spectrum, path, sources, times, weights)
    shares = torch.cat([s.score for s in window_shares(swirl, torch.from_numpy(rows), grid, batch=3)])
    psi, omega = spectrum.basis.numpy(), np.sqrt(tau * spectrum.eigenvalues.numpy())
    for window in range(ROWS - WINDOW + 1):
        x1 = psi.T @ rows[window : window + WINDOW].T
        score = 0.0
        for t in times.tolist():
            for source in sources.numpy():
                x0 = psi.T @ source
                xt, target, eta = np.empty_like(x1), np.empty_like(x1), np.empty(SENSORS)
                for k, w in enumerate(omega):
                    if w < 1e-6:
                        xt[k], target[k], eta[k] = (1 - t) * x0[k] + t * x1[k], x1[k] - x0[k], t**2
                    else:
                        sinh, cosh = np.sinh, np.cosh
                        xt[k] = (sinh(w * (1 - t)) * x0[k] + sinh(w * t) * x1[k]) / sinh(w)
                        target[k] = w * (cosh(w * t) * x1[k] - cosh(w * (1 - t)) * x0[k]) / sinh(w)
                        eta[k] = sinh(w * t) ** 2 / w**2
                velocity = swirl(torch.from_numpy(psi @ xt)[None], torch.tensor([t])).numpy()[0]
                residual = psi.T @ velocity - target
                score += np.sum((eta if weights == "eta" else 1.0) * np.sum(residual**2, axis=1))
        assert shares[window].item() == pytest.approx(score, rel=1e-4)


def test_sources_come_from_the_seed_alone():
    torch.manual_seed(1)
    one = draw_sources(2, 3, 4, seed=7)
    torch.manual_seed(2)
    assert torch.equal(one, draw_sources(2, 3, 4, seed=7))
    assert not torch.equal(one, draw_sources(2, 3, 4, seed=8))
