"""All numbers of the method in one place: PAPER holds the paper's, RECIPE ours (the default)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graspad.errors import InvalidSettingError

Fraction = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[int, Field(ge=1)]
FieldKind = Literal["gaussian", "tsmixer", "gnn", "transformer", "hybrid-tsmixer", "hybrid-gnn", "hybrid-transformer"]
Align = Literal["overlap", "causal"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Velocity(_Frozen):
    """The velocity field: a network (Appendix C and E.6), the closed form with its `rank` and `ridge`, or both.

    None keeps every direction of the closed form where that can be afforded, and takes the ridge with the lowest
    held-out loss; in a hybrid it leaves the network something to do (`velocity.hybrid`).
    """

    kind: FieldKind = "tsmixer"
    hidden: Annotated[int, Field(ge=4, multiple_of=4)] = 128
    blocks: Positive = 2
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    time_features: Annotated[int, Field(ge=2, multiple_of=2)] = 64
    rank: Positive | None = None
    ridge: Annotated[float, Field(gt=0)] | None = None

    @property
    def hybrid(self) -> bool:
        """Whether a network learns what the closed form leaves over."""
        return self.kind.startswith("hybrid-")

    @property
    def network(self) -> str:
        """The name of the network, alone or in a hybrid."""
        return self.kind.removeprefix("hybrid-")


class Training(_Frozen):
    """How the network is trained (Appendix E.3). `budget` and `validate_every` count `unit`s.

    Training ends early after `patience` validations in a row without a better held-out loss; None goes on to the end.
    Either way the best weights are kept.
    """

    budget: Positive = 1500
    unit: Literal["epochs", "steps"] = "epochs"
    validate_every: Positive = 50
    patience: Positive | None = None
    batch_size: Positive = 256
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    anneal: bool = False
    validation_share: Fraction = 0.2
    validation_windows: Positive | None = None


class Look(_Frozen):
    """A further look at the rows: windows of `length` × `window` rows, each the mean of `every` rows of the table.

    Its score counts `weight` times as much as that of the windows themselves.
    """

    every: Positive = 1
    length: Annotated[float, Field(gt=0, le=1)] = 1.0
    weight: Annotated[float, Field(gt=0)] = 1.0


class Scoring(_Frozen):
    """How a window is scored: |X_ad|, |R_ad| and the weights of Equation (anomaly_score).

    The closed form averages over all sources exactly and needs no number of them. `calibrate` measures each sensor's
    share against its own normal range before they are added. `logarithm` takes log(1 + ξ) of each window before the
    windows that cover a row are averaged. `stride` k takes only every k-th of them, where that is what a row's score is
    (align "overlap"). `looks` are further looks at the rows, by closed forms of their own; a network has none.
    """

    sources: Positive = 5
    flow_times: Positive = 10
    weights: Literal["eta", "uniform"] = "eta"
    calibrate: bool = False
    logarithm: bool = False
    stride: Positive = 1
    looks: tuple[Look, ...] = ()


class ClosedForm(_Frozen):
    """The numbers of the closed form that are no settings of a detector; results say what they were."""

    # Up to so many entries of a window (40 sensors at 50 rows) every direction is kept, beyond that the leading ones.
    full: Positive = 2048
    leading: Positive = 256
    # Least variances to choose from, in units of each sensor's own.
    ridges: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)


class Calibration(_Frozen):
    """The numbers of `core.calibrate`, likewise."""

    # A sensor counts where it exceeds this quantile of its own normal range.
    usual: Fraction = 0.95
    # The shortest way, in logarithms, from the usual to the highest: a sensor that hardly varies in normal operation
    # has next to none, and would count without limit.
    shortest: float = 0.2
    # A sensor counts at most so many times its normal way. The farthest one counts more, for what it is beyond that
    # way: one sensor further out than ever tells more than many that are as far out as they sometimes are.
    most: float = 5.0
    farthest: float = 8.0
    # All sensors together begin to count at this quantile of their normal range. Their shortest way from there to the
    # usual, what they count then, and how softly they begin: without, all rows below every level would tie.
    begin: Fraction = 0.9
    shortest_joint: float = 0.05
    joint: float = 2.0
    soft: float = 0.1


class Settings(_Frozen):
    """One complete description of a detector, apart from data, graph and seed."""

    window: Annotated[int, Field(ge=2)] = 50
    tau: Annotated[float, Field(ge=0, le=1000)] = 2.0
    edge_threshold: Fraction = 0.5
    align: Align = "overlap"
    gap_limit: Annotated[int, Field(ge=0)] = 5  # missing rows that are filled forward
    velocity: Velocity = Velocity()
    training: Training = Training()
    scoring: Scoring = Scoring()

    def override(self, **changes: Any) -> Settings:
        """These settings with some fields changed, checked like new ones; `None` leaves a field as it is.

        >>> PAPER.override(tau=1.0, velocity=None).tau
        1.0
        """
        values = dict(self) | {name: value for name, value in changes.items() if value is not None}
        try:
            return Settings.model_validate(values)
        except ValidationError as error:
            raise InvalidSettingError.from_pydantic(error) from None


CLOSED_FORM, CALIBRATION = ClosedForm(), Calibration()

PAPER = Settings()

RECIPE = PAPER.override(
    # The closed form needs no training. With a network in its place: few steps, in which it does not overfit, so that
    # dropout would only cost held-out loss and time (results/tsmixer_readings.csv).
    velocity=Velocity(kind="gaussian", dropout=0.0),
    training=Training(budget=1500, unit="steps", validate_every=100, anneal=True, validation_windows=1024),
    # Shorter windows for what is brief, windows of averaged rows for what is slow.
    scoring=Scoring(
        flow_times=3,
        calibrate=True,
        logarithm=True,
        stride=5,  # neighbouring windows say nearly the same
        looks=(
            Look(length=0.4),
            Look(every=10, length=0.5),
        ),
    ),
)

PRESETS = {"recipe": RECIPE, "paper": PAPER}
