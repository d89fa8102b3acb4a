"""Baselines against literal re-derivations; GRASP's variants against the detector."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench import grasp
from graspad.bench.baselines.copod import COPOD
from graspad.bench.baselines.hbos import HBOS
from graspad.bench.baselines.knn_window import KNNWindow
from graspad.bench.baselines.trivial import Energy, Limits, Mahalanobis, Smoothed
from graspad.bench.method import RowScores, config_hash
from graspad.bench.methods import METHODS, build, chosen
from graspad.config import CALIBRATION
from graspad.detector import GraspDetector

RNG = np.random.default_rng(5)
# The last fifth must show a false-alarm rate of 1/1000, GRASP's default.
TRAIN = RNG.standard_normal((5200, 4)) @ RNG.standard_normal((4, 4))
TEST = RNG.standard_normal((90, 4)) @ RNG.standard_normal((4, 4))

QUICK = ["grasp", "grasp-mean", "grasp-er", "grasp-lin", "grasp-times-2", "grasp-tau-8"]
QUICK += ["hbos", "copod", "random", "constant", "hbos-smooth", "energy-smooth", "mahalanobis-smooth", "knn-window"]


@pytest.mark.parametrize("name", QUICK)
def test_every_row_gets_a_score_and_the_seed_decides(name: str) -> None:
    first, again = build(name), build(name)
    first.fit(TRAIN, seed=3)
    again.fit(TRAIN, seed=3)
    one, other = first.score(TEST), again.score(TEST)
    assert len(one.overlap) == len(one.causal) == len(TEST)
    assert np.isfinite(one.overlap).all()
    np.testing.assert_array_equal(one.overlap, other.overlap)
    np.testing.assert_array_equal(one.causal, other.causal)
    if name != "constant":
        assert np.ptp(one.overlap) > 0


@pytest.mark.parametrize("name", [name for name in QUICK if name not in ("random", "grasp-er")])
def test_methods_that_say_so_do_not_depend_on_the_seed(name: str) -> None:
    scores = []
    for seed in (0, 1):
        method = build(name)
        assert not method.seeded
        method.fit(TRAIN, seed)
        scores.append(method.score(TEST).overlap)
    np.testing.assert_array_equal(*scores)


def test_causal_scores_do_not_look_ahead() -> None:
    for name in ("grasp", "energy-smooth", "limits-smooth", "mahalanobis-smooth", "knn-window"):
        method = build(name)
        method.fit(TRAIN, 0)
        whole, part = method.score(TEST).causal, method.score(TEST[:70]).causal
        np.testing.assert_allclose(part, whole[:70], rtol=1e-5, err_msg=name)


def test_own_scale_sees_no_shift_between_training_and_test() -> None:
    shifted = TEST * [1.0, 3.0, 0.2, 10.0] + [5.0, 0.0, -2.0, 40.0]
    for name, alike in (("grasp-sum-own-scale", True), ("grasp-sum", False)):
        method = build(name)
        method.fit(TRAIN, 0)
        here, there = method.score(TEST).overlap, method.score(shifted).overlap
        assert np.allclose(here, there, rtol=1e-4) == alike, name


def test_hbos_by_hand() -> None:
    bins, total = 5, np.zeros(len(TEST))
    rows = np.array([[(value - np.mean(row)) / np.std(row, ddof=1) for value in row] for row in TEST])
    for column in rows.T:
        low, high = column.min(), column.max()
        width = (high - low) / bins
        counts = [0] * bins
        for value in column:  # numpy counts with bins closed on the left …
            counts[min(int((value - low) / width), bins - 1)] += 1
        for index, value in enumerate(column):  # … and the method looks them up closed on the right
            place = max(math.ceil((value - low) / width - 1e-12) - 1, 0)
            total[index] -= math.log2(counts[place] / (len(column) * width) + 0.1)
    np.testing.assert_allclose(HBOS(bins).score(TEST).overlap, total, rtol=1e-10)


def test_hbos_takes_sensors_that_all_agree() -> None:
    assert np.ptp(HBOS().score(np.ones((20, 3))).overlap) == 0
    nearly = np.ones((20, 3)) + np.arange(60).reshape(20, 3) * 1e-16
    assert np.isfinite(HBOS().score(nearly).overlap).all()


def test_copod_by_hand() -> None:
    rows = np.array([[(value - np.mean(row)) / np.std(row, ddof=1) for value in row] for row in TEST])
    total = np.zeros(len(rows))
    for column in rows.T:
        third = np.mean((column - column.mean()) ** 3)
        for index, value in enumerate(column):
            left = -math.log(np.mean(column <= value))
            right = -math.log(np.mean(column >= value))
            total[index] += max(left if third < 0 else right, (left + right) / 2)
    np.testing.assert_allclose(COPOD().score(TEST).overlap, total, rtol=1e-10)


@given(rows=st.integers(1, 12), count=st.integers(1, 30), seed=st.integers(0, 99))
def test_running_means_by_hand(rows: int, count: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(count)
    averaged = RowScores.pointwise(values).averaged(rows)
    for row in range(count):
        around = values[max(row - rows // 2, 0) : row - rows // 2 + rows]
        up_to = values[max(row - rows + 1, 0) : row + 1]
        assert averaged.overlap[row] == pytest.approx(around.mean(), abs=1e-12)
        assert averaged.causal[row] == pytest.approx(up_to.mean(), abs=1e-12)


def test_energy_and_mahalanobis_by_hand() -> None:
    z = (TEST - TRAIN.mean(axis=0)) / TRAIN.std(axis=0)
    energy, mahalanobis = Energy(), Mahalanobis(ridge=0.001)
    energy.fit(TRAIN, 0)
    mahalanobis.fit(TRAIN, 0)
    np.testing.assert_allclose(energy.score(TEST).overlap, [np.mean(row**2) for row in z], rtol=1e-5)
    covariance = np.cov(((TRAIN - TRAIN.mean(axis=0)) / TRAIN.std(axis=0)).T) + 0.001 * np.eye(4)
    expected = [row @ np.linalg.solve(covariance, row) for row in z]
    np.testing.assert_allclose(mahalanobis.score(TEST).overlap, expected, rtol=1e-4)


def test_limits_by_hand() -> None:
    train = np.array([[1.0, 7.0], [3.0, 7.0], [2.0, 7.0]])
    method = Limits()
    method.fit(train, 0)
    # Within; one span above; half a span below; a sensor that never moved, by two of its units.
    test = np.array([[2.5, 7.0], [5.0, 7.0], [0.0, 7.0], [1.0, 5.0]])
    np.testing.assert_allclose(method.score(test).overlap, [0.0, 0.5, 0.125, 2.0])


def test_mahalanobis_of_a_single_sensor() -> None:
    method = Smoothed(Mahalanobis())
    method.fit(TRAIN[:, :1], 0)
    assert np.isfinite(method.score(TEST[:, :1]).overlap).all()


def test_nearest_windows_by_hand() -> None:
    method = KNNWindow(window=8, neighbours=3, memory=10_000)
    known = TRAIN[:400]
    method.fit(known, 0)
    mean, std = known.mean(axis=0), known.std(axis=0)
    train = [((known - mean) / std)[start : start + 8] for start in range(len(known) - 7)]
    test = [((TEST - mean) / std)[start : start + 8] for start in range(len(TEST) - 7)]
    distances = [np.mean(sorted(math.sqrt(((one - other) ** 2).sum()) for other in train)[:3]) for one in test]
    scores = method.score(TEST)
    np.testing.assert_allclose(scores.causal[7:], distances, rtol=1e-4)
    for row in (0, 3, 40, 89):
        covering = [distances[start] for start in range(row - 7, row + 1) if 0 <= start < len(distances)]
        assert scores.overlap[row] == pytest.approx(np.mean(covering), rel=1e-4)


@pytest.mark.parametrize("name", ["grasp", "grasp-er", "grasp-lin"])
def test_grasp_scores_as_the_detector_does(name: str) -> None:
    method = build(name)
    method.fit(TRAIN, seed=2)
    scores = method.score(TEST)
    for align, ours in (("overlap", scores.overlap), ("causal", scores.causal)):
        detector = GraspDetector(method.preset, graph=method.graph, seed=2, align=align, false_alarms=0.05)
        np.testing.assert_allclose(detector.fit(TRAIN).decision_function(TEST), ours, rtol=1e-6)


def test_variants_differ_from_the_recipe_in_what_their_name_says() -> None:
    def difference(name: str, base: str) -> dict[str, object]:
        ours, theirs = _flat(build(name).settings), _flat(build(base).settings)
        return {key: value for key, value in ours.items() if theirs.get(key) != value}

    for whole in ("grasp", "grasp-tsmixer", "grasp-gnn"):
        assert difference(f"{whole}-mean", whole) == {"scoring.weights": "uniform"}
        assert difference(f"{whole}-er", f"{whole}-mean") == {"graph": "random"}
        assert difference(f"{whole}-lin", f"{whole}-mean") == {"tau": 0.0}
    assert difference("grasp-gnn", "grasp") == {"velocity.kind": "gnn", "training.batch_size": 64}
    assert difference("grasp-gnn", "grasp-tsmixer") == {"velocity.kind": "gnn"}
    for name in METHODS:
        parts = name.rsplit("-", 1)
        if parts[0] == "grasp-tau":
            assert _flat(build(name).settings)["tau"] == float(parts[1])
        if parts[0] == "grasp-times":
            assert _flat(build(name).settings)["scoring.flow_times"] == int(parts[1])
        if parts[0] == "grasp-sources":
            assert _flat(build(name).settings)["scoring.sources"] == int(parts[1])
            assert _flat(build(name).settings)["velocity.kind"] != "gaussian"


def test_what_is_said_of_a_method_tells_it_from_all_others() -> None:
    methods = {name: build(name) for name in METHODS}
    told = {(type(method), config_hash(method.settings)): method.about for method in methods.values()}
    assert len(set(told.values())) == len(told), "two different methods are described alike"
    assert methods["grasp"].about == "Our recipe."
    assert methods["grasp-lin"].about == "Our recipe with tau 0.0, weights uniform."
    assert methods["gdn-fixed"].about == methods["gdn"].about.replace("As published.", "Fixed.")


def _flat(settings: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def test_settings_tell_every_number_of_the_calibration(monkeypatch):
    """Results of a recipe whose numbers have changed since must not pass for those of today's."""
    before = config_hash(build("grasp").settings), config_hash(build("grasp-paper").settings)
    monkeypatch.setattr(grasp, "CALIBRATION", CALIBRATION.model_copy(update={"farthest": 3.0}))
    assert config_hash(build("grasp").settings) != before[0]
    assert config_hash(build("grasp-paper").settings) == before[1]  # it is not calibrated


def test_all_is_the_main_table():
    names = list(chosen(["all"]))
    assert len(names) == 13 + 1 + 7
    assert {"hbos", "catch", "grasp", "random", "energy-smooth"} < set(names)
    assert not any(name.startswith("grasp-") or name.endswith("-fixed") for name in names)
