"""TimesNet's periods and its merged convolutions, against literal re-derivations."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from graspad.bench.baselines.deep.train import Batch, seeded
from graspad.bench.baselines.timesnet import TimesNet, _Block, _Inception

RNG = np.random.default_rng(7)
TRAIN = RNG.standard_normal((300, 3)) @ RNG.standard_normal((3, 3)) + 5
TEST = RNG.standard_normal((90, 3)) @ RNG.standard_normal((3, 3)) + 5
ROWS = 21


def fitted(mode: str) -> tuple[TimesNet, Batch]:
    method = TimesNet(mode, window=ROWS, epochs=1)
    method.fit(TRAIN, seed=0)
    return method, method._windows(TEST, "test rows")[slice(0, 6)]


@settings(deadline=None)
@given(height=st.integers(1, 14), width=st.integers(1, 14), kernels=st.integers(1, 6))
def test_one_convolution_is_the_mean_of_all(height: int, width: int, kernels: int) -> None:
    with seeded(0):
        inception, image = _Inception(2, 3, kernels), torch.randn(2, 2, height, width)
        nn.init.normal_(inception.bias)
    parts = [
        nn.functional.conv2d(image, kernel, inception.bias, padding=reach)
        for reach, kernel in enumerate(inception.kernels)
    ]
    torch.testing.assert_close(inception(image), torch.stack(parts).mean(dim=0), atol=1e-4, rtol=1e-4)


def literal(block: _Block, window: Tensor, frequencies: list[int]) -> Tensor:
    """One window (width, row), folded at given frequencies."""
    amplitudes = torch.fft.rfft(window).abs().mean(dim=0)
    weights = torch.softmax(torch.stack([amplitudes[f] for f in frequencies]), dim=0)
    total = window
    for weight, frequency in zip(weights, frequencies, strict=True):
        period = ROWS // frequency
        lines = -(-ROWS // period)
        image = torch.zeros(len(window), lines, period)
        for row in range(ROWS):
            image[:, row // period, row % period] = window[:, row]
        image = block.convolutions(image[None])[0]
        total = total + weight * torch.stack([image[:, row // period, row % period] for row in range(ROWS)], dim=1)
    return total


def strongest(amplitudes: Tensor) -> list[int]:
    return sorted(range(1, len(amplitudes)), key=lambda f: -amplitudes[f].item())[:3]


def test_published_periods_are_those_of_the_batch_and_fixed_ones_of_each_window() -> None:
    time = torch.arange(float(ROWS))
    waves = torch.stack([torch.sin(2 * torch.pi * time * f / ROWS) for f in (1, 2, 4, 5, 6, 9)])
    noise = torch.from_numpy(RNG.standard_normal((6, 3, ROWS))).float()
    x = waves[:, None] * torch.tensor([1.0, 3.0, 2.0])[:, None] + 0.1 * noise
    amplitudes = torch.fft.rfft(x).abs().mean(dim=1)
    for of_batch in (True, False):
        block = _Block(3, 5, periods=3, kernels=3, of_batch=of_batch)
        for window, own, ours in zip(x, amplitudes, block(x), strict=True):
            frequencies = strongest(amplitudes.mean(dim=0) if of_batch else own)
            torch.testing.assert_close(ours, literal(block, window, frequencies), atol=1e-4, rtol=1e-4)


def test_only_the_published_score_of_a_window_depends_on_its_neighbours() -> None:
    for mode, same in (("as-published", False), ("fixed", True)):
        method, windows = fitted(mode)
        together, alone = method._errors(windows), torch.cat([method._errors(window[None]) for window in windows])
        assert torch.allclose(together, alone, rtol=1e-4) == same


def test_windows_are_rebuilt_by_their_own_mean_and_spread() -> None:
    method, windows = fitted("fixed")
    moved = 3 * windows + torch.tensor([100.0, -5.0, 0.0])[:, None]
    expected = 3 * method._network(windows) + torch.tensor([100.0, -5.0, 0.0])[:, None]
    torch.testing.assert_close(method._network(moved), expected, rtol=1e-3, atol=1e-2)


def test_the_rate_halves_with_each_epoch() -> None:
    method, _ = fitted("as-published")
    (step,) = method._steps()
    rates = []
    for _ in range(4):
        rates.append(step.optimizer.param_groups[0]["lr"])
        step.optimizer.step()
        step.schedule.step()
    np.testing.assert_allclose(rates, [1e-4, 5e-5, 2.5e-5, 1.25e-5])
