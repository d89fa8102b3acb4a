"""The protocol of a velocity field V_t(X), the flow-time embedding e(t) and the choice of a network by name."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from graspad.config import Network

State = Float[Tensor, "batch sensor row"]
FlowTime = Float[Tensor, " batch"]


class Field(nn.Module):
    """A velocity field: called with states xt and their flow times t it gives velocities of the same shape as xt.

    Fields live in the node domain and never see the eigenbasis (Appendix C); a GNN sees the adjacency alone.
    """

    def forward(self, xt: State, t: FlowTime) -> State:
        """The velocity at xt and t."""
        raise NotImplementedError


def build(settings: Network, n_sensors: int, window: int, adjacency: ndarray, seed: int) -> Field:
    """A new network with weights drawn from `seed`; torch's global random state is left as it was."""
    from graspad.velocity.gnn import GNN
    from graspad.velocity.transformer import Transformer
    from graspad.velocity.tsmixer import TSMixer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        match settings.kind:
            case "tsmixer":
                return TSMixer(settings, n_sensors, window)
            case "gnn":
                return GNN(settings, n_sensors, window, adjacency)
            case "transformer":
                return Transformer(settings, n_sensors, window)


class WithFlowTime(nn.Module):
    """φ_in: a linear map of each sensor's signal and e(t), concatenated (Appendix C)."""

    def __init__(self, time_features: int, window: int, width: int) -> None:
        super().__init__()
        # Wavelengths from 1/1000 of the flow to many flows, the usual choice for t scaled to 0..1000.
        frequencies = 1000 * 10_000 ** (-torch.arange(time_features // 2) / (time_features // 2))
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.signal = nn.Linear(window, width)
        # Linear([x, e]) = Linear(x) + Linear(e): e(t) is the same for all sensors, so it is mapped once.
        self.time = nn.Linear(time_features, width, bias=False)

    def forward(self, xt: State, t: FlowTime) -> Float[Tensor, "batch sensor width"]:
        """H⁽⁰⁾ = φ_in(X_t, e(t))."""
        angle = t[:, None] * self.frequencies
        embedding = torch.cat([angle.sin(), angle.cos()], dim=1)
        hidden: Tensor = self.signal(xt) + self.time(embedding)[:, None, :]
        return hidden


def mlp(width: int, hidden: int, dropout: float) -> nn.Sequential:
    """Two linear layers with ReLU, and dropout after each: the mixing MLP of Appendix C."""
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, width), nn.Dropout(dropout)
    )


def scaled_normal_(weight: Tensor) -> None:
    """Small normal initial values for embeddings."""
    nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[-1]))
