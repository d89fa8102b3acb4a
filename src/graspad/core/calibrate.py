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
    """What shares reach in normal windows that the field was not fitted on.

    The level of a sensor is the mean over flow times of its shares, each in units of (divided by, 1 / `gain`) its usual
    share there: no flow time rules the others. `usual` is the level that a sensor seldom exceeds, `reach` the logarithm
    of its highest level over that. The level of all sensors together is made in the same way of their plain sums, with
    `joint_gain`; `joint` says where its logarithm begins to count, and the way from there to its usual height.
    """

    gain: Float[Tensor, "time sensor"]
    usual: Float[Tensor, " sensor"]
    reach: Float[Tensor, " sensor"]
    joint_gain: Float[Tensor, " time"]
    joint: Float[Tensor, " 2"]

    @classmethod
    def of(cls, shares: Float[Tensor, "window time sensor"]) -> Levels:
        """Measure the levels on the shares of held-out normal windows."""
        gain = _gain(shares)
        level = (shares * gain).sum(dim=1)
        usual = _quantile(level, CALIBRATION.usual)
        reach = (level.amax(dim=0) / usual).log().clamp(min=CALIBRATION.shortest)
        together = shares.sum(dim=2)
        joint_gain = _gain(together)
        height = (together * joint_gain).sum(dim=1).log()
        begin = _quantile(height, CALIBRATION.begin)
        way = (_quantile(height, CALIBRATION.usual) - begin).clamp(min=CALIBRATION.shortest_joint)
        return cls(gain, usual, reach, joint_gain, torch.stack([begin, way]))

    def apply(self, shares: Shares) -> Shares:
        """Σ_n a_n + 8 max(a_far − 1, 0) + 2 max(p, 0), a_n = log(max(z_n, 1)) / reach_n, at most 5.

        z_n is the level of sensor n in units of its usual one. a_n is 1 where a sensor is as far out as it ever was in
        normal operation; the farthest one counts more for what is beyond. p is the logarithm of the joint level, 0
        where it begins to count and 1 at its usual height: many sensors that are a little high count too. It is divided
        as the joint level is. max(p, 0) begins softly.
        """
        parts, together = shares.by_sensor * self.gain, shares.by_sensor * self.joint_gain[:, None]
        level, joint_level = parts.sum(dim=1), together.sum(dim=(1, 2))
        alone = ((level / self.usual).clamp(min=1).log() / self.reach).clamp(max=CALIBRATION.most)
        farthest, where = alone.max(dim=1, keepdim=True)
        alone.scatter_add_(1, where, CALIBRATION.farthest * (farthest - 1).clamp(min=0))
        begin, way = self.joint
        joint = CALIBRATION.joint * _above_zero((joint_level.log() - begin) / way)
        return shares.scaled_to(parts * (alone / level)[:, None] + together * (joint / joint_level)[:, None, None])


def by_others(parts: Sequence[Float[Tensor, "_ time sensor"]]) -> list[Shares]:
    """The calibrated shares of each part of the normal windows, with the levels of all other parts.

    Levels flatter the windows they were taken from, so that scores measured with them would promise too few alarms.
    """
    calibrated = []
    for index, part in enumerate(parts):
        others = [*parts[:index], *parts[index + 1 :]] or [part]
        calibrated.append(Levels.of(torch.cat(others)).apply(Shares(part, None)))
    return calibrated


def _gain(shares: Float[Tensor, "window time *any"]) -> Float[Tensor, "time *any"]:
    """What shares are multiplied with, so that they add up to their mean over flow times, each in units of its own."""
    return 1 / (_quantile(shares, CALIBRATION.usual) * shares.shape[1])


def _above_zero(x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """A soft max(x, 0): (x + √(x² + 4s²)) / 2, which rises everywhere and is never zero."""
    s = CALIBRATION.soft
    root = (x.square() + 4 * s**2).sqrt()
    return torch.where(x > 0, (x + root) / 2, 2 * s**2 / (root - x))  # the same, without cancellation below 0


def _quantile(values: Float[Tensor, "window *any"], q: float) -> Float[Tensor, "*any"]:
    return torch.from_numpy(np.asarray(np.quantile(values.numpy(), q, axis=0))).to(torch.float32)
