import numpy as np
import pytest
import torch

from graspad.config import Velocity
from graspad.velocity.field import Dropout, build

KINDS = ["tsmixer", "gnn", "transformer"]
CHAIN = np.eye(6, k=1, dtype=bool) | np.eye(6, k=-1, dtype=bool)


def field(kind: str, seed: int = 0, **changes):
    return build(Velocity(kind=kind, hidden=16, **changes), 6, 9, CHAIN, seed).eval()


def state(seed: int = 0, batch: int = 4) -> torch.Tensor:
    return torch.randn(batch, 6, 9, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_velocity_has_the_shape_of_the_state(kind):
    assert field(kind)(state(), torch.rand(4)).shape == (4, 6, 9)


@pytest.mark.parametrize("kind", KINDS)
def test_velocity_depends_on_the_flow_time(kind):
    early, late = (field(kind)(state(), torch.full((4,), t)) for t in (0.1, 0.9))
    assert (early - late).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_windows_of_a_batch_do_not_mix(kind):
    x, t = state(), torch.rand(4)
    torch.testing.assert_close(field(kind)(x, t)[1:2], field(kind)(x[1:2], t[1:2]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_weights_and_the_global_generator_is_left_alone(kind):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = field(kind, 1), field(kind, 1), field(kind, 2)
    assert torch.equal(torch.rand(3), expected)
    x, t = state(), torch.rand(4)
    assert torch.equal(one(x, t), same(x, t))
    assert not torch.allclose(one(x, t), other(x, t))


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_trained(kind):
    model = field(kind)
    model(state(), torch.rand(4)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_tsmixer_mixes_rows_and_sensors():
    x = state()
    moved = x.clone()
    moved[:, 2, 3] += 1
    change = (field("tsmixer")(moved, torch.full((4,), 0.5)) - field("tsmixer")(x, torch.full((4,), 0.5))).abs()
    assert (change > 1e-6).float().mean() > 0.95


def test_gnn_reaches_as_far_as_it_has_blocks():
    """Two blocks carry a change two links along the chain and no further."""
    x = state()
    moved = x.clone()
    moved[:, 0] += 1
    change = (
        (field("gnn")(moved, torch.full((4,), 0.5)) - field("gnn")(x, torch.full((4,), 0.5))).abs().amax(dim=(0, 2))
    )
    assert (change[:3] > 1e-6).all()
    assert (change[3:] == 0).all()


def test_transformer_tells_sensors_apart():
    same = torch.ones(1, 6, 9)
    out = field("transformer")(same, torch.tensor([0.5]))
    assert (out[0, 0] - out[0, 1]).abs().max() > 1e-4


def test_dropout_keeps_the_mean_and_is_still_outside_training():
    torch.manual_seed(0)
    layer, ones = Dropout(0.1), torch.ones(1_000_001)  # not a multiple of four
    dropped = layer(ones)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.1, abs=0.002)
    torch.testing.assert_close(dropped[dropped != 0], torch.full_like(dropped[dropped != 0], 1 / 0.9))
    # Neighbours share a random number but must not fall together.
    gone = (dropped == 0).float()
    assert (gone[1:] * gone[:-1]).mean().item() == pytest.approx(0.01, abs=0.001)
    assert torch.equal(layer.eval()(ones), ones)
    assert torch.equal(Dropout(0.0)(ones), ones)
