"""MCIC: rows form micro-clusters that fade, and the nearest clusters predict the labels."""

from __future__ import annotations

from math import floor, log, sqrt
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mlca.base import Rows, StreamClassifier
from mlca.kernels import native
from mlca.targets import LabelRows
from mlca.validation import check_choice, check_real, check_whole

Center: TypeAlias = Literal["reference", "exact"]


class MCIC(StreamClassifier):
    r"""Multi-label classification via incremental clustering.

    Each row is added to the nearest micro-cluster, or starts a new one if that cluster would become too large. The
    weight of a cluster fades by :math:`2^{-\lambda t}` over time. Clusters with enough weight are mature, and clusters
    that have faded are removed. The score of a label is its weighted mean frequency in the nearest mature clusters, or
    in the nearest immature ones if no cluster is mature. The h labels with the highest scores are predicted. The number
    h is the rounded mean number of labels per row, updated when a Hoeffding test detects a change in this mean.

    Parameters
    ----------
    theta : float, default=0.495
        The largest allowed radius of a cluster. The radius is the largest standard deviation of the cluster's rows in
        any feature; for features between 0 and 1, it is at most 0.5.
    decay : float, default=0.25
        The rate at which clusters fade (the paper's lambda); 0 for no fading.
    delta : float, default=0.1
        The error probability of the Hoeffding test on the number of labels.
    n_clusters : int, default=3
        The number of clusters used for a prediction (the paper's K).
    maturity : float, default=2
        The weight above which a cluster is mature.
    speed : int, default=100
        The number of rows in one unit of time.
    initial_labels : int, default=5
        The initial number of predicted labels.
    center : {"reference", "exact"}, default="reference"
        "reference" follows the authors' program, which the paper's comparison used: the centre of a cluster without
        recent rows drifts towards the origin as the cluster fades. "exact" keeps the centre in place. Without fading,
        both give the same result.

    Attributes
    ----------
    n_labels_predicted_ : int
        The number h of labels predicted per row. If the model knows fewer labels, all are predicted.
    n_mature_, n_immature_ : int
        The numbers of mature and of immature clusters.
    classes_ : ndarray of shape (n_labels,)
        The names of the labels.
    n_features_in_ : int
        The number of columns of X.

    Notes
    -----
    With c clusters, d features and q labels, a row takes O(c d) time to learn, and O(c d + q log q) to predict; the
    clusters take O(c (d + q)) memory. If theta is small compared with the spread of the features (for example, raw
    features), every row forms its own cluster. With ``decay=0``, no cluster is ever removed; c is then the number of
    rows.

    `predict` treats each row as the next one of the stream, and does not change the model. Fading applies to cluster
    weights, not to label counts. A new label counts as absent in all earlier rows.

    References
    ----------
    .. [1] T. T. Nguyen, M. T. Dang, A. V. Luong, A. W.-C. Liew, T. Liang and J. McCall, "Multi-label
       classification via incremental clustering on an evolving data stream", Pattern Recognition 95,
       96-113, 2019.

    Examples
    --------
    >>> from mlca.peers import MCIC
    >>> X = [[0, 0], [0.2, 0], [0.4, 0.2], [5, 5], [0.1, 0.1]]
    >>> Y = [{"sea"}, {"sea"}, {"sea", "sun"}, {"snow"}, {"sea", "sun"}]
    >>> model = MCIC(theta=0.3, decay=0).partial_fit(X, Y)
    >>> model.n_mature_, model.n_immature_
    (1, 1)
    >>> model.predict_proba([[0.1, 0.1]])
    array([[1. , 0.5, 0. ]])
    >>> model.predict_labels([[0.1, 0.1]])
    [{'sea'}]
    """

    _accepts_sparse = False

    def __init__(
        self,
        theta: float = 0.495,
        decay: float = 0.25,
        delta: float = 0.1,
        n_clusters: int = 3,
        maturity: float = 2,
        speed: int = 100,
        initial_labels: int = 5,
        center: Center = "reference",
    ) -> None:
        self.theta = theta
        self.decay = decay
        self.delta = delta
        self.n_clusters = n_clusters
        self.maturity = maturity
        self.speed = speed
        self.initial_labels = initial_labels
        self.center = center

    @property
    def n_labels_predicted_(self) -> int:
        """The number of labels predicted per row; if the model knows fewer, all are predicted."""
        return self._cardinality.estimate

    @property
    def n_mature_(self) -> int:
        """The number of mature clusters, which are used for predictions."""
        return len(self._mature)

    @property
    def n_immature_(self) -> int:
        """The number of immature clusters, used for predictions only if no cluster is mature."""
        return len(self._immature)

    def _check_parameters(self) -> None:
        check_real("theta", self.theta, at_least=0)
        check_real("decay", self.decay, at_least=0)
        check_real("delta", self.delta, above=0, below=1)
        check_whole("n_clusters", self.n_clusters, at_least=1)
        check_real("maturity", self.maturity, above=1)
        check_whole("speed", self.speed, at_least=1)
        check_whole("initial_labels", self.initial_labels, at_least=0)
        check_choice("center", self.center, get_args(Center))

    def _begin(self, n_features: int, sparse_rows: bool) -> None:
        self._n_seen = 0
        self._clusters = _Clusters(n_features)
        self._mature: list[int] = []
        self._immature: list[int] = []
        self._cardinality = _Cardinality(self.initial_labels)

    def _learn(self, rows: Rows, targets: LabelRows) -> None:
        self._clusters.widen(targets.n_labels)
        for i in range(targets.n_rows):
            labels = targets.indices[targets.indptr[i] : targets.indptr[i + 1]]
            time = self._time_of_next_row()
            self._n_seen += 1
            self._cardinality.update(labels.tolist(), self.delta)
            self._merge(rows[i], labels, time)
            self._clean_up(time)

    def _time_of_next_row(self) -> int:
        return (self._n_seen + 1) // self.speed

    def _probabilities(self, rows: Rows) -> NDArray[np.float64]:
        clusters, time = self._clusters, self._time_of_next_row()
        candidates = np.array(self._mature or self._immature, dtype=np.int64)
        scores = np.zeros((rows.shape[0], clusters.label_counts.shape[1]))
        for i, x in enumerate(rows):
            nearest = candidates[np.argsort(self._distances(x, candidates, time), kind="stable")]
            nearest = nearest[: self.n_clusters]
            weights = self._weights(nearest, time)[:, None]
            if weights.sum() > 0:  # otherwise all weights have faded to 0
                frequencies = clusters.label_counts[nearest] / clusters.n_rows[nearest, None]
                # Rounding may raise a mean frequency slightly above 1.
                scores[i] = np.minimum((weights * frequencies).sum(axis=0) / weights.sum(), 1.0)
        return scores

    def _decide(self, probabilities: NDArray[np.float64], rows: Rows) -> NDArray[np.bool_]:
        """Choose the h labels with the highest scores; ties go to the first label."""
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.n_labels_predicted_]
        chosen = np.zeros(probabilities.shape, dtype=bool)
        np.put_along_axis(chosen, best, True, axis=1)
        return chosen

    def _fading(self, clusters: NDArray[np.int64] | int, time: int) -> Any:
        """Return the factor by which clusters have faded between their last change and `time`."""
        return np.exp2(-self.decay * (time - self._clusters.edited[clusters]))

    def _weights(self, clusters: NDArray[np.int64], time: int) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self._fading(clusters, time) * self._clusters.weights[clusters]
        return weights

    def _distances(self, x: NDArray[np.float64], clusters: NDArray[np.int64], time: int) -> NDArray[np.float64]:
        """Return the distance of x to the centre of each cluster."""
        drift = self._fading(clusters, time) if self.center == "reference" else np.ones(len(clusters))
        return native.distances_to_centers(x, clusters, drift, self._clusters.sums, self._clusters.weights)

    def _merge(self, x: NDArray[np.float64], labels: NDArray[np.int32], time: int) -> None:
        """Add a row to the nearest mature cluster, else to an immature one, else to a new one."""
        for group in (self._mature, self._immature):
            cluster = self._cluster_to_join(x, group, time)
            if cluster is not None:
                self._clusters.insert(cluster, x, labels, time, self._fading(cluster, time))
                if group is self._immature and self._clusters.weights[cluster] > self.maturity:
                    self._immature.remove(cluster)
                    self._mature.append(cluster)
                return
        self._immature.append(self._clusters.start(x, labels, time))

    def _cluster_to_join(self, x: NDArray[np.float64], group: list[int], time: int) -> int | None:
        """Return the cluster with the border nearest to x; None if x would make it too large."""
        if not group:
            return None
        members = np.array(group, dtype=np.int64)
        to_border = self._distances(x, members, time) - self._clusters.radii[members]
        nearest = group[int(np.argmin(to_border))]
        grown = self._clusters.radius_with(nearest, x, self._fading(nearest, time))
        return nearest if grown <= self.theta else None

    def _clean_up(self, time: int) -> None:
        """Remove mature clusters with too little weight, and immature ones that grow too slowly."""
        if self.decay == 0:
            return
        period = self._period()
        if time % period != 0:
            return
        mature = np.array(self._mature, dtype=np.int64)
        self._mature = self._keep(mature, self._weights(mature, time) >= self.maturity)
        immature = np.array(self._immature, dtype=np.int64)
        age = time - self._clusters.created[immature]
        # The weight of a cluster that gains one row per period: 1 when it is new, more later.
        expected = (np.exp2(-self.decay * (age + period)) - 1) / (np.exp2(-self.decay * period) - 1)
        self._immature = self._keep(immature, self._weights(immature, time) >= expected)

    def _period(self) -> int:
        """Return the time between clean-ups, as in the authors' program (not DenStream's formula)."""
        return floor(log(self.maturity / (self.maturity - 1)) / self.decay + 0.5) + 1

    def _keep(self, clusters: NDArray[np.int64], kept: NDArray[np.bool_]) -> list[int]:
        self._clusters.free(clusters[~kept].tolist())
        left: list[int] = clusters[kept].tolist()
        return left


class _Cardinality:
    """The mean number of labels per row since the last significant change."""

    def __init__(self, estimate: int) -> None:
        self.estimate = estimate
        self._forget()

    def _forget(self) -> None:
        self.n_rows = 0
        self.n_labels = 0
        self.labels_seen: set[int] = set()

    def update(self, labels: list[int], delta: float) -> None:
        """Count a row; if the mean has changed significantly, update the estimate and restart."""
        self.n_rows += 1
        self.n_labels += len(labels)
        self.labels_seen.update(labels)
        if not self.labels_seen:
            return
        mean = self.n_labels / self.n_rows
        error = sqrt(log(1 / delta) / (2 * self.n_rows))
        if abs(mean - self.estimate) / len(self.labels_seen) > error:
            self.estimate = floor(mean + 0.5)
            self._forget()


class _Clusters:
    """Storage for micro-clusters, one array per quantity; removed clusters are overwritten."""

    def __init__(self, n_features: int) -> None:
        self.sums = np.zeros((0, n_features))
        self.squares = np.zeros((0, n_features))
        self.label_counts = np.zeros((0, 0), dtype=np.int64)
        self.n_rows = np.zeros(0, dtype=np.int64)
        self.weights = np.zeros(0)
        self.radii = np.zeros(0)
        self.created = np.zeros(0, dtype=np.int64)
        self.edited = np.zeros(0, dtype=np.int64)
        self.unused: list[int] = []

    def widen(self, n_labels: int) -> None:
        """Add a column of zero counts for each new label."""
        n_new = n_labels - self.label_counts.shape[1]
        if n_new > 0:
            self.label_counts = np.pad(self.label_counts, ((0, 0), (0, n_new)))

    def start(self, x: NDArray[np.float64], labels: NDArray[np.int32], time: int) -> int:
        """Create a cluster of one row and return its index."""
        if not self.unused:
            self._double()
        cluster = self.unused.pop()
        for quantity in (self.sums, self.squares, self.label_counts, self.n_rows, self.weights):
            quantity[cluster] = 0
        self.created[cluster] = time
        self.insert(cluster, x, labels, time, fading=1.0)
        return cluster

    def insert(self, cluster: int, x: NDArray[np.float64], labels: NDArray[np.int32], time: int, fading: float) -> None:
        """Add a row to a cluster."""
        self.radii[cluster] = self.radius_with(cluster, x, fading)
        self.sums[cluster] = fading * self.sums[cluster] + x
        self.squares[cluster] = fading * self.squares[cluster] + x * x
        self.weights[cluster] = fading * self.weights[cluster] + 1
        self.edited[cluster] = time
        self.n_rows[cluster] += 1
        self.label_counts[cluster, labels] += 1

    def radius_with(self, cluster: int, x: NDArray[np.float64], fading: float) -> float:
        """Return the radius that a cluster would have with one more row."""
        return native.radius_with(x, fading, self.sums[cluster], self.squares[cluster], self.weights[cluster])

    def free(self, clusters: list[int]) -> None:
        """Release the storage of clusters."""
        self.unused.extend(clusters)

    def _double(self) -> None:
        n_before = len(self.weights)
        n_new = max(16, n_before)
        for name, quantity in list(vars(self).items()):
            if isinstance(quantity, np.ndarray):
                padding = [(0, n_new)] + [(0, 0)] * (quantity.ndim - 1)
                setattr(self, name, np.pad(quantity, padding))
        self.unused.extend(range(n_before + n_new - 1, n_before - 1, -1))
