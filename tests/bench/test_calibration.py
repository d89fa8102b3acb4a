"""Methods without a threshold of their own get one from training rows that they did not learn from."""

from __future__ import annotations

import numpy as np
import pytest

from graspad.bench import calibration
from graspad.bench.method import Method, RowScores, Values
from graspad.bench.methods import METHODS, build
from graspad.errors import InputError


class Largest(Method):
    """Scores a row by its largest value; keeps what it was shown."""

    def __init__(self, first: int | None = None) -> None:
        self.first = first

    def fit(self, train: Values, seed: int) -> None:
        self.learnt, self.seed = train, seed

    def score(self, test: Values) -> RowScores:
        if len(test) < 10:
            raise InputError("too few")
        self.scored = test
        return RowScores.pointwise(test.max(axis=1))

    def held_out(self, train: Values) -> Values | None:
        return None if self.first is None else train[self.first :]


TRAIN = np.random.default_rng(0).standard_normal((5000, 3))
NEW = np.random.default_rng(1).standard_normal((20_000, 3))


def test_rows_that_were_learnt_from_do_not_calibrate() -> None:
    fitted, second = Largest(), Largest()
    fitted.fit(TRAIN, seed=3)
    raised = calibration.alarms(NEW.max(axis=1), fitted, lambda: second, TRAIN, seed=3)
    np.testing.assert_array_equal(second.learnt, TRAIN[:4000])
    np.testing.assert_array_equal(second.scored, TRAIN[4000:])
    assert second.seed == 3
    assert not hasattr(fitted, "scored")
    assert raised is not None
    # The highest of 1000 scores is passed by a thousandth of others, give or take chance.
    np.testing.assert_array_equal(raised, NEW.max(axis=1) > np.sort(TRAIN[4000:].max(axis=1))[-2])


def test_rows_that_a_method_holds_out_itself_are_taken() -> None:
    fitted = Largest(first=2000)
    fitted.fit(TRAIN, seed=0)
    raised = calibration.alarms(NEW.max(axis=1), fitted, lambda: pytest.fail("fitted again"), TRAIN, seed=0)
    np.testing.assert_array_equal(fitted.scored, TRAIN[2000:])
    assert raised is not None
    assert raised.mean() < 0.005


def test_too_few_rows_give_no_alarms_rather_than_wrong_ones() -> None:
    fitted = Largest()
    fitted.fit(TRAIN[:30], seed=0)
    assert calibration.alarms(NEW.max(axis=1), fitted, Largest, TRAIN[:30], seed=0) is None


def test_rows_without_a_score_give_no_threshold() -> None:
    class Silent(Largest):
        def score(self, test: Values) -> RowScores:
            return RowScores.pointwise(np.full(len(test), np.nan))

    assert calibration.alarms(np.zeros(5), Silent(), Silent, TRAIN, seed=0) is None


@pytest.mark.parametrize("name", [name for name, place in METHODS.items() if "_deep" in str(place)])
def test_held_out_rows_are_not_trained_on(name: str) -> None:
    """What a deep baseline calls held out may stop its training, but no window to train on holds any of it."""
    method = build(name)
    rows = np.arange(2000.0)[:, None] + np.zeros((1, 4))
    method._scaled = lambda part: part.astype(np.float32)  # the value of a row is its number
    trained, _ = method._split(rows)
    held_out = method.held_out(rows)
    if held_out is None:
        assert len(trained) == len(rows) - trained.length + 1
    else:
        assert len(held_out) > 50
        assert not set(held_out[:, 0]) & set(trained[:][:, 0].flatten().tolist())
