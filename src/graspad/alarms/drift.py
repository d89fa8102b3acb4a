"""Whether rows without an alarm still score as they did when the threshold was set, and what to do if not."""

from __future__ import annotations

from collections import deque
from math import inf, isnan, log, sqrt
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from graspad.alarms.threshold import Threshold
from graspad.errors import InputError

Verdict = Literal["fine", "recalibrate", "refit", "alarm"]

# More normal rows give longer blocks, not ever more of them: the memory stays small and still spans every regime.
_BLOCKS = 400
_SUDDEN, _JUMP = 16, 0.5  # so much wider a gap within so many blocks is an incident: drift takes longer
# Gaps that matter. Held-out scores are a little too high, since the final field has seen more normal rows than the
# fields that gave them; so scores must fall further than they must rise.
_RISE, _FALL = 0.3, 0.5
_CHANCE = 1e-6  # of so wide a gap between independent blocks
_UNUSUAL = 0.05  # share of normal blocks that are called so
_INCIDENT = "This is an incident, not drift: look at explain(rows), and do not recalibrate on them."


class Drift:
    """Compares the latest quiet rows, those without an alarm, with the quiet rows that the threshold was set by.

    Neighbouring rows score alike, so they count in blocks of a window or more, by their mean. The memory holds a
    quarter as many blocks as there are normal ones, and begins with the last of these. Scores have moved when the gap
    between the two distributions (the distance of Kolmogorov and Smirnov) matters, is wider than chance allows, and is
    far wider than between any quarter of the normal blocks and the rest, since operating modes come and go.

    >>> from graspad.alarms.rate import Allowed
    >>> rng = np.random.default_rng(0)
    >>> threshold = Threshold(rng.random(5000), Allowed(0.001, "rows"), merge=10)
    >>> Drift.of(threshold, scores := 0.5 * rng.random(1000), threshold.alarms(scores)).verdict
    'recalibrate'
    """

    def __init__(self, threshold: Threshold) -> None:
        with np.errstate(invalid="ignore"):
            quiet = threshold.normal_scores[threshold.normal_scores <= threshold.value]
        self._threshold = threshold.value
        self._size = max(threshold.merge, len(quiet) // _BLOCKS)
        blocks = quiet[: len(quiet) // self._size * self._size].reshape(-1, self._size)
        # Added one by one, as in push: the same rows have the same mean, to the bit.
        self._normal = np.cumsum(blocks, axis=1, dtype=np.float64)[:, -1] / self._size
        memory = len(blocks) // 4
        self._memory = deque(self._normal[len(blocks) - memory :].tolist(), maxlen=memory)
        self._sudden = min(_SUDDEN, memory // 2)
        self._usual_gap, self._usual_jump = _usual_gap(self._normal, memory), _usual_gap(self._normal, self._sudden)
        self._count, self._sum = 0, 0.0  # of the block under way
        self._alarming, self._recent = 0.0, 4 * threshold.merge  # share of about so many rows, the older the less

    @classmethod
    def of(cls, threshold: Threshold, scores: Float[ndarray, " row"], alarms: Bool[ndarray, " row"]) -> Drift:
        """All rows of a table, in the order of time; the verdict is that after the last row."""
        drift = cls(threshold)
        for score, alarm in zip(scores.tolist(), alarms.tolist(), strict=True):
            drift.push(score, alarm)
        return drift

    def push(self, score: float, alarm: bool) -> None:
        """Take in the next row; one without a score (NaN) is passed over."""
        if isnan(score):
            return
        self._alarming += (alarm - self._alarming) / self._recent
        if alarm or score > self._threshold:  # a row of filled values raises no alarm, however high its score
            return
        self._count, self._sum = self._count + 1, self._sum + score
        if self._count == self._size:
            self._memory.append(self._sum / self._size)
            self._count, self._sum = 0, 0.0

    @property
    def verdict(self) -> Verdict:
        """fine, recalibrate (only the threshold is off), refit (the model is, too) or alarm (an incident, no drift)."""
        return self._judge()[0]

    @property
    def sentence(self) -> str:
        """What was seen, and what to do."""
        return self._judge()[1]

    def state(self) -> dict[str, Any]:
        """All that `restore` needs to go on from here, as plain numbers and lists."""
        block = [self._count, self._sum]
        return {"threshold": self._threshold, "memory": [*self._memory], "block": block, "alarming": self._alarming}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, with the same threshold."""
        if state["threshold"] != self._threshold or len(state["memory"]) != len(self._memory):
            raise InputError("This state of drift belongs to another threshold. Begin anew with Drift(threshold).")
        self._memory.extend(state["memory"])
        (self._count, self._sum), self._alarming = state["block"], state["alarming"]

    def _judge(self) -> tuple[Verdict, str]:
        latest = np.array(self._memory)
        told = f"Of the latest {len(latest)} stretches of {self._size} rows without an alarm, "
        can_tell = self._usual_gap < 1  # no gap is wider
        gap, level = _gap(self._normal, latest) if can_tell else (0.0, 0.0)
        rise, fall = max(_RISE, self._usual_gap), max(_FALL, self._usual_gap)
        # This comes before alarms, since drift that goes on for long enough raises them as well.
        if gap > rise and (unusual := _above(np.quantile(self._normal, 1 - _UNUSUAL), latest)) > 0.5:
            told += f"{unusual:.0%} score as high as only {_UNUSUAL:.0%} of the normal ones did."
            return "refit", f"{told} If the plant is healthy, fit(normal) again, on recent normal rows."
        if self._alarming > 0.5:
            return "alarm", f"{self._alarming:.0%} of the recent rows alarm. {_INCIDENT}"
        if not can_tell:
            return "fine", "The normal rows are too few, or vary too much, to tell drift from chance."
        before, after = (_gap(self._normal, part)[0] for part in np.split(latest, [-self._sudden]))
        if after > self._usual_jump and before < min(rise, after - _JUMP):
            return "alarm", f"The scores of the latest {self._sudden * self._size} rows are suddenly high. {_INCIDENT}"
        if gap > rise or gap < -fall:
            told += f"{_above(level, latest):.0%} score above {level:.3g}; of the normal ones, "
            told += f"{_above(level, self._normal):.0%} did. The threshold is too {'low' if gap > 0 else 'high'} now."
            return "recalibrate", f"{told} If the plant is healthy, recalibrate(normal) with recent normal rows."
        return "fine", f"The latest {len(latest) * self._size} rows without an alarm score as normal rows did."


def _above(level: float, blocks: Float[ndarray, " block"]) -> float:
    return float((blocks > level).mean())


def _gap(normal: Float[ndarray, " normal"], latest: Float[ndarray, " latest"]) -> tuple[float, float]:
    """The largest difference between the shares above any level, positive if more of the latest are; and the level.

    >>> _gap(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0]))
    (0.5, 2.0)
    """
    levels = np.concatenate([normal, latest])
    below, below_latest = (np.searchsorted(np.sort(part), levels, "right") / len(part) for part in (normal, latest))
    gaps = below - below_latest
    widest = int(np.argmax(np.abs(gaps)))
    return float(gaps[widest]), float(levels[widest])


def _usual_gap(normal: Float[ndarray, " normal"], length: int) -> float:
    """How wide a gap to `length` blocks may be by chance or by what normal operation does."""
    if length < 2:
        return inf
    by_chance = sqrt(log(2 / _CHANCE) / 2 * (1 / length + 1 / len(normal)))  # Massart's bound
    parts = [slice(start, start + length) for start in np.linspace(0, len(normal) - length, 33).astype(int)]
    seen = max(abs(_gap(np.delete(normal, part), normal[part])[0]) for part in parts)
    # The future holds more than was seen: twice as wide a gap, or, since none exceeds 1, one half-way from there to 1.
    return max(by_chance, min(2 * seen, (1 + seen) / 2))
