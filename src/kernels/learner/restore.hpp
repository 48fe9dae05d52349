// Conversion between a model and its state: copy a model to plain arrays, or restore it from validated arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "learner/model.hpp"
#include "learner/state.hpp"

namespace mlca::MLCA_LEVEL {

// Access to the rows of a state, in the form (dense or sparse) in which the model stores its nodes.
template <class Row>
struct RowsOfState {
    static constexpr bool SPARSE = std::is_same_v<Row, SparseRow>;
    using Source = std::conditional_t<SPARSE, SparseRows, DenseRows>;

    static void append(StateRows& rows, const Row& row, std::int64_t d) {
        if constexpr (SPARSE) {
            rows.sparse.append(row.keys, row.values, row.n);
        } else {
            rows.dense.insert(rows.dense.end(), row, row + d);
        }
    }
    static std::int64_t count(const StateRows& rows, std::int64_t d) noexcept {
        if constexpr (SPARSE) return static_cast<std::int64_t>(rows.sparse.indptr.size()) - 1;
        return static_cast<std::int64_t>(rows.dense.size()) / d;
    }
    static Source source(const StateRows& rows, std::int64_t d) noexcept {
        if constexpr (SPARSE) {
            return {rows.sparse.indptr.data(), rows.sparse.indices.data(), rows.sparse.data.data()};
        } else {
            return {rows.dense.data(), count(rows, d), d};
        }
    }
};

// Number of node entries that can be processed in a few milliseconds.
inline constexpr std::int64_t ENTRIES_AT_ONCE = 200'000;

// A state under construction. Large arrays are shared with the model if their rows have equal width; `finished` copies
// them later, while no other thread has to wait.
struct Draft {
    State state;
    Array<std::uint8_t> gone;  // flags of replaced nodes; empty if there are none
    std::int64_t n_nodes = 0;  // including replaced nodes
    std::optional<Rows<double>> weights, bandwidths;
    std::optional<LinearModels::Draft> linear;

    State finished() && {
        if (linear) state.linear = linear->finished();
        if (weights) append_kept(*weights, state.weights.dense);
        if (bandwidths) append_kept(*bandwidths, state.bandwidths);
        return std::move(state);
    }

    template <class F>
    void for_each_kept(F f) const {
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            if (gone.empty() || !gone[k]) f(k);
        }
    }

private:
    void append_kept(const Rows<double>& rows, Array<double>& out) const {
        out.reserve(state.tally.front() * rows.width());
        for_each_kept([&](std::int64_t k) { out.insert(out.end(), rows[k], rows[k] + rows.width()); });
    }
};

// Put the requested arrays of the nodes into a draft.
template <class ModelOf>
void write_nodes(const ModelOf& model, OfNodes wanted, Draft& draft) {
    const LabelMemory& labels = model.labels;
    const Settings& settings = model.settings;
    State& state = draft.state;
    draft.n_nodes = model.n_nodes;
    if (model.n_gone > 0) draft.gone.assign(model.gone.begin(), model.gone.begin() + model.n_nodes);
    if (includes(wanted, OfNodes::bandwidths)) draft.bandwidths = model.bandwidths.shared();
    if (includes(wanted, OfNodes::weights)) {
        if constexpr (RowsOfState<typename ModelOf::Row>::SPARSE) {
            draft.for_each_kept([&](std::int64_t k) {
                RowsOfState<typename ModelOf::Row>::append(state.weights, model.nodes.row(k), settings.n_features);
            });
        } else {
            draft.weights = model.nodes.shared_rows();
        }
    }
    const auto copy_kept = [&](const Array<std::int64_t>& numbers, Array<std::int64_t>& out) {
        out.reserve(model.n_kept());
        draft.for_each_kept([&](std::int64_t k) { out.push_back(numbers[k]); });
    };
    if (includes(wanted, OfNodes::counts)) copy_kept(labels.node_counts, state.counts);
    if (wanted == OfNodes::all && (settings.learned || settings.calibrated)) copy_kept(labels.unlabelled, state.unlabelled);
    if (includes(wanted, OfNodes::label_counts)) {
        draft.for_each_kept([&](std::int64_t k) {
            const auto& label_counts = labels.at_nodes[k];
            state.label_counts.append(label_counts.keys, label_counts.values, label_counts.length);
        });
    }
    if (settings.max_nodes > 0) copy_kept(model.node_ids.numbers, state.node_ids.numbers);
}

// Copy the state of a model. The model is locked, or no other thread has access to it.
template <class ModelOf>
Draft write_state(const ModelOf& model, OfNodes wanted) {
    const LabelMemory& labels = model.labels;
    const Settings& settings = model.settings;
    Draft draft;
    State& state = draft.state;
    state.n_labels = labels.n_labels;
    state.tally = {model.n_kept(), labels.n_learned, labels.n_voted, labels.n_voted_alone};
    state.vigilance = settings.vigilance;
    write_nodes(model, wanted, draft);
    state.group_centres = model.groups.centres();
    state.group_counts = model.groups.counts();
    state.group_bandwidths = model.groups.bandwidths();
    if (settings.max_nodes > 0) {
        state.node_ids.n_made = model.node_ids.n_made;
        state.n_candidates = model.n_candidates;
        state.label_totals.assign(labels.totals.begin(), labels.totals.begin() + labels.n_labels);
    }
    if (settings.learned) {
        if (model.as_learned) state.learned = model.as_learned->learned();
        if (model.as_learned && model.as_learned->cells() && wanted == OfNodes::all) {
            state.cells = model.as_learned->cells()->state(model.n_nodes,
                [&](std::int64_t k) { return draft.gone.empty() || !draft.gone[k]; });
        }
        state.similarity_due = model.similarity_due;
        state.similarity_node_ids = model.similarity_node_ids;
    }
    if (settings.calibrated) {
        state.decision = model.decision;
        state.decision->resize(labels.n_labels + 1, model.n_kept());
        if (model.linear && wanted == OfNodes::all) draft.linear = model.linear->draft();
        return draft;
    }
    for (std::int64_t i = 0; i < labels.n_labels; ++i) {
        for (std::int64_t bin = 0; bin < settings.n_bins(); ++bin) {
            state.with_label.push_back(labels.with_full(i, bin));
            state.without_label.push_back(labels.without_full(i, bin));
        }
    }
    return draft;
}

// Add a node from a state or from another model. The caller counts the rows that it represents.
template <class ModelOf>
void add_node(ModelOf& model, const typename ModelOf::Row& x, const double* node_bandwidths, const LabelRow& label_row, std::int64_t count,
    std::int64_t node_id) {
    const std::int64_t k = model.n_nodes, width = model.bandwidths.width();
    model.reserve_node(k + 1, x);
    model.create_node(k, x, node_bandwidths);
    model.bandwidths.reserve(k + 1);
    std::copy_n(node_bandwidths, width, model.bandwidths[k]);
    // Summing in order of creation, as in learning, gives the same bits.
    for (std::int64_t i = 0; i < width; ++i) model.bandwidth_sums[i] += node_bandwidths[i];
    model.median_bandwidth.reserve();
    if (model.settings.mode == Mode::common) model.median_bandwidth.add(node_bandwidths[0]);
    model.labels.reserve_node(label_row);
    model.labels.open_node(label_row, count);
    if (model.settings.max_nodes > 0) {
        model.node_ids.numbers.push_back(node_id);
        model.gone.push_back(0);
    }
    ++model.n_nodes;
}

template <class ModelOf>
void restore_node(ModelOf& model, const State& state, const typename ModelOf::Row& x, std::int64_t k) {
    const std::int64_t start = state.label_counts.indptr[k];
    const LabelRow label_row{state.label_counts.indices.data() + start, state.label_counts.indptr[k + 1] - start,
                       state.label_counts.data.data() + start, state.unlabelled.empty() ? 0 : state.unlabelled[k]};
    const bool bounded = model.settings.max_nodes > 0;
    add_node(model, x, state.bandwidths.data() + k * model.bandwidths.width(), label_row, state.counts[k],
             bounded ? state.node_ids.numbers[k] : k);
    if (!bounded) {
        for (std::int64_t place = 0; place < label_row.n; ++place) model.labels.totals[label_row.labels[place]] += label_row.count(place);
    }
    ++model.n_candidates;
}

// Restore a state into an empty model. Parts that go beyond the paper are validated here; a state that passes cannot
// cause memory errors.
template <class ModelOf>
void read_state(ModelOf& model, const State& state) {
    LabelMemory& labels = model.labels;
    const Settings settings = model.settings;
    const std::int64_t n = state.tally[0];
    labels.n_learned = state.tally[1];
    labels.n_voted = state.tally[2];
    labels.n_voted_alone = state.tally[3];
    labels.reserve_labels(state.n_labels);
    labels.n_labels = state.n_labels;
    for (std::int64_t i = 0; !settings.calibrated && i < state.n_labels; ++i) {
        for (std::int64_t bin = 0; bin < settings.n_bins(); ++bin) {
            const auto place = static_cast<std::size_t>(i * settings.n_bins() + bin);
            labels.set_counters(i, bin, state.with_label[place], state.without_label[place]);
        }
    }
    if (settings.finds_vigilance() && labels.n_learned > 0) {
        if (!(state.vigilance >= 0.01 && state.vigilance < 1.0))
            throw std::invalid_argument("the stored vigilance is out of range");
        model.settings.vigilance = state.vigilance;
    }
    if (settings.learned && n > 0 && !state.learned) {
        model.similarity_due = 0;  // recomputed from the nodes
    } else if (settings.learned && n > 0) {
        Learned learned = *state.learned;
        learned.nominal = settings.nominal;
        if (!settings.mixes) learned.middles.clear();  // not used or kept by other decisions
        const bool has_middles = settings.mixes && learned.ranks.n_knots > 0 && !learned.sparse;
        const std::int64_t n_middles = learned.middles.size();
        if (n_middles != (has_middles ? settings.n_features : 0) || !learned.is_sound(settings.n_features))
            throw std::invalid_argument("the learned similarity is inconsistent");
        if (state.similarity_due <= labels.n_learned || state.similarity_due > due_after(labels.n_learned)) {
            throw std::invalid_argument("the next recomputation of the learned similarity is at an invalid row");
        }
        learned.restore();
        model.as_learned.emplace(std::move(learned), settings.incomplete, n);
        const bool has_cells = !state.cells.centres.empty() || !state.cells.cells.empty();
        if (has_cells && !model.as_learned->take_cells(state.cells, settings.cells, n)) throw std::invalid_argument("the cells do not fit the nodes");
        model.similarity_due = state.similarity_due;
    }
    model.groups = Groups(state.group_centres, state.group_counts, state.group_bandwidths);
    const auto weights = RowsOfState<typename ModelOf::Row>::source(state.weights, settings.n_features);
    for (std::int64_t k = 0; k < n; ++k) restore_node(model, state, weights[k], k);
    if (auto successor = model.nodes.renewed(n, model.learning_r())) model.nodes.take(std::move(*successor));
    if (settings.max_nodes > 0) {
        model.node_ids.n_made = state.node_ids.n_made;
        model.n_candidates = state.n_candidates;
        std::copy(state.label_totals.begin(), state.label_totals.end(), labels.totals.begin());
    }
    if (settings.calibrated) restore_decision(model, *state.decision, state.linear);
    if (model.counts_trusted()) {
        const Array<std::int64_t>& known = state.similarity_node_ids;
        const bool ascends = std::is_sorted(known.begin(), known.end(), std::less_equal<>());
        if (known.empty() != (n == 0) || !ascends || (n > 0 && (known.front() < 0 || known.back() >= model.node_ids.made(n)))) {
            throw std::invalid_argument("the learned similarity was computed from other nodes");
        }
        model.similarity_node_ids = known;
    }
}

// Return a copy of the model without its replaced nodes.
template <class ModelOf>
ModelOf without_gone(const ModelOf& model) {
    Draft draft = write_state(model, OfNodes::all);
    draft.linear.reset();
    State state = std::move(draft).finished();
    if (model.similarity_is_due()) state.learned.reset();
    ModelOf next(model.settings);
    read_state(next, state);
    next.next_groups = model.next_groups;
    next.linear = model.linear;
    next.n_longest = model.n_longest;
    return next;
}

// Recompute the learned similarity together with the row after which it is due, so that no reader sees the row without
// the new similarity. The model is locked meanwhile, so large models, which would delay readers, are skipped.
template <class ModelOf>
void renew_at_once(ModelOf& model) {
    if (!model.similarity_is_due() || model.nodes.n_entries(model.n_nodes) > ENTRIES_AT_ONCE) return;
    if (model.n_gone > 0) model = without_gone(model);
    Stop never;
    model.take_similarity(model.weighed(never));
}

template <class ModelOf>
void restore_decision(ModelOf& model, const Decision& decision, const std::optional<LinearState>& state_linear) {
    const LabelMemory& labels = model.labels;
    if (!decision.is_sound(labels.n_labels + 1, model.n_nodes, model.node_ids) || decision.frequencies.rows != labels.n_learned) {
        throw std::invalid_argument("the state of the decision is inconsistent");
    }
    const Array<std::int64_t>& totals = decision.frequencies.totals;
    std::int64_t none = 0;
    for (const std::int64_t rows : labels.unlabelled) none += rows;
    const bool none_fits = model.settings.max_nodes > 0 ? totals[0] >= none : totals[0] == none;
    if (!none_fits || !std::equal(labels.totals.begin(), labels.totals.begin() + labels.n_labels, totals.begin() + 1)) {
        throw std::invalid_argument("the label counts of the nodes and of the decision differ");
    }
    model.decision = decision;
    if (state_linear) {
        const Array<std::int32_t>& arrived = decision.frequencies.arrived;
        const auto n_columns = static_cast<std::int64_t>(arrived.size()) + LinearModels::FIRST_LABEL;
        if (!LinearModels::is_sound(*state_linear, model.settings.n_features, model.settings.nominal, n_columns)) {
            throw std::invalid_argument("the linear models are inconsistent");
        }
        model.linear->restore(*state_linear, arrived, labels.n_labels + 1);
    }
    if (model.decision->pool) model.decision->pool->refresh();
}

}  // namespace mlca::MLCA_LEVEL
