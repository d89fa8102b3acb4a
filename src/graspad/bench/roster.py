"""The methods that the tables know: their names in the paper, their groups, their order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Sweep = Literal["tau", "times", "sources"]

# Our name of a method, and the name of its row in the paper; each group in the paper's order.
BASELINES = {
    "hbos": "HBOS",
    "copod": "COPOD",
    "autoencoder": "Autoencoder",
    "usad": "USAD",
    "cnn": "CNN",
    "omnianomaly": "OmniAnomaly",
    "tranad": "TranAD",
    "anomaly-transformer": "A-Transformer",
    "timesnet": "TimesNet",
    "fits": "FITS",
    "gdn": "GDN",
    "gcad": "GCAD",
    "catch": "CATCH",
}
SYSTEMS = {**BASELINES, "grasp-paper": "GRASP", "grasp": "GRASP"}
NETWORKS = {"grasp-tsmixer": "TSMixer", "grasp-gnn": "GNN", "grasp-transformer": "Transformer"}
# Of our recipe and of networks: {"grasp": {"grasp": "GRASP", "grasp-mean": "GRASP-mean", …}, …}.
ABLATIONS = {
    whole: {whole + suffix.lower(): f"GRASP{suffix}" for suffix in ("", "-mean", "-ER", "-lin")}
    for whole in ("grasp", "grasp-tsmixer", "grasp-gnn")
}
# A network for what the closed form leaves over, which the paper does not have.
HYBRIDS = {"grasp-hybrid": "closed form and TSMixer"}

# The name of a deep baseline, without the defects of its published implementation.
_FIXED = "-fixed"

# What the sensitivity methods vary, in the paper's symbols.
SWEEPS: dict[Sweep, str] = {"tau": "τ", "times": "|R_ad|", "sources": "|X_ad|"}

# What no method may be praised for beating by a little: always in the table, measured or not.
TRIVIAL = ("random", "constant", "hbos-smooth", "energy-smooth", "limits-smooth", "mahalanobis-smooth", "knn-window")

_OURS = {
    "grasp": "GRASP (recipe)",
    "grasp-paper": "GRASP (paper preset)",
    "grasp-paper-200": "GRASP (paper preset, 200 epochs)",
}
_ABLATED = {
    method: variant.replace("GRASP", NETWORKS.get(whole, "GRASP"))
    for whole, variants in ABLATIONS.items()
    for method, variant in variants.items()
}
_VARIANTS = _ABLATED | NETWORKS | HYBRIDS
_NAMES = SYSTEMS | _VARIANTS | _OURS
_KNOWN = (*SYSTEMS, *_VARIANTS)


def name(method: str) -> str:
    """What a method is called in a table; a method that is not known keeps its own name.

    >>> name("anomaly-transformer"), name("usad-fixed"), name("grasp"), name("grasp-gnn-lin"), name("hbos-smooth")
    ('A-Transformer', 'USAD (fixed)', 'GRASP (recipe)', 'GNN-lin', 'hbos-smooth')
    """
    published = method.removesuffix(_FIXED)
    return f"{BASELINES[published]} (fixed)" if _is_fixed(method) else _NAMES.get(method, method)


def swept(method: str) -> tuple[Sweep, float] | None:
    """The quantity that a sensitivity method varies and its value.

    >>> swept("grasp-tau-0.25"), swept("grasp-paper")
    (('tau', 0.25), None)
    """
    match = re.fullmatch(r"grasp-(tau|times|sources)-(\d+(?:\.\d+)?)", method)
    return (match[1], float(match[2])) if match else None  # type: ignore[return-value]


def is_variant(method: str) -> bool:
    """Whether a method belongs in a table of its own (ablation, architecture, sensitivity), not in the main table."""
    return method != "grasp" and (method in _VARIANTS or swept(method) is not None)


def ordered(methods: Iterable[str]) -> list[str]:
    """Each method once: the paper's order, then our recipe, its variants, others as they come, trivial ones last.

    >>> ordered(["random", "mine:Own", "grasp", "grasp-tau-2", "grasp-tau-0.5", "usad-fixed", "usad", "hbos", "grasp"])
    ['hbos', 'usad', 'usad-fixed', 'grasp', 'grasp-tau-0.5', 'grasp-tau-2', 'mine:Own', 'random']
    """

    def place(method: str) -> tuple[int, str, float]:
        if _is_fixed(method):
            return 0, "", _KNOWN.index(method.removesuffix(_FIXED)) + 0.5
        if method in _KNOWN:
            return 0, "", float(_KNOWN.index(method))
        if method in TRIVIAL:
            return 3, "", float(TRIVIAL.index(method))
        quantity = swept(method)
        return (1, *quantity) if quantity else (2, "", 0.0)

    return sorted(dict.fromkeys(methods), key=place)


def _is_fixed(method: str) -> bool:
    return method.endswith(_FIXED) and method.removesuffix(_FIXED) in BASELINES
