"""FITS against a literal re-derivation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graspad.bench.baselines.fits import FITS, _Network
from graspad.errors import InvalidSettingError

RNG = np.random.default_rng(5)
TRAIN, TEST = RNG.standard_normal((300, 3)), RNG.standard_normal((120, 3))


def test_low_frequencies_of_every_fourth_row_give_the_window() -> None:
    windows = RNG.standard_normal((5, 3, 100)) * 3 + 7
    torch.manual_seed(0)
    network = _Network(sensors=3, every=4, frequencies=12)
    with torch.no_grad():
        network.weight.imag.normal_()
        network.bias.imag.normal_()
        rebuilt = network(torch.tensor(windows, dtype=torch.float32)).numpy()
    weight, bias = network.weight.detach().numpy(), network.bias.detach().numpy()
    for window, ours in zip(windows, rebuilt, strict=True):
        for sensor in range(3):
            kept = window[sensor][0:100:4]
            std = np.sqrt(kept.var(ddof=1) + 1e-5)
            spectrum = np.fft.rfft((kept - kept.mean()) / std)
            assert len(kept) == 25
            assert len(spectrum) == 13
            filled = np.zeros(51, dtype=complex)
            for k in range(48):
                filled[k] = sum(spectrum[j] * weight[sensor, j, k] for j in range(12)) + bias[sensor, 0, k]
            expected = np.fft.irfft(filled) * 4 * std + kept.mean()
            np.testing.assert_allclose(ours[sensor], expected, rtol=1e-3, atol=1e-3)


def test_it_begins_as_a_real_layer_cast_to_complex_numbers() -> None:
    torch.manual_seed(0)
    network = _Network(sensors=40, every=4, frequencies=12)
    real = torch.view_as_real(torch.cat([network.weight, network.bias], dim=1).detach())
    assert (real[..., 1] == 0).all()
    assert 0.95 * 12**-0.5 < real[..., 0].max() <= 12**-0.5
    assert -(12**-0.5) <= real[..., 0].min() < -0.95 * 12**-0.5


@pytest.mark.parametrize(("mode", "place"), [("as-published", 75), ("fixed", 98)])
def test_where_the_error_of_a_row_goes(mode: str, place: int) -> None:
    method = FITS(mode, window=48, frequencies=6, epochs=1)
    method.fit(TRAIN, seed=0)
    rows = TEST.copy()
    rows[98] += 100  # no fourth row of a window that ends here, so nothing but its own error
    scores = method.score(rows)
    assert np.argmax(scores.overlap) == place
    assert np.nanargmax(scores.causal) == 98


def test_windows_too_short_for_the_frequencies_are_told() -> None:
    with pytest.raises(InvalidSettingError, match="'window' parameter must be a multiple of 4"):
        FITS(window=50)
    with pytest.raises(InvalidSettingError, match="'frequencies' parameter must be at most 6"):
        FITS(window=48)
