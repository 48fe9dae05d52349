"""Model files: a loaded model equals the saved one."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mlca import MLCA, load
from mlca.merging import merge
from mlca.model import extras_of, set_extra
from tests.learner.algorithm_options import any_options
from tests.learner.model_comparison import assert_same_state
from tests.learner.random_streams import streams

pytestmark = pytest.mark.traced

GOLDEN = Path(__file__).parents[1] / "data"


def small_model(**chosen):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(0, 1, (80, 3)), 3)
    Y = (X[:, :2] > 0).astype(int)
    return MLCA(**chosen).fit(X, Y), X, Y


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams(max_rows=130), any_options(), st.booleans(), st.floats(0, 1))
def test_loaded_model_continues_exactly_as_the_original(tmp_path, stream, chosen, thin, cut):
    X, Y = stream
    rows = sparse.csr_array(X) if thin else X
    n = max(1, int(cut * len(X)))
    model = MLCA(**chosen).partial_fit(rows[:n], Y[:n])
    model.save(tmp_path / "model.mlca")
    loaded = load(tmp_path / "model.mlca")
    assert loaded.get_params() == model.get_params()
    assert_same_state(model, loaded)
    np.testing.assert_array_equal(model.predict_proba(rows), loaded.predict_proba(rows))
    wider = np.column_stack([Y, 1 - Y])
    assert_same_state(model.partial_fit(rows, wider), loaded.partial_fit(rows, wider))


def test_names_of_labels_and_features_are_kept(tmp_path):
    _, X, _ = small_model()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = MLCA().fit(frame, [{"yes", 3, True} if x[0] > 0 else {"no"} for x in X])
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert loaded.predict_labels(frame) == model.predict_labels(frame)


def test_one_class_per_row_is_kept(tmp_path):
    _, X, Y = small_model()
    MLCA().fit(X, Y[:, 0]).save(tmp_path / "m")
    assert set(load(tmp_path / "m").predict(X)) <= {0, 1}


def test_unsupported_label_types_are_rejected_by_save(tmp_path):
    model = MLCA().fit([[1.0], [2.0]], [{("a", "tuple")}, set()])
    with pytest.raises(ValueError, match=r"'a', 'tuple'.* is a tuple"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def golden():
    answers = {version: json.loads((GOLDEN / f"golden_v{version}.json").read_text()) for version in (1, 2, 3, 4, 5, 6)}
    return [
        pytest.param(version, name, found, id=f"{version} {name}")
        for version, names in answers.items()
        for name, found in names.items()
    ]


@pytest.mark.parametrize(("version", "name", "answers"), golden())
def test_files_of_every_version_stay_readable(version, name, answers):
    """The golden files and their predictions were written by earlier versions (see tests/data/write_golden.py)."""
    model = load(GOLDEN / f"golden_v{version}_{name}.mlca")
    if version < 3:  # versions that had only the paper's algorithm
        assert (model.similarity, model.decision) == ("correntropy", "bayes")
        assert (model.recency, model.drift, model.max_nodes) == (False, "off", None)
    assert model.n_nodes_ == answers["n_nodes"]
    assert model.n_seen_ == answers["n_seen"]
    assert model.classes_.tolist() == answers["classes"]
    np.testing.assert_allclose(model.predict_proba(answers["rows"]), answers["proba"], rtol=1e-12)
    model.partial_fit(answers["rows"], [{"new"}] * len(answers["rows"]))
    # When versions 4 and 5 were written, before any release, the linear models took their steps in float64.
    rtol = 1e-7 if version in (4, 5) else 1e-12
    np.testing.assert_allclose(model.predict_proba(answers["rows"]), answers["proba_after"], rtol=rtol)


def test_extras_are_stored_as_plain_json_and_removed_by_fit(tmp_path):
    model, X, Y = small_model()
    set_extra(model, "note", {"by": ("you", 1.5, None)})
    set_extra(model, "other", "x")
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert extras_of(loaded) == extras_of(model) == {"note": {"by": ["you", 1.5, None]}, "other": "x"}
    assert extras_of(loaded.partial_fit(X, Y)) and not extras_of(loaded.fit(X, Y))
    with pytest.raises(ValueError, match="JSON"):
        set_extra(model, "note", float("nan"))


def test_given_and_resolved_parameters_are_stored_separately(tmp_path):
    """Parameters that were changed after learning do not change what a loaded model does."""
    model, X, Y = small_model(vigilance=0.1)
    model.set_params(vigilance=0.9, n_jobs=2).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"vigilance was 0\.1 when training began"):
        loaded.partial_fit(X, Y)


@pytest.mark.parametrize("n_jobs", [None, 1, -1, -2])
def test_any_form_of_n_jobs_is_stored(tmp_path, n_jobs):
    small_model(n_jobs=n_jobs)[0].save(tmp_path / "m")
    assert load(tmp_path / "m").n_jobs == n_jobs


def test_parameters_of_numpy_and_generators_are_stored_as_json(tmp_path):
    chosen = {
        "n_neighbors": np.int64(5),
        "vigilance": np.float32(0.25),
        "smoothing": Fraction(1, 2),
        "random_state": np.random.RandomState(3),
    }
    model, X, _ = small_model(**chosen)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert (loaded.n_neighbors, loaded.vigilance, loaded.smoothing, loaded.random_state) == (5, 0.25, 0.5, None)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_model_that_load_would_reject_is_not_saved(tmp_path):
    large, _, _ = small_model(random_state=2**40)
    large.save(tmp_path / "m")
    assert load(tmp_path / "m").random_state == 2**40
    for name, value in {"n_jobs": 0, "vigilance": 7, "random_state": -1}.items():
        model, _, _ = small_model()
        with pytest.raises(ValueError, match=f"{name} "):
            model.set_params(**{name: value}).save(tmp_path / "m")
    assert load(tmp_path / "m").random_state == 2**40


@settings(max_examples=40)
@given(streams(max_rows=60), any_options(), st.booleans(), st.data())
def test_load_accepts_any_learned_or_merged_model(tmp_path_factory, stream, chosen, thin, data):
    """`load` rejects impossible models; this test searches for possible models that `load` would reject."""
    X, Y = stream
    X = np.clip(X * data.draw(st.sampled_from([1.0, 1e-9, 1e149, 1e-100]), "scale"), -1e150, 1e150)
    rows = sparse.csr_array(X) if thin else X
    cuts = sorted({0, len(X), *data.draw(st.lists(st.integers(1, len(X)), max_size=2), "cuts")})
    if len(cuts) > 2 and chosen["vigilance"] == "auto":
        chosen = chosen | {"vigilance": 0.1}  # parts with different estimates cannot be merged
    parts = [MLCA(**chosen).fit(rows[a:b], Y[a:b]) for a, b in pairwise(cuts)]
    model = merge(parts) if len(parts) > 1 else parts[0]
    path = tmp_path_factory.mktemp("believed") / "m"
    model.save(path)
    assert_same_state(load(path), model)
