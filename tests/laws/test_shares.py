"""Shares add up to the score, follow the sensors, and a row's score depends on nothing but its own windows."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graspad import GraspDetector
from graspad.config import PAPER, RECIPE, FieldKind, Training, Velocity
from graspad.core.path import Path, flow_times
from graspad.core.score import draw_sources, stations, window_shares
from graspad.core.spectrum import Spectrum, bands
from oracle import GaussianOracle, random_gaussian, random_graph

WINDOW = 8
QUICK = PAPER.override(
    window=WINDOW, velocity=Velocity(hidden=16), training=Training(budget=30, unit="steps", validate_every=10)
)
CASES = {kind: QUICK.override(velocity=dict(QUICK.velocity) | {"kind": kind}) for kind in get_args(FieldKind)}
CASES["recipe"] = RECIPE.override(window=WINDOW)
# Float32 sums are grouped differently in batches of different size; scores agree to this relative error.
ROUNDING = 2e-5


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)[:, None]
    return np.sin(t / 9 + np.array([0, 0.3, 1, 2, 2.1])) + 0.1 * rng.standard_normal((rows, 5))


@pytest.fixture(scope="module", params=CASES)
def detectors(request) -> dict[str, GraspDetector]:
    return {
        align: GraspDetector(CASES[request.param], align=align, false_alarms=0.05).fit(plant(400, 0))
        for align in ("overlap", "causal")
    }


@pytest.mark.parametrize("align", ["overlap", "causal"])
def test_shares_add_up_to_the_score(detectors, align):
    data = plant(60, 1)
    explanation = detectors[align].explain(data)
    scores = detectors[align].decision_function(data)
    np.testing.assert_allclose(explanation.score, scores, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(explanation.by_sensor.sum(axis=1), scores, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(explanation.by_band.sum(axis=1), scores, rtol=1e-4, atol=1e-4)
    known = ~np.isnan(scores)
    assert (explanation.by_sensor[known] >= 0).all()
    assert (explanation.by_flow_time[known] >= 0).all()


@hypothesis_settings(max_examples=15)
@given(batch=st.integers(1, 70), rows=st.integers(WINDOW, 60))
def test_batch_size_does_not_matter(detectors, batch, rows):
    model = detectors["overlap"].model_
    data = model.rows(plant(rows, 2))
    (some,), (all_at_once,) = (model.score(data, ["overlap"], size) for size in (batch, None))
    np.testing.assert_allclose(some, all_at_once, rtol=ROUNDING, atol=ROUNDING)


@hypothesis_settings(max_examples=15)
@given(pace=st.integers(0, 50), length=st.integers(WINDOW, 60))
def test_causal_scores_do_not_depend_on_the_slice(detectors, pace, length):
    """Means of rows are counted from the first row, so slices begin with one; each look needs its own window before."""
    data = plant(140, 3)
    lenses = [view.lens for view in detectors["causal"].model_.views]
    every = np.lcm.reduce([lens.every for lens in lenses])
    rows = sorted(lens.every * lens.window for lens in lenses)
    first, needed = rows[0], rows[-1]
    part = slice(pace // every * every, pace // every * every + needed + length)
    whole = detectors["causal"].decision_function(data)[part]
    alone = detectors["causal"].decision_function(data[part])
    assert np.isnan(alone).tolist() == [row < first - 1 for row in range(len(alone))]
    np.testing.assert_allclose(alone[needed - 1 :], whole[needed - 1 :], rtol=ROUNDING, atol=ROUNDING)


def test_causal_scores_ignore_the_future(detectors):
    data = plant(60, 4)
    changed = data.copy()
    changed[30:] += 100
    before, after = (detectors["causal"].decision_function(x)[:30] for x in (data, changed))
    np.testing.assert_allclose(before, after, rtol=ROUNDING, atol=ROUNDING)


@given(seed=st.integers(0, 10**6))
def test_permuting_sensors_permutes_the_shares(seed):
    rng = np.random.default_rng(seed)
    sensors, window = 5, 3
    adjacency, p = random_graph(sensors, rng), random_gaussian(sensors * window, rng)
    rows = rng.standard_normal((9, sensors)).astype(np.float32)
    sources = draw_sources(2, sensors, window, seed)
    order = rng.permutation(sensors)

    def shares(adjacency, p, rows, sources):
        spectrum = Spectrum.of(adjacency)
        path = Path.of(spectrum, 2.0)
        grid = stations(spectrum, path, sources, flow_times(4))
        band = torch.from_numpy(bands(spectrum.eigenvalues))
        return next(window_shares(GaussianOracle(p, spectrum, path, window), torch.from_numpy(rows), grid, band))

    plain = shares(adjacency, p, rows, sources)
    permuted = shares(adjacency[np.ix_(order, order)], p.permuted(order, window), rows[:, order], sources[:, order])
    torch.testing.assert_close(permuted.by_sensor, plain.by_sensor[:, :, order], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(permuted.by_band, plain.by_band, rtol=1e-3, atol=1e-4)
