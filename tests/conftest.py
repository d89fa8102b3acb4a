"""Shapes and types in annotations are checked at run time in every test."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# The public face (detector, cli) is left out: it must answer wrong types with its own errors.
CHECKED = ["core", "velocity", "data", "alarms", "train", "model", "expected", "explain", "store", "report"]
install_import_hook([f"graspad.{name}" for name in CHECKED], "beartype.beartype")

# Examples are drawn the same way on every machine and run; a first call may have to import torch.
settings.register_profile("graspad", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("graspad")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with SMAP and SMD; see the Makefile."""
    folder = os.environ.get("GRASPAD_DATA")
    if not folder or not Path(folder, "SMAP").is_dir():
        pytest.skip("needs real data: set GRASPAD_DATA to a folder with SMAP/ and SMD/ in mTSBench's layout")
    return Path(folder)
