"""A healthy table for the data doctor, and ways to spoil it."""

import numpy as np

ROWS, NAMES = 1000, ("a", "b", "c")
TIMES = np.datetime64("2025-01-01", "s") + np.arange(ROWS) * np.timedelta64(60, "s")


def healthy(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    wave = np.sin(np.arange(rows) / 40)[:, None] * [1, 2, 3]
    return 10 + wave + 0.1 * rng.standard_normal((rows, 3))


def changed(places, value, column=1):
    values = healthy()
    values[places, column] = value
    return values


def only(findings, level, topic):
    """The one finding there is; a doctor who finds the trouble and cries wolf beside it fails too."""
    assert [(finding.level, finding.topic) for finding in findings] == [(level, topic)]
    return findings[0]
