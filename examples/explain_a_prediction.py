"""Ask a model why: which prototypes voted, what they stand for, and how votes became a probability.

A model learns three overlapping discs. Of two points, one deep inside a region and one at a border, the
explanation is printed, and the probabilities are computed again by hand from their parts.
"""

import numpy as np

from mlca import MLCA, Explanation
from mlca.datasets import three_discs

DISCS = ["left", "right", "top"]


def by_hand(told: Explanation) -> np.ndarray:
    """Compute the probabilities: shares of the votes, how often such shares came true, and a little background."""
    of_nodes = told.label_counts / told.counts[:, None]
    shares = told.weights @ of_nodes / told.weights.sum()
    return 0.9 * (shares + told.calibrated[1:]) / 2 + 0.1 * told.background[1:]


def main() -> None:
    """Learn, explain two points, and check the arithmetic."""
    (stage,) = three_discs(3000, random_state=0)
    model = MLCA(vigilance=0.1)
    model.fit(stage.X, [[DISCS[j] for j in row.nonzero()[0]] for row in stage.Y])
    print(f"{model.n_nodes_} nodes stand for {model.n_seen_:,} rows.")

    for place, point in {"deep inside the left disc": [-0.6, -0.3], "at the right disc's border": [0.12, 0.25]}.items():
        told = model.explain(point)
        print(f"\nA point {place}, {point}: {', '.join(sorted(map(str, told.predicted)))}\n\n{told}\n")
        assert np.array_equal(told.posterior, model.predict_proba([point])[0])
        assert np.allclose(told.posterior, by_hand(told), rtol=1e-9)
        nearest = model.weights_[told.nodes[0]]
        print(f"The nearest prototype is {np.round(nearest, 3).tolist()}, of {told.counts[0]} rows.")
        unsure = told.labels[np.argmin(np.abs(told.posterior - 0.5))]
        print(f"The label decided most narrowly is {unsure!r}.")
    print("\nThe probabilities of both follow from the numbers above, checked.")


if __name__ == "__main__":
    main()
