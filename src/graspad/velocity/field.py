"""The protocol of a velocity field V_t(X), the flow-time embedding e(t) and the choice of a network by name."""

from __future__ import annotations

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from graspad.config import Velocity

State = Float[Tensor, "batch sensor row"]
FlowTime = Float[Tensor, " batch"]


class Field(nn.Module):
    """A velocity field: called with states xt and their flow times t it gives velocities of the same shape as xt.

    Networks live in the node domain and never see the eigenbasis (Appendix C); a GNN sees the adjacency alone.
    """

    # The flow times that the field knows; None stands for all.
    times: Float[Tensor, " time"] | None = None

    def forward(self, xt: State, t: FlowTime) -> State:
        """The velocity at xt and t."""
        raise NotImplementedError


def build(settings: Velocity, n_sensors: int, window: int, adjacency: ndarray, seed: int) -> Field:
    """A new network, alone or for a hybrid, with weights drawn from `seed`.

    torch's global random state is left as it was.
    """
    from graspad.velocity.gnn import GNN
    from graspad.velocity.transformer import Transformer
    from graspad.velocity.tsmixer import TSMixer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        match settings.network:
            case "tsmixer":
                return TSMixer(settings, n_sensors, window)
            case "gnn":
                return GNN(settings, n_sensors, window, adjacency)
            case "transformer":
                return Transformer(settings, n_sensors, window)
            case _:
                raise ValueError("The closed form is not built but estimated: velocity.estimate.Estimator.")


class WithFlowTime(nn.Module):
    """φ_in: a linear map of the last axis and e(t), concatenated (Appendix C)."""

    def __init__(self, time_features: int, n_inputs: int, width: int) -> None:
        super().__init__()
        # Wavelengths from about 1/160 of the flow to 47 flows: the usual choice, for t scaled to 0..1000.
        frequencies = 1000 * 10_000 ** (-torch.arange(time_features // 2) / (time_features // 2))
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.state = nn.Linear(n_inputs, width)
        # Linear([x, e]) = Linear(x) + Linear(e): e(t) is the same along the other axis, so it is mapped once.
        self.time = nn.Linear(time_features, width, bias=False)

    def forward(self, xt: Float[Tensor, "batch other input"], t: FlowTime) -> Float[Tensor, "batch other width"]:
        """H⁽⁰⁾ = φ_in(X_t, e(t))."""
        angle = t[:, None] * self.frequencies
        embedding = torch.cat([angle.sin(), angle.cos()], dim=1)
        hidden: Tensor = self.state(xt) + self.time(embedding)[:, None, :]
        return hidden


def mlp(width: int, hidden: int, dropout: float) -> nn.Sequential:
    """Two linear layers with ReLU, and dropout after each: the mixing MLP of Appendix C."""
    return nn.Sequential(
        nn.Linear(width, hidden), nn.ReLU(), Dropout(dropout), nn.Linear(hidden, width), Dropout(dropout)
    )


class Dropout(nn.Module):
    """Dropout with a quarter of torch's cost on a CPU, where drawing the mask was half of a training step.

    Four values share one random 64-bit number; p is met to 1/65536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Each value is zero with probability p, else larger by 1/(1−p); unchanged outside training."""
        if not self.training or self.p == 0:
            return values
        count = values.numel()
        bits = torch.randint(-(2**63), 2**63 - 1, (-(-count // 4),)).view(torch.int16)[:count].view(values.shape)
        keep = bits >= round(self.p * 65536) - 32768
        return values * keep.to(values.dtype).mul_(1 / (1 - self.p))
