"""MLCA for users: checks parameters, names labels, hands rows to the learner."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from mlca.base import Rows, turn_of
from mlca.categories import require_same_categories, resolve_categories
from mlca.learner.core import Learner
from mlca.learner.parameters import Parameters
from mlca.model import LearnedModel
from mlca.options import PUBLISHED, Attributes, Decision, Drift, Rule, Similarity, Vote
from mlca.parameter_checks import check_parameters, require_same_parameters
from mlca.targets import LabelRows
from mlca.validation import check_choice, refuse_arguments

if TYPE_CHECKING:
    from mlca.explanation import Explanation


class MLCA(LearnedModel):
    """Multi-label classifier that learns row by row, takes new labels at any time and never forgets.

    Rows become prototype nodes, or move the node that they resemble; each node counts the labels of its
    rows. The nodes nearest to a new row vote, under a similarity that is learned from the nodes and their labels, and
    what came of such votes before makes them probabilities. `MLCA.published` is the algorithm of the paper.

    Parameters
    ----------
    vigilance : float in [0, 1) or "auto", default=0.01
        How far a row may be from the nearest node before it becomes a node of its own. Small values keep nearly
        every row (accurate); 0.3 (MLCA), 0.15 (MLCA-I) or 0.25 (MLCA-C) compress. "auto" asks the first window how
        close rows lie.
    n_neighbors : int >= 2, default=10
        The number of nodes that vote, with `decision="bayes"`.
    window : int >= 2, default=50
        The number of latest rows that a new node's bandwidth is estimated from.
    smoothing : float > 0, default=1.0
        Laplace smoothing of all probabilities, with `decision="bayes"`.
    similarity : {"learned", "correntropy"}, default="learned"
        What makes voters near: differences of ranks, weighted by how well an attribute tells some label; or
        the paper's measure, by which nodes are made in any case.
    decision : {"calibrated", "bayes"}, default="calibrated"
        How votes become probabilities: by how often such shares of the votes came true, with "no label" among the
        candidates; or by the paper's bins and Bayes' rule.
    recency : bool, default=False
        Whether the labels of the last rows may speak for those of the next, as far as that has proved right. For
        streams whose order means something.
    drift : {"off", "follow"}, default="off"
        Whether parts of the past that no longer hold lose their votes, and get them back when they hold again.
    categorical_features : "from_dtype", None, or sequence of int, str or bool, default="from_dtype"
        The columns that are categories, by number, by name or as a mask: values are equal or not, whatever number
        stands for them. "from_dtype" takes those of a data frame that are.
    max_nodes : int or None, default=None
        The most nodes to keep. When there are so many, a new one replaces one that is drawn by the row's number.
    attributes : {"common", "individual", "clustered"}, default="common"
        One bandwidth for all attributes (MLCA), each node its own (MLCA-I, best on numeric data), or one
        a group of attributes (MLCA-C).
    rule : {"published", "released", "text"}, default="published"
        How nodes move: as in the code behind the paper's tables, as in the code that the authors released, or
        as the paper's equations are printed.
    vote : {"counts", "frequencies"}, default="counts"
        With `decision="bayes"`: whether neighbours vote with their label counts (the paper) or with the share of their
        rows that had the label (better on most data, above all where nodes win often).
    epochs : int >= 1, default=1
        How often `fit` goes through the rows. `partial_fit` always goes through once.
    n_jobs : int or None, default=None
        The number of threads; None is 1, -1 is one a core. It never changes a result.
    random_state : int, RandomState or None, default=0
        Used by `attributes="clustered"` only: the order in which attributes are grouped.

    Attributes
    ----------
    classes_ : ndarray
        The names of the labels, in the order of their columns.
    n_nodes_, n_seen_ : int
        The number of nodes, and of rows learned.
    weights_ : ndarray or csr_array of shape (n_nodes_, n_features_in_)
        The nodes; CSR where the rows were sparse.
    counts_ : ndarray of shape (n_nodes_,)
        The number of rows that each node stands for.
    label_counts_ : csr_array of shape (n_nodes_, n_labels)
        How many of them had each label.
    bandwidths_ : ndarray of shape (n_nodes_,) or (n_nodes_, n_features_in_)
        The bandwidths of the nodes.
    vigilance_ : float
        The vigilance as it was given, or found.
    attribute_weights_ : ndarray of shape (n_features_in_,)
        How much each attribute weighs in the learned similarity.
    background_ : csr_array of shape (n_labels, n_features_in_)
        Under the learned similarity: what speaks for each label and against it.
    nearest_distances_ : ndarray
        With `decision="calibrated"`: how many rows were how far from the nearest node before they were learned.
    segments_ : tuple of (int, float)
        With `drift="follow"`: the node that each segment of the past begins with, and how far it is trusted.

    Notes
    -----
    Any number of threads may predict, explain, save and read attributes while one learns: each answer is that of the
    model after some whole row. Threads that learn take turns. Ctrl-C or a failure while learning leaves the model of
    the rows that `n_seen_` counts, which goes on as if nothing had happened. One exception: while a large model (above
    200,000 numbers) computes its similarity anew, those who ask meanwhile are answered by the one before, rather than
    kept waiting.

    References
    ----------
    N. Masuyama, Y. Nojima, C. K. Loo, H. Ishibuchi, "Multi-label Classification via Adaptive Resonance
    Theory-based Clustering", IEEE TPAMI 45(7), 2023.

    Examples
    --------
    A label that appears late needs no preparation:

    >>> import numpy as np
    >>> from mlca import MLCA
    >>> rng = np.random.default_rng(0)
    >>> model = MLCA(vigilance=0.1)
    >>> model.partial_fit(rng.normal(0, 1, (200, 2)), [{"calm"}] * 200).classes_.tolist()
    ['calm']
    >>> model.partial_fit(rng.normal(9, 1, (200, 2)), [{"storm", "alarm"}] * 200).predict_labels([[0, 0]])
    [{'calm'}]
    >>> sorted(model.predict_labels([[9, 9]])[0])
    ['alarm', 'storm']
    """

    _allows_gaps = True

    def __init__(
        self,
        *,
        vigilance: float | Literal["auto"] = 0.01,
        n_neighbors: int = 10,
        window: int = 50,
        smoothing: float = 1.0,
        similarity: Similarity = "learned",
        decision: Decision = "calibrated",
        recency: bool = False,
        drift: Drift = "off",
        max_nodes: int | None = None,
        categorical_features: Any = "from_dtype",
        attributes: Attributes = "common",
        rule: Rule = "published",
        vote: Vote = "counts",
        epochs: int = 1,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.vigilance = vigilance
        self.n_neighbors = n_neighbors
        self.window = window
        self.smoothing = smoothing
        self.similarity = similarity
        self.decision = decision
        self.recency = recency
        self.drift = drift
        self.max_nodes = max_nodes
        self.categorical_features = categorical_features
        self.attributes = attributes
        self.rule = rule
        self.vote = vote
        self.epochs = epochs
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def published(cls, algorithm: str = "MLCA", **parameters: Any) -> Self:
        """Return the algorithm of the paper.

        Parameters
        ----------
        algorithm : {"MLCA", "MLCA-I", "MLCA-C"}, default="MLCA"
            With one bandwidth for all attributes, one for each attribute of each node, or one a group of attributes.
        **parameters
            Other parameters than those that make it the paper's: `vigilance`, `n_neighbors`, `n_jobs`, ...

        Returns
        -------
        MLCA

        Examples
        --------
        >>> from mlca import MLCA
        >>> MLCA.published("MLCA-I", vigilance=0.15).fit([[0.0], [1.0]], [{"low"}, {"high"}]).n_nodes_
        2
        """
        check_choice("algorithm", algorithm, tuple(PUBLISHED))
        of_algorithm = {"similarity": "correntropy", "decision": "bayes", "attributes": PUBLISHED[algorithm]}
        for name in of_algorithm.keys() & parameters.keys():
            raise ValueError(f"{name} is part of what makes {algorithm} the paper's; call MLCA(...) to choose it")
        return cls(**of_algorithm | parameters)

    def fit(self, X: Any, y: Any, **unsupported: Any) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            The rows to learn, in order. A frame may have columns of any kind, and gaps: see `mlca.tables.Recipe`.
        y : indicator matrix, iterables of label names, or 1-D array
            Their labels.

        Returns
        -------
        self
        """
        refuse_arguments(unsupported)
        if type(X) is not np.ndarray:
            from mlca import frames

            X = frames.as_table(X)
            if frames.needs_recipe(X):
                with turn_of(self):
                    frames.fit(self, X, y)
                return self
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Iterable[Hashable] | None = None, **unsupported: Any) -> Self:
        """Go on learning.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            More rows, in order. The columns of a frame are matched by name; new ones, and new categories, are welcome.
        y : indicator matrix, iterables of label names, or 1-D array
            Their labels. A wider indicator matrix than before, or a new name, brings a new label.
        classes : iterable of hashable, optional
            Labels that may come. Never needed: labels are welcome whenever they turn up.

        Returns
        -------
        self
        """
        refuse_arguments(unsupported)
        if type(X) is not np.ndarray:
            from mlca import frames

            X = frames.as_table(X)
            if frames.goes_by_recipe(self, X):
                with turn_of(self):
                    frames.partial_fit(self, X, y, classes)
                return self
        return super().partial_fit(X, y, classes)

    def explain(self, x: Any) -> Explanation:
        """Tell how the labels of one row are predicted.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features), Series or DataFrame of one row
            The row.

        Returns
        -------
        Explanation
            The nodes that voted and every number on the way from their label counts to the posterior.
        """
        from mlca import frames
        from mlca.explanation import Explanation

        model = self._frozen()
        model._check_fitted()
        rows = model._read_known_rows(frames.row_of(model, x))
        if rows.shape[0] != 1:
            raise ValueError(f"explain takes one row, not {rows.shape[0]}; call it once for each")
        row = np.asarray(rows.todense() if hasattr(rows, "todense") else rows).ravel()
        attributes = frames.names_of_attributes(model)
        learner = model._settled_learner()
        numbers = learner.explain(row)
        voters, ordinary = numbers["voters"], numbers["ordinary"]
        # Names are asked for last: another thread may have learned new ones meanwhile.
        explanation = Explanation.of(learner, numbers, model._labels.names, attributes)
        return frames.with_values(model, explanation, row, voters, ordinary)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that `mlca.load` reads; the file is there whole or not at all.

        It also settles what the columns of frames are, if fewer rows have come than that usually takes.

        Parameters
        ----------
        path : path-like
            Where to; an existing file is replaced.
        """
        from mlca.frames import settle
        from mlca.storage import write_model

        model = self._frozen()
        model._check_fitted()
        write_model(model, path)
        settle(model)  # files hold no tables, and what was saved goes on as this does

    def _check_parameters(self) -> None:
        check_parameters(vars(self))

    def _check_continuation(self) -> None:
        learned = self._learner.asked_for
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
        told = self._categories(n_features) if categories is None else categories
        parameters = replace(self._draw_parameters(seed), categorical_features=told)
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
            attributes=self.attributes,
            rule=self.rule,
            vote=self.vote,
            seed=seed,
        )

    def _read_known_rows(self, X: Any, targets: LabelRows | None = None) -> Rows:
        if type(X) is not np.ndarray:
            from mlca.frames import rows_of

            self._check_fitted()
            X = rows_of(self, X)
        return super()._read_known_rows(X, targets)


def load(path: str | os.PathLike[str]) -> MLCA:
    """Read a model that `MLCA.save` wrote; it goes on learning as the original would have.

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
        If there is no such file.
    ValueError
        If the file is damaged, is not a model, was written by a newer version, or contradicts itself.

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

    return read_model(path, MLCA)
