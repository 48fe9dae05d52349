"""Random streams of rows and labels for the learner's tests."""

import numpy as np
from hypothesis import strategies as st

FEW_FEATURES = st.integers(1, 6)
ROW_KINDS = ("real", "grid", "mostly zero", "binary", "sparse binary", "wide")


@st.composite
def streams(draw, max_rows=90, features=FEW_FEATURES, min_rows=1):
    """Draw (X, Y): smooth, tied, binary or partly constant features; repeated rows; rows without a label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(min_rows, max_rows))
    d = draw(features)
    q = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["smooth", "grid", "binary", "mixed", "wide"]))
    X = rng.normal(0, 1, (n, d))
    if kind == "grid":
        X = np.round(2 * X) / 2
    elif kind == "binary":
        X = (X > 0.5).astype(float)
    elif kind == "mixed":
        X *= 10.0 ** rng.integers(-3, 4, d)
        X[:, rng.random(d) < 0.3] = 1.5
        X[rng.random(X.shape) < 0.4] = 0.0
    elif kind == "wide":
        X = X * 1e-2 + 1e3
    repeated = rng.random(n) < draw(st.sampled_from([0.0, 0.3]))
    X[repeated] = X[rng.integers(0, n, repeated.sum())]
    Y = (rng.random((n, q)) < draw(st.sampled_from([0.0, 0.2, 0.6]))).astype(int)
    return X, Y


@st.composite
def mixed_streams(draw, max_rows=90, features=FEW_FEATURES, min_rows=1):
    """Draw (X, Y, nominal) with missing values, empty rows, and few values per nominal feature."""
    X, Y = draw(streams(max_rows, features, min_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nominal = np.flatnonzero(rng.random(X.shape[1]) < draw(st.sampled_from([0.0, 0.5, 1.0])))
    X[:, nominal] = rng.integers(0, draw(st.sampled_from([2, 5])), (len(X), len(nominal)))
    repeated = rng.random(len(X)) < 0.2
    X[repeated] = X[rng.integers(0, len(X), repeated.sum())]
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))] = np.nan
    return X, Y, nominal.tolist()


def rows_of_kind(kind, n, d, rng):
    """Return rows of one kind; different code ranks, weights and searches each kind."""
    X = rng.normal(0, 1, (n, d))
    if kind == "grid":
        X = np.round(2 * X) / 2
    elif kind == "mostly zero":
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == "binary":
        X = (X > -0.3).astype(float)
    elif kind == "sparse binary":
        X = (X > 0.9).astype(float)
    elif kind == "wide":
        X = X * 10.0 ** rng.integers(-3, 4, d) + 10.0 * (rng.random(d) < 0.3)
    return X


def late_label_stream(kind, n, d, q, seed, repeated=0.2, density=0.3):
    """Return (X, Y) with repeated rows, rows without labels, and labels that appear late."""
    rng = np.random.default_rng(seed)
    X = rows_of_kind(kind, n, d, rng)
    again = rng.random(n) < repeated
    X[again] = X[rng.integers(0, n, again.sum())]
    meaning = rng.normal(0, 1, (d, q))
    Y = ((X - X.mean(axis=0)) @ meaning > np.quantile((X - X.mean(axis=0)) @ meaning, 1 - density)).astype(int)
    noise = rng.random(Y.shape) < 0.1
    Y[noise] = 1 - Y[noise]
    for label in range(1, q):
        Y[: label * n // (2 * q), label] = 0
    return X, Y


@st.composite
def late_label_streams(draw, max_rows=110, features=FEW_FEATURES, min_rows=1):
    """Draw (X, Y) with late labels, with rows of any kind."""
    n, d, q = draw(st.integers(min_rows, max_rows)), draw(features), draw(st.integers(1, 4))
    repeated, density = draw(st.sampled_from([0.0, 0.4])), draw(st.sampled_from([0.0, 0.1, 0.4]))
    return late_label_stream(
        draw(st.sampled_from(ROW_KINDS)), n, d, q, draw(st.integers(0, 2**32 - 1)), repeated, density
    )
