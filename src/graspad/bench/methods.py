"""All methods of the benchmark by name. A new one is one file and one line here.

A method of your own runs without any line here: name it `your_module:YourMethod`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from graspad.bench.baselines.copod import COPOD
from graspad.bench.baselines.hbos import HBOS
from graspad.bench.baselines.knn_window import KNNWindow
from graspad.bench.baselines.trivial import Constant, Energy, Limits, Mahalanobis, Random, Smoothed
from graspad.bench.grasp import Grasp
from graspad.bench.method import Method
from graspad.bench.roster import BASELINES, TRIVIAL
from graspad.config import PAPER, RECIPE, FieldKind, Settings
from graspad.errors import InputError


def _recipe(**scoring: object) -> Settings:
    return RECIPE.override(scoring=dict(RECIPE.scoring) | scoring)


def _network(kind: FieldKind, **scoring: object) -> Settings:
    """A network in place of the closed form, with the recipe's few training steps, each on 64 windows to save time."""
    velocity, training = dict(RECIPE.velocity) | {"kind": kind}, dict(RECIPE.training) | {"batch_size": 64}
    return _recipe(**scoring).override(velocity=velocity, training=training)


def _ablated(name: str, whole: Settings) -> dict[str, Callable[[], Method]]:
    """The paper's ablations, which build on each other: equal weights, then also a random graph or the linear path."""
    equal = whole.override(scoring=dict(whole.scoring) | {"weights": "uniform"})
    return {
        f"{name}-mean": partial(Grasp, equal),
        f"{name}-er": partial(Grasp, equal, graph="random"),
        f"{name}-lin": partial(Grasp, equal.override(tau=0.0)),
    }


def _smoothed(method: Callable[[], Method]) -> Method:
    return Smoothed(method())


def _deep(place: str, **settings: object) -> Method:
    """A deep baseline by its file and its class."""
    file, name = place.split(":")
    return getattr(import_module(f"graspad.bench.baselines.{file}"), name)(**settings)


# Ends after 150 epochs without a better held-out loss. All 1500 would take eight hours for one SMD machine, where the
# loss goes on falling by a per cent in 50 epochs: there is a shorter one for it.
_PAPER = PAPER.override(training=dict(PAPER.training) | {"patience": 3})
_PAPER_200 = _PAPER.override(training=dict(_PAPER.training) | {"budget": 200})
# The closed form with the paper's score: shares are added as they are.
_SUM = _recipe(calibrate=False, logarithm=False)

# Their files import torch, which takes seconds: not before one of them is asked for.
_DEEP = {
    "autoencoder": "autoencoder:AutoEncoder",
    "usad": "usad:USAD",
    "cnn": "cnn:CNN",
    "omnianomaly": "omnianomaly:OmniAnomaly",
    "tranad": "tranad:TranAD",
    "anomaly-transformer": "anomaly_transformer:AnomalyTransformer",
    "timesnet": "timesnet:TimesNet",
    "fits": "fits:FITS",
    "gdn": "gdn:GDN",
    "gcad": "gcad:GCAD",
    "catch": "catch:CATCH",
}

METHODS: dict[str, Callable[[], Method]] = {
    "grasp": partial(Grasp, RECIPE),
    "grasp-paper": partial(Grasp, _PAPER),
    "grasp-paper-200": partial(Grasp, _PAPER_200),
    "grasp-sum": partial(Grasp, _SUM),
    # Other readings of the paper, which does not say how test rows are scaled.
    "grasp-paper-own-scale": partial(Grasp, _PAPER, own_scale=True),
    "grasp-sum-own-scale": partial(Grasp, _SUM, own_scale=True),
    **_ablated("grasp", RECIPE),
    "grasp-tsmixer": partial(Grasp, _network("tsmixer")),
    "grasp-gnn": partial(Grasp, _network("gnn")),
    "grasp-transformer": partial(Grasp, _network("transformer")),
    **_ablated("grasp-tsmixer", _network("tsmixer")),
    **_ablated("grasp-gnn", _network("gnn")),
    "grasp-hybrid": partial(Grasp, _network("hybrid-tsmixer")),
    **{f"grasp-tau-{tau:g}": partial(Grasp, RECIPE.override(tau=tau)) for tau in (0, 0.25, 0.5, 1, 2, 4, 8)},
    **{f"grasp-times-{n}": partial(Grasp, _recipe(flow_times=n)) for n in (1, 2, 3, 5, 10, 20, 50)},
    # The closed form takes the mean over all sources exactly; their number matters to a network.
    **{f"grasp-sources-{n}": partial(Grasp, _network("tsmixer", sources=n)) for n in (1, 2, 5, 10, 20)},
    "hbos": HBOS,
    "copod": COPOD,
    "random": Random,
    "constant": Constant,
    "hbos-smooth": partial(_smoothed, HBOS),
    "energy-smooth": partial(_smoothed, Energy),
    "limits-smooth": partial(_smoothed, Limits),
    "mahalanobis-smooth": partial(_smoothed, Mahalanobis),
    "knn-window": KNNWindow,
    # As published, and with the defects mended that the file of each one lists.
    **{name: partial(_deep, place, mode="as-published") for name, place in _DEEP.items()},
    **{f"{name}-fixed": partial(_deep, place, mode="fixed") for name, place in _DEEP.items()},
}


def build(name: str) -> Method:
    """A fresh method."""
    if name in METHODS:
        return METHODS[name]()
    module, _, attribute = name.partition(":")
    try:
        method = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"There is no method {name!r}. Choose from {', '.join(METHODS)}, or name one of your own as "
            f"module:Class, on the Python path. ({error})"
        ) from None
    if not isinstance(method, Method):
        raise InputError(f"{name!r} is no method. Derive it from graspad.bench.method.Method.")
    return method


def chosen(names: Sequence[str]) -> dict[str, Method]:
    """The methods asked for, in that order; each is built once to see that it can be.

    `all` stands for the main table: the paper's thirteen baselines, the trivial rows and our recipe. Its variants, and
    the paper's preset with its hours of training, have to be named.
    """
    return {name: build(name) for name in ([*BASELINES, "grasp", *TRIVIAL] if list(names) == ["all"] else names)}
