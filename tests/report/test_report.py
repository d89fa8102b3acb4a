import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from graspad.alarms.incidents import Incident
from graspad.errors import GraspError, InputError
from graspad.report import ReportData, render, write
from graspad.simulate import Fault

HOSTILE = "<b>&amp;</b> \"q\" 'x' $a$ %{y} 測ü </script><script>alert(1)</script> {{ 7 * 7 }}"


class Page(HTMLParser):
    """The tags of a page, its visible text and its figures."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.within, self.pieces, self.code = [], [], [], {"script": [], "style": []}
        self.feed(html)
        self.text = re.sub(r"\s+", " ", " ".join(self.pieces)).replace("\xa0", " ")
        self.figures = json.loads(self.code["script"][0])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.within.append(tag)

    def handle_endtag(self, tag):
        while self.within and self.within.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self.within[-1] if self.within else ""
        self.code[inside].append(data) if inside in self.code else self.pieces.append(data)

    def all(self, tag, **wanted):
        return [attrs for name, attrs in self.tags if name == tag and wanted.items() <= attrs.items()]


def at(start, end, score=50.0, sensors=("FT-1", "PT-2")):
    shares = 0.5 ** np.arange(1, len(sensors) + 1)
    named = tuple(zip(sensors, (shares / shares.sum()).tolist(), strict=True))
    return Incident(start, end, (start + end) // 2, score, 0.001, named, (0.7, 0.3))


def test_page_tells_the_incident(plant):
    page = Page(render(plant()))
    assert page.all("title")
    assert "1 incident. The worst is number 1, 2025-06-03 03:20 – 04:09" in page.text
    assert "of its score is from FT-1 (feed flow)" in page.text
    for fact in ("Pump house", "600", "10 h", "50 min", "20 rows without a score", "false alarms: 0.1 % of rows"):
        assert fact in page.text
    assert page.all("article", id="incident-1")
    assert page.all("a", href="#incident-1")
    assert {"overview", "signals-1"} == set(page.figures)
    assert "<b>FT-1</b>  feed flow, m3/h" in page.figures["signals-1"]["layout"]["annotations"][0]["text"]
    assert "fit normal.parquet" in page.text


def test_what_was_expected_is_drawn_beside_what_was_seen(plant):
    expected = plant().values.copy()
    expected[200:250, 0] -= 20  # lower than anything that was seen
    expected[:150] = np.nan
    expected[:, 1] = np.nan
    data = plant(expected=expected)
    page = Page(render(data))
    figure = page.figures["signals-1"]
    panels = {name: [trace for trace in figure["data"] if trace["yaxis"] == name] for name in ("y", "y2")}
    seen, curve = panels["y"]
    assert seen["y"] == pytest.approx(data.values[80:370, 0].tolist())
    assert curve["y"][:70] == [None] * 70
    assert curve["y"][70:] == pytest.approx(expected[150:370, 0].tolist())
    assert curve["x"] == seen["x"]
    assert "dash" in curve["line"]
    assert curve["hovertemplate"].startswith("expected %{y")
    assert figure["layout"]["yaxis"]["range"][0] < np.nanmin(expected[:, 0])
    assert len(panels["y2"]) <= 1  # nothing is known of the second sensor
    assert "seen expected" in page.text
    assert len(page.all("i", **{"class": "line expected"})) == 1
    assert "Expected : what the model takes the rows to be" in page.text


def test_without_expected_values_nobody_speaks_of_them(plant):
    page = Page(render(plant()))
    assert not any("dash" in trace["line"] for trace in page.figures["signals-1"]["data"])
    assert "expected" not in page.text.lower()


def test_nothing_is_loaded_from_elsewhere(plant):
    page = Page(render(plant(truth=(Fault("leak", 190, 260, ("FT-1",), "It leaks."),))))
    for tag, attrs in page.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        for name in ("src", "srcset", "href", "xlink:href", "data", "action", "poster"):
            assert attrs.get(name, "#").startswith("#"), (tag, attrs)
    assert not re.search(r"url\(|@import", "".join(page.code["style"]))
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in policy["content"]
    assert "http" not in policy["content"]


def test_names_are_shown_and_never_run(plant):
    sensors = (HOSTILE, "PT-2", "TT-3", "VT-4", "LT-5")
    fault = Fault(HOSTILE, 190, 260, (HOSTILE,), HOSTILE)
    hostile = plant(
        title=HOSTILE,
        sensors=sensors,
        incidents=(at(200, 250, sensors=sensors),),
        false_alarms=HOSTILE,
        summary={HOSTILE: HOSTILE},
        units={HOSTILE: HOSTILE},
        descriptions={HOSTILE: HOSTILE},
        truth=(fault,),
    )
    ours, theirs = Page(render(plant(truth=(Fault("leak", 190, 260, ("FT-1",), "It leaks."),)))), Page(render(hostile))
    kinds = [sorted({tag for tag, _ in page.tags}) for page in (ours, theirs)]
    assert kinds[0] == kinds[1]
    assert len(theirs.all("script")) == len(ours.all("script")) == 3
    assert theirs.text.count(" ".join(HOSTILE.split())) >= 8
    # In a chart plotly would read tags and templates: both must be spelt out.
    title = theirs.figures["signals-1"]["layout"]["annotations"][0]["text"]
    assert "&lt;b&gt;&amp;amp;" in title
    assert "%{y}" not in theirs.figures["signals-1"]["data"][0]["hovertemplate"].replace("%{y:.5~g}", "")


def test_no_incident_is_said_clearly(plant):
    quiet = plant(incidents=(), score=np.full(600, 1.0))
    page = Page(render(quiet))
    assert "Nothing over the threshold" in page.text
    assert not page.all("article")
    assert set(page.figures) == {"overview"}
    assert "2 rows over the threshold did not add up" in Page(render(plant(incidents=(), score=two_high()))).text


def two_high():
    score = np.ones(600)
    score[[5, 6]] = 9
    return score


def test_no_score_at_all_is_said_clearly(plant):
    assert "No row has a score" in Page(render(plant(incidents=(), score=np.full(600, np.nan)))).text


def test_one_sensor_without_times_and_with_gaps():
    values = np.sin(np.arange(300.0))[:, None]
    values[40:60] = np.nan
    values[50], values[70] = 1.0, np.inf
    score = np.abs(values[:, 0])
    score[100] = 9
    rows = (at(100, 101, 9.0, ("only",)), at(299, 300, np.nan, ("only",)), at(45, 46, 7.0, ()))
    data = ReportData("One", None, values, ("only",), score, 5.0, "1/week", rows, np.zeros((1, 1), bool), {})
    page = Page(render(data))
    assert "The worst is number 2, row 100: 100 % of its score is from only." in page.text
    assert "3 rows" in page.text  # in alarm
    assert not page.all("svg", **{"class": "graph"})
    trace = page.figures["signals-2"]["data"][0]
    assert None in trace["y"]
    assert trace["marker"]["size"][trace["x"].index(50)] > 0
    assert "No sensor is named for this incident." in page.text


def test_many_incidents_show_the_worst_and_count_the_rest(plant):
    many = tuple(at(20 * i, 20 * i + 3, score=10.0 + i) for i in range(30))
    page = Page(render(plant(incidents=many)))
    assert [article["id"] for article in page.all("article")] == [f"incident-{place}" for place in range(19, 31)]
    assert "The 12 worst of 30 incidents, by peak score; 18 more are not shown here." in page.text
    assert len(page.all("td", **{"class": "shares"})) == 30


def test_known_faults_beside_what_was_found(plant):
    faults = (
        Fault("leak", 180, 260, ("FT-1", "VT-4"), "It leaks."),
        Fault("spike", 500, 503, ("LT-5",), "It jumps."),
        Fault("wear", 240, 300, ("VT-4",), "It wears."),
    )
    page = Page(render(plant(truth=faults, incidents=(at(200, 250), at(400, 401)))))
    assert "2 of 3 found. 1 incident without a known fault." in page.text
    assert "leak It leaks. 2025-06-03 03:00 – 04:19 yes 1 20 min FT-1 VT-4 FT-1 67 % PT-2 33 %" in page.text
    assert "spike It jumps. 2025-06-03 08:20 – 08:22 no – LT-5 –" in page.text
    assert "wear It wears. 2025-06-03 04:00 – 04:59 yes 1 at once VT-4" in page.text
    assert len(page.all("span", **{"class": "tag hit"})) == 1


def test_big_tables_give_small_files_and_keep_extremes():
    rng = np.random.default_rng(0)
    rows, sensors = 100_000, tuple(f"S{i}" for i in range(40))
    values = rng.standard_normal((rows, 40)).cumsum(axis=0)
    values[54_321, 0], score = 1e6, rng.gamma(1, 1, rows)
    score[54_321] = 12345.678
    wide = tuple(at(8000 * i, 8000 * i + 7000, 100.0 + i, sensors) for i in range(12))
    times = np.datetime64("2025-01-01", "ms") + np.arange(rows) * np.timedelta64(250, "ms")
    graph = ~np.eye(40, dtype=bool)
    html = render(ReportData("Big", times, values, sensors, score, 20.0, "rare", wide, graph, {}))
    assert len(html.encode()) < 8e6
    figures = Page(html).figures
    assert max(figures["overview"]["data"][0]["y"]) == 12345.678
    assert max(figures["signals-7"]["data"][0]["y"]) == 1e6


def test_same_data_same_page(plant):
    assert render(plant()) == render(plant())


def test_write_replaces_the_file_or_leaves_it(plant, tmp_path, monkeypatch):
    target = tmp_path / "new" / "report.html"
    assert write(plant(), target) == target
    before = target.read_text(encoding="utf-8")
    assert before.startswith("<!DOCTYPE html>")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write(plant(title="other"), target)
    assert target.read_text(encoding="utf-8") == before
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize("missing", ["jinja2", "plotly.offline"])
def test_missing_extra_says_what_to_type(plant, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(GraspError, match=r"pip install 'graspad\[report\]'"):
        render(plant())


def test_wrong_shapes_are_refused(plant):
    with pytest.raises(InputError, match=r"values of a report must have shape \(600, 5\)"):
        plant(values=np.zeros((600, 4)))
    with pytest.raises(InputError, match=r"expected values of a report must have shape \(600, 5\)"):
        plant(expected=np.zeros((599, 5)))
    with pytest.raises(InputError, match="datetime64"):
        plant(timestamps=np.arange(600))
    with pytest.raises(InputError, match="do not lie within the 600 rows"):
        plant(incidents=(at(590, 601),))
    with pytest.raises(InputError, match="Got 0 rows"):
        plant(score=np.empty(0))


def test_report_runs_without_torch():
    check = "import sys, graspad.report; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=120)
