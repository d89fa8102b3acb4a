import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graspad.core.calibrate import Levels, by_others
from graspad.core.score import Shares

# 12 windows, 2 flow times, 3 sensors
energies = arrays(np.float32, (12, 2, 3), elements=st.floats(0.125, 1024, width=32))


def slow_level(held_out, window):
    """The level of some shares (time) from the definition: their mean over flow times, each in its own usual unit."""
    usual_share = np.quantile(held_out, 0.95, axis=0)
    return np.mean(held_out / usual_share, axis=1), np.mean(window / usual_share)


def slow_alone(held_out, window):
    """What the sensors count, each by itself."""
    ways = []
    for sensor in range(window.shape[1]):
        normal, level = slow_level(held_out[:, :, sensor], window[:, sensor])
        usual = np.quantile(normal, 0.95)
        ways.append(min(max(np.log(level / usual), 0) / max(np.log(normal.max() / usual), 0.2), 5))
    return sum(ways) + 8 * max(max(ways) - 1, 0)


def slow_together(held_out, window):
    """What all sensors count together."""
    normal, level = slow_level(held_out.sum(axis=2), window.sum(axis=1))
    begin, usual = np.quantile(np.log(normal), [0.9, 0.95])
    p = (np.log(level) - begin) / max(usual - begin, 0.05)
    return 2 * (p + np.sqrt(p**2 + 4 * 0.1**2)) / 2


def slow_score(held_out, window):
    """The calibrated score of one window."""
    return slow_alone(held_out, window) + slow_together(held_out, window)


@given(energies, energies)
def test_shares_stand_on_each_sensors_own_normal_scale(held_out, new):
    scores = Levels.of(torch.from_numpy(held_out)).apply(Shares(torch.from_numpy(new), None)).score
    expected = [slow_score(held_out.astype(np.float64), window.astype(np.float64)) for window in new]
    assert scores.tolist() == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_a_sensor_as_far_out_as_ever_in_normal_operation_adds_one():
    others = torch.ones(100, 1, 9)
    held_out = torch.cat([torch.cat([torch.ones(95, 1, 1), torch.full((5, 1, 1), 20.0)]), others], dim=2)
    levels = Levels.of(held_out)
    seen = torch.ones(3, 1, 10)
    seen[:, 0, 0] = torch.tensor([1.0, 20.0, 400.0])
    first = levels.apply(Shares(seen, None)).by_sensor[:, 0, 0]
    excess = first - levels.apply(Shares(seen, None)).by_sensor[:, 0, 1]
    assert excess[0] == pytest.approx(0, abs=1e-6)
    assert excess[1] > 1
    assert excess[2] > 2


def test_one_sensor_far_beyond_its_normal_way_outweighs_many_at_its_end():
    held_out = np.ones((100, 1, 10), dtype=np.float32)
    held_out[95:] = 4.0

    def of_each_alone(*first, rest):
        seen = np.full((1, 1, 10), rest, dtype=np.float32)
        seen[0, 0, : len(first)] = first
        score = Levels.of(torch.from_numpy(held_out)).apply(Shares(torch.from_numpy(seen), None)).score
        return float(score) - slow_together(held_out.astype(np.float64), seen[0].astype(np.float64))

    assert of_each_alone(rest=4.0) == pytest.approx(10, rel=1e-3)  # each at the end of its way
    assert of_each_alone(4.0**4, rest=1.0) > of_each_alone(rest=4.0)
    assert of_each_alone(4.0**20, rest=1.0) == pytest.approx(5 + 8 * 4, rel=1e-2)  # no sensor without limit


@given(st.lists(energies, min_size=2, max_size=4))
def test_each_part_is_scored_with_the_levels_of_the_others(parts):
    tensors = [torch.from_numpy(part) for part in parts]
    for index, shares in enumerate(by_others(tensors)):
        others = torch.cat([part for other, part in enumerate(tensors) if other != index])
        torch.testing.assert_close(shares.score, Levels.of(others).apply(Shares(tensors[index], None)).score)


def test_a_single_part_has_only_itself():
    part = torch.rand(20, 2, 3, generator=torch.Generator().manual_seed(0)) + 0.1
    (shares,) = by_others([part])
    torch.testing.assert_close(shares.score, Levels.of(part).apply(Shares(part, None)).score)


@given(energies, energies, st.floats(0.01, 100))
def test_a_louder_sensor_weighs_the_same_but_for_all_together(held_out, new, sensor):
    def alone(gain):
        normal, seen = held_out * gain, new * gain
        score = Levels.of(torch.from_numpy(normal)).apply(Shares(torch.from_numpy(seen), None)).score.numpy()
        together = [slow_together(normal.astype(np.float64), window.astype(np.float64)) for window in seen]
        return score - together

    loud = np.array([sensor, 1, 1], dtype=np.float32)
    assert alone(loud) == pytest.approx(alone(np.ones(3, dtype=np.float32)), rel=1e-3, abs=1e-2)


@given(energies, energies, st.lists(st.floats(0.01, 100), min_size=2, max_size=2))
def test_a_louder_flow_time_weighs_the_same(held_out, new, gains):
    def score(gain):
        normal, seen = (torch.from_numpy(part * gain) for part in (held_out, new))
        return Levels.of(normal).apply(Shares(seen, None)).score.numpy()

    loud = np.array(gains, dtype=np.float32)[:, None]
    assert score(loud) == pytest.approx(score(np.ones((2, 1), dtype=np.float32)), rel=1e-3, abs=1e-3)


@given(energies, energies)
def test_a_higher_share_never_lowers_the_score(held_out, new):
    levels = Levels.of(torch.from_numpy(held_out))
    higher = new.copy()
    higher[:, 0, 1] *= 2
    low, high = (levels.apply(Shares(torch.from_numpy(part), None)).score for part in (new, higher))
    assert (high > low - 1e-5).all()


@given(energies, energies)
def test_bands_keep_their_proportions_and_sum_to_the_score_at_every_flow_time(held_out, new):
    by_sensor = torch.from_numpy(new)
    by_band = by_sensor.sum(dim=2, keepdim=True) * torch.tensor([0.2, 0.5, 0.3, 0.0])
    shares = Levels.of(torch.from_numpy(held_out)).apply(Shares(by_sensor, by_band))
    torch.testing.assert_close(shares.by_band.sum(dim=2), shares.by_sensor.sum(dim=2), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        shares.by_band / shares.by_band.sum(dim=2, keepdim=True),
        by_band / by_band.sum(dim=2, keepdim=True),
        rtol=1e-4,
        atol=1e-6,
    )


def test_many_sensors_that_are_a_little_high_count_though_none_exceeds_its_usual_level():
    generator = torch.Generator().manual_seed(0)
    levels = Levels.of(torch.rand(500, 1, 30, generator=generator) + 1)
    usual, high = (levels.apply(Shares(torch.full((1, 1, 30), each), None)) for each in (1.5, 1.8))
    assert high.score > usual.score + 1
    torch.testing.assert_close(high.by_sensor, high.score.expand(30)[None, None] / 30, rtol=0.3, atol=0)
