"""Names of features, and the words stored for them."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from mlca import MLCA, load
from mlca.limits import TEXT_FEATURES
from mlca.tables import vocabulary as words
from mlca.tables.encoding import encode
from mlca.tables.informative import dense_row
from mlca.tables.kinds import Text
from mlca.tables.layout import TableLayout
from mlca.tables.table_learner import recipe_of
from mlca.tables.vocabulary import Vocabulary, vocabulary_from_json
from tests.tables.tickets import tickets

FRAME, LABELS = tickets(1300, 0)


def learned(*portions, **parameters):
    model = MLCA(vigilance=0.1, **parameters)
    for start, stop in portions:
        model.partial_fit(FRAME[start:stop], LABELS[start:stop])
    return model


def names_of(terms):
    return {name for name, _ in terms}


class TestNames:
    def test_feature_names_in_are_the_columns_of_the_frame(self, tmp_path):
        model = learned((0, 300))
        assert model.feature_names_in_.tolist() == FRAME.columns.tolist() and model.n_features_in_ == FRAME.shape[1]
        model.save(tmp_path / "m.mlca")
        loaded = load(tmp_path / "m.mlca")
        assert loaded.feature_names_in_.tolist() == FRAME.columns.tolist()
        assert loaded.n_features_in_ == FRAME.shape[1]
        model.partial_fit(FRAME[:5].assign(floor=1.5), LABELS[:5])
        assert model.feature_names_in_.tolist() == [*FRAME.columns, "floor"]

    def test_encoded_features_have_words_for_names(self, tmp_path):
        model = learned((0, 300))
        names = model.get_feature_names_out().tolist()
        assert len(names) == model.prototypes_.shape[1] and len(set(names)) == len(names)
        assert {"text: wifi", "priority", "hours"} <= set(names)
        model.save(tmp_path / "m.mlca")
        assert load(tmp_path / "m.mlca").get_feature_names_out().tolist() == names

    def test_arrays_have_numbered_features(self):
        model = MLCA().fit([[0.0, 1.0], [1.0, 0.0]], [{"a"}, {"b"}])
        assert model.get_feature_names_out().tolist() == ["x0", "x1"]

    def test_encoded_rows_of_another_width_are_rejected(self):
        with pytest.raises(ValueError, match="pass a DataFrame with the columns of the training data"):
            learned((0, 60)).predict(np.zeros((1, 3)))

    def test_explanation_names_words_categories_and_missing_values(self):
        model = learned((0, 1300))
        row = FRAME.iloc[[3]].assign(text="the wifi is down again", hours=None)
        terms = names_of(model.explain(row).linear[model.classes_[0]])
        assert {"text: wifi", "text: the wifi", f"priority = {row['priority'].iloc[0]}", "hours missing"} <= terms
        assert "words and pairs" not in str(model.explain(row))

    def test_explanation_shows_unknown_categories_of_the_row(self):
        row = FRAME.iloc[[3]].assign(priority="sky-high")
        shown = dict(learned((0, 300)).explain(row).values)["priority"]
        assert shown[0] == "sky-high (unknown)" and "sky-high" not in " ".join(shown[1:])

    def test_texts_without_known_words_are_counted(self):
        text = Text("note", 1 << 10)
        layout = TableLayout((text,), sparse=True)
        counted = [
            text.in_words(dense_row(encode(layout, {"note": [cell]}, 1)[0], 0)) for cell in ("", "red", "red lamp")
        ]
        assert counted == ["no words", "1 rare word", "3 words and pairs"]

    def test_cycles_of_dates_are_named_by_time_not_by_sine(self):
        explanation = learned((0, 1300)).explain(FRAME.iloc[[3]])
        terms = names_of(explanation.linear[explanation.labels[0]])
        assert {"opened, time of week", "opened, time of day"} <= terms
        assert not [name for name in terms if "sine" in name]


class TestVocabulary:
    def test_portions_do_not_change_the_vocabulary(self):
        expected = recipe_of(learned((0, 1300))).words.to_json()
        for portions in ([(0, 1), (1, 2), (2, 9), (9, 1300)], [(0, 999), (999, 1300)], [(0, 1200), (1200, 1300)]):
            assert recipe_of(learned(*portions)).words.to_json() == expected

    def test_words_do_not_change_probabilities(self):
        model = learned((0, 300))
        before = model.predict_proba(FRAME[:20])
        recipe_of(model).words.learn([Text("text", TEXT_FEATURES)], {"text": ["quite other words"] * 50}, 50)
        np.testing.assert_array_equal(model.predict_proba(FRAME[:20]), before)

    def test_copies_learn_independently(self):
        model = learned((0, 300))
        before = recipe_of(model).words.to_json()
        copy.copy(model).partial_fit(FRAME[300:400], LABELS[300:400])
        assert recipe_of(model).words.to_json() == before

    def test_training_continues_after_loading(self, tmp_path):
        model = learned((0, 1100))
        model.save(tmp_path / "m.mlca")
        both = [one.partial_fit(FRAME[1100:], LABELS[1100:]) for one in (model, load(tmp_path / "m.mlca"))]
        assert recipe_of(both[0]).to_json() == recipe_of(both[1]).to_json()

    def test_frequent_word_of_a_feature_is_kept(self):
        vocabulary, column = Vocabulary(), Text("note", 1)  # all words share one feature
        texts = [word for i in range(300) for word in ("often", f"word{i}")]
        vocabulary.learn([column], {"note": texts}, len(texts))
        assert vocabulary.word("note", 0) == "often"
        assert len(json.dumps(vocabulary.to_json())) < 200

    def test_least_used_features_are_dropped(self, monkeypatch):
        monkeypatch.setattr(words, "MOST_FEATURES", 10)
        vocabulary, column = Vocabulary(), Text("note", 1 << 20)
        vocabulary.learn([column], {"note": ["common", *(f"word{i}" for i in range(40)), "common"] * 2}, 84)
        listed = vocabulary.to_json()["columns"]["note"]
        assert len(listed) <= 10 and any("common" in entry for entry in listed)

    def test_long_words_are_cut(self):
        vocabulary = Vocabulary()
        vocabulary.learn([Text("note", 1)], {"note": ["x" * 5000]}, 1)
        assert vocabulary.word("note", 0) == "x" * words.LONGEST_WORD

    @pytest.mark.parametrize(
        "plain",
        [
            [],
            {"rows": -1, "columns": {}},
            {"rows": True, "columns": {}},
            {"rows": 1, "columns": {"other": [[0, 1, "a", 1]]}},
            {"rows": 1, "columns": {"note": [[8, 1, "a", 1]]}},
            {"rows": 1, "columns": {"note": [[0, 1, "a", 1], [0, 1, "a", 1]]}},
            {"rows": 1, "columns": {"note": [[0, 1, "a", 2]]}},
            {"rows": 1, "columns": {"note": [[0, 1, "a"]]}},
            {"rows": 1, "columns": {"note": [[0, 2, "a", 1, "a", 1]]}},
            {"rows": 1, "columns": {"note": [[0, 3, "a", 1, "b", 1, "c", 1]]}},
            {"rows": 1, "columns": {"note": [[0, 1, 7, 1]]}},
            {"rows": 1, "columns": {"note": [[0, 1, "a" * 41, 1]]}},
            {"rows": 1, "columns": {"note": [[0, 0]]}},
            {"rows": 1, "columns": {"note": [[k, 1, "a", 1] for k in range(words.MOST_FEATURES + 1)]}},
        ],
    )
    def test_forged_vocabulary_is_rejected(self, plain):
        with pytest.raises((ValueError, KeyError, TypeError)):
            vocabulary_from_json(plain, {"note": 8})

    def test_recipe_of_earlier_release_has_no_words(self, tmp_path):
        frame = pd.DataFrame({"note": ["a b c d e", "f g h i j"] * 6})
        model = MLCA(columns={"note": "text"}).fit(frame, [{"a"}, {"b"}] * 6)
        recipe_of(model).words = Vocabulary()
        model.save(tmp_path / "m.mlca")
        assert set(load(tmp_path / "m.mlca").get_feature_names_out()) >= {"note: #0", "note: #7"}
