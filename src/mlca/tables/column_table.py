"""A summary table of columns: kind, values, missing values, contribution, example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlca.tables.feature_names import FeatureNames
from mlca.tables.informative import columns_of_matrix, dense_row
from mlca.tables.kinds import Boolean, Categorical, Column, Date, Ignored, Numeric, OneHot, Text, Vector, kind_in_words
from mlca.tables.layout import TableLayout

_SHOWN_WORDS = 3
_WIDEST_EXAMPLE = 40


@dataclass(frozen=True)
class ColumnSummary:
    """The summary of one column.

    Attributes
    ----------
    name, kind : str
        The column and its kind.
    values : str
        The range, categories or encoding; for an ignored column, the reason.
    missing : float
        The share of nodes without a value. A node has a value if at least one of its rows has one.
    contribution : float or None
        How much predictions for learned rows change if the values of the column are exchanged between rows.
    example : str
        The value in the first node that has one.
    """

    name: str
    kind: str
    values: str
    missing: float = 0.0
    contribution: float | None = None
    example: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the cells of this column's row in the printed table."""
        contribution = "" if self.contribution is None else f"{self.contribution:.1%}"
        return self.name, self.kind, self.values, f"{self.missing:.1%}", contribution, self.example


_HEADER = ("name", "kind", "values", "nodes without", "contributes", "example")


class ColumnTable(tuple[ColumnSummary, ...]):
    """Summaries of the columns of a model, printed as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the table as text."""
        rows = [_HEADER, *(column.cells() for column in self)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEADER))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEADER)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in column.cells()) + "</tr>" for column in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_json(self) -> list[dict[str, Any]]:
        """Return the summaries as JSON."""
        return [asdict(column) for column in self]


def column_table(
    layout: TableLayout,
    names: FeatureNames,
    nodes: Any,
    weights: NDArray[np.float64] | None,
    contributions: Mapping[str, float],
) -> ColumnTable:
    """Summarize the columns of a model.

    Parameters
    ----------
    layout, names : TableLayout, FeatureNames
        The layout, and the names of the features.
    nodes : ndarray or csr_array of shape (n_nodes, n_features)
        The nodes.
    weights : ndarray of shape (n_features,) or None
        The weight of each feature; the words with the largest weights are shown. If None, the weight of a word is its
        sum over the nodes.
    contributions : mapping of str to float
        The contribution of each column, by name.

    Returns
    -------
    ColumnTable
    """
    places = {column.name: at for column, at in zip(layout.learned, layout.places, strict=True)}
    owners = {column.name: owner for owner, column in enumerate(layout.learned)}
    summaries = []
    for column in layout.columns:
        kind = kind_in_words(column)
        if isinstance(column, Ignored):
            summaries.append(ColumnSummary(column.name, kind, column.reason))
            continue
        at = places[column.name]
        if isinstance(column, Text):  # thousands of features, nearly all of them 0
            block = sparse.csr_array(nodes[:, at])
            present, used = block.astype(bool).sum(axis=1) > 0, np.flatnonzero(block.astype(bool).sum(axis=0))
            weighing = block.sum(axis=0) if weights is None else weights[at]
            values = f"{column.width:,} features{_weightiest(names, at[used], weighing[used])}"
        else:
            block = columns_of_matrix(nodes, at)
            present, values = ~np.isnan(block).all(axis=1), _values(column, block)
        missing, share = float(np.mean(~present)), contributions.get(column.name)
        example = _shortened(names.in_words(owners[column.name], dense_row(block, int(np.argmax(present)))))
        summaries.append(ColumnSummary(column.name, kind, values, missing, share, example))
    return ColumnTable(summaries)


def _values(column: Column, block: NDArray[np.float64]) -> str:
    match column:
        case Numeric() | Date() if not np.isnan(block[:, 0]).all():
            first = block[:, 0]
            least, most = (column.in_words(np.array([end])) for end in (np.nanmin(first), np.nanmax(first)))
            return f"{least} to {most}"
        case Boolean():
            return "false, true"
        case Categorical() | OneHot():
            more = ", ..." if len(column.values) > 3 else ""
            return f"{len(column.values):,} ({', '.join(column.values[:3])}{more})"
        case Vector():
            return f"{column.width:,} numbers"
    return ""


def _weightiest(names: FeatureNames, at: NDArray[np.int64], weights: NDArray[np.float64]) -> str:
    """Return the words of the features with the largest weights, in parentheses."""
    by_weight = np.argsort(-weights, kind="stable")
    words = [names.word(int(feature)) for feature in at[by_weight[: 4 * _SHOWN_WORDS]]]
    known = list(dict.fromkeys(word for word in words if word is not None))[:_SHOWN_WORDS]
    return f" ({', '.join(known)}, ...)" if known else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST_EXAMPLE else text[: _WIDEST_EXAMPLE - 1] + "…"
