import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graspad.core.calibrate import Levels, by_others
from graspad.core.score import Shares

energies = arrays(np.float32, (12, 3), elements=st.floats(0.125, 1024, width=32))


@given(energies, energies)
def test_shares_stand_on_each_sensors_own_normal_scale(held_out, new):
    shares = Levels.of(torch.from_numpy(held_out)).apply(Shares(torch.from_numpy(new), None))
    for row, got in zip(new, shares.by_sensor, strict=True):
        excess = []
        for sensor, energy in enumerate(row):
            usual, highest = np.quantile(held_out[:, sensor], 0.9), held_out[:, sensor].max()
            z = energy / usual
            excess.append(max(np.log(z), 0) / max(np.log(highest / usual), 0.2) + 0.01 * np.log(1 + z))
        assert got.tolist() == pytest.approx(excess, rel=1e-3, abs=1e-3)


def test_a_sensor_as_far_out_as_ever_in_normal_operation_adds_one():
    held_out = torch.cat([torch.ones(95, 1), torch.full((5, 1), 20.0)])
    levels = Levels.of(held_out)
    shares = levels.apply(Shares(torch.tensor([[1.0], [20.0], [400.0]]), None)).by_sensor
    torch.testing.assert_close(shares[:, 0], torch.tensor([0.0, 1.0, 2.0]), atol=0.07, rtol=0)


@given(st.lists(energies, min_size=2, max_size=4))
def test_each_part_is_scored_with_the_levels_of_the_others(parts):
    tensors = [torch.from_numpy(part) for part in parts]
    for index, shares in enumerate(by_others(tensors)):
        others = torch.cat([part for other, part in enumerate(tensors) if other != index])
        torch.testing.assert_close(shares.score, Levels.of(others).apply(Shares(tensors[index], None)).score)


def test_a_single_part_has_only_itself():
    part = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)) + 0.1
    (shares,) = by_others([part])
    torch.testing.assert_close(shares.score, Levels.of(part).apply(Shares(part, None)).score)


@given(energies, energies, st.floats(0.01, 100))
def test_a_louder_sensor_weighs_the_same(held_out, new, volume):
    def score(gain):
        levels = Levels.of(torch.from_numpy(held_out * gain))
        return levels.apply(Shares(torch.from_numpy(new * gain), None)).score

    loud = np.array([volume, 1, 1], dtype=np.float32)
    torch.testing.assert_close(score(loud), score(np.ones(3, dtype=np.float32)), rtol=1e-3, atol=1e-3)


def test_bands_keep_their_proportions_and_sum_to_the_score():
    by_band = torch.rand(4, 2, 3, generator=torch.Generator().manual_seed(0)) + 0.1
    by_sensor = by_band.sum(dim=(1, 2))[:, None] * torch.tensor([0.7, 0.3])
    shares = Levels(torch.tensor([0.2, 0.1]), torch.tensor([1.0, 0.5])).apply(Shares(by_sensor, by_band))
    torch.testing.assert_close(shares.by_band.sum(dim=(1, 2)), shares.score)
    torch.testing.assert_close(
        shares.by_band / shares.by_band.sum(dim=(1, 2), keepdim=True), by_band / by_band.sum(dim=(1, 2), keepdim=True)
    )


def test_rows_below_every_level_score_next_to_nothing_but_can_be_ranked():
    levels = Levels(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
    low, high, over = levels.apply(Shares(torch.tensor([[0.5, 1.0], [0.6, 1.9], [2.0, 1.0]]), None)).score.tolist()
    assert 0 < low < high < 0.02
    assert over == pytest.approx(np.log(2), abs=0.02)
