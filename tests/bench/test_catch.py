"""CATCH against literal re-derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from graspad.bench.baselines.catch import CATCH, _Layer, _Network, _Seldom
from graspad.bench.baselines.deep.train import seeded

RNG = np.random.default_rng(9)
TRAIN, TEST = RNG.standard_normal((300, 3)), RNG.standard_normal((110, 3))
SMALL = {
    **{"window": 32, "epochs": 1, "band": 8, "stride": 4, "width": 6, "heads": 2, "head_width": 5, "layers": 2},
    **{"hidden": 7, "band_width": 3, "neighbourhood": 12},
}


def _fitted(mode: str, **changes: object) -> CATCH:
    method = CATCH(mode, **SMALL | changes)
    method.fit(TRAIN, seed=0)
    return method


def _attention(layer: _Layer, x: Tensor, mask: Tensor, fixed: bool) -> tuple[Tensor, Tensor]:
    """A layer as usually written, one head at a time."""
    given = layer.norm(x)
    heads, cosines = [], []
    for head in range(2):
        own = slice(5 * head, 5 * head + 5)
        query, key, value = (part(given)[..., own] for part in (layer.query, layer.key, layer.value))
        scores = torch.einsum("bid,bjd->bij", query, key)
        cosines.append(torch.cosine_similarity(query[:, :, None], key[:, None], dim=-1))
        none = torch.where(mask == 0, -math.log(1e10), 0.0)
        logits = scores * mask / math.sqrt(5) + none if fixed else (scores * mask + none) / math.sqrt(5)
        heads.append(torch.softmax(logits, dim=-1) @ value)
    similar = torch.exp((cosines[0] + cosines[1]) / 2 / 0.07)
    clustering = -torch.log((similar * mask).sum(-1) / similar.sum(-1)).mean(1)
    regular = (torch.eye(3) - mask).abs().sum(dim=(1, 2)) / (3 * 2)
    x = x + layer.attended(torch.cat(heads, dim=-1))
    return x + layer.feed(x), (clustering + 0.5 * regular).mean()


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_masked_attention_and_its_contrast(mode: str) -> None:
    torch.manual_seed(0)
    layer = _Layer(CATCH(mode, **SMALL)).eval()
    x = torch.randn(10, 3, 6)
    mask = torch.clamp((torch.rand(10, 3, 3) > 0.5).float() + torch.eye(3), max=1)
    for ours, expected in zip(layer(x, mask), _attention(layer, x, mask, mode == "fixed"), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_from_rows_to_bands_and_back() -> None:
    torch.manual_seed(0)
    method = CATCH("fixed", **SMALL)
    network = _Network(3, method).eval()
    nn.init.normal_(network.mask.weight)
    windows = torch.randn(4, 3, 32) * 2 + 5
    rebuilt, spectrum, contrast = network(windows)
    scaled = (windows - windows.mean(2, keepdim=True)) / (windows.var(2, keepdim=True, unbiased=False) + 1e-5).sqrt()
    full = torch.fft.fft(scaled)
    tokens, contrasts = [], []
    for begin in range(0, 32 - 8 + 1, 4):
        part = full[..., begin : begin + 8]
        x = torch.cat([part.real, part.imag], dim=-1)
        mask = (network.mask(x) >= 0).float()
        for i in range(3):
            mask[:, i, i] = 1
        x = network.embed[0](x)
        for layer in network.layers:
            x, one = _attention(layer, x, mask, fixed=True)
            contrasts.append(one)
        tokens.append(network.to_bands[1](x))
    torch.testing.assert_close(contrast, torch.stack(contrasts).mean(), rtol=1e-4, atol=1e-5)
    halves = []
    for linear, _, head in (network.real, network.imaginary):
        x = torch.cat([linear(token) for token in tokens], dim=-1)
        for layer in head.adding:
            x = x + torch.relu(layer(x))
        halves.append(head.last(x))
    expected = torch.complex(*halves)
    torch.testing.assert_close(spectrum, expected, rtol=1e-3, atol=1e-4)
    back = torch.fft.ifft(expected)
    rows = network.to_rows(torch.cat([back.real, back.imag], dim=-1))
    std = (windows.var(2, keepdim=True, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(rebuilt, rows * std + windows.mean(2, keepdim=True), rtol=1e-3, atol=1e-3)
    loss = (rebuilt - windows).square().mean() + 0.005 * contrast + 0.005 * (spectrum - full).abs().mean()
    method._network = network
    torch.testing.assert_close(method._loss(windows, 1), loss)
    torch.testing.assert_close(method._watched(windows, 1), (rebuilt - windows).square().mean())


def test_masks_are_drawn_as_a_gumbel_softmax_would() -> None:
    torch.manual_seed(0)
    network = _Network(3, CATCH(**SMALL))
    nn.init.normal_(network.mask.weight)
    given = torch.randn(1, 3, 16) * 0.3
    keep = torch.sigmoid(network.mask(given))
    logits = torch.stack([torch.log(keep / (1 - keep)), torch.log((1 - keep) / keep)], dim=-1)
    often, off = 4000, ~torch.eye(3, dtype=torch.bool)
    literal = nn.functional.gumbel_softmax(logits.expand(often, 3, 3, 2), hard=True)[..., 0]
    for evaluated in (False, True):  # as published, at test as well
        ours = network.train(not evaluated).drawn(given.expand(often, 3, 16))
        assert torch.isin(ours.round(decimals=4), torch.tensor([0.0, 1.0])).all()
        torch.testing.assert_close(ours.mean(0)[off], literal.mean(0)[off], atol=0.04, rtol=0)
        assert (ours.diagonal(dim1=1, dim2=2) == 1).all()
        slopes = [
            torch.autograd.grad(m[:, off].mean(), network.mask.weight, retain_graph=True)[0] for m in (ours, literal)
        ]
        torch.testing.assert_close(*slopes, atol=0.01, rtol=0.1)


def test_fixed_masks_are_not_drawn_for_test_rows() -> None:
    torch.manual_seed(0)
    network = _Network(3, CATCH("fixed", **SMALL))
    given = torch.randn(500, 3, 16)
    assert network.eval().drawn(given).eq(1).all()
    assert 0.4 < network.train().drawn(given)[:, 0, 1].mean() < 0.6
    nn.init.normal_(network.mask.weight)
    likely = (network.mask(given) >= 0).float()
    torch.testing.assert_close(network.eval().drawn(given)[:, 0, 1:], likely[:, 0, 1:])


def test_learning_rates() -> None:
    rates: dict[str, list[list[float]]] = {"as-published": [], "fixed": []}
    for mode, seen in rates.items():
        method = _fitted(mode, learning_rate=0.02, mask_learning_rate=0.003)
        for step in method._steps():
            step.optimizer.step()
            seen.append([])
            for _ in range(4):
                seen[-1].append(step.optimizer.param_groups[0]["lr"])
                step.schedule.step()
    assert rates["fixed"] == [pytest.approx([0.003, 0.003, 0.0015, 0.00075]), pytest.approx([0.02, 0.02, 0.01, 0.005])]
    for step, top, seen in zip(_fitted("as-published")._steps(), (1e-3, 5e-3), rates["as-published"], strict=True):
        never_moved = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
        OneCycleLR(never_moved, max_lr=top, epochs=3, steps_per_epoch=50, pct_start=0.3)
        for name in ("lr", "betas"):
            assert step.optimizer.param_groups[0][name] == pytest.approx(never_moved.param_groups[0][name])
        assert seen[1:] == pytest.approx([0.02, 0.01, 0.005])


def test_the_mask_learns_seldom_on_all_gradients_since() -> None:
    weight = nn.Parameter(torch.zeros(()))
    step = _Seldom(torch.optim.SGD([weight], lr=1.0), lambda *_: weight, every=3)
    moves = []
    for epoch, batches in ((1, 7), (2, 4)):
        for _ in range(batches):
            before = weight.item()
            step(torch.zeros(1, 1, 1), epoch)
            weight.backward()  # as the other step does: 1 each time
            moves.append(before - weight.item())
    # After 2 batches of the first epoch, then 3; 2 are left over, 2 of the next epoch come on top.
    assert moves == [0, 0, 2, 0, 0, 3, 0, 0, 0, 4, 0]


def test_a_batch_in_parts_has_the_same_gradients() -> None:
    method = _fitted("fixed")
    method._network.eval()  # nothing is drawn
    windows = method._windows(TRAIN, "training rows")[slice(0, 75)]
    weights = list(method._network.to_rows.parameters())
    expected = torch.autograd.grad(method._loss(windows, 1), weights)
    method._steps()[1](windows, 1)
    for weight, gradient in zip(weights, expected, strict=True):
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
@pytest.mark.parametrize("rows", [96, 110])
def test_rows_are_scored_in_windows_side_by_side(mode: str, rows: int) -> None:
    method = _fitted(mode)
    test = TEST[:rows]
    scores = method.score(test).overlap
    first = TRAIN[:240]
    scaled = torch.tensor((test - first.mean(0)) / first.std(0), dtype=torch.float32)
    begins = [0, 32, 64] + ([78] if mode == "fixed" and rows == 110 else [])
    windows = torch.stack([scaled[begin : begin + 32].T for begin in begins])
    with seeded(0), torch.no_grad():  # published masks are drawn: the same ones here
        residual = (method._network(windows)[0] - windows).numpy()
    expected = np.zeros(rows)
    for begin, window in zip(begins, residual, strict=True):
        sums, counts = np.zeros((3, 32)), np.zeros(32)
        for start in range(32 - 12 + 1):
            sums[:, start : start + 12] += np.abs(np.fft.fft(window[:, start : start + 12])).mean(axis=1)[:, None]
            counts[start : start + 12] += 1
        score = (window**2).mean(axis=0) + 0.5 * (sums / counts).mean(axis=0)
        new = slice(96, 110) if begin == 78 else slice(begin, begin + 32)
        expected[new] = score[-14:] if begin == 78 else score
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-5)
    assert ((scores[96:] == 0).all() if mode == "as-published" else (scores[96:] > 0).all()) or rows == 96


def test_what_is_known_at_a_row_is_the_error_at_the_end_of_its_window() -> None:
    method = _fitted("fixed")
    last = method._row_errors(method._windows(TEST, "test rows")[slice(0, 79)])[:, -1]
    np.testing.assert_allclose(method.score(TEST).causal[31:], last, rtol=1e-3)


def test_the_mask_learns_at_least_once_in_a_short_epoch() -> None:
    method = _fitted("as-published")
    assert method._steps()[0].every == 1
    assert method._network.mask.weight.abs().max() > 0
