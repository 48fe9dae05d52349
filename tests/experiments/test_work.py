"""Tasks run in this process, against a direct implementation."""

import numpy as np
import pytest

from mlca import MLCA
from mlca.datasets import three_discs
from mlca.experiments.splits import split_of
from mlca.experiments.tasks import Task, in_order
from mlca.experiments.work import do
from mlca.metrics import evaluate
from mlca.metrics.registry import PAPER_MEASURES
from mlca.peers import MCIC, MLODM


def done(task, clock=lambda begins: None):
    return do(task, clock)


def test_stream_is_measured_after_each_stage_on_all_labels():
    task = Task("stream", "MLCA", (("vigilance", 0.1),), "three", seed=1, size=150)
    model = MLCA(vigilance=0.1)
    for number, stage in enumerate(three_discs(150, condition="three", random_state=1), start=1):
        model.partial_fit(stage.X, stage.Y)
        wrong = model.predict(stage.X_test) != stage.Y_test
        values = done(task).values
        assert values[f"exact_match@{number}"] == pytest.approx(1 - wrong.any(axis=1).mean())
        # Three labels from the start, though only `number` of them are known.
        assert values[f"hamming_loss@{number}"] == pytest.approx(wrong.sum() / (3 * len(wrong)))
        assert values[f"nodes@{number}"] == model.n_nodes_


def test_first_seed_keeps_its_nodes_for_the_plot():
    pictures = done(Task("stream", "MLCA", (("vigilance", 0.3),), "together", size=60)).pictures
    assert len(pictures["1"]["weights"]) == len(pictures["1"]["labels"]) > 3
    assert done(Task("stream", "MLCA", (("vigilance", 0.3),), "together", seed=1, size=60)).pictures == {}


def test_mcic_gets_scaled_discs_and_returns_mature_clusters():
    parameters = {"theta": 0.1, "decay": 0.25, "maturity": 2, "speed": 10_000, "center": "exact"}
    task = Task("stream", "MCIC", in_order(parameters), "together", scaled=True, size=80)
    found = done(task)
    (stage,) = three_discs(80, condition="together", random_state=0)
    model = MCIC(**parameters).partial_fit((stage.X + 1) / 3.1, stage.Y)
    assert found.values["nodes@1"] == model.n_mature_
    weights = np.array(found.pictures["1"]["weights"])
    assert len(weights) == model.n_mature_
    assert 0 <= weights.min() < weights.max() <= 1


def test_a_fold_is_measured_by_the_models_own_decisions_and_scores(made_up_data):
    parameters = {"theta": 0.7, "mu": 0.1}
    task = Task("fold", "MLODM", in_order(parameters), "flags", seed=4, repetition=1, fold=2, scaled=True)
    split = split_of("flags", 1, 2, scaled=True, dense=False)
    model = MLODM(**parameters, random_state=4).fit(split.X, split.Y)
    scores = model.decision_function(split.X_test)
    expected = evaluate(split.Y_test, scores, Y_pred=model.predict(split.X_test)).as_dict()
    values = done(task).values
    names = [measure.name for measure in PAPER_MEASURES]
    assert {name: values[name] for name in names} == {name: expected[name] for name in names}
    assert values["fit_seconds"] > 0
    assert values["predict_seconds"] > 0


def test_epochs_are_measured_one_by_one_in_one_run(made_up_data):
    parameters = {"vigilance": 0.3}
    task = Task("fold", "MLCA", in_order(parameters), "emotions", repetition=0, fold=0, epochs=3)
    split = split_of("emotions", 0, 0, scaled=False, dense=False)
    begun = []
    values = done(task, begun.append).values
    for epochs in (1, 2, 3):
        model = MLCA(**parameters, epochs=epochs).fit(split.X, split.Y)
        expected = evaluate(split.Y_test, model.predict_proba(split.X_test))
        assert values[f"exact_match@{epochs}"] == expected.exact_match
        assert values[f"nodes@{epochs}"] == model.n_nodes_
    assert begun == [True, False] * 3


def test_grid_measures_the_training_rows_too(made_up_data):
    task = Task("fold", "MLCA", (("vigilance", 0.3),), "flags", repetition=0, fold=0, on_training=True)
    split = split_of("flags", 0, 0, scaled=False, dense=False)
    predicted = MLCA(vigilance=0.3).fit(split.X, split.Y).predict(split.X)
    assert done(task).values["training_exact_match"] == (predicted == split.Y).all(axis=1).mean()


def test_growth_is_measured_at_a_fixed_number_of_nodes():
    for variant in ("MLCA", "MLCA-I", "MLCA-C"):
        parameters = in_order({"published": variant, "vigilance": 0.0})
        values = done(Task("growth", "MLCA", parameters, "generated", size=300, nodes=80)).values
        assert values["nodes"] == 80
