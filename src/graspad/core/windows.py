"""Windows of a table as strided views: a million of them cost no more memory than their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Windows:
    """The windows of `length` rows that begin at `starts`."""

    rows: Float[Tensor, "row channel"]
    length: int
    starts: Int[Tensor, " window"]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, chosen: Tensor | slice) -> Float[Tensor, "batch channel length"]:
        """Some windows, copied out.

        >>> windows = Windows(torch.arange(4.0)[:, None], 2, torch.tensor([0, 2]))
        >>> windows[torch.tensor([1])]
        tensor([[[2., 3.]]])
        """
        return self.rows.unfold(0, self.length, 1)[self.starts[chosen]]

    def mixed(self, matrix: Float[Tensor, "channel mixed"]) -> Windows:
        """The windows of `rows @ matrix`: an operator over channels acts once per row, not once per window."""
        return Windows(self.rows @ matrix.to(self.rows.dtype), self.length, self.starts)

    def thinned(self, count: int | None) -> Windows:
        """At most `count` of the windows, evenly spread; all of them for None."""
        if count is None or len(self) <= count:
            return self
        kept = torch.linspace(0, len(self) - 1, count).round().long()
        return Windows(self.rows, self.length, self.starts[kept])

    def some(self, kept: Bool[Tensor, " window"]) -> Windows:
        """Those of the windows that are marked."""
        return Windows(self.rows, self.length, self.starts[kept])

    def batches(self, size: int) -> Iterator[Float[Tensor, "batch channel length"]]:
        """All windows in order, `size` at a time."""
        return (self[slice(begin, begin + size)] for begin in range(0, len(self), size))
