"""Tables against hand-made results: means, marks, notes, and both markups."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import sem

from bench_units import graded, unit, write_csv
from graspad.bench import paper, tables
from graspad.bench.markup import Table
from graspad.bench.roster import ABLATIONS, BASELINES, SYSTEMS, TRIVIAL


def cells(table, *key):
    """The cells of the one row that begins with `key`, by header."""
    (found,) = [row for row in table.rows if row[: len(key)] == key]
    return dict(zip(table.header, found, strict=True))


def noted(table, *words):
    return [note for note in table.notes if all(word in note for word in words)]


def parsed(markdown):
    """A Markdown table as data: split at the bars that are not escaped."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in markdown.splitlines() if line.startswith("|")]
    header, rule, *rows = ([cell.strip().replace(r"\|", "|") for cell in line] for line in lines)
    assert all(re.fullmatch(r":?-+:?", cell) for cell in rule)
    return [dict(zip(header, row, strict=True)) for row in rows]


# The main table


def test_mean_over_series_then_mean_and_deviation_over_seeds():
    rows = [graded(prc, series=s, seed=k) for s, k, prc in [("a", 0, 0.2), ("b", 0, 0.4), ("a", 1, 0.4), ("b", 1, 0.6)]]
    row = cells(tables.main_table(rows), "SMAP", "GRASP (recipe)")
    assert row["series"] == "2 of 2"
    assert row["seeds"] == "2"
    # Seeds have 0.3 and 0.5: mean 0.4, sample deviation √0.02. The paper has 0.3149 ± 0.0087.
    assert row["PRC"] == "0.4000 ± 0.1414"
    assert row["PRC paper"] == "0.3149 ± 0.0087"
    assert row["PRC Δ"] == "+0.0851 ‡"
    assert row["ROC"] == "0.2000 ± 0.0707"
    assert row["ROC Δ"] == "-0.5015 ‡"


def test_one_seed_has_no_deviation():
    assert cells(tables.main_table([graded(0.5)]), "SMAP", "GRASP (recipe)")["PRC"] == "0.5000 ± –"


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 10**6))
def test_markdown_parses_back_to_what_pandas_computes(seeds, series, seed):
    rng = np.random.default_rng(seed)
    rows = [
        graded(float(rng.uniform()), data_set=d, series=f"s{i}", method=m, seed=k)
        for d in ("SMAP", "OWN|SET")
        for m in ("hbos", "grasp", "my|own", "random")
        for k in range(seeds)
        for i in range(series)
    ]
    frame = pd.DataFrame([{"set": r.set, "method": r.method, "seed": r.seed, **r.numbers} for r in rows])
    by_seed = frame.groupby(["set", "method", "seed"])[["prc", "roc", "best_f1"]].mean()
    expected = by_seed.groupby(["set", "method"]).agg(["mean", "std"])
    lines = {(line["set"], line["method"]): line for line in parsed(tables.main_table(rows).markdown())}
    names = {"hbos": "HBOS", "grasp": "GRASP (recipe)"}
    for (data_set, method), numbers in expected.iterrows():
        line = lines[data_set, names.get(method, method)]
        for metric, label in paper.METRICS.items():
            mean, std = line[label].split(" ± ")
            assert float(mean) == pytest.approx(numbers[metric, "mean"], abs=5.1e-5)
            assert std == "–" if seeds == 1 else float(std) == pytest.approx(numbers[metric, "std"], abs=5.1e-5)
            theirs = line[f"{label} paper"].partition(" ± ")[0]
            if theirs == "–":
                assert line[f"{label} Δ"] == "–"
                assert data_set == "OWN|SET" or method in ("my|own", "random")
            else:
                difference = numbers[metric, "mean"] - float(theirs)
                assert float(line[f"{label} Δ"].removesuffix(" ‡")) == pytest.approx(difference, abs=5.1e-5)


def test_order_and_rows_that_are_always_there():
    rows = [graded(0.5, method=method) for method in ("random", "own", "grasp-lin", "grasp-tau-2", "grasp", "hbos")]
    shown = [row[1] for row in tables.main_table(rows).rows if row[0] == "SMAP"]
    grasps = ["GRASP (paper preset)", "GRASP (recipe)"]
    assert shown == [*BASELINES.values(), *grasps, "own", *TRIVIAL]


@pytest.mark.parametrize(
    "table",
    [tables.main_table, tables.causal_table, tables.extra_metrics_table, tables.time_table, tables.sample_table],
)
def test_trivial_rows_are_never_dropped(table):
    made = table([graded(0.5, method="grasp-paper"), graded(0.5, method="hbos-smooth")])
    shown = {row[1]: row[2] for row in made.rows if row[0] == "SMAP"}
    assert {method: shown[method] for method in TRIVIAL} == dict.fromkeys(TRIVIAL, "not measured") | {
        "hbos-smooth": "1 of 1"
    }


def test_a_set_without_results_is_not_measured_but_keeps_the_papers_value():
    row = cells(tables.main_table([graded(0.5)]), "SWAN")
    assert row["series"] == "not measured"
    assert (row["PRC"], row["PRC paper"], row["PRC Δ"]) == ("–", "0.7556 ± 0.0116", "–")


def test_a_sample_is_marked_with_its_difference():
    rows = [graded(0.5, series=s, method="hbos") for s in "abc"]
    rows += [graded(0.5, series=s, method="grasp-paper") for s in "ab"]
    table = tables.main_table(rows)
    full, sample = cells(table, "SMAP", "HBOS"), cells(table, "SMAP", "GRASP (paper preset)")
    assert (full["series"], full["PRC Δ"]) == ("3 of 3", "+0.3103 ‡")
    assert (sample["series"], sample["PRC Δ"]) == ("2 of 3 †", "+0.1851 †")
    assert noted(table, "†", "not comparable")
    assert not noted(tables.main_table(rows[:3]), "†")


def test_a_series_with_more_seeds_counts_as_much_as_the_others():
    """The series with one seed lie far off: seeds would seem to differ by what only the series do."""
    rows = [graded(prc, series=s, seed=k) for s, k, prc in [("a", 0, 0.2), ("a", 1, 0.4), ("b", 0, 0.9), ("c", 0, 0.9)]]
    row = cells(tables.main_table(rows), "SMAP", "GRASP (recipe)")
    assert (row["series"], row["seeds"]) == ("3 of 3", "1 to 2")
    # Series have 0.3, 0.9 and 0.9; of "a", which both seeds have, 0.2 and 0.4.
    assert row["PRC"] == "0.7000 ± 0.1414"


def test_seeds_without_a_common_series_tell_no_deviation():
    row = cells(tables.main_table([graded(0.2), graded(0.4, series="b", seed=1)]), "SMAP", "GRASP (recipe)")
    assert (row["seeds"], row["PRC"]) == ("1", "0.3000 ± –")


def test_two_halves_of_a_set_do_not_pass_for_the_whole():
    table = tables.main_table([graded(0.5, series="a"), graded(0.5, series="b", method="hbos")])
    assert cells(table, "SMAP", "HBOS")["series"] == cells(table, "SMAP", "GRASP (recipe)")["series"] == "1 of 2 †"


def test_failed_units_are_counted_by_method_and_never_enter_a_mean():
    rows = [graded(0.5), unit(series="b", error="x"), unit(series="c", error="x"), unit(method="hbos", error="x")]
    table = tables.main_table([*rows, graded(0.1, series="b", method="copod")])
    assert noted(table, "failed", "HBOS 1", "GRASP (recipe) 2")
    assert cells(table, "SMAP", "GRASP (recipe)")["PRC"] == "0.5000 ± –"
    assert cells(table, "SMAP", "HBOS")["series"] == "failed"


def test_an_undefined_metric_leaves_its_series_out_and_says_so():
    table = tables.main_table([graded(0.4, series="a"), unit(series="b", prc=0.2), unit(series="c", prc=0.3)])
    row = cells(table, "SMAP", "GRASP (recipe)")
    assert (row["PRC"], row["ROC"], row["series"]) == ("0.3000 ± –", "0.2000 ± –", "3 of 3")
    assert noted(table, "SMAP", "ROC, Best-F1 undefined in 2 series", "GRASP (recipe)")
    never = tables.main_table([unit(prc=0.2)])
    assert cells(never, "SMAP", "GRASP (recipe)")["ROC"] == "–"
    assert not noted(never, "undefined")


def test_numbers_of_other_data_never_stand_beside_the_papers():
    table = tables.main_table([graded(0.5, data_set="CICIDS"), graded(0.5, data_set="SMD")])
    assert cells(table, "CICIDS", "GRASP (recipe)")["PRC"] == "0.5000 ± –"
    assert {row[table.header.index("PRC paper")] for row in table.rows if row[0] == "CICIDS"} == {"–"}
    assert noted(table, "CICIDS", "other data")
    assert noted(table, "‡ SMD", "1 series here, 18 in the paper")
    assert {row[-1] for row in tables.time_table([unit(data_set="CICIDS", score_seconds=1.0)]).rows} == {"–"}


def test_a_difference_is_bare_only_over_as_many_series_as_the_paper_has():
    rows = [graded(0.5, series=f"s{index}", method="hbos") for index in range(51)]
    whole, part = tables.main_table(rows), tables.main_table(rows[:50])
    assert cells(whole, "SMAP", "HBOS")["PRC Δ"] == "+0.3103"
    assert not noted(whole, "‡")
    assert cells(part, "SMAP", "HBOS")["PRC Δ"] == "+0.3103 ‡"
    assert noted(part, "‡ SMAP", "50 series here, 51 in the paper")


def test_mixed_settings_are_told():
    table = tables.main_table([graded(0.5, series="a", config="x"), graded(0.5, series="b", config="y")])
    assert noted(table, "SMAP", "different settings", "GRASP (recipe)")
    assert not noted(tables.main_table([graded(0.5, series="a"), graded(0.5, series="b")]), "different settings")


def test_causal_table_takes_the_causal_columns():
    rows = [unit(prc=0.9, causal_prc=0.25, causal_roc=0.5, causal_best_f1=0.125)]
    row = cells(tables.causal_table(rows), "SMAP", "GRASP (recipe)")
    assert (row["PRC"], row["ROC"], row["Best-F1"]) == ("0.2500 ± –", "0.5000 ± –", "0.1250 ± –")
    assert row["PRC paper"] == "0.3149 ± 0.0087"


# Variants


@pytest.mark.parametrize("of", ["grasp", "grasp-gnn"])
def test_ablation_differences_against_the_noise_of_series_and_of_seeds(of):
    variants = [of, f"{of}-mean", f"{of}-er", f"{of}-lin"]
    rng = np.random.default_rng(0)
    values = {m: rng.uniform(0.2, 0.8, (3, 5)) for m in variants}  # seed, series
    rows = [
        graded(values[m][k, i], series=f"s{i}", seed=k, method=m) for m in variants for k in range(3) for i in range(5)
    ]
    # A series that only GRASP has must not enter any difference, nor what else was ablated.
    rows += [graded(0.99, series="only", seed=k, method=of) for k in range(3)]
    rows += [graded(0.01, series=f"s{i}", method=m) for m in ("grasp-tsmixer", "grasp-tsmixer-lin") for i in range(5)]
    table = tables.ablation_table(rows, of)
    for method, variant in zip(variants[1:], ["GRASP-mean", "GRASP-ER", "GRASP-lin"], strict=True):
        row = cells(table, "SMAP", "PRC", variant)
        by_series = values[method].mean(axis=0) - values[of].mean(axis=0)
        assert row["Δ paired"] == f"{by_series.mean():+.4f} ± {sem(by_series):.4f}"
        deviation = np.sqrt(np.mean([values[m].mean(axis=1).var(ddof=1) for m in (method, of)]))
        assert row["Δ / seed dev."] == f"{by_series.mean() / deviation:+.1f}"
    assert any("The paper's values are of TSMixer" in note for note in table.notes) == (of != "grasp")
    assert cells(table, "SMAP", "PRC", "GRASP-lin")["paper's Δ"] == "-0.0239"
    assert cells(table, "SMAP", "PRC", "GRASP-lin")["paper"] == "0.2910"
    assert cells(table, "SMAP", "PRC", "GRASP")["Δ paired"] == "–"


def test_variants_and_networks_stand_beside_the_trivial_rows():
    methods = ("grasp", "grasp-mean", "grasp-gnn", "random", "energy-smooth")
    rows = [graded(0.5 if m == "grasp" else 0.3, method=m, series=s) for m in methods for s in "ab"]
    ablation, networks = tables.ablation_table(rows), tables.architecture_table(rows)
    for metric in paper.METRICS.values():
        shown = {row[2] for row in ablation.rows if row[:2] == ("SMAP", metric)}
        assert shown == {"GRASP", "GRASP-mean", "GRASP-ER", "GRASP-lin", *TRIVIAL}
    row = cells(ablation, "SMAP", "PRC", "energy-smooth")
    assert (row["ours"], row["paper"], row["Δ paired"]) == ("0.3000 ± –", "–", "-0.2000 ± 0.0000")
    assert set(TRIVIAL) <= {row[1] for row in networks.rows if row[0] == "SMAP"}
    assert cells(networks, "SMAP", "random")["PRC"] == "0.3000 ± –"


def test_methods_that_no_seed_changes_have_no_difference_in_seed_deviations():
    rows = [
        graded(p, series=s, seed=k, method=m)
        for k in (0, 1)
        for m, p, s in [("grasp", 0.1, "a"), ("grasp", 0.3, "b"), ("grasp-mean", 0.2, "a"), ("grasp-mean", 0.6, "b")]
    ]
    row = cells(tables.ablation_table(rows), "SMAP", "PRC", "GRASP-mean")
    # Differences 0.1 and 0.3: mean 0.2, deviation √0.02, standard error 0.1.
    assert (row["Δ paired"], row["Δ / seed dev."]) == ("+0.2000 ± 0.1000", "–")


def test_architecture_table():
    table = tables.architecture_table([graded(0.5, method="grasp-gnn"), graded(0.6)])
    assert cells(table, "SMAP", "GNN")["PRC Δ"] == "+0.2227 ‡"
    assert cells(table, "SMAP", "TSMixer")["series"] == "not measured"
    assert cells(table, "SMAP", "GRASP (recipe)")["PRC paper"] == "–"


def test_sample_table_is_on_exactly_the_series_of_one_method():
    rows = [graded(p, series=s, method="hbos") for s, p in zip("abcd", [0.1, 0.2, 0.3, 0.4], strict=True)]
    rows += [graded(0.7, series=s, method="grasp-paper") for s in "bd"]
    rows += [graded(0.9, series="a", method="copod"), graded(0.8, series="b", method="usad")]
    rows += [graded(0.6, series=s, method="grasp-tau-1") for s in "ab"]
    rows += [graded(0.6, series=s, method="grasp-tau-2") for s in "abd"]
    rows += [graded(0.5, data_set="SMD", method="hbos")]
    table = tables.sample_table(rows)
    assert cells(table, "SMAP", "HBOS")["PRC"] == "0.3000 ± –"
    assert cells(table, "SMAP", "HBOS")["series"] == "2 of 2"
    assert cells(table, "SMAP", "USAD")["series"] == "1 of 2 †"
    assert {row[0] for row in table.rows} == {"SMAP"}
    shown = [row[1] for row in table.rows]
    assert "COPOD" not in shown
    assert "grasp-tau-1" not in shown
    assert cells(table, "SMAP", "grasp-tau-2")["series"] == "2 of 2"
    assert cells(tables.sample_table(rows, "usad"), "SMAP", "HBOS")["PRC"] == "0.2000 ± –"
    assert tables.sample_table(rows, "gdn").notes[0] == "GDN was not measured."


def test_extra_metrics_stand_beside_best_f1():
    rows = [unit(series=s, best_f1=0.5, alarm_f1=0.25, delay=d) for s, d in (("a", 12.0), ("b", 13.5))]
    row = cells(tables.extra_metrics_table(rows), "SMAP", "GRASP (recipe)")
    assert (row["Best-F1"], row["alarm F1"], row["delay"]) == ("0.5000 ± –", "0.2500 ± –", "12.8 ± –")
    assert row["VUS-PR"] == "–"


def test_vus_stands_beside_mtsbenchs_on_the_series_that_it_covers():
    rows = [unit(series=s, method=m, seed=k, vus_pr=v) for s, v in (("a", 0.2), ("b", 0.4), ("A-7", 0.9))
            for m in ("hbos", "grasp", "usad-fixed") for k in (0, 1)]  # fmt: skip
    table = tables.mtsbench_table([*rows, unit("CICIDS", method="hbos", vus_pr=0.5)])
    ((*row,),) = table.rows  # no row of GRASP, of a mended baseline, or of other data
    assert row == ["SMAP", "HBOS", "2 of 48", "2", "0.3000 ± 0.0000", "0.1961", "+0.1039"]


def test_time_is_the_sum_over_series_and_the_mean_over_seeds():
    rows = [
        unit(series=s, seed=k, rows=r, train_rows=2 * r, fit_seconds=f, score_seconds=t)
        for s, k, r, f, t in [("a", 0, 1000.0, 1.0, 2.0), ("b", 0, 3000.0, 2.0, 4.0),
                              ("a", 1, 1000.0, 3.0, 3.0), ("b", 1, 3000.0, 4.0, 5.0)]
    ]  # fmt: skip
    row = cells(tables.time_table(rows), "SMAP", "GRASP (recipe)")
    assert (row["fit s"], row["score s"], row["paper, score s"]) == ("5", "7", "38.4")
    assert (row["fit s / 1000 rows"], row["score s / 1000 rows"]) == ("0.625", "1.75")


def test_sensitivity_compares_values_on_common_series():
    rows = [graded(0.2, series=s, method="grasp-tau-8") for s in "ab"] + [graded(0.9, series="c", method="grasp-tau-8")]
    rows += [graded(p, series=s, method="grasp-tau-0.25") for s, p in (("a", 0.4), ("b", 0.6))]
    table = tables.sensitivity_table(rows)
    assert [row[:4] for row in table.rows] == [("τ", "SMAP", "0.25", "2"), ("τ", "SMAP", "8", "2")]
    assert [row[table.header.index("PRC")] for row in table.rows] == ["0.5000 ± –", "0.2000 ± –"]


# Markup

SPECIAL = set("&%$#_{}~^\\")


def undone(latex):
    """LaTeX text with every known way to write a symbol taken out; what is special and left was not escaped."""
    known = r"\\text(?:backslash|asciitilde|asciicircum|bar|less|greater)\{\}|\$(?:-|\\pm|\\d?dagger|\\tau|\\Delta)\$"
    return re.sub(known + r"|\\[&%$#_{}]|\{\[\}", "", latex)


@given(st.lists(st.lists(st.text(max_size=12), min_size=3, max_size=3), max_size=4))
def test_latex_is_balanced_whatever_the_cells_hold(rows):
    rows = [["".join(cell.split()) for cell in row] for row in rows]
    table = Table("50 % & more", ("set_1", "|R|", "Δ"), tuple(map(tuple, rows)), ("a_b",))
    latex = table.latex()
    assert r"\begin{tabular}{llr}" in latex
    body = latex.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.replace(r"\midrule", "").split(" \\\\\n") if line.strip()]
    assert len(lines) == 1 + len(rows)
    for line in lines:
        parts = undone(line.strip("\n")).split(" & ")
        assert len(parts) == 3
        assert not SPECIAL & set("".join(parts))
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 3


def test_latex_names_a_block_once_and_writes_a_true_minus():
    latex = Table("t", ("set", "method", "x"), (("A", "m-1", "-0.5"), ("A", "n", "1"), ("B", "m", "2"))).latex()
    assert latex.split(r"\midrule", 1)[1].split(r"\bottomrule")[0].split("\n")[1:-1] == [
        r"A & m-1 & $-$0.5 \\", r" & n & 1 \\", r"\midrule", r"B & m & 2 \\",
    ]  # fmt: skip


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\\")), min_size=2, max_size=2), max_size=4))
def test_markdown_keeps_every_cell_in_its_column(rows):
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    table = Table("t", ("a", "b"), tuple(map(tuple, rows)))
    assert [list(line.values()) for line in parsed_lines(table.markdown())] == rows


def parsed_lines(markdown):
    # Text may hold separators that str.splitlines knows and Markdown does not.
    return parsed("\n".join(line for line in markdown.split("\n") if line.startswith("|")))


def test_write_all_writes_the_tables_that_have_data(tmp_path):
    few = write_csv(tmp_path / "few.csv", [graded(0.5, method="hbos")])
    titles = re.findall(r"^### (.*)", tables.render([few]), re.MULTILINE)
    assert titles == ["Main results beside the paper's", "Further metrics", "Time"]
    methods = [*SYSTEMS, *ABLATIONS["grasp"], "grasp-gnn", "grasp-gnn-lin", "grasp-tau-1", "grasp-tau-2"]
    rows = [unit(series=s, method=m, prc=0.5, causal_prc=0.4, score_seconds=1.0) for m in methods for s in "ab"]
    rows = [row for row in rows if (row.series, row.method) != ("b", "grasp-paper")]
    many = write_csv(tmp_path / "many.csv", rows)
    written = tables.write_all([few, many], tmp_path / "new" / "out")
    names = ["tables.md", "tables.tex", "sensitivity_tau.png", "inference_time.png"]
    assert [path.name for path in written] == names
    assert all(isinstance(path, Path) and path.stat().st_size > 0 for path in written)
    markdown, latex = (path.read_text(encoding="utf-8") for path in written[:2])
    assert markdown == tables.render([few, many]) + "\n"
    titles = re.findall(r"^### (.*)", markdown, re.MULTILINE)
    assert len(titles) == len(set(titles)) == 9
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 9
