"""Corollary 1: the endpoint-uncertainty term never exceeds |X_ad||R_ad|NR."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graspad.core.path import Path, flow_times
from graspad.core.spectrum import Spectrum
from oracle import GaussianOracle, random_gaussian, random_graph

SENSORS, WINDOW, SOURCES = 5, 3, 2


def uncertainty(q: GaussianOracle, times: list[float]) -> float:
    total = 0.0
    for t in times:
        c = q.coefficients(t)
        total += SOURCES * np.sum((c["beta"] / c["alpha"]) ** 2 * q.posterior_variance(t))
    return total


@given(
    seed=st.integers(0, 10**6),
    log_scale=st.floats(-3, 3),
    tau=st.floats(0, 8),
    times=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6),
)
def test_gaussian_endpoints_stay_under_the_bound(seed, log_scale, tau, times):
    rng = np.random.default_rng(seed)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    q = random_gaussian(SENSORS * WINDOW, rng, scale=10**log_scale, shift=2.0)
    oracle = GaussianOracle(q, spectrum, Path.of(spectrum, tau), WINDOW)
    assert 0 <= uncertainty(oracle, times) <= SOURCES * len(times) * SENSORS * WINDOW * (1 + 1e-6)


def test_the_bound_is_approached_by_very_wide_data():
    rng = np.random.default_rng(0)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    q = random_gaussian(SENSORS * WINDOW, rng, scale=1e3)
    times = flow_times(4).tolist()
    oracle = GaussianOracle(q, spectrum, Path.of(spectrum, 2.0), WINDOW)
    assert uncertainty(oracle, times) == pytest.approx(SOURCES * 4 * SENSORS * WINDOW, rel=1e-3)


@pytest.mark.parametrize("distance", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("t", [0.2, 0.6, 0.9])
def test_two_point_endpoints_stay_under_the_bound(distance, t):
    """Not Gaussian: x1 is one of two windows; the posterior mean is a softmax of two likelihoods."""
    rng = np.random.default_rng(7)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    at = Path.of(spectrum, 2.0).at(torch.tensor(t, dtype=torch.float64))
    alpha, beta = at.alpha.numpy()[:, None], at.beta.numpy()[:, None]
    points = distance * rng.standard_normal((2, SENSORS, WINDOW))
    x1 = points[rng.integers(0, 2, 4000)]
    xt = alpha * rng.standard_normal(x1.shape) + beta * x1
    log_likelihood = -0.5 * (((xt[:, None] - beta * points) / alpha) ** 2).sum(axis=(2, 3))
    belief = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    belief /= belief.sum(axis=1, keepdims=True)
    error = x1 - np.einsum("bp,pnr->bnr", belief, points)
    assert ((beta / alpha) ** 2 * error**2).sum(axis=(1, 2)).mean() <= SENSORS * WINDOW
