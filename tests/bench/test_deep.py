"""The shared parts of the deep baselines and their published oddities, against literal re-derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

from graspad.bench.baselines.autoencoder import AutoEncoder
from graspad.bench.baselines.cnn import CNN
from graspad.bench.baselines.deep.place import on_rows
from graspad.bench.baselines.deep.scaling import by_itself, by_training, to_unit_range
from graspad.bench.baselines.deep.train import Batch, Plan, Step, seeded, train_network
from graspad.bench.baselines.usad import USAD
from graspad.bench.method import config_hash
from graspad.core.windows import Windows
from graspad.errors import InputError, InvalidSettingError

RNG = np.random.default_rng(7)
TRAIN = RNG.standard_normal((400, 3)) @ RNG.standard_normal((3, 3)) + 5
TEST = RNG.standard_normal((90, 3)) @ RNG.standard_normal((3, 3)) + 5


@given(span=st.integers(1, 9), windows=st.integers(1, 9))
def test_errors_are_placed_as_the_protocol_says(span: int, windows: int) -> None:
    errors = np.arange(1.0, windows + 1)
    before, after = math.ceil((span - 1) / 2), math.floor((span - 1) / 2)
    centred = [errors[0]] * before + list(errors) + [errors[-1]] * after
    np.testing.assert_array_equal(on_rows(errors, span, "centre").overlap, centred)
    np.testing.assert_array_equal(on_rows(errors, span, "last").overlap, [errors[0]] * (span - 1) + list(errors))
    for place in ("centre", "last"):
        np.testing.assert_array_equal(on_rows(errors, span, place).causal, [np.nan] * (span - 1) + list(errors))


def test_published_scales_hide_a_shift_between_training_and_test() -> None:
    moved = 3 * TEST + 100
    np.testing.assert_allclose(by_itself(TRAIN)(moved), by_itself(TRAIN)(TEST), atol=1e-5)
    np.testing.assert_allclose(by_itself(TRAIN)(TEST), (TEST - TEST.mean(0)) / TEST.std(0), atol=1e-5)
    np.testing.assert_allclose(by_training(TRAIN)(moved), (moved - TRAIN.mean(0)) / TRAIN.std(0), rtol=1e-5)
    np.testing.assert_allclose(
        to_unit_range(TRAIN)(moved), (moved - TRAIN.min(0)) / (TRAIN.max(0) - TRAIN.min(0)), rtol=1e-5
    )


@pytest.mark.parametrize("mode", ["as-published", "fixed"])
def test_the_last_fifth_is_held_out(mode: str) -> None:
    method = CNN(mode=mode, window=20, epochs=1)
    method.fit(TRAIN, seed=0)
    for windows, part in zip(method._split(TRAIN), (TRAIN[:320], TRAIN[320:]), strict=True):
        known = part if mode == "as-published" else TRAIN
        expected = (part - known.mean(0)) / known.std(0)
        assert len(windows) == len(part) - 20
        np.testing.assert_allclose(windows[slice(5, 6)][0].T, expected[5:26], atol=1e-5)


def test_a_window_is_held_out_at_least() -> None:
    method = CNN(window=100, epochs=1)
    method.fit(TRAIN, seed=0)
    trained, watched = method._split(TRAIN)
    assert (len(trained), len(watched)) == (400 - 101 - 100, 1)
    np.testing.assert_array_equal(method.held_out(TRAIN), TRAIN[-101:])


def test_too_few_rows_to_train_on_are_told() -> None:
    with pytest.raises(InputError, match="windows of 201 rows, but there are 199 training rows before the last 201"):
        USAD(window=201).fit(TRAIN, seed=0)


def test_modes_are_settings() -> None:
    with pytest.raises(InvalidSettingError, match=r"'mode'.*'as-published', 'fixed'.*Got 'new'"):
        CNN(mode="new")
    hashes = {config_hash(CNN(**fields).settings) for fields in ({}, {"mode": "fixed"}, {"window": 9}, {"epochs": 2})}
    assert len(hashes) == 4


# --- the training loop


class _Counter(Step):
    """Writes the number of the epoch into the network's weight and remembers its batches."""

    def __init__(self, network: nn.Linear) -> None:
        super().__init__(torch.optim.SGD(network.parameters(), lr=1.0), lambda windows, epoch: torch.tensor(0.0))
        self.network, self.seen = network, list[tuple[int, Tensor]]()

    def __call__(self, windows: Batch, epoch: int) -> None:
        assert self.network.training
        self.seen.append((epoch, windows[:, 0, 0]))
        nn.init.constant_(self.network.weight, epoch)


def _windows(count: int) -> Windows:
    return Windows(torch.arange(float(count))[:, None], 1, torch.arange(count))


@given(
    losses=st.lists(st.integers(0, 6), min_size=1, max_size=9),
    patience=st.integers(1, 3),
    min_delta=st.sampled_from([0.5, 1.5]),
    restore=st.booleans(),
)
def test_early_stopping(losses: list[int], patience: int, min_delta: float, restore: bool) -> None:
    network = nn.Linear(1, 1)
    plan = Plan(len(losses), patience=patience, min_delta=min_delta, restore=restore)
    watched = lambda windows, epoch: torch.tensor(float(losses[epoch - 1]))  # noqa: E731
    epochs = train_network(network, [_Counter(network)], watched, _windows(3), _windows(2), plan)

    best, best_epoch, expected = math.inf, 0, len(losses)
    for epoch, loss in enumerate(losses, start=1):
        if best - loss >= min_delta:
            best, best_epoch = loss, epoch
        elif epoch - best_epoch == patience:
            expected = epoch
            break
    assert epochs == expected
    assert network.weight.item() == (best_epoch if restore else expected)
    assert not network.training


def test_of_several_watched_losses_all_must_fall() -> None:
    network = nn.Linear(1, 1)
    told = [[3.0, 3.0], [2.0, 3.0], [1.0, 2.0], [0.0, 4.0]]
    plan = Plan(4, patience=9, restore=True)
    train_network(
        network, [_Counter(network)], lambda _, epoch: torch.tensor(told[epoch - 1]), _windows(3), _windows(2), plan
    )
    assert network.weight.item() == 3


def test_held_out_losses_are_means_over_windows() -> None:
    network, means = nn.Linear(1, 1), []

    def watched(windows: Batch, epoch: int) -> Tensor:
        assert not network.training
        assert not torch.is_grad_enabled()
        means.append((len(windows), windows.mean()))
        # 0 + … + 4 over batches of 4 and 1: the mean is 2, while the batches' means are 1.5 and 4.
        return windows.mean() if epoch == 1 else torch.tensor(2.0)

    plan = Plan(3, batch=4, patience=1, min_delta=0.1)
    assert train_network(network, [_Counter(network)], watched, _windows(3), _windows(5), plan) == 2
    assert [count for count, _ in means] == [4, 1, 4, 1]


@pytest.mark.parametrize(("count", "drop_last", "sizes"), [(10, False, [4, 4, 2]), (10, True, [4, 4]), (3, True, [3])])
def test_each_epoch_sees_the_windows_in_a_new_order(count: int, drop_last: bool, sizes: list[int]) -> None:
    network = nn.Linear(1, 1)
    counter = _Counter(network)
    with seeded(1):
        plan = Plan(2, batch=4, drop_last=drop_last)
        train_network(network, [counter], lambda *_: torch.tensor(0.0), _windows(count), None, plan)
    epochs = [[batch for epoch, batch in counter.seen if epoch == one] for one in (1, 2)]
    for batches in epochs:
        assert [len(batch) for batch in batches] == sizes
        rows = torch.cat(batches).tolist()
        assert len(set(rows)) == len(rows) == sum(sizes)
    assert torch.cat(epochs[0]).tolist() != torch.cat(epochs[1]).tolist()


def test_the_rate_changes_with_the_epoch_and_each_step_has_its_own_weights() -> None:
    one, other = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    for part in (one, other):
        nn.init.zeros_(part.weight)

    # The gradient of the first loss is 1 for both weights, of the second −1: each optimiser follows its own only.
    def total(windows: Batch, epoch: int) -> Tensor:
        return (one.weight + other.weight).sum()

    first, second = (torch.optim.SGD(part.parameters(), lr=1.0) for part in (one, other))
    steps = [Step(first, total, StepLR(first, 1, gamma=0.5)), Step(second, lambda *given: -total(*given))]
    train_network(nn.ModuleList([one, other]), steps, total, _windows(2), None, Plan(3, batch=2))
    assert one.weight.item() == -(1 + 0.5 + 0.25)
    assert other.weight.item() == 3


# --- what is said of each baseline


def _batch(method: USAD | CNN | AutoEncoder, count: int = 6) -> Batch:
    method.fit(TRAIN, seed=0)
    return method._windows(TEST, "test rows")[slice(0, count)]


def test_published_usad_loses_its_adversary() -> None:
    method = USAD(window=5, epochs=1)
    windows = _batch(method)
    network, x, n = method._network, windows.transpose(1, 2).reshape(6, 15), 3 + 1

    def mse(rebuilt: Tensor) -> Tensor:
        return ((x - rebuilt) ** 2).mean()

    one, two = network.first(network.encoder(x)), network.second(network.encoder(x))
    twice = network.second(network.encoder(one))
    literal = (mse(one) / n + (1 - 1 / n) * mse(twice)) + (mse(two) / n - (1 - 1 / n) * mse(twice))
    ours = method._loss(windows, epoch=3)
    weights = list(network.parameters())
    for given_, expected in zip(torch.autograd.grad(ours, weights), torch.autograd.grad(literal, weights), strict=True):
        torch.testing.assert_close(given_, expected)
    expected = 0.1 * ((x - one) ** 2).mean(1) + 0.9 * ((x - twice) ** 2).mean(1)
    torch.testing.assert_close(method._errors(windows), expected)


def test_fixed_usad_has_one_optimiser_for_each_autoencoder() -> None:
    method = USAD("fixed", window=5, epochs=1)
    windows = _batch(method)
    x = windows.mT.flatten(1)
    network = method._network
    one = network.first(network.encoder(x))
    twice, two = network.second(network.encoder(one)), network.second(network.encoder(x))
    first, second = method._first_loss(windows, 4), method._second_loss(windows, 4)
    torch.testing.assert_close(first, 0.25 * nn.functional.mse_loss(one, x) + 0.75 * nn.functional.mse_loss(twice, x))
    torch.testing.assert_close(second, 0.25 * nn.functional.mse_loss(two, x) - 0.75 * nn.functional.mse_loss(twice, x))
    for step, own, foreign in zip(method._steps(), ("first", "second"), ("second", "first"), strict=True):
        before = {name: weight.clone() for name, weight in network.named_parameters()}
        step(windows, 2)
        moved = {name.split(".")[0] for name, weight in network.named_parameters() if not weight.equal(before[name])}
        assert own in moved
        assert foreign not in moved


def test_published_cnn_reads_rows_as_sensors_and_pools_means_twice() -> None:
    method = CNN(window=12, epochs=1)
    windows = _batch(method)[..., :12]
    network = method._network.eval()
    memory = np.ascontiguousarray(windows.numpy().transpose(0, 2, 1)).reshape(6, 3, 12)
    pooled = network.convolutions(torch.from_numpy(memory)).mean(dim=2)
    expected = network.head(torch.cat([pooled, pooled], dim=1))
    torch.testing.assert_close(network(windows)[..., 0], expected)


def test_the_error_of_a_forecast_belongs_to_the_row_forecast() -> None:
    for mode in ("as-published", "fixed"):
        method = CNN(mode=mode, window=12, epochs=1)
        method.fit(TRAIN, seed=0)
        rows = TEST.copy()
        rows[40] += 1000
        scores = method.score(rows)
        assert scores.causal[40] > 20 * np.nanmax(scores.causal[:40])
        np.testing.assert_array_equal(scores.overlap[12:], scores.causal[12:])
        assert (scores.overlap[:12] == scores.causal[12]).all()


def test_published_autoencoder_scales_rows_first_and_cannot_go_below_the_mean() -> None:
    train = np.column_stack([TRAIN, np.full(len(TRAIN), -100.0)])  # always the smallest: 0 in every row
    test = np.column_stack([TEST, np.full(len(TEST), -100.0)])
    test[3, 3] = 0.0
    method = AutoEncoder(epochs=1)
    method.fit(train, seed=0)

    def rescaled(rows: np.ndarray) -> np.ndarray:
        return np.array([[(value - min(row)) / (max(row) - min(row)) for value in row] for row in rows])

    mean, std = rescaled(train).mean(0), rescaled(train).std(0)
    scaled = (rescaled(test) - mean) / np.array([*std[:3], 1e-8])
    batch = method._windows(test, "test rows")[slice(0, 90)]
    np.testing.assert_allclose(batch[..., 0], scaled, rtol=1e-4, atol=1e-3)
    assert (method._network(batch) >= 0).all()
    distances = (method._network(batch) - batch)[..., 0].square().sum(dim=1).sqrt()
    np.testing.assert_allclose(method.score(test).overlap, distances.detach(), rtol=1e-5)

    fixed = AutoEncoder("fixed", epochs=1)
    fixed.fit(train, seed=0)
    assert (fixed._network(fixed._windows(test, "test rows")[slice(0, 90)]) < 0).any()
