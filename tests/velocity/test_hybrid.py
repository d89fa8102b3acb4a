"""The hybrid begins as the closed form, learns what that leaves over, and never changes it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graspad import RECIPE, GraspDetector
from graspad.config import Scoring, Training, Velocity
from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.errors import InvalidSettingError
from graspad.train import train
from graspad.velocity.estimate import Estimator
from graspad.velocity.field import build
from graspad.velocity.gaussian import GaussianField
from graspad.velocity.hybrid import HybridField
from oracle import random_graph

KINDS = ["hybrid-tsmixer", "hybrid-gnn", "hybrid-transformer"]
SENSORS, WINDOW = 5, 6
SIZE = SENSORS * WINDOW
TINY = RECIPE.override(
    window=16,
    velocity=Velocity(hidden=16, time_features=8, dropout=0.0),
    training=Training(budget=40, unit="steps", validate_every=20, batch_size=64),
    scoring=Scoring(sources=2, flow_times=3, calibrate=True),
)


def hybrid(closed_form: GaussianField, adjacency: np.ndarray, kind: str, times: int = 3) -> HybridField:
    network = build(Velocity(kind=kind, hidden=32, dropout=0.0), SENSORS, WINDOW, adjacency, seed=0)
    return HybridField(closed_form, network, flow_times(times)).eval()


def problem(seed: int, rank: int, tau: float = 2.0):
    rng = np.random.default_rng(seed)
    adjacency = random_graph(SENSORS, rng)
    spectrum = Spectrum.of(adjacency)
    mean, factor = (torch.from_numpy(rng.standard_normal((SENSORS, WINDOW, *more))) for more in ((), (rank,)))
    return rng, adjacency, GaussianField(mean, factor, 0.1, spectrum, Path.of(spectrum, tau))


@given(
    seed=st.integers(0, 10**6),
    rank=st.integers(1, SIZE),
    tau=st.floats(0, 8),
    times=st.integers(1, 10),
    kind=st.sampled_from(KINDS),
)
def test_untrained_velocity_is_the_closed_form(seed, rank, tau, times, kind):
    rng, adjacency, closed_form = problem(seed, rank, tau)
    xt = torch.from_numpy(rng.standard_normal((12, SENSORS, WINDOW)).astype(np.float32))
    t = flow_times(times).float()[torch.from_numpy(rng.integers(0, times, 12))]
    velocity = hybrid(closed_form, adjacency, kind, times)(xt, t)
    torch.testing.assert_close(velocity, closed_form(xt, t), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [3, SIZE])
def test_untrained_score_is_that_of_the_closed_form(kind, rank):
    rng, adjacency, closed_form = problem(0, rank)
    rows = torch.from_numpy(rng.standard_normal((20, SENSORS)).astype(np.float32))
    spectrum, path = closed_form.spectrum, closed_form.path
    grid = stations(spectrum, path, draw_sources(2, SENSORS, WINDOW, seed=0), flow_times(3))
    with torch.inference_mode():
        fields = closed_form, hybrid(closed_form, adjacency, kind)
        one, other = (next(window_shares(field, rows, grid)).by_sensor for field in fields)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def windows(rows: torch.Tensor) -> Windows:
    return Windows(rows, WINDOW, torch.arange(len(rows) - WINDOW + 1))


def switching(rows: int, seed: int) -> torch.Tensor:
    """Now one mode of operation, now another: two points, where the best Gaussian is the line through them."""
    rng = np.random.default_rng(seed)
    mode = np.cumsum(rng.random((rows, 1)) < 0.02, axis=0) % 2
    signal = (2 * mode - 1) * np.array([1.0, 1.2, 0.8, 1.4, 0.6])
    return torch.from_numpy((signal + 0.1 * rng.standard_normal((rows, SENSORS))).astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_training_improves_on_a_wrong_closed_form_and_leaves_it_alone(kind):
    seen, new = (windows(switching(rows, seed)) for rows, seed in ((2000, 0), (1000, 1)))
    adjacency = ~np.eye(SENSORS, dtype=bool)
    spectrum = Spectrum.of(adjacency)
    path = Path.of(spectrum, 2.0)
    closed_form = Estimator(seen, spectrum, path, rank=SIZE).all().with_more_noise(0.01)
    before = {name: buffer.clone() for name, buffer in closed_form.named_buffers()}
    field = hybrid(closed_form, adjacency, kind)
    assert {id(p) for p in field.parameters()} == {id(p) for p in field.network.parameters()}
    settings = Training(budget=450, unit="steps", validate_every=50, batch_size=128, learning_rate=3e-3, anneal=True)
    report = train(field, seen, new, spectrum, path, settings, seed=0)
    assert report.best_loss < 0.95 * report.initial_loss
    assert all(torch.equal(buffer, before[name]) for name, buffer in closed_form.named_buffers())


def test_other_flow_times_are_told():
    _, adjacency, closed_form = problem(0, 3)
    field = hybrid(closed_form, adjacency, "hybrid-tsmixer", times=2)
    with pytest.raises(
        InvalidSettingError, match=r"solved for, \[0\.25, 0\.75\].*Scoring\.flow_times.*Got 0\.5 instead"
    ):
        field(torch.zeros(2, SENSORS, WINDOW), torch.tensor([0.25, 0.5]))


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(rows)[:, None] / 9 + np.arange(SENSORS)) + 0.1 * rng.standard_normal((rows, SENSORS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_detector_finds_a_spike_and_comes_back_from_its_file(kind, tmp_path):
    detector = GraspDetector(TINY, field=kind, false_alarms=0.02).fit(plant(500, 0))
    closed_form = detector.model_.views[0].field.closed_form
    assert closed_form.factor.shape[-1] < SENSORS * 16  # not every direction: the network has something to do
    assert closed_form.noise > 0.1
    assert detector.model_.means.middle.shape == (SENSORS,)
    new = plant(200, 1)
    new[100, 2] += 8
    out = detector.score(new)
    assert out["alarm"][100]
    assert 85 <= np.nanargmax(out["score"]) <= 115
    assert detector.explain(new).top_sensors(100, 101)[0][0] == "2"
    detector.save(tmp_path / "model")
    assert np.array_equal(GraspDetector.load(tmp_path / "model").decision_function(new), out["score"])


def test_a_model_asked_for_other_flow_times_than_it_was_fitted_with_says_so():
    detector = GraspDetector(TINY, field="hybrid-gnn", false_alarms=0.02).fit(plant(300, 0))
    more = detector.model_.settings.override(scoring=Scoring(sources=2, flow_times=4, calibrate=True))
    (view,) = detector.model_.views
    detector.model_ = replace(detector.model_, views=(replace(view, settings=more),))
    with pytest.raises(InvalidSettingError, match=r"fit with another `Scoring\.flow_times`"):
        detector.score(plant(60, 1))
