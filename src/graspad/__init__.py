"""Anomaly detection in multivariate time series by flow matching along a graph-spectral path (GRASP).

>>> from graspad import GraspDetector
>>> GraspDetector(tau=1.0)
GraspDetector(tau=1.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graspad.config import PAPER as PAPER
    from graspad.config import RECIPE as RECIPE
    from graspad.config import Settings as Settings
    from graspad.detector import GraspDetector as GraspDetector
    from graspad.errors import GraspError as GraspError

__version__ = "0.1.0"

# Importing torch takes seconds, so names are looked up when they are first used.
_HOME = {
    "GraspDetector": "graspad.detector",
    "PAPER": "graspad.config",
    "RECIPE": "graspad.config",
    "Settings": "graspad.config",
    "GraspError": "graspad.errors",
}
__all__ = ["PAPER", "RECIPE", "GraspDetector", "GraspError", "Settings"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'graspad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
