"""The reference implementation, trained on a table whose columns may appear at any time."""

import numpy as np
from scipy import sparse

from mlca import MLCA, reference
from mlca.serve.table_cells import cells_of_rows
from mlca.tables import TableLearner


class RecordingLearner(TableLearner):
    """A table learner that records the learned rows, in parts with one layout each."""

    def __init__(self, model):
        super().__init__(model, "missing")
        self.parts = []

    def _carry_out(self, plan, cells, labels, targets):
        if plan.begun is not None:  # all rows so far are learned again
            self.parts = [plan.begun]
        super()._carry_out(plan, cells, labels, targets)

    def learn_part(self, X, layout, labels, targets, cells=None):
        self.parts.append((layout, X))
        super().learn_part(X, layout, labels, targets, cells)


def reference_of_rows(rows, labels, options, text_features):
    """Return the reference trained on rows of a table, and a function that encodes rows."""
    table = RecordingLearner(MLCA(**options, text_features=text_features))
    table.learn(cells_of_rows([dict(sorted(row.items())) for row in rows]), labels)
    plain, low = None, 0
    for layout, X in table.parts:
        X = X.toarray() if sparse.issparse(X) else X
        if plain is None:
            plain = reference.MLCA(**options, categorical_features=layout.nominal)
        else:
            widen(plain, layout)
        plain.partial_fit(X, labels[low : low + len(X)])
        low += len(X)

    def encode(rows):
        X = table.encode(cells_of_rows(rows).by_column, len(rows))
        return X.toarray() if sparse.issparse(X) else X

    return plain, encode


def widen(plain, layout):
    """Add the new features of a layout, which are missing or 0 in all earlier rows.

    Until the similarity is recomputed, new features have almost no weight.
    """
    before = len((plain.recent_ or [x for x, _ in plain.waiting_])[0])
    values = np.zeros(layout.n_features - before)
    values[[place - before for place in layout.gaps if place >= before]] = np.nan
    if not len(values):
        return
    plain.categorical_features = plain.nominal_ = list(layout.nominal)
    if plain.waiting_ is not None:
        plain.waiting_ = [(np.concatenate([x, values]), own) for x, own in plain.waiting_]
        return
    plain.recent_ = [np.concatenate([x, values]) for x in plain.recent_]
    plain.memory_.nominal = plain.nominal_
    for node in plain.memory_.nodes:
        node.y = np.concatenate([node.y, values])
    similarity = plain.similarity_
    similarity.nominal = np.isin(np.arange(layout.n_features), plain.nominal_)
    similarity.weights = np.concatenate([similarity.weights, np.ones(len(values), np.int64)])
    if len(similarity.middles):
        similarity.middles = np.concatenate([similarity.middles, np.full(len(values), similarity.one // 2)])
    ranks = similarity.ranks
    if ranks.knots is not None:
        ranks.knots = np.pad(ranks.knots, ((0, 0), (0, len(values))))
    ranks.zero = ranks.from_lowest(np.zeros(layout.n_features))
