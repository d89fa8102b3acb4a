"""GRASP and its variants as methods of the benchmark."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal

from graspad.bench.method import Method, RowScores, Values
from graspad.config import CALIBRATION, CLOSED_FORM, PAPER, RECIPE, Settings
from graspad.data.scale import Scale


class Grasp(Method):
    """GRASP with given settings; `graph="random"` puts as many edges as the data's graph has at random places.

    `own_scale` z-scores the test rows by their own statistics, as mTSBench's networks do, not by those of the training
    rows: the paper does not say which it took. No detector that is at work can do that.
    """

    imports: ClassVar[tuple[str, ...]] = ("graspad.detector",)

    def __init__(self, preset: Settings, graph: Literal["random"] | None = None, own_scale: bool = False) -> None:
        self.preset, self.graph, self.own_scale = preset, graph, own_scale
        # The closed form draws nothing.
        self.seeded = preset.velocity.kind != "gaussian" or graph == "random"

    @property
    def settings(self) -> dict[str, Any]:
        """Every number of the method: a run that goes on after one of them has changed tells so."""
        numbers = {
            "closed_form": CLOSED_FORM.model_dump(mode="json") if self.preset.velocity.kind == "gaussian" else None,
            "calibration": CALIBRATION.model_dump() if self.preset.scoring.calibrate else None,
            "own_scale": self.own_scale or None,
        }
        used = {name: values for name, values in numbers.items() if values is not None}
        return {**self.preset.model_dump(), "graph": self.graph or "data", **used}

    @property
    def about(self) -> str:
        """Our recipe or the paper's preset, whichever is closer, and what differs from it."""
        bases = {"Our recipe": RECIPE, "The paper's preset": PAPER}
        changes = {name: _changes(self.preset.model_dump(), base.model_dump()) for name, base in bases.items()}
        name = min(changes, key=lambda name: len(changes[name]))
        extra = ["a random graph"] * (self.graph == "random") + ["test rows scaled by themselves"] * self.own_scale
        differs = ", ".join(changes[name] + extra)
        return f"{name} with {differs}." if differs else f"{name}."

    def fit(self, train: Values, seed: int) -> None:
        """Fit a detector, its label-free threshold included."""
        from graspad.detector import GraspDetector

        detector = GraspDetector(self.preset, graph=self.graph, seed=seed, progress=False)
        self._detector = detector.fit(self._scaled(train))

    def score(self, test: Values) -> RowScores:
        """Overlap scores as a user gets them, with their alarms; causal ones take every window, and their own time."""
        detector, test = self._detector, self._scaled(test)
        (overlap,) = detector.scores_by_alignment(test, ["overlap"]).values()
        began = time.process_time()
        (causal,) = detector.scores_by_alignment(test, ["causal"]).values()
        return RowScores(overlap, causal, detector.thresholds_["overlap"].alarms(overlap), time.process_time() - began)

    def _scaled(self, rows: Values) -> Values:
        return Scale.of(rows).apply(rows).astype(rows.dtype) if self.own_scale else rows


def _changes(values: dict[str, Any], base: dict[str, Any]) -> list[str]:
    """The settings that differ, parts of parts by their own names."""
    changes = []
    for name, value in values.items():
        if isinstance(value, dict):
            changes += _changes(value, base[name])
        elif value != base[name]:
            changes.append(f"{name} {value}")
    return changes
