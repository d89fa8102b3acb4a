"""The closed form fitted once for each block of the normal rows, without that block: so all of them are held out.

A single held-out part at the end of the data shows one mode of operation and misses what happens seldom. Here every
normal row is scored by a field that never saw it, and the final field has seen them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from graspad.config import CLOSED_FORM
from graspad.core.windows import Windows
from graspad.data.gaps import Rows
from graspad.errors import InputError
from graspad.velocity.estimate import Estimator
from graspad.velocity.gaussian import GaussianField

# So many windows of a block tell which ridge is best.
_WINDOWS = 500


@dataclass(frozen=True)
class HeldOut:
    """Normal rows and the shares of their windows by a field that was fitted without them."""

    rows: Rows
    shares: Float[Tensor, "window time sensor"]

    def whole(self, window: int) -> Float[Tensor, "whole time sensor"]:
        """The shares of windows without a longer gap."""
        return self.shares[torch.from_numpy(self.rows.whole_windows(window))]


def cross_fit(
    rows: Rows,
    windows: Windows,
    blocks: int,
    ridge: float | None,
    estimator: Estimator,
    score: Callable[[GaussianField, Rows], Float[Tensor, "window time sensor"]],
) -> tuple[GaussianField, list[HeldOut]]:
    """A field fitted on all windows, and for each block of rows the shares by a field fitted without it.

    Without a `ridge` the one with the lowest loss on the blocks is taken.
    """
    first, last = windows.starts, windows.starts + windows.length - 1
    spans = list(pairwise(np.linspace(0, len(rows.values), blocks + 1).astype(int).tolist()))
    touching = [(last >= start) & (first < end) for start, end in spans]
    within = [windows.some((first >= start) & (last < end)) for start, end in spans]
    if any(map(torch.all, touching)) or not any(map(len, within)):
        raise InputError(
            f"Too few of the rows lie {windows.length} in a row without a longer gap. "
            "Fill the gaps, drop the sensor with the most of them, or use a smaller `window`."
        )
    fields = [estimator.without(left_out) for left_out in touching]
    if ridge is None:
        ridge = best_ridge([pair for pair in zip(fields, within, strict=True) if len(pair[1])])
    parts = [rows.part(slice(*span)) for span in spans]
    held_out = [
        HeldOut(part, score(field.with_more_noise(ridge), part)) for field, part in zip(fields, parts, strict=True)
    ]
    return estimator.all().with_more_noise(ridge), held_out


def best_ridge(held_out: Sequence[tuple[GaussianField, Windows]]) -> float:
    """The ridge with the lowest flow-matching loss on windows that the field beside them was not fitted on.

    Half-way along the flow, and a few hundred windows of each block, tell as much as all of them. The loss falls to a
    lowest point and then rises, so the search sets out from the middle and goes on while it falls.
    """

    @cache
    def loss(ridge: float) -> float:
        return sum(field.with_more_noise(ridge).loss(windows.thinned(_WINDOWS), t=0.5) for field, windows in held_out)

    middle = len(CLOSED_FORM.ridges) // 2
    lower, upper = CLOSED_FORM.ridges[:middle], CLOSED_FORM.ridges[middle:]
    return min(lower if loss(lower[-1]) < loss(upper[0]) else upper, key=loss)
