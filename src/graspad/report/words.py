"""Numbers and names as text."""

from __future__ import annotations

import html
import math

import numpy as np


def number(value: float) -> str:
    """Four digits are enough to read.

    >>> [number(value) for value in (0.00012345, 3.14159, 12345.6, math.nan)]
    ['0.000123', '3.142', '12,346', '–']
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 10_000:
        return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.3g}"
    return f"{value:.4g}" if abs(value) >= 0.001 or value == 0 else small(value, 3)


def small(value: float, digits: int = 2) -> str:
    """A p-value: written out as long as the zeros can be counted."""
    if not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits}g}")
    return np.format_float_positional(rounded, trim="-") if abs(rounded) >= 1e-6 or not rounded else f"{rounded:g}"


def percent(share: float) -> str:
    """A share of 1.

    >>> percent(0.46), percent(0.002), percent(0.0)
    ('46\\xa0%', '<1\\xa0%', '0\\xa0%')
    """
    if not math.isfinite(share):
        return "–"
    return "<1\xa0%" if 0 < share < 0.005 else f"{share:.0%}".replace("%", "\xa0%")


def count(amount: int, noun: str) -> str:
    """An amount with its noun.

    >>> count(1, "incident"), count(2000, "row")
    ('1 incident', '2,000 rows')
    """
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def shorten(name: str, length: int) -> str:
    """Long names lose their middle: tags differ most often at the end.

    >>> shorten("plant7.area2.pump.discharge.PT-103", 14)
    'plant7.…PT-103'
    """
    keep = length - 1
    return name if len(name) <= length else f"{name[: keep - keep // 2]}…{name[-(keep // 2) :]}"


def chart_text(text: str) -> str:
    """Text that plotly shows as it is: neither its tags nor its %{...} templates may wake up."""
    return html.escape(text, quote=False).replace("{", "&#123;").replace("$", "&#36;")
