"""Show the contents of a model: parameters, nodes, growth, memory, column importance.

Each label is shown with its number of rows, its most typical nodes, and the columns with the strongest effect on it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mlca.cli.tablefiles import add_model_argument, load_with_recipe_if_any
from mlca.messages import shown, sparkline

if TYPE_CHECKING:
    from mlca.classifier import MLCA
    from mlca.tables.recipe import Recipe

_SHOWN_LABELS = 20
_TYPICAL_NODES = 3
_N_INFORMATIVE = 5
_SHOWN_CONTRIBUTIONS = 10
_STRONGEST_COLUMNS = 5
_SHARES_OF_ROWS = (0.5, 0.9, 0.99)

# Largest number of columns that are listed.
_SHOWN_COLUMNS = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_model_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, with all labels")


def run(args: argparse.Namespace) -> int:
    """Print the contents of the model; return the exit code."""
    model, recipe = load_with_recipe_if_any(args.model)
    facts = _facts(model, recipe, args.model)
    print(json.dumps(facts) if args.json else "\n".join(_in_words(facts)))
    return 0


def _facts(model: MLCA, recipe: Recipe | None, path: str) -> dict[str, Any]:
    from mlca.frames import contributions_of_columns
    from mlca.metrics.stream.prequential import pickled_size

    counts = model.counts_
    return {
        "model": path,
        "rows": model.n_seen_,
        "nodes": model.n_nodes_,
        "nodes_of_one_row": int((counts == 1).sum()),
        "rows_of_largest_node": int(counts.max(initial=0)),
        "rows_represented": int(counts.sum()),
        "features": model.prototypes_.shape[1],
        "sparse": hasattr(model.prototypes_, "indptr"),
        "file_bytes": Path(path).stat().st_size,
        "memory_bytes": pickled_size(model),
        "parameters": model.get_params(),
        "vigilance": model.vigilance_,
        "input_weights": _input_weights(model),
        "contributions": contributions_of_columns(model),
        "nearest_within": _nearest_within(model),
        "growth": [] if recipe is None else [note._asdict() for note in recipe.growth],
        "recipe": None if recipe is None else recipe.layout.to_json(),
        "columns": _columns(model, recipe),
        "labels": _label_facts(model, recipe),
    }


def _columns(model: MLCA, recipe: Recipe | None) -> list[dict[str, Any]]:
    from mlca.tables.layout import TableLayout

    return model.columns_.to_json() if recipe is not None and isinstance(recipe.layout, TableLayout) else []


def _nearest_within(model: MLCA) -> dict[str, float]:
    """Return the distances from the nearest node within which 50, 90 and 99 % of rows lie."""
    import numpy as np

    distances = model.nearest_distances_ if model.decision != "bayes" else np.zeros(0)
    total = distances.sum()
    if not total:
        return {}
    reached = np.cumsum(distances) / total
    ends = np.searchsorted(reached, np.array(_SHARES_OF_ROWS) - 1e-12) + 1
    return {f"{share:g}": float(end / len(distances)) for share, end in zip(_SHARES_OF_ROWS, ends, strict=True)}


def _input_weights(model: MLCA) -> dict[str, float]:
    """Return the weights of the mixer's inputs by name; empty if the model has no mixer."""
    from mlca.explanation import inputs_of

    parameters, state = model._learner.parameters, model._learner.settled().state("none")
    if parameters.decision != "mixed":
        return {}
    return dict(zip(inputs_of(parameters.recency), state["mixer.weights"].tolist(), strict=True))


def _linear_model(model: MLCA) -> Any:
    """Return a function that maps a label to the largest weights of its linear model."""
    import numpy as np

    from mlca.explanation import BIAS, name_of_weight
    from mlca.frames import feature_names

    learner = model._learner.settled()
    if learner.parameters.decision != "mixed":
        return lambda label: {}
    state, naming, edges = learner.state(), feature_names(model), learner.cell_edges()
    features, kinds, values = (state[f"linear.{part}"].tolist() for part in ("features", "kinds", "values"))
    # The first two columns are the models of unseen labels and of "no label".
    columns = {slot - 1: column for column, slot in enumerate(state["decision.arrived"].tolist(), start=2)}

    def weights_of(label: int) -> dict[str, float]:
        if label not in columns:
            return {}
        weights = state["linear.weights"][:, columns[label]]
        strongest = np.argsort(-np.abs(weights), kind="stable")[: _STRONGEST_COLUMNS + 1].tolist()
        named = {
            name_of_weight(features[i], kinds[i], values[i], naming, edges): float(weights[i])
            for i in strongest
            if weights[i]
        }
        named.pop(BIAS, None)
        return dict(list(named.items())[:_STRONGEST_COLUMNS])

    return weights_of


def _scorer(model: MLCA) -> Any:
    """Return a function that maps a label to the columns with the largest scores."""
    from mlca.frames import feature_names
    from mlca.tables.informative import dense_row

    if model.similarity != "learned":
        return lambda label: {}
    name_of, background = feature_names(model).name, model.background_coef_

    def scores_of(label: int) -> dict[str, float]:
        import numpy as np

        scores = dense_row(background, label)
        strongest = np.argsort(-np.abs(scores), kind="stable")[:_STRONGEST_COLUMNS].tolist()
        return {name_of(place): float(scores[place]) for place in strongest if scores[place]}

    return scores_of


def _label_facts(model: MLCA, recipe: Recipe | None) -> list[dict[str, Any]]:
    """Return rows, typical nodes and strongest columns of each label, most frequent first."""
    import numpy as np

    by_label, counts, n_seen = model.label_counts_.tocsc(), model.counts_, model.n_seen_
    totals = np.asarray(by_label.sum(axis=0)).ravel()
    names, describe, scores_of = model.classes_.tolist(), _describer(model, recipe), _scorer(model)
    weights_of = _linear_model(model)
    facts = []
    for column in np.argsort(-totals, kind="stable").tolist():
        nodes = by_label.indices[by_label.indptr[column] : by_label.indptr[column + 1]]
        with_label = by_label.data[by_label.indptr[column] : by_label.indptr[column + 1]]
        # A typical node represents many rows with the label and few without it.
        best = np.argsort(-(with_label * with_label / counts[nodes]), kind="stable")[:_TYPICAL_NODES]
        facts.append(
            {
                "label": names[column],
                "rows": int(totals[column]),
                "share": float(totals[column] / max(1, n_seen)),
                "typical_nodes": [
                    {
                        "node": int(nodes[i]),
                        "rows": int(counts[nodes[i]]),
                        "with_label": int(with_label[i]),
                        "values": describe(int(nodes[i])),
                    }
                    for i in best
                ],
                "speaks": scores_of(column),
                "linear": weights_of(column),
            }
        )
    return facts


def _describer(model: MLCA, recipe: Recipe | None) -> Any:
    """Return a function that maps a node to its most unusual values, in original units."""
    from mlca.tables.feature_names import FeatureNames
    from mlca.tables.informative import InformativeColumns, dense_row

    if recipe is None:
        return lambda node: {}
    weights = model.prototypes_
    informative = InformativeColumns(FeatureNames(recipe.layout, recipe.words), weights)

    def describe(node: int) -> dict[str, str]:
        row = dense_row(weights, node)
        return {
            informative.name(place): informative.in_words(row, place)
            for place in informative.most_unusual(row, _N_INFORMATIVE)
        }

    return describe


def _in_words(facts: dict[str, Any]) -> list[str]:
    rows, nodes = facts["rows"], facts["nodes"]
    parameters = ", ".join(f"{name} {shown(value)}" for name, value in facts["parameters"].items())
    return [
        shown(facts["model"]),
        f"  rows        {rows:,}",
        f"  nodes       {nodes:,}: {rows / max(1, nodes):.1f} rows per node; {facts['nodes_of_one_row']:,} of 1 row, "
        f"at most {facts['rows_of_largest_node']:,}; {facts['rows_represented']:,} rows in all nodes",
        f"  columns     {_columns_in_words(facts)}",
        *_table_of_columns(facts["columns"]),
        f"  memory      {(facts['memory_bytes'] or 0) / 1e6:.2f} MB, file {facts['file_bytes'] / 1e6:.2f} MB",
        *wrap(parameters, 80, initial_indent="  parameters  ", subsequent_indent=" " * 14),
        f"  vigilance   {facts['vigilance']:.4g}",
        *_mixer_in_words(facts["input_weights"]),
        *_similarity_in_words(facts),
        *_growth_in_words(facts["growth"]),
        "",
        *_labels_in_words(facts["labels"]),
    ]


def _columns_in_words(facts: dict[str, Any]) -> str:
    recipe, matrix = facts["recipe"], f"{facts['features']:,} {'sparse ' if facts['sparse'] else ''}features"
    if recipe is None:
        return f"{matrix}; not trained by `mlca train`, so their names and kinds are unknown"
    if recipe["layout"] == "xc":
        return f"{matrix}, XC text numbered from {recipe['first']}"
    kinds = [column["kind"] for column in recipe["columns"]]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds)) + f": {matrix}"


def _table_of_columns(columns: list[dict[str, Any]]) -> list[str]:
    from mlca.tables.column_table import ColumnSummary, ColumnTable

    if not columns:
        return []
    table = str(ColumnTable(ColumnSummary(**column) for column in columns[:_SHOWN_COLUMNS]))
    more = [f"and {len(columns) - _SHOWN_COLUMNS:,} more, which --json lists"] if len(columns) > _SHOWN_COLUMNS else []
    return [f"              {shown(line)}" for line in [*table.splitlines(), *more]]


def _mixer_in_words(weights: dict[str, float]) -> list[str]:
    named = ", ".join(f"{name} {weight:.3f}" for name, weight in weights.items())
    return [f"  mixer       {named} (weights of the inputs)"] if named else []


def _similarity_in_words(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts["contributions"]:
        largest = list(facts["contributions"].items())[:_SHOWN_CONTRIBUTIONS]
        named = ", ".join(f"{shown(name)} {share:.1%}" for name, share in largest)
        lines.append(f"  importance  {named} (permutation importance)")
    if facts["nearest_within"]:
        within = ", ".join(f"{float(part):.0%} within {end:.2f}" for part, end in facts["nearest_within"].items())
        lines.append(f"  novelty     distance of new rows to their nearest node: {within}")
    return lines


def _growth_in_words(growth: list[dict[str, int]]) -> list[str]:
    if not growth:
        return []
    nodes, last = [note["nodes"] for note in growth], growth[-1]
    half = min(growth, key=lambda note: abs(note["rows"] - last["rows"] / 2))
    return [
        f"  growth      {sparkline(nodes, max(nodes), 40)} nodes, from {growth[0]['nodes']:,} after "
        f"{growth[0]['rows']:,} rows to {last['nodes']:,} after {last['rows']:,}",
        f"              {half['nodes']:,} nodes and {half['labels']:,} labels after {half['rows']:,} rows",
    ]


def _labels_in_words(labels: list[dict[str, Any]]) -> list[str]:
    listed = labels[:_SHOWN_LABELS]
    width = max((len(shown(label["label"])) for label in listed), default=0)
    lines = [f"{len(labels):,} labels by frequency, with their most typical nodes"]
    for label in listed:
        lines.append(f"  {shown(label['label']):<{width}}  {label['rows']:,} rows, {label['share']:.1%}")
        for node in label["typical_nodes"]:
            values = ", ".join(f"{shown(name)} {shown(value)}" for name, value in node["values"].items())
            lines.append(f"      node {node['node']}: {node['with_label']:,} of {node['rows']:,} rows; {values}")
        if label["speaks"]:
            columns = ", ".join(f"{shown(name)} {score:+.2f}" for name, score in label["speaks"].items())
            lines.append(f"      evidence for (+) and against (-) the label: {columns}")
        if label["linear"]:
            terms = ", ".join(f"{shown(name)} {weight:+.2f}" for name, weight in label["linear"].items())
            lines.append(f"      largest weights of the linear model: {terms}")
    if len(labels) > len(listed):
        lines.append(f"  and {len(labels) - len(listed):,} more, which --json lists")
    return lines
