"""The closed form against brute-force conditioning, against sampling and against the bound of Corollary 1."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum, bands
from graspad.core.windows import Windows
from graspad.velocity.estimate import Estimator, Moments
from graspad.velocity.gaussian import GaussianField
from oracle import Gaussian, GaussianOracle, random_graph

SENSORS, WINDOW = 5, 4
SIZE = SENSORS * WINDOW


def windows(rows: torch.Tensor) -> Windows:
    return Windows(rows, WINDOW, torch.arange(len(rows) - WINDOW + 1))


def problem(seed: int, rank: int, tau: float = 2.0):
    """A closed form with a random low-rank covariance, and the brute-force oracle of the same distribution."""
    rng = np.random.default_rng(seed)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    path = Path.of(spectrum, tau)
    mean = torch.from_numpy(rng.standard_normal((SENSORS, WINDOW)))
    factor = torch.from_numpy(rng.standard_normal((SENSORS, WINDOW, rank)))
    field = GaussianField(mean, factor, 0.1, spectrum, path)
    back = np.kron(spectrum.basis.numpy(), np.eye(WINDOW))
    flat = back @ field.factor.double().numpy().reshape(SIZE, rank)
    p = Gaussian(back @ field.mean.double().numpy().ravel(), flat @ flat.T + 0.1 * np.eye(SIZE))
    return rng, spectrum, path, field, GaussianOracle(p, spectrum, path, WINDOW)


@given(seed=st.integers(0, 10**6), rank=st.integers(1, SIZE), tau=st.floats(0, 8), t=st.floats(0.02, 0.98))
def test_velocity_and_posterior_equal_brute_force(seed, rank, tau, t):
    rng, _, path, field, oracle = problem(seed, rank, tau)
    xt = rng.standard_normal((7, SIZE))
    at = path.at(torch.tensor(t, dtype=torch.float64))
    mean = field.posterior_mean(torch.from_numpy(xt).view(7, SENSORS, WINDOW), at)
    np.testing.assert_allclose(mean.flatten(1).numpy(), oracle.posterior_mean(xt, t), rtol=1e-6, atol=1e-6)
    node = torch.from_numpy(xt @ oracle.transform).view(7, SENSORS, WINDOW)
    expected = oracle.spectral_velocity(xt, t) @ oracle.transform
    velocity = field(node, torch.full((7,), t, dtype=torch.float64))
    np.testing.assert_allclose(velocity.flatten(1).numpy(), expected, rtol=1e-5, atol=1e-5)


@given(seed=st.integers(0, 10**6), rank=st.integers(1, SIZE))
def test_means_of_windows_equal_brute_force(seed, rank):
    _, _, _, field, oracle = problem(seed, rank)
    average = np.kron(np.eye(SENSORS), np.full((1, WINDOW), 1 / WINDOW)) @ oracle.transform.T
    mean, covariance = field.window_means()
    np.testing.assert_allclose(mean.numpy(), average @ oracle.mean, atol=1e-9)
    np.testing.assert_allclose(covariance.numpy(), average @ oracle.covariance @ average.T, atol=1e-9)


def test_flow_times_may_differ_within_a_batch():
    rng, _, _, field, _ = problem(0, 3)
    xt = torch.from_numpy(rng.standard_normal((4, SENSORS, WINDOW)))
    t = torch.tensor([0.2, 0.7, 0.2, 0.5], dtype=torch.float64)
    one_by_one = torch.cat([field(xt[i : i + 1], t[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(field(xt, t), one_by_one)


@pytest.mark.parametrize("weights", ["eta", "uniform"])
@pytest.mark.parametrize("rank", [3, SIZE])
def test_exact_score_is_the_mean_of_the_sampled_one(weights, rank):
    rng, spectrum, path, field, oracle = problem(1, rank)
    rows = torch.from_numpy(rng.standard_normal((9, SENSORS)).astype(np.float32))
    band = torch.from_numpy(bands(spectrum.eigenvalues))
    times = flow_times(3)
    exact = next(field.window_shares(rows, [field.station(path.at(t), weights) for t in times], band))
    draws = []
    for seed in range(30):
        grid = stations(spectrum, path, draw_sources(25, SENSORS, WINDOW, seed), times, weights)
        draws.append(next(window_shares(oracle, rows, grid, band)))
    for part in ("by_sensor", "by_band"):
        sampled = torch.stack([getattr(shares, part) for shares in draws]) / 25
        error = sampled.std(dim=0) / len(draws) ** 0.5
        assert ((getattr(exact, part) - sampled.mean(dim=0)).abs() < 5 * error + 1e-4).all()
        assert (error < 0.1 * sampled.mean(dim=0) + 1e-3).all()
    torch.testing.assert_close(exact.by_band.sum(dim=(1, 2)), exact.score, rtol=1e-4, atol=0)


@given(seed=st.integers(0, 10**6), rank=st.integers(1, SIZE), t=st.floats(0.02, 0.98))
def test_noise_part_obeys_corollary_1(seed, rank, t):
    *_, path, field, _ = problem(seed, rank)
    station = field.station(path.at(torch.tensor(t, dtype=torch.float64)), "eta")
    assert 0 <= station.noise_by_sensor.sum() <= SIZE * (1 + 1e-5)
    torch.testing.assert_close(station.noise_by_sensor.sum(), station.noise_by_mode.sum(), rtol=1e-4, atol=1e-5)


@given(st.sets(st.integers(0, 36)), st.integers(0, 2**31))
def test_moments_are_the_sums_over_windows_however_these_lie(starts, seed):
    rows = torch.randn(40, SENSORS, generator=torch.Generator().manual_seed(seed))
    some = Windows(rows, WINDOW, torch.tensor(sorted(starts), dtype=torch.int64))
    moments, flat = Moments.of(some), some[slice(None)].flatten(1).to(torch.float64)
    assert moments.count == len(starts)
    torch.testing.assert_close(moments.total, flat.sum(dim=0), rtol=0, atol=1e-4)
    torch.testing.assert_close(moments.products, flat.T @ flat, rtol=0, atol=1e-4)


def test_estimate_recovers_a_gaussian():
    """White rows with known covariance between sensors: the estimate must come near, at full rank."""
    rng = np.random.default_rng(0)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    mixing = rng.standard_normal((SENSORS, SENSORS))
    rows = torch.from_numpy((rng.standard_normal((40_000, SENSORS)) @ mixing.T + 3).astype(np.float32))
    field = Estimator(windows(rows), spectrum, Path.of(spectrum, 2.0), SIZE).all()
    flat = field.factor.double().numpy().reshape(SIZE, -1)
    spectral = spectrum.basis.numpy().T @ mixing
    np.testing.assert_allclose(flat @ flat.T, np.kron(spectral @ spectral.T, np.eye(WINDOW)), atol=0.15)
    np.testing.assert_allclose((spectrum.basis.float() @ field.mean).numpy(), 3, atol=0.1)


def test_rank_keeps_the_total_variance():
    rng = np.random.default_rng(0)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    rows = torch.from_numpy(rng.standard_normal((500, SENSORS)).astype(np.float32))
    totals = []
    for rank in (2, 7, SIZE):
        field = Estimator(windows(rows), spectrum, Path.of(spectrum, 2.0), rank).all()
        totals.append(field.factor.square().sum().item() + SIZE * float(field.noise))
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-5)


def test_stations_hold_no_number_so_small_that_it_slows_the_processor():
    """Rows that only know their neighbours: far from the diagonal the resolvent falls below any float32."""
    rows, spectrum = 60, Spectrum.of(np.zeros((1, 1), dtype=bool))
    walk = torch.linalg.cholesky(0.2 ** (torch.arange(rows)[:, None] - torch.arange(rows)).abs().double())
    field = GaussianField(torch.zeros(1, rows), walk[None], 0.0, spectrum, Path.of(spectrum, 0.0))
    at = field.path.at(torch.tensor(0.2, dtype=torch.float64))
    matrix = field.station(at, "eta").matrix.abs()
    assert field.resolvent(at).matrix.abs().min() < 1e-30
    assert matrix[matrix > 0].min() > 1e-17
    assert torch.equal(matrix, matrix.T)
