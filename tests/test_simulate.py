"""The simulated plant obeys its own physics, and each fault is where and what it says it is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from graspad import simulate
from graspad.errors import InvalidSettingError
from graspad.simulate import EDGES, FAULT_KINDS, SENSORS, Fault, Simulation

COLUMN = {sensor.name: column for column, sensor in enumerate(SENSORS)}
NOISE = np.array([sensor.noise for sensor in SENSORS])
PROCESS_FAULTS = ("leak", "wear")
RECOVERY = 6 * 60  # rows after which a leak or a repaired pump can no longer be told from the noise
FAULTY_SEEDS = (0, 1, 10, 13)  # between them both leaks, valves and flows, feed and distribution pumps


@pytest.fixture(scope="module")
def normal() -> Simulation:
    return simulate.normal()


@pytest.fixture(scope="module", params=FAULTY_SEEDS)
def pair(request: pytest.FixtureRequest) -> tuple[Simulation, Simulation]:
    """A faulty run and the same run in good health."""
    return simulate.faulty(seed=request.param), simulate.faulty(seed=request.param, kinds=())


def column(run: Simulation, name: str) -> np.ndarray:
    return run.values[:, COLUMN[name]]


def the(run: Simulation, kind: str) -> Fault:
    return next(fault for fault in run.faults if fault.kind == kind)


def rows_of(fault: Fault) -> slice:
    return slice(fault.start, fault.end)


def deviation(pair: tuple[Simulation, Simulation]) -> np.ndarray:
    """What the faults changed, in units of each sensor's noise, (row, sensor)."""
    return (pair[0].values - pair[1].values) / NOISE


# --- normal operation -------------------------------------------------------------------------------------------------


def test_same_seed_same_data_other_seed_other_data():
    first, again, other = (simulate.faulty(days=1, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.values, again.values)
    assert first.faults == again.faults
    assert not np.isclose(first.values, other.values).all(axis=0).any()
    assert first.faults != other.faults


def test_normal_and_faulty_share_no_randomness():
    """The same seed for training and test data, as users will do, must not repeat the training data."""
    train, test = simulate.normal(days=7, seed=5), simulate.faulty(days=7, seed=5, kinds=())
    # From one row to the next the outdoor temperature moves by chance alone.
    steps = [np.diff(column(run, "TT-100")) for run in (train, test)]
    assert abs(np.corrcoef(*steps)[0, 1]) < 0.05


def test_global_random_state_plays_no_part():
    np.random.seed(0)  # noqa: NPY002
    first = simulate.normal(days=0.1).values
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(first, simulate.normal(days=0.1).values)


def test_sensors(normal: Simulation):
    assert len(SENSORS) >= 24
    assert normal.sensors == tuple(sensor.name for sensor in SENSORS)
    assert len(set(normal.sensors)) == len(SENSORS)
    assert all(sensor.description and sensor.unit and sensor.noise > 0 for sensor in SENSORS)
    assert normal.values.shape == (14 * 1440, len(SENSORS))
    assert np.isfinite(normal.values).all()
    # Not only noise: in every sensor the plant itself moves.
    assert (normal.values.std(axis=0) > 1.5 * NOISE).all()
    assert normal.faults == ()
    assert normal.labels().sum() == 0


def test_edges_link_every_sensor_once():
    assert {name for edge in EDGES for name in edge} == set(COLUMN)
    assert len({frozenset(edge) for edge in EDGES}) == len(EDGES)
    reached, queue = {"LT-110"}, ["LT-110"]
    while queue:
        here = queue.pop()
        fresh = {name for edge in EDGES if here in edge for name in edge} - reached
        reached |= fresh
        queue += fresh
    assert reached == set(COLUMN)


@pytest.mark.parametrize("interval", [10, 60, 300])
def test_timestamps_are_regular(interval: int):
    run = simulate.normal(days=0.5, interval_seconds=interval)
    assert run.timestamps.dtype == np.dtype("datetime64[s]")
    assert len(run.timestamps) == len(run.values) == 43200 // interval
    assert (np.diff(run.timestamps) == np.timedelta64(interval, "s")).all()


def test_faulty_data_come_later_on_the_same_weekday(normal: Simulation):
    later = simulate.faulty(days=0.5).timestamps[0]
    assert later > normal.timestamps[-1]
    assert (later - normal.timestamps[0]) % np.timedelta64(7 * 86400, "s") == np.timedelta64(0, "s")


@pytest.mark.parametrize(
    ("level", "area", "inflows", "outflows"),
    [
        ("LT-210", 14.0, ("FT-201", "FT-202"), ("FT-301",)),
        ("LT-110", 20.0, ("FT-401", "FT-105"), ("FT-103",)),
    ],
)
def test_tanks_balance(
    normal: Simulation, level: str, area: float, inflows: tuple[str, ...], outflows: tuple[str, ...]
):
    """Area · change of level = inflow − outflow, over every stretch of two hours, within the noise of the sensors."""
    rows = 120
    net = sum(column(normal, name) for name in inflows) - sum(column(normal, name) for name in outflows)
    passed = np.concatenate([[0], np.cumsum(net) / 60])
    stored = area * (column(normal, level)[rows:] - column(normal, level)[:-rows])
    error = stored - (passed[rows:-1] - passed[: -rows - 1])
    of_flows = np.sqrt(rows * (len(inflows) + len(outflows))) * NOISE[COLUMN["FT-301"]] / 60
    expected = np.hypot(np.sqrt(2) * area * NOISE[COLUMN[level]], of_flows)
    assert error.std() == pytest.approx(expected, rel=0.1)
    assert abs(error.mean()) < 0.1 * expected
    assert stored.std() > 3 * expected  # the balance is not met by standing still


def test_exchangers_and_tower_balance(normal: Simulation):
    """The heat that leaves the water is the heat that the tower's 150 m3/h take up."""
    given = sum(column(normal, f"FT-20{i}") * (column(normal, "TT-110") - column(normal, f"TT-20{i}")) for i in (1, 2))
    taken = 150 * (column(normal, "TT-204") - column(normal, "TT-203"))
    assert np.corrcoef(given, taken)[0, 1] > 0.99
    assert given.mean() == pytest.approx(taken.mean(), rel=0.01)


def test_one_feed_pump_runs_and_they_take_turns(normal: Simulation):
    a, b = column(normal, "ST-101") > 300, column(normal, "ST-102") > 300
    assert (a | b).all()
    assert 0 < (a & b).mean() < 0.02
    assert np.count_nonzero(np.diff(a.astype(int)) == 1) == 7  # A starts every other day
    weekend = normal.timestamps.astype("datetime64[D]").astype(int) % 7 // 2 == 1  # 1970-01-01 was a Thursday
    assert {str(day) for day in normal.timestamps[weekend].astype("datetime64[D]")} == {
        "2025-03-08", "2025-03-09", "2025-03-15", "2025-03-16"
    }  # fmt: skip
    assert column(normal, "FT-301")[weekend].mean() < column(normal, "FT-301")[~weekend].mean() - 15
    # Both pumps are seen in both regimes, so that neither is news in later data.
    assert min(a[weekend].mean(), b[weekend].mean(), a[~weekend].mean(), b[~weekend].mean()) > 0.25


def test_power_follows_flow_times_pressure(normal: Simulation):
    hydraulic = column(normal, "FT-301") * (column(normal, "PT-302") - 0.0981 * column(normal, "LT-210")) / 36
    efficiency = hydraulic / column(normal, "JT-301")
    assert 0.6 < np.quantile(efficiency, 0.01) < np.quantile(efficiency, 0.99) < 0.8


@pytest.mark.parametrize("later", [False, True])
def test_ranges_do_not_depend_on_the_seed(normal: Simulation, later: bool):
    other = simulate.faulty(days=14, seed=8, kinds=()) if later else simulate.normal(seed=7)
    low, middle, high = np.quantile(normal.values, [0.01, 0.5, 0.99], axis=0)
    others = np.quantile(other.values, [0.01, 0.5, 0.99], axis=0)
    assert (np.abs(others - [low, middle, high]) < 0.15 * (high - low)).all()


# --- faults -----------------------------------------------------------------------------------------------------------


def test_one_fault_of_each_kind_inside_the_data_and_apart(pair):
    run, _ = pair
    assert sorted(fault.kind for fault in run.faults) == sorted(FAULT_KINDS)
    edges = [0, *(row for fault in run.faults for row in (fault.start, fault.end)), len(run.values)]
    assert edges == sorted(set(edges))  # in order of time, without overlap
    assert len({fault.end - fault.start for fault in run.faults}) == len(FAULT_KINDS)
    assert all(set(fault.sensors) <= set(COLUMN) and fault.description.endswith(".") for fault in run.faults)
    labels = run.labels()
    assert labels.sum() == sum(fault.end - fault.start for fault in run.faults)
    assert all(labels[rows_of(fault)].all() for fault in run.faults)


def test_outside_the_faults_the_run_is_the_healthy_one(pair):
    change = deviation(pair)
    recovering = np.zeros(len(change), dtype=bool)
    for fault in pair[0].faults:
        recovering[fault.start : fault.end + RECOVERY * (fault.kind in PROCESS_FAULTS)] = True
    assert (~recovering).mean() > 0.3
    assert np.abs(change[~recovering]).max() < 1.0
    before = min(fault.start for fault in pair[0].faults if fault.kind in PROCESS_FAULTS)
    untouched = pair[0].labels()[:before] == 0
    np.testing.assert_array_equal(pair[0].values[:before][untouched], pair[1].values[:before][untouched])


def test_sensor_faults_touch_nothing_but_their_sensor():
    kinds = [kind for kind in FAULT_KINDS if kind not in PROCESS_FAULTS]
    run, healthy = simulate.faulty(kinds=kinds), simulate.faulty(kinds=())
    expected = np.zeros(run.values.shape, dtype=bool)
    for fault in run.faults:
        expected[rows_of(fault), [COLUMN[name] for name in fault.sensors]] = True
        changed = (run.values != healthy.values)[rows_of(fault), COLUMN[fault.sensors[0]]]
        assert changed.mean() > 0.9
    assert not (run.values != healthy.values)[~expected].any()


def test_stuck_sensor_is_stuck_while_the_plant_moves(pair):
    fault = the(pair[0], "stuck")
    (name,) = fault.sensors
    assert np.ptp(column(pair[0], name)[fault.start - 1 : fault.end]) == 0
    assert np.ptp(column(pair[1], name)[rows_of(fault)]) > 10 * NOISE[COLUMN[name]]


def test_drift_grows_slowly_from_nothing(pair):
    fault = the(pair[0], "drift")
    bias = deviation(pair)[rows_of(fault), COLUMN[fault.sensors[0]]]
    assert abs(bias[0]) < 1
    assert abs(bias[-1]) > 10
    np.testing.assert_allclose(np.diff(bias), bias[-1] / len(bias), rtol=1e-3)  # a leak may still be fading


def test_spike_is_short_and_high(pair):
    fault = the(pair[0], "spike")
    assert fault.end - fault.start <= 6
    assert np.abs(deviation(pair)[fault.start, COLUMN[fault.sensors[0]]]) > 15


def test_leak_spreads_and_is_made_up(pair):
    fault = the(pair[0], "leak")
    middle = slice((fault.start + fault.end) // 2, fault.end - 60)
    change = deviation(pair)[middle].mean(axis=0)
    assert max(abs(change[COLUMN[name]]) for name in fault.sensors) > 5
    # Upstream pumps deliver more, both tanks fall, fresh water flows in.
    assert change[COLUMN["FT-103"]] > 3
    assert change[COLUMN["LT-210"]] < -3
    assert change[COLUMN["LT-110"]] < -3
    assert change[COLUMN["FT-105"]] > 3
    # The balance around the leaking place is open by its 6 m3/h; the consumers keep 8 % of what they use.
    if "LT-210" in fault.sensors:
        net = sum(column(pair[0], name) * sign for name, sign in (("FT-201", 1), ("FT-202", 1), ("FT-301", -1)))
        level = column(pair[0], "LT-210")
        filling = 14 * (level[middle.stop] - level[middle.start]) / ((middle.stop - middle.start) / 60)
        assert net[middle].mean() - filling == pytest.approx(6, abs=0.5)
    else:
        missing = [(column(run, "FT-301") - column(run, "FT-401") / 0.92)[middle].mean() for run in pair]
        assert missing[0] - missing[1] == pytest.approx(6, abs=0.3)


def test_worn_pump_takes_more_power_for_the_same_flow(pair):
    fault = the(pair[0], "wear")
    middle = slice((fault.start + fault.end) // 2, fault.end - 60)
    change = deviation(pair)[middle].mean(axis=0)
    assert all(change[COLUMN[name]] > 4 for name in fault.sensors)
    assert change[COLUMN[fault.sensors[0].replace("JT", "ST")]] > 4
    assert abs(change[COLUMN["FT-103"]]) < 1
    assert abs(change[COLUMN["FT-301"]]) < 1


PARTNERS = {
    "ZT-201": ("FT-201", "PT-121", "LT-210"),
    "ZT-202": ("FT-202", "PT-121", "LT-210"),
    "FT-201": ("FT-103", "FT-202", "ZT-201"),
    "FT-202": ("FT-103", "FT-201", "ZT-202"),
}


def test_broken_coupling_is_invisible_to_limits_but_not_to_a_regression(normal, pair):
    fault = the(pair[0], "coupling")
    (name,) = fault.sensors

    def design(run: Simulation) -> np.ndarray:
        partners = np.stack([column(run, partner) for partner in PARTNERS[name]], axis=1)
        return np.column_stack([np.ones(len(partners)), partners, partners**2])

    usual, readings = column(normal, name), column(pair[0], name)[rows_of(fault)]
    assert usual.min() < readings.min()
    assert readings.max() < usual.max()
    assert np.mean((readings < np.quantile(usual, 0.001)) | (readings > np.quantile(usual, 0.999))) < 0.01
    # Nor does a jump give it away where it begins and ends.
    for row in (fault.start, fault.end):
        assert abs(np.diff(column(pair[0], name)[row - 1 : row + 1])[0]) <= 6 * NOISE[COLUMN[name]]

    weights = np.linalg.lstsq(design(normal), usual, rcond=None)[0]
    healthy = column(pair[1], name) - design(pair[1]) @ weights
    broken = (column(pair[0], name) - design(pair[0]) @ weights)[rows_of(fault)]
    assert np.sqrt(np.mean(broken**2)) > 5 * np.sqrt(np.mean(healthy**2))


def test_the_seed_chooses_the_places():
    runs = [simulate.faulty(seed=seed, interval_seconds=300) for seed in range(12)]
    assert {the(run, "leak").sensors[0] for run in runs} == {"FT-201", "FT-301"}
    assert len({the(run, "wear").sensors for run in runs}) > 1
    assert {the(run, "coupling").sensors[0] for run in runs} == set(PARTNERS)


# --- the interface ----------------------------------------------------------------------------------------------------


def test_kinds_can_be_chosen():
    run = simulate.faulty(days=2, kinds=["leak", "spike"])
    assert sorted(fault.kind for fault in run.faults) == ["leak", "spike"]
    assert simulate.faulty(days=1, kinds=()).labels().sum() == 0


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_days_must_be_positive(days: float):
    with pytest.raises(InvalidSettingError, match="'days' parameter must be a positive number"):
        simulate.normal(days=days)
    with pytest.raises(InvalidSettingError, match="'days' parameter must be a positive number"):
        simulate.faulty(days=days)


def test_other_settings_are_checked():
    with pytest.raises(InvalidSettingError, match=r"'kinds' parameter must be some of stuck, .* Got 'gremlin'"):
        simulate.faulty(kinds=["leak", "gremlin"])
    with pytest.raises(InvalidSettingError, match="at least 60 rows for each of the 6 faults"):
        simulate.faulty(days=0.2)
    with pytest.raises(InvalidSettingError, match="'seed' parameter"):
        simulate.normal(seed=-1)
    with pytest.raises(InvalidSettingError, match="'interval_seconds' parameter"):
        simulate.normal(interval_seconds=0)


def test_import_is_light():
    code = "import sys, graspad.simulate; print([m for m in ('torch', 'pandas', 'scipy') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
