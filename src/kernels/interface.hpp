// What a learner is to those who use it, whatever its nodes are like.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "labels.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "sparse_window.hpp"
#include "state.hpp"

namespace mlca::MLCA_LEVEL {

// Rows to learn or to judge; a learner reads the form that its nodes have.
struct InputRows {
    std::int64_t n;
    DenseRows dense;
    SparseRows sparse;

    void select(const DenseRows*& rows) const noexcept { rows = &dense; }
    void select(const SparseRows*& rows) const noexcept { rows = &sparse; }
};

// The labels of rows: row j has labels[indptr[j]] to labels[indptr[j + 1]].
struct InputLabels {
    const std::int64_t* indptr;
    const std::int32_t* labels;

    LabelRow operator[](std::int64_t j) const noexcept { return {labels + indptr[j], indptr[j + 1] - indptr[j]}; }
};

// What the learner asks its surroundings for.
struct Host {
    // Whether the user has interrupted; may be empty.
    std::function<bool()> interrupted;
    // The order of d attributes in a round of grouping (clustered only).
    std::function<Array<std::int64_t>(std::int64_t)> order_of_round;
};

// Where a prediction is written: the probability of each label, row by row; and, where the decision is calibrated, that of
// having none, the label that a row without a likely one is given all the same (-1: it needs none, or gets none), and how
// unlike everything seen the row is. What is not wanted is left out; `none` and `fallback` go with the probabilities.
struct Answers {
    double* probabilities = nullptr;
    double* none = nullptr;
    std::int32_t* fallback = nullptr;
    double* novelty = nullptr;
};

// How one row's labels are predicted, with every number on the way. Slots are "none" and then the labels.
struct Explained {
    // Who votes, nearest first.
    Array<std::int64_t> nodes, node_counts, unlabelled, label_counts;  // label_counts: one row a node
    Array<double> distances;
    // By Bayes' rule, each label.
    Array<std::int64_t> bins;
    Array<double> votes, prior, likelihood_with, likelihood_without, posterior;
    // By calibration: the voters' weights; of each slot its share, what came of such shares, its frequency, what each expert
    // says, and the probability; the experts' weights.
    Array<double> weights, shares, calibrated, frequencies, opinions, probabilities, expert_weights, trust;
    double novelty = 0.0;
    bool far = false;
    std::int32_t fallback = -1;
    // Under the learned similarity: the background's probability of each slot (empty if there is none yet), and the attributes
    // in which the voters agree most with the row, with how much of the weight they agree in.
    Array<double> background, agreement;
    Array<std::int64_t> agreeing;
    // The weights of those who vote, and of some of all nodes, evenly taken, which tell what is ordinary.
    StateRows voters, ordinary;
};

class Learner {
public:
    virtual ~Learner() = default;

    virtual bool is_sparse() const noexcept = 0;
    virtual const Settings& settings() const noexcept = 0;
    virtual std::int64_t n_labels() const = 0;
    virtual std::int64_t n_seen() const = 0;
    virtual std::int64_t n_nodes() const = 0;
    // Negative while it has to be found from the first window.
    virtual double vigilance() const = 0;
    // Whether rows wait for the first window to fill, or a failure kept the similarity from being computed.
    virtual bool waits() const = 0;

    // Learn rows in order; at least `n_labels` labels are known afterwards. Throws Stopped after an interrupt.
    virtual void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) = 0;
    // A learner in which all that came is learned: nullptr if that is this one.
    virtual std::shared_ptr<const Learner> settled(const Host& host) const = 0;
    // Answer for each row, for the first `n_labels` labels. The learner must be settled.
    virtual void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, const Answers& answers) const = 0;
    virtual Explained explain(const InputRows& row) const = 0;
    // What is known, with those arrays of the nodes that are wanted.
    virtual State state(OfNodes wanted) const = 0;
    virtual std::unique_ptr<Learner> copy() const = 0;
    // Replay the nodes of another settled learner of the same kind; `columns` gives the numbers of its labels here. A
    // failure or an interrupt leaves this learner half-way. Both must be copies that nobody else knows.
    virtual void absorb(const Learner& other, const std::int32_t* columns, std::int64_t n_labels, const Host& host) = 0;
};

}  // namespace mlca::MLCA_LEVEL
