"""Random streams for the learner's tests, with everything that could go wrong in them."""

import numpy as np
from hypothesis import strategies as st

FEW_FEATURES = st.integers(1, 6)


@st.composite
def streams(draw, max_rows=90, features=FEW_FEATURES):
    """Draw (X, Y): smooth, tied, binary or partly constant attributes; repeated rows; rows without a label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, max_rows))
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
def mixed_streams(draw, max_rows=90, features=FEW_FEATURES):
    """Draw (X, Y, nominal): streams with gaps, also rows of nothing else, and nominal attributes of few values."""
    X, Y = draw(streams(max_rows, features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nominal = np.flatnonzero(rng.random(X.shape[1]) < draw(st.sampled_from([0.0, 0.5, 1.0])))
    X[:, nominal] = rng.integers(0, draw(st.sampled_from([2, 5])), (len(X), len(nominal)))
    repeated = rng.random(len(X)) < 0.2
    X[repeated] = X[rng.integers(0, len(X), repeated.sum())]
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))] = np.nan
    return X, Y, nominal.tolist()


def parameters():
    """Parameters of the paper's algorithms."""
    return st.fixed_dictionaries(
        {
            "similarity": st.just("correntropy"),
            "decision": st.just("bayes"),
            "vigilance": st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.6]),
            "n_neighbors": st.sampled_from([2, 3, 10]),
            "window": st.sampled_from([2, 5, 20, 50]),
            "smoothing": st.sampled_from([0.5, 1.0]),
            "attributes": st.sampled_from(["common", "individual", "clustered"]),
            "rule": st.sampled_from(["published", "released", "text"]),
            "vote": st.sampled_from(["counts", "frequencies"]),
        }
    )


def all_parameters():
    """Parameters of the paper's algorithms, or of the rule beyond them."""
    beyond = st.fixed_dictionaries(
        {
            "vigilance": st.sampled_from([0.01, 0.3, "auto"]),
            "window": st.sampled_from([2, 5, 20, 50]),
            "similarity": st.sampled_from(["learned", "correntropy"]),
            "recency": st.booleans(),
            "drift": st.sampled_from(["off", "follow"]),
            "max_nodes": st.sampled_from([None, 20]),
        }
    )
    return st.one_of(parameters(), beyond)
