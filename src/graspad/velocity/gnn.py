"""GNN: sensors are nodes, two residual GCN blocks propagate along the sensor graph (Appendix E.6)."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from graspad.config import Velocity
from graspad.velocity.field import Dropout, Field, FlowTime, State, WithFlowTime


class GCNBlock(nn.Module):
    """H + dropout(ReLU(Â · LayerNorm(H) · W)), Â the renormalised adjacency of Kipf and Welling."""

    def __init__(self, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.weight = nn.Linear(hidden, hidden)
        self.dropout = Dropout(dropout)

    def forward(
        self, state: Float[Tensor, "batch sensor hidden"], propagate: Float[Tensor, "sensor sensor"]
    ) -> Float[Tensor, "batch sensor hidden"]:
        """One residual propagation step."""
        step: Tensor = self.dropout(torch.relu(propagate @ self.weight(self.norm(state))))
        return state + step


class GNN(Field):
    """Every sensor's whole signal is one node's features."""

    def __init__(self, settings: Velocity, n_sensors: int, window: int, adjacency: ndarray) -> None:
        super().__init__()
        looped = adjacency.astype(float) + np.eye(n_sensors)
        inverse_root = 1 / np.sqrt(looped.sum(axis=1))
        propagate = inverse_root[:, None] * looped * inverse_root[None, :]
        self.propagate: Tensor
        self.register_buffer("propagate", torch.from_numpy(propagate).to(torch.float32))
        self.project_in = WithFlowTime(settings.time_features, window, settings.hidden)
        self.blocks = nn.ModuleList(GCNBlock(settings.hidden, settings.dropout) for _ in range(settings.blocks))
        self.project_out = nn.Linear(settings.hidden, window)

    def forward(self, xt: State, t: FlowTime) -> State:
        """The velocity at xt and t."""
        state = self.project_in(xt, t)
        for block in self.blocks:
            state = block(state, self.propagate)
        velocity: Tensor = self.project_out(state)
        return velocity
