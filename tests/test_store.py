import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone

from graspad import RECIPE, GraspDetector, store
from graspad.config import Look, Scoring, Training, Velocity
from graspad.core.spectrum import Spectrum
from graspad.errors import GraspError, ModelFileError, NotFittedError

SENSORS = ["flow", "level", "pump", "Öl °C"]
# Dropout is on: a loaded field that is left in training mode would not give the same bits.
TINY = RECIPE.override(
    window=8,
    velocity=Velocity(kind="tsmixer", hidden=8, time_features=8, dropout=0.2),
    training=Training(budget=30, unit="steps", validate_every=10),
    scoring=Scoring(sources=2, flow_times=3, calibrate=True),
)

LOOKS = Scoring(
    flow_times=3, calibrate=True, logarithm=True, looks=(Look(length=0.5), Look(every=3, length=0.5, weight=0.5))
)

# One network with the plain score, and the closed form with calibrated shares and several looks.
FOLDER = Path(__file__).parent / "golden"
GOLDEN = {
    FOLDER / "tsmixer-format-6.grasp": TINY.override(scoring=Scoring(sources=2, flow_times=3)),
    FOLDER / "gaussian-format-6.grasp": TINY.override(velocity=Velocity(kind="gaussian"), scoring=LOOKS),
}


def plant(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    phases = np.array([0, 0.3, 2, 2.2])
    return np.sin(np.arange(rows)[:, None] / 9 + phases) + 0.1 * rng.standard_normal((rows, 4))


def frame(rows: int, seed: int, fault: float = 0.0) -> pd.DataFrame:
    values = plant(rows, seed)
    values[20:26, 2] += fault
    return pd.DataFrame(values, columns=SENSORS)


@pytest.fixture(scope="module")
def detector() -> GraspDetector:
    return GraspDetector(TINY, false_alarms=0.05, seed=3).fit(frame(300, 0))


@pytest.fixture
def saved(detector, tmp_path) -> Path:
    detector.save(tmp_path / "pump7.grasp")
    return tmp_path / "pump7.grasp"


def contents(path: Path) -> tuple[dict, dict]:
    """Manifest and tensors, read by safetensors alone."""
    with safe_open(path, framework="pt") as file:
        assert file.metadata().keys() == {"manifest"}
        return json.loads(file.metadata()["manifest"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def rewrite(path: Path, manifest: dict, tensors: dict) -> None:
    """A file with any content and the right checksum."""
    path.write_bytes(store._pack({**manifest, "sha256": "0" * 64}, tensors))


def assert_same_bits(first: GraspDetector, second: GraspDetector, data: object) -> None:
    one, other = first.score(data), second.score(data)
    assert one["score"].notna().sum() > 30
    for column in ("score", "p_value"):
        assert one[column].to_numpy().tobytes() == other[column].to_numpy().tobytes()
    assert one.equals(other)
    why, also = first.explain(data), second.explain(data)
    for name in ("score", "by_sensor", "by_flow_time"):
        assert getattr(why, name).tobytes() == getattr(also, name).tobytes()
    assert (why.sensors, why.bands, why.flow_times) == (also.sensors, also.bands, also.flow_times)


@pytest.mark.parametrize("kind", ["gaussian", "tsmixer", "gnn", "transformer", "hybrid-transformer"])
@pytest.mark.parametrize("align", ["overlap", "causal"])
def test_a_loaded_detector_answers_with_the_same_bits_and_saves_to_the_same_bytes(kind, align, tmp_path):
    detector = GraspDetector(TINY, field=kind, align=align, false_alarms=0.05).fit(frame(300, 0))
    detector.save(tmp_path / "one")
    loaded = GraspDetector.load(tmp_path / "one")
    faulty = frame(60, 1, fault=5.0)
    assert 0 < detector.predict(faulty).sum() < 60
    assert_same_bits(detector, loaded, faulty)
    loaded.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_parameters_and_training_report_come_back(detector, saved):
    loaded = GraspDetector.load(str(saved))
    assert loaded.get_params() == detector.get_params()
    assert loaded.training_report_ == detector.training_report_
    assert loaded.model_.settings == detector.model_.settings
    assert loaded.model_.sensors == tuple(SENSORS)
    assert_same_bits(clone(loaded).fit(frame(300, 0)), detector, frame(60, 1))


def test_numpy_parameters_and_infinite_losses_come_back(tmp_path):
    detector = GraspDetector(TINY, tau=np.float32(0.5), false_alarms=0.05).fit(frame(300, 0))
    detector.set_params(seed=np.int64(2))
    report = type(detector.training_report_)(1, float("inf"), 0.1, 1, 2.0, True)
    detector.training_report_ = report
    detector.save(tmp_path / "m")
    loaded = GraspDetector.load(tmp_path / "m")
    assert (loaded.seed, loaded.tau, loaded.training_report_) == (2, 0.5, report)
    assert type(loaded.seed) is int


def test_tensors_in_another_memory_order_can_be_saved(detector, saved, tmp_path):
    turned = Spectrum(detector.model_.spectrum.eigenvalues, detector.model_.spectrum.basis.T.contiguous().T)
    other = GraspDetector.load(saved)
    other.model_ = replace(other.model_, spectrum=turned)
    other.save(tmp_path / "turned")
    assert (tmp_path / "turned").read_bytes() == saved.read_bytes()


@pytest.mark.parametrize(
    "graph", [None, "random", [("flow", "pump")], np.asfortranarray(1 - np.eye(4, dtype=int))], ids=str
)
def test_a_graph_survives_so_that_a_second_fit_uses_it(graph, tmp_path):
    detector = GraspDetector(TINY, graph=graph, false_alarms=0.05).fit(frame(300, 0))
    detector.save(tmp_path / "m")
    loaded = GraspDetector.load(tmp_path / "m")
    assert_same_bits(detector, loaded, frame(60, 1))
    again = clone(loaded).fit(frame(300, 0))
    np.testing.assert_array_equal(again.model_.adjacency, detector.model_.adjacency)
    if graph is None or isinstance(graph, str):
        assert loaded.graph == graph


def test_the_file_is_plain_safetensors_with_a_manifest(detector, saved):
    manifest, tensors = contents(saved)
    assert (manifest["format"], manifest["format_version"], manifest["sensors"]) == ("graspad-model", 6, SENSORS)
    assert manifest["settings"] == TINY.model_dump(mode="json")
    assert torch.equal(tensors["basis"], detector.model_.spectrum.basis)
    fields = {name.removeprefix("view0.field.") for name in tensors if name.startswith("view0.field.")}
    assert fields == detector.model_.views[0].field.state_dict().keys()


def test_saving_before_fit_is_told(tmp_path):
    with pytest.raises(NotFittedError, match="Call fit"):
        GraspDetector().save(tmp_path / "m.grasp")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_fails_leaves_the_old_model_and_nothing_else(step, error, detector, saved, monkeypatch):
    def fail(*arguments: object) -> None:
        raise error

    before = saved.read_bytes()
    other = GraspDetector(TINY, false_alarms=0.05, seed=4).fit(frame(300, 0))
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        told = {"match": "pump7.grasp.*No space left"} if isinstance(error, OSError) else {}
        with pytest.raises(ModelFileError if isinstance(error, OSError) else KeyboardInterrupt, **told):
            other.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["pump7.grasp"]
    other.save(saved)
    assert_same_bits(GraspDetector.load(saved), other, frame(60, 1))


def test_saving_goes_through_a_link_and_keeps_the_usual_permissions(detector, tmp_path):
    (tmp_path / "current").symlink_to(tmp_path / "real")
    (tmp_path / "plain").write_bytes(b"")
    detector.save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("path", ["no/such/folder.grasp", "."])
def test_places_that_cannot_be_written_are_told(path, detector, tmp_path):
    with pytest.raises(ModelFileError, match=r"is not written.*Check the folder"):
        detector.save(tmp_path / path)
    assert os.listdir(tmp_path) == []


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    detector = GraspDetector(TINY, false_alarms=0.05).fit(frame(300, 0))
    detector.model_.scale.std[1] = np.inf
    with pytest.raises(ModelFileError, match=r"is not written: the tensor 'scale\.std' holds NaN or infinite"):
        detector.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_missing_file_and_a_folder_are_told(tmp_path):
    with pytest.raises(ModelFileError, match=r"pump8\.grasp' does not exist\. Check the path"):
        GraspDetector.load(tmp_path / "pump8.grasp")
    with pytest.raises(ModelFileError, match="cannot be read"):
        GraspDetector.load(tmp_path)
    assert issubclass(ModelFileError, GraspError)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign.grasp"
    for data in (b"", b"flow,level\n1,2\n" * 50, b"PK\x03\x04" + bytes(100), bytes(8), bytes(5000)):
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"foreign\.grasp' is not a graspad model.*save wrote"):
            GraspDetector.load(path)
    for metadata in (None, {"format": "pt"}, {"manifest": "{}"}, {"manifest": '{"format":"other"}'}):
        save_file({"field.weight": torch.zeros(3)}, path, metadata)
        with pytest.raises(ModelFileError, match="is not a graspad model"):
            GraspDetector.load(path)


def test_every_changed_byte_is_noticed(saved):
    data = saved.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    changes = [(place, data[place] ^ 1 << place % 8) for place in [*range(header), *range(header, len(data), 17)]]
    # These mean the same to a JSON reader: a tab after the header, an upper-case digit of the checksum.
    changes += [(header - 1, 0x09)] if data[header - 1] == 0x20 else []
    changes += [(place, data[place] - 32) for place in range(60, 200) if chr(data[place]) in "abcdef"]
    with open(saved, "r+b", buffering=0) as file:
        for place, new in changes:
            os.pwrite(file.fileno(), bytes([new]), place)
            with pytest.raises(ModelFileError, match=r"pump7\.grasp"):
                store.load(saved, ())
            os.pwrite(file.fileno(), data[place : place + 1], place)
    GraspDetector.load(saved)


def test_truncated_and_lengthened_files_are_refused(saved):
    data = saved.read_bytes()
    for length in [*range(0, len(data), 97), len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"is damaged|is not a graspad model"):
            GraspDetector.load(saved)
    saved.write_bytes(data + b"\0")
    with pytest.raises(ModelFileError, match=r"is damaged.*Copy it again"):
        GraspDetector.load(saved)


def test_a_newer_format_is_refused_with_the_version_to_install(saved):
    manifest, tensors = contents(saved)
    newer = {**manifest, "format_version": 7, "library_version": "7.1", "what": "we cannot know"}
    rewrite(saved, newer, {**tensors, "more": torch.zeros(1)})
    with pytest.raises(ModelFileError, match=r"has format 7, but graspad .* format 6\. Install graspad 7\.1 or newer"):
        GraspDetector.load(saved)


def test_an_older_format_is_refused_with_what_to_do(saved):
    manifest, tensors = contents(saved)
    rewrite(saved, {**manifest, "format_version": 5}, tensors)
    with pytest.raises(ModelFileError, match=r"has format 5, but graspad .* format 6\. Fit the model again"):
        GraspDetector.load(saved)


def test_every_view_survives(tmp_path):
    settings = TINY.override(velocity=Velocity(kind="gaussian"), scoring=LOOKS)
    detector = GraspDetector(settings, false_alarms=0.05).fit(frame(300, 0))
    assert [(view.lens.every, view.lens.window) for view in detector.model_.views] == [(1, 8), (1, 4), (3, 4)]
    detector.save(tmp_path / "m")
    assert_same_bits(GraspDetector.load(tmp_path / "m"), detector, frame(60, 1))


def _drop(name):
    return lambda manifest, tensors: tensors.pop(name)


def _put(name, value):
    return lambda manifest, tensors: tensors.update({name: value})


def _first(name, value):
    return lambda manifest, tensors: tensors[name].view(-1)[:1].fill_(value)


def _cast(name, dtype):
    return lambda manifest, tensors: tensors.update({name: tensors[name].to(dtype)})


def _say(*keys, value):
    def change(manifest, tensors):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


WEIGHT = "view0.field.project_out.weight"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_drop("view0.sources"), r"the tensor 'view0\.sources' is missing"),
        (_drop("adjacency"), "the tensor 'adjacency' is missing"),
        (_drop("normal_scores.overlap"), r"the tensor 'normal_scores\.overlap' is missing"),
        (_drop(WEIGHT), rf"the tensor '{WEIGHT}' is missing"),
        (_put("view0.field.more", torch.zeros(2)), r"the tensor 'view0\.field\.more' is not expected"),
        (_put("view1.sources", torch.zeros(2)), r"the tensor 'view1\.sources' is not expected"),
        (_put("basis", torch.zeros(4, 3, dtype=torch.float64)), r"'basis' is \(\(4, 3\).* ask for \(\(4, 4\)"),
        (_put("view0.sources", torch.zeros(3, 4, 8)), r"the tensor 'view0\.sources' is"),
        (_put(WEIGHT, torch.zeros(4, 9)), rf"'{WEIGHT}' is \(\(4, 9\)"),
        (_put("normal_scores.overlap", torch.zeros(2, 2, dtype=torch.float64)), "overlap' is"),
        (_cast(WEIGHT, torch.float64), rf"'{WEIGHT}' is .*float64.*float32"),
        (_cast("scale.mean", torch.float32), r"'scale\.mean' is .*float32.*float64"),
        (_cast("adjacency", torch.uint8), "'adjacency' is .*uint8.*bool"),
        (_first(WEIGHT, torch.nan), rf"'{WEIGHT}' holds NaN or infinite values"),
        (_first("scale.std", torch.inf), r"'scale\.std' holds NaN or infinite values"),
        (_put("normal_scores.overlap", torch.full((9,), torch.nan, dtype=torch.float64)), "overlap' holds NaN"),
        (_say("settings", "windows", value=5), r"There is no 'settings\.windows' parameter"),
        (_say("lenses", value=[{"every": 1, "window": 9, "weight": 1.0}]), "the settings ask for"),
        (_say("lenses", value=[{"every": 0, "window": 8, "weight": 1.0}]), "every"),
        (_say("lenses", value=[]), "lenses"),
        (_say("settings", "velocity", "kind", value="lstm"), r"'settings\.velocity\.kind' parameter must be"),
        (_say("settings", "velocity", "kind", value="gnn"), "is missing|is not expected"),
        (_say("settings", "velocity", "hidden", value=4 * 10**8), "the settings ask for"),
        (_say("settings", "velocity", "hidden", value=4 * 10**30), "does not hold a whole model"),
        (_say("settings", value=None), "'settings' parameter must be"),
        (_say("parameters", "depth", value=3), "it sets 'depth', which graspad .* does not know"),
        (_say("parameters", "preset", value={"windows": 3}), "windows"),
        (_say("sensors", value=["flow"]), "the settings ask for"),
        (_say("sensors", value="flow"), "'sensors' parameter must be"),
        (_say("training", value={"steps": 1}), "training"),
        (_say("allowed", value={"share": "often", "of": "rows"}), "'allowed.share' parameter must be"),
        (_say("format_version", value="1"), "does not hold a whole model"),
        (_say("extra", value=1), "There is no 'extra' parameter"),
        (lambda manifest, tensors: manifest.pop("settings"), "settings"),
        (lambda manifest, tensors: manifest.pop("format_version"), "format_version"),
    ],
)
def test_contents_that_do_not_fit_together_are_refused(change, told, saved):
    manifest, tensors = contents(saved)
    rewrite(saved, manifest, tensors)
    GraspDetector.load(saved)
    change(manifest, tensors)
    rewrite(saved, manifest, tensors)
    with pytest.raises(ModelFileError, match=r"pump7\.grasp") as refusal:
        GraspDetector.load(saved)
    assert refusal.match(told)


def test_normal_scores_that_overflowed_can_be_saved(tmp_path):
    detector = GraspDetector(TINY, false_alarms=0.05).fit(frame(300, 0))
    detector.threshold_.normal_scores[-1] = np.inf
    detector.save(tmp_path / "m")
    assert_same_bits(GraspDetector.load(tmp_path / "m"), detector, frame(60, 1))


def test_loading_leaves_the_global_random_state_alone(saved):
    before = torch.get_rng_state()
    GraspDetector.load(saved)
    assert torch.equal(torch.get_rng_state(), before)


def make_golden() -> None:
    """Write the golden files that are missing: `python tests/test_store.py`. They stay; a new format gets new ones."""
    for path, settings in GOLDEN.items():
        if path.exists():
            continue
        detector = GraspDetector(settings, false_alarms=0.05, seed=3).fit(frame(300, 0))
        detector.save(path)
        data = frame(40, 1, fault=5.0).round(6)
        out = detector.score(data)
        expected = {
            "rows": data.to_numpy().tolist(),
            "score": out["score"].tolist(),
            "alarm": out["alarm"].tolist(),
            "by_sensor": detector.explain(data).by_sensor.tolist(),
        }
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_models_are_still_read_and_score_as_they_did(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    detector = GraspDetector.load(path)
    assert detector.model_.settings.velocity.kind == GOLDEN[path].velocity.kind
    data = pd.DataFrame(expected["rows"], columns=SENSORS)
    out, why = detector.score(data), detector.explain(data)
    # A calibrated share is a difference from the normal level: near 0 only its absolute error is small.
    near = {"rtol": 1e-5, "atol": 1e-5 if detector.model_.views[0].levels else 0.0}
    np.testing.assert_allclose(out["score"], expected["score"], **near)
    np.testing.assert_allclose(why.by_sensor, expected["by_sensor"], **near)
    # Other machines round differently: a row this close to the threshold may fall on either side.
    clear = ~np.isclose(out["score"], detector.threshold_.value, rtol=1e-4)
    assert out["alarm"][clear].tolist() == np.array(expected["alarm"])[clear].tolist()
    assert 0 < sum(expected["alarm"]) < len(expected["alarm"])
    assert why.top_sensors(20, 26)[0][0] == "pump"


if __name__ == "__main__":
    make_golden()
