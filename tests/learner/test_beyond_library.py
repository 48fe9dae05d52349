"""The compiled similarity and decision equal the plain ones bit for bit: dense and sparse, labels come late."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.learner.beyond import Beyond, Ruler
from tests.learner.beyond_library import Beside, Compiled, compile_library
from tests.learner.drift import Drift
from tests.learner.elementary import ln, shifted
from tests.learner.learned import Similarity
from tests.learner.reference import power_of_half
from tests.learner.streams import streams
from tests.learner.test_beyond import CHOSEN, DistinctRows


class BesideBeyond(Beside, Beyond):
    pass


class BesideDrift(Beside, Drift):
    pass


class BesideDistinct(Beside, DistinctRows, Beyond):
    pass


class BesideDistinctDrift(Beside, DistinctRows, Drift):
    pass


@pytest.fixture(scope="module", params=["x86-64-v3", pytest.param("x86-64", marks=pytest.mark.slow)])
def library(request, tmp_path_factory):
    library = compile_library(tmp_path_factory.mktemp("library"), request.param)
    if library is None:
        pytest.skip("no C++ compiler")
    return library


def run(model, X, Y, queries=3):
    model.fit(X, Y)
    for x in np.concatenate(
        [X[:queries], X[:queries] + 0.25, np.zeros((1, X.shape[1])), np.full((1, X.shape[1]), 1e300)]
    ):
        model.probabilities(x)


@given(st.floats(1e-18, 1e18), st.floats(-800, 800))
@settings(max_examples=300, deadline=None)
def test_elementary_functions(library, x, z):
    assert library.ln_of(x) == ln(x) == pytest.approx(math.log(x), rel=1e-15, abs=1e-15)
    assert library.power_of_half_of(x) == power_of_half(x)
    exact = 1 / (1 + 4 * math.exp(-max(min(z, 700), -700)))
    assert library.shifted_of(0.25, z) == shifted(0.25, z) == pytest.approx(exact, abs=1e-15)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    streams(),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from(["learned", "correntropy"]),
    st.sampled_from(["common", "individual", "clustered"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_random_streams(library, stream, vigilance, similarity, attributes, is_sparse, recency, drift):
    X, Y = stream
    chosen = CHOSEN | {"vigilance": vigilance, "similarity": similarity, "attributes": attributes, "recency": recency}
    model = (BesideDrift if drift else BesideBeyond)(**chosen)
    run(model.attach(library, X.shape[1], is_sparse, drift), X, Y)


def wide_stream(seed, n, d, q, kind):
    """Return rows of mostly zeros, more attributes than the background takes; labels come one after the other."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.choice([0.02, 0.1, 0.3], d)).astype(float)
    if kind == "real":
        X *= np.round(rng.normal(1, 1, (n, d)), 1)
    if kind == "huge":
        X *= 10.0 ** rng.uniform(-300, 300, (n, d)) * rng.choice([-1.0, 1.0], (n, d))
    if kind == "shifted":
        X += 1990.0
    Y = (X[:, :q] != X[0, 0]) & (np.arange(n)[:, None] >= np.linspace(0, n // 2, q)[None])
    return X, Y.astype(int)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", ["binary", "real", "huge", "shifted"])
def test_more_attributes_than_the_background_takes(library, kind, is_sparse):
    X, Y = wide_stream(1, 64, 90, 5, kind)
    model = BesideDistinct(recency=kind == "real", **CHOSEN).attach(library, X.shape[1], is_sparse)
    run(model, X, Y, queries=1)
    assert model.learned.background
    assert any(len(background.coefficients) >= 32 for background in model.learned.background.values())


@pytest.mark.slow
def test_more_segments_than_are_kept(library):
    rng = np.random.default_rng(0)
    X = rng.random((1400, 1))
    Y = np.stack([X[:, 0] > 0.5, X[:, 0] < 0.3], axis=1) ^ (np.arange(1400) % 500 > 250)[:, None]
    model = BesideDistinctDrift(**CHOSEN).attach(library, 1, False, True)
    run(model, X, Y.astype(int))
    assert len(model.segments) == 16
    assert model.compiled.array("trust", np.float64) == [trust for _, _, trust in model.segments]


def nodes_of(library, X, d, counts, labels, is_sparse=True):
    compiled = Compiled(library, d, is_sparse, recency=False, drift=False)
    compiled.ask([], Ruler(1e7, 10**7, squared=True), [slot for own in labels for slot in own])
    for k, x in enumerate(X):
        compiled.set_node(k, x)
        compiled.set_counts(k, counts[k], labels[k])
    compiled.recompute()
    return compiled


@pytest.mark.parametrize("is_sparse", [False, True])
def test_counts_of_a_trillion_rows(library, is_sparse):
    rng = np.random.default_rng(0)
    X, _ = wide_stream(2, 30, 40, 1, "real")
    counts = [2**35 - int(v) for v in rng.integers(0, 2**34, 30)]
    labels = [
        {slot: min(count, 2 ** int(rng.integers(0, 35))) for slot in rng.permutation(4)[:2].tolist()}
        for count in counts
    ]
    plain = Similarity(X.tolist(), counts, labels)
    compiled = nodes_of(library, X, X.shape[1], counts, labels, is_sparse)
    assert compiled.array("weights") == plain.weights
    deviations = compiled.array("deviations", np.float64)
    assert [slot for slot, v in enumerate(deviations) if v > 0] == sorted(plain.background)
    assert all(deviations[slot] == own.deviation for slot, own in plain.background.items())


@pytest.mark.slow
def test_four_million_attributes(library):
    d = 2**22
    rows = sparse.random_array((25, d), density=2e-6, rng=np.random.default_rng(0), format="csr")
    rows.indices[rows.indptr[:-1]] %= 100  # some attributes that rows share
    rows.data[:] = 1.0
    rows.sum_duplicates()
    labels = [{1 + k % 3: 1} for k in range(25)]
    compiled = nodes_of(library, (rows[[k]].toarray()[0] for k in range(25)), d, [1] * 25, labels)
    assert compiled.restore()
    assert abs(sum(compiled.array("weights")) - 2**50) <= d / 2
    keys, shared = compiled.keys(rows[[7]].toarray()[0], 25), (rows @ rows[[7]].T).toarray()[:, 0]
    assert keys[7] == 0
    assert [key == compiled.far() for key in keys] == [count == 0 for count in shared]


@pytest.mark.parametrize("drift", [False, True])
def test_memory_that_fails_changes_nothing(library, drift):
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 2)), (rng.random((30, 6)) < np.linspace(0, 0.6, 30)[:, None]).astype(int)
    model = (BesideDrift if drift else BesideBeyond)(recency=True, **CHOSEN).attach(library, 2, False, drift)
    model.compiled.fails = True  # at each allocation of a row in turn, before the row is learned
    run(model, X, Y)
    assert model.compiled.failures > 5
