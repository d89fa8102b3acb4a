"""The closed form fitted once for each block of the normal rows, without that block: so all of them are held out.

A single held-out part at the end of the data shows one mode of operation and misses what happens seldom. Here every
normal row is scored by a field that never saw it, and the final field has seen them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from graspad.core.windows import Windows
from graspad.data.gaps import Rows
from graspad.errors import InputError
from graspad.velocity.gaussian import GaussianField


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
    estimate: Callable[[Windows], GaussianField],
    score: Callable[[GaussianField, Rows], Float[Tensor, "window sensor"]],
) -> tuple[GaussianField, list[HeldOut]]:
    """A field fitted on all rows, and for each block of them the shares by a field fitted on the others."""
    starts = np.flatnonzero(rows.whole_windows(window))
    edges = np.linspace(0, len(rows.values), blocks + 1).astype(int).tolist()
    held_out = []
    for span in pairwise(edges):
        block, others = rows.part(slice(*span)), starts[_outside(starts, window, span)]
        held_out.append(HeldOut(block, score(estimate(_windows(rows, window, others)), block)))
    return estimate(_windows(rows, window, starts)), held_out


def _outside(starts: np.ndarray, window: int, span: tuple[int, int]) -> np.ndarray:
    """Which windows share no row with a span."""
    return (starts + window <= span[0]) | (starts >= span[1])


def _windows(rows: Rows, window: int, starts: np.ndarray) -> Windows:
    if len(starts) == 0:
        raise InputError(
            f"Too few of the rows lie {window} in a row without a longer gap. "
            "Fill the gaps, drop the sensor with the most of them, or use a smaller `window`."
        )
    return Windows(torch.from_numpy(rows.values), window, torch.from_numpy(starts))
