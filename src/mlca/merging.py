"""Merging of models that learned parts of a stream.

Parts may be learned anywhere: in threads, in processes, or on other machines (`mlca.dask`). This module matches labels
by name; `mlca.learner.replay` describes how nodes are merged.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mlca.classifier import MLCA
from mlca.frames import meaning_of_columns
from mlca.learner.replay import merged
from mlca.model import ROW_IDS

How = Literal["replay", "append"]


def merge(models: Iterable[MLCA], how: How = "replay") -> MLCA:
    """Merge models that learned parts of a stream into one model.

    The nodes of each model are replayed into the first as weighted prototypes, in one pass. The number of rows, the sum
    of the nodes' counts, and the count and prior of each label are exact. Nodes and calibration approximate those of
    one model that learned the parts in sequence. With `how="append"`, nodes are only appended, without a search, in
    time linear in their number.

    Parameters
    ----------
    models : iterable of MLCA
        Fitted models with the same parameters and features, in the order of their parts. They are not changed.
    how : {"replay", "append"}, default="replay"
        "replay" learns each node with the weight of all rows that it represents, so that nearby nodes of different
        parts become one.
        "append" keeps all nodes of all parts, or an even sample of `max_nodes` nodes.

    Returns
    -------
    MLCA
        A new model with the parameters of the first one and the labels of all, in order of appearance. It continues
        training where the last model ended. Row IDs are not kept.

    Raises
    ------
    ValueError
        If no model is given, if a model is listed twice, if models are incompatible, if they have more rows in total
        than can be counted exactly, or if `how` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from mlca import MLCA, merge
    >>> rng = np.random.default_rng(0)
    >>> low = MLCA(vigilance=0.1).fit(rng.normal(0, 1, (200, 2)), [{"calm"}] * 200)
    >>> high = MLCA(vigilance=0.1).fit(rng.normal(9, 1, (300, 2)), [{"storm", "alarm"}] * 300)
    >>> both = merge([low, high])
    >>> both.n_seen_, int(both.counts_.sum()), both.predict_labels([[0, 0], [9, 9]]) == [{"calm"}, {"storm", "alarm"}]
    (500, 500, True)
    """
    if how not in get_args(How):
        raise ValueError(f"how must be 'replay' or 'append'; got {how!r}")
    models = list(models)
    if not models:
        raise ValueError("merge needs at least one model")
    if len(set(map(id, models))) < len(models):
        raise ValueError("a model is listed twice; each part of the stream needs its own model")
    for number, model in enumerate(models):
        check_is_fitted(model, "labels_")
        _check_fits(model, models[0], number)
    names: dict[Hashable, int] = {}
    whole = copy.copy(models[0])
    parts = [whole, *(copy.copy(model) for model in models[1:])]
    columns = [
        np.array([names.setdefault(name, len(names)) for name in part.labels_.names], dtype=np.int32) for part in parts
    ]
    whole._learner = merged([part._learner for part in parts], columns, len(names), append=how == "append")
    whole.labels_ = replace(whole.labels_, names=tuple(names))
    if len(parts) > 1:  # merging changes the indices of nodes
        whole.__dict__.get("extras_", {}).pop(ROW_IDS, None)
    return whole


def _check_fits(model: MLCA, first: MLCA, number: int) -> None:
    """Raise ValueError unless a model can be merged into the first."""
    parameters = [replace(part._learner.parameters, seed=0) for part in (model, first)]
    vigilances = {part._learner.vigilance for part in (model, first)} - {None}
    for name, value in vars(parameters[0]).items():
        if value != (first_value := getattr(parameters[1], name)):
            raise ValueError(
                f"model {number} was trained with {name}={value!r}, the first with {name}={first_value!r}; "
                "train all models with the same parameters"
            )
    if len(vigilances) > 1:
        raise ValueError(
            f"model {number} has the vigilance {model.vigilance_:g}, the first has {first.vigilance_:g}; set the same "
            "number for all models"
        )
    if model._learner.n_features != first._learner.n_features:
        raise ValueError(
            f"model {number} has {model._learner.n_features} features, the first has {first._learner.n_features}; "
            "train all models on the same columns"
        )
    if _feature_names(model) != _feature_names(first):
        raise ValueError(
            f"model {number} has different feature names than the first, or another order of them; "
            "train all models on the same columns"
        )
    if meaning_of_columns(model) != meaning_of_columns(first):
        raise ValueError(
            f"model {number} reads its tables differently from the first: columns, categories or their order differ; "
            "fit one mlca.tables.Recipe, and train all models on rows that it transformed"
        )
    if model.labels_.single != first.labels_.single:
        raise ValueError(
            f"model {number} and the first differ in the kind of labels: one learned a 1-D y, the other label sets; "
            "train all models on the same kind of labels"
        )
    if _has_bare_columns(model) != _has_bare_columns(first) and model.labels_.names and first.labels_.names:
        raise ValueError(
            f"the labels of model {number} and of the first cannot be matched: one learned them by name, the other as "
            "columns without names; name the columns: partial_fit(X, Y, classes=names)"
        )


def _has_bare_columns(model: MLCA) -> bool:
    """Return whether the labels are unnamed columns of an indicator matrix."""
    return model.labels_.form == "indicator" and model.labels_.numbered


def _feature_names(model: MLCA) -> list[str]:
    return list(getattr(model, "feature_names_in_", []))
