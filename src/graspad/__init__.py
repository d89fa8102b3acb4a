"""Anomaly detection in multivariate time series by flow matching along a graph-spectral path (GRASP).

>>> from graspad import GraspDetector
>>> GraspDetector(tau=1.0)
GraspDetector(tau=1.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graspad.alarms.incidents import Rules as Rules
    from graspad.config import PAPER as PAPER
    from graspad.config import RECIPE as RECIPE
    from graspad.config import Settings as Settings
    from graspad.detector import GraspDetector as GraspDetector
    from graspad.errors import GraspError as GraspError
    from graspad.stream import Reading as Reading
    from graspad.stream import Stream as Stream

__version__ = "0.1.0"

# Importing torch takes seconds, so names are looked up when they are first used.
_HOME = {
    "GraspDetector": "graspad.detector",
    "PAPER": "graspad.config",
    "RECIPE": "graspad.config",
    "Settings": "graspad.config",
    "GraspError": "graspad.errors",
    "Rules": "graspad.alarms.incidents",
    "Stream": "graspad.stream",
    "Reading": "graspad.stream",
}
__all__ = ["PAPER", "RECIPE", "GraspDetector", "GraspError", "Reading", "Rules", "Settings", "Stream"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'graspad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
