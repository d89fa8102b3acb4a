"""TSMixer: the paper's velocity network (Appendix C), mixing over time and over sensors in turn."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from graspad.config import Velocity
from graspad.velocity.field import Field, FlowTime, State, WithFlowTime, mlp


class MixerBlock(nn.Module):
    """Equations (tsmixer_time) and (tsmixer_var) on a hidden state of `height` × `width`.

    LayerNorm spans both axes, as in the TSMixer this follows.
    """

    def __init__(self, height: int, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm_time = nn.LayerNorm((height, width))
        self.mix_time = mlp(width, hidden, dropout)
        self.norm_sensors = nn.LayerNorm((height, width))
        self.mix_sensors = mlp(height, hidden, dropout)

    def forward(self, state: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch height width"]:
        """One residual step over time, one over sensors."""
        state = state + self.mix_time(self.norm_time(state))
        return state + self.mix_sensors(self.norm_sensors(state).mT).mT


class TSMixer(Field):
    """H holds 128 mixtures of sensors at each time step; 128 is also the width inside the mixing MLPs.

    Of the readings of "hidden dimension 128" this one has the lowest held-out loss (benchmarks/tsmixer_readings.py).
    """

    def __init__(self, settings: Velocity, n_sensors: int, window: int) -> None:
        super().__init__()
        hidden = settings.hidden
        self.project_in = WithFlowTime(settings.time_features, n_sensors, hidden)
        self.blocks = nn.Sequential(
            *(MixerBlock(hidden, window, hidden, settings.dropout) for _ in range(settings.blocks))
        )
        self.project_out = nn.Linear(hidden, n_sensors)

    def forward(self, xt: State, t: FlowTime) -> State:
        """Equation (velocity_network)."""
        state = self.project_in(xt.mT, t).mT
        velocity: Tensor = self.project_out(self.blocks(state).mT)
        return velocity.mT
