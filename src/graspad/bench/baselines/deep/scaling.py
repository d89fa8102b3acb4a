"""Ways to scale rows: each looks at the training rows and gives the function that scales any rows.

The result is float32, as networks take it. Some networks scale each window once more, by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from torch import Tensor

from graspad.bench.baselines.deep.train import Batch
from graspad.bench.method import Values
from graspad.data.scale import Scale

Scaler = Callable[[Values], Values]


def by_training(train: Values) -> Scaler:
    """z-scores by the training rows."""
    return Scale.of(train).apply


def by_itself(train: Values) -> Scaler:
    """z-scores by the rows that are scaled, whatever the training rows were, as mTSBench's networks do.

    All test rows take part in the score of each, and a shift between training and test cannot be seen.
    """
    return lambda rows: Scale.of(rows).apply(rows)


def to_unit_range(train: Values) -> Scaler:
    """The range of each training sensor becomes [0, 1], which is what a sigmoid can put out.

    >>> to_unit_range(np.array([[1.0, 7.0], [3.0, 7.0]]))(np.array([[2.0, 7.0], [5.0, 8.0]]))
    array([[0.5, 0. ],
           [2. , 1. ]], dtype=float32)
    """
    low, high = train.min(axis=0), train.max(axis=0)
    return Scale(low, np.where(high > low, high - low, 1.0)).apply


OneEach = Float[Tensor, "batch sensor 1"]


def by_window(windows: Batch, correction: int = 0) -> tuple[Batch, OneEach, OneEach]:
    """z-scores of each sensor by the window that it is in, and the mean and spread to go back with.

    >>> import torch
    >>> by_window(torch.tensor([[[1.0, 3.0]]]))[0].round(decimals=3)
    tensor([[[-1.,  1.]]])
    """
    mean = windows.mean(dim=-1, keepdim=True)
    spread = (windows.var(dim=-1, keepdim=True, correction=correction) + 1e-5).sqrt()
    return (windows - mean) / spread, mean, spread
