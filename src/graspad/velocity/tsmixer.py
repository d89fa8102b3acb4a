"""TSMixer: the paper's velocity network (Appendix C), mixing over time and over sensors in turn."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from graspad.config import Network
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
    """H keeps the shape of the window; 128 is the width inside the mixing MLPs."""

    def __init__(self, settings: Network, n_sensors: int, window: int) -> None:
        super().__init__()
        self.project_in = WithFlowTime(settings.time_features, window, window)
        self.blocks = nn.Sequential(
            *(MixerBlock(n_sensors, window, settings.hidden, settings.dropout) for _ in range(settings.blocks))
        )
        self.project_out = nn.Linear(window, window)

    def forward(self, xt: State, t: FlowTime) -> State:
        """Equation (velocity_network)."""
        velocity: Tensor = self.project_out(self.blocks(self.project_in(xt, t)))
        return velocity
