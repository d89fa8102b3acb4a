"""GCAD against literal re-derivations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graspad.bench.baselines.deep.train import Batch
from graspad.bench.baselines.gcad import GCAD
from graspad.errors import InputError

RNG = np.random.default_rng(8)
MIX = RNG.standard_normal((4, 4))
TRAIN, TEST = (RNG.standard_normal((rows, 4)).cumsum(0) @ MIX for rows in (500, 80))
SMALL = {"window": 7, "blocks": 2, "hidden": 16, "epochs": 2}


def _fitted(mode: str, **changes: object) -> GCAD:
    method = GCAD(mode, **SMALL | changes)
    method.fit(TRAIN, seed=0)
    with torch.no_grad():  # an affine scale that is not the first one
        method._network.gain.uniform_(0.5, 2)
        method._network.gain[0] *= -1
        method._network.shift.normal_()
    return method


def _literal_influence(method: GCAD, windows: Batch) -> Tensor:
    """One pass back for each sensor's squared error; scale of the window held."""
    network = method._network
    x = windows[..., :-1].clone().requires_grad_()
    mean = x.detach().mean(dim=-1, keepdim=True)
    std = (x.detach().var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
    h = (x - mean) / std * network.gain + network.shift
    for block in network.blocks:
        flat = nn.functional.batch_norm(
            h.flatten(1), block.first_norm.running_mean, block.first_norm.running_var,
            block.first_norm.weight, block.first_norm.bias,
        )  # fmt: skip
        h = h + block.rows(flat.view_as(h)).relu()
        flat = nn.functional.batch_norm(
            h.flatten(1), block.second_norm.running_mean, block.second_norm.running_var,
            block.second_norm.weight, block.second_norm.bias,
        )  # fmt: skip
        h = h + block.narrow(block.wide(flat.view_as(h).transpose(1, 2)).relu()).transpose(1, 2)
    forecast = (network.head(h) - network.shift) / network.gain * std + mean
    torch.testing.assert_close(forecast, network(windows[..., :-1]))
    result = torch.zeros(len(x), 4, 4)
    for j in range(4):
        error = (forecast[:, j, 0] - windows[:, j, -1]).square().sum()
        (gradient,) = torch.autograd.grad(error, x, retain_graph=True)
        result[:, :, j] = gradient.abs().mean(dim=-1)
    for one in result:
        full = one.clone()
        for i in range(4):
            for j in range(4):
                value = full[i, j] if i == j else max(full[i, j] - full[j, i], torch.tensor(0.0))
                one[i, j] = value if value >= method.threshold else 0.0
    return result


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_influences_and_their_change(mode: str) -> None:
    method = _fitted(mode, threshold=0.05, beta=0.5)
    windows = method._windows(TEST, "test rows")[slice(0, 20)]
    expected = _literal_influence(method, windows)
    assert 0 < (expected == 0).float().mean() < 1
    with torch.no_grad():
        ours, errors = method._influence(windows), method._errors(windows)
    torch.testing.assert_close(ours, expected.mT, rtol=1e-3, atol=1e-5)
    usual = method._usual.T
    for one, error in zip(expected, errors, strict=True):
        if mode == "fixed":
            change = (one - usual).abs() / (usual + 1e-4)
            score = change.sum() / 16 + 0.5 * sum(change[i, i] for i in range(4)) / 16
        else:
            score = ((one - (usual + 1e-4)).abs() / (usual + 1e-4)).mean()
        torch.testing.assert_close(error, score, rtol=1e-3, atol=1e-4)


def test_usual_influences_are_means_over_training_windows() -> None:
    method = GCAD(**SMALL, sampled=1.0)
    method.fit(TRAIN, seed=0)
    windows, _ = method._split(TRAIN)
    expected = _literal_influence(method, windows[slice(None)]).mean(dim=0)
    torch.testing.assert_close(method._usual.T, expected, rtol=1e-3, atol=1e-4)
    part = GCAD(**SMALL, sampled=0.5)
    part.fit(TRAIN, seed=0)
    assert not torch.allclose(part._usual, method._usual)


def test_scale_is_of_the_first_part_and_the_rest_begins_a_window_earlier() -> None:
    method = _fitted("as-published")
    trained, watched = method._split(TRAIN)
    first = TRAIN[:400]
    expected = (TRAIN - first.mean(0)) / first.std(0)
    assert len(trained) == 400 - 7
    assert len(watched) == 100
    np.testing.assert_allclose(watched[slice(0, 1)][0].T, expected[393:401], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(trained[slice(392, 393)][0].T, expected[392:400], rtol=1e-4, atol=1e-4)


def test_scores_are_means_of_three() -> None:
    method = _fitted("fixed")
    errors = method._each(method._windows(TEST, "test rows"))
    scores = method.score(TEST)
    for row in range(8, 79):
        assert scores.overlap[row] == pytest.approx(errors[row - 8 : row - 5].mean())
        assert row < 9 or scores.causal[row] == pytest.approx(errors[row - 9 : row - 6].mean())
    assert np.isnan(scores.causal[:9]).all()


def test_too_few_rows_to_train_on_are_told() -> None:
    with pytest.raises(InputError, match="windows of 8 rows, but there are 1 training rows before those that are held"):
        GCAD(window=7).fit(TRAIN[:9], seed=0)
