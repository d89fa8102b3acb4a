"""Cross-fitting: every normal row is scored by a field that never saw it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graspad.config import CLOSED_FORM
from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.crossfit import best_ridge, cross_fit
from graspad.data.gaps import Rows
from graspad.detector import GraspDetector
from graspad.errors import InputError
from graspad.velocity.estimate import Estimator
from graspad.velocity.gaussian import GaussianField

WINDOW = 5


class Notebook:
    """Stands for estimator and field: remembers which rows it was fitted on. The value of a row is its number."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.seen = {int(value) for batch in windows.batches(16) for value in batch.flatten()}

    def all(self) -> Notebook:
        return self

    def without(self, left_out: torch.Tensor) -> Notebook:
        return Notebook(self.windows.some(~left_out))

    def with_more_noise(self, variance: float) -> Notebook:
        return self


def run(values: np.ndarray, blocks: int = 4):
    asked = []

    def score(field: Notebook, part: Rows) -> torch.Tensor:
        asked.append((field.seen, part.values[~part.lost].ravel().astype(int).tolist()))
        return torch.zeros(len(part.values) - WINDOW + 1, 1)

    rows = Rows.of(values, limit=0)
    starts = torch.from_numpy(np.flatnonzero(rows.whole_windows(WINDOW)))
    windows = Windows(torch.from_numpy(rows.values), WINDOW, starts)
    field, held_out = cross_fit(rows, windows, blocks, 0.1, Notebook(windows), score)
    return field, held_out, asked


def test_no_field_has_seen_the_rows_it_scores_and_all_rows_are_scored():
    field, held_out, asked = run(np.arange(83.0)[:, None])
    assert sorted(row for _, block in asked for row in block) == list(range(83))
    for seen, block in asked:
        assert not seen & set(block)
        assert len(seen) == 83 - len(block)
    assert field.seen == set(range(83))
    assert sum(len(part.rows.values) for part in held_out) == 83


def test_rows_in_a_gap_are_neither_learnt_from_nor_calibrated_on():
    values = np.arange(80.0)[:, None]
    values[30:33] = np.nan
    field, held_out, _ = run(values)
    assert not field.seen & {30, 31, 32}
    lost = held_out[1]
    assert len(lost.whole(WINDOW)) == 20 - WINDOW + 1 - (3 + WINDOW - 1)


def test_too_many_gaps_are_told():
    values = np.arange(80.0)[:, None]
    values[17:] = np.nan
    with pytest.raises(InputError, match="Too few of the rows lie 5 in a row"):
        run(values)


@pytest.mark.parametrize("noise", [0.0001, 0.01, 0.3])
def test_the_ridge_is_the_one_that_fits_held_out_windows_best(noise):
    """Few smooth signals in many sensors, with noise that the fit has too few windows to learn."""
    rng = np.random.default_rng(0)
    signals = np.sin(np.arange(260)[:, None] / np.array([7, 11]))
    rows = (signals @ rng.standard_normal((2, 12)) + np.sqrt(noise) * rng.standard_normal((260, 12))).astype(np.float32)
    spectrum = Spectrum.of(np.zeros((12, 12), dtype=bool))
    path = Path.of(spectrum, 2.0)
    starts = torch.arange(250 - 9)
    seen, new = Windows(torch.from_numpy(rows), 10, starts[:130]), Windows(torch.from_numpy(rows), 10, starts[140:])
    field = Estimator(seen, spectrum, path, None).all()
    losses = {ridge: _sampled_loss(field.with_more_noise(ridge), new, path) for ridge in CLOSED_FORM.ridges}
    assert best_ridge([(field, new)]) == min(losses, key=losses.get)


def _sampled_loss(field: GaussianField, windows: Windows, path: Path) -> float:
    """The weighted velocity error half-way along the flow, over many draws of the source."""
    t, generator = torch.tensor(0.5, dtype=torch.float64), torch.Generator().manual_seed(0)
    at, x1 = path.at(t), windows[slice(None)].double()
    total = 0.0
    for _ in range(20):
        x0 = torch.randn(x1.shape, generator=generator, dtype=torch.float64)
        xt = at.alpha[:, None] * x0 + at.beta[:, None] * x1
        target = at.d_alpha[:, None] * x0 + at.d_beta[:, None] * x1
        velocity = field(xt, t.expand(len(xt)))
        total += float((at.eta[:, None] * (velocity - target).square()).sum()) / len(x1)
    return total / 20


def test_a_field_without_some_windows_is_that_of_the_others():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.standard_normal((90, 4)).cumsum(axis=0).astype(np.float32) / 5)
    spectrum = Spectrum.of(np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool))
    path, windows = Path.of(spectrum, 2.0), Windows(rows, WINDOW, torch.arange(86))
    left_out = torch.arange(86) // 20 == 2
    for rank in (None, 3):
        one = Estimator(windows, spectrum, path, rank).without(left_out)
        other = Estimator(windows.some(~left_out), spectrum, path, rank).all()
        torch.testing.assert_close(one.mean, other.mean, rtol=1e-4, atol=1e-5)
        xt = torch.from_numpy(rng.standard_normal((3, 4, WINDOW)))
        t = torch.full((3,), 0.6, dtype=torch.float64)
        noisy = (field.with_more_noise(0.01)(xt, t) for field in (one, other))
        torch.testing.assert_close(*noisy, rtol=1e-3, atol=1e-3)


def test_levels_know_what_happens_seldom():
    """A burst in the middle of the data is normal; a single held-out part at the end would not know it."""
    rng = np.random.default_rng(0)
    quiet = rng.standard_normal((1500, 3))
    normal = quiet.copy()
    normal[600:640, 1] += 12 * np.hanning(40)
    normal[1000:1040, 1] += 12 * np.hanning(40)
    new = rng.standard_normal((300, 3))
    new[100:140, 1] += 12 * np.hanning(40)
    knows, never_saw = (GraspDetector(window=16, false_alarms=0.005).fit(rows) for rows in (normal, quiet))
    share = np.nanmax(knows.explain(new).by_sensor[:, 1])
    assert share < 0.7 * np.nanmax(never_saw.explain(new).by_sensor[:, 1])
    new[100:140, 1] += 60 * np.hanning(40)
    assert np.nanmax(knows.explain(new).by_sensor[:, 1]) > 1.3 * share
