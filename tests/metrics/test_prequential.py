import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from river import linear_model, multioutput, preprocessing
from river.datasets import synth
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier

from mlca import MLCA, metrics
from mlca.base import StreamClassifier
from mlca.datasets import three_discs
from mlca.metrics import Prequential, prequential
from mlca.metrics.stream.prequential import pickled_size
from mlca.river import MLCAClassifier


class NearestRow(StreamClassifier):
    """Predicts the labels of the nearest learned row; simple enough to check by hand."""

    def _check_parameters(self):
        pass

    def _begin(self, n_features, sparse_rows):
        self._rows = np.empty((0, n_features))
        self._labels = np.empty((0, 0))

    def _learn(self, rows, targets):
        rows = rows.toarray() if sp.issparse(rows) else rows
        grown = np.zeros((len(self._labels), targets.n_labels))
        grown[:, : self._labels.shape[1]] = self._labels
        self._rows = np.vstack([self._rows, rows])
        self._labels = np.vstack([grown, targets.to_dense()])

    def _probabilities(self, rows):
        rows = rows.toarray() if sp.issparse(rows) else rows
        distance = ((rows[:, np.newaxis] - self._rows) ** 2).sum(axis=2)
        return self._labels[distance.argmin(axis=1)]

    @property
    def n_nodes_(self):
        return len(self._rows)


class LinearModels(MultiOutputClassifier):
    """scikit-learn's linear models, with the classes 0 and 1 declared for every label."""

    def partial_fit(self, X, Y):
        return super().partial_fit(X, Y, classes=[[0, 1]] * Y.shape[1])

    def predict_proba(self, X):
        return np.column_stack([label[:, 1] for label in super().predict_proba(X)])


class Frequent:
    """Predicts the labels that most rows so far had; keeps its classes sorted, as scikit-learn does."""

    def __init__(self):
        self.counts, self.n_rows = Counter(), 0

    @property
    def classes_(self):
        return np.array(sorted(self.counts))

    def partial_fit(self, X, Y):
        self.counts.update(name for row in Y for name in row)
        self.n_rows += len(X)

    def predict_proba(self, X):
        return np.tile([self.counts[name] / self.n_rows for name in self.classes_], (len(X), 1))

    def predict(self, X):
        return self.predict_proba(X) > 0.5


def blobs(n, seed=0):
    """Return rows in the plane; label j means that coordinate j is positive, the third label that both are."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0, (X > 0).all(axis=1)]).astype(int)


def batches(X, Y, size):
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, X.shape[0], size)]


SEA_AND_SUN = [
    ([0.0], ["sea"]),  # only learned
    ([0.1], ["sea"]),  # predicts sea: right
    ([5.0], ["sea", "sun"]),  # predicts sea: sun is missed, because it is unknown
    ([5.1], ["sun"]),  # predicts sea and sun: one is wrong
    ([5.2], []),  # predicts sun: wrong
]


class TestGrowingLabels:
    def test_measures_equal_those_computed_by_hand(self):
        result = prequential(NearestRow(), SEA_AND_SUN, every=1, window=2)
        wrong = [0 / 1, 1 / 2, 1 / 2, 1 / 2]
        f1 = [1, 2 / 3, 2 / 3, 0]
        last = result.records[-1]
        assert [record.row for record in result.records] == [1, 2, 3, 4, 5]
        assert np.isnan(result.records[0].running.exact_match)
        assert last.running.exact_match == 1 / 4
        assert last.running.hamming_loss == pytest.approx(np.mean(wrong))
        assert last.running.example_f1 == pytest.approx(np.mean(f1))
        assert last.running.micro_f1 == pytest.approx(2 * 3 / (2 + 3 + 3 + 1))
        assert last.windowed.example_f1 == pytest.approx(np.mean(f1[-2:]))
        assert last.windowed.exact_match == 0
        assert [record.n_labels for record in result.records] == [1, 1, 2, 2, 2]
        assert result.labels_appeared == {"sea": 0, "sun": 2}

    def test_unknown_label_scores_0(self):
        result = prequential(NearestRow(), SEA_AND_SUN, every=3, scores=True)
        # The third row scores sea 1 and sun 0, and both are true. No pair can be ranked wrongly, so ranking loss leaves
        # the row out. Coverage needs both labels: 1 step of 1.
        first = result.records[0].running
        assert np.isnan(first.ranking_loss)
        assert first.coverage == 1.0

    def test_model_with_another_label_order_is_measured_correctly(self):
        stream = [([0.0], ["sun"]), ([0.0], ["ice", "sun"]), ([0.0], ["sun"])]
        last = prequential(Frequent(), stream, scores=True).records[-1].running
        assert last.exact_match == 1 / 2  # sun is predicted twice, ice is missed once
        assert last.one_error == 0.0  # sun is ranked first for both rows

    def test_wider_indicator_matrix_adds_labels(self):
        stream = [
            (np.array([[0.0], [1.0]]), np.array([[1], [0]])),
            (np.array([[0.1], [9.0]]), np.array([[1, 0], [1, 1]])),
        ]
        result = prequential(NearestRow(), stream)
        (record,) = result.records
        assert record.running.hamming_loss == pytest.approx((0 + 2) / 4)
        assert result.labels_appeared == {0: 0, 1: 3}

    def test_label_appears_at_the_row_where_it_is_first_true(self):
        X, Y = np.arange(6.0).reshape(6, 1), np.zeros((6, 3), dtype=int)
        Y[4, 1] = Y[2, 2] = Y[5, 2] = 1
        result = prequential(NearestRow(), batches(X, Y, 3))
        assert result.labels_appeared == {2: 2, 1: 4}
        assert list(result.labels_appeared) == [2, 1]


@pytest.fixture(scope="module")
def run():
    X, Y = blobs(400)
    stream = batches(X, Y, 40)
    result = prequential(
        LinearModels(SGDClassifier(loss="log_loss", random_state=0)),
        stream,
        every=100,
        window=90,
        scores=True,
    )
    model = LinearModels(SGDClassifier(loss="log_loss", random_state=0))
    model.partial_fit(*stream[0])
    predicted, scores = [], []
    for x, y in stream[1:]:
        predicted.append(model.predict(x))
        scores.append(model.predict_proba(x))
        model.partial_fit(x, y)
    return result, Y[40:], np.vstack(predicted), np.vstack(scores)


class TestMeasures:
    @pytest.mark.parametrize("name", ["exact_match", "example_f1", "jaccard", "hamming_loss", "micro_f1"])
    def test_measures_of_label_sets_equal_those_of_all_rows_at_once(self, run, name):
        result, Y, predicted, _ = run
        measure, last = getattr(metrics, name), result.records[-1]
        assert getattr(last.running, name) == pytest.approx(measure(Y, predicted))
        assert getattr(last.windowed, name) == pytest.approx(measure(Y[-90:], predicted[-90:]))

    @pytest.mark.parametrize("name", ["ranking_loss", "coverage", "average_precision", "one_error"])
    def test_measures_of_rankings_equal_those_of_all_rows_at_once(self, run, name):
        result, Y, _, scores = run
        measure, last = getattr(metrics, name), result.records[-1]
        assert getattr(last.running, name) == pytest.approx(measure(Y, scores))
        assert getattr(last.windowed, name) == pytest.approx(measure(Y[-90:], scores[-90:]))

    def test_window_may_be_shorter_than_a_batch(self, run):
        _, Y, predicted, _ = run
        model = LinearModels(SGDClassifier(loss="log_loss", random_state=0))
        result = prequential(model, batches(*blobs(400), 40), window=7)
        expected = metrics.hamming_loss(Y[-7:], predicted[-7:])
        assert result.records[-1].windowed.hamming_loss == pytest.approx(expected)

    def test_hamming_loss_of_the_last_window_is_low(self, run):
        assert run[0].records[-1].windowed.hamming_loss < 0.1

    def test_records_are_taken_when_a_batch_completes_their_rows(self, run):
        assert [record.row for record in run[0].records] == [120, 200, 320, 400]


class TestForms:
    """The same stream in every supported form."""

    X, Y = blobs(60)

    def measures(self, model, stream):
        last = prequential(model, stream, every=10, window=30, scores=True).records[-1]
        return last.running, last.windowed, last.n_labels

    def test_all_forms_of_arrays_give_the_same_measures(self):
        expected = self.measures(NearestRow(), batches(self.X, self.Y, 1))
        for stream in (
            zip(self.X, self.Y, strict=True),
            zip(self.X.tolist(), self.Y.tolist(), strict=True),
            [(x, pd.Series(y)) for x, y in zip(self.X, self.Y, strict=True)],
            [(x, sp.csr_array(y[np.newaxis])) for x, y in zip(self.X, self.Y, strict=True)],
            batches(sp.csr_array(self.X), sp.csr_matrix(self.Y), 1),
            batches(pd.DataFrame(self.X), self.Y, 1),
        ):
            assert self.measures(NearestRow(), stream) == expected

    def test_names_and_columns_give_the_same_measures_once_labels_are_known(self):
        names = [{"xyz"[j] for j in np.flatnonzero(y)} for y in self.Y]
        first = [(self.X[:20], self.Y[:20])], [(self.X[:20], names[:20])]
        by_column = self.measures(NearestRow(), first[0] + batches(self.X[20:], self.Y[20:], 5))
        by_name = self.measures(NearestRow(), first[1] + batches(self.X[20:], names[20:], 5))
        assert by_name == by_column

    def test_river_model_has_the_same_measures_on_dicts_and_arrays(self):
        def model():
            return preprocessing.StandardScaler() | multioutput.PerOutputClassifier(linear_model.LogisticRegression())

        dicts = [
            (dict(enumerate(x)), {j: bool(v) for j, v in enumerate(y)})
            for x, y in zip(self.X.tolist(), self.Y.tolist(), strict=True)
        ]
        expected = self.measures(model(), dicts)
        assert self.measures(model(), zip(self.X, self.Y, strict=True)) == expected
        assert self.measures(model(), batches(sp.csr_array(self.X), self.Y, 1)) == expected

    def test_one_class_per_row_is_measured(self):
        y = np.where(self.X[:, 0] > 0, "right", "left")
        last = prequential(NearestRow(), batches(self.X, y, 6)).records[-1]
        assert last.running.exact_match > 0.8
        assert last.running.hamming_loss == pytest.approx(1 - last.running.exact_match)


class TestMLCA:
    def test_new_label_is_missed_once_and_then_known(self):
        """Two discs in sequence: the second label is missed once and then known."""
        stages = three_discs(600, condition="three")[:2]
        stream = [batch for stage in stages for batch in batches(stage.X, stage.Y, 50)]
        model = MLCA(vigilance=0.1)
        result = prequential(model, stream, every=600, window=300, scores=True)
        first, second = result.records
        assert result.labels_appeared == {0: 0, 1: 600}
        assert (first.n_labels, second.n_labels) == (1, 2)
        assert first.running.exact_match == 1.0
        assert 0.8 < second.windowed.exact_match < 1.0
        assert second.n_nodes == model.n_nodes_ > first.n_nodes

    def test_both_interfaces_report_the_same_number_of_nodes(self):
        X, Y = blobs(60)
        ours, rivers = MLCA(), MLCAClassifier()
        of_arrays = prequential(ours, zip(X, Y, strict=True), every=20)
        of_dicts = prequential(rivers, zip(X, Y, strict=True), every=20)
        assert of_dicts.records[-1].n_nodes == rivers.n_nodes > 0
        assert [r.n_nodes for r in of_dicts.records] == [r.n_nodes for r in of_arrays.records]

    def test_single_rows_and_batches_give_the_same_exact_match(self):
        X, Y = blobs(120)
        names = [[name for name, true in zip("xyz", y, strict=True) if true] for y in Y]
        by_batch = prequential(MLCA(window=10), batches(X, [tuple(row) for row in names], 1), every=120)
        by_row = prequential(MLCA(window=10), zip(X, names, strict=True), every=120)
        assert by_row.records[-1].running.exact_match == by_batch.records[-1].running.exact_match
        assert by_row.labels_appeared == by_batch.labels_appeared


class TestRiver:
    @pytest.mark.parametrize("scores", [False, True])
    def test_river_stream_and_model_are_measured(self, scores):
        model = multioutput.ClassifierChain(linear_model.LogisticRegression())
        result = prequential(model, synth.Logical(n_tiles=50, seed=1), window=100, scores=scores)
        last = result.records[-1]
        assert last.row == 200
        assert last.running.hamming_loss < 0.4
        assert np.isnan(last.running.ranking_loss) != scores
        assert set(result.labels_appeared) == {"AND", "OR", "XOR"}

    def test_exact_match_agrees_with_rivers_own_metric(self):
        from river import metrics as river_metrics

        stream = list(synth.Logical(n_tiles=50, seed=2))
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        ours = prequential(model, stream).records[-1].running.exact_match
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        theirs = river_metrics.multioutput.ExactMatch()
        for number, (x, y) in enumerate(stream):
            if number:
                theirs.update(y, model.predict_one(x))
            model.learn_one(x, y)
        assert ours == pytest.approx(theirs.get())

    def test_scores_are_the_probabilities_of_true(self):
        stream = list(synth.Logical(n_tiles=50, seed=3))
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        ours = prequential(model, stream, scores=True).records[-1].running.ranking_loss
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        names, true, chances = sorted(stream[0][1]), [], []
        for x, y in stream:
            predicted = model.predict_proba_one(x)
            if predicted:
                true.append([y[name] for name in names])
                chances.append([predicted[name][True] for name in names])
            model.learn_one(x, y)
        assert ours == pytest.approx(metrics.ranking_loss(true, chances))

    def test_label_of_a_later_row_is_recorded_as_new(self):
        stream = [({"a": 1.0}, {"u": True}), ({"a": 2.0}, {"u": True, "v": True}), ({"a": 1.5}, {})]
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        result = prequential(model, stream, every=1)
        assert [record.n_labels for record in result.records] == [1, 2, 2]
        assert result.labels_appeared == {"u": 0, "v": 1}


class TestRecords:
    def test_records_have_nodes_bytes_and_speed(self):
        X, Y = blobs(50)
        model = NearestRow()
        result = prequential(model, batches(X, Y, 10), every=20)
        assert [record.n_nodes for record in result.records] == [20, 40, 50]
        assert result.records[-1].model_bytes == pytest.approx(len(pickle.dumps(model)), rel=0.1)
        assert result.records[-1].model_bytes > result.records[0].model_bytes
        assert all(record.rows_per_second > 0 for record in result.records)

    def test_a_model_that_cannot_be_pickled_has_no_size(self):
        model = NearestRow()
        model.rule = lambda: None
        assert pickled_size(model) is None
        text = str(prequential(model, SEA_AND_SUN))
        assert text.splitlines()[-1].endswith("-")

    def test_callback_receives_every_record(self):
        seen = []
        result = prequential(NearestRow(), SEA_AND_SUN, every=2, on_record=seen.append)
        assert tuple(seen) == result.records
        assert [record.row for record in seen] == [2, 4, 5]

    def test_records_convert_to_a_frame_and_print_as_a_table(self):
        result = prequential(NearestRow(), SEA_AND_SUN, every=2, window=2)
        frame = result.to_frame()
        assert frame["row"].tolist() == [2, 4, 5]
        assert frame["window_exact_match"].tolist() == [1, 0, 0]
        lines = str(result).splitlines()
        assert "last 2 rows" in lines[0]
        assert len(lines) == 5 and len({len(line) for line in lines[1:]}) == 1

    def test_empty_stream_gives_no_records(self):
        assert prequential(NearestRow(), []) == Prequential((), {}, 1000)

    def test_trained_model_is_tested_from_the_first_row(self):
        model = NearestRow().fit([[0.0], [9.0]], [["sea"], ["ice"]])
        result = prequential(model, [([0.1], ["ice"]), ([8.9], ["ice"])])
        assert result.records[-1].running.exact_match == 1 / 2
        assert result.records[-1].n_labels == 2

    def test_labels_that_the_model_knows_do_not_appear_as_new(self):
        model = NearestRow().fit([[0.0], [9.0]], [["sea"], ["ice"]])
        result = prequential(model, [([0.1], ["ice"]), ([8.9], ["ice", "fog"])])
        assert result.labels_appeared == {"fog": 1}


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sp.csr_array])
@pytest.mark.parametrize("model", [MLCA, MLCAClassifier])
def test_batches_without_rows_are_skipped(form, model):
    X, Y = np.arange(6.0).reshape(3, 2), np.array([[1, 0], [0, 1], [1, 1]])
    none = (form(X[:0]), Y[:0])
    result = prequential(model(), [none, (form(X), Y), none, (form(X), Y), none, (form(X[:0]), [])])
    assert (result.records[-1].row, result.labels_appeared) == (6, {0: 0, 1: 1})


class TestInvalidInput:
    def test_position_of_an_invalid_item_is_reported(self):
        stream = [([0.0], ["sea"]), (np.zeros((2, 1)), [["sea"]])]
        with pytest.raises(ValueError, match="item 1 of the stream, after 1 rows: X has 2 rows, but Y has 1"):
            prequential(NearestRow(), stream)
        with pytest.raises(ValueError, match="item 0 of the stream"):
            prequential(NearestRow(), [[1.0, 2.0, 3.0]])

    def test_dicts_for_a_model_of_arrays_are_rejected(self):
        with pytest.raises(ValueError, match=r"NearestRow learns arrays: use mlca\.river"):
            prequential(NearestRow(), [({"a": 1.0}, {"u": True})])

    def test_label_lists_for_dict_rows_are_rejected(self):
        with pytest.raises(ValueError, match="its labels are a list"):
            prequential(multioutput.PerOutputClassifier(linear_model.LogisticRegression()), [({"a": 1.0}, ["u"])])

    def test_label_from_earlier_training_is_rejected(self):
        model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())
        model.learn_one({"a": 1.0}, {"old": True})
        with pytest.raises(ValueError, match="predicts the label 'old', which is not in the stream"):
            prequential(model, [({"a": 1.0}, {"u": True})] * 2)

    def test_model_without_partial_fit_is_rejected(self):
        with pytest.raises(TypeError, match="object has neither partial_fit nor learn_one"):
            prequential(object(), SEA_AND_SUN)

    @pytest.mark.parametrize("option", ["every", "window"])
    @pytest.mark.parametrize(
        ("count", "wanted"),
        [(0, "at least 1"), (2.5, "a whole number"), (True, "a whole number"), ("9", "a whole number")],
    )
    def test_invalid_counts_are_rejected(self, option, count, wanted):
        with pytest.raises(ValueError, match=f"{option} must be {wanted}, not {count!r}"):
            prequential(NearestRow(), SEA_AND_SUN, **{option: count})

    def test_position_of_a_rejected_item_is_reported(self):
        stream = [(np.zeros((2, 1)), [["sea"]] * 2), (np.full((1, 1), np.inf), [["sea"]])]
        with pytest.raises(ValueError, match="row 0, column 0 of X holds inf") as rejected:
            prequential(MLCA(), stream)
        assert rejected.value.__notes__ == [
            "This happened at item 1 of the stream, after 2 rows, which have been learned."
        ]


def test_table_is_rejected_as_a_stream():
    X, Y = np.zeros((5, 3)), np.ones((5, 2))
    with pytest.raises(ValueError, match=r"item 0 .*a pair of rows and their labels; got ndarray.*zip\(X, Y\)"):
        prequential(MLCA(), (X, Y))
    with pytest.raises(ValueError, match=r"item 0 .*a pair of rows and their labels; got int"):
        prequential(MLCA(), [7])


@pytest.mark.filterwarnings("error")
def test_stream_without_labels_raises_no_warning():
    result = prequential(MLCA(), [(np.eye(3), [()] * 3)] * 2)
    assert result.records[-1].running.exact_match == 1.0
    assert np.isnan(result.records[-1].running.hamming_loss)


def test_river_model_without_novelty_gets_the_other_alarms():
    stream = [({"a": float(i % 7)}, {"odd": i % 2 == 1}) for i in range(60)]
    result = prequential(MLCAClassifier(decision="bayes"), stream)
    assert result.records[-1].row == 60
    assert {alarm.kind for alarm in result.alarms} <= {"new label", "drift"}
    with pytest.raises(AttributeError, match='decision="bayes" does not record the distances of rows'):
        MLCAClassifier(decision="bayes").novelty_one({"a": 1.0})
