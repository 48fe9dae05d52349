"""Bit-for-bit comparison of the complete state of fitted models."""

import numpy as np
from scipy import sparse

from mlca import MLCA
from mlca.learner.checking import capture
from mlca.learner.core import Learner
from mlca.learner.parameters import SCREEN_FROM, Parameters
from mlca.options import CellLimits

# With these limits, short streams have cells if `search` enables them.
FEW_NODES = CellLimits(above=15, least=6, per_root=2)


def parameters_of(options):
    """Return the parameters of a learner for a model's options."""
    vigilance, nominal = options.get("vigilance", 0.01), options.get("categorical_features", ())
    return Parameters(
        **options | {"vigilance": None if vigilance == "auto" else vigilance, "categorical_features": tuple(nominal)}
    )


def learned(options, rows, Y, screen_from=SCREEN_FROM, n_jobs=1, cell_limits=FEW_NODES):
    """Return a learner trained on rows and an indicator matrix."""
    learner = Learner(parameters_of(options), rows.shape[1], sparse.issparse(rows), screen_from, cell_limits)
    labels = sparse.csr_array(Y)
    learner.learn(rows, labels.indptr.astype(np.int64), labels.indices.astype(np.int32), Y.shape[1], n_jobs)
    return learner


def state(model):
    """Return the state of a model or learner after settling, with sparse nodes made dense."""
    learner = (model if isinstance(model, Learner) else model._learner).settled()
    held = learner.state()
    bandwidths = held["bandwidths"]
    kept = ("with", "without", "vigilance", "unlabelled")
    parts = (
        "similarity",
        "cells",
        "background",
        "decision",
        "recency",
        "drift",
        "fading",
        "reservoir",
        "linear",
        "mixer",
    )
    return {
        "weights": unfolded(held, "weights", learner.n_features),
        "counts": held["counts"],
        "label_counts": unfolded(held, "label_counts", learner.n_labels),
        "bandwidths": bandwidths[:, 0] if learner.parameters.attributes == "common" else bandwidths,
        "n": learner.n_seen,
        "centres": held["group_centres"],
        "centre_counts": held["group_counts"],
        "centre_bandwidths": held["group_bandwidths"],
        **{name: array for name, array in held.items() if name in kept or name.split(".")[0] in parts},
    }


def unfolded(held, name, n_columns):
    """Return the rows of one matrix of a learner's state as a dense array."""
    if name in held:
        return held[name]
    indptr, indices, data = (held[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns)).toarray()


def assert_same_state(first, second):
    assert_same_arrays(state(first), state(second))


def assert_exactly_same(first, second):
    """Assert that the files of two models would be equal, including waiting rows and names."""
    assert_same_arrays(capture(first._learner), capture(second._learner))
    assert (first.labels_.names, first.labels_.single) == (second.labels_.names, second.labels_.single)


def assert_threads_do_not_matter(X, Y, chosen):
    """Assert that one thread and three learn the same model and predict the same; return both."""
    one, three = (MLCA(**chosen, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 3))
    assert_exactly_same(one, three)
    np.testing.assert_array_equal(one.predict_proba(X), three.predict_proba(X))
    return one, three


def assert_same_arrays(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
