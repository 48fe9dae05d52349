"""The algorithm, readable beside the paper; no scikit-learn in it.

How one instance flows through:

1. It enters the *window* (`window`), a buffer of the latest instances. The first `window` of a stream wait
   there until the window is full; from then on each instance is learned as it comes.
2. Its *similarity* to every node is computed (`similarity` turns parameters into numbers; the kernels compute):
   the correntropy-induced metric with one bandwidth for all attributes (MLCA), with each node's own (MLCA-I), or
   with one a group of attributes (MLCA-C). Small is similar.
3. The *vigilance* test: if even the nearest node is further than the vigilance allows, the instance becomes
   a node, with the bandwidth of its window. Otherwise it moves the nearest node, and perhaps the second.
   Nodes are never deleted.
4. The *labels*: each node counts the labels of the instances that it won. The counts of the nearest nodes put every
   label into a bin, and counters remember how often labels in that bin belonged to the instance (`labels`
   turns them into prior, likelihoods and posterior).

Prediction takes step 2 and the bins of step 4 and reads off each label's posterior.

`core.Learner` is the way in: it feeds portions of the stream to the compiled loops in `kernels` and enlarges
the model's arrays (`growing`) when they are full. `merging` makes one learner of several, `widening` lets attributes
appear late. Labels are numbers here; names are the classifier's business.
"""
