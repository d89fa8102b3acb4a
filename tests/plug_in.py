"""Methods of a user's own, as `plug_in:Name`: the harness must cope with whatever they do."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from graspad.bench.method import Method, RowScores, Values


class Plain(Method):
    """The sum of a row; leaves a trace of each run in the folder TRACES, so that repeated units can be counted."""

    pause = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "version": os.environ.get("PLUG_IN_VERSION", "1")}

    def fit(self, train: Values, seed: int) -> None:
        time.sleep(self.pause)
        if folder := os.environ.get("TRACES"):
            Path(folder, f"{time.time_ns()}-{os.getpid()}").touch()

    def score(self, test: Values) -> RowScores:
        return RowScores.pointwise(test.sum(axis=1))

    def held_out(self, train: Values) -> Values:
        return train[-20:]  # no second fit for a threshold: one trace for each unit


class Slow(Plain):
    pause = 0.3


class Hangs(Plain):
    pause = 600.0


class Seedless(Plain):
    seeded = False


class Fails(Plain):
    def fit(self, train: Values, seed: int) -> None:
        raise ArithmeticError("no such\nluck")


class Dies(Plain):
    def fit(self, train: Values, seed: int) -> None:
        os._exit(7)


class TooShort(Plain):
    def score(self, test: Values) -> RowScores:
        return RowScores.pointwise(test.sum(axis=1)[1:])


class Waits(Plain):
    """Sleeps half a second in fit; half a second of work goes into its causal scores alone."""

    pause = 0.5

    def score(self, test: Values) -> RowScores:
        began = time.process_time()
        while time.process_time() - began < 0.5:
            pass
        scores = test.sum(axis=1)
        return RowScores(scores, scores, causal_seconds=time.process_time() - began)
