"""Shares measured against each sensor's own normal range, so that a few loud sensors do not drown the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from graspad.core.score import Shares

# A sensor counts where its share exceeds this quantile of its own normal shares …
_USUAL = 0.9
# … and faintly below: without that, all rows that stay below every level would tie.
_FAINT = 0.01
# The shortest way, in logarithms, from the usual to the highest normal share: a sensor that hardly varies in normal
# operation has next to none, and would count without limit.
_SHORTEST = 0.2


@dataclass(frozen=True)
class Levels:
    """What each sensor's share reaches in normal windows that the field was not fitted on.

    `usual` is the share that it seldom exceeds, `reach` the logarithm of its highest share over that.
    """

    usual: Float[Tensor, " sensor"]
    reach: Float[Tensor, " sensor"]

    @classmethod
    def of(cls, by_sensor: Float[Tensor, "window sensor"]) -> Levels:
        """Measure the levels on the shares of held-out normal windows."""
        usual = torch.from_numpy(np.quantile(by_sensor.numpy(), _USUAL, axis=0)).to(torch.float32)
        return cls(usual, (by_sensor.amax(dim=0) / usual).log().clamp(min=_SHORTEST))

    def apply(self, shares: Shares) -> Shares:
        """Σ_n log(max(z_n, 1)) / reach_n + 0.01 log(1 + z_n), z_n the share of sensor n in units of its usual one.

        A sensor adds 1 where it is as far out as it ever was in normal operation. These terms are the new shares by
        sensor. Bands have no level of their own: they keep their proportions and are scaled to the new score.
        """
        z = shares.by_sensor / self.usual
        by_sensor = z.clamp(min=1).log() / self.reach + _FAINT * z.log1p()
        if shares.by_band is None:
            return Shares(by_sensor, None)
        return Shares(by_sensor, shares.by_band * (by_sensor.sum(dim=1) / shares.score)[:, None, None])


def by_others(parts: Sequence[Float[Tensor, "_ sensor"]]) -> list[Shares]:
    """The calibrated shares of each part of the normal windows, with the levels of all other parts.

    Levels flatter the windows they were taken from, so that scores measured with them would promise too few alarms.
    """
    calibrated = []
    for index, part in enumerate(parts):
        others = [*parts[:index], *parts[index + 1 :]] or [part]
        calibrated.append(Levels.of(torch.cat(others)).apply(Shares(part, None)))
    return calibrated
