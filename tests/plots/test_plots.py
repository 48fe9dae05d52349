import re
import subprocess
import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mlca import MLCA
from mlca.datasets import three_discs
from mlca.metrics import Alarm, Prequential, Record, StreamMeasures, prequential
from mlca.plots import (
    plot_contributions,
    plot_critical_difference,
    plot_folds,
    plot_grid,
    plot_nodes,
    plot_stream,
    plot_trust,
)
from mlca.plots.style import ACCENT, COLOURS, MARKERS
from mlca.statistics import nemenyi_test
from tests.plots.render import assert_told_apart_in_grey, assert_well_drawn, pixels

LONG_NAMES = [
    "MLCA (V = 0.01)",
    "MLCA-I (V = 0.01)",
    "MLCA-C (V = 0.01)",
    "MLCA (V = 0.30)",
    "MLCA-I (V = 0.15)",
    "MLCA-C (V = 0.25)",
    "ML-kNN",
    "MLSA-kNN",
    "MCIC",
    "MuENL",
    "mlODM",
    "mlODM, attributes scaled to [0, 1]",
    "GLOCAL",
    "GLOCAL, attributes scaled to [0, 1]",
    "binary relevance with linear support vector machines",
    "a classifier chain of Hoeffding trees in random order",
]


def ranked(n_algorithms, n_datasets=16, step=0.4, seed=0):
    """Return a Nemenyi test of algorithms, each slightly worse than the one before."""
    noise = np.random.default_rng(seed).normal(size=(n_datasets, n_algorithms))
    return nemenyi_test(step * np.arange(n_algorithms) + noise, "lower", names=LONG_NAMES[:n_algorithms])


class TestCriticalDifference:
    @pytest.mark.parametrize("step", [0.0, 0.2, 1.0])
    @pytest.mark.parametrize("n_algorithms", [2, 3, 9, 14, 16])
    def test_texts_do_not_overlap_for_any_number_of_algorithms(self, n_algorithms, step):
        assert_well_drawn(plot_critical_difference(ranked(n_algorithms, step=step)).figure)

    def test_ruler_longer_than_the_scale_stays_within_it(self):
        result = ranked(3, n_datasets=2)
        assert result.critical_difference > 2
        ax = plot_critical_difference(result)
        assert_well_drawn(ax.figure)
        best = next(text.get_position()[0] for text in ax.texts if text.get_text() == "1")
        assert max(line.get_xdata()[-1] for line in ax.lines if line.get_marker() == "|") <= best + 1e-9

    @pytest.mark.parametrize("size", [(5, 3), (14, 2.4), (12, 8)])
    def test_diagram_fits_the_given_axes(self, size):
        figure, ax = plt.subplots(figsize=size)
        assert plot_critical_difference(ranked(14), ax=ax) is ax
        assert_well_drawn(figure)

    def test_best_is_on_the_right_and_names_have_their_ranks(self):
        result = ranked(9, step=1.0)
        ax = plot_critical_difference(result)
        at = {text.get_text(): text.get_position() for text in ax.texts}
        order, average = result.best_first(), result.ranks.average()
        titles = [f"{result.ranks.names[i]} ({average[i]:.2f})" for i in order]
        assert at["1"][0] > at["2"][0] > at["9"][0]
        assert all(at[title][0] > at["1"][0] for title in titles[:5])
        assert all(at[title][0] < at["9"][0] for title in titles[5:])
        assert at[titles[0]][1] > at[titles[1]][1] and at[titles[-1]][1] > at[titles[-2]][1]

    def test_bars_span_the_groups_and_the_ruler_the_critical_difference(self):
        result = ranked(9, step=0.6)
        ax = plot_critical_difference(result)
        at = {text.get_text(): text.get_position()[0] for text in ax.texts}
        inch = at["1"] - at["2"]
        thick = [line for line in ax.lines if line.get_color() == ACCENT]
        average = dict(zip(result.ranks.names, result.ranks.average(), strict=True))
        overhang = 2 * 0.35 * 10 / 72
        lengths = [np.ptp(line.get_xdata()) for line in thick]
        groups = [inch * (average[group[-1]] - average[group[0]]) + overhang for group in result.groups()]
        assert len(thick) >= 2 and lengths == pytest.approx(groups)
        ruler = next(line for line in ax.lines if line.get_marker() == "|")
        assert np.ptp(ruler.get_xdata()) == pytest.approx(inch * result.critical_difference)

    def test_bars_on_one_height_do_not_touch(self):
        ax = plot_critical_difference(ranked(16, n_datasets=96, step=0.5))
        bars = [(line.get_ydata()[0], *line.get_xdata()) for line in ax.lines if line.get_color() == ACCENT]
        assert len(bars) > len({height for height, *_ in bars})
        for height, start, end in bars:
            others = [bar for bar in bars if bar[0] == height and bar[1:] != (start, end)]
            assert all(end < left or right < start for _, left, right in others)


class Discs:
    """Return a fitted model: nodes in the plane, labels by the disc they are in."""

    classes_ = np.array(["left", "right", "top"])
    centres = np.array([[0, 0], [1.1, 0], [0.55, 0.95]])

    def __init__(self, n_nodes=300):
        rng = np.random.default_rng(0)
        self.prototypes_ = rng.uniform(-1, 2, size=(n_nodes, 2))
        self.counts_ = rng.geometric(0.05, size=n_nodes)

    def predict(self, X):
        return (((X[:, np.newaxis] - self.centres) ** 2).sum(axis=2) < 1).astype(int)


class TestNodes:
    def test_nodes_are_grouped_by_label_set(self):
        model = Discs()
        ax = plot_nodes(model)
        assert_well_drawn(ax.figure)
        titles = [text.get_text() for text in ax.get_legend().get_texts()]
        assert titles[:4] == ["no label", "left", "right", "top"] and titles[-1] == "left + right + top"
        assert sum(len(group.get_offsets()) for group in ax.collections) == len(model.prototypes_)

    def test_every_node_of_mlca_is_drawn(self):
        (stage,) = three_discs(200, condition="together")
        model = MLCA(vigilance=0.1).fit(stage.X, stage.Y)
        ax = plot_nodes(model)
        assert_well_drawn(ax.figure)
        assert sum(len(group.get_offsets()) for group in ax.collections) == model.n_nodes_
        assert "0 + 1 + 2" in [text.get_text() for text in ax.get_legend().get_texts()]

    @pytest.mark.filterwarnings("error")
    def test_nodes_of_a_model_with_named_columns_are_drawn(self):
        X = np.random.default_rng(0).normal(size=(30, 2))
        ax = plot_nodes(MLCA().fit(pd.DataFrame(X, columns=["a", "b"]), X > 0))
        assert sum(len(drawn.get_offsets()) for drawn in ax.collections) == 30

    def test_legend_names_the_classes_of_one_class_per_row(self):
        X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + np.random.default_rng(0).normal(size=(60, 2))
        ax = plot_nodes(MLCA().fit(X, ["low"] * 30 + ["high"] * 30))
        assert {text.get_text() for text in ax.get_legend().get_texts()} == {"low", "high"}

    def test_many_nodes_get_smaller_markers(self):
        few, many = (plot_nodes(Discs(n)).collections[0].get_sizes().max() for n in (300, 3000))
        assert few > 5 * many

    def test_colour_follows_the_predicted_set_and_size_the_count(self):
        ax = plot_nodes([[0, 0], [1, 1], [2, 0]], [["b"], ["a", "b"], ["b"]], counts=[1, 5, 10])
        first, second = ax.collections
        assert first.get_offsets().tolist() == [[0, 0], [2, 0]]
        assert second.get_offsets().tolist() == [[1, 1]]
        small, large = first.get_sizes()
        assert small < second.get_sizes()[0] < large
        assert first.get_facecolor()[0].tolist() != second.get_facecolor()[0].tolist()

    @pytest.mark.parametrize("stretch", [(1, 1), (9, 1), (1, 9)])
    def test_label_sets_beyond_the_colours_share_a_legend_entry(self, stretch):
        rng = np.random.default_rng(1)
        names = [f"a label of a rather long name, {i}" for i in range(9)]
        sets = [set(rng.choice(names, size=rng.integers(0, 4), replace=False)) for _ in range(200)]
        ax = plot_nodes(rng.normal(size=(200, 2)) * stretch, sets)
        assert_well_drawn(ax.figure)
        titles = [text.get_text() for text in ax.get_legend().get_texts()]
        assert len(titles) == 12 and titles[-1].endswith("other sets")
        assert sum(len(group.get_offsets()) for group in ax.collections) == 200

    def test_nodes_are_drawn_on_the_given_axes(self):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4))
        assert plot_nodes(Discs(), ax=axes[0]) is axes[0]
        plot_nodes(Discs(20), ax=axes[1])
        assert_well_drawn(figure)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_more_features_are_projected_and_the_axes_say_so(self, form):
        """Two directions have most of the variance; the units of features do not matter."""
        rng = np.random.default_rng(0)
        plane = rng.normal(size=(60, 2)) * [3, 1]
        X = plane @ rng.normal(size=(2, 40)) + rng.normal(scale=0.01, size=(60, 40))
        model = MLCA(vigilance=0.0).fit(form(X), (plane > 0).astype(int))
        ax = plot_nodes(model)
        assert_well_drawn(ax.figure)
        said = re.compile(r"principal component (\d) of ranks: (\d+) % of the variance")
        names = [said.fullmatch(name) for name in (ax.get_xlabel(), ax.get_ylabel())]
        assert [name[1] for name in names] == ["1", "2"]
        assert sum(int(name[2]) for name in names) > 80
        assert sum(len(group.get_offsets()) for group in ax.collections) == 60
        drawn = plot_nodes(form(X), [[]] * 60).collections[0].get_offsets()
        scaled = plot_nodes(form(X * 2.0 ** np.arange(40)), [[]] * 60).collections[0].get_offsets()
        np.testing.assert_allclose(np.sort(np.abs(drawn), axis=0), np.sort(np.abs(scaled), axis=0), atol=1e-8)

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_outliers_do_not_compress_the_others(self, form):
        X = np.random.default_rng(0).normal(size=(100, 5))
        X[0] = 1e6
        places = plot_nodes(form(X), [[]] * 100).collections[0].get_offsets()
        assert np.ptp(places[1:], axis=0).min() > 0.5 * np.ptp(places, axis=0).max()

    def test_missing_values_are_drawn_at_the_mean(self):
        X = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [2.0, 0.0, 1.0], [np.nan, np.nan, np.nan]])
        ax = plot_nodes(X, [[]] * 4)
        np.testing.assert_allclose(ax.collections[0].get_offsets()[3], 0, atol=1e-9)

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match=r"at least two features; got positions of shape \(2, 1\)"):
            plot_nodes(np.zeros((2, 1)), [[], []])
        with pytest.raises(ValueError, match="a node map of 3 features needs at least 3 nodes, got 2; pass more"):
            plot_nodes(np.zeros((2, 3)), [[], []])
        with pytest.raises(ValueError, match="2 nodes, but 1 label sets"):
            plot_nodes(np.zeros((2, 2)), [[]])
        with pytest.raises(ValueError, match="object has no prototypes_, counts_, classes_"):
            plot_nodes(object())


def run(appeared, n_records=40, rate=1.0):
    def measures(value):
        return StreamMeasures(value, value, value, 1 - value, value)

    records = tuple(
        Record(100 * i, measures(1 - 0.5 / (rate * i) ** 0.5), measures(1 - 0.5 / i), 3, i, 1e4, 100)
        for i in range(1, n_records + 1)
    )
    return Prequential(records, appeared, window=500)


APPEARED = {"sea": 0, "sun": 850, "a label whose name goes on and on": 1900, "snow": 3000}


def marked_rows(ax):
    offsets = [group.get_offsets() for group in ax.collections[1:]]
    return [points[:, 0].tolist() for points in offsets if len(points)]


class TestStream:
    def test_one_run_has_two_curves_and_marks_of_new_labels(self):
        ax = plot_stream(run(APPEARED))
        assert_well_drawn(ax.figure)
        assert [line.get_label() for line in ax.lines] == ["last 500 rows", "all rows so far"]
        assert ax.lines[0].get_ydata()[0] == 0.5
        marks = [segment[0][0] for segment in ax.collections[0].get_segments()]
        assert marks == [0, 850, 1900, 3000]

    def test_numbered_labels_are_annotated_by_number(self):
        ax = plot_stream(run({0: 0, 1: 2000}))
        assert [text.get_text() for text in ax.texts] == ["label 0", "label 1"]

    def test_several_runs_have_distinct_windowed_curves(self):
        runs = {name: run(APPEARED, rate=1 + i) for i, name in enumerate(LONG_NAMES[10:15])}
        ax = plot_stream(runs, "hamming_loss")
        assert_well_drawn(ax.figure)
        assert ax.get_ylabel() == "Hamming loss (lower is better)"
        assert [line.get_ydata()[0] for line in ax.lines] == [0.5] * 5  # the windowed curves
        looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.lines}
        assert len(looks) == 5

    def test_a_thousand_labels_are_summarised(self):
        ax = plot_stream(run({f"label {i}": int(4 * i * (i / 1000)) for i in range(1000)}))
        assert_well_drawn(ax.figure)
        assert any(text.get_text().endswith(" labels") for text in ax.texts)

    def test_alarms_are_marked_where_they_were_raised(self):
        alarms = (
            Alarm(900, "new label", "sun"),
            Alarm(1200, "drift", None, "exact_match", 0.9, 0.5),
            Alarm(1230, "drift", "sea", "jaccard", 0.9, 0.5),
            Alarm(2000, "novelty", None, "novelty", 0.5, 0.9),
        )
        one = replace(run(APPEARED), alarms=alarms)
        ax = plot_stream(one)
        assert_well_drawn(ax.figure)
        assert marked_rows(ax) == [[1200, 1230], [2000]]
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == ["last 500 rows", "all rows so far", "drift", "novelty rising"]
        ax = plot_stream({"quiet": run(APPEARED), "alarmed": replace(run(APPEARED), alarms=alarms[:2])})
        assert marked_rows(ax) == [[1200]]
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == ["quiet", "alarmed", "drift"]

    def test_stream_is_drawn_on_the_given_axes(self):
        figure, ax = plt.subplots()
        assert plot_stream(run(APPEARED), ax=ax) is ax
        assert_well_drawn(figure, apart=False)  # names are inside the Axes, where the legend may be

    @pytest.mark.parametrize("value", [0.0, 0.5, 0.93, 1.0])
    def test_axis_of_a_constant_measure_spans_0_2(self, value):
        whole = StreamMeasures(value, value, value, value, value)
        records = tuple(Record(n, whole, whole, 2, None, 1e4, 100) for n in (100, 200))
        low, high = plot_stream(Prequential(records, {"sea": 0}, window=100)).get_ylim()
        assert high - low == pytest.approx(0.2) and low < value < high

    def test_run_without_records_is_drawn(self):
        assert_well_drawn(plot_stream(Prequential((), {}, 10)).figure)

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match="'accuracy' is not a measure: choose one of exact_match"):
            plot_stream(run({}), "accuracy")
        with pytest.raises(ValueError, match="prequential does not record 'macro_auc'"):
            plot_stream(run({}), "macro_auc")
        with pytest.raises(ValueError, match="no runs to draw"):
            plot_stream({})


class TestGrid:
    VALUES = np.round(np.random.default_rng(0).random((6, 9)), 3)
    ROWS, COLUMNS = [2, 5, 10, 20, 50, 100], [round(0.05 * i, 2) for i in range(9)]

    @pytest.mark.parametrize("measure", ["exact_match", "hamming_loss"])
    def test_best_result_is_framed_and_texts_do_not_overlap(self, measure):
        values = self.VALUES.copy()
        values[2, 3] = np.nan
        ax = plot_grid(values, self.ROWS, self.COLUMNS, measure, row_title="n_neighbors", column_title="V")
        assert_well_drawn(ax.figure)
        frame = ax.patches[-1]
        best = np.nanmax(values) if measure == "exact_match" else np.nanmin(values)
        column, row = round(frame.get_x() + 0.45), round(frame.get_y() + 0.45)
        assert values[row, column] == best
        assert sum(bool(patch.get_hatch()) for patch in ax.patches) == 1

    def test_better_results_are_brighter_in_either_direction(self):
        for measure, best in (("exact_match", 1), ("hamming_loss", 0)):
            ax = plot_grid([[0.0, 1.0]], ["a"], ["b", "c"], measure)
            image = ax.images[0]
            lightness = image.cmap(image.norm(np.array([0.0, 1.0])))[:, :3].sum(axis=1)
            assert lightness.argmax() == best
            assert [text.get_color() for text in ax.texts] == ["black" if i == best else "white" for i in (0, 1)]

    def test_grid_of_missing_results_with_long_names_is_drawn(self):
        ax = plot_grid(np.full((3, 2), np.nan), LONG_NAMES[:3], LONG_NAMES[14:16])
        assert_well_drawn(ax.figure)

    def test_grid_is_drawn_on_the_given_axes(self):
        figure, ax = plt.subplots(figsize=(7, 4))
        assert plot_grid(self.VALUES, self.ROWS, self.COLUMNS, ax=ax) is ax
        assert_well_drawn(figure)

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match=r"shape \(1, 2\), but rows and columns have 2 and 2 entries"):
            plot_grid([[1, 2]], [1, 2], [1, 2])


class TestFolds:
    def test_algorithms_are_drawn_in_order_without_overlapping_texts(self):
        results = {name: 0.5 + 0.02 * np.sin(np.arange(20) + i) for i, name in enumerate(LONG_NAMES)}
        ax = plot_folds(results, "hamming_loss")
        assert_well_drawn(ax.figure)
        assert [label.get_text() for label in ax.get_yticklabels()] == LONG_NAMES
        assert ax.yaxis.get_inverted()  # the first at the top

    def test_missing_folds_are_left_out(self):
        ax = plot_folds({"some": [0.1, np.nan, 0.3], "none": [np.nan], "one": [0.2]})
        assert_well_drawn(ax.figure)
        points = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]
        assert points == [[0.1, 0.3], [], [0.2]]

    def test_folds_are_drawn_on_the_given_axes(self):
        figure, ax = plt.subplots(layout="constrained")
        assert plot_folds({"a": [1, 2], "b": [2, 3]}, ax=ax) is ax
        assert_well_drawn(figure)

    def test_invalid_input_is_rejected(self):
        with pytest.raises(ValueError, match="no results to draw"):
            plot_folds({})


class TestTrust:
    MEASURED = StreamMeasures(0.5, 0.5, 0.5, 0.5, 0.5)

    def run_of_segments(self, *segments):
        records = [
            Record(100 * (i + 1), self.MEASURED, self.MEASURED, 2, None, 1.0, 1, own) for i, own in enumerate(segments)
        ]
        return Prequential(tuple(records), {}, 100)

    def test_trust_of_a_returned_concept_rises_again(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (1200, 2))
        Y = np.column_stack((X[:, 0] > 0, X[:, 0] <= 0)).astype(np.uint8)
        Y[400:800] = Y[400:800, ::-1]
        model = MLCA(drift="follow")
        result = prequential(model, ((X[i : i + 1], Y[i : i + 1]) for i in range(1200)), every=100, alarms=False)
        assert result.records[-1].segments == model.segments_
        oldest = [record.segments[0][1] for record in result.records]
        assert max(oldest[5:8]) < 0.2 < 0.8 < min(oldest[9:])
        assert [one[1] for one in model.segments_] == model.explain(X[0]).trust.tolist()
        assert f"oldest first: {oldest[-1]:.2f}, " in str(model.explain(X[0]))
        assert_well_drawn(plot_trust(result).figure)

    def test_voting_segments_are_coloured_and_others_grey(self):
        result = self.run_of_segments(((0, 0.5),), ((0, 0.5), (128, 0.8)))
        figure, ax = plt.subplots(layout="constrained")
        assert plot_trust(result, ax=ax) is ax
        grey, coloured = (mesh.get_array().filled(np.nan) for mesh in ax.collections)
        nothing = np.nan
        np.testing.assert_array_equal(grey, [[nothing, 0.5], [nothing, 0.5], [nothing, nothing]])
        np.testing.assert_array_equal(coloured, [[0.5, nothing], [nothing, nothing], [nothing, 0.8]])
        assert_well_drawn(figure)

    def test_model_without_segments_is_rejected(self):
        assert MLCA().fit([[0.0], [1.0]], [["a"], ["b"]]).segments_ == ()
        with pytest.raises(ValueError, match="no record has segments"):
            plot_trust(self.run_of_segments((), ()))


class TestNamesAreNotFormulas:
    """Names are drawn literally: with dollars, underscores and control characters."""

    NAMES = ("$AAPL up $", "_rare", "$\\frac{", "\ud800")

    def test_names_of_nodes_are_drawn_literally(self):
        ax = plot_nodes(np.eye(4)[:, :2], [{name} for name in self.NAMES])
        assert_well_drawn(ax.figure)
        drawn = {text.get_text() for text in ax.get_legend().get_texts()}
        assert drawn == {r"\$AAPL up \$", " _rare", r"\$\frac{", r"\ud800"}

    def test_names_of_runs_and_labels_are_drawn_literally(self):
        appeared = {name: 900 * i for i, name in enumerate(self.NAMES)}
        ax = plot_stream({name: run(appeared) for name in self.NAMES})
        assert_well_drawn(ax.figure)
        assert len(ax.get_legend().get_texts()) == 4

    def test_names_of_algorithms_and_parameters_are_drawn_literally(self):
        assert_well_drawn(plot_folds({name: [0.1, 0.2] for name in self.NAMES}).figure)
        assert_well_drawn(plot_grid(np.eye(4), self.NAMES, self.NAMES).figure)
        ranks = nemenyi_test(np.random.default_rng(0).normal(size=(9, 4)), names=list(self.NAMES))
        assert_well_drawn(plot_critical_difference(ranks).figure)


class TestStyle:
    def test_neighbouring_colours_differ_in_greyscale(self):
        assert_told_apart_in_grey(COLOURS)

    def test_colours_and_markers_repeat_at_different_lengths(self):
        """Otherwise two of eleven label sets could share both."""
        looks = {(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(11)}
        assert len(looks) == 11

    def test_plots_are_reproducible(self):
        one, other = (pixels(plot_nodes(Discs()).figure) for _ in range(2))
        assert np.array_equal(one, other)

    def test_first_plot_imports_matplotlib(self):
        program = "import sys, mlca.plots; sys.exit('matplotlib' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

    def test_missing_matplotlib_is_reported_with_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(ImportError, match=r'pip install "mlca\[plots\]"'):
            plot_folds({"a": [1, 2]})


class TestContributions:
    def explanation(self, **parameters):
        X = np.random.default_rng(0).normal(size=(200, 3))
        return MLCA(**parameters).fit(X, [{"$high_"} if x > 0 else set() for x in X[:, 0]]).explain([1.5, 0.0, -2.0])

    def test_bars_show_the_largest_reasons_and_the_sum_of_the_others(self):
        explained = self.explanation()
        ax = plot_contributions(explained, most=3)
        reasons = explained.reasons()
        sizes = [bar.get_width() for bar in ax.patches]
        assert sizes[:3] == [added for _, added in reasons[:3]]
        assert sum(sizes) == pytest.approx(explained.logits[1]) and len(sizes) == 4
        assert ax.get_yticklabels()[-1].get_text() == f"{len(reasons) - 3} others"
        assert ax.get_title().startswith(r"\$high_: probability ") and ax.get_xlabel() == "added to the logit"

    def test_votes_are_drawn_if_there_are_no_contributions(self):
        ax = plot_contributions(self.explanation(decision="calibrated"), "$high_")
        assert ax.get_xlabel() == "part of the votes" and ax.get_yticklabels()[0].get_text().startswith("node ")
