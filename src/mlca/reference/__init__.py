"""Readable, slow reference implementation that equals `mlca.MLCA` bit for bit.

No compiled code of mlca is imported here. The state and the predictions of the compiled learner must equal those of
this one, bit for bit (`tests/learner/test_reference.py`).

`algorithm.MLCA.learn` learns a row in four steps; a prediction is the first step without the updates:

1. *Prediction.* The nearest nodes by the learned similarity vote (`similarity.LearnedSimilarity.distances`). The
   similarity compares ranks of values, and gives features that separate labels more weight. Each label gets a share of
   the votes, and shares become probabilities by how often labels with the same share were true (`decision`). A mixer
   adds the weighted logits of these probabilities, of a linear model per label and of the labels' frequencies
   (`mixed.Mixed.predict`). Calibration and mixer are then updated with the labels of the row (`mixed.Mixed.learn`).
2. *Node.* If the nearest node by the paper's distance is further away than the vigilance allows, the row becomes a
   node. Otherwise the nearest node moves towards it and counts its labels (`paper.Memory.learn`).
3. *Linear models.* From the 50th row on, they take a step on the row and one on each of four nodes
   (`mixed.Mixed.learn_node`). The mixer is used from the 52nd row on.
4. *Similarity.* It is a function of the nodes, recomputed after each of the first 50 rows and then whenever a quarter
   more rows have been learned.

This is `MLCA()`, that is `MLCA(similarity="learned", decision="mixed")`. With `decision="calibrated"` there are no
linear models and no mixer (`experts.Calibrated`). With `decision="bayes"` the paper's label counters replace step 1
(`paper.LabelCounters`). With `similarity="correntropy"` the nearest nodes by the paper's distance vote.

`arithmetic` explains why results are the same to the last bit: sums over features and labels are sums of whole numbers,
and do not depend on the order of the terms.
"""

from __future__ import annotations

from mlca.reference.algorithm import MLCA

__all__ = ["MLCA"]
