"""Lemma 1: velocity residual = ρ · endpoint residual, mode by mode."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from oracle import GaussianOracle, random_gaussian, random_graph

SENSORS, WINDOW = 5, 3


@given(seed=st.integers(0, 10**6), tau=st.floats(0, 8), t=st.floats(0.02, 0.98))
def test_velocity_residual_is_rho_times_endpoint_residual(seed, tau, t):
    rng = np.random.default_rng(seed)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    p = random_gaussian(SENSORS * WINDOW, rng, shift=1.0)
    oracle = GaussianOracle(p, spectrum, Path.of(spectrum, tau), WINDOW)
    x0, x1 = rng.standard_normal((2, 20, SENSORS * WINDOW))
    c = oracle.coefficients(t)
    xt = c["alpha"] * x0 + c["beta"] * x1
    velocity_residual = c["d_alpha"] * x0 + c["d_beta"] * x1 - oracle.spectral_velocity(xt, t)
    endpoint_residual = x1 - oracle.posterior_mean(xt, t)
    np.testing.assert_allclose(velocity_residual, c["rho"] * endpoint_residual, rtol=1e-8, atol=1e-8)


def test_weighted_residual_is_a_denoising_error():
    """η ρ² = (β/α)²: the score is a weighted squared error of the endpoint estimate."""
    path = Path(torch.linspace(0, 4, 9, dtype=torch.float64))
    point = path.at(torch.linspace(0.05, 0.95, 19, dtype=torch.float64))
    torch.testing.assert_close(point.eta * point.rho**2, (point.beta / point.alpha) ** 2, rtol=1e-10, atol=0)
