"""Shares measured against each sensor's own normal range, so that a few loud sensors do not drown the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from graspad.config import CALIBRATION
from graspad.core.score import Shares


@dataclass(frozen=True)
class Levels:
    """What each sensor's share reaches in normal windows that the field was not fitted on.

    The level of a sensor is the mean of its shares over flow times, each divided by (1 / `gain`) the geometric mean of
    its usual share there and at all of them: half-way from a plain sum, which late flow times rule, to one in which all
    count alike. `usual` is the level that it seldom exceeds, `reach` the logarithm of its highest level over that.
    `plain` holds the median of log ξ, the shares added up as they are, and the way from there to its usual height.
    """

    gain: Float[Tensor, "time sensor"]
    usual: Float[Tensor, " sensor"]
    reach: Float[Tensor, " sensor"]
    plain: Float[Tensor, " 2"]

    @classmethod
    def of(cls, shares: Float[Tensor, "window time sensor"]) -> Levels:
        """Measure the levels on the shares of held-out normal windows."""
        usual_shares = _quantile(shares, CALIBRATION.usual)
        gain = 1 / ((usual_shares * usual_shares.mean(dim=0)).sqrt() * shares.shape[1])
        level = (shares * gain).sum(dim=1)
        usual = _quantile(level, CALIBRATION.usual)
        reach = (level.amax(dim=0) / usual).log().clamp(min=CALIBRATION.shortest)
        log_score = shares.sum(dim=(1, 2)).log()
        middle = _quantile(log_score, 0.5)
        way = (_quantile(log_score, CALIBRATION.usual) - middle).clamp(min=CALIBRATION.shortest_plain)
        return cls(gain, usual, reach, torch.stack([middle, way]))

    def apply(self, shares: Shares) -> Shares:
        """Σ_n a_n + 4 max(a_far − 1, 0) + 1.75 max(p, 0), a_n = log(max(z_n, 1)) / reach_n, at most 5.

        z_n is the level of sensor n in units of its usual one. a_n is 1 where a sensor is as far out as it ever was in
        normal operation; the farthest one counts more for what is beyond. p is log ξ, 0 at its median and 1 at its
        usual height: many sensors that are a little high count too. It is divided as ξ is. max(p, 0) begins softly.
        """
        parts = shares.by_sensor * self.gain
        level = parts.sum(dim=1)
        alone = ((level / self.usual).clamp(min=1).log() / self.reach).clamp(max=CALIBRATION.most)
        farthest, where = alone.max(dim=1, keepdim=True)
        alone.scatter_add_(1, where, CALIBRATION.farthest * (farthest - 1).clamp(min=0))
        middle, way = self.plain
        plain = CALIBRATION.plain * _above_zero((shares.score.log() - middle) / way)
        divided = shares.by_sensor * (plain / shares.score)[:, None, None]
        return shares.scaled_to(parts * (alone / level)[:, None] + divided)


def by_others(parts: Sequence[Float[Tensor, "_ time sensor"]]) -> list[Shares]:
    """The calibrated shares of each part of the normal windows, with the levels of all other parts.

    Levels flatter the windows they were taken from, so that scores measured with them would promise too few alarms.
    """
    calibrated = []
    for index, part in enumerate(parts):
        others = [*parts[:index], *parts[index + 1 :]] or [part]
        calibrated.append(Levels.of(torch.cat(others)).apply(Shares(part, None)))
    return calibrated


def _above_zero(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """A soft max(x, 0): (x + √(x² + 4s²)) / 2, which rises everywhere and is never zero."""
    s = CALIBRATION.soft
    root = (x.square() + 4 * s**2).sqrt()
    return torch.where(x > 0, (x + root) / 2, 2 * s**2 / (root - x))  # the same, without cancellation below 0


def _quantile(values: Float[Tensor, "window *any"], q: float) -> Float[Tensor, "*any"]:
    return torch.from_numpy(np.asarray(np.quantile(values.numpy(), q, axis=0))).to(torch.float32)
