"""A table as plain cells, and the same table in Markdown and LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line break it would open an argument
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "–": "--",
    "τ": r"$\tau$",
    "Δ": r"$\Delta$",
    **{symbol: rf"\{symbol}" for symbol in "&%$#_{}"},
}


@dataclass(frozen=True)
class Table:
    """Rows of text cells. The first column names the block; `words` columns are text, the rest numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    words: int = 2

    def markdown(self) -> str:
        """A GitHub table with the notes as a list below, columns aligned so that a terminal shows it well.

        >>> print(Table("Speed", ("set", "method", "s"), (("SMAP", "hbos", "0.5"),), ("One core.",)).markdown())
        ### Speed
        <BLANKLINE>
        | set  | method |   s |
        | :--- | :----- | --: |
        | SMAP | hbos   | 0.5 |
        <BLANKLINE>
        - One core.
        """
        lines = [[_markdown(cell) for cell in cells] for cells in (self.header, *self.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
        rule = [":" + "-" * (w - 1) if i < self.words else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
        lines.insert(1, rule)
        table = "\n".join(
            "| "
            + " | ".join(self._pad(cell, w, i) for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
            + " |"
            for line in lines
        )
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n\n".join(part for part in (f"### {self.title}", table, notes) if part)

    def latex(self) -> str:
        """A booktabs table no larger than the page; a rule divides the blocks, whose name stands once.

        The preamble needs the packages booktabs and adjustbox.
        """
        body, block = [], None
        for first, *rest in self.rows:
            if block not in (None, first):
                body.append(r"\midrule")
            body.append(_latex_row(["" if first == block else first, *rest]))
            block = first
        lines = [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{_latex(self.title)}}}",
            r"\begin{adjustbox}{max width=\textwidth, max totalheight=0.8\textheight}",
            rf"\begin{{tabular}}{{{'l' * self.words + 'r' * (len(self.header) - self.words)}}}",
            r"\toprule",
            _latex_row(self.header),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{adjustbox}",
            *(rf"\par\smallskip\footnotesize\raggedright {_latex(note)}" for note in self.notes),
            r"\end{table}",
        ]
        return "\n".join(lines)

    def _pad(self, cell: str, width: int, column: int) -> str:
        return cell.ljust(width) if column < self.words else cell.rjust(width)


def significant(value: float, digits: int) -> str:
    """A number with so many digits that count, written out.

    >>> significant(1234.5, 2), significant(38.42, 3), significant(0.0000123, 2)
    ('1200', '38.4', '0.000012')
    """
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def _markdown(cell: str) -> str:
    return " ".join(cell.replace("|", r"\|").split())


def _latex_row(cells: list[str] | tuple[str, ...]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    """Text in which every symbol means itself, with a true minus before numbers.

    >>> print(_latex("50% of grasp_x: -0.1 ± 0.2"))
    50\\% of grasp\\_x: $-$0.1 $\\pm$ 0.2
    """
    escaped = "".join(_LATEX.get(symbol, symbol) for symbol in text)
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", escaped)
