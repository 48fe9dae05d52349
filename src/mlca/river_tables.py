"""River rows with text, categories, dates or vectors, learned by the `TableLearner`.

A numeric feature that a row does not mention is 0, as in every River row. A feature of any other kind is then missing.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from mlca import frames
from mlca.explanation import Explanation
from mlca.learner.core import Learner
from mlca.model import LearnedModel
from mlca.tables.first_rows import TableRows
from mlca.tables.frame_cells import cells_of
from mlca.tables.kinds import Numeric
from mlca.tables.table_learner import TableLearner
from mlca.targets.text import is_missing_label

if TYPE_CHECKING:
    import pandas as pd


def holds_more_than_numbers(x: Any) -> bool:
    """Return whether a row has values that are neither numbers nor missing.

    Examples
    --------
    >>> holds_more_than_numbers({"wind": 3, "rain": None}), holds_more_than_numbers({"sky": "grey"})
    (False, True)
    """
    return isinstance(x, Mapping) and not all(map(_is_number, x.values()))


def frame_holds_more_than_numbers(X: Any) -> bool:
    """Return whether a frame has values that are neither numbers nor missing."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and len(_places_of_more(X)) > 0


def _places_of_more(X: pd.DataFrame) -> list[int]:
    kinds = X.dtypes.map(lambda kind: getattr(kind, "kind", "O"))
    places: list[int] = np.flatnonzero(~kinds.isin(list("biuf"))).tolist()
    return [place for place in places if not all(map(_is_number, X.iloc[:, place]))]


def without_unknown_words(x: Any, features: Container[Hashable]) -> Any:
    """Return a row or a frame without unknown non-numeric features.

    In a stream, each row is predicted before it is learned. So a model that has learned only numbers may have to
    predict a row with text; it ignores the text.

    Examples
    --------
    >>> without_unknown_words({"wind": 3, "sky": "grey"}, {"wind": 0})
    {'wind': 3}
    """
    if isinstance(x, Mapping):
        return {feature: value for feature, value in x.items() if feature in features or _is_number(value)}
    if not frame_holds_more_than_numbers(x):
        return x
    unknown = [place for place in _places_of_more(x) if x.columns[place] not in features]
    return x.iloc[:, np.setdiff1d(np.arange(x.shape[1]), unknown)]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.bool_) or is_missing_label(value)


class RiverTable:
    """Adapter through which a model learns and predicts River rows by column name.

    Parameters
    ----------
    model : LearnedModel
        An empty model, or one that was trained on named numeric columns or on tables.
    """

    def __init__(self, model: LearnedModel) -> None:
        self._table = TableLearner(model)

    @property
    def model(self) -> LearnedModel:
        """The adapted model."""
        return self._table.model

    @property
    def learner(self) -> Learner:
        """The learner of the adapted model."""
        return self.model._learner

    def learn(self, x: Mapping[Hashable, Any] | pd.DataFrame, y: Sequence[Any], labels: Iterable[Hashable]) -> None:
        """Learn a row or a frame; `labels` lists the known labels and those of the new rows."""
        self._table.learn(self._rows(x), y, labels)

    def encode(self, x: Mapping[Hashable, Any] | pd.DataFrame) -> Any:
        """Encode a row or a frame as the features of the learner."""
        rows = self._rows(x)
        return self._table.encode(rows.by_column, rows.n_rows)

    def explain(self, x: Mapping[Hashable, Any]) -> Explanation:
        """Explain how the labels of one row are predicted."""
        return frames.explain(self.model, self.encode(x), self._rows(x).by_column)

    def settle(self) -> None:
        """Make the kinds of columns final, as in a saved model."""
        self._table.held = None

    def _rows(self, x: Mapping[Hashable, Any] | pd.DataFrame) -> TableRows:
        if isinstance(x, Mapping):
            by_column = {str(name): [cell] for name, cell in x.items()}
            if len(by_column) < len(x):
                raise ValueError("two feature names are equal when converted to strings; rename one")
            rows = TableRows(by_column, 1)
        else:
            rows = cells_of(x)
        if not hasattr(self.model, "labels_"):
            return rows
        lacking = [column for column in self._table.layout.learned if column.name not in rows.by_column]
        filled = {column.name: [0.0 if isinstance(column, Numeric) else None] * rows.n_rows for column in lacking}
        return TableRows({**rows.by_column, **filled}, rows.n_rows, rows.nominal)
