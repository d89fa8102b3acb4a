"""Every number of paper.csv, against the LaTeX source of the paper where it is at hand, and against itself."""

import os
import re
from pathlib import Path

import pytest

from graspad.bench import paper
from graspad.bench.roster import ABLATIONS, NETWORKS, SYSTEMS

TABLES = {
    "tab:main_results": "main",
    "tab:main_results_smap_smd": "main",
    "tab:main_results_cicids_swan": "main",
    "tab:ablation": "ablation",
    "tab:path_ablation": "ablation",
    "tab:velocity_field_ablation": "architecture",
}
GROUPS = {"main": SYSTEMS, "ablation": ABLATIONS["grasp"], "architecture": NETWORKS}


@pytest.fixture(scope="module")
def tex():
    source = Path(os.environ.get("GRASPAD_DATA", "."), "..", "paper", "grasp.tex")
    if not source.is_file():
        pytest.skip("needs the paper's source: set GRASPAD_DATA to a folder with paper/grasp.tex beside it")
    return source.read_text(encoding="utf-8")


def parse(tex, label):
    """Each number of a table by (system, set, metric): a list of the mean and, where given, the deviation."""
    table = tex.split(rf"\label{{{label}}}")[1].split(r"\begin{tabular}")[1].split(r"\end{tabular}")[0]
    head, *body = table.split(r"\midrule")
    sets = re.findall(r"\\multicolumn\{3\}\{[c|]+\}\{(\w+)\}", head)
    assert head.count("PRC & ROC & Best-F1") == len(sets)
    columns = [(data_set, metric) for data_set in sets for metric in paper.METRICS]
    found = {}
    for line in "".join(body).split(r"\\"):
        plain = re.sub(r"\\(rowcolor\{.*?\}|textbf|underline|bottomrule)|[{}]", "", line)
        system, *cells = (cell.strip() for cell in plain.split("&"))
        if system:
            for column, cell in zip(columns, cells, strict=True):
                found[system, *column] = [float(number) for number in cell.split(r"$\pm$")]
    return found


def stored(source):
    systems = dict.fromkeys(GROUPS[source].values())
    return {
        (system, data_set, metric): paper.value(source, system, data_set, metric)
        for system in systems
        for data_set in paper.SETS
        for metric in paper.METRICS
    }


@pytest.mark.parametrize("label", TABLES)
def test_every_number_of_a_table_is_the_papers(tex, label):
    printed, ours = parse(tex, label), stored(TABLES[label])
    assert {system for system, _, _ in printed} == {system for system, _, _ in ours}
    for key, (mean, *std) in printed.items():
        assert ours[key].mean == mean, key
        if std:
            assert ours[key].std == std[0], key


@pytest.mark.parametrize("source", GROUPS)
def test_the_tables_of_the_paper_hold_every_number_we_store(tex, source):
    printed = {key: cell for label in TABLES if TABLES[label] == source for key, cell in parse(tex, label).items()}
    assert printed.keys() == stored(source).keys()
    assert {key: len(cell) == 2 for key, cell in printed.items()} == {
        key: value.std is not None for key, value in stored(source).items()
    }


def test_facts_about_the_sets(tex):
    written = " ".join(tex.split())
    times = re.search(r"requires ([\d.]+) seconds on SMAP and ([\d.]+) seconds on SMD", written)
    assert [paper.SETS[name].score_seconds for name in ("SMAP", "SMD")] == [float(times[1]), float(times[2])]
    patterns = {
        "SMAP": r"comprises (51) multivariate sequences, each containing (26) variables",
        "SMD": r"We use (18) sequences with (39) variables each",
        "CICIDS": r"comprises (six) sequences, each represented by (73) network-flow features",
        "SWAN": r"We use (the) (39)-variable sequence",
    }
    for name, pattern in patterns.items():
        series, sensors = re.search(pattern, written).groups()
        assert paper.SETS[name].series == ({"six": 6, "the": 1}.get(series) or int(series))
        assert paper.SETS[name].sensors == int(sensors)
    assert paper.SEEDS == 10
    assert "standard deviation over ten random seeds" in written


@pytest.mark.parametrize("source", GROUPS)
def test_no_cell_is_missing(source):
    assert all(value is not None and 0 < value.mean < 1 for value in stored(source).values())


def test_grasp_is_the_same_row_in_every_table():
    for data_set in paper.SETS:
        for metric in paper.METRICS:
            row = [("main", "GRASP"), ("ablation", "GRASP"), ("architecture", "TSMixer")]
            assert len({paper.value(source, system, data_set, metric).mean for source, system in row}) == 1


def test_the_papers_claim_grasp_leads_everywhere_but_in_roc_on_smd():
    for data_set in paper.SETS:
        for metric in paper.METRICS:
            means = {
                system: paper.value("main", system, data_set, metric).mean for system in dict.fromkeys(SYSTEMS.values())
            }
            leader = max(means, key=means.__getitem__)
            assert leader == ("CATCH" if (data_set, metric) == ("SMD", "roc") else "GRASP")


def test_what_the_paper_does_not_have():
    assert paper.value("main", "GRASP", "MSL", "prc") is None
    assert paper.value("ablation", "HBOS", "SMAP", "prc") is None


@pytest.mark.parametrize(
    ("data_set", "sensors", "same"),
    [
        ("SMAP", [25.0] * 51, True),
        ("SMD", [38.0], True),
        ("CICIDS", [72.0, 73.0], True),
        ("CICIDS", [72.0, 10.0], False),
        ("CICIDS", [77.0], False),
        ("SMAP", [None], False),
        ("PLANT", [], False),
        ("SWAN", [], True),
    ],
)
def test_papers_numbers_belong_only_beside_the_papers_data(data_set, sensors, same):
    assert paper.same_data(data_set, sensors) is same
