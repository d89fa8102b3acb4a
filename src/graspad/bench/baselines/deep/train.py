"""The training loop of all deep baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, StepLR

from graspad.core.windows import Windows

Batch = Float[Tensor, "batch sensor row"]
# Takes a batch of windows and the number of the epoch, which starts at 1.
Loss = Callable[[Batch, int], Tensor]


@dataclass(frozen=True)
class Plan:
    """How long to train.

    The last rows, a share of `held_out`, are for early stopping: it ends after `patience` epochs in which the held-out
    loss did not fall by `min_delta`. With `held_out` 0 all rows are trained on, for all epochs.
    """

    epochs: int
    batch: int = 128
    held_out: float = 0.2
    patience: int = 3
    min_delta: float = 1e-4
    # End with the weights of the best epoch; else of the last.
    restore: bool = False
    # Leave out a last batch that is not full, as a network with batch statistics may need.
    drop_last: bool = False


@dataclass
class Step:
    """One update for each batch: an optimiser goes down a loss. The schedule moves on with each epoch.

    Several steps take turns on the same batch, each with its own loss and its own share of the weights.
    """

    optimizer: Optimizer
    loss: Loss
    schedule: LRScheduler | None = None

    @classmethod
    def decayed(cls, weights: Iterable[nn.Parameter], loss: Loss, learning_rate: float) -> Step:
        """mTSBench's usual optimiser: weights decay, and the learning rate falls by a tenth every fifth epoch."""
        optimizer = torch.optim.AdamW(weights, lr=learning_rate, weight_decay=1e-5)
        return cls(optimizer, loss, StepLR(optimizer, step_size=5, gamma=0.9))

    def __call__(self, windows: Batch, epoch: int) -> None:
        """Update the weights of this step's optimiser."""
        self.optimizer.zero_grad()
        torch.autograd.backward(self.loss(windows, epoch))
        self.optimizer.step()


def train_network(
    network: nn.Module, steps: Sequence[Step], watched: Loss, windows: Windows, held_out: Windows | None, plan: Plan
) -> int:
    """Train in place; give back how many epochs it took.

    `watched` is the held-out loss. Where it is several numbers, an epoch is better if all of them are.
    """
    best_loss, best, waited, epoch = torch.tensor(math.inf), None, 0, 0
    for epoch in range(1, plan.epochs + 1):
        network.train()
        for batch in _shuffled(windows, plan):
            for step in steps:
                step(batch, epoch)
        for step in steps:
            if step.schedule is not None:
                step.schedule.step()
        if held_out is None:
            continue
        loss = _mean(network, watched, held_out, epoch, plan.batch)
        if bool((loss <= best_loss - plan.min_delta).all()):
            best_loss, best, waited = loss, deepcopy(network.state_dict()) if plan.restore else None, 0
        else:
            waited += 1
            if waited == plan.patience:
                break
    if best is not None:
        network.load_state_dict(best)
    network.eval()
    return epoch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Everything that torch draws within follows from the seed; its global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _shuffled(windows: Windows, plan: Plan) -> Iterator[Batch]:
    order = torch.split(torch.randperm(len(windows)), plan.batch)
    # A single batch is all there is: it stays.
    kept = order[:-1] if plan.drop_last and len(order) > 1 and len(order[-1]) < plan.batch else order
    return (windows[chosen] for chosen in kept)


@torch.no_grad()
def _mean(network: nn.Module, loss: Loss, windows: Windows, epoch: int, batch: int) -> Tensor:
    network.eval()
    return torch.stack([loss(part, epoch) * len(part) for part in windows.batches(batch)]).sum(dim=0) / len(windows)
