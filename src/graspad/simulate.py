"""A simulated cooling-water station with known faults: the default data of the demo and of the fast tests.

    make-up ─► feed tank 110 ─► feed pumps A, B ─► filter 120 ─┬─► valve 201 ─► exchanger 201 ─┐
                    ▲            (one on duty)                 └─► valve 202 ─► exchanger 202 ─┤
                    └─ return 401 ◄─ consumers ◄─ header 302 ◄─ pump 301 ◄─ buffer tank 210 ◄──┘

A process fault (leak, wear) changes the equations, so that it spreads; a sensor fault only changes what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from graspad.errors import InvalidSettingError

Array = NDArray[np.float64]

# How long each kind of fault lasts, in hours, and what a plant engineer would write about it.
_KINDS = {
    "stuck": (4.0, "The {} is frozen at its last reading."),
    "drift": (12.0, "The {} drifts slowly away from the truth."),
    "leak": (6.0, "Water leaks from the {}."),
    "wear": (15.0, "The {} is worn: it takes more power and shakes more for the same flow."),
    "coupling": (8.0, "The {} goes its own way: every reading is usual, but not beside those of its partners."),
    "spike": (0.0, "The {} jumps for a few readings."),
}
FAULT_KINDS = tuple(_KINDS)


@dataclass(frozen=True)
class Sensor:
    """One measuring point; `noise` is the standard deviation of its measuring error, in its unit."""

    name: str
    description: str
    unit: str
    noise: float


@dataclass(frozen=True)
class Fault:
    """What went wrong in the rows [start, end), and the sensors where it began."""

    kind: str
    start: int
    end: int
    sensors: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class Simulation:
    """Measured values (row, sensor) at regular times (row), with the true faults."""

    timestamps: NDArray[np.datetime64]
    values: Array
    sensors: tuple[str, ...]
    faults: tuple[Fault, ...]

    def labels(self) -> NDArray[np.int64]:
        """1 in the rows of a fault, else 0.

        >>> spike = faulty(days=2, kinds=["spike"])
        >>> int(spike.labels().sum()) == spike.faults[0].end - spike.faults[0].start
        True
        """
        labels = np.zeros(len(self.values), dtype=np.int64)
        for fault in self.faults:
            labels[fault.start : fault.end] = 1
        return labels


# The first letter of a name says what is measured (ISA-5.1), hence the unit and the noise.
_UNITS = dict(zip("FIJLPSTVZ", ("m3/h", "A", "kW", "m", "bar", "rpm", "degC", "mm/s", "%"), strict=True))
_NOISE = dict(zip("FIJLPSTVZ", (0.4, 0.15, 0.1, 0.008, 0.01, 3.0, 0.08, 0.06, 0.25), strict=True))
_NAMES = """
TT-100 outdoor air temperature, FT-105 make-up flow, LT-110 feed tank level, TT-110 feed tank temperature
ST-101 feed pump A speed, JT-101 feed pump A power, IT-101 feed pump A current, VT-101 feed pump A vibration
ST-102 feed pump B speed, JT-102 feed pump B power, IT-102 feed pump B current, VT-102 feed pump B vibration
FT-103 feed flow, PT-103 feed pump pressure, PDT-120 filter differential pressure, PT-121 pressure after filter
ZT-201 valve 1 position, FT-201 exchanger 1 flow, TT-201 exchanger 1 outlet temperature
ZT-202 valve 2 position, FT-202 exchanger 2 flow, TT-202 exchanger 2 outlet temperature
TT-203 cooling tower supply temperature, TT-204 cooling tower return temperature
LT-210 buffer tank level, TT-210 buffer tank temperature, FT-301 distribution flow
ST-301 distribution pump speed, JT-301 distribution pump power, IT-301 distribution pump current
VT-301 distribution pump vibration, PT-302 header pressure, TT-302 header temperature
FT-401 return flow, TT-401 return temperature, PT-401 return pressure
"""
SENSORS: tuple[Sensor, ...] = tuple(
    Sensor(name, description, _UNITS[name[0]], _NOISE[name[0]])
    for name, description in (entry.split(maxsplit=1) for entry in _NAMES.strip().replace("\n", ", ").split(", "))
)
_COLUMN = {sensor.name: column for column, sensor in enumerate(SENSORS)}

# Each run of names follows the water, the heat or the power from sensor to sensor.
_RUNS = """
FT-105 LT-110 ST-101 PT-103 FT-103 PDT-120 PT-121 ZT-201 FT-201 LT-210 ST-301 FT-301 FT-401 PT-401 LT-110
LT-110 ST-102 PT-103, PT-121 ZT-202 FT-202 LT-210, ST-301 PT-302 FT-301 TT-401
FT-103 FT-201 TT-201 TT-210 TT-302 TT-401 TT-110 TT-201, FT-103 FT-202 TT-202 TT-210, TT-110 TT-202
TT-100 TT-203 TT-201 TT-204 TT-203 TT-202 TT-204, ST-101 JT-101 IT-101, ST-102 JT-102 IT-102, ST-301 JT-301 IT-301
ST-101 VT-101, ST-102 VT-102, ST-301 VT-301
"""
# The process topology as pairs of sensor names, to be drawn beside a learnt graph.
EDGES: list[tuple[str, str]] = [
    edge for run in _RUNS.strip().replace("\n", ", ").split(", ") for edge in pairwise(run.split())
]


def normal(days: float = 14, seed: int = 0, interval_seconds: int = 60) -> Simulation:
    """The healthy plant from a Monday on; two weeks show all its regimes.

    >>> normal(days=1).values.shape
    (1440, 36)
    """
    return _run(0, "2025-03-03", days, seed, interval_seconds, ())


def faulty(
    days: float = 7, seed: int = 1, interval_seconds: int = 60, kinds: Sequence[str] = FAULT_KINDS
) -> Simulation:
    """The same plant from a later Monday on, with one fault of each kind; without kinds, the same run in good health.

    >>> faulty(days=2, kinds=["leak"]).faults[0].kind
    'leak'
    """
    return _run(1, "2025-06-02", days, seed, interval_seconds, kinds)


def _run(stream: int, start: str, days: float, seed: int, interval: int, kinds: Sequence[str]) -> Simulation:
    clock = _clock(start, days, seed, interval)
    for kind in kinds:
        if kind not in FAULT_KINDS:
            raise InvalidSettingError.of("kinds", f"be some of {', '.join(FAULT_KINDS)}", kind)
    if len(clock.timestamps) < 60 * len(kinds):
        raise InvalidSettingError.of("days", f"give at least 60 rows for each of the {len(kinds)} faults", days)
    drive_rng, noise_rng, fault_rng = (np.random.default_rng([stream, purpose, seed]) for purpose in range(3))
    drive = _drive(clock, drive_rng)
    noise = noise_rng.standard_normal((len(clock.timestamps), len(SENSORS))) * [sensor.noise for sensor in SENSORS]
    plan = _plan(kinds, drive, clock, fault_rng)
    # No transmitter here shows less than zero. The faulty run differs from the healthy one by its faults, nothing else.
    healthy = np.maximum(_process(drive, _upsets([], clock), clock) + noise, 0)
    values = np.maximum(_process(drive, _upsets(plan, clock), clock) + noise, 0) if plan else healthy
    for place, fault in plan:
        if place in _COLUMN:
            _tamper(values[:, _COLUMN[place]], healthy[:, _COLUMN[place]], fault, clock, fault_rng)
    return Simulation(clock.timestamps, values, tuple(_COLUMN), tuple(fault for _, fault in plan))


@dataclass(frozen=True)
class _Clock:
    """The rows of the table, and the steps of the process: at most a minute long, from a day before the first row."""

    timestamps: NDArray[np.datetime64]
    hours: Array  # of each step, since a Monday
    step: float  # in hours
    per_row: int
    settling: int  # steps before the first row

    def rows_in(self, hours: float) -> int:
        return max(1, round(hours / self.step / self.per_row))


def _clock(start: str, days: float, seed: int, interval: int) -> _Clock:
    if not (math.isfinite(days) and days > 0):
        raise InvalidSettingError.of("days", "be a positive number", days)
    if seed < 0:
        raise InvalidSettingError.of("seed", "be an integer in the range [0, inf)", seed)
    if interval < 1:
        raise InvalidSettingError.of("interval_seconds", "be an integer in the range [1, inf)", interval)
    rows, per_row = max(1, round(days * 86400 / interval)), math.ceil(interval / 60)
    step, settling = interval / per_row / 3600, per_row * math.ceil(86400 / interval)
    timestamps = np.datetime64(start, "s") + np.arange(rows) * np.timedelta64(interval, "s")
    first = (timestamps[0] - np.datetime64("2025-01-06", "s")) / np.timedelta64(1, "h")
    hours = first + step * (np.arange(settling + rows * per_row) - settling)
    return _Clock(timestamps, hours, step, per_row, settling)


# --- what is asked of the plant ---------------------------------------------------------------------------------------


def _drive(clock: _Clock, rng: np.random.Generator) -> dict[str, Array]:
    """Load, weather and operating modes, one value per step."""
    day, hour = np.divmod(clock.hours, 24)
    weekend = day % 7 >= 5

    def wander(sigma: float, memory: float) -> Array:
        """What people and weather add to any schedule: noise that forgets within `memory` hours."""
        keep = math.exp(-clock.step / memory)
        shocks = sigma * rng.standard_normal(len(hour))
        shocks[1:] *= math.sqrt(1 - keep**2)
        return np.array(list(accumulate(shocks.tolist(), lambda value, shock: keep * value + shock)))

    def shift(begin: Array, end: Array) -> Array:
        return 1 / (1 + np.exp((begin - hour) / 0.3)) - 1 / (1 + np.exp((end - hour) / 0.3))

    # Two shifts on weekdays with a dip between them, a skeleton crew at the weekend.
    late = 0.3 * rng.uniform(-1, 1, int(np.ptp(day)) + 1)[(day - day[0]).astype(int)]
    crew = np.where(weekend, 0.35, 1.0) * (1 + 0.1 * late - 0.12 * np.exp(-(((hour - 14) / 0.4) ** 2)))
    load = crew * shift(np.where(weekend, 8.0, 6.0) + late, np.where(weekend, 16.0, 22.0) + late)
    demand = 62 + 48 * load + wander(2.0, 2.0) + wander(1.0, 0.2)
    daytime = shift(np.full_like(hour, 6.0), np.full_like(hour, 22.0))
    turn, since_turn = np.divmod(clock.hours - 10, 24)  # the feed pumps change duty at 10:00, within ten minutes
    taking_over = np.clip(since_turn * 6, 0, 1)
    return {
        "demand": demand,  # m3/h
        "heat": _HEAT * demand * (5.5 + 3 * load + wander(0.3, 1.0)),  # kW
        "ambient": 14 + 5 * np.cos((hour - 15) * np.pi / 12) + wander(1.3, 8.0),  # degC
        "split": 0.57 - 0.06 * daytime + wander(0.008, 3.0),  # share of exchanger 1
        "header": 3.8 + 0.4 * daytime,  # bar, set point
        "wash": 12.0 * ((hour - 4) % 12 < 0.25),  # m3/h; the filter is washed at 4:00 and 16:00
        "pump_a": np.where(turn % 2 == 0, taking_over, 1 - taking_over),  # share of the feed flow
    }


# --- what the plant does ----------------------------------------------------------------------------------------------

_HEAT = 1.163  # kWh per m3 and degC
_HEAD = 0.0981  # bar per metre of water
_FEED_LIFT, _FEED_SLOPE = 5.2, 1.2 / 120**2  # pump curves, in bar: lift · speed² − slope · flow²; speed 1 is 1480 rpm
_MAIN_LIFT, _MAIN_SLOPE = 6.5, 1.5 / 120**2
_VALVE, _RANGE = 75.0, math.log(30.0)  # an open valve's flow at 1 bar; how far its equal-percentage plug can throttle
_EXCHANGER, _LINE = 0.3 / 60**2, 0.8 / 120**2  # pressure drops of an exchanger and of the main, bar per flow²
_FEED_AREA, _BUFFER_AREA = 20.0, 14.0  # m2


def _process(drive: dict[str, Array], upsets: dict[str, Array], clock: _Clock) -> Array:
    """True values (row, sensor): what has a memory is stepped through time, the rest follows by formula."""
    dt = clock.step
    fast, stroke, slow, pipe, tower = (1 - math.exp(-60 * dt / minutes) for minutes in (1, 1.5, 3, 6, 20))
    *asked, a = drive.values()
    b = 1 - a
    wear_a, wear_b, wear_m = (upsets[pump] for pump in ("feed pump A", "feed pump B", "distribution pump"))
    feed_lift, main_lift = _FEED_LIFT * (1 - 0.06 * (a * wear_a + b * wear_b)), _MAIN_LIFT * (1 - 0.06 * wear_m)
    leaks = (upsets["exchanger outlet"], upsets["distribution main"])
    signals = (signal.tolist() for signal in (*asked, np.maximum(a, b), feed_lift, main_lift, *leaks))

    def position(flow: float, drop: float) -> float:
        return 1 + math.log(flow / _VALVE / math.sqrt(max(drop - _EXCHANGER * flow**2, 0.05))) / _RANGE

    def through(valve: float, drop: float) -> float:
        return math.sqrt(drop / (math.exp(2 * _RANGE * (1 - valve)) / _VALVE**2 + _EXCHANGER))

    def outlet(size: float, flow: float, warm: float, cold: float) -> float:
        return cold + (warm - cold) * math.exp(-size * math.sqrt(60 / flow))

    l110, l210, t110, t201, t202, t203, t210, t302, t401 = 2.6, 2.6, 30.0, 23.0, 23.0, 20.0, 23.0, 23.0, 30.0
    z201, z202, n1, n3, p121, p302, f105, f301, f401, clogged = 0.7, 0.7, 0.8, 0.85, 2.6, 4.0, 7.0, 80.0, 75.0, 0.5
    record = []
    for demand, heat, ambient, split, header, wash, share, lift1, lift3, leak1, leak3 in zip(*signals, strict=True):
        # Distribution: the drive holds the header pressure; consumers draw less when little of it reaches them.
        used = demand * math.sqrt((p302 - _LINE * f301**2) / (header - _LINE * demand**2))
        f301 = used + leak3
        loss3 = _MAIN_SLOPE * f301**2 - _HEAD * l210
        p302 = lift3 * n3**2 - loss3
        # Feed: the level of the buffer tank asks for flow, two valves share it, the drive holds their pressure.
        wanted, drop = 85 + 70 * (2.6 - l210), p121 - 0.5 - _HEAD * l210
        z201 += stroke * (position(split * wanted, drop) - z201)
        z202 += stroke * (position((1 - split) * wanted, drop) - z202)
        f201, f202 = through(z201, drop), through(z202, drop)
        f103 = f201 + f202 + wash
        p120 = 0.2 * (1 + clogged) * (f103 / 100) ** 2
        loss1 = p120 + _FEED_SLOPE * (f103 * share) ** 2 - _HEAD * l110
        p121 += 0.5 * (lift1 * n1**2 - loss1 - p121)  # half way: flow and pressure settle instead of ringing
        temperatures = (t110, t201, t202, t203, t210, t302, t401)
        record.append((l110, l210, *temperatures, z201, z202, n1, n3, p120, p121, p302, f105, f201, f202, f301, f401))
        n1 += fast * (math.sqrt((2.6 + loss1) / lift1) - n1)
        n3 += fast * (math.sqrt((header + loss3) / lift3) - n3)
        clogged += 0.085 * dt * f103 / 100 if wash == 0 else -slow * clogged
        t401 += pipe * (t302 + heat / (_HEAT * used) - t401)
        t302 += slow * (t210 + 0.02 * (ambient - t210) - t302)
        t210 += dt * (f201 * (t201 - t210) + f202 * (t202 - t210)) / (_BUFFER_AREA * l210)
        t203 += tower * (6 + 0.6 * ambient + 0.007 * (f201 * (t110 - t201) + f202 * (t110 - t202)) - t203)
        t201 += slow * (outlet(1.15, f201, t110, t203) - t201)
        t202 += slow * (outlet(1.05, f202, t110, t203) - t202)
        t110 += dt * (f401 * (t401 - t110) + f105 * (20 - t110)) / (_FEED_AREA * l110)
        l110 += dt * (f105 + f401 - f103) / _FEED_AREA
        l210 += dt * (f201 + f202 - leak1 - f301) / _BUFFER_AREA
        f105 += pipe * (max(0.0, 30 * (2.9 - l110)) - f105)
        f401 += pipe * (0.92 * used - f401)

    names = "LT-110 LT-210 TT-110 TT-201 TT-202 TT-203 TT-210 TT-302 TT-401 ZT-201 ZT-202 feed_speed main_speed "
    names += "PDT-120 PT-121 PT-302 FT-105 FT-201 FT-202 FT-301 FT-401"
    v = dict(zip(names.split(), np.array(record).T, strict=True))
    v["TT-100"], v["FT-103"] = drive["ambient"], v["FT-201"] + v["FT-202"] + drive["wash"]
    v["PT-103"] = v["PT-121"] + v["PDT-120"]
    v["PT-401"] = 0.6 + 0.5 * (v["FT-401"] / 100) ** 2 + _HEAD * v["LT-110"]
    warmed = v["FT-201"] * (v["TT-110"] - v["TT-201"]) + v["FT-202"] * (v["TT-110"] - v["TT-202"])
    v["TT-204"] = v["TT-203"] + warmed / 150  # the tower circulates 150 m3/h
    v["ZT-201"], v["ZT-202"] = 100 * v["ZT-201"], 100 * v["ZT-202"]
    feed_rise, main_rise = v["PT-103"] - _HEAD * v["LT-110"], v["PT-302"] - _HEAD * v["LT-210"]
    v |= _pump("101", v["feed_speed"], a, v["FT-103"], feed_rise, 0.76, wear_a)
    v |= _pump("102", v["feed_speed"], b, v["FT-103"], feed_rise, 0.74, wear_b)
    v |= _pump("301", v["main_speed"], np.ones_like(a), v["FT-301"], main_rise, 0.77, wear_m)
    return np.stack([v[name][clock.settling :: clock.per_row] for name in _COLUMN], axis=1)


def _pump(
    tag: str, speed: Array, share: Array, flow: Array, rise: Array, efficiency: float, wear: Array
) -> dict[str, Array]:
    """A pump that carries a share of the flow; by the affinity laws its best flow is proportional to its speed."""
    running = np.clip(2 * share, 0, 1)  # at half the flow each, both pumps still need the full speed
    off_best = share * flow / (110 * speed) - 1
    hydraulic = share * flow * rise / 36
    power = 0.1 + hydraulic / (efficiency * (1 - 0.5 * off_best**2) * (1 - 0.12 * wear)) + 0.6 * running * speed**3
    return {
        "ST-" + tag: 1480 * speed * running,
        "JT-" + tag: power,
        "IT-" + tag: 1000 * power / (math.sqrt(3) * 400 * (0.62 + 0.25 * np.minimum(power / 20, 1))),  # 400 V, cos φ
        "VT-" + tag: 0.2 + running * (1.9 * speed**2 + 1.2 * off_best**2 + 0.4 * wear),
    }


# --- what goes wrong --------------------------------------------------------------------------------------------------

_UPSETS = {  # the places of process faults, and the sensors nearest to them
    "exchanger outlet": ("FT-201", "FT-202", "LT-210"),
    "distribution main": ("FT-301", "FT-401"),
    "feed pump A": ("JT-101", "IT-101", "VT-101"),
    "feed pump B": ("JT-102", "IT-102", "VT-102"),
    "distribution pump": ("JT-301", "IT-301", "VT-301"),
}
_PLACES = {
    "stuck": ("FT-103", "FT-301", "LT-210", "PT-401", "TT-401", "JT-301"),
    "drift": ("TT-201", "TT-210", "TT-302", "FT-401", "LT-210", "PT-302"),
    "leak": ("exchanger outlet", "distribution main"),
    "coupling": ("ZT-201", "ZT-202", "FT-201", "FT-202"),
    "spike": ("PT-103", "PT-302", "TT-110", "FT-201", "FT-301", "LT-110"),
}
_Placed = tuple[str, Fault]


def _plan(kinds: Sequence[str], drive: dict[str, Array], clock: _Clock, rng: np.random.Generator) -> list[_Placed]:
    """Places and faults in order of time; each has a slot of its own, with room for the plant to recover."""
    demand, pump_a = (drive[name][clock.settling :: clock.per_row] for name in ("demand", "pump_a"))
    plan, slot = [], len(clock.timestamps) // max(1, len(kinds))
    for number, kind in enumerate(map(str, rng.permutation(list(kinds)))):
        hours, story = _KINDS[kind]
        length = min(clock.rows_in(hours * rng.uniform(0.8, 1.2)), int(0.6 * slot))
        length = length if hours else int(rng.integers(3, 7))
        starts = number * slot + (rng.uniform(0.3, 0.7, 16) * (slot - length)).astype(int)
        # A frozen reading is wrong only where the truth moves.
        start = int(max(starts, key=lambda row: np.ptp(demand[row : row + length])) if kind == "stuck" else starts[0])
        # Wear shows only while the pump runs: a feed pump wears if it is on duty from start to end.
        pump = {0.0: "feed pump B", 1.0: "feed pump A"}.get(pump_a[start : start + length].mean(), "distribution pump")
        place = str(rng.choice(_PLACES.get(kind, (pump,))))
        subject = f"{SENSORS[_COLUMN[place]].description} {place}" if place in _COLUMN else place
        plan.append((place, Fault(kind, start, start + length, _UPSETS.get(place, (place,)), story.format(subject))))
    return plan


def _upsets(plan: Sequence[_Placed], clock: _Clock) -> dict[str, Array]:
    """How strong each process fault is at each step: leaks in m3/h, wear from 0 to 1."""
    upsets = {place: np.zeros_like(clock.hours) for place in _UPSETS}
    for place, fault in plan:
        if place in _UPSETS:
            row = np.arange(1, fault.end - fault.start + 1)
            size, onset = (6.0, clock.rows_in(0.3)) if fault.kind == "leak" else (1.0, max(1, len(row) // 2))
            profile = size * np.minimum(row / onset, 1) * np.minimum(row[::-1] / clock.rows_in(1), 1)
            first = clock.settling + fault.start * clock.per_row
            upsets[place][first : first + len(row) * clock.per_row] = np.repeat(profile, clock.per_row)
    return upsets


def _tamper(measured: Array, usual: Array, fault: Fault, clock: _Clock, rng: np.random.Generator) -> None:
    """Put a sensor fault into one column of measured values; `usual` is that column of the healthy run."""
    here = measured[fault.start : fault.end]
    row = np.arange(1, len(here) + 1)
    size = rng.choice([-1, 1]) * np.subtract(*np.quantile(usual, [0.99, 0.01]))
    if fault.kind == "stuck":
        here[:] = measured[fault.start - 1]
    elif fault.kind == "drift":
        here += 0.35 * size * row / len(row)
    elif fault.kind == "spike":
        here += 0.6 * size * 0.7 ** (row - 1)
    else:
        # Its own healthy course from another time, neither the most nor the least like the true one, drawn in a
        # little so that it keeps within its limits, and faded in and out so that no jump gives it away.
        hour = clock.rows_in(1)
        courses = [usual[(fault.start + row - shift) % len(usual)] for shift in range(hour, len(usual), hour)]
        courses.sort(key=lambda course: float(np.abs(course - here).mean()))
        course = 0.9 * courses[len(courses) // 2] + 0.1 * np.median(usual)
        fade = np.minimum(1, np.minimum(row, row[::-1]) / clock.rows_in(0.5))
        here += fade * (course - here)
    np.maximum(here, 0, out=here)
