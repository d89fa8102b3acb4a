"""GDN against literal re-derivations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graspad.bench.baselines.gdn import GDN, _Network

RNG = np.random.default_rng(6)
TRAIN, TEST = RNG.standard_normal((200, 6)), RNG.standard_normal((60, 6)) * np.arange(1, 7)


@pytest.mark.parametrize("itself", [True, False])
def test_attention_to_the_nearest_sensors(itself: bool) -> None:
    torch.manual_seed(0)
    network = _Network(sensors=6, window=5, width=8, neighbours=3, dropout=0.2, itself=itself).double().eval()
    with torch.no_grad():
        network.by_vectors.normal_()
        network.bias.normal_()
        for norm in (network.first_norm, network.second_norm):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    windows = torch.tensor(RNG.standard_normal((4, 6, 5)))
    weights = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    vectors = weights["vectors"]

    def normed(x: np.ndarray, norm: str) -> np.ndarray:
        mean, var = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
        return np.maximum((x - mean) / np.sqrt(var + 1e-5), 0)

    graph = network.graph().numpy()
    for window, ours in zip(windows.numpy(), network(windows).detach().numpy(), strict=True):
        features = [weights["features.weight"] @ row for row in window]
        for i in range(6):
            cosines = [v @ vectors[i] / np.linalg.norm(v) / np.linalg.norm(vectors[i]) for v in vectors]
            order = sorted(range(6), key=lambda j: -cosines[j])
            near = set(order[:3] if itself else order[1:4]) | {i}
            assert set(np.flatnonzero(graph[i])) == near
            strengths = {}
            for j in near:
                here = np.concatenate([features[i], vectors[i]])
                there = np.concatenate([features[j], vectors[j]])
                by = np.concatenate([weights["by_features"][:, 0], weights["by_vectors"][:, 0]], axis=1)
                strength = here @ by[0] + there @ by[1]
                strengths[j] = np.exp(strength if strength > 0 else 0.2 * strength)
            mixed = sum(strengths[j] * features[j] for j in near) / sum(strengths.values()) + weights["bias"]
            x = normed(normed(mixed, "first_norm") * vectors[i], "second_norm")
            np.testing.assert_allclose(ours[i], weights["head.1.weight"] @ x + weights["head.1.bias"], rtol=1e-6)


def _errors(method: GDN, rows: np.ndarray) -> np.ndarray:
    """The absolute errors (row, sensor) of the rows after the first five."""
    low, high = TRAIN.min(0), TRAIN.max(0)
    scaled = torch.tensor((rows - low) / (high - low), dtype=torch.float32)
    windows = torch.stack([scaled[t - 5 : t].T for t in range(5, len(rows))])
    with torch.no_grad():
        return (method._network(windows)[..., 0] - scaled[5:]).abs().double().numpy()


def test_published_scores_use_the_test_errors_and_begin_with_zeros() -> None:
    method = GDN(epochs=1, width=8)
    method.fit(TRAIN, seed=0)
    errors = _errors(method, TEST)
    smooth = np.zeros_like(errors)
    for sensor in range(6):
        e = errors[:, sensor]
        usual, spread = np.median(e), np.percentile(e, 75) - np.percentile(e, 25)
        a = (e - usual) / (spread + 0.01)
        for t in range(3, len(e)):
            smooth[t, sensor] = np.mean(a[t - 3 : t + 1])
    scores = method.score(TEST)
    np.testing.assert_allclose(scores.causal[5:], smooth.max(axis=1), rtol=1e-4, atol=1e-5)
    assert (scores.overlap[:8] == 0).all()


def test_fixed_scores_use_the_errors_of_the_block_held_out() -> None:
    method = GDN("fixed", epochs=1, width=8)
    method.fit(TRAIN, seed=0)
    begin = int(method._held_out.starts[0])
    usual = _errors(method, TRAIN)[begin : begin + 39]
    spread = np.percentile(usual, 75, axis=0) - np.percentile(usual, 25, axis=0)
    largest = ((_errors(method, TEST) - np.median(usual, axis=0)) / (spread + 0.01)).max(axis=1)
    expected = [np.mean(largest[max(0, t - 3) : t + 1]) for t in range(len(largest))]
    np.testing.assert_allclose(method.score(TEST).causal[5:], expected, rtol=1e-4, atol=1e-5)


def test_held_out_is_one_block_at_a_random_place() -> None:
    method, begins = GDN(epochs=1), set()
    method.fit(TRAIN, seed=0)
    for seed in range(30):
        torch.manual_seed(seed)
        trained, watched = method._split(TRAIN)
        assert watched.starts.tolist() == list(range(int(watched.starts[0]), int(watched.starts[0]) + 39))
        assert sorted(trained.starts.tolist() + watched.starts.tolist()) == list(range(195))
        begins.add(int(watched.starts[0]))
    assert len(begins) > 20


def test_two_sensors_are_enough() -> None:
    for mode in ("as-published", "fixed"):
        method = GDN(mode, epochs=1, width=8)
        method.fit(TRAIN[:, :2], seed=0)
        assert np.isfinite(method.score(TEST[:, :2]).overlap).all()
