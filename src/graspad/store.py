"""A fitted detector as one file: safetensors with a JSON manifest in its header. No pickle, so no file can run code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Constraint
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

import graspad
from graspad.alarms.rate import Allowed
from graspad.alarms.threshold import Threshold
from graspad.config import Align, Settings
from graspad.core.calibrate import Levels
from graspad.core.graph import Adjacency
from graspad.core.path import Path as FlowPath
from graspad.core.path import flow_times
from graspad.core.spectrum import Spectrum
from graspad.data.scale import Scale
from graspad.errors import InvalidSettingError, ModelFileError
from graspad.model import Model
from graspad.train import TrainingReport
from graspad.velocity.field import Field, build
from graspad.velocity.gaussian import GaussianField, kept_rank
from graspad.velocity.hybrid import RANK, HybridField
from graspad.view import Lens, View

FORMAT_VERSION: Final = 6
FilePath = str | os.PathLike[str]

# How every file begins, in all format versions. The checksum is that of the whole file with zeros in its own place.
_BEGINNING = re.compile(
    rb'.{8}\{"__metadata__":\{"manifest":"\{\\"format\\":\\"graspad-model\\",\\"sha256\\":\\"([0-9a-f]{64})', re.DOTALL
)
_BLANK = "0" * 64
_NORMAL: dict[Align, str] = {align: f"normal_scores.{align}" for align in get_args(Align)}
_AGAIN = "Copy it again from where it was saved, or fit and save the model again."


@dataclass(frozen=True)
class Saved:
    """What a file holds: the parts of a fitted detector and the parameters it was made with."""

    model: Model
    thresholds: dict[Align, Threshold]
    report: TrainingReport | None
    parameters: Mapping[str, Any]


class _Lens(BaseModel):
    model_config = ConfigDict(extra="forbid")

    every: Annotated[int, Constraint(ge=1)]
    window: Annotated[int, Constraint(ge=2)]
    weight: float


class _Manifest(BaseModel):
    # The fields stand in the file in this order, under one key: safetensors writes several keys in random order.
    model_config = ConfigDict(extra="forbid")

    format: Literal["graspad-model"] = "graspad-model"
    sha256: str = _BLANK
    format_version: Literal[6] = FORMAT_VERSION
    library_version: str = graspad.__version__
    sensors: tuple[str, ...]
    settings: Settings
    parameters: dict[str, Settings | bool | int | float | str | None]
    allowed: Allowed
    merge: Annotated[int, Constraint(ge=1)]
    training: TrainingReport | None
    lenses: Annotated[tuple[_Lens, ...], Constraint(min_length=1)]


def save(saved: Saved, path: FilePath) -> None:
    """Write the file all at once: a reader finds the old model or the new one, never half of one."""
    model, thresholds = saved.model, saved.thresholds
    threshold = thresholds[model.settings.align]
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in saved.parameters.items()}
    if not isinstance(plain.get("graph"), str | None):
        del plain["graph"]  # A matrix or pairs of names: the adjacency is stored anyway, and takes its place in load.
    manifest = _Manifest(
        sensors=model.sensors,
        settings=model.settings,
        parameters=plain,
        allowed=threshold.allowed,
        merge=threshold.merge,
        training=saved.report,
        lenses=tuple(
            _Lens(every=view.lens.every, window=view.lens.window, weight=view.lens.weight) for view in model.views
        ),
    )
    tensors = {
        "scale.mean": torch.from_numpy(model.scale.mean),
        "scale.std": torch.from_numpy(model.scale.std),
        "adjacency": torch.from_numpy(model.adjacency),
        "eigenvalues": model.spectrum.eigenvalues,
        "basis": model.spectrum.basis,
        **{_NORMAL[align]: torch.from_numpy(each.normal_scores) for align, each in thresholds.items()},
    }
    for index, view in enumerate(model.views):
        tensors |= {f"view{index}.{name}": tensor for name, tensor in _tensors(view).items()}
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    try:
        _assemble(manifest, tensors, plain)  # What load would refuse must fail now, not when the model is needed.
    except ValueError as error:
        raise ModelFileError.of(path, f"is not written: {error}", "Check the data and fit again.") from None
    _write(_pack(manifest.model_dump(mode="json"), tensors), path)


def load(path: FilePath, known_parameters: Collection[str]) -> Saved:
    """Read a file that `save` wrote; anything else, damaged, foreign or too new, is a ModelFileError."""
    try:
        with open(path, "rb") as file:
            # A foreign file may be huge: its beginning is enough to refuse it.
            data = file.read(256)
            data += file.read() if _BEGINNING.match(data) else b""
    except FileNotFoundError:
        raise ModelFileError.of(path, "does not exist", "Check the path; GraspDetector.save makes one.") from None
    except OSError as error:
        raise ModelFileError.of(path, f"cannot be read: {error.strerror or error}", "Check the path.") from None
    found = _BEGINNING.match(data)
    if found is None:
        told = "is not a graspad model, or its beginning is damaged"
        raise ModelFileError.of(path, told, "Give a file that GraspDetector.save wrote.")
    blanked = data[: found.start(1)] + _BLANK.encode() + data[found.end(1) :]
    if _checksum(blanked) != found[1]:
        raise ModelFileError.of(path, "is damaged: its content does not match its checksum", _AGAIN)
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        manifest = json.loads(header["__metadata__"]["manifest"])
        version, library = manifest["format_version"], manifest["library_version"]
        newer = version > FORMAT_VERSION
        if version == FORMAT_VERSION:
            return _assemble(_Manifest.model_validate(manifest), from_bytes(data), known_parameters)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        why = InvalidSettingError.from_pydantic(error) if isinstance(error, ValidationError) else error
        raise ModelFileError.of(path, f"does not hold a whole model: {why}", _AGAIN) from None
    told = f"has format {version}, but graspad {graspad.__version__} reads format {FORMAT_VERSION}"
    upgrade = f"Install graspad {library} or newer: pip install --upgrade graspad."
    raise ModelFileError.of(path, told, upgrade if newer else "Fit the model again and save it.")


def _pack(manifest: dict[str, Any], tensors: dict[str, Tensor]) -> bytes:
    data = to_bytes(tensors, {"manifest": json.dumps(manifest, separators=(",", ":"))})
    return data.replace(_BLANK.encode(), _checksum(data), 1)


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _write(data: bytes, path: FilePath) -> None:
    target = Path(os.path.realpath(path))  # Through a link, as an ordinary write would go.
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        told = f"is not written: {error.strerror or error}"
        raise ModelFileError.of(path, told, "Check the folder and its free space; an older file is kept.") from None


def _assemble(manifest: _Manifest, tensors: dict[str, Tensor], known_parameters: Collection[str]) -> Saved:
    if unknown := sorted(manifest.parameters.keys() - known_parameters):
        raise ValueError(f"it sets {unknown[0]!r}, which graspad {graspad.__version__} does not know")
    _check(tensors, _expected(manifest, tensors))
    # Copies lie in memory as torch lays out its own, and that can decide the last bit of a matrix product.
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    adjacency = tensors["adjacency"].numpy()
    spectrum = Spectrum(tensors["eigenvalues"], tensors["basis"])
    views = tuple(
        _view(lens, manifest.settings, adjacency, spectrum, _under(f"view{index}.", tensors))
        for index, lens in enumerate(manifest.lenses)
    )
    scale = Scale(tensors["scale.mean"].numpy(), tensors["scale.std"].numpy())
    model = Model(manifest.settings, manifest.sensors, scale, adjacency, spectrum, views)
    thresholds = {
        align: Threshold(tensors[name].numpy(), manifest.allowed, manifest.merge) for align, name in _NORMAL.items()
    }
    return Saved(model, thresholds, manifest.training, {"graph": adjacency.copy()} | manifest.parameters)


def _tensors(view: View) -> dict[str, Tensor]:
    """All that a view holds beside its settings."""
    tensors = {f"field.{name}": tensor for name, tensor in view.field.state_dict().items()}
    if view.sources is not None:
        tensors["sources"] = view.sources
    if view.lens.scale is not None:
        tensors |= {f"scale.{name}": torch.from_numpy(values) for name, values in vars(view.lens.scale).items()}
    if view.levels is not None:
        tensors |= {f"levels.{name}": values for name, values in vars(view.levels).items()}
    return tensors


def _view(
    lens: _Lens, settings: Settings, adjacency: Adjacency, spectrum: Spectrum, tensors: dict[str, Tensor]
) -> View:
    field = _empty_field(settings, lens.window, adjacency, spectrum)
    field.load_state_dict(_under("field.", tensors))
    field.eval()
    scale, levels = _under("scale.", tensors), _under("levels.", tensors)
    return View(
        Lens(**dict(lens), scale=Scale(**{name: part.numpy() for name, part in scale.items()}) if scale else None),
        settings,
        spectrum,
        field,
        tensors.get("sources"),
        Levels(**levels) if levels else None,
    )


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _empty_field(settings: Settings, window: int, adjacency: Adjacency, spectrum: Spectrum) -> Field:
    """A field of the right shape, for load_state_dict to fill."""
    n, velocity = len(adjacency), settings.velocity

    def closed_form(rank: int | None) -> GaussianField:
        factor = torch.zeros(n, window, kept_rank(rank, n * window))
        return GaussianField(torch.zeros(n, window), factor, 0.0, spectrum, FlowPath.of(spectrum, settings.tau))

    if velocity.kind == "gaussian":
        return closed_form(velocity.rank)
    network = build(velocity, n, window, adjacency, seed=0)
    if not velocity.hybrid:
        return network
    return HybridField(closed_form(velocity.rank or RANK), network, flow_times(settings.scoring.flow_times))


def _expected(manifest: _Manifest, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of the shapes and types that the settings ask for; on the meta device absurd ones cost no memory."""
    n, settings = len(manifest.sensors), manifest.settings
    shapes = {"scale.mean": (n,), "scale.std": (n,), "eigenvalues": (n,), "basis": (n, n)}
    for name in _NORMAL.values():
        shapes[name] = (tensors[name].numel() if name in tensors else 0,)
    with torch.device("meta"):
        expected = {name: torch.empty(shape, dtype=torch.float64) for name, shape in shapes.items()}
        expected["adjacency"] = torch.empty(n, n, dtype=torch.bool)
        spectrum = Spectrum(expected["eigenvalues"], expected["basis"])
        for index, lens in enumerate(manifest.lenses):
            parts = _expected_of_view(lens, settings, n, spectrum)
            expected |= {f"view{index}.{name}": tensor for name, tensor in parts.items()}
    return expected


def _expected_of_view(lens: _Lens, settings: Settings, n: int, spectrum: Spectrum) -> dict[str, Tensor]:
    field = _empty_field(settings, lens.window, np.zeros((n, n), dtype=bool), spectrum)
    expected = {f"field.{name}": tensor for name, tensor in field.state_dict().items()}
    if settings.velocity.kind != "gaussian":
        expected["sources"] = torch.empty(settings.scoring.sources, n, lens.window)
    if lens.every > 1:
        expected |= {f"scale.{name}": torch.empty(n, dtype=torch.float64) for name in ("mean", "std")}
    if settings.scoring.calibrate:
        expected |= {f"levels.{name}": torch.empty(n) for name in ("usual", "reach")}
        times = settings.scoring.flow_times
        expected |= {"levels.gain": torch.empty(times, n), "levels.joint_gain": torch.empty(times)}
        expected["levels.joint"] = torch.empty(2)
    return expected


def _check(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    if wrong := sorted(tensors.keys() ^ expected.keys()):
        raise ValueError(f"the tensor {wrong[0]!r} is {'not expected' if wrong[0] in tensors else 'missing'}")
    for name, tensor in tensors.items():
        wanted, got = ((tuple(each.shape), each.dtype) for each in (expected[name], tensor))
        if wanted != got:
            raise ValueError(f"the tensor {name!r} is {got}, but the settings ask for {wanted}")
        # A normal score may be missing, or infinite where held-out data overflowed; nothing else may.
        if tensor.isnan().all() if name in _NORMAL.values() else not tensor.isfinite().all():
            raise ValueError(f"the tensor {name!r} holds NaN or infinite values")
