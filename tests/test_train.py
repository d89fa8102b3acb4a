import numpy as np
import pytest
import torch

from graspad.config import Training, Velocity
from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.train import train
from graspad.velocity.field import Field, build
from oracle import Gaussian, GaussianOracle, random_gaussian, random_graph

WINDOW, SENSORS = 6, 4
QUICK = Training(budget=60, unit="steps", validate_every=20, batch_size=32)


def windows(rows: torch.Tensor, length: int = WINDOW) -> Windows:
    return Windows(rows, length, torch.arange(len(rows) - length + 1))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    signal = np.sin(np.arange(400)[:, None] / 8 + np.arange(SENSORS)) + 0.1 * rng.standard_normal((400, SENSORS))
    rows = torch.from_numpy(signal.astype(np.float32))
    adjacency = random_graph(SENSORS, rng)
    spectrum = Spectrum.of(adjacency)

    def run(settings=QUICK, seed=0, on_progress=lambda progress: None):
        field = build(Velocity(hidden=16), SENSORS, WINDOW, adjacency, seed)
        path = Path.of(spectrum, 2.0)
        report = train(field, windows(rows[:320]), windows(rows[320:]), spectrum, path, settings, seed, on_progress)
        return field, report

    return run


def weights(field) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in field.parameters()])


def test_same_seed_same_weights_and_the_global_generator_is_left_alone(problem):
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    (first, _), (second, _) = problem(), problem()
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(problem(seed=1)[0]))


def test_progress_tells_every_step(problem):
    seen = []
    _, report = problem(on_progress=seen.append)
    assert [p.step for p in seen] == list(range(1, 61))
    assert {p.steps for p in seen} == {60}
    assert seen[-1].best_loss == report.best_loss < report.initial_loss
    assert seen[-1].seconds_left == 0


def test_epochs_count_all_windows(problem):
    _, report = problem(Training(budget=3, unit="epochs", validate_every=1, batch_size=100))
    assert report.steps == 3 * 4  # 315 windows in batches of 100


def test_best_weights_are_restored(problem):
    """A learning rate that breaks the network after a good start must not cost the good start."""
    wild = Training(budget=40, unit="steps", validate_every=1, batch_size=32, learning_rate=0.3)
    field, report = problem(wild)
    assert report.best_step < 40
    again, same = problem(wild.model_copy(update={"budget": report.best_step}))
    assert torch.equal(weights(field), weights(again))
    assert same.best_loss == report.best_loss


def test_patience_ends_training_and_keeps_what_the_whole_budget_would_have_kept_so_far(problem):
    spoilt = QUICK.model_copy(update={"budget": 200, "learning_rate": 3.0})  # gets worse from the first step on
    _, whole = problem(spoilt)
    _, short = problem(spoilt.model_copy(update={"patience": 2}))
    assert whole.steps == 200
    assert short.steps == short.best_step + 2 * QUICK.validate_every < 200
    assert short.best_loss == whole.best_loss


def test_ctrl_c_keeps_the_best_weights_so_far(problem):
    def interrupt(progress):
        if progress.step == 45:
            raise KeyboardInterrupt

    field, report = problem(on_progress=interrupt)
    assert report.interrupted
    assert report.steps == 45
    # Same learning-rate course, ended on purpose after the last validation.
    expected, _ = problem(QUICK.model_copy(update={"budget": report.best_step}))
    assert torch.equal(weights(field), weights(expected))


def test_ctrl_c_before_the_first_validation_leaves_a_usable_field(problem):
    def interrupt(progress):
        raise KeyboardInterrupt

    field, report = problem(on_progress=interrupt)
    assert (report.interrupted, report.best_step, report.best_loss) == (True, 0, report.initial_loss)
    assert torch.isfinite(weights(field)).all()


class Knows(Field):
    """Knows some flow times, and takes a note of those it is asked for."""

    def __init__(self, times: torch.Tensor | None) -> None:
        super().__init__()
        self.times, self.asked, self.weight = times, [], torch.nn.Parameter(torch.ones(1))

    def forward(self, xt, t):
        self.asked.extend(t.tolist())
        return self.weight * xt


@pytest.mark.parametrize("count", [1, 3, 10, None])
def test_a_field_is_trained_and_validated_at_the_flow_times_that_it_knows(count):
    rows = torch.zeros(320, SENSORS)
    spectrum = Spectrum.of(np.zeros((SENSORS, SENSORS), dtype=bool))
    times = None if count is None else (torch.arange(count) + 0.5) / count
    field = Knows(times)
    train(field, windows(rows), windows(rows), spectrum, Path.of(spectrum, 2.0), QUICK, 0)
    seen, often = np.unique(field.asked, return_counts=True)
    if count is None:
        assert len(seen) > 1000
    else:
        assert seen.tolist() == times.tolist()
        np.testing.assert_allclose(often / often.sum(), 1 / count, rtol=0.2)


def test_network_approaches_the_gaussian_oracle():
    """On Gaussian windows the best possible loss is known: training must come near it and cannot beat it."""
    rng = np.random.default_rng(1)
    adjacency = random_graph(SENSORS, rng)
    spectrum, window = Spectrum.of(adjacency), 2
    path = Path.of(spectrum, 2.0)
    # White rows: consecutive windows overlap, yet each is Gaussian with independent rows.
    sensor_covariance = random_gaussian(SENSORS, rng).covariance
    rows = rng.multivariate_normal(np.zeros(SENSORS), sensor_covariance, size=6000).astype(np.float32)
    p = Gaussian(np.zeros(SENSORS * window), np.kron(sensor_covariance, np.eye(window)))
    oracle = GaussianOracle(p, spectrum, path, window)
    field = build(Velocity(hidden=64, dropout=0.0), SENSORS, window, adjacency, 0)
    settings = Training(budget=600, unit="steps", validate_every=100, anneal=True, learning_rate=3e-3)
    split = torch.from_numpy(rows)
    report = train(field, windows(split[:4000], window), windows(split[4000:], window), spectrum, path, settings, 0)
    floor = np.mean([_oracle_loss(oracle, t) for t in np.linspace(0.0005, 0.9995, 1000)])
    assert 0.95 * floor < report.best_loss < 1.2 * floor
    assert report.initial_loss > 1.5 * floor


def _oracle_loss(oracle: GaussianOracle, t: float) -> float:
    """E‖target − V^p‖² per entry = mean of ρ² · posterior variance (Lemma 1)."""
    return float(np.mean(oracle.coefficients(t)["rho"] ** 2 * oracle.posterior_variance(t)))
