"""Theorem 1: the hyperbolic path is the unique minimiser of kinetic plus Dirichlet action between fixed endpoints."""

from functools import partial

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_bvp
from torch.autograd.functional import jacobian

from graspad.core.graph import laplacian
from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from oracle import random_graph

OMEGAS = (0.0, 1e-8, 1e-3, 0.024, 0.026, 0.5, 1.0, 4.0, 30.0, 1e3)
inner_times = st.floats(0.001, 0.999)
frequencies = st.one_of(st.just(0.0), st.floats(1e-8, 20.0))


def at(omega: float, t: float, dtype: torch.dtype = torch.float64):
    return Path(torch.tensor([omega], dtype=dtype)).at(torch.tensor(t, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("omega", OMEGAS)
def test_endpoints(omega, dtype):
    start, end = at(omega, 0.0, dtype), at(omega, 1.0, dtype)
    assert (start.alpha, start.beta) == (1, 0)
    assert (end.alpha, end.beta) == (0, 1)


@given(omega=frequencies, t=inner_times)
def test_coefficients_solve_the_euler_lagrange_equation(omega, t):
    time = torch.tensor(t, dtype=torch.float64, requires_grad=True)
    point = Path(torch.tensor([omega], dtype=torch.float64)).at(time)
    for value, closed_form in ((point.alpha, point.d_alpha), (point.beta, point.d_beta)):
        (first,) = torch.autograd.grad(value.sum(), time, create_graph=True)
        (second,) = torch.autograd.grad(first, time, create_graph=True)
        assert first.item() == pytest.approx(closed_form.item(), rel=1e-9, abs=1e-12)
        assert second.item() == pytest.approx(omega**2 * value.item(), rel=1e-6, abs=1e-8)


@given(seed=st.integers(0, 10**6), tau=st.floats(0, 8), t=inner_times)
def test_node_domain_path_obeys_the_graph_laplacian(seed, tau, t):
    """Γ̈ = τLΓ: the path of Path.of on a real graph, differentiated twice, with L built apart from it."""
    rng = np.random.default_rng(seed)
    adjacency = random_graph(6, rng)
    spectrum = Spectrum.of(adjacency)
    path = Path.of(spectrum, tau)
    x0, x1 = torch.from_numpy(rng.standard_normal((2, 6)))

    def gamma(time):
        point = path.at(time)
        return spectrum.filter(point.alpha) @ x0 + spectrum.filter(point.beta) @ x1

    time = torch.tensor(t, dtype=torch.float64)
    velocity = partial(jacobian, gamma, create_graph=True)
    expected = tau * laplacian(adjacency) @ gamma(time).numpy()
    np.testing.assert_allclose(jacobian(velocity, time).numpy(), expected, rtol=1e-6, atol=1e-7)
    point = path.at(time)
    target = spectrum.filter(point.d_alpha) @ x0 + spectrum.filter(point.d_beta) @ x1
    torch.testing.assert_close(jacobian(gamma, time), target, rtol=1e-8, atol=1e-9)


@given(omega=frequencies, x0=st.floats(-3, 3), x1=st.floats(-3, 3), seed=st.integers(0, 10**6))
def test_action_is_lower_than_that_of_any_perturbed_path(omega, x0, x1, seed):
    nodes, weights = np.polynomial.legendre.leggauss(80)
    t = (nodes + 1) / 2
    point = Path(torch.tensor([omega], dtype=torch.float64)).at(torch.from_numpy(t))
    gamma = (point.alpha * x0 + point.beta * x1).numpy()[:, 0]
    speed = (point.d_alpha * x0 + point.d_beta * x1).numpy()[:, 0]
    waves = np.arange(1, 7) * np.pi
    size = np.random.default_rng(seed).standard_normal(6) / np.arange(1, 7)
    bump, bump_speed = np.sin(np.outer(t, waves)) @ size, np.cos(np.outer(t, waves)) @ (size * waves)

    def action(path, velocity):
        return weights @ (velocity**2 + omega**2 * path**2) / 4

    assert action(gamma, speed) < action(gamma + bump, speed + bump_speed)


@pytest.mark.parametrize("omega", [0.0, 0.7, 2.0, 6.0])
def test_agrees_with_a_numerical_boundary_value_solution(omega):
    grid = np.linspace(0, 1, 50)
    x0, x1 = -1.3, 0.8
    solved = solve_bvp(
        lambda t, y: np.stack([y[1], omega**2 * y[0]]),
        lambda left, right: np.array([left[0] - x0, right[0] - x1]),
        grid,
        np.zeros((2, 50)),
        tol=1e-8,
    )
    point = Path(torch.tensor([omega], dtype=torch.float64)).at(torch.from_numpy(grid))
    path = (point.alpha * x0 + point.beta * x1).numpy()[:, 0]
    velocity = (point.d_alpha * x0 + point.d_beta * x1).numpy()[:, 0]
    np.testing.assert_allclose(solved.sol(grid), np.stack([path, velocity]), atol=1e-5)


@given(t=inner_times)
def test_omega_zero_is_exactly_the_linear_path_and_its_limits(t):
    point = at(0.0, t)
    assert point.alpha.item() == 1 - t
    assert point.beta.item() == t
    assert (point.d_alpha.item(), point.d_beta.item()) == (-1, 1)
    assert point.rho.item() == pytest.approx(1 / (1 - t), rel=1e-15)
    assert point.eta.item() == pytest.approx(t**2, rel=1e-14)
    for name in ("alpha", "beta", "d_alpha", "d_beta", "rho", "eta"):
        assert getattr(at(1e-8, t), name).item() == pytest.approx(getattr(point, name).item(), rel=1e-7)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("t", [0.01, 0.05, 0.5, 0.73, 0.95, 0.99])
@pytest.mark.parametrize("omega", OMEGAS[1:])
def test_coefficients_are_accurate_at_all_frequencies(omega, t, dtype, tolerance):
    point = at(omega, t, dtype)
    # The reference starts from the numbers as the type holds them: their rounding is not the path's error.
    w, s = mpmath.mpf(float(torch.tensor(omega, dtype=dtype))), mpmath.mpf(float(torch.tensor(t, dtype=dtype)))
    with mpmath.workdps(60):
        whole = mpmath.sinh(w)
        exact = {
            "alpha": mpmath.sinh(w * (1 - s)) / whole,
            "beta": mpmath.sinh(w * s) / whole,
            "d_alpha": -w * mpmath.cosh(w * (1 - s)) / whole,
            "d_beta": w * mpmath.cosh(w * s) / whole,
            "rho": w / mpmath.sinh(w * (1 - s)),
            "log_eta": 2 * mpmath.log(mpmath.sinh(w * s) / w),
        }
    smallest = 100 * torch.finfo(dtype).tiny
    for name, value in exact.items():
        assert getattr(point, name).item() == pytest.approx(float(value), rel=tolerance, abs=smallest), name
    assert torch.isfinite(point.eta).all()


@given(omega=frequencies, t=inner_times)
def test_rho_and_eta_follow_from_the_coefficients(omega, t):
    p = at(omega, t)
    rho = p.d_beta - p.d_alpha / p.alpha * p.beta
    assert p.rho.item() == pytest.approx(rho.item(), rel=1e-9)
    assert p.eta.item() == pytest.approx((p.beta / p.alpha / p.rho).square().item(), rel=1e-9)
