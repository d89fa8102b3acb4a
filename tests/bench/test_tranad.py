"""TranAD's published oddities, against literal re-derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy import ndarray
from torch import nn

from graspad.bench.baselines.deep.train import Batch
from graspad.bench.baselines.tranad import TranAD, _Layer

RNG = np.random.default_rng(7)
TRAIN = RNG.standard_normal((300, 3)) @ RNG.standard_normal((3, 3)) + 5
TEST = RNG.standard_normal((90, 3)) @ RNG.standard_normal((3, 3)) + 5
ROWS, SENSORS = 6, 3


def fitted(mode: str) -> tuple[TranAD, Batch]:
    method = TranAD(mode=mode, window=ROWS, epochs=2)
    method.fit(TRAIN, seed=0)
    return method, method._windows(TEST, "test rows")[slice(0, 5)]


def linear(layer: nn.Linear, x: ndarray) -> ndarray:
    return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


def attended(attention: nn.MultiheadAttention, asking: ndarray, asked: ndarray) -> ndarray:
    """Heads of two dimensions each, one after the other."""
    weights = np.split(attention.in_proj_weight.detach().numpy(), 3)
    biases = np.split(attention.in_proj_bias.detach().numpy(), 3)
    query, key, value = (x @ w.T + b for x, w, b in zip((asking, asked, asked), weights, biases, strict=True))
    heads = []
    for head in range(SENSORS):
        own = slice(2 * head, 2 * head + 2)
        shares = np.exp(query[:, own] @ key[:, own].T / math.sqrt(2))
        heads.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, own])
    return linear(attention.out_proj, np.concatenate(heads, axis=1))


def through(layer: _Layer, x: ndarray, asked: ndarray | None = None) -> ndarray:
    """No normalisation, and nothing between the two linear layers."""
    x = x + attended(layer.itself, x, x)
    if asked is not None:
        x = x + attended(layer.other, x, asked)
    return x + linear(layer.forth[3], linear(layer.forth[0], x))


def literal(method: TranAD, window: ndarray) -> tuple[ndarray, ndarray]:
    network, width = method._network, 2 * SENSORS
    angles = np.array([[t / 10_000 ** (j / width) for j in range(width)] for t in range(ROWS)])
    place = np.sin(angles) + np.cos(angles)
    query, rebuilt, errors = np.tile(window[-1:], 2), [], np.zeros_like(window)
    for decoder in (network.first, network.second):
        memory = through(network.encoder, np.hstack([window, errors]) * math.sqrt(SENSORS) + place)
        rebuilt.append(1 / (1 + np.exp(-linear(network.head[0], through(decoder, query, memory))[0])))
        errors = (rebuilt[0] - window) ** 2
    return rebuilt[0], rebuilt[1]


def test_published_network_is_linear_but_for_its_attention() -> None:
    method, windows = fitted("as-published")
    errors = method._errors(windows).detach().numpy()
    for window, error, first, second in zip(windows, errors, *method._network(windows), strict=True):
        expected = literal(method, window.numpy().T)
        np.testing.assert_allclose(first[0].detach(), expected[0], atol=1e-5)
        np.testing.assert_allclose(second[0].detach(), expected[1], atol=1e-5)
        np.testing.assert_allclose(error, ((expected[1] - window[:, -1].numpy()) ** 2).mean(), rtol=1e-4)


def test_a_leaky_relu_that_is_told_true_does_nothing() -> None:
    x = torch.linspace(-3, 3, 7)
    torch.testing.assert_close(nn.LeakyReLU(True)(x), x)
    published, fixed = (fitted(mode)[0]._network.encoder.forth[1] for mode in ("as-published", "fixed"))
    torch.testing.assert_close(published(x), x)
    torch.testing.assert_close(fixed(x), torch.where(x < 0, x / 100, x))


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_the_second_attempt_counts_more_from_epoch_to_epoch(mode: str) -> None:
    method, windows = fitted(mode)
    first, second = (nn.functional.mse_loss(x[:, 0], windows[..., -1]) for x in method._network(windows))
    torch.testing.assert_close(method._loss(windows, epoch=1), first)
    torch.testing.assert_close(method._loss(windows, epoch=4), first / 4 + 3 * second / 4)


def test_fixed_score_is_of_both_attempts() -> None:
    method, windows = fitted("fixed")
    first, second = ((x[:, 0] - windows[..., -1]).square().mean(dim=1) for x in method._network(windows))
    torch.testing.assert_close(method._errors(windows), (first + second) / 2)
