"""The expected curve against brute-force conditioning, against sampling, and on a plant whose faults are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from graspad import GraspDetector, simulate
from graspad.config import RECIPE
from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources
from graspad.core.spectrum import Spectrum
from graspad.data.gaps import Rows
from graspad.expected import Expectation
from graspad.velocity.field import Field
from graspad.velocity.gaussian import GaussianField
from graspad.velocity.hybrid import HybridField
from graspad.view import Lens, View
from oracle import Gaussian, GaussianOracle, random_graph

SENSORS, WINDOW = 5, 4
SIZE = SENSORS * WINDOW


def closed_form(rank: int, tau: float, weights: str = "eta", stride: int = 1):
    """A view with a random closed form, the brute-force oracle of the same distribution, and some rows."""
    rng = np.random.default_rng(rank)
    scoring = dict(RECIPE.scoring) | {"weights": weights, "stride": stride}
    settings = RECIPE.override(window=WINDOW, tau=tau, scoring=scoring)
    spectrum = Spectrum.of(random_graph(SENSORS, rng))
    path = Path.of(spectrum, tau)
    mean, factor = (torch.from_numpy(rng.standard_normal((SENSORS, WINDOW, *more))) for more in ((), (rank,)))
    field = GaussianField(mean, factor, 0.1, spectrum, path)
    back = np.kron(spectrum.basis.numpy(), np.eye(WINDOW))
    flat = back @ field.factor.double().numpy().reshape(SIZE, rank)
    p = Gaussian(back @ field.mean.double().numpy().ravel(), flat @ flat.T + 0.1 * np.eye(SIZE))
    view = View(Lens(1, WINDOW, 1.0), settings, spectrum, field)
    rows = Rows.of(2 * rng.standard_normal((30, SENSORS)).astype(np.float32), limit=0)
    return view, GaussianOracle(p, spectrum, path, WINDOW), rows


def by_hand(oracle: GaussianOracle, values: np.ndarray, starts: list[int]) -> np.ndarray:
    """The mean over windows of E[x1 | xt], which is linear in xt, at the mean of xt over the source, B x1.

    A window of four rows counts once for its outer rows and twice for its inner ones.
    """
    t = 1 / 6
    found = [[] for _ in values]
    for start in starts:
        x1 = oracle.transform @ values[start : start + WINDOW].T.ravel()
        mean = oracle.posterior_mean((oracle.coefficients(t)["beta"] * x1)[None], t)[0]
        for place, expected in enumerate((oracle.transform.T @ mean).reshape(SENSORS, WINDOW).T):
            found[start + place] += [expected] * (1, 2, 2, 1)[place]
    return np.array([np.mean(each, axis=0) if each else np.full(SENSORS, np.nan) for each in found])


class Plain(Field):
    """A closed form that nobody knows to be one."""

    def __init__(self, inner: Field) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, xt, t):
        # The flow time comes in single precision, as networks take it.
        exact = flow_times(3)[(flow_times(3) - t[:1].double()).abs().argmin()]
        return self.inner(xt, exact.expand(len(t)))


@pytest.mark.parametrize("tau", [0.0, 2.0, 400.0])
@pytest.mark.parametrize("weights", ["eta", "uniform"])
@pytest.mark.parametrize("rank", [3, SIZE])
def test_closed_form_equals_brute_force_conditioning(rank, weights, tau):
    view, oracle, rows = closed_form(rank, tau, weights)
    expected = by_hand(oracle, rows.values.astype(np.float64), list(range(30 - WINDOW + 1)))
    np.testing.assert_allclose(Expectation.of(view).of_rows(rows), expected, rtol=1e-4, atol=1e-4)


def test_rows_in_gaps_are_unknown_and_the_last_windows_before_them_count():
    view, oracle, rows = closed_form(SIZE, 2.0, stride=3)
    values = rows.values.copy()
    values[[12, 14], 2] = np.nan
    found = Expectation.of(view).of_rows(Rows.of(values, limit=0))
    expected = by_hand(oracle, values.astype(np.float64), [0, 3, 6, 8, 15, 18, 21, 24, 26])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert np.flatnonzero(np.isnan(found).all(axis=1)).tolist() == [12, 13, 14]


def test_wanted_rows_are_those_of_the_whole_table_and_the_others_are_empty():
    view, _, rows = closed_form(SIZE, 2.0, stride=3)
    expectation, wanted = Expectation.of(view), np.zeros(30, dtype=bool)
    wanted[[0, 10, 11, 29]] = True
    whole, some = expectation.of_rows(rows), expectation.of_rows(rows, wanted)
    np.testing.assert_allclose(some[wanted], whole[wanted], rtol=1e-6)
    assert np.isnan(some[~wanted]).all()
    assert np.isnan(expectation.of_rows(rows, np.zeros(30, dtype=bool))).all()


class Nothing(Field):
    """A network that starts at zero and was not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(WINDOW, WINDOW)

    def forward(self, xt, t):
        return self.layer(xt)


@pytest.mark.parametrize("wrap", [Plain, lambda field: HybridField(field, Nothing(), flow_times(3))])
def test_sampled_fields_agree_with_the_closed_form(wrap):
    """Any field is asked by Lemma 1; one that is linear leaves nothing to chance, however few the sources."""
    exact, _, rows = closed_form(3, 2.0)
    sources = draw_sources(2, SENSORS, WINDOW, 0)
    sampled = View(exact.lens, exact.settings, exact.spectrum, wrap(exact.field), sources)
    expected = Expectation.of(exact).of_rows(rows)
    np.testing.assert_allclose(Expectation.of(sampled).of_rows(rows), expected, rtol=1e-3, atol=1e-3)


def test_mean_over_sources_is_that_of_the_field():
    """A field with a bend: pairs of sources give the mean over all sources, within the error of sampling."""
    exact, oracle, rows = closed_form(3, 2.0)

    class Bent(Plain):
        def forward(self, xt, t):
            return super().forward(xt, t) + xt.square().tanh()

    def found(count, seed):
        sources = draw_sources(count, SENSORS, WINDOW, seed)
        return Expectation.of(View(exact.lens, exact.settings, exact.spectrum, Bent(exact.field), sources))

    draws = np.stack([found(20, seed).of_rows(rows) for seed in range(20)])
    x1 = torch.from_numpy(rows.values).unfold(0, WINDOW, 1).double()
    at = oracle.path.at(torch.tensor(1 / 6, dtype=torch.float64))
    x0 = torch.randn(4000, SENSORS, WINDOW, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    source = exact.spectrum.filter(at.alpha) @ x0
    bends = torch.stack([(state + source).square().tanh().mean(dim=0) for state in exact.spectrum.filter(at.beta) @ x1])
    moved = (exact.spectrum.filter(1 / at.rho) @ bends).numpy()
    total, weight = np.zeros((30, SENSORS)), np.zeros((30, 1))
    for start, window in enumerate(moved):
        total[start : start + WINDOW] += window.T * [[1], [2], [2], [1]]
        weight[start : start + WINDOW] += [[1], [2], [2], [1]]
    expected = Expectation.of(exact).of_rows(rows) + total / weight
    error = draws.std(axis=0) / len(draws) ** 0.5
    assert (np.abs(draws.mean(axis=0) - expected) < 5 * error + 0.02).all()


# --- on the simulated plant -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def detector() -> GraspDetector:
    settings = RECIPE.override(window=20, scoring=dict(RECIPE.scoring) | {"looks": ()})
    return GraspDetector(settings, false_alarms=0.01).fit(frame(simulate.normal(days=9, seed=0)))


def frame(run: simulate.Simulation) -> pd.DataFrame:
    return pd.DataFrame(run.values, columns=run.sensors, index=pd.DatetimeIndex(run.timestamps))


def distance(detector: GraspDetector, values: np.ndarray, rows: slice) -> np.ndarray:
    """From what was seen to what was expected: root mean square of each sensor, in units of its spread."""
    apart = (detector.expected(values) - values)[rows] / detector.model_.scale.std
    return np.sqrt(np.square(apart).mean(axis=0))


def test_normal_rows_are_as_expected(detector):
    healthy = simulate.faulty(days=2, seed=3, kinds=())
    assert np.median(distance(detector, healthy.values, slice(None))) < 0.25


@pytest.mark.parametrize("kind", ["stuck", "drift", "coupling"])
def test_the_curve_does_not_follow_the_guilty_sensor(detector, kind):
    faulty, healthy = (simulate.faulty(days=2, seed=3, kinds=kinds) for kinds in ([kind], ()))
    (fault,) = faulty.faults
    guilty = faulty.sensors.index(*fault.sensors)
    late = slice((fault.start + fault.end) // 2, fault.end)  # a drift begins at nothing
    more = distance(detector, faulty.values, late) - distance(detector, healthy.values, late)
    assert more[guilty] > 3 * np.delete(more, guilty).max()
    seen, told, true = (
        values[late, guilty] for values in (faulty.values, detector.expected(faulty.values), healthy.values)
    )
    assert np.abs(told - true).mean() < 0.5 * np.abs(seen - true).mean()


def test_the_answer_has_type_index_and_columns_of_the_data(detector):
    run = simulate.faulty(days=0.1, seed=3, kinds=())
    data = frame(run)
    out = detector.expected(data)
    assert out.index.equals(data.index)
    assert out.columns.equals(data.columns)
    np.testing.assert_array_equal(out, detector.expected(run.values))
    with pytest.warns(UserWarning, match="not in the order of the model"):
        turned = detector.expected(data[data.columns[::-1]])
    pd.testing.assert_frame_equal(turned, out[data.columns[::-1]])
    as_polars = pl.from_pandas(data.reset_index(names="when"))
    answer = detector.expected(as_polars)
    assert answer.columns == as_polars.columns
    assert answer["when"].equals(as_polars["when"])
    assert answer["FT-103"].to_list() == out["FT-103"].tolist()


def test_what_is_expected_has_the_units_of_the_data_and_is_empty_in_gaps(detector):
    data = frame(simulate.faulty(days=0.1, seed=3, kinds=()))
    off = (detector.expected(data) - data).mean() / detector.model_.scale.std
    assert off.abs().max() < 0.5
    data.iloc[60:81, 0] = np.nan  # five rows are filled, sixteen lost
    answer = detector.expected(data)
    assert np.flatnonzero(answer.isna().all(axis=1)).tolist() == list(range(65, 81))
    assert answer.isna().to_numpy().sum() == 16 * data.shape[1]


def test_windows_left_out_leave_no_steps(detector):
    """A pump that stops is an edge in all windows around it: with every fifth of them the curve is still smooth."""
    values = simulate.faulty(days=1, seed=3, kinds=()).values
    rows = detector.model_.rows(values)
    expectation = Expectation.of(detector.model_.views[0])
    some, every = (replace(expectation, stride=stride).of_rows(rows) for stride in (5, 1))
    assert np.abs(some - every).max() < 0.1
    bends = [np.abs(np.diff(curve, 2, axis=0)).max() for curve in (some, every)]
    assert bends[0] < 1.5 * bends[1]
