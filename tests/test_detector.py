import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from graspad import PAPER, GraspDetector
from graspad.config import Training, Velocity
from graspad.errors import GraspError, InputError, InvalidSettingError, NotFittedError
from graspad.stream import Stream

QUICK = PAPER.override(
    window=10, velocity=Velocity(hidden=16), training=Training(budget=20, unit="steps", validate_every=5)
)


def plant(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(rows)[:, None] / 9 + np.array([0, 0.3, 2])) + 0.1 * rng.standard_normal((rows, 3))
    return pd.DataFrame(values, columns=["flow", "level", "pump"])


@pytest.fixture(scope="module")
def detector() -> GraspDetector:
    return GraspDetector(QUICK, false_alarms=0.05).fit(plant(300, 0))


def test_one_row_out_per_row_in(detector):
    new = plant(80, 1).set_index(pd.date_range("2025-01-01", periods=80, freq="min"))
    out = detector.score(new)
    assert out.index.equals(new.index)
    assert out.columns.tolist() == ["score", "p_value", "alarm", "reason"]
    assert out["score"].notna().all()
    assert out["p_value"].between(0, 1).all()
    np.testing.assert_array_equal(out["score"], detector.decision_function(new))
    np.testing.assert_array_equal(out["alarm"].astype(int), detector.predict(new))
    assert (out["alarm"] == (out["score"] > detector.threshold_.value)).all()


def test_rows_without_a_full_window_are_null_with_a_reason():
    detector = GraspDetector(QUICK, align="causal", false_alarms=0.1).fit(plant(300, 0))
    out = detector.score(pl.from_pandas(plant(30, 1)))
    assert out["score"].null_count() == out["p_value"].null_count() == 9
    assert out["reason"].to_list() == ["warm-up"] * 9 + [None] * 21
    assert not out["alarm"][:9].any()


def test_a_large_fault_raises_alarms_and_is_laid_at_its_sensor(detector):
    faulty = plant(200, 1)
    faulty.loc[100:120, "level"] += 8
    out = detector.score(faulty)
    assert out["alarm"].iloc[100:121].all()
    assert out["alarm"].iloc[:80].mean() < 0.3
    assert detector.explain(faulty).top_sensors(100, 121)[0][0] == "level"


def test_frames_of_all_kinds_score_alike(detector):
    frame = plant(40, 1)
    expected = detector.decision_function(frame)
    for same in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow(), frame.to_numpy()):
        np.testing.assert_array_equal(detector.decision_function(same), expected)
    with pytest.warns(UserWarning, match="not in the order of the model, from 'pump' on; they were put in order"):
        np.testing.assert_array_equal(detector.decision_function(frame[["pump", "flow", "level"]]), expected)


def test_same_seed_same_model_bit_for_bit():
    first, second, other = (GraspDetector(QUICK, seed=seed, false_alarms=0.1).fit(plant(300, 0)) for seed in (3, 3, 4))
    new = plant(50, 1)
    assert np.array_equal(first.decision_function(new), second.decision_function(new))
    assert not np.allclose(first.decision_function(new), other.decision_function(new))


def test_a_network_alone_does_not_know_how_means_of_windows_vary(detector):
    assert detector.model_.means is None


def test_scoring_does_not_change_the_model(detector):
    new = plant(50, 1)
    before = detector.decision_function(new)
    detector.score(plant(100, 2) * 100)
    assert np.array_equal(detector.decision_function(new), before)


def test_is_a_scikit_learn_estimator():
    detector = GraspDetector("paper", tau=1.0, seed=4)
    assert repr(detector) == "GraspDetector(preset='paper', seed=4, tau=1.0)"
    copy = clone(detector).set_params(tau=0.5)
    assert (copy.get_params()["tau"], copy.seed, detector.tau) == (0.5, 4, 1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'taus'"):
        detector.set_params(taus=1)


def test_parameters_replace_those_of_the_preset():
    detector = GraspDetector(QUICK, window=12, tau=0.0, field="gnn", align="causal", false_alarms=0.1).fit(
        plant(300, 0)
    )
    settings = detector.model_.settings
    assert (settings.window, settings.tau, settings.velocity.kind, settings.align) == (12, 0.0, "gnn", "causal")
    assert settings.velocity.hidden == QUICK.velocity.hidden


def test_graph_can_be_given_random_or_learnt(detector):
    given = GraspDetector(QUICK, graph=[("flow", "pump")], false_alarms=0.1).fit(plant(300, 0)).model_.adjacency
    assert np.argwhere(given).tolist() == [[0, 2], [2, 0]]
    random = GraspDetector(QUICK, graph="random", false_alarms=0.1).fit(plant(300, 0)).model_.adjacency
    assert random.sum() == detector.model_.adjacency.sum() > 0


def test_recipe_fits_without_training_and_does_not_care_about_units():
    detector = GraspDetector(window=10, false_alarms=0.05).fit(plant(600, 0))
    assert detector.training_report_ is None
    loud = plant(600, 0) * [10, 1, 1]
    faulty = plant(120, 1)
    faulty.loc[50:60, "pump"] += 1.5
    scores = detector.decision_function(faulty)
    same = GraspDetector(window=10, false_alarms=0.05).fit(loud).decision_function(faulty * [10, 1, 1])
    np.testing.assert_allclose(same, scores, rtol=1e-3, atol=1e-3)
    assert detector.explain(faulty).top_sensors(50, 61)[0][0] == "pump"


def test_paper_preset_holds_the_papers_numbers():
    assert (PAPER.window, PAPER.tau, PAPER.edge_threshold) == (50, 2, 0.5)
    assert PAPER.velocity == Velocity(kind="tsmixer", hidden=128, blocks=2, dropout=0.1, time_features=64)
    training = PAPER.training
    assert (training.budget, training.unit, training.validate_every) == (1500, "epochs", 50)
    assert (training.batch_size, training.learning_rate, training.validation_share) == (256, 1e-3, 0.2)
    assert (PAPER.scoring.sources, PAPER.scoring.flow_times, PAPER.scoring.weights) == (5, 10, "eta")


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"tau": -1}, r"The 'tau' parameter must be greater than or equal to 0\. Got -1 instead\."),
        ({"window": 1}, "The 'window' parameter must be greater than or equal to 2"),
        ({"align": "centre"}, "The 'align' parameter must be 'overlap' or 'causal'"),
        (
            {"field": "lstm"},
            r"The 'velocity\.kind' parameter must be 'gaussian', 'tsmixer', 'gnn', 'transformer', 'hyb",
        ),
        ({"false_alarms": 0}, r"The 'false_alarms' parameter must be a share of the rows in the range \(0, 1\)"),
        ({"false_alarms": "often"}, "such as '1/week' or '3/day'. Got 'often' instead"),
        ({"preset": "fast"}, r"The 'preset' parameter must be one of \['recipe', 'paper'\]"),
        ({"graph": "full"}, "The 'graph' parameter must be None, 'random', a matrix or pairs of sensor names"),
    ],
)
def test_wrong_parameters_are_told_at_fit(parameters, told):
    with pytest.raises(InvalidSettingError, match=told):
        GraspDetector(**{"preset": QUICK, **parameters}).fit(plant(300, 0))


def test_a_file_that_is_only_a_header_is_told(detector, tmp_path):
    (tmp_path / "header.csv").write_text("time,flow,level,pump\n")
    with pytest.raises(InputError, match=r"There are no rows\. Give at least 10"):
        detector.score(tmp_path / "header.csv")


def test_too_few_rows_are_told(detector):
    with pytest.raises(InputError, match=r"There are 40 rows, but 51 are needed.*smaller `window`"):
        GraspDetector(QUICK).fit(plant(40, 0))
    GraspDetector(QUICK, false_alarms=0.5).fit(plant(51, 0))
    with pytest.raises(InputError, match="There are 9 rows, but a window has 10"):
        detector.score(plant(9, 0))


def test_infinite_values_are_told_by_sensor_and_row(detector):
    broken = plant(300, 0)
    broken.loc[17, "level"] = -np.inf
    for use in (GraspDetector(QUICK).fit, detector.score):
        with pytest.raises(InputError, match=r"'level' is -inf in row 17 \(1 infinite values in all\)\. Leave such"):
            use(broken)


def test_a_sensor_without_any_value_is_told(detector):
    with pytest.raises(InputError, match=r"'level' has no value in the first 240 rows.*Drop it"):
        GraspDetector(QUICK).fit(plant(300, 0).assign(level=np.nan))
    out = detector.score(plant(300, 0).assign(level=np.nan))
    assert out["score"].isna().all()
    assert (out["reason"] == "gap").all()
    assert not out["alarm"].any()


def test_gaps_everywhere_are_told():
    holes = plant(300, 0)
    holes.loc[[row for row in range(300) if row % 9 > 1], "flow"] = np.nan
    with pytest.raises(InputError, match=r"No 10 rows in a row are without a longer gap in the first 80 %"):
        GraspDetector(QUICK).fit(holes)


@pytest.mark.parametrize("align", ["overlap", "causal"])
def test_long_gaps_get_no_score_and_short_ones_are_filled(align):
    detector = GraspDetector(QUICK, align=align, false_alarms=0.05).fit(plant(300, 0))
    data = plant(120, 1)
    data.loc[40:42, "flow"] = np.nan  # three rows: filled
    data.loc[70:80, "pump"] = np.nan  # eleven rows: five filled, six lost
    out = detector.score(data)
    reasons = out["reason"]
    assert reasons[40:43].isna().all()
    assert (reasons[70:75] != "gap").all()
    assert (reasons[75:81] == "gap").all()
    assert out["score"][75:81].isna().all()
    # A causal row needs a whole window after the gap; a row in overlap mode is covered by the next whole window.
    assert out["score"][81:90].isna().all() == (align == "causal")
    assert out["score"][90:].notna().all()
    assert out["score"][10:75].notna().all()


def test_nothing_that_was_filled_raises_an_alarm_by_itself(detector):
    data = plant(300, 1)
    complete = detector.score(data)
    rng = np.random.default_rng(0)
    for start in rng.choice(290, 12, replace=False):
        data.iloc[start : start + 3, rng.integers(3)] = np.nan
    assert detector.score(data)["alarm"].sum() <= complete["alarm"].sum() + 2


def test_a_row_made_up_of_filled_values_does_not_alarm_but_one_with_a_few_may(detector):
    data = plant(200, 1)
    data.loc[100:140, "level"] += 8
    data.loc[110:113] = np.nan
    data.loc[[120, 125, 130], "flow"] = np.nan
    out = detector.score(data)
    assert (out["reason"][110:114] == "filled").all()
    assert not out["alarm"][110:114].any()
    assert out["alarm"][[120, 125, 130]].all()


def test_readings_far_out_are_finite_and_alarm(detector):
    data = plant(200, 1)
    data.loc[100, "pump"] = 1e60
    out = detector.score(data)
    assert np.isfinite(out["score"]).all()
    assert out["alarm"][100]
    assert detector.explain(data).top_sensors(100, 101)[0][0] == "pump"


def test_any_clock_will_do(detector):
    data = plant(60, 1)
    expected = detector.score(data)["score"].tolist()
    for times in (pd.date_range("2025-01-01", periods=60, freq="min", tz="Europe/Berlin"), pd.RangeIndex(100, 160)):
        out = detector.score(data.set_index(times))
        assert out.index.equals(times)
        assert out["score"].tolist() == expected
        assert detector.score(data.assign(ts=times))["score"].tolist() == expected


def test_a_filled_value_has_no_share_in_the_score(detector):
    """However far off the last value was, repeating it adds nothing to its own sensor."""
    data = plant(60, 1)
    data.loc[20, "pump"] = 50.0
    data.loc[21:24, "pump"] = np.nan
    shares = detector.explain(data).by_sensor
    kept = data.assign(pump=data["pump"].ffill())
    assert shares[:, 2].sum() < 0.5 * detector.explain(kept).by_sensor[:, 2].sum()


def test_fit_learns_around_gaps():
    holed = plant(600, 0)
    holed.loc[100:130, "flow"] = np.nan
    holed.loc[500:520, "level"] = np.nan
    with_gaps = GraspDetector(QUICK, false_alarms=0.05).fit(holed)
    whole = GraspDetector(QUICK, false_alarms=0.05).fit(plant(600, 0))
    new = plant(100, 1)
    assert np.corrcoef(with_gaps.decision_function(new), whole.decision_function(new))[0, 1] > 0.8


def test_no_sensors_are_told():
    with pytest.raises(InputError, match="no sensor columns"):
        GraspDetector(QUICK).fit(plant(300, 0)[[]])


def test_asking_before_fit_is_told():
    with pytest.raises(NotFittedError, match=r"not fitted yet\. Call fit"):
        GraspDetector().score(plant(60, 0))
    assert issubclass(NotFittedError, GraspError)


def test_one_sensor_and_a_constant_sensor_are_fine():
    alone = plant(300, 0)[["flow"]]
    assert np.isfinite(GraspDetector(QUICK, false_alarms=0.1).fit(alone).decision_function(alone)).all()
    still = plant(300, 0).assign(spare=5.0)
    detector = GraspDetector(QUICK, false_alarms=0.1).fit(still)
    moved = plant(60, 1).assign(spare=5.0)
    moved.loc[30:35, "spare"] = 25.0
    assert detector.explain(moved).top_sensors(30, 36)[0][0] == "spare"


def test_help_and_import_do_not_load_torch():
    code = "import sys, graspad, graspad.cli, graspad.simulate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_default_fit_gives_no_warning_on_enough_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GraspDetector(QUICK, false_alarms=0.01).fit(plant(1000, 0))


def test_rows_under_maintenance_are_left_out_with_all_windows_that_hold_one(detector):
    faulty = plant(200, 1).set_index(pd.date_range("2025-01-01", periods=200, freq="min"))
    faulty.iloc[100:121, 1] += 8
    period = ("2025-01-01T01:40", "2025-01-01T02:00")  # rows 100 to 120
    out = detector.score(faulty, maintenance=[period])
    assert (out["reason"].iloc[100:121] == "maintenance").all()
    assert out["score"].iloc[100:121].isna().all()
    assert out["score"].iloc[:100].notna().all()
    assert out["score"].iloc[121:].notna().all()
    # What is left is scored as if the fault had never been.
    rest = np.r_[detector.decision_function(plant(100, 1)), detector.decision_function(plant(200, 1)[121:])]
    np.testing.assert_allclose(out["score"].dropna(), rest, rtol=1e-5)
    told = detector.explain(faulty, ["2025-01-01T01:40/2025-01-01T02:00"])
    assert not any(incident.start < 121 and incident.end > 100 for incident in told.incidents)


@pytest.mark.parametrize("period", ["2025-01-01", ("b", "a"), (20, 10), "10/x", 3])
def test_a_period_that_cannot_be_read_is_told(detector, period):
    with pytest.raises(InputError, match="cannot be read"):
        detector.score(plant(80, 1), maintenance=[period])


def test_recalibration_moves_the_threshold_and_nothing_else():
    detector = GraspDetector(QUICK, false_alarms=0.05).fit(plant(300, 0))
    noisier = plant(400, 5) + 0.05 * np.random.default_rng(5).standard_normal((400, 3))
    before, scores = detector.threshold_.value, detector.decision_function(plant(90, 1))
    assert (detector.predict(noisier)).mean() > 0.2
    assert detector.recalibrate(noisier) is detector
    assert detector.threshold_.value > before
    assert detector.predict(noisier).mean() <= 0.05
    np.testing.assert_array_equal(detector.decision_function(plant(90, 1)), scores)
    for align, known in detector.scores_by_alignment(noisier).items():
        assert (detector.thresholds_[align].alarms(known)).mean() <= 0.05


def test_too_few_rows_to_recalibrate_are_told_and_the_threshold_stays(detector):
    before = detector.threshold_.value
    with pytest.raises(InputError, match="15 of the 15 rows have a score, but 20 are needed"):
        detector.recalibrate(plant(15, 1))
    assert detector.threshold_.value == before


def test_incidents_come_as_a_table_with_ids_that_stay(detector):
    faulty = plant(200, 1).set_index(pd.date_range("2025-01-01", periods=200, freq="min"))
    faulty.iloc[100:121, 1] += 8
    whole, part = detector.explain(faulty), detector.explain(faulty.iloc[:150])
    (worst,) = [incident for incident in whole.incidents if incident.start < 121 and incident.end > 100]
    assert worst.id in {incident.id for incident in part.incidents}
    assert worst.sensors[0][0] == "level"
    table = whole.table()
    assert table.num_rows == len(whole.incidents)
    assert worst.id in table["id"].to_pylist()
    assert any("level" in named for named in table["sensors"].to_pylist())
    assert worst.expected


def test_scoring_changes_nothing_so_no_threshold_ever_sees_what_it_judges(detector, tmp_path):
    detector.save(tmp_path / "before.grasp")
    faulty = plant(200, 1)
    faulty.loc[100:120, "level"] += 8
    detector.score(faulty)
    detector.explain(faulty)
    detector.expected(faulty)
    stream = Stream(detector)
    for row in faulty.to_numpy():
        stream.push(row)
    detector.save(tmp_path / "after.grasp")
    assert (tmp_path / "after.grasp").read_bytes() == (tmp_path / "before.grasp").read_bytes()
