"""Ways to tell how suspicious each sensor is in an incident, for benchmarks/root_causes.py to compare.

At one flow time let Q = Ψ Λ^½ J Λ^½ Ψᵀ, the inverse of C + Λ⁻¹ in the node domain. Residuals of a window x:

    expected         x − μ̄, what was seen against what the field expects (`graspad.expected`)
    velocity         that of the velocity, without the weights η: Ψ diag(ρ) Ψᵀ times the one before
    left out         of sensor n given all the others: Q_nn⁻¹ (Q (x − m))_n, for the closed form is Gaussian
    reconstruction   what the leading directions of training windows leave of x − m (PCA)

Each is placed on the rows of the table and measured in units of its own deviation on training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from graspad.alarms.culprits import blame, course_left
from graspad.alarms.lasting import WindowMeans
from graspad.core.path import Path, PathPoint, flow_times
from graspad.data.gaps import Rows
from graspad.expected import Expectation
from graspad.explain import Explanation
from graspad.model import Model
from graspad.velocity.gaussian import GaussianField
from graspad.velocity.resolvent import DenseResolvent, over_sensors
from graspad.view import View

ByRow = dict[str, Float[ndarray, "row sensor"]]
BySensor = dict[str, Float[ndarray, " sensor"]]
ResidualMap = Callable[[Float[Tensor, "window sensor row"]], Float[Tensor, "window sensor row"]]

BLAME = "share × way², at most 15"
OURS = f"few that explain it, then {BLAME}"

# A linear reconstruction keeps the directions that make up this part of the variance.
_KEPT = 0.9
# In units of a sensor's spread: one that the field predicts without error in training would count without limit.
_LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class Witness:
    """What is usual in training, for each kind of residual."""

    expectations: dict[str, Expectation]
    usual: BySensor

    @classmethod
    def of(cls, model: Model, normal: Rows) -> Witness:
        """Of a closed form of full rank and the rows it was fitted on."""
        view = model.views[0]
        window, stride = view.lens.window, view.settings.scoring.stride
        expectations = {name: Expectation(window, stride, residual) for name, residual in _residuals(view).items()}
        usual = {name: _mean_square(normal.values - each.of_rows(normal)) for name, each in expectations.items()}
        return cls(expectations, usual)

    def surprise(self, rows: Rows) -> ByRow:
        """Squared residuals of each row and sensor."""
        seen = rows.values.astype(np.float64)
        squares = {"z-score": seen**2}
        for name, expectation in self.expectations.items():
            least = np.maximum(self.usual[name], _LEAST_DEVIATION**2)
            squares[name] = (seen - expectation.of_rows(rows)) ** 2 / least
        return squares


def suspicions(
    surprise: ByRow,
    explanation: Explanation,
    means: WindowMeans | None,
    rows: Rows,
    start: int,
    end: int,
    rng: np.random.Generator,
    reach: int = 0,
) -> BySensor:
    """How suspicious each sensor is in the rows [start, end), in every way; higher is more.

    Scores there may be due to rows as far before as `reach`: shares are those of the scores, all else is of the rows.
    """
    first = max(0, start - reach)
    shares = np.nansum(explanation.by_sensor[start:end], axis=0)
    way = course_left(rows.values, rows.lost, first, end)
    ways = {"random": rng.random(len(shares)), "share": shares, "way": way}
    for name, squares in surprise.items():
        ways[name] = np.nanmean(squares[first:end], axis=0)
    ways |= {f"{name}, highest": np.nanmax(surprise[name][first:end], axis=0) for name in ("z-score", "expected, 1/6")}
    ways |= {f"{name} × way²": ways[name] * way**2 for name in ("z-score", "expected, 1/6", "left out, 1/6")}
    ways["share × expected, 1/6, highest"] = shares * ways["expected, 1/6, highest"]
    ways |= {f"share × way{power}": shares * way**exponent for power, exponent in (("", 1), ("^1.5", 1.5), ("²", 2))}
    ways[BLAME] = blame(shares, way)
    few = [] if means is None else means.few_in(rows.values, rows.lost, start, end, reach)
    return ways | {OURS: _first(few, ways[BLAME])}


def _first(few: list[int], suspicion: Float[ndarray, " sensor"]) -> Float[ndarray, " sensor"]:
    """The same suspicion of all others, but more of these than of any, in their order."""
    raised = suspicion.copy()
    raised[few] = suspicion.max() + np.arange(len(few), 0, -1)
    return raised


def _residuals(view: View) -> dict[str, ResidualMap]:
    """All kinds, at each flow time of R_ad that the names tell where it matters."""
    spectrum, field, count = view.spectrum, view.field, view.settings.scoring.flow_times
    assert isinstance(field, GaussianField)
    path, mean = Path.of(spectrum, view.settings.tau), spectrum.basis @ field.mean.to(torch.float64)
    maps = {"reconstruction": _centred(_not_reconstructed(field), mean)}
    for index, t in enumerate(flow_times(count)):
        at = path.at(t)
        resolvent = field.resolvent(at)
        root, time = at.beta / at.alpha, f"{2 * index + 1}/{2 * count}"
        for name, gain in (("expected", 1 / root), ("velocity", 1 / at.eta.sqrt())):
            maps[f"{name}, {time}"] = _centred(resolvent.station(spectrum.basis, root, gain).residual, mean)
        assert isinstance(resolvent, DenseResolvent)
        maps[f"left out, {time}"] = _centred(_left_out(resolvent, spectrum.basis, at), mean)
    return maps


def _left_out(resolvent: DenseResolvent, basis: Float[Tensor, "sensor mode"], at: PathPoint) -> ResidualMap:
    """x − m to Q_nn⁻¹ (Q (x − m))_n: one inverse of a window's length for each sensor."""
    sensors, size = len(basis), len(resolvent.matrix)
    length, weighted = size // sensors, basis * (at.beta / at.alpha)
    half = (weighted @ resolvent.matrix.reshape(sensors, -1)).view(sensors, length, sensors, length)
    q = torch.einsum("nrks,mk->nrms", half, weighted)
    own = torch.stack([torch.linalg.inv(q[sensor, :, sensor]) for sensor in range(sensors)])
    matrix = torch.einsum("nrs,nsmq->mqnr", own, q).reshape(size, size).to(torch.float32)
    return lambda centred: (centred.flatten(1) @ matrix).view_as(centred)


def _not_reconstructed(field: GaussianField) -> ResidualMap:
    factor = over_sensors(field.spectrum.basis, field.factor.to(torch.float64)).flatten(0, 1)
    variances, directions = torch.linalg.eigh(factor @ factor.T)  # the least first
    beyond = directions[:, variances.cumsum(0) < (1 - _KEPT) * variances.sum()].to(torch.float32)
    return lambda centred: (centred.flatten(1) @ beyond @ beyond.T).view_as(centred)


def _centred(residual: ResidualMap, mean: Float[Tensor, "sensor row"]) -> ResidualMap:
    single = mean.to(torch.float32)
    return lambda x1: residual((x1 - single).contiguous())


def _mean_square(values: Float[ndarray, "row sensor"]) -> Float[ndarray, " sensor"]:
    squares: ndarray = np.nanmean(np.square(values), axis=0)
    return squares
