"""Deep baselines with the other settings that mTSBench names for them: the paper does not say which ones it took.

    PYTHONPATH=benchmarks graspad bench run --data ../shared/data --sets SMAP,SMD --out results/other_settings.csv \
        --methods other_settings:CNN50,other_settings:AutoEncoder64,other_settings:AutoEncoder128

Ours are those that come nearest to the paper's SMAP row.
"""

from __future__ import annotations

from dataclasses import dataclass

from graspad.bench.baselines.autoencoder import AutoEncoder
from graspad.bench.baselines.cnn import CNN


@dataclass(eq=False)
class CNN50(CNN):
    """Of the list of tuned settings; ours is the default of the wrapper, which made mTSBench's own numbers."""

    window: int = 50


@dataclass(eq=False)
class AutoEncoder128(AutoEncoder):
    """Of the list of tuned settings."""

    hidden: tuple[int, int] = (128, 64)


@dataclass(eq=False)
class AutoEncoder64(AutoEncoder):
    """The default of the wrapper, which made mTSBench's own numbers."""

    hidden: tuple[int, int] = (64, 32)
