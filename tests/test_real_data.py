"""Fit and score real telemetry, briefly: what must hold on any data holds on real data too."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from graspad import PAPER, RECIPE, GraspDetector
from graspad.config import Scoring, Training, Velocity
from graspad.stream import Stream

BRIEF_NETWORK = PAPER.override(
    velocity=Velocity(dropout=0.0),
    training=Training(budget=100, unit="steps", validate_every=50, batch_size=64, anneal=True, validation_windows=256),
    scoring=Scoring(sources=1, flow_times=4),
)
SETTINGS = {"recipe": RECIPE, "network": BRIEF_NETWORK}

# Rows around the first labelled incident of each series.
CASES = [
    ("SMAP_A-1", slice(0, None), slice(4000, 5300)),
    ("SMAP_E-7", slice(0, None), slice(4900, 6200)),
    ("SMD_machine-1-6", slice(0, 6000), slice(0, 1500)),
]


def read(folder: Path, series: str, split: str, rows: slice) -> tuple[pl.DataFrame, np.ndarray]:
    frame = pl.read_parquet(folder / series.split("_")[0] / f"{series}_{split}.parquet")[rows]
    return frame.drop("timestamp", "is_anomaly"), frame["is_anomaly"].to_numpy()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(("series", "train_rows", "test_rows"), CASES, ids=[case[0] for case in CASES])
def test_fit_and_score_real_series(real_data, series, train_rows, test_rows, settings):
    normal, _ = read(real_data, series, "train", train_rows)
    new, labels = read(real_data, series, "test", test_rows)
    assert 0 < labels.mean() < 1
    detector = GraspDetector(SETTINGS[settings], false_alarms=0.02).fit(normal)
    report = detector.training_report_
    assert report is None if settings == "recipe" else report.best_loss < 0.8 * report.initial_loss
    out = detector.score(new)
    assert len(out) == len(new)
    assert out["score"].is_finite().all()
    assert roc_auc_score(labels, out["score"]) > 0.55
    explanation = detector.explain(new[:200])
    np.testing.assert_allclose(explanation.by_sensor.sum(axis=1), explanation.score)
    np.testing.assert_allclose(explanation.by_band.sum(axis=1), explanation.score, rtol=1e-4, atol=1e-4)
    stream, batch = Stream(detector), detector.scores_by_alignment(new[:120])["causal"]
    np.testing.assert_allclose([stream.push(row).score for row in new[:120].to_numpy()], batch, rtol=1e-5, atol=1e-5)
