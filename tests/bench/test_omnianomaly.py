"""OmniAnomaly's published oddities, against literal re-derivations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from graspad.bench.baselines.deep.train import Batch, seeded
from graspad.bench.baselines.omnianomaly import OmniAnomaly

RNG = np.random.default_rng(7)
TRAIN = RNG.standard_normal((300, 3)) @ RNG.standard_normal((3, 3)) + 5
TEST = RNG.standard_normal((160, 3)) @ RNG.standard_normal((3, 3)) + 5
BATCH, ROWS, SENSORS = 6, 8, 3


def fitted(mode: str) -> tuple[OmniAnomaly, Batch]:
    method = OmniAnomaly(mode=mode, window=ROWS, epochs=1)
    method.fit(TRAIN, seed=0)
    return method, method._windows(TEST, "test rows")[slice(0, BATCH)]


def published(method: OmniAnomaly, windows: Batch, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Squared errors and divergences of each window: step t of lane b sees row t · batch + b of all rows in a line."""
    network = method._network
    line = torch.cat([window.T for window in windows])
    steps = [torch.stack([line[t * BATCH + b] for b in range(BATCH)]) for t in range(ROWS)]
    states, _ = network.recurrent(torch.stack(steps), state)
    latent = network.encoder(states)
    posterior = Normal(latent[..., :8], (latent[..., 8:] / 2).exp())
    rows = network.decoder(posterior.mean + posterior.stddev * torch.randn(ROWS, BATCH, 8)).flatten(0, 1)
    errors = torch.stack([(rows[i * ROWS : (i + 1) * ROWS] - windows[i].T).square().mean() for i in range(BATCH)])
    return errors, kl_divergence(posterior, Normal(0.0, 1.0))


def test_published_network_runs_across_windows_and_starts_at_random_but_once() -> None:
    method, windows = fitted("as-published")
    method._network.eval()
    for begins in (True, False, False):
        with seeded(3):
            ours = method._errors(windows)
        with seeded(3):
            state = None if begins else torch.rand(2, BATCH, 32)
            expected, _ = published(method, windows, state)
        torch.testing.assert_close(ours, expected)


def test_published_divergences_are_added_up() -> None:
    method, windows = fitted("as-published")
    method._network.train()
    with seeded(3):
        ours = method._loss(windows, epoch=1)
    with seeded(3):
        errors, divergence = published(method, windows, None)
    torch.testing.assert_close(ours, errors.mean() + 0.01 * divergence.sum() / BATCH)


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_scoring_again_gives_the_same(mode: str) -> None:
    method, _ = fitted(mode)
    np.testing.assert_array_equal(method.score(TEST).overlap, method.score(TEST).overlap)


def test_fixed_network_runs_along_the_rows_of_each_window_alone() -> None:
    method, windows = fitted("fixed")
    network = method._network
    for window, error in zip(windows, method._errors(windows), strict=True):
        states, _ = network.recurrent(window.T)
        rebuilt = network.decoder(network.encoder(states)[:, :8])
        torch.testing.assert_close(error, (rebuilt[-1] - window[:, -1]).square().mean())


def test_fixed_loss_keeps_the_latent_numbers_alive() -> None:
    rows = np.sin(np.arange(600) / 7)[:, None] * [1.0, -1.0, 2.0]
    spreads = {}
    for mode in ("as-published", "fixed"):
        method = OmniAnomaly(mode=mode, window=ROWS, epochs=8, learning_rate=1e-2)
        method.fit(rows, seed=0)
        rebuilt = method._network(method._windows(rows, "rows")[slice(0, 300)])[0][..., -1]
        spreads[mode] = rebuilt.std(dim=0).min().item()
    assert spreads["as-published"] < 0.02
    assert spreads["fixed"] > 0.2
