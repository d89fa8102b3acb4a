"""What a field takes rows to be if they are normal: the curve to draw beside what was seen.

At one flow time a field's idea of a window x1 is the endpoint posterior mean μ(xt), here averaged over the source. By
Lemma 1 the residual of a velocity is ρ times that of the endpoint, so every field has one:

    sampled       x1 − μ̄ = Ψ diag(1/ρ) Ψᵀ E[target − V(xt)]
    closed form   x1 − μ̄ = Ψ Λ^−½ J Λ^½ (x̂1 − m), exactly, with Λ = diag((β/α)²)

A row's value is the mean over the windows that cover it, each with the more weight the further from its edges the row
lies: a window that comes in or drops out then leaves no step in the curve, even where only every fifth is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from graspad.core.path import Path, flow_times
from graspad.core.score import Station, Velocity
from graspad.core.windows import Windows
from graspad.data.gaps import Rows
from graspad.data.windows import count_in_windows, thinned
from graspad.velocity.gaussian import GaussianField
from graspad.view import View

X1 = Float[Tensor, "window sensor row"]

# Earlier, μ falls back to the usual day; later, it follows a sensor into its fault (benchmarks/expected.py).
_FLOW_TIME = 0.21

_BATCH = 128


@dataclass(frozen=True)
class Expectation:
    """x1 − μ̄ of windows of so many rows, of which every `stride`-th is enough."""

    window: int
    stride: int
    residual: Callable[[X1], X1]

    @classmethod
    def of(cls, view: View, near: float = _FLOW_TIME) -> Expectation:
        """That of the windows which a view shows, at the flow time of R_ad that is nearest."""
        scoring, spectrum, field = view.settings.scoring, view.spectrum, view.field
        times = flow_times(scoring.flow_times)
        chosen = int((times - near).abs().argmin())
        at = Path.of(spectrum, view.settings.tau).at(times[chosen])
        size = view.lens.window, min(scoring.stride, view.lens.window)
        if isinstance(field, GaussianField):
            # To take the weights off the score's own residual would save the solve, but for large τ the weights of the
            # modes lie further apart than single precision reaches.
            exact = field.resolvent(at).station(spectrum.basis, at.beta / at.alpha, at.alpha / at.beta)
            mean = (spectrum.basis @ field.mean.to(torch.float64)).to(torch.float32)
            return cls(*size, lambda x1: exact.residual((x1 - mean).contiguous()))
        station, to_endpoint = view.stations[chosen], spectrum.filter(1 / at.rho).to(torch.float32)
        return cls(*size, lambda x1: to_endpoint @ mean_residual(field, x1, station))

    def of_rows(self, rows: Rows, wanted: Bool[ndarray, " row"] | None = None) -> Float[ndarray, "row sensor"]:
        """What scaled rows are taken to be; NaN where no whole window covers one, or where it is not `wanted`."""
        starts = thinned(rows.whole_windows(self.window), self.stride)
        if wanted is not None:
            starts = starts[count_in_windows(wanted, self.window)[starts] > 0]
        windows = Windows(torch.from_numpy(rows.values), self.window, torch.from_numpy(starts))
        total = torch.zeros(rows.values.shape, dtype=torch.float64)
        weight = torch.zeros(len(total), 1, dtype=torch.float64)
        place = torch.arange(self.window)
        from_edge = torch.minimum(place + 1, self.window - place)[:, None].to(torch.float64)
        with torch.inference_mode():
            for first in range(0, len(windows), _BATCH):
                batch = slice(first, first + _BATCH)
                x1, covered = windows[batch], (windows.starts[batch, None] + place).flatten()
                expected = (x1 - self.residual(x1)).transpose(1, 2)
                total.index_add_(0, covered, (from_edge * expected).flatten(0, 1))
                weight.index_add_(0, covered, from_edge.repeat(len(x1), 1))
        by_row: ndarray = total.div_(weight).numpy()
        if wanted is not None:
            by_row[~wanted] = np.nan
        return by_row


def mean_residual(velocity: Velocity, x1: X1, station: Station) -> X1:
    """E[target − V(xt)] over the sources and their opposites.

    In pairs all that is odd in a source cancels: its target, and for a linear field everything. A few sources do.
    """
    t = torch.full((len(x1),), station.t)
    state, expected = station.data_to_state @ x1, torch.zeros_like(x1)
    for source in station.source_states:
        expected += velocity(state + source, t) + velocity(state - source, t)
    return station.data_to_target @ x1 - expected / (2 * len(station.source_states))
