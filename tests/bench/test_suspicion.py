"""Ways to suspect a sensor, on three that belong together."""

from __future__ import annotations

import numpy as np
import pytest

from graspad import GraspDetector
from graspad.bench.suspicion import OURS, Witness, suspicions
from graspad.config import RECIPE
from graspad.data.gaps import Rows
from graspad.model import Model

BROKEN = 1


def together(rng: np.random.Generator, rows: int) -> np.ndarray:
    common = np.sin(np.arange(rows) / 9)[:, None] + 0.2 * rng.standard_normal((rows, 1))
    return common + 0.1 * rng.standard_normal((rows, 3))


@pytest.fixture(scope="module")
def model() -> Model:
    settings = RECIPE.override(window=8, scoring=dict(RECIPE.scoring) | {"looks": ()})
    return GraspDetector(settings, false_alarms=0.02).fit(together(np.random.default_rng(0), 600)).model_


@pytest.fixture(scope="module")
def witness(model: Model) -> Witness:
    return Witness.of(model, model.rows(together(np.random.default_rng(0), 600)))


@pytest.fixture(scope="module")
def healthy(model: Model) -> Rows:
    return model.rows(together(np.random.default_rng(1), 300))


@pytest.fixture(scope="module")
def broken(model: Model) -> Rows:
    values = together(np.random.default_rng(1), 300)
    values[250:260, BROKEN] += 3.0
    return model.rows(values)


def test_what_the_others_say_of_a_sensor_does_not_depend_on_it(witness, healthy, broken):
    for time in ("1/6", "3/6", "5/6"):
        left_out = witness.expectations[f"left out, {time}"]
        before, after = left_out.of_rows(healthy), left_out.of_rows(broken)
        np.testing.assert_allclose(after[:, BROKEN], before[:, BROKEN], atol=1e-4)
        # The others are now expected elsewhere.
        assert np.abs(after - before)[250:260, [0, 2]].max() > 0.1


def test_expected_is_what_the_model_expects(model, witness, broken):
    expected = model.scale.undo(witness.expectations["expected, 1/6"].of_rows(broken))
    np.testing.assert_allclose(expected, model.expected(broken), atol=1e-5)


def test_residuals_are_measured_in_units_of_training(witness, healthy):
    for name, squares in witness.surprise(healthy).items():
        assert 0.5 < np.nanmean(squares) < 2, name


def test_a_sensor_that_leaves_its_partners_is_suspected_in_every_way(model, witness, broken):
    told = model.explain(broken)
    ways = suspicions(witness.surprise(broken), told, model.means, broken, 250, 260, np.random.default_rng(0), reach=0)
    assert OURS in ways
    assert all(way.shape == (3,) for way in ways.values())
    assert all(way.argmax() == BROKEN for name, way in ways.items() if name != "random")
