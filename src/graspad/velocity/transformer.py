"""Transformer: sensors are tokens, two encoder layers with four heads (Appendix E.6)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graspad.config import Velocity
from graspad.velocity.field import Field, FlowTime, State, WithFlowTime

_HEADS = 4


class Transformer(Field):
    """Every sensor's whole signal is one token; a learnt embedding tells the sensors apart, as positions do words."""

    def __init__(self, settings: Velocity, n_sensors: int, window: int) -> None:
        super().__init__()
        self.project_in = WithFlowTime(settings.time_features, window, settings.hidden)
        self.sensor = nn.Parameter(torch.empty(n_sensors, settings.hidden))
        nn.init.normal_(self.sensor, std=settings.hidden**-0.5)
        layers = (
            nn.TransformerEncoderLayer(
                settings.hidden,
                _HEADS,
                dim_feedforward=settings.hidden,
                dropout=settings.dropout,
                batch_first=True,
                norm_first=True,
            )
            for _ in range(settings.blocks)
        )
        self.layers = nn.Sequential(*layers)
        self.project_out = nn.Sequential(nn.LayerNorm(settings.hidden), nn.Linear(settings.hidden, window))

    def forward(self, xt: State, t: FlowTime) -> State:
        """The velocity at xt and t."""
        velocity: Tensor = self.project_out(self.layers(self.project_in(xt, t) + self.sensor))
        return velocity
