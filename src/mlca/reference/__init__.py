"""Readable, slow reference implementation that equals `mlca.MLCA` bit for bit.

No compiled code of mlca is imported here. The compiled learner must equal this one in every bit of what it holds and
predicts (`tests/learner/test_reference.py`).

The path of a row is `algorithm.MLCA.learn`; a prediction is its first step without the updates:

1. *Prediction.* The nearest nodes by the learned similarity vote (`similarity.LearnedSimilarity.distances`). It
   compares ranks of values, and features that separate labels weigh more. Votes become a share per label, and shares
   become probabilities by how often labels with the same share were true (`decision`). A mixer adds the logits of
   these probabilities, of a linear model per label and of the labels' frequencies (`mixed.Mixed.predict`). Calibration
   and mixer then compare the prediction with the labels of the row, and are updated (`mixed.Mixed.learn`).
2. *Node.* If the nearest node by the paper's distance is further away than the vigilance allows, the row becomes a
   node. Otherwise the nearest node moves towards it and counts its labels (`paper.Memory.learn`).
3. *Linear models.* From the 50th row on, they take a step on the row and one on each of four nodes
   (`mixed.Mixed.learn_node`). The mixer is used from the 52nd row on.
4. *Similarity.* It is a function of the nodes, recomputed after each of the first 50 rows and then whenever a quarter
   more rows have been learned.

This is `MLCA()`, that is `MLCA(similarity="learned", decision="mixed")`. With `decision="calibrated"` there are no
linear models and no mixer (`experts.Calibrated`). With `decision="bayes"` the paper's label counters replace step 1
(`paper.LabelCounters`). With `similarity="correntropy"` the nearest nodes by the paper's distance vote.

`arithmetic` describes why every bit is defined: sums over features and labels are sums of whole numbers, and do not
depend on the order of the terms.
"""

from __future__ import annotations

from mlca.reference.algorithm import MLCA

__all__ = ["MLCA"]
