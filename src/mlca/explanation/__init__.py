"""Explanation of a prediction: the nodes that voted, and the steps from votes to probabilities.

`explained_row` makes an `Explanation` from the result of the learner. It has the reasons for each label: words,
categories, ranges of numbers, missing values and the votes of the nearest nodes. `explanation_text` shows it in a
terminal, `explanation_html` in a notebook; `mlca.plots.plot_contributions` draws it.
"""

from mlca.explanation.explained_row import Explanation, experts_of, inputs_of

__all__ = ["Explanation", "experts_of", "inputs_of"]
