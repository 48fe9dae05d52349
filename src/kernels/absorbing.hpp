// One model takes in another: each node of the other is learned as all the instances it stands for, and what nodes do not
// show (counts of decisions, rows that no node stands for) is added up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "commit.hpp"
#include "memory.hpp"
#include "merging.hpp"
#include "query.hpp"
#include "restoring.hpp"
#include "sparse_window.hpp"
#include "stop.hpp"
#include "window.hpp"

namespace mlca::MLCA_LEVEL {

// Count the other's instances that none of its nodes stands for; for Bayes' rule, where most of their label fell.
template <class ModelHere>
[[gnu::cold]] void absorb_lost(ModelHere& model, const ModelHere& other, const std::int32_t* columns) {
    Array<std::int64_t> lost(other.labels.totals);
    std::int64_t rows = other.labels.n_learned;
    for (std::int64_t k = 0; k < other.n_nodes; ++k) {
        rows -= other.labels.node_counts[static_cast<std::size_t>(k)];
        const auto& label_counts = other.labels.at_nodes[k];
        for (std::int32_t place = 0; place < label_counts.length; ++place) lost[static_cast<std::size_t>(label_counts.keys[place])] -= label_counts.values[place];
    }
    for (std::int64_t i = 0; i < other.labels.n_labels; ++i) model.labels.count_lost(columns[i], other.labels.usual_bin(i), lost[static_cast<std::size_t>(i)]);
    model.labels.n_learned += rows;
    if (!model.decision) model.labels.n_voted += rows;
    model.n_candidates += other.n_candidates - other.n_nodes;
}

// Learn a node of another model as all the instances it stands for.
template <class ModelHere>
void replay(ModelHere& model, const ModelHere& other, std::int64_t node, const std::int32_t* columns, typename ModelHere::Work& work, Stop& stop) {
    const auto& label_counts = other.labels.at_nodes[node];
    Array<std::int32_t> labels(static_cast<std::size_t>(label_counts.length));
    for (std::size_t place = 0; place < labels.size(); ++place) labels[place] = columns[label_counts.keys[place]];
    if (auto successor = model.nodes.successor(model.n_nodes, model.learning_r())) model.nodes.take(std::move(*successor));
    // Sparse instances have ascending attributes, and searches make room by the last one; a node that has moved has them in any order.
    using RowsHere = RowsOfState<typename ModelHere::Row>;
    StateRows in_order;
    RowsHere::append(in_order, other.nodes.row(node), model.settings.n_features);
    const auto source = RowsHere::source(in_order, model.settings.n_features);
    const typename ModelHere::Instance instance{source[0],
                                                {labels.data(), label_counts.length, label_counts.values, other.labels.unlabelled[static_cast<std::size_t>(node)]},
                                                other.labels.node_counts[static_cast<std::size_t>(node)],
                                                true};
    auto query = model.query_to_learn(instance.x, model.n_nodes, model.bandwidth_sums.data(), work.found, work.grouping, work.space);
    model.nodes.search(&query, 1, work.space.nodes, stop);
    if (!model.decision) model.ask_to_learn(query, work.grouping, work.voting, work.space, stop);
    const std::int64_t threshold = model.settings.threshold(work.grouping);
    commit(model, instance, threshold, ModelHere::joins(work.found, threshold), other.bandwidths[node], work);
}

// `columns` gives the numbers of the other's labels here; there are `n_labels` then. Both models are locked.
template <class ModelHere>
void absorb_model(ModelHere& model, const ModelHere& other, const std::int32_t* columns, std::int64_t n_labels, typename ModelHere::Work& work, Stop& stop) {
    model.labels.reserve_labels(n_labels);
    model.labels.n_labels = std::max(model.labels.n_labels, n_labels);
    Array<std::int64_t> places;  // where each of the other's nodes would be, if it is not taken in by another
    for (std::int64_t k = 0; k < other.n_nodes; ++k) {
        stop.check();
        places.push_back(model.births.made(model.n_nodes));
        replay(model, other, k, columns, work, stop);
    }
    places.push_back(model.births.made(model.n_nodes));
    if (model.settings.max_nodes > 0) absorb_lost(model, other, columns);
    if constexpr (ModelHere::MODE == Mode::clustered) model.groups.absorb(other.groups, model.settings.common_threshold(1));
    if (model.decision) absorb_decision(*model.decision, *other.decision, columns, n_labels + 1, places, other.births, other.view());
    if (model.settings.learned) model.take_similarity(model.weighed(stop));
}

// Let rows of another window follow those of this one.
template <class Window>
void take_rows(Window& window, const Window& other, Stretch rows, std::int64_t n_features) {
    for (std::int64_t j = rows.low; j < rows.high; ++j) {
        const auto row = other.row(j);
        if constexpr (std::is_same_v<decltype(row), const SparseRow>) {
            const std::int64_t indptr[] = {0, row.n};
            window.take({indptr, row.keys, row.values}, 0, 1);
        } else {
            window.take({row, 1, n_features}, 0, 1);
        }
        window.learned = window.filled;
    }
}

}  // namespace mlca::MLCA_LEVEL
