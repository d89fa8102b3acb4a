"""A deep baseline: a network, a loss and an error per window; the rest is the same for all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from graspad.bench.baselines.deep.place import Place, on_rows
from graspad.bench.baselines.deep.scaling import Scaler, by_itself, by_training, to_unit_range
from graspad.bench.baselines.deep.train import Batch, Plan, Step, seeded, train_network
from graspad.bench.method import Method, RowScores, Values
from graspad.core.windows import Windows
from graspad.errors import InputError, InvalidSettingError

Mode = Literal["as-published", "fixed"]
Network = TypeVar("Network", bound=nn.Module)


@dataclass(eq=False)
class Deep(Method, Generic[Network]):
    """A network on sliding windows (batch, sensor, row); `windows.mT` is the same as (batch, row, sensor), uncopied.

    A baseline says how to `_build` its network and which `_steps` train it. Unless it says otherwise, the network
    rebuilds its window, or forecasts the `ahead` rows after it; the loss is the mean squared error, and the score that
    of the last row. The fields are the settings.

    `as-published` repeats what the numbers in the literature were made with, defects included; `fixed` does what the
    method's own paper says. The file of each baseline lists what differs.
    """

    mode: Mode = "as-published"
    window: int = 100
    epochs: int = 50

    # Rows after the window that the network forecasts; they come as the last rows of each batch.
    ahead: ClassVar[int] = 0
    # Whether a sigmoid is the network's last layer, so that it cannot put out anything beyond [0, 1].
    sigmoid: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        # torch imports the second one when the first optimiser is made, which would count as training time.
        cls.imports = (cls.__module__, "torch._dynamo")

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidSettingError.of("mode", f"be one of {', '.join(map(repr, get_args(Mode)))}", self.mode)

    @property
    def fixed(self) -> bool:
        """Whether the mode is `fixed`."""
        return self.mode == "fixed"

    @property
    def plan(self) -> Plan:
        """As published, the weights are those of the last epoch, although the best one is looked for."""
        return Plan(self.epochs, restore=self.fixed)

    @property
    def place(self) -> Place:
        """Where in its window the score belongs; mTSBench puts scores of the last row on the centre."""
        return "last" if self.fixed else "centre"

    @property
    def settings(self) -> dict[str, Any]:
        """The fields, the plan of training and the place."""
        return {**asdict(self), "training": asdict(self.plan), "place": self.place}

    @property
    def about(self) -> str:
        """The method and its mode."""
        return f"{super().about} {'Fixed' if self.fixed else 'As published'}."

    def fit(self, train: Values, seed: int) -> None:
        """Scale, split, build, train."""
        self._seed = seed
        self._scaled = self._scaler(self._checked(train, "training rows"))
        with seeded(seed):
            windows, held_out = self._split(train)
            self._network = self._build(train.shape[1])
            train_network(self._network, self._steps(), self._watched, windows, held_out, self.plan)

    def score(self, test: Values) -> RowScores:
        """One error per window, put on rows."""
        windows = self._windows(test, "test rows")
        with seeded(self._seed):
            return on_rows(self._each(windows), windows.length, self.place)

    def held_out(self, train: Values) -> Values | None:
        """The rows of early stopping."""
        return train[self._cut(train) :] if self.plan.held_out else None

    @abstractmethod
    def _build(self, sensors: int) -> Network:
        """The network, with fresh weights."""

    @abstractmethod
    def _steps(self) -> Sequence[Step]:
        """The updates of each batch, for `self._network`."""

    def _loss(self, windows: Batch, epoch: int) -> Float[Tensor, ""]:
        """What is lowered."""
        return self._residual(windows).square().mean()

    def _watched(self, windows: Batch, epoch: int) -> Float[Tensor, "*any"]:
        """What early stopping looks at, on held-out windows."""
        return self._loss(windows, epoch)

    def _errors(self, windows: Batch) -> Float[Tensor, " batch"]:
        """One score per window: by default the mean squared error of the last row."""
        return self._residual(windows)[..., -1].square().mean(dim=1)

    def _residual(self, windows: Batch) -> Float[Tensor, "batch sensor rebuilt"]:
        """What the network puts out less what it should."""
        if not self.ahead:
            return self._network(windows) - windows
        return self._network(windows[..., : -self.ahead]) - windows[..., -self.ahead :]

    def _scaler(self, train: Values) -> Scaler:
        """As published, by the statistics of the rows at hand: of each part of the training rows, of the test rows."""
        if not self.fixed:
            return by_itself(train)
        return to_unit_range(train) if self.sigmoid else by_training(train)

    def _split(self, train: Values) -> tuple[Windows, Windows | None]:
        """Windows to train on, and to watch: the last rows."""
        if not self.plan.held_out:
            return self._windows(train, "training rows"), None
        cut = self._cut(train)
        first = f"training rows before the last {len(train) - cut}, which are held out"
        return self._windows(train[:cut], first), self._windows(train[cut:], "training rows that are held out")

    def _cut(self, train: Values) -> int:
        """Where the rows of early stopping begin: they are the last ones, a window of them at least."""
        return max(1, min(int(len(train) * (1 - self.plan.held_out)), len(train) - self._span))

    def _windows(self, rows: Values, what: str) -> Windows:
        """Views of the scaled rows, no copies: 400,000 rows cost what the rows cost."""
        scaled = torch.from_numpy(self._scaled(self._checked(rows, what)))
        return Windows(scaled, self._span, torch.arange(len(rows) - self._span + 1))

    @property
    def _span(self) -> int:
        """Rows of a batch."""
        return self.window + self.ahead

    def _checked(self, rows: Values, what: str) -> Values:
        """Refuse too few rows, and gaps: one of them would make the weights NaN."""
        if len(rows) < self._span:
            told = f"{type(self).__name__} needs windows of {self._span} rows, but there are {len(rows)} {what}"
            raise InputError(f"{told}. Give more rows.")
        if (gaps := ~np.isfinite(rows)).any():
            row, sensor = np.argwhere(gaps)[0]
            told = f"{gaps.sum()} values of the {what} are missing or infinite, the first at row {row}, sensor {sensor}"
            raise InputError(f"{told}. Fill them, or drop these rows or sensors.")
        return rows

    @torch.no_grad()
    def _each(self, windows: Windows) -> Float[ndarray, "window *any"]:
        """The errors of all windows in order; only a batch of windows is laid out at a time.

        Each result is copied and let go: thousands of small ones, kept among large passing ones, would leave the memory
        full of holes.
        """
        parts = map(self._errors, windows.batches(self.plan.batch))
        first = next(parts)
        errors, done = np.empty((len(windows), *first.shape[1:])), 0
        for part in chain([first], parts):
            errors[done : done + len(part)] = part
            done += len(part)
        return errors
