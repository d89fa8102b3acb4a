"""Which reading of "hidden dimension 128" (Appendix C) makes the best TSMixer?

    GRASPAD_DATA=../shared/data python benchmarks/tsmixer_readings.py --out results/tsmixer_readings.csv

Three readings of where 128 stands, and one of them without dropout, trained for the same number of steps on series
picked by a rule fixed beforehand: every 17th SMAP series and every 8th SMD machine by name, starting with the first.
The choice is made on the held-out velocity loss, which needs no labels; PRC, ROC and Best-F1 (one source, ten flow
times, mean over the windows that cover a row) are printed beside it.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path as FilePath

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from torch import nn

from graspad.config import PAPER, Scoring, Training, Velocity
from graspad.core import graph
from graspad.core.path import Path
from graspad.core.score import draw_sources
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.data.scale import Scale
from graspad.model import Model
from graspad.train import train
from graspad.velocity.field import Field, WithFlowTime
from graspad.velocity.tsmixer import MixerBlock

VARIANTS = (("inside", 0.1), ("time axis", 0.1), ("sensor axis", 0.1), ("sensor axis", 0.0))


class Reading(Field):
    """TSMixer whose hidden state is `height` × `width`; `across` projects over sensors instead of over rows."""

    def __init__(self, settings: Velocity, n_sensors: int, window: int, where: str) -> None:
        super().__init__()
        self.across = where == "sensor axis"
        height = settings.hidden if where == "sensor axis" else n_sensors
        width = settings.hidden if where == "time axis" else window
        source, hidden = (n_sensors, height) if self.across else (window, width)
        self.project_in = WithFlowTime(settings.time_features, source, hidden)
        self.blocks = nn.Sequential(
            *(MixerBlock(height, width, settings.hidden, settings.dropout) for _ in range(settings.blocks))
        )
        self.project_out = nn.Linear(hidden, source)

    def forward(self, xt, t):
        if self.across:
            return self.project_out(self.blocks(self.project_in(xt.mT, t).mT).mT).mT
        return self.project_out(self.blocks(self.project_in(xt, t)))


def evaluate(folder: FilePath, series: str, where: str, dropout: float, steps: int, seed: int) -> dict[str, object]:
    train_rows, _ = read(folder / f"{series}_train.parquet")
    test_rows, labels = read(folder / f"{series}_test.parquet")
    cut = round(0.8 * len(train_rows))
    scale = Scale.of(train_rows[:cut])
    scaled = scale.apply(train_rows)
    adjacency = graph.from_data(scaled[:cut].astype(float))
    spectrum = Spectrum.of(adjacency)
    settings = PAPER.override(
        velocity=Velocity(dropout=dropout),
        scoring=Scoring(sources=1),
        training=Training(budget=steps, unit="steps", validate_every=100, anneal=True, validation_windows=1024),
    )
    torch.manual_seed(seed)
    field = Reading(settings.velocity, scaled.shape[1], settings.window, where)
    path = Path.of(spectrum, settings.tau)
    windows, held_out = (
        Windows(torch.from_numpy(part), settings.window, torch.arange(len(part) - settings.window + 1))
        for part in (scaled[:cut], scaled[cut:])
    )
    report = train(field, windows, held_out, spectrum, path, settings.training, seed)
    sources = draw_sources(settings.scoring.sources, scaled.shape[1], settings.window, seed)
    model = Model(settings, tuple(map(str, range(scaled.shape[1]))), scale, adjacency, spectrum, sources, field)
    began = time.perf_counter()
    scores = model.score(model.rows(test_rows))
    precision, recall, _ = precision_recall_curve(labels, scores)
    return {
        "series": series,
        "hidden_is": where,
        "dropout": dropout,
        "steps": steps,
        "seed": seed,
        "held_out_loss": round(report.best_loss, 5),
        "best_step": report.best_step,
        "prc": round(average_precision_score(labels, scores), 4),
        "roc": round(roc_auc_score(labels, scores), 4),
        "best_f1": round(float(np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))), 4),
        "fit_seconds": round(report.seconds, 1),
        "score_seconds": round(time.perf_counter() - began, 1),
    }


def read(file: FilePath) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_parquet(file)
    return frame.drop(columns=["timestamp", "is_anomaly"]).to_numpy(float), frame["is_anomaly"].to_numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=FilePath, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = FilePath(os.environ["GRASPAD_DATA"])
    picked = [
        (data / name, series) for name, step in (("SMAP", 17), ("SMD", 8)) for series in names(data / name)[::step]
    ]
    with options.out.open("w", newline="") as file:
        writer = None
        for folder, series in picked:
            for where, dropout in VARIANTS:
                row = evaluate(folder, series, where, dropout, options.steps, options.seed)
                writer = writer or csv.DictWriter(file, row)
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


def names(folder: FilePath) -> list[str]:
    return sorted(file.stem.removesuffix("_train") for file in folder.glob("*_train.parquet"))


if __name__ == "__main__":
    main()
