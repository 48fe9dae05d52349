"""Configurations of algorithms: the paper's, with its search grids, and additional ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from itertools import product
from typing import Any

from mlca.experiments.paper_tables import read_paper
from mlca.experiments.tasks import Value

MLCA_VARIANTS = ("MLCA", "MLCA-I", "MLCA-C")
VIGILANCES = (0.01, *(round(0.05 * step, 2) for step in range(1, 20)))

# The paper uses the parameters tuned on this dataset for all datasets that are too large for a search.
STANDS_FOR_LARGE = "langlog"

# The modules that contain estimator classes.
HOMES = ("mlca.classifier", "mlca.peers", "mlca.experiments.rivals")

_POWERS = tuple(10.0**power for power in range(-6, 1))
_TENTHS = tuple(round(0.1 * step, 1) for step in range(1, 10))


@dataclass(frozen=True)
class Configuration:
    """An algorithm with its parameters: one row of the comparison tables.

    Attributes
    ----------
    key, title : str
        The name on the command line and the name in tables.
    family : str
        The name of the algorithm, which several configurations may share.
    estimator : str
        The name of the estimator class.
    parameters : mapping
        The fixed parameters.
    searched : mapping of str to sequence
        For each searched parameter, the values that the paper tried on each dataset.
    columns : mapping of str to str
        For each searched parameter, its column in the paper's table of tuned parameters.
    scaled : bool
        Whether features are scaled to the range from 0 to 1.
    ranked : bool
        Whether the configuration takes part in the paper's ranking.
    """

    key: str
    title: str
    family: str
    estimator: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    searched: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    scaled: bool = False
    ranked: bool = True

    @property
    def is_mlca(self) -> bool:
        """Whether the estimator is this package's MLCA."""
        return self.estimator == "MLCA"

    def tuned(self, dataset: str) -> dict[str, Value] | None:
        """Return the parameters that the paper tuned for a dataset; None if it reports none.

        A dataset that is not in the paper gets the parameters that the paper uses for large datasets.
        """
        rows = {row["dataset"]: row for row in read_paper("tuned_parameters")}
        row = rows.get(dataset, rows[STANDS_FOR_LARGE])
        chosen = {name: row[column] for name, column in self.columns.items()}
        if not all(chosen.values()):
            return None
        return dict(self.parameters) | {name: _number(text) for name, text in chosen.items()}

    def grid(self) -> list[dict[str, Value]]:
        """Return all parameter sets that the paper tried, or the only one if nothing was tuned."""
        values = product(*self.searched.values())
        return [dict(self.parameters) | dict(zip(self.searched, choice, strict=True)) for choice in values]


def _number(text: str) -> float | int:
    return int(text) if text.isdigit() else float(text)


def mlca_configuration(variant: str, vigilance: float, vote: str = "counts") -> Configuration:
    """Return the configuration of an MLCA variant; only vote="counts" is ranked."""
    parameters: dict[str, Value] = {"published": variant, "vigilance": vigilance}
    if vote == "counts":
        key, title = f"{variant.lower()}-{vigilance:.2f}", f"{variant} V={vigilance:.2f}"
        return Configuration(key, title, variant, "MLCA", parameters)
    key, title = f"{variant.lower()}-{vote}", f"{variant} V={vigilance:.2f} {vote}"
    return Configuration(key, title, variant, "MLCA", parameters | {"vote": vote}, ranked=False)


def _peer(
    key: str,
    title: str,
    estimator: str,
    searched: Mapping[str, Sequence[Value]],
    columns: Sequence[str],
    parameters: Mapping[str, Value],
    *,
    scaled: bool = False,
) -> Configuration:
    family = title.split(" ")[0]
    named = dict(zip(searched, columns, strict=True))
    return Configuration(key, title, family, estimator, parameters, searched, named, scaled)


_MLODM = {"theta": _TENTHS, "mu": _TENTHS}
_MLODM_FIXED = {"C": 1.0, "gamma": 0.5, "max_sweeps": 4}
_GLOCAL = {"lambda3": (0.0, *_POWERS), "lambda4": (0.0, *_POWERS)}
_GLOCAL_FIXED = {"lambda1": 1.0, "lambda2": 0.125, "k": 20, "g": 3}

CONFIGURATIONS = (
    mlca_configuration("MLCA", 0.01),
    mlca_configuration("MLCA", 0.30),
    mlca_configuration("MLCA-I", 0.01),
    mlca_configuration("MLCA-I", 0.15),
    mlca_configuration("MLCA-C", 0.01),
    mlca_configuration("MLCA-C", 0.25),
    _peer(
        "mcic",
        "MCIC",
        "MCIC",
        {"theta": (0.1, 0.2, 0.3, 0.4, 0.495), "decay": tuple(round(0.05 * step, 2) for step in range(11))},
        ("mcic_theta", "mcic_lambda"),
        {"delta": 0.1, "n_clusters": 3, "maturity": 3},
    ),
    _peer(
        "muenl",
        "MuENL",
        "MuENL",
        {"lambda1": _POWERS, "lambda2": _POWERS},
        ("muenl_lambda1", "muenl_lambda2"),
        {"sweeps": 20},
    ),
    _peer(
        "mlodm-scaled",
        "mlODM scaled",
        "MLODM",
        _MLODM,
        ("mlodm_scaled_theta", "mlodm_scaled_mu"),
        _MLODM_FIXED,
        scaled=True,
    ),
    _peer("mlodm-raw", "mlODM raw", "MLODM", _MLODM, ("mlodm_raw_theta", "mlodm_raw_mu"), _MLODM_FIXED),
    _peer(
        "glocal-scaled",
        "GLOCAL scaled",
        "GLOCAL",
        _GLOCAL,
        ("glocal_scaled_lambda3", "glocal_scaled_lambda4"),
        _GLOCAL_FIXED,
        scaled=True,
    ),
    _peer("glocal-raw", "GLOCAL raw", "GLOCAL", _GLOCAL, ("glocal_raw_lambda3", "glocal_raw_lambda4"), _GLOCAL_FIXED),
    _peer(
        "mlsaknn",
        "MLSA-kNN",
        "MLSAkNN",
        {"m_max": tuple(range(200, 2001, 200)), "k_adj_max": tuple(range(20, 201, 20))},
        ("mlsaknn_m_max", "mlsaknn_k_adj_max"),
        {"m_min": 50, "penalty": 1, "reduction": 0.5},
    ),
    _peer("mlknn", "ML-kNN", "MLkNN", {"k": tuple(range(3, 31, 3))}, ("mlknn_k",), {}),
    mlca_configuration("MLCA", 0.01, "frequencies"),
)


def _by_key(key: str) -> Configuration:
    return next(one for one in CONFIGURATIONS if one.key == key)


PUBLISHED, FREQUENCIES = _by_key("mlca-0.01"), _by_key("mlca-frequencies")

# This package's default model, and a variant without linear models and mixer.
OURS = Configuration("mlca-new", "MLCA()", "MLCA()", "MLCA")
NODES_ONLY = Configuration("mlca-nodes", 'MLCA(decision="calibrated")', "halves", "MLCA", {"decision": "calibrated"})
# The default similarity with the paper's decision, and the paper's similarity with a calibrated decision.
HALVES = (
    Configuration("mlca-learned", 'MLCA(decision="bayes")', "halves", "MLCA", {"decision": "bayes"}),
    Configuration(
        "mlca-calibrated",
        'MLCA(similarity="correntropy", decision="calibrated")',
        "halves",
        "MLCA",
        {"similarity": "correntropy", "decision": "calibrated"},
    ),
)
# The default model with options for streams.
STREAMING = (
    Configuration("mlca-recency", "MLCA(recency=True)", "streaming", "MLCA", {"recency": True}),
    Configuration("mlca-follow", 'MLCA(drift="follow")', "streaming", "MLCA", {"drift": "follow"}),
    Configuration("mlca-both", "MLCA(both)", "streaming", "MLCA", {"recency": True, "drift": "follow"}),
)
BATCH_RIVALS = (
    Configuration("logistic", "logistic regression", "batch", "LogisticPerLabel"),
    Configuration("logistic-fallback", "logistic, our fallback", "batch", "LogisticPerLabel", {"fallback": True}),
    Configuration("forest", "random forest", "batch", "RandomForest"),
    Configuration("forest-fallback", "forest, our fallback", "batch", "RandomForest", {"fallback": True}),
    Configuration("boosting", "gradient boosting", "batch", "BoostingPerLabel"),
    Configuration("boosting-fallback", "boosting, our fallback", "batch", "BoostingPerLabel", {"fallback": True}),
)
LAST_LABELS = Configuration("last-labels", "labels of the row before", "control", "LastLabels")
SLIDING_WINDOW = Configuration("sliding-window", "MLCA() of the last 512 rows", "control", "SlidingWindow")
RIVER_LOGISTIC = Configuration("river-logistic", "River: logistic regression", "river", "RiverLogistic")
RIVER = (
    RIVER_LOGISTIC,
    Configuration("river-knn", "River: nearest neighbours", "river", "RiverNeighbours"),
    Configuration("river-tree", "River: Hoeffding adaptive tree", "river", "RiverAdaptiveTree"),
    Configuration("river-forest", "River: adaptive random forest", "river", "RiverAdaptiveForest"),
)
BESIDES = (OURS, NODES_ONLY, *HALVES, *STREAMING, *BATCH_RIVALS, LAST_LABELS, SLIDING_WINDOW, *RIVER)


def choose(words: Sequence[str], among: Sequence[Configuration] = CONFIGURATIONS) -> tuple[Configuration, ...]:
    """Return the configurations with the given keys or families.

    Parameters
    ----------
    words : sequence of str
        Keys or families of any existing configuration.
    among : sequence of Configuration
        The configurations to choose from (default: the paper's).

    Examples
    --------
    >>> [configuration.key for configuration in choose(["mlca-i", "mlknn", "forest"])]
    ['mlca-i-0.01', 'mlca-i-0.15', 'mlknn']
    >>> [configuration.key for configuration in choose(["mlknn", "forest"], BATCH_RIVALS)]
    ['forest']
    """
    known = {word for one in (*CONFIGURATIONS, *BESIDES) for word in (one.key, one.family.lower())}
    for word in words:
        if word.lower() not in known:
            raise ValueError(f"unknown algorithm {word!r}; choose from {', '.join(sorted(known))}")
    wanted = {word.lower() for word in words}
    return tuple(one for one in among if one.key in wanted or one.family.lower() in wanted)


def make(estimator: str, parameters: Mapping[str, Value], seed: int) -> Any:
    """Return a new estimator of the named class, seeded if it has a `random_state`.

    If `parameters` has the key ``published``, it names one of the paper's variants, which `MLCA.published` creates.
    """
    kind = next(getattr(home, estimator) for home in map(import_module, HOMES) if hasattr(home, estimator))
    seeded = {"random_state": seed} if "random_state" in signature(kind).parameters else {}
    maker = kind.published if "published" in parameters else kind
    named = {"algorithm": parameters["published"]} if "published" in parameters else {}
    rest = {name: value for name, value in parameters.items() if name != "published"}
    return maker(**named, **rest, **seeded)
