"""The Anomaly Transformer's two losses and its score, against literal re-derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graspad.bench.baselines.anomaly_transformer import AnomalyTransformer
from graspad.bench.baselines.deep.train import Batch

RNG = np.random.default_rng(7)
TRAIN = RNG.standard_normal((300, 3)) @ RNG.standard_normal((3, 3)) + 5
TEST = RNG.standard_normal((90, 3)) @ RNG.standard_normal((3, 3)) + 5
ROWS, WIDTH, HEADS, LAYERS = 7, 12, 4, 2


def fitted(mode: str) -> tuple[AnomalyTransformer, Batch]:
    method = AnomalyTransformer(mode, window=ROWS, epochs=1, width=WIDTH, heads=HEADS, layers=LAYERS)
    method.fit(TRAIN, seed=0)
    return method, method._windows(TEST, "test rows")[slice(0, 5)]


def literal(method: AnomalyTransformer, windows: Batch) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """What is rebuilt, and prior and attention of each layer (batch, head, row, row), one head at a time."""
    network = method._network
    x, associations = network.embedding(windows).transpose(1, 2), []
    for layer in network.layers:
        query, key, value, spread = layer.projection(x).split([WIDTH, WIDTH, WIDTH, HEADS], dim=2)
        priors, shares, mixed = [], [], []
        for head in range(HEADS):
            own = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            scores = torch.einsum("btd,bsd->bts", query[..., own], key[..., own]) / math.sqrt(WIDTH / HEADS)
            shares.append(torch.softmax(scores, dim=2))
            mixed.append(shares[-1] @ value[..., own])
            sigma = (3 ** (torch.sigmoid(5 * spread[..., head]) + 1e-5) - 1)[..., None]
            distance = torch.tensor([[abs(t - s) for s in range(ROWS)] for t in range(ROWS)])
            bell = torch.exp(-(distance**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
            priors.append(bell / bell.sum(dim=2, keepdim=True))
        associations.append((torch.stack(priors, dim=1), torch.stack(shares, dim=1)))
        x = layer.attended(x + layer.out(torch.cat(mixed, dim=2)))
        x = layer.ended(x + layer.forth(x))
    return network.head(x).transpose(1, 2), associations


def divergence(p: Tensor, q: Tensor) -> Tensor:
    return (p * (torch.log(p + 1e-4) - torch.log(q + 1e-4))).sum(dim=3).mean(dim=1)


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_one_pass_back_is_the_two_of_the_minimax_game(mode: str) -> None:
    method, windows = fitted(mode)
    weights = list(method._network.parameters())
    rebuilt, associations = literal(method, windows)
    error = nn.functional.mse_loss(rebuilt, windows)
    attention_gains = sum(
        (divergence(s, p.detach()) + divergence(p.detach(), s)).mean() / LAYERS for p, s in associations
    )
    prior_loses = sum((divergence(p, s.detach()) + divergence(s.detach(), p)).mean() / LAYERS for p, s in associations)
    losses = [error - 3 * attention_gains, error + 3 * prior_loses]
    first, second = (torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True) for loss in losses)
    ours = torch.autograd.grad(method._loss(windows, epoch=1), weights)
    for weight, given, one, other in zip(weights, ours, first, second, strict=True):
        expected = sum(part for part in (one, other) if part is not None)
        assert given.shape == weight.shape
        torch.testing.assert_close(given, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(method._watched(windows, epoch=1), torch.stack(losses))


def test_score_is_the_share_of_the_last_row_times_its_error() -> None:
    for mode, times in (("as-published", 50), ("fixed", 1 / LAYERS)):
        method, windows = fitted(mode)
        rebuilt, associations = literal(method, windows)
        total = sum(divergence(p, s) + divergence(s, p) for p, s in associations)
        shares = torch.exp(-times * total.double())
        share = shares[:, -1] / shares.sum(dim=1)
        errors = (rebuilt - windows).square().mean(dim=1)[:, -1]
        torch.testing.assert_close(method._errors(windows).double(), share * errors, rtol=1e-3, atol=1e-12)


def test_the_rate_halves_from_the_third_epoch_on() -> None:
    method, _ = fitted("as-published")
    (step,) = method._steps()
    rates = []
    for _ in range(5):
        rates.append(step.optimizer.param_groups[0]["lr"])
        step.optimizer.step()
        step.schedule.step()
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4])
