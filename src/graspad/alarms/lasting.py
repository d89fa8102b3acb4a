"""The few sensors that a lasting incident comes from: those that must be wrong if all the others are right.

Let d be how far the mean of an incident's rows lies from that of normal windows, Q the inverse covariance of such
means, and g = Q d. Then dᵀQd is how unusual the incident is. To free a group S, which is to believe the other sensors
alone, explains g_Sᵀ Q_SS⁻¹ g_S of it, for the closed form is Gaussian.

    suspects   freed two by two, each time the pair that then explains most
    need       of a suspect: what is unexplained again once it is believed, all other suspects being free
    few        the most needed, as soon as they explain nearly all together

Two by two, since of sensors that say the same, such as a power and a current, neither explains much alone. The order in
which suspects are freed is no good itself: what could stand in for several of the true ones comes early. With all
suspects free, only what nothing else can stand in for is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

BySensor = Float[ndarray, " sensor"]

# Enough pairs of suspects to hold all that could stand in for a culprit; but most sensors have to be believed.
_PAIRS, _SENSORS_PER_PAIR = 5, 6
# More sensors than a few, or such as leave more unexplained, say that it is no such incident.
_FEW, _NEARLY_ALL = 4, 0.95
# What others determine but for rounding can explain nothing.
_NOTHING = 1e-9


@dataclass(frozen=True)
class WindowMeans:
    """What the mean of the rows of a normal window is, and the inverse Q of its covariance."""

    window: int
    middle: BySensor
    precision: Float[ndarray, "sensor sensor"]

    @classmethod
    def of(cls, window: int, middle: BySensor, covariance: Float[ndarray, "sensor sensor"]) -> WindowMeans:
        """Without the directions, if there are any, in which normal means do not vary at all."""
        return cls(window, middle, np.linalg.pinv(covariance, hermitian=True))

    def few_in(
        self, values: Float[ndarray, "row sensor"], lost: Bool[ndarray, " row"], start: int, end: int, reach: int = 0
    ) -> list[int]:
        """Of an incident in the rows [start, end), which may be due to any of the last `reach` before it."""
        first = max(0, start - reach)
        kept = values[first:end][~lost[first:end]]
        return self.few(kept.sum(axis=0, dtype=np.float64), len(kept), end - start)

    def few(self, total: BySensor, rows: int, lasted: int) -> list[int]:
        """Of an incident that lasted so long, by the sum of its rows. None if it was brief, or takes more than a few.

        >>> means = WindowMeans.of(2, np.zeros(6), np.full((6, 6), 0.9) + 0.1 * np.eye(6))  # six that move together
        >>> means.few(np.array([4.0, 4.0, -12.0, 4.0, 4.0, 4.0]), rows=4, lasted=4)
        [2]
        """
        if lasted < self.window or rows == 0:
            return []
        shift = total / rows - self.middle
        pull = self.precision @ shift
        suspects = self._suspects(pull)
        if not suspects:
            return []
        freed = np.linalg.inv(self._among(suspects))
        need = (freed @ pull[suspects]) ** 2 / freed.diagonal()
        needed = [suspects[place] for place in np.argsort(-need, kind="stable")[:_FEW]]
        # In the coordinates of a Cholesky factor each sensor adds to what those before it explain.
        explained = np.cumsum(np.linalg.solve(np.linalg.cholesky(self._among(needed)), pull[needed]) ** 2)
        enough = explained >= _NEARLY_ALL * (shift @ pull)
        return needed[: enough.argmax() + 1] if enough.any() else []

    def _suspects(self, pull: BySensor) -> list[int]:
        suspects: list[int] = []
        believed = self.precision.diagonal() > 0
        left, rest = self.precision, pull  # Q and g of the sensors that are still believed
        for _ in range(min(_PAIRS, len(pull) // _SENSORS_PER_PAIR)):
            believed &= left.diagonal() > _NOTHING * self.precision.diagonal()
            explains = np.where(believed & believed[:, None], _by_pairs(left, rest), 0.0)
            if explains.max() <= 0:
                break
            pair = list(divmod(int(explains.argmax()), len(pull)))
            suspects += pair
            believed[pair] = False
            rows = left[pair]
            (a, b), (_, c) = rows[:, pair]
            solved = np.array([[c, -b], [-b, a]]) @ rows / (a * c - b * b)
            left, rest = left - rows.T @ solved, rest - rest[pair] @ solved
        return suspects

    def _among(self, group: list[int]) -> Float[ndarray, "some some"]:
        return self.precision[np.ix_(group, group)]


def _by_pairs(q: Float[ndarray, "sensor sensor"], g: BySensor) -> Float[ndarray, "sensor sensor"]:
    """g_Sᵀ Q_SS⁻¹ g_S of all pairs S; 0 where one of them determines the other."""
    own = q.diagonal()
    both = own * own[:, None]
    determinant = both - q**2
    crossed = g**2 * own[:, None]
    explained = crossed + crossed.T - 2 * q * g * g[:, None]
    return np.divide(explained, determinant, out=np.zeros_like(q), where=determinant > _NOTHING * both)
