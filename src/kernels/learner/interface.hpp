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

// Rows to learn or to predict, dense or sparse; a learner reads them in the form in which it stores its nodes.
struct InputRows {
    std::int64_t n = 0;
    bool is_sparse = false;
    DenseRows dense{};
    SparseRows sparse{};

    void select(const DenseRows*& rows) const noexcept { rows = &dense; }
    void select(const SparseRows*& rows) const noexcept { rows = &sparse; }

    // Call f(first, rows) for all rows, in the form needed. Conversion is done in portions, because a dense copy of all sparse
    // rows might not fit in memory. An empty input is one portion, because it may still carry labels.
    template <class F>
    void in_form(bool sparse_is_needed, std::int64_t d, const F& f) const {
        if (sparse_is_needed == is_sparse) return f(std::int64_t{0}, *this);
        constexpr std::int64_t PORTION = 1 << 20;  // values per portion
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

// The labels of rows: those of row j are labels[indptr[j]] up to, but not including, labels[indptr[j + 1]].
struct InputLabels {
    const std::int64_t* indptr;
    const std::int32_t* labels;

    LabelRow operator[](std::int64_t j) const noexcept { return {labels + indptr[j], indptr[j + 1] - indptr[j]}; }
};

// Callbacks to the caller.
struct Host {
    // Returns whether the user has interrupted the call; may be empty.
    std::function<bool()> interrupted;
    // Returns the order of the features in a round of feature grouping, given the round's index (clustered mode only).
    std::function<Array<std::int64_t>(std::int64_t)> order_of_round;
};

// Where predictions are written: the probability of each label, row by row. For a calibrated decision also, per row:
// the probability of having no label (`none`); the fallback label for rows without a likely label (-1 if having no
// label is more likely, or no label is known); the threshold with the best example F1 so far (0.5 if it is not
// tracked); and the novelty. Null pointers skip an output; `none`, `fallback` and `threshold` require the
// probabilities. All outputs of a row come from the same model, even if another thread learns meanwhile.
struct Answers {
    double* probabilities = nullptr;
    double* none = nullptr;
    std::int32_t* fallback = nullptr;
    double* threshold = nullptr;
    double* novelty = nullptr;

    // The outputs for the rows from `row` on.
    Answers from(std::int64_t row, std::int64_t n_labels) const noexcept {
        const auto behind = [](auto* place, std::int64_t n) { return place == nullptr ? place : place + n; };
        return {behind(probabilities, row * n_labels), behind(none, row), behind(fallback, row), behind(threshold, row), behind(novelty, row)};
    }
};

// How one row's labels are predicted, with all intermediate values. Slot 0 is "none"; label i has slot i + 1.
struct Explained {
    // The voters, nearest first.
    Array<std::int64_t> nodes, node_counts, unlabelled, label_counts;  // label_counts: one row per node
    Array<double> distances;
    std::int64_t n_compared = 0;  // number of nodes that the row was compared with
    // With Bayes' rule, for each label: its bin, its votes, and its prior, likelihoods and posterior.
    Array<std::int64_t> bins;
    Array<double> votes, prior, likelihood_with, likelihood_without, posterior;
    // With a calibrated decision: the voters' weights; for each slot, its share of the votes, its calibrated share, its
    // frequency, each expert's probability and the resulting probability; the experts' weights; and the trust in each
    // segment.
    Array<double> weights, shares, calibrated, frequencies, opinions, probabilities, expert_weights, trust;
    double novelty = 0.0;
    bool far = false;
    std::int32_t fallback = -1;
    double threshold = 0.5;
    // With the learned similarity: the background's probability of each slot (empty if there is no background yet), and
    // the features in which the voters and the row agree most, each with its agreement.
    Array<double> background, agreement;
    Array<std::int64_t> agreeing;
    // The feature values of the voters and, as a baseline, of an evenly spaced sample of all nodes.
    StateRows voters, ordinary;
    // If votes are mixed: the mixer's weights, and its inputs for each slot; the row's features in the linear models,
    // bias first, and the contribution of each feature to the score of each slot.
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
    // The vigilance; negative if it has yet to be determined from the first window.
    virtual double vigilance() const = 0;
    // Whether rows wait for the first window to fill, or a failure left the similarity out of date.
    virtual bool waits() const = 0;

    // Learn rows in order; afterwards at least `n_labels` labels are known. Throws Stopped after an interrupt.
    virtual void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) = 0;
    // A copy that has learned all received rows; nullptr if this learner has learned them itself.
    virtual std::shared_ptr<const Learner> settled(const Host& host) const = 0;
    // Predict the first `n_labels` labels of each row. The learner must have learned all received rows.
    virtual void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, const Answers& answers) const = 0;
    virtual Explained explain(const InputRows& row) const = 0;
    // The state, including only the requested arrays of the nodes.
    virtual State state(OfNodes wanted) const = 0;
    virtual std::unique_ptr<Learner> copy() const = 0;
    // Merge another learner with the same settings, which must have learned all rows that it received: append its
    // nodes, or replay them. `columns` maps its labels to this learner's labels. After a failure or an interrupt, this
    // learner is only partly merged. No other thread may use either learner meanwhile.
    virtual void absorb(const Learner& other, const std::int32_t* columns, std::int64_t n_labels, bool append, const Host& host) = 0;
};

// Create a learner, or restore one from a validated state. Only sparse nodes support missing and nominal values.
std::shared_ptr<Learner> make_learner(bool sparse, const Settings& settings, const State* state = nullptr);

}  // namespace mlca::MLCA_LEVEL
