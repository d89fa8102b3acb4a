"""Theorem 2: the expected oracle score is endpoint uncertainty plus a weighted Fisher discrepancy."""

import numpy as np
import pytest
import torch

from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum
from oracle import Gaussian, GaussianOracle, random_gaussian, random_graph

SENSORS, WINDOW, SOURCES, TIMES = 5, 3, 2, 4
SIZE = SENSORS * WINDOW


class Terms:
    """Both terms of Equation (anomaly_score_decomposition) in closed form for Gaussian p and q."""

    def __init__(self, p: GaussianOracle, q: GaussianOracle) -> None:
        self.uncertainty = self.fisher = 0.0
        for t in flow_times(TIMES).tolist():
            c = q.coefficients(t)
            inverse_p, inverse_q = (np.linalg.inv(x.state_covariance(t)) for x in (p, q))
            # ŝ^q − ŝ^p is affine in x̂t ~ N(B m_q, Σ_q)
            slope, offset = inverse_p - inverse_q, inverse_p @ (c["beta"] * (q.mean - p.mean))
            fisher = np.diag(slope @ q.state_covariance(t) @ slope.T) + offset**2
            self.uncertainty += SOURCES * np.sum((c["beta"] / c["alpha"]) ** 2 * q.posterior_variance(t))
            self.fisher += SOURCES * np.sum(c["alpha"] ** 2 * fisher)


def setting(seed: int, shift: float, scale: float, tau: float = 2.0):
    rng = np.random.default_rng(seed)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    path = Path.of(spectrum, tau)
    p = random_gaussian(SIZE, rng)
    q = Gaussian(p.mean + shift * rng.standard_normal(SIZE), scale * p.covariance)
    return rng, spectrum, path, p, q


def oracles(seed: int, shift: float, scale: float, tau: float = 2.0) -> tuple[GaussianOracle, GaussianOracle]:
    _, spectrum, path, p, q = setting(seed, shift, scale, tau)
    return GaussianOracle(p, spectrum, path, WINDOW), GaussianOracle(q, spectrum, path, WINDOW)


CASES = [(0.0, 1.0, 2.0), (1.0, 1.0, 2.0), (0.5, 3.0, 2.0), (1.0, 0.3, 0.0), (1.0, 2.0, 8.0)]


@pytest.mark.parametrize(("shift", "scale", "tau"), CASES)
def test_mean_score_equals_the_two_terms(shift, scale, tau):
    """The library's own score with the oracle field, averaged over many sources and windows."""
    rng, spectrum, path, p, q = setting(3, shift, scale, tau)
    oracle = GaussianOracle(p, spectrum, path, WINDOW)
    means = []
    for repeat in range(150):
        # Windows laid end to end: every WINDOW-th window is an independent draw of q.
        draws = q.sample(60, rng).reshape(60, SENSORS, WINDOW).transpose(0, 2, 1).reshape(-1, SENSORS)
        grid = stations(spectrum, path, draw_sources(SOURCES, SENSORS, WINDOW, repeat), flow_times(TIMES))
        rows = torch.from_numpy(draws.astype(np.float32))
        scores = torch.cat([shares.score for shares in window_shares(oracle, rows, grid, batch=len(rows))])
        means.append(scores[::WINDOW].mean().item())
    terms = Terms(oracle, GaussianOracle(q, spectrum, path, WINDOW))
    standard_error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert np.mean(means) == pytest.approx(terms.uncertainty + terms.fisher, abs=4 * standard_error)
    # The check has teeth: the standard error is small against the score.
    assert standard_error < 0.03 * np.mean(means)


def test_fisher_term_vanishes_without_a_shift_and_grows_with_it():
    none, *grown = (Terms(*oracles(5, shift, 1.0)).fisher for shift in (0.0, 0.5, 1.0, 2.0, 4.0))
    assert none == pytest.approx(0, abs=1e-12)
    assert np.all(np.diff([none, *grown]) > 0)
    assert Terms(*oracles(5, 0.0, 4.0)).fisher > 0.1


def test_uncertainty_term_ignores_a_shift_of_the_mean():
    assert Terms(*oracles(5, 3.0, 1.0)).uncertainty == pytest.approx(Terms(*oracles(5, 0.0, 1.0)).uncertainty)
