"""The page in a real browser: every chart is drawn and no script complains."""

import shutil
import subprocess

import numpy as np
import pytest

from graspad.alarms.incidents import Incident
from graspad.report import write
from graspad.simulate import Fault

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
)


@pytest.fixture
def browse(tmp_path):
    """The DOM of a page after its scripts ran, and what they wrote to the console."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"needs a browser: install one of {', '.join(NAMES)}")

    def run(path):
        # Virtual time runs as fast as the page can, so a slow machine draws all the same.
        flags = [*FLAGS.split(), "--enable-logging=stderr", "--virtual-time-budget=30000", "--dump-dom"]
        command = [program, *flags, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=180, check=True)
        log = done.stderr.decode(errors="replace")
        return done.stdout.decode(), [line for line in log.splitlines() if "CONSOLE" in line]

    return run


def test_complaints_would_be_heard(browse, tmp_path):
    page = tmp_path / "broken.html"
    page.write_text("<script>nothing.at.all</script>", encoding="utf-8")
    assert browse(page)[1]


def test_all_charts_are_drawn(browse, plant, tmp_path):
    name = "<b>PT</b> \"2\" 'x' $a$ %{y} 測 </script>"
    sensors = ("FT-1", name, "TT-3", "VT-4", "LT-5")
    shares = tuple(zip((name, "FT-1"), (0.6, 0.4), strict=True))
    rows = (
        Incident(200, 250, 220, 50.0, 0.001, shares, (0.5, 0.5)),
        Incident(599, 600, 599, 9.0, 0.01, shares, (1.0,)),
    )
    values = plant().values.copy()
    values[100:150] = np.nan
    expected = plant().values + 1
    expected[:90] = np.nan
    faults = (Fault("<i>leak</i>", 190, 260, (name,), "It <u>leaks</u>."),)
    data = plant(sensors=sensors, incidents=rows, truth=faults, values=values, expected=expected)
    dom, complaints = browse(write(data, tmp_path / "report.html"))
    assert complaints == []
    assert 'data-drawn="3"' in dom
    assert dom.count('class="plot-container') == 3
    assert dom.count("js-line") >= 10  # score, threshold, two lines in two panels for each of two incidents
    # The name stands in the chart as it is, not as bold text.
    assert "&lt;b&gt;PT&lt;/b&gt; \"2\" 'x' $a$ %{y} 測 &lt;/script&gt;" in dom.split("annotation-text", 1)[1]


def test_an_empty_report_is_drawn_too(browse, plant, tmp_path):
    data = plant(incidents=(), score=np.full(600, np.nan), timestamps=None)
    dom, complaints = browse(write(data, tmp_path / "report.html"))
    assert complaints == []
    assert 'data-drawn="1"' in dom
