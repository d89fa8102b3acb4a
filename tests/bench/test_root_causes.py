"""Hit rate, NDCG and rank on rankings whose values can be worked out by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from graspad.bench.root_causes import (
    LabelledIncident,
    hit_rate,
    mean_rank,
    ndcg,
    one_named,
    ranking,
    read_incidents,
    rightly_named,
)

RANKED = np.array([4, 0, 5, 2, 1, 3])


@pytest.mark.parametrize(
    ("causes", "at_100", "at_150"),
    [
        ({4}, 1, 1),
        ({0}, 0, 0),  # half a sensor more is none: ⌊1.5⌋ = 1
        ({4, 5}, 1 / 2, 1),  # ⌊3⌋ = 3 places
        ({4, 2, 3}, 1 / 3, 2 / 3),  # ⌊4.5⌋ = 4 places
        ({0, 1, 2, 3, 4, 5}, 1, 1),  # more places than sensors
    ],
)
def test_hit_rate_counts_causes_among_the_first_places(causes, at_100, at_150):
    assert hit_rate(RANKED, causes, 100) == pytest.approx(at_100)
    assert hit_rate(RANKED, causes, 150) == pytest.approx(at_150)


def test_ndcg_gives_early_places_more_weight():
    assert ndcg(RANKED, {4, 0}) == pytest.approx(1)
    assert ndcg(RANKED, {1, 3}) == 0
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert ndcg(RANKED, {4, 5, 3}) == pytest.approx((1 + 1 / log2(4)) / ideal)
    assert ndcg(RANKED, {0, 5, 3}) == pytest.approx((1 / log2(3) + 1 / log2(4)) / ideal)


def test_mean_rank_counts_places_from_one():
    assert mean_rank(RANKED, {4}) == 1
    assert mean_rank(RANKED, {4, 3}) == pytest.approx((1 + 6) / 2)
    assert mean_rank(RANKED, set(range(6))) == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("causes", "rightly", "one"),
    [
        ({5}, True, True),  # one cause, third place
        ({2}, False, False),
        ({4, 5}, True, True),  # two causes, both named
        ({4, 2}, False, True),
        ({0, 4, 5, 3}, True, True),  # four causes: all of the first three are among them
        ({0, 4, 2}, False, True),
    ],
)
def test_causes_among_the_first_three(causes, rightly, one):
    assert (rightly_named(RANKED, causes), one_named(RANKED, causes)) == (rightly, one)


def test_the_order_of_the_columns_does_not_break_ties():
    rng = np.random.default_rng(0)
    firsts = [ranking(np.array([0.0, 1.0, 1.0, 1.0]), rng)[0] for _ in range(300)]
    assert set(firsts) == {1, 2, 3}
    assert all(firsts.count(sensor) > 60 for sensor in (1, 2, 3))


def test_labels_are_read_from_their_file(tmp_path):
    file = tmp_path / "root_causes.csv"
    file.write_text("machine,start,end,sensors\nmachine-1-2,0,37,cpu_r mem_u\nmachine-3-5,181,184,disk_q\n")
    first, second = read_incidents(file)
    assert first == LabelledIncident("machine-1-2", 0, 37, ("cpu_r", "mem_u"))
    assert second.sensors == ("disk_q",)
