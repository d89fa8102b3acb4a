"""The hybrid field: the closed form, and a network for what it leaves over.

The network's last layer starts at zero, so that training sets out from the closed form exactly and can only improve on
it. A closed form of low rank leaves the network the fine structure and all that is not Gaussian.

A state xt is that of the window x̂t/β with source 0. From the closed form's residual of that window, unweighted,

    V = Ψ diag(β̇/β) Ψᵀ xt − Ψ diag(ρα/β) J diag(1/α) Ψᵀ (xt − ΨBm)

is an affine map for each flow time. Its resolvent J is worked out once, so the field knows the scored times alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from graspad.core.path import PathPoint
from graspad.errors import InvalidSettingError
from graspad.velocity.field import Field, FlowTime, State
from graspad.velocity.gaussian import GaussianField
from graspad.velocity.resolvent import Station

# Rank and ridge of the closed form where the settings leave them open. With every direction it fits its own windows so
# closely that they hold nothing more to learn. Smaller ridges ended in a higher held-out loss after training.
RANK, RIDGE = 64, 0.1


class HybridField(Field):
    """V = closed form + network, at the flow times of R_ad. Only the network is trained."""

    times: Float[Tensor, " time"]

    def __init__(self, closed_form: GaussianField, network: Field, times: Float[Tensor, " time"]) -> None:
        super().__init__()
        self.closed_form, self.network, self.times = closed_form, network, times.to(torch.float32)
        *_, last = (layer for layer in network.modules() if isinstance(layer, nn.Linear))
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, xt: State, t: FlowTime) -> State:
        """The velocity at xt and t; every t must be one of R_ad."""
        if len(unknown := t[~torch.isin(t, self.times)]):
            must = (
                f"hold only the flow times that a hybrid's closed form was solved for, {self.times.tolist()}; for "
                "others, fit with another `Scoring.flow_times`, or take a network alone, which knows all"
            )
            raise InvalidSettingError.of("t", must, float(unknown[0]))
        velocity = torch.empty_like(xt)
        for time, closed_form in zip(self.times, self._solved, strict=True):
            here = t == time
            velocity[here] = closed_form.velocity(xt[here])
        return velocity + self.network(xt, t)

    @cached_property
    def _solved(self) -> list[_ClosedFormAt]:
        path = self.closed_form.path
        return [_ClosedFormAt.of(self.closed_form, path.at(t)) for t in self.times.to(torch.float64)]


@dataclass(frozen=True)
class _ClosedFormAt:
    """The closed form at one flow time, in the node domain and float32."""

    mean_state: Float[Tensor, "sensor row"]  # ΨBm
    local: Float[Tensor, "sensor sensor"]  # Ψ diag(β̇/β) Ψᵀ
    station: Station  # Ψ diag(ρα/β) J diag(1/α) Ψᵀ

    @classmethod
    def of(cls, field: GaussianField, at: PathPoint) -> _ClosedFormAt:
        spectrum = field.spectrum
        mean_state = spectrum.basis @ (at.beta[:, None] * field.mean)
        station = field.resolvent(at).station(spectrum.basis, 1 / at.alpha, at.rho * at.alpha / at.beta)
        return cls(mean_state.to(torch.float32), spectrum.filter(at.d_beta / at.beta).to(torch.float32), station)

    def velocity(self, xt: State) -> State:
        return self.local @ xt - self.station.residual(xt - self.mean_state)
