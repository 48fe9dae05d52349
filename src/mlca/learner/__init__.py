"""The learning algorithm, independent of label names and of scikit-learn.

A row is processed in five steps:

1. It is added to the *window*, a buffer of the latest rows. The first rows of a stream wait until the window holds
   `window` rows; after that, each row is learned when it arrives.
2. It is *predicted* before it is learned. The nearest nodes by the learned similarity vote. Each label's share of the
   votes is calibrated, and a mixer combines the result with one linear model per label. Calibration and mixer are then
   updated with the labels of the row. This is `decision="mixed"`, the default.
3. Its *distance* from every node is computed: the correntropy-induced metric of the paper, with one bandwidth for all
   features (MLCA), one per feature and node (MLCA-I), or one per group of features (MLCA-C).
4. The distance from the nearest node is compared with the *vigilance*. If it is larger, the row becomes a node, whose
   bandwidth is estimated from the window. Otherwise the nearest node, and possibly the second nearest, moves towards
   the row. Each node counts the labels of the rows that joined it. Nodes are deleted only if `max_nodes` is set.
5. The *linear models* are trained with one step on the row and one on each of a few nodes. The learned similarity is
   recomputed when it is due.

With `decision="bayes"`, the paper's decision, counters replace step 2 and the linear models. The label counts of the
nearest nodes put every label into a bin, and the counters record how often a label in that bin was true. Prior,
likelihoods and posterior are computed from these counters.

A prediction is step 2 without its updates. `mlca.reference` implements the algorithm in plain Python.

A compiled C++ object (src/kernels) runs the algorithm and holds the model's data. `core.Learner` wraps it, `parameters`
has its settings, `checking` converts a learner to plain arrays and back, `replay` merges learners, `row_ids` records
the user's row IDs, and `widening` adds late features. Labels are column indices here; the classifier knows their names.

Symbols of the paper (Masuyama et al. 2023) and their names in the code:

=================================  =====================  ============================================================
paper                              in Python              in src/kernels
=================================  =====================  ============================================================
x_n, l_n                           row, labels            Model::LabelledRow: x, labels
y_k, the weight of node k          prototypes_            nodes.row(k) (nodes/dense_nodes.hpp, nodes/sparse_nodes.hpp)
alpha_k, its count, eq. (14)       counts_                LabelMemory::node_counts
beta_k, label counts, eq. (15)     label_counts_          LabelMemory::at_nodes
Sigma, sigma, eqs. (7), (8)        bandwidths_            Silverman::bandwidth, median; RunningMedian over nodes
lambda                             window                 DenseWindow, SparseWindow
kappa, eq. (3)                                            kernel(difference, r), r = SCALE / sigma: the factor
CIM, eq. (4); of -I and -C         Explanation.distances  common_sum, individual_sum, clustered_sum, in units of 2^-40
k_1, k_2, eqs. (9), (10)           Explanation.nodes      TopK: nodes and sums, nearest first
V, cases I to III, (13) to (19)    vigilance              Settings::threshold, Model::become_node, Model::join_winner
groups of features of MLCA-C       attributes             Groups (centres), Grouping (one row's groups)
N_y, the neighbours                n_neighbors            Settings::n_neighbors
g, summed label counts             Explanation.votes      Votes::share
g, rounded; counters c+, c-        Explanation.bins       LabelMemory::bin, count; with and without
P(H), P(E|H), P(H|E)               Explanation.posterior  LabelMemory::probability
=================================  =====================  ============================================================
"""
