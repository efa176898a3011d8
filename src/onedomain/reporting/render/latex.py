r"""Tables as LaTeX. They need \usepackage{booktabs} alone."""

from __future__ import annotations

from collections.abc import Sequence

from onedomain.reporting.table import DIFFERENCE, GROUP_MEAN, MEAN, PAPER, SECTION, Row, Table, one_line

CHARACTERS = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\to$",
    "★": r"$\star$",
    "≈": r"$\approx$",
    "–": "--",
    "…": r"\dots{}",
    "\u00a0": "~",
}
TITLES = {SECTION: r"\textit{%s}", MEAN: r"\textbf{%s}", GROUP_MEAN: r"\textit{%s}"} | dict.fromkeys(
    (PAPER, DIFFERENCE), r"\quad %s"
)


def as_latex(*tables: Table, comments: Sequence[str] = ()) -> str:
    """One float: the tables below each other, title and notes as its caption, comments above it."""
    title = tables[0].title
    notes = " ".join(note for table in tables for note in table.notes)
    return "\n".join(
        [
            # A comment ends with its line: what the texts hold cannot leave it.
            *(f"% {' '.join(comment.split())}" for comment in (title, *comments)),
            r"% needs \usepackage{booktabs}",
            r"\begin{table}[t]",
            r"\centering\small",
            rf"\caption{{{escaped(title)}. {escaped(notes)}}}",
            rf"\label{{tab:{tables[0].id}}}",
            "\n\\par\\medskip\n".join(map(_tabular, tables)),
            r"\end{table}",
            "",
        ]
    )


def _tabular(table: Table) -> str:
    body = []
    for place, row in enumerate(table.rows):
        if place and (row.kind == SECTION or row.apart):
            body.append(r"\midrule")
        body.append(_line(table, row))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}l{''.join('r' if column.number else 'l' for column in table.columns)}@{{}}}}",
            r"\toprule",
            " & ".join(map(escaped, table.headings)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _line(table: Table, row: Row) -> str:
    first, *others = map(escaped, table.texts(row))
    return " & ".join([TITLES.get(row.kind, "%s") % first, *others]) + r" \\"


def escaped(text: str) -> str:
    r"""A text as LaTeX prints it.

    >>> print(escaped("L_relax, 5% & α"))
    L\_relax, 5\% \& $\alpha$
    """
    return "".join(CHARACTERS.get(character, character) for character in one_line(text))
