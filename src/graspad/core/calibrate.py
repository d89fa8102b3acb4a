"""Shares measured against each sensor's own normal level, so that a few loud sensors do not drown the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from graspad.core.score import Shares

# A sensor counts where its share exceeds this quantile of its own held-out normal shares …
_QUANTILE = 0.99
# … and faintly below: without that, all rows that stay below every level would tie.
_FAINT = 0.01


@dataclass(frozen=True)
class Levels:
    """What each sensor's share reaches in normal windows that the field was not fitted on."""

    by_sensor: Float[Tensor, " sensor"]

    @classmethod
    def of(cls, by_sensor: Float[Tensor, "window sensor"]) -> Levels:
        """Measure the levels on the shares of held-out normal windows."""
        return cls(torch.from_numpy(np.quantile(by_sensor.numpy(), _QUANTILE, axis=0)).to(torch.float32))

    def apply(self, shares: Shares) -> Shares:
        """The log-excess Σ_n log(max(z_n, 1)) + 0.01 log(1 + z_n), z_n the share of sensor n in units of its level.

        Its terms are the new shares by sensor. Bands have no level of their own: they keep their proportions and are
        scaled to the new score.
        """
        z = shares.by_sensor / self.by_sensor
        by_sensor = z.clamp(min=1).log() + _FAINT * z.log1p()
        if shares.by_band is None:
            return Shares(by_sensor, None)
        return Shares(by_sensor, shares.by_band * (by_sensor.sum(dim=1) / shares.score)[:, None, None])
