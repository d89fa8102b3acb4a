"""What every deep baseline must do, on five sensors that follow two oscillations."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from jaxtyping import Float
from numpy import ndarray
from sklearn.metrics import roc_auc_score

from graspad.bench.method import Method, RowScores, Values
from graspad.bench.methods import _DEEP, METHODS
from graspad.errors import InputError

MODES = ("", "-fixed")
DEEP = [f"{name}{mode}" for name in _DEEP for mode in MODES]
FIXED = [name for name in DEEP if name.endswith("-fixed")]
# Rows to compare with; tests/bench/test_methods.py says what else they must do.
SIMPLE = ["energy-smooth", "limits-smooth", "mahalanobis-smooth", "knn-window"]

# Small enough for a second each; enough to learn two oscillations.
SMALL: dict[str, dict[str, object]] = {
    "autoencoder": {"epochs": 20},
    "usad": {"window": 16, "epochs": 20},
    "cnn": {"window": 16, "epochs": 20},
    "omnianomaly": {"window": 16, "epochs": 12, "learning_rate": 1e-2},
    "tranad": {"epochs": 8, "learning_rate": 3e-3},
    "anomaly-transformer": {"window": 16, "epochs": 4, "learning_rate": 1e-3, "width": 32, "layers": 2},
    "timesnet": {"window": 80, "epochs": 4, "learning_rate": 2e-2},
    "fits": {"window": 48, "epochs": 20, "frequencies": 6},
    "gdn": {"epochs": 10, "width": 16},
    "gcad": {"window": 30, "epochs": 60, "blocks": 2, "hidden": 64, "learning_rate": 3e-3},
    "catch": {
        **{"window": 80, "epochs": 4, "learning_rate": 1e-2, "stride": 16},
        **{"heads": 2, "head_width": 8, "band_width": 4},
    },
}

FAULTS = ("spike", "shift", "correlation")
# Faults that a method cannot be expected to find, and why.
BLIND = {
    ("energy-smooth", "correlation"): "it looks at each sensor alone",
    ("limits-smooth", "correlation"): "it looks at each sensor alone",
    ("autoencoder", "correlation"): "its scale hides amplitudes, its last layer hides values below the mean",
    ("usad", "correlation"): "a sigmoid cannot follow z-scores: the score is how far they are from [0, 1]",
    ("usad-fixed", "correlation"): "the second autoencoder learns to fail on what the first one makes of normal rows",
    ("omnianomaly", "correlation"): "its output is a constant: the score is how far z-scores are from there",
    ("tranad", "spike"): "the score is put four rows early",
    ("tranad", "shift"): "the score is put four rows early, and a sigmoid cannot follow z-scores",
    ("tranad", "correlation"): "a sigmoid cannot follow z-scores",
    **{("anomaly-transformer", kind): "the weight of an error is nearly 0 or 1, whatever the error" for kind in FAULTS},
    ("anomaly-transformer-fixed", "correlation"): "it is wide enough to rebuild each sensor from itself",
    ("timesnet", "spike"): "the score is put 39 rows early",
    ("timesnet", "correlation"): "the score is put 39 rows early",
    ("fits", "spike"): "the score of the last row is put on the centre of its window",
    **{(f"fits{mode}", "shift"): "each window has its own mean, and half of them lie in the shift" for mode in MODES},
    **{(f"fits{mode}", "correlation"): "it looks at each sensor alone" for mode in MODES},
    **{(f"gcad{mode}", "shift"): "each window has its own mean, and half of them lie in the shift" for mode in MODES},
}
# Methods that give many rows the same score: one is 0 within its limits; of the other, as published, the weight of most
# errors is 0 in float32.
TIED = {"limits-smooth", "anomaly-transformer"}


def plant(rows: int, seed: int) -> Float[ndarray, "row sensor"]:
    """Normal operation: what any two sensors do together is always the same."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows) + rng.integers(1000)
    slow, fast = np.sin(2 * np.pi * time / 37), np.sin(2 * np.pi * time / 23)
    return np.column_stack([slow, fast, slow + fast, slow - fast, -slow]) + 0.1 * rng.standard_normal((rows, 5))


TRAIN, TEST = plant(1500, seed=0), plant(400, seed=1)


def faulty(kind: str) -> tuple[Values, slice]:
    """The test rows with a fault in them, and where it is."""
    rows = TEST.copy()
    if kind == "spike":
        where = slice(200, 203)
        rows[where, 1] += 8
    elif kind == "shift":
        where = slice(180, 240)
        rows[where, 2] += 4
    else:  # a sensor that moves as it always does, but no longer with the others
        where = slice(180, 240)
        rows[where, 4] *= -1
    return rows, where


def small(name: str, **changes: object) -> Method:
    return METHODS[name](**SMALL.get(name.removesuffix("-fixed"), {}) | changes)


@cache
def fitted(name: str) -> Method:
    method = small(name)
    method.fit(TRAIN, seed=0)
    return method


def briefly(name: str, seed: int) -> RowScores:
    method = small(name, epochs=1)
    method.fit(TRAIN, seed)
    return method.score(TEST)


@pytest.mark.parametrize("name", DEEP)
def test_every_row_gets_a_finite_score_and_they_differ(name: str) -> None:
    scores = fitted(name).score(TEST)
    assert len(scores.overlap) == len(scores.causal) == len(TEST)
    assert np.isfinite(scores.overlap).all()
    without = np.isnan(scores.causal)
    assert without.sum() < len(TEST) // 4
    assert not without[without.sum() :].any()
    assert np.isfinite(scores.causal[without.sum() :]).all()
    assert len(np.unique(scores.overlap)) > len(TEST) // (20 if name in TIED else 2)


@pytest.mark.parametrize("name", DEEP)
def test_the_seed_decides_and_nothing_else_is_touched(name: str) -> None:
    first = briefly(name, seed=3)
    torch.rand(1)  # whatever others have drawn in between
    before = torch.get_rng_state()
    again, other = briefly(name, seed=3), briefly(name, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(first.overlap, again.overlap)
    np.testing.assert_array_equal(first.causal, again.causal)
    assert not np.array_equal(first.overlap, other.overlap)


@pytest.mark.parametrize(
    ("name", "kind"), [pair for pair in product(DEEP + SIMPLE, FAULTS) if pair not in BLIND], ids="-".join
)
def test_obvious_faults_are_found(name: str, kind: str) -> None:
    rows, where = faulty(kind)
    inside = np.zeros(len(rows), dtype=bool)
    inside[where] = True
    assert roc_auc_score(inside, fitted(name).score(rows).overlap) > 0.85


@pytest.mark.parametrize("name", FIXED + SIMPLE)
def test_honest_scores_know_nothing_of_later_rows(name: str) -> None:
    half = len(TEST) // 2
    rows = TEST.copy()
    rows[half:] = 1000 * np.random.default_rng(2).standard_normal(rows[half:].shape)
    before, after = fitted(name).score(TEST).causal, fitted(name).score(rows).causal
    np.testing.assert_allclose(after[:half], before[:half], rtol=1e-4)
    assert np.median(after[half:]) > np.median(before[half:])


@pytest.mark.parametrize("name", DEEP)
def test_bad_rows_are_told(name: str) -> None:
    method = fitted(name)
    few = method.settings["window"] - 1
    with pytest.raises(InputError, match=rf"windows of \d+ rows, but there are {few} test rows"):
        method.score(TEST[:few])
    with pytest.raises(InputError, match=rf"windows of \d+ rows, but there are {few} training rows"):
        small(name).fit(TRAIN[:few], seed=0)
    gap = TEST.copy()
    gap[7, 2] = np.nan
    with pytest.raises(InputError, match="row 7, sensor 2"):
        method.score(gap)
    with pytest.raises(InputError, match="row 7, sensor 2"):
        small(name).fit(gap, seed=0)
