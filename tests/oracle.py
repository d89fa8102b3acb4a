"""The population-optimal field for Gaussian data, by brute-force conditioning: the oracle of Lemma 1 and Theorem 2.

Everything is written in spectral coordinates, flattened to vectors (mode, row), from the definitions alone:
(x̂0, x̂1) jointly Gaussian, x̂t and the velocity linear in both, conditional means by the Gaussian formula.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graspad.core.path import Path
from graspad.core.spectrum import Spectrum


@dataclass(frozen=True)
class Gaussian:
    """x1 ~ N(mean, covariance) in the node domain, flattened (sensor, row)."""

    mean: np.ndarray
    covariance: np.ndarray

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.multivariate_normal(self.mean, self.covariance, size=count, method="cholesky")

    def permuted(self, order: np.ndarray, window: int) -> Gaussian:
        index = (order[:, None] * window + np.arange(window)).ravel()
        return Gaussian(self.mean[index], self.covariance[np.ix_(index, index)])


def random_gaussian(size: int, rng: np.random.Generator, scale: float = 1.0, shift: float = 0.0) -> Gaussian:
    factor = rng.standard_normal((size, size)) * scale / np.sqrt(size)
    return Gaussian(shift * rng.standard_normal(size), factor @ factor.T + 0.05 * scale**2 * np.eye(size))


class GaussianOracle:
    """V^p and the endpoint posterior under a Gaussian p."""

    def __init__(self, p: Gaussian, spectrum: Spectrum, path: Path, window: int) -> None:
        self.path, self.window = path, window
        self.transform = np.kron(spectrum.basis.numpy().T, np.eye(window))
        self.mean = self.transform @ p.mean
        self.covariance = self.transform @ p.covariance @ self.transform.T

    def coefficients(self, t: float) -> dict[str, np.ndarray]:
        at = self.path.at(torch.tensor(t, dtype=torch.float64))
        names = ("alpha", "beta", "d_alpha", "d_beta", "rho", "eta")
        return {name: np.repeat(getattr(at, name).numpy(), self.window) for name in names}

    def state_covariance(self, t: float) -> np.ndarray:
        c = self.coefficients(t)
        return np.diag(c["alpha"] ** 2) + c["beta"][:, None] * self.covariance * c["beta"]

    def posterior_mean(self, xt: np.ndarray, t: float) -> np.ndarray:
        """E[x̂1 | x̂t]; xt is (batch, mode·row)."""
        c = self.coefficients(t)
        gain = (self.covariance * c["beta"]) @ np.linalg.inv(self.state_covariance(t))
        return self.mean + (xt - c["beta"] * self.mean) @ gain.T

    def posterior_variance(self, t: float) -> np.ndarray:
        """Diagonal of Cov[x̂1 | x̂t]."""
        cross = self.covariance * self.coefficients(t)["beta"]
        return np.diag(self.covariance - cross @ np.linalg.inv(self.state_covariance(t)) @ cross.T)

    def spectral_velocity(self, xt: np.ndarray, t: float) -> np.ndarray:
        """E[α̇ x̂0 + β̇ x̂1 | x̂t], from the joint distribution of velocity and state: Lemma 1 is not used."""
        c = self.coefficients(t)
        cross = np.diag(c["d_alpha"] * c["alpha"]) + c["d_beta"][:, None] * self.covariance * c["beta"]
        gain = cross @ np.linalg.inv(self.state_covariance(t))
        return c["d_beta"] * self.mean + (xt - c["beta"] * self.mean) @ gain.T

    def __call__(self, xt: Tensor, t: Tensor) -> Tensor:
        """The field in the node domain, as the score calls it: one flow time per call."""
        spectral = xt.double().flatten(1).numpy() @ self.transform.T
        velocity = self.spectral_velocity(spectral, float(t[0])) @ self.transform
        return torch.from_numpy(velocity).float().unflatten(1, (-1, self.window))


def random_graph(n_sensors: int, rng: np.random.Generator, density: float = 0.5) -> np.ndarray:
    upper = np.triu(rng.random((n_sensors, n_sensors)) < density, k=1)
    return upper | upper.T
