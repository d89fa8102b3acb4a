"""The closed form fitted once for each block of the normal rows, without that block: so all of them are held out.

A single held-out part at the end of the data shows one mode of operation and misses what happens seldom. Here every
normal row is scored by a field that never saw it, and the final field has seen them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from graspad.core.windows import Windows
from graspad.data.gaps import Rows
from graspad.errors import InputError
from graspad.velocity.gaussian import GaussianField

# Least variances to choose from, in units of each sensor's own, and how many windows of a block tell which is best.
RIDGES = (0.001, 0.01, 0.1, 1.0)
_WINDOWS = 500


@dataclass(frozen=True)
class HeldOut:
    """Normal rows and the shares of their windows by a field that was fitted without them."""

    rows: Rows
    shares: Float[Tensor, "window sensor"]

    def whole(self, window: int) -> Float[Tensor, "whole sensor"]:
        """The shares of windows without a longer gap."""
        return self.shares[torch.from_numpy(self.rows.whole_windows(window))]


def cross_fit(
    rows: Rows,
    window: int,
    blocks: int,
    ridge: float | None,
    estimate: Callable[[Windows], GaussianField],
    score: Callable[[GaussianField, Rows], Float[Tensor, "window sensor"]],
) -> tuple[GaussianField, list[HeldOut]]:
    """A field fitted on all rows, and for each block of them the shares by a field fitted on the others.

    Without a `ridge` the one with the lowest loss on the blocks is taken.
    """
    starts = np.flatnonzero(rows.whole_windows(window))
    spans = list(pairwise(np.linspace(0, len(rows.values), blocks + 1).astype(int).tolist()))
    outside = [_windows(rows, window, starts[_outside(starts, window, span)]) for span in spans]
    within = [_windows(rows, window, starts[_within(starts, window, span)]) for span in spans]
    if not (all(map(len, outside)) and any(map(len, within))):
        raise InputError(
            f"Too few of the rows lie {window} in a row without a longer gap. "
            "Fill the gaps, drop the sensor with the most of them, or use a smaller `window`."
        )
    fields = [estimate(windows) for windows in outside]
    if ridge is None:
        ridge = best_ridge([pair for pair in zip(fields, within, strict=True) if len(pair[1])])
    parts = [rows.part(slice(*span)) for span in spans]
    held_out = [
        HeldOut(part, score(field.with_more_noise(ridge), part)) for field, part in zip(fields, parts, strict=True)
    ]
    return estimate(_windows(rows, window, starts)).with_more_noise(ridge), held_out


def best_ridge(held_out: Sequence[tuple[GaussianField, Windows]]) -> float:
    """The ridge with the lowest flow-matching loss on windows that the field beside them was not fitted on.

    Half-way along the flow, and a few hundred windows of each block, tell as much as all of them.
    """

    def loss(ridge: float) -> float:
        return sum(field.with_more_noise(ridge).loss(windows.thinned(_WINDOWS), t=0.5) for field, windows in held_out)

    return min(RIDGES, key=loss)


def _outside(starts: ndarray, window: int, span: tuple[int, int]) -> ndarray:
    """Which windows share no row with a span."""
    return (starts + window <= span[0]) | (starts >= span[1])


def _within(starts: ndarray, window: int, span: tuple[int, int]) -> ndarray:
    """Which windows lie in a span."""
    return (starts >= span[0]) & (starts + window <= span[1])


def _windows(rows: Rows, window: int, starts: ndarray) -> Windows:
    return Windows(torch.from_numpy(rows.values), window, torch.from_numpy(starts))
