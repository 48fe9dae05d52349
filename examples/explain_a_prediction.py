"""Explain predictions: which prototypes voted, and how the probabilities follow from their votes.

A model learns three overlapping discs. The script prints the explanation of two points, one deep inside a region and
one at a border, and recomputes their probabilities from the parts.
"""

import numpy as np

from mlca import MLCA, Explanation
from mlca.datasets import three_discs

DISCS = ["left", "right", "top"]


def recompute(explanation: Explanation) -> np.ndarray:
    """Return the probabilities of the labels: the logistic function of the sum of their contributions."""
    logits = explanation.contributions[1:].sum(axis=1)  # the first row is "no label"
    return 1 / (1 + np.exp(-logits))


def main() -> None:
    """Learn, explain two points, and check the arithmetic."""
    (stage,) = three_discs(3000, random_state=0)
    model = MLCA(vigilance=0.1)
    model.fit(stage.X, [[DISCS[j] for j in row.nonzero()[0]] for row in stage.Y])
    print(f"{model.n_nodes_} nodes stand for {model.n_seen_:,} rows.")

    for place, point in {"deep inside the left disc": [-0.6, -0.3], "at the right disc's border": [0.12, 0.25]}.items():
        why = model.explain(point)
        print(f"\nA point {place}, {point}: {', '.join(sorted(map(str, why.predicted)))}\n\n{why}\n")
        assert np.array_equal(why.posterior, model.predict_proba([point])[0])
        assert np.allclose(why.posterior, recompute(why), rtol=1e-6)
        nearest = model.prototypes_[why.nodes[0]]
        print(f"The nearest prototype is {np.round(nearest, 3).tolist()}; it stands for {why.counts[0]} rows.")
        unsure = why.labels[np.argmin(np.abs(why.posterior - 0.5))]
        print(f"The most uncertain label is {unsure!r}.")
    print("\nThe probabilities of both points follow from the numbers above.")


if __name__ == "__main__":
    main()
