"""Rows as vectors, against the formula."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from graspad.bench.baselines.deep.embedding import Embedding, sinusoids


@given(rows=st.integers(1, 20), width=st.integers(1, 9))
def test_places_are_sines_and_cosines_in_turn(rows: int, width: int) -> None:
    expected = [
        [(math.cos if j % 2 else math.sin)(row / 10_000 ** (2 * (j // 2) / width)) for j in range(width)]
        for row in range(rows)
    ]
    torch.testing.assert_close(sinusoids(rows, width), torch.tensor(expected), atol=1e-5, rtol=1e-5)


def test_a_vector_is_of_a_row_and_its_neighbours_around_a_circle() -> None:
    embedding = Embedding(sensors=2, rows=7, width=4, dropout=0.0)
    windows = torch.randn(3, 2, 7)
    weights = embedding.convolution.weight
    for row in range(7):
        around = torch.stack([windows[..., (row + step) % 7] for step in (-1, 0, 1)], dim=-1)
        expected = torch.einsum("bsk,wsk->bw", around, weights) + sinusoids(7, 4)[row]
        torch.testing.assert_close(embedding(windows)[..., row], expected)
