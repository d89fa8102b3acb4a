"""A trained field finds broken couplings that an untrained one does not; constant and random scores fail that check."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from graspad import GraspDetector
from graspad.config import PAPER, Scoring, Training

ROWS, FAULTS = 1500, [(300, 380), (700, 780), (1100, 1180)]
MIRROR = 2


def coupled(rows: int, seed: int) -> np.ndarray:
    """Six sensors driven by two hidden signals: what one sensor does, its partners do too."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    hidden = np.stack([np.sin(t / 11 + rng.random()), np.sin(t / 23 + rng.random())], axis=1)
    return hidden[:, [0, 0, 0, 1, 1, 1]] * [1, 0.8, -1, 1, 0.7, -0.9] + 0.05 * rng.standard_normal((rows, 6))


@pytest.fixture(scope="module")
def case():
    data, labels = coupled(ROWS, 1), np.zeros(ROWS, dtype=int)
    for start, end in FAULTS:
        # The sensor keeps its own normal course, but of another moment: its values stay in range. It is the one that
        # mirrors its partners, so the graph does not link it and only a learnt field can know the relation.
        data[start:end, MIRROR] = coupled(ROWS, 1)[start + 35 : end + 35, MIRROR]
        labels[start:end] = 1
    return data, labels


def fitted(budget: int) -> GraspDetector:
    training = Training(budget=budget, unit="steps", validate_every=50, batch_size=64)
    settings = PAPER.override(window=20, training=training, scoring=Scoring(sources=2, flow_times=5))
    return GraspDetector(settings, false_alarms=0.01).fit(coupled(3000, 0))


@pytest.fixture(scope="module")
def untrained_roc(case):
    data, labels = case
    # One step and no better loss on record: as good as untrained.
    return roc_auc_score(labels, fitted(1).decision_function(data))


def passes(scores: np.ndarray, labels: np.ndarray, untrained_roc: float) -> bool:
    return roc_auc_score(labels, scores) > max(untrained_roc + 0.1, 0.9)


def test_trained_field_passes(case, untrained_roc):
    data, labels = case
    detector = fitted(300)
    assert passes(detector.decision_function(data), labels, untrained_roc)
    assert detector.training_report_.best_loss < 0.6 * detector.training_report_.initial_loss
    start, end = FAULTS[0]
    assert detector.explain(data).top_sensors(start, end, count=1)[0][0] == str(MIRROR)


@pytest.mark.parametrize("scores", [np.zeros(ROWS), np.random.default_rng(0).random(ROWS)], ids=["constant", "random"])
def test_trivial_scores_fail(case, untrained_roc, scores):
    assert not passes(scores, case[1], untrained_roc)


def test_limits_on_single_sensors_fail(case, untrained_roc):
    """The fault is invisible sensor by sensor: the largest |z| of a row does not find it."""
    normal = coupled(3000, 0)
    z = np.abs((case[0] - normal.mean(axis=0)) / normal.std(axis=0)).max(axis=1)
    assert not passes(z, case[1], untrained_roc)
