"""The public classifier `MLCA`, which checks input, names labels and wraps the learner."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mlca.base import turn_of
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from mlca.limits import TEXT_FEATURES
from mlca.model import LearnedModel
from mlca.options import PUBLISHED, Attributes, Decision, Drift, Objective, Rule, Search, Similarity, Vote
from mlca.progress import Progress
from mlca.targets import LabelsWithIds
from mlca.validation import (
    by_name,
    check_choice,
    check_parameters,
    rejects_sample_weight,
    require_same_categories,
    require_same_parameters,
    resolve_categories,
)

if TYPE_CHECKING:
    from mlca.explanation import Explanation
    from mlca.tables.column_table import ColumnTable


class MLCA(LearnedModel):
    """Multi-label classifier that learns row by row and accepts new labels at any time.

    A row becomes a prototype node or joins the nearest one, and each node counts the labels of its rows. To predict a
    row, at least ten of the nearest nodes vote. Votes are calibrated by how often labels with the same share of the
    votes were true. From the 52nd row on, a mixer combines the result with one logistic regression per label. Labels
    with a probability above 0.5 are predicted. If there are none, the most likely label is predicted, unless "no label"
    is more likely by a learned factor. For a row unlike every node, the probabilities are the labels' frequencies.

    One pass is enough, because every row is predicted before it is learned. No node is deleted and no count decreases,
    unless `max_nodes` is set. `MLCA.published` is the algorithm of the paper: Masuyama et al., "Multi-label
    Classification via Adaptive Resonance Theory-based Clustering", IEEE TPAMI, 2023. Parameters are grouped by purpose.

    Parameters
    ----------
    vigilance : float in [0, 1) or "auto", default=0.01
        Everyday. The largest distance at which a row joins a node instead of becoming one. Small values keep nearly
        every row, which is most accurate. "auto" estimates it from the distances within the first window.
    recency : bool, default=False
        Everyday. Whether to use the labels of the last rows, weighted by how useful they prove; for streams whose order
        carries information. After 257 rows, the model also uses how often each label persists from row to row.
    drift : {"off", "follow"}, default="off"
        Everyday. "follow" handles concept drift: parts of the past that no longer hold lose their votes, and regain
        them when they hold again.
    objective : {"exact", "f1", "hamming"}, default="exact"
        Everyday. What `predict` optimises: the whole label set ("exact"); example F1, with the best threshold so far
        ("f1", which needs `decision="mixed"`); or each label separately, with a threshold of 0.5 ("hamming").
    max_nodes : int >= 2 or None, default=None
        Everyday. The largest number of nodes. At this limit, a new node replaces a random old one or is dropped.
    categorical_features : "from_dtype", None, or sequence of int, str or bool, default="from_dtype"
        Everyday. The categorical columns, by index, by name or as a mask: their values are only compared for equality.
        "from_dtype" selects the columns of a DataFrame whose dtype is categorical.
    columns : mapping of str to str, or None, default=None
        Everyday. The kinds of a frame's columns by name, instead of those inferred from the first rows: "number",
        "category", "text", "vector" or "ignore".
    text_features : int, default=16384
        Everyday. The number of features for the words of each text column.
    n_jobs : int or None, default=None
        Resources. The number of threads; None means 1, and -1 uses all cores. Results do not depend on it.
    search : {"auto", "exact", "cells"}, default="auto"
        Resources. The nodes that are searched for voters: all ("exact"), or above 16,384 nodes only the nearest groups
        of similar nodes ("cells"; "auto" currently means "cells"). Cells save time but miss some voters. They are not
        used with `similarity="correntropy"`, with `drift="follow"`, or if most values are zero.
    epochs : int >= 1, default=1
        Resources. The number of passes of `fit` over the rows. `partial_fit` always makes one.
    random_state : int, RandomState or None, default=0
        Resources. The seed of the order in which `attributes="clustered"` groups features; unused otherwise.
    verbose : bool, default=False
        Resources. Whether `fit` shows its progress on standard error: as a bar on a terminal if rich is installed,
        else as a line every ten seconds. Not saved in model files.
    similarity : {"learned", "correntropy"}, default="learned"
        Reproducing the paper. The distance that selects the voters: weighted differences of ranks ("learned"), or the
        paper's distance ("correntropy"). Whether a row becomes a node always depends on the paper's distance.
    decision : {"mixed", "calibrated", "bayes"}, default="mixed"
        Reproducing the paper. How votes become probabilities: by how often labels with that share of the votes were
        true ("calibrated"), by this frequency and linear models ("mixed"), or by the paper's bins and Bayes' rule
        ("bayes"). Without the learned similarity, "mixed" means "calibrated".
    window : int >= 2, default=50
        Reproducing the paper. The number of latest rows from which a new node's bandwidth is estimated.
    attributes : {"common", "individual", "clustered"}, default="common"
        Reproducing the paper. How features share bandwidths: one for all (MLCA), one per feature and node (MLCA-I), or
        one per group of features (MLCA-C).
    rule : {"published", "released", "text"}, default="published"
        Reproducing the paper. How nodes move: as in the code behind the paper's tables, as in the code that the
        authors released, or as in the printed equations.
    n_neighbors : int >= 2, default=10
        Reproducing the paper. The number of nodes that vote with `decision="bayes"`.
    smoothing : float > 0, default=1.0
        Reproducing the paper. Laplace smoothing of the probabilities with `decision="bayes"`.
    vote : {"counts", "frequencies"}, default="counts"
        Reproducing the paper. With `decision="bayes"`, neighbours vote with their label counts (the paper), or with
        the share of their rows that had the label (better on most data).

    Attributes
    ----------
    classes_ : ndarray
        The names of the labels, in the order of their columns.
    n_nodes_, n_seen_ : int
        The number of nodes, and the number of rows learned.
    prototypes_ : ndarray or csr_array of shape (n_nodes_, n_features)
        The positions of the nodes; CSR if the rows were sparse. `get_feature_names_out()` names all `n_features`.
    counts_, label_counts_ : ndarray of shape (n_nodes_,), csr_array of shape (n_nodes_, n_labels)
        The number of rows that each node stands for, and how many of them have each label.
    bandwidths_ : ndarray of shape (n_nodes_,) or (n_nodes_, n_features)
        The bandwidths of the nodes.
    vigilance_ : float
        The vigilance in use: as given, or as estimated by "auto".
    feature_weights_ : ndarray of shape (n_features,)
        The weight of each feature in the learned similarity.
    background_coef_ : csr_array of shape (n_labels, n_features)
        With the learned similarity: the coefficients of the background score of each label.
    nearest_distances_ : ndarray
        Unless `decision="bayes"`: a histogram of the learned rows' distances to the nearest node on arrival.
    segments_ : tuple of (int, float)
        With `drift="follow"`: the first node and the trust (0 to 1) of each run of consecutive nodes.

    Notes
    -----
    Threads may predict, explain, save and read attributes while one thread trains the model. No result reflects a
    partly learned row. After Ctrl-C or a failure, the model holds `n_seen_` rows and can continue training.

    Examples
    --------
    >>> from mlca import MLCA
    >>> model = MLCA().partial_fit([[0.0], [1.0]], [["low"], ["high"]])  # later calls may bring new labels:
    >>> model.partial_fit([[2.0]], [["high", "extreme"]]).classes_.tolist()
    ['low', 'high', 'extreme']
    """

    _allows_missing = True

    @by_name
    def __init__(
        self,
        *,
        vigilance: float | Literal["auto"] = 0.01,
        n_neighbors: int = 10,
        window: int = 50,
        smoothing: float = 1.0,
        similarity: Similarity = "learned",
        decision: Decision = "mixed",
        objective: Objective = "exact",
        recency: bool = False,
        drift: Drift = "off",
        max_nodes: int | None = None,
        search: Search = "auto",
        categorical_features: Any = "from_dtype",
        columns: Mapping[str, str] | None = None,
        text_features: int = TEXT_FEATURES,
        attributes: Attributes = "common",
        rule: Rule = "published",
        vote: Vote = "counts",
        epochs: int = 1,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.vigilance = vigilance
        self.n_neighbors = n_neighbors
        self.window = window
        self.smoothing = smoothing
        self.similarity = similarity
        self.decision = decision
        self.objective = objective
        self.recency = recency
        self.drift = drift
        self.max_nodes = max_nodes
        self.search = search
        self.categorical_features = categorical_features
        self.columns = columns
        self.text_features = text_features
        self.attributes = attributes
        self.rule = rule
        self.vote = vote
        self.epochs = epochs
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def published(cls, algorithm: str = "MLCA", **parameters: Any) -> Self:
        """Return a classifier that uses the algorithm of the paper.

        Parameters
        ----------
        algorithm : {"MLCA", "MLCA-I", "MLCA-C"}, default="MLCA"
            One bandwidth for all features, one per feature and node, or one per group of features.
        **parameters
            Other parameters, such as `vigilance`, `n_neighbors` or `n_jobs`.

        Examples
        --------
        >>> from mlca import MLCA
        >>> MLCA.published("MLCA-I", vigilance=0.15).fit([[0.0], [1.0]], [{"low"}, {"high"}]).n_nodes_
        2
        """
        check_choice("algorithm", algorithm, tuple(PUBLISHED))
        of_algorithm = {"similarity": "correntropy", "decision": "bayes", "attributes": PUBLISHED[algorithm]}
        for name in of_algorithm.keys() & parameters.keys():
            raise ValueError(f"{name} is fixed for the paper's {algorithm}; use MLCA({name}=...) to choose it")
        return cls(**of_algorithm | parameters)

    @rejects_sample_weight
    def fit(self, X: Any, y: Any, *, ids: Any = None, callback: Callable[[int, int], object] | None = None) -> Self:
        """Train a new model on rows, in the given order.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows. Shuffle them if they are sorted by label. A frame may have columns of any kind and missing values.
        y : indicator matrix, collections of label names, or 1-D array
            The labels of the rows, in one of three forms: one collection of names per row, such as
            ``[["sea", "sun"], ["sun"], []]``; a matrix or DataFrame of 0 and 1 with one column per label; or one class
            per row, such as ``["sea", "sun", "sun"]``.
        ids : sequence of str or int, optional
            Your row IDs. `explain` then lists the IDs of each node's rows, and training takes longer.
        callback : callable, optional
            Called about every 200 rows with the number of rows learned, over all epochs, and the number of nodes. It
            must not train this model. If it raises an exception, `fit` stops and the model keeps the rows learned.

        Returns
        -------
        self

        Examples
        --------
        >>> from mlca import MLCA
        >>> MLCA().fit([[0.0], [1.0]], [["low"], ["high"]]).predict_labels([[0.9]])
        [{'high'}]
        >>> model = MLCA().fit([[0.0]] * 300, [["low"]] * 300, callback=lambda rows, nodes: print(rows, "rows"))
        200 rows
        300 rows
        """
        if "_report" in self.__dict__:
            self._require_other_thread()
        y = y if ids is None else LabelsWithIds(y, ids)
        if callback is not None or self.verbose is True:
            with turn_of(self), self._reporting(X, callback):
                return self._fit(X, y)
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        if type(X) is not np.ndarray or self.columns:
            from mlca import frames

            X = frames.as_table(X)
            if frames.needs_recipe(X, self.columns) or frames.ids_of_numbers(self, X):
                with turn_of(self):
                    frames.fit(self, X, y)
                return self
        return super().fit(X, y)

    @contextmanager
    def _reporting(self, X: Any, callback: Callable[[int, int], object] | None) -> Iterator[None]:
        """Report the number of rows learned while the `with` block runs."""
        n_rows = self.epochs * (getattr(X, "shape", None) or (len(X) if hasattr(X, "__len__") else 0,))[0]
        with Progress() if self.verbose is True else nullcontext() as progress:

            def report(n_seen: int, n_nodes: int) -> None:
                if progress is not None:
                    progress.advance(n_seen - progress.rows, min(1.0, n_seen / max(n_rows, 1)), n_nodes)
                if callback is not None:
                    callback(n_seen, n_nodes)

            self.__dict__["_report"] = (threading.get_ident(), report)
            try:
                yield
            finally:
                self.__dict__.pop("_report", None)

    def _require_other_thread(self) -> None:
        """Raise RuntimeError if a callback of `fit` tries to train the model."""
        if self.__dict__.get("_report", (None,))[0] == threading.get_ident():
            raise RuntimeError("a callback of `fit` must not train the model; collect the rows and learn them later")

    @rejects_sample_weight
    def partial_fit(self, X: Any, y: Any, classes: Iterable[Hashable] | None = None, *, ids: Any = None) -> Self:
        """Continue training with more rows, in the given order.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows. Columns of a frame are matched by name; new columns and categories are supported.
        y : indicator matrix, collections of label names, or 1-D array
            The labels, in the form of the first call (see `fit`). New names, or columns on the right, are new labels.
        classes : iterable of hashable, optional
            Labels to expect, in the order of their columns. Needed only to fix that order or to name matrix columns.
        ids : sequence of str or int, optional
            Your row IDs, as in `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> from mlca import MLCA
        >>> model = MLCA().partial_fit([[0.0], [1.0]], [["low"], ["high"]])
        >>> model.partial_fit([[2.0]], [["high", "extreme"]]).classes_.tolist()
        ['low', 'high', 'extreme']
        """
        if "_report" in self.__dict__:
            self._require_other_thread()
        y = y if ids is None else LabelsWithIds(y, ids)
        if type(X) is not np.ndarray or self.columns:
            from mlca import frames

            X = frames.as_table(X)
            if frames.goes_by_recipe(self, X):
                with turn_of(self):
                    frames.partial_fit(self, X, y, classes)
                return self
            frames.warn_of_ids(self, X)
        return super().partial_fit(X, y, classes)

    def explain(self, x: Any) -> Explanation:
        """Explain the prediction of one row.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features), Series or DataFrame of one row
            The row.

        Returns
        -------
        Explanation
            The nodes that voted, and each step from their label counts to the probabilities. `print` shows it as text.

        Examples
        --------
        >>> from mlca import MLCA
        >>> why = MLCA().fit([[0.0], [0.2], [1.0]], [["low"], ["low"], ["high"]]).explain([0.1])
        >>> set(why.predicted), why.nodes.tolist(), why.counts.tolist()
        ({'low'}, [0, 1, 2], [1, 1, 1])
        """
        from mlca.frames import explain

        return explain(self._fitted(), x)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return one name per feature; a text feature is named by its most frequent word.

        Examples
        --------
        >>> from mlca import MLCA
        >>> MLCA().fit([[0.0, 1.0], [1.0, 0.0]], [{"a"}, {"b"}]).get_feature_names_out().tolist()
        ['x0', 'x1']
        """
        from mlca.frames import feature_names

        return feature_names(self._fitted()).all()

    @property
    def columns_(self) -> ColumnTable:
        """Summary of each column: kind, values, nodes without a value, contribution, example.

        The contribution of a column measures how much predictions for learned rows change if its values are exchanged
        between rows. The result prints as a table; notebooks show it as HTML.

        Examples
        --------
        >>> import pandas as pd
        >>> from mlca import MLCA
        >>> frame = pd.DataFrame({"size": [1.5, 2.5, 3.0, 2.0], "tree": ["ash", "fir", "fir", "ash"]})
        >>> MLCA().fit(frame, [{"a"}, {"b"}, {"b"}, {"a"}]).columns_
        name  kind      values        nodes without  contributes  example
        size  number    1.5 to 3      0.0%           11.5%        1.5
        tree  category  2 (ash, fir)  0.0%           88.5%        ash
        """
        from mlca.frames import summarise_columns

        return summarise_columns(self._fitted())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `mlca.load`; a failure leaves an existing file unchanged.

        The kinds of a frame's columns become final, even before 1,000 rows have been learned.

        Parameters
        ----------
        path : path-like
            The file; an existing one is replaced.

        Examples
        --------
        >>> import tempfile
        >>> MLCA().fit([[3.5], [19.0]], [["calm"], ["storm"]]).save(tempfile.mkdtemp() + "/weather.mlca")
        """
        from mlca.frames import settle
        from mlca.storage import write_model

        model = self._fitted()
        write_model(model, path)
        settle(model)  # as in the file, so that this model and a loaded one continue training identically

    def _check_parameters(self) -> None:
        check_parameters(vars(self), defaults=Parameters)

    def _check_continuation(self) -> None:
        learned = self._learner.parameters
        if not isinstance(self.categorical_features, str):
            from mlca.frames import has_recipe

            if not has_recipe(self):
                require_same_categories(learned.categorical_features, self._categories(self.n_features_in_))
        require_same_parameters(self, learned)

    def _categories(self, n_features: int) -> tuple[int, ...]:
        return resolve_categories(self.categorical_features, n_features, getattr(self, "feature_names_in_", None))

    def _begin(
        self, n_features: int, sparse_rows: bool, categories: tuple[int, ...] | None = None, seed: int | None = None
    ) -> None:
        columns = self._categories(n_features) if categories is None else categories
        parameters = replace(self._draw_parameters(seed), categorical_features=columns)
        self._learner = Learner(parameters, n_features, sparse_rows)

    def _draw_parameters(self, seed: int | None = None) -> Parameters:
        if seed is None and isinstance(self.random_state, int | np.integer):
            seed = int(self.random_state)
        elif seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        return Parameters(
            vigilance=None if self.vigilance == "auto" else float(self.vigilance),
            n_neighbors=int(self.n_neighbors),
            window=int(self.window),
            smoothing=float(self.smoothing),
            similarity=self.similarity,
            decision=self.decision,
            recency=bool(self.recency),
            drift=self.drift,
            max_nodes=None if self.max_nodes is None else int(self.max_nodes),
            search=self.search,
            attributes=self.attributes,
            rule=self.rule,
            vote=self.vote,
            seed=seed,
        )

    def _known_columns(self, X: Any) -> Any:
        from mlca import frames

        return frames.known_rows(self, X)


def load(path: str | os.PathLike[str]) -> MLCA:
    """Load a model that `MLCA.save` wrote; training can resume exactly where it ended.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    MLCA
        The model.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is damaged or inconsistent, is not a model, or was written by a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mlca import MLCA, load
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.mlca"
    >>> MLCA().fit([[0.0], [1.0]], [{"low"}, {"high"}]).save(file)
    >>> load(file).partial_fit([[2.0]], [{"higher"}]).classes_.tolist()
    ['low', 'high', 'higher']
    """
    from mlca.storage import read_model

    model = read_model(path, MLCA)
    if model._reads_tables:
        from mlca.frames import check_recipe

        check_recipe(model, path)
    return model
