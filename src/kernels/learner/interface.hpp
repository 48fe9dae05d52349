// The interface of a learner, independent of its node storage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "decision/bayes.hpp"
#include "base/memory.hpp"
#include "learner/settings.hpp"
#include "bandwidth/sparse_window.hpp"
#include "learner/state.hpp"

namespace mlca::MLCA_LEVEL {

// Rows to learn or to judge, in one of two forms; a learner reads that of its nodes.
struct InputRows {
    std::int64_t n = 0;
    bool is_sparse = false;
    DenseRows dense{};
    SparseRows sparse{};

    void select(const DenseRows*& rows) const noexcept { rows = &dense; }
    void select(const SparseRows*& rows) const noexcept { rows = &sparse; }

    // f(first, rows) for all rows in the form that is needed. Where they have to be converted that is done by portions: a dense copy
    // of all sparse rows might be too large. No rows are a portion, too: labels may come with them.
    template <class F>
    void in_form(bool sparse_is_needed, std::int64_t d, const F& f) const {
        if (sparse_is_needed == is_sparse) return f(std::int64_t{0}, *this);
        constexpr std::int64_t PORTION = 1 << 20;  // numbers
        const std::int64_t step = std::max<std::int64_t>(1, PORTION / d);
        for (std::int64_t first = 0; first < std::max<std::int64_t>(1, n); first += step) {
            const std::int64_t n_here = std::min(step, n - first);
            if (is_sparse) {
                const Array<double> rows = unfolded(sparse.indptr + first, sparse.indices, sparse.data, n_here, d);
                f(first, InputRows{.n = n_here, .dense = {rows.data(), n_here, d}});
            } else {
                const Csr<double> rows = folded(dense[first], n_here, d);
                f(first, InputRows{.n = n_here, .is_sparse = true, .sparse = {rows.indptr.data(), rows.indices.data(), rows.data.data()}});
            }
        }
    }
};

// The labels of rows: row j has labels[indptr[j]] to labels[indptr[j + 1]].
struct InputLabels {
    const std::int64_t* indptr;
    const std::int32_t* labels;

    LabelRow operator[](std::int64_t j) const noexcept { return {labels + indptr[j], indptr[j + 1] - indptr[j]}; }
};

// Callbacks that the learner needs.
struct Host {
    // Whether the user has interrupted; may be empty.
    std::function<bool()> interrupted;
    // The order of d features in a round of grouping (clustered only).
    std::function<Array<std::int64_t>(std::int64_t)> order_of_round;
};

// Where a prediction is written: the probability of each label, row by row; and, where the decision is calibrated, that of
// having none, the label that a row without a likely one is given all the same (-1: it needs none, or gets none), the threshold
// that would have reached the best example F1 so far (one half where nobody has counted), and how unlike everything seen the row
// is. What is not wanted is left out; `none`, `fallback` and `threshold` go with the probabilities.
// A row's numbers are all of the same model, whatever another thread learns meanwhile.
struct Answers {
    double* probabilities = nullptr;
    double* none = nullptr;
    std::int32_t* fallback = nullptr;
    double* threshold = nullptr;
    double* novelty = nullptr;

    // The same from a row on.
    Answers from(std::int64_t row, std::int64_t n_labels) const noexcept {
        const auto behind = [](auto* place, std::int64_t n) { return place == nullptr ? place : place + n; };
        return {behind(probabilities, row * n_labels), behind(none, row), behind(fallback, row), behind(threshold, row), behind(novelty, row)};
    }
};

// How one row's labels are predicted, with every number on the way. Slots are "none" and then the labels.
struct Explained {
    // The voters, nearest first.
    Array<std::int64_t> nodes, node_counts, unlabelled, label_counts;  // label_counts: one row per node
    Array<double> distances;
    std::int64_t n_compared = 0;  // nodes that the row was compared with
    // By Bayes' rule, each label.
    Array<std::int64_t> bins;
    Array<double> votes, prior, likelihood_with, likelihood_without, posterior;
    // By calibration: the voters' weights; of each slot its share, what came of such shares, its frequency, what each expert
    // says, and the probability; the experts' weights.
    Array<double> weights, shares, calibrated, frequencies, opinions, probabilities, expert_weights, trust;
    double novelty = 0.0;
    bool far = false;
    std::int32_t fallback = -1;
    double threshold = 0.5;
    // Under the learned similarity: the background's probability of each slot (empty if there is none yet), and the features
    // in which the voters agree most with the row, with how much of the weight they agree in.
    Array<double> background, agreement;
    Array<std::int64_t> agreeing;
    // The weights of those who vote, and of some of all nodes, evenly taken, which tell what is ordinary.
    StateRows voters, ordinary;
    // Where votes are mixed: the mixer's weights, and of each slot its inputs; the features that the linear models see of the row,
    // the bias first, and of each of them what it adds to the score of each slot.
    Array<double> mixer_weights, inputs;
    Array<std::int32_t> term_features;
    Array<std::uint8_t> term_kinds;
    Array<double> terms;
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
    // Predict each row, for the first `n_labels` labels. The learner must be settled.
    virtual void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, const Answers& answers) const = 0;
    virtual Explained explain(const InputRows& row) const = 0;
    // What is known, with those arrays of the nodes that are wanted.
    virtual State state(OfNodes wanted) const = 0;
    virtual std::unique_ptr<Learner> copy() const = 0;
    // Replay the nodes of another settled learner of the same kind, or append them; `columns` gives the numbers of its labels
    // here. A failure or an interrupt leaves this learner half-way. Both must be copies that no other thread has.
    virtual void absorb(const Learner& other, const std::int32_t* columns, std::int64_t n_labels, bool append, const Host& host) = 0;
};

// Make a learner; from a checked state, if there is one.
std::shared_ptr<Learner> make_dense_learner(const Settings& settings, const State* state);
std::shared_ptr<Learner> make_sparse_learner(const Settings& settings, const State* state);

}  // namespace mlca::MLCA_LEVEL
