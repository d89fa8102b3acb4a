"""Deep baselines with the other settings that mTSBench names for them: the paper does not say which ones it took.

    PYTHONPATH=benchmarks graspad bench run --data ../shared/data --sets SMAP,SMD --out results/other_settings.csv \
        --methods other_settings:CNN100,other_settings:AutoEncoder128,other_settings:AutoEncoder32,other_settings:USAD5
"""

from __future__ import annotations

from dataclasses import dataclass

from graspad.bench.baselines.autoencoder import AutoEncoder
from graspad.bench.baselines.cnn import CNN
from graspad.bench.baselines.usad import USAD


@dataclass(eq=False)
class CNN100(CNN):
    """The default of its wrapper, which made mTSBench's own numbers; ours is in its list of tuned settings."""

    window: int = 100


@dataclass(eq=False)
class AutoEncoder128(AutoEncoder):
    """Of the list of tuned settings; ours is the default of its wrapper."""

    hidden: tuple[int, int] = (128, 64)


@dataclass(eq=False)
class AutoEncoder32(AutoEncoder):
    """The third one that mTSBench looks at."""

    hidden: tuple[int, int] = (32, 16)


@dataclass(eq=False)
class USAD5(USAD):
    """The default of its wrapper; ours is in the list of tuned settings."""

    window: int = 5
    learning_rate: float = 1e-4
