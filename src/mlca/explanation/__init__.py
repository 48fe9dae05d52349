"""Explanation of a prediction: the voters, and the steps from votes to probabilities.

`explained_row` makes an `Explanation` from the result of the learner. An explanation lists the reasons for each label:
words, categories, ranges of numbers, missing values and the votes of the nearest nodes. `explanation_text` converts it
to text, `explanation_html` to HTML for notebooks; `mlca.plots.plot_contributions` draws it.
"""

from mlca.explanation.explained_row import BIAS, Explanation, experts_of, inputs_of, name_of_weight

__all__ = ["BIAS", "Explanation", "experts_of", "inputs_of", "name_of_weight"]
