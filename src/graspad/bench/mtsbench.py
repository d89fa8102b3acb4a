"""mTSBench's own numbers: mean VUS-PR of its detectors, with the defaults of its wrappers.

Read off its performance matrix (Selectors/Orthus/perfor_matrix_test, commit 9b64ac4). The paper's baselines are its
detectors too, but not always with these settings.
"""

from __future__ import annotations

from dataclasses import dataclass

_METHODS = (
    *("hbos", "copod", "autoencoder", "usad", "cnn", "omnianomaly", "tranad", "anomaly-transformer"),
    *("timesnet", "fits"),
)


@dataclass(frozen=True)
class Published:
    """The means over `series` series of a set; `without` are those of our series that they do not cover."""

    series: int
    vus_pr: dict[str, float]
    without: frozenset[str] = frozenset()


def _of(series: int, *vus_pr: float, without: tuple[str, ...] = ()) -> Published:
    return Published(series, dict(zip(_METHODS, vus_pr, strict=True)), frozenset(without))


SETS = {
    "SMAP": _of(
        *(48, 0.1961, 0.1998, 0.2370, 0.1998, 0.2216, 0.3046, 0.2311, 0.1294, 0.1990, 0.1864),
        without=("A-7", "G-4", "R-1"),
    ),
    "SMD": _of(18, 0.2490, 0.2233, 0.3381, 0.4614, 0.4402, 0.4508, 0.4055, 0.0932, 0.3915, 0.2980),
    "CICIDS": _of(5, 0.2912, 0.2768, 0.3817, 0.2714, 0.2799, 0.2797, 0.2706, 0.3359, 0.2809, 0.3025, without=("0",)),
    "SWAN": _of(1, 0.7661, 0.7676, 0.7736, 0.8548, 0.8373, 0.8869, 0.8357, 0.7266, 0.8191, 0.8078),
}
