"""The algorithm in plain Python and NumPy: written to be read, slow, and equal to `mlca.MLCA` bit for bit.

No compiled code of mlca is imported here. The compiled learner must equal this one in every bit of what it holds and
predicts (`tests/learner/test_reference.py`).

One row, x with its labels, goes through `algorithm.MLCA`:

1. The first `window` rows wait until there are that many; then each row is learned when it arrives.
2. *Nearest nodes.* The paper's distance (`paper.Memory.distances`) decides which node the row belongs to. The nodes
   that vote are the nearest by the learned similarity (`similarity.LearnedSimilarity.distances`): differences of
   ranks, where features that separate labels weigh more.
3. *Prediction.* The votes of these nodes give each label a share, and shares become probabilities by the observed
   frequency of such shares (`decision.Calibrated`). A tenth of each probability comes from a linear score of the label.
   A mixer adds the logits of these votes, of a linear model per label and of the label's frequency (`mixed.Mixer`).
   Then the labels are used: the decision updates its calibration, and the mixer updates its weights.
4. *The node.* If even the nearest node is further away than the vigilance allows, the row becomes a node; else the
   nearest node moves towards it, and counts its labels (`paper.Memory.learn`).
5. *The linear models* take one step on the row and one on each of four nodes (`mixed.LinearModels`), from the 50th
   row on; the mixer is used from the 52nd row on.
6. *The similarity* is a function of the nodes. It is recomputed after each of the first 50 rows, and then whenever a
   quarter more rows have been learned.

A prediction is steps 2 and 3 without the updates: labels above 0.5, or else the likeliest if it exceeds "no label" by
the factor that has been right most often. With `decision="calibrated"` there are no linear models and no mixer. With
`decision="bayes"` the label counters of the paper (`paper.LabelCounters`) replace step 3. With
`similarity="correntropy"` the nearest nodes by the paper's distance vote.

Read `paper`, `similarity`, `decision`, `mixed` and `algorithm` in this order. `arithmetic` describes why every bit is
defined: sums over features and labels are sums of whole numbers, which do not depend on the order.
"""

from __future__ import annotations

from mlca.reference.algorithm import MLCA

__all__ = ["MLCA"]
