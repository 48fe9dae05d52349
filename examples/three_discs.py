"""Learn the paper's synthetic stream disc by disc while labels appear, and draw the model.

Three overlapping discs are learned one after another. The label of the second disc is new when its rows arrive. Nothing
is retrained, and nothing learned before is lost. `make demo` runs this.
"""

from pathlib import Path

from mlca import MLCA
from mlca.datasets import three_discs
from mlca.metrics import exact_match
from mlca.plots import plot_nodes

# Masuyama et al. (2023), continual learning of three distributions: means of 20 runs.
PAPER = [(703.3, 1.000), (1183.5, 0.958), (1552.4, 0.909)]
DISCS = ["left", "right", "top"]


def main() -> None:
    """Learn, print a line per disc, and write a picture."""
    model = MLCA.published(vigilance=0.1)  # the paper's algorithm, to be compared with the paper
    print("labels known        nodes (paper)    exact match (paper)")
    for stage, (nodes, match) in zip(three_discs(condition="three", random_state=0), PAPER, strict=True):
        model.partial_fit(stage.X, [{DISCS[j] for j in row.nonzero()[0]} for row in stage.Y])
        found = exact_match(stage.Y_test, model.predict(stage.X_test))
        known = ", ".join(model.classes_)
        print(f"{known:<17} {model.n_nodes_:>6} ({nodes:>6})          {found:.3f} ({match:.3f})", flush=True)
    picture = Path("demo") / "three_discs.png"
    picture.parent.mkdir(exist_ok=True)
    axes = plot_nodes(model)
    axes.set_title(f"{model.n_nodes_} nodes after {model.n_seen_:,} rows, by the labels they predict")
    axes.figure.savefig(picture, dpi=120)
    print(f"\nThe nodes, coloured by the label set that each predicts: {picture}")


if __name__ == "__main__":
    main()
