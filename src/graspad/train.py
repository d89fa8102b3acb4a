"""Fit a velocity field to normal windows: one loop, Equation (loss)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from graspad.config import Training
from graspad.core.path import Path
from graspad.core.spectrum import Spectrum
from graspad.core.windows import Windows
from graspad.velocity.field import Field

# Windows whose gradients are worked out at once: what a network keeps of so few stays in the processor's cache. The
# gradients add up to those of the batch.
_PART = 64


@dataclass(frozen=True)
class Progress:
    """Where training stands; handed to `on_progress` after every step."""

    step: int
    steps: int
    loss: float
    best_loss: float
    seconds_left: float


@dataclass(frozen=True)
class TrainingReport:
    """What training did. Losses are mean squared velocity errors per entry on the held-out windows."""

    steps: int
    initial_loss: float
    best_loss: float
    best_step: int
    seconds: float
    interrupted: bool


@dataclass(frozen=True)
class _Batch:
    xt: Float[Tensor, "batch sensor row"]
    target: Float[Tensor, "batch sensor row"]
    t: Float[Tensor, " batch"]

    def parts(self, size: int) -> Iterator[_Batch]:
        """The batch, `size` windows at a time."""
        return map(_Batch, *(torch.split(part, size) for part in (self.xt, self.target, self.t)))


def train(
    field: Field,
    windows: Windows,
    held_out: Windows,
    spectrum: Spectrum,
    path: Path,
    settings: Training,
    seed: int,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> TrainingReport:
    """Train `field` in place on normal windows; it ends with the weights that did best on the `held_out` ones.

    Flow times are uniform on [0, 1), or on those that the field knows.
    Ctrl-C stops early and keeps the best weights so far. The same seed gives the same weights, bit for bit, on one
    machine with the same number of threads.
    """
    generator = torch.Generator().manual_seed(seed)
    # The graph Fourier transform acts on single rows, so x̂1 of all windows is a strided view too.
    x1 = windows.mixed(spectrum.basis)
    validation = _validation_set(held_out.mixed(spectrum.basis), field.times, spectrum, path, settings, seed)
    per_epoch = math.ceil(len(x1) / settings.batch_size)
    scale = per_epoch if settings.unit == "epochs" else 1
    steps, validate_every = settings.budget * scale, settings.validate_every * scale

    optimizer = torch.optim.Adam(field.parameters(), lr=settings.learning_rate)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps if settings.anneal else 10**12)
    initial_loss = best_loss = _validate(field, validation)
    best, best_step, step, interrupted = deepcopy(field.state_dict()), 0, 0, False
    began = time.perf_counter()
    order = torch.empty(0, dtype=torch.int64)
    # Dropout draws from torch's global generator: seed it here, and give it back as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            for step in range(1, steps + 1):
                if len(order) == 0:
                    order = torch.randperm(len(x1), generator=generator)
                chosen, order = order[: settings.batch_size], order[settings.batch_size :]
                t = _known(torch.rand(len(chosen), generator=generator), field.times)
                batch = _draw(x1[chosen], t, spectrum, path, generator)
                field.train()
                optimizer.zero_grad()
                loss = 0.0
                for part in batch.parts(_PART):
                    part_loss = (field(part.xt, part.t) - part.target).square().sum() / batch.xt.numel()
                    part_loss.backward()
                    loss += part_loss.item()
                optimizer.step()
                scheduler.step()
                if step % validate_every == 0 or step == steps:
                    held_out_loss = _validate(field, validation)
                    if held_out_loss < best_loss:
                        best, best_loss, best_step = deepcopy(field.state_dict()), held_out_loss, step
                    if settings.patience and step - best_step >= settings.patience * validate_every:
                        break
                left = (time.perf_counter() - began) / step * (steps - step)
                on_progress(Progress(step, steps, loss, best_loss, left))
        except KeyboardInterrupt:
            interrupted = True
    field.load_state_dict(best)
    field.eval()
    return TrainingReport(step, initial_loss, best_loss, best_step, time.perf_counter() - began, interrupted)


def _draw(
    x1: Float[Tensor, "batch mode row"],
    t: Float[Tensor, " batch"],
    spectrum: Spectrum,
    path: Path,
    generator: torch.Generator,
) -> _Batch:
    """States and target velocities in the node domain. Ψᵀx0 is standard normal when x0 is, so x̂0 is drawn at once."""
    x0 = torch.randn(x1.shape, generator=generator)
    at = path.at(t.to(torch.float64))
    alpha, beta, d_alpha, d_beta = (c.to(x1.dtype)[..., None] for c in (at.alpha, at.beta, at.d_alpha, at.d_beta))
    basis = spectrum.basis.to(x1.dtype)
    return _Batch(xt=basis @ (alpha * x0 + beta * x1), target=basis @ (d_alpha * x0 + d_beta * x1), t=t)


def _known(t: Float[Tensor, " batch"], times: Float[Tensor, " time"] | None) -> Float[Tensor, " batch"]:
    """Flow times from [0, 1] as they are, or replaced by known ones, each of which stands for an equal part of it."""
    return t if times is None else times[(t * len(times)).long().clamp(max=len(times) - 1)]


def _validation_set(
    held_out: Windows,
    known: Float[Tensor, " time"] | None,
    spectrum: Spectrum,
    path: Path,
    settings: Training,
    seed: int,
) -> list[_Batch]:
    """Held-out windows with noise and flow times drawn once, so that losses of different steps compare."""
    generator = torch.Generator().manual_seed(seed + 1)
    x1 = held_out.thinned(settings.validation_windows)
    # Stratified times: every part of the flow counts alike, however few windows there are.
    t = (torch.randperm(len(x1), generator=generator) + torch.rand(len(x1), generator=generator)) / len(x1)
    pairs = zip(x1.batches(settings.batch_size), torch.split(_known(t, known), settings.batch_size), strict=True)
    return [_draw(part, times, spectrum, path, generator) for part, times in pairs]


@torch.inference_mode()
def _validate(field: Field, batches: list[_Batch]) -> float:
    field.eval()
    total = sum(float((field(b.xt, b.t) - b.target).square().mean()) * len(b.t) for b in batches)
    return total / sum(len(b.t) for b in batches)
