import dataclasses
import math
import os
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mlca import MLCA, metrics
from mlca.metrics import MEASURES, Evaluation, evaluate, scorer

Y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 0]])
PROBA = np.array([[0.9, 0.2, 0.8], [0.6, 0.3, 0.1], [0.5, 0.4, 0.3], [0.7, 0.6, 0.5]])
PAPER = ["exact_match", "example_f1", "macro_auc", "hamming_loss", "ranking_loss", "coverage"]


def test_evaluate_equals_the_single_measure_functions():
    result = evaluate(Y, PROBA).as_dict()
    for name in MEASURES:
        function, _, k = name.rpartition("_at_")
        if function:
            expected = getattr(metrics, f"{function}_at_k")(Y, PROBA, k=int(k))
        elif name in ("exact_match", "example_f1", "hamming_loss", "micro_f1", "macro_f1", "jaccard"):
            expected = getattr(metrics, name)(Y, PROBA > 0.5)
        else:
            expected = getattr(metrics, name)(Y, PROBA)
        assert result[name] == expected, name


def test_every_measure_is_registered_in_the_same_order():
    fields = [field.name for field in dataclasses.fields(Evaluation)]
    assert fields == list(MEASURES) == list(evaluate(Y, PROBA).as_dict())
    assert [name for name, measure in MEASURES.items() if measure.paper] == PAPER


@pytest.mark.parametrize("name", MEASURES)
def test_perfect_predictions_are_better_in_the_registered_direction(name):
    """The registry states correctly whether a higher or a lower value is better."""
    true = np.eye(8, dtype=int)
    good, bad = (evaluate(true, scores).as_dict()[name] for scores in (true, 1 - true))
    assert good > bad if MEASURES[name].better == "higher" else good < bad


def test_labels_above_the_threshold_are_predicted():
    assert evaluate([[0, 1]], [[0.5, 0.51]]).exact_match == 1.0
    assert evaluate([[0, 1]], [[0.5, 0.51]], threshold=0.3).exact_match == 0.0


def test_given_predictions_replace_the_threshold():
    own = evaluate(Y, PROBA, Y_pred=sp.csr_array(Y))
    assert own.exact_match == 1.0
    assert own.ranking_loss == evaluate(Y, PROBA).ranking_loss
    with pytest.raises(ValueError, match="Y_pred has shape"):
        evaluate(Y, PROBA, Y_pred=Y[:, :2])


def test_predictions_passed_as_threshold_are_rejected():
    with pytest.raises(TypeError, match="positional"):
        evaluate(Y, PROBA, PROBA > 0.5)
    with pytest.raises(ValueError, match="threshold chooses labels from proba, but Y_pred already holds labels"):
        evaluate(Y, PROBA, Y_pred=Y, threshold=0.3)
    for wrong in (Y, np.zeros(len(Y[0]) + 1), float("nan")):
        with pytest.raises(ValueError, match=r"threshold must be one number, .* pass them as Y_pred"):
            evaluate(Y, PROBA, threshold=wrong)
    with pytest.raises(ValueError, match="pass probabilities as proba, or a model and the rows X"):
        evaluate(Y, Y_pred=Y)


class TestModel:
    ROWS = np.array([[0.0], [0.2], [5.0], [5.3], [9.0]])
    NAMES = (["sea"], ["sea"], ["sun", "wind"], ["sun"], [])
    INDICATOR = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 0]])

    def test_decision_of_the_model_is_measured(self):
        model = MLCA().fit(self.ROWS, self.NAMES)
        expected = evaluate(self.INDICATOR, model.predict_proba(self.ROWS), Y_pred=model.predict(self.ROWS))
        for truth in (self.NAMES, self.INDICATOR, pd.DataFrame(self.INDICATOR, columns=["sea", "sun", "wind"])):
            assert evaluate(truth, model=model, X=self.ROWS) == expected
        assert expected.exact_match == model.score(self.ROWS, self.NAMES)

    def test_unknown_labels_count_as_missed(self):
        model = MLCA().fit(self.ROWS, self.NAMES)
        result = evaluate([["sea", "fog"]], model=model, X=self.ROWS[:1])
        assert (result.exact_match, result.hamming_loss) == (0.0, 1 / 4)

    def test_pipeline_with_one_class_per_row_is_measured(self):
        y = np.array(["low", "low", "high", "high", "high"])
        model = make_pipeline(StandardScaler(), MLCA()).fit(self.ROWS, y)
        assert evaluate(y, model=model, X=self.ROWS).exact_match == model.score(self.ROWS, y)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"model": MLCA()}, "a model needs the rows X that it predicts"),
            ({"X": ROWS}, "X was passed without a model"),
            ({"model": MLCA(), "X": ROWS, "Y_pred": Y}, "Y_pred cannot be combined with a model"),
            ({"model": MLCA(), "X": ROWS, "threshold": 0.3}, "leave out threshold"),
        ],
    )
    def test_conflicting_arguments_are_rejected(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            evaluate(self.INDICATOR, **arguments)

    def test_different_numbers_of_rows_are_rejected(self):
        model = MLCA().fit(self.ROWS, self.NAMES)
        with pytest.raises(ValueError, match="X has 5 rows but Y_true has 4"):
            evaluate(self.NAMES[:4], model=model, X=self.ROWS)


class TestScorer:
    def test_scorers_accept_label_names_in_cross_validation(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 3))
        names = [[name for name, value in zip("abc", row, strict=True) if value > 0] for row in X]
        indicator = (X > 0).astype(int)
        for measure, known in (("micro_f1", "f1_micro"), ("exact_match", "accuracy")):
            ours = cross_val_score(MLCA(), X, names, cv=KFold(3), scoring=scorer(measure), n_jobs=2)
            np.testing.assert_allclose(ours, cross_val_score(MLCA(), X, indicator, cv=KFold(3), scoring=known))
        search = GridSearchCV(MLCA(), {"vigilance": [0.01, 0.3]}, cv=KFold(3), scoring=scorer("macro_auc"))
        assert search.fit(X, names).best_score_ > 0.8

    def test_losses_are_negative_so_that_greater_is_better(self):
        model = MLCA().fit(TestModel.ROWS, TestModel.NAMES)
        loss = evaluate([["sun"]], model=model, X=[[0.1]]).hamming_loss
        assert scorer("hamming_loss")(model, [[0.1]], [["sun"]]) == -loss < 0

    def test_unknown_measure_is_rejected(self):
        with pytest.raises(ValueError, match=r"measure must be one of 'exact_match', .*, not 'f1_micro'"):
            scorer("f1_micro")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 1), (3, 4)])
@pytest.mark.parametrize("fill", [0, 1])
def test_undefined_measures_are_nan_without_warnings(shape, fill):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate(np.full(shape, fill), np.zeros(shape))
        print(result)
    assert math.isnan(result.macro_auc) and math.isnan(result.ranking_loss)


def test_result_is_frozen_and_prints_one_line_per_measure():
    result = evaluate(Y, PROBA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.exact_match = 1.0
    lines = str(result).splitlines()
    assert len(lines) == 1 + len(MEASURES)
    assert len({len(line) for line in lines if line.endswith("higher")}) == 1


def test_thousands_of_sparse_labels_are_measured():
    """Four thousand labels, as in EURLex, which would need much memory as a dense matrix."""
    rng = np.random.default_rng(0)
    true = sp.random_array((500, 4000), density=0.0013, format="csr", rng=rng) > 0
    result = evaluate(true, rng.random((500, 4000), dtype=np.float32), threshold=0.99)
    assert result.micro_auc == pytest.approx(0.5, abs=0.03)
    assert result.coverage == pytest.approx(0.8, abs=0.05)


@pytest.mark.data
@pytest.mark.skipif("MLCA_DATA" not in os.environ, reason="MLCA_DATA names no folder of datasets")
def test_label_frequencies_as_scores_have_a_macro_auc_of_one_half():
    """Scores that are the label frequencies have a macro AUC of 0.5 by construction."""
    from mlca.datasets import load_dataset

    true = load_dataset("delicious", subset="test").Y
    frequency = np.asarray(true.mean(axis=0)).ravel()
    result = evaluate(true, np.tile(frequency, (true.shape[0], 1)))
    assert result.macro_auc == 0.5
    assert result.micro_auc > 0.75
    assert result.exact_match < 0.01


class TestFrames:
    TRUE = pd.DataFrame(Y, columns=["sea", "sun", "wind"])
    SCORES = pd.DataFrame(PROBA, columns=["sea", "sun", "wind"])

    def test_columns_are_matched_by_name(self):
        shuffled = self.SCORES[["wind", "sea", "sun"]]
        assert evaluate(self.TRUE, shuffled) == evaluate(Y, PROBA)
        assert evaluate(self.TRUE, PROBA, Y_pred=shuffled > 0.5) == evaluate(Y, PROBA)
        assert metrics.exact_match(self.TRUE, shuffled > 0.5) == metrics.exact_match(Y, PROBA > 0.5)
        assert metrics.ranking_loss(self.TRUE, shuffled) == metrics.ranking_loss(Y, PROBA)

    def test_other_labels_are_rejected_by_name(self):
        with pytest.raises(ValueError, match=r"proba lacks \['wind'\], Y_true lacks \['rain'\]"):
            evaluate(self.TRUE, self.SCORES.rename(columns={"wind": "rain"}))

    def test_label_names_are_rejected_with_the_remedy(self):
        with pytest.raises(ValueError, match=r"Y_true must be an indicator matrix.*MultiLabelBinarizer\(classes="):
            evaluate([["sea"], ["sea", "sun"]], np.full((2, 2), 0.5))

    def test_rows_in_another_order_are_rejected(self):
        with pytest.raises(ValueError, match=r"proba\.loc\[Y_true\.index\]"):
            evaluate(self.TRUE, self.SCORES[::-1])
        assert evaluate(self.TRUE.set_axis(list("abcd")), self.SCORES) == evaluate(Y, PROBA)

    def test_arrow_tables_and_nullable_columns_are_measured(self):
        true, scores = (pa.Table.from_pandas(frame) for frame in (self.TRUE, self.SCORES))
        assert evaluate(true, scores.select(["wind", "sea", "sun"])) == evaluate(Y, PROBA)
        assert evaluate(self.TRUE.astype("Int64"), self.SCORES.astype("Float64")) == evaluate(Y, PROBA)
        with pytest.raises(ValueError, match="Y_true must hold 0 and 1 only, but row 1, label 1 is nan"):
            evaluate(self.TRUE.astype("Int64").mask(self.SCORES == 0.3), PROBA)

    def test_labels_called_true_and_false_are_not_a_mask(self):
        true, scores = (frame[["sea", "sun"]].set_axis([True, False], axis=1) for frame in (self.TRUE, self.SCORES))
        assert evaluate(true, scores.iloc[:, ::-1]) == evaluate(Y[:, :2], PROBA[:, :2])

    def test_duplicate_names_are_rejected(self):
        with pytest.raises(ValueError, match="Y_true has two columns of the same name"):
            evaluate(
                self.TRUE.set_axis(["sea", "sea", "sun"], axis=1), self.SCORES.set_axis(["sea", "sea", "sun"], axis=1)
            )

    def test_masked_cells_are_rejected(self):
        masked = np.ma.masked_less(PROBA, 0.2)
        for arguments in ((masked > 0.5, PROBA), (Y, masked)):
            with pytest.raises(ValueError, match="has masked cells"):
                evaluate(*arguments)
