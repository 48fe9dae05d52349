// A view of the nodes for the similarity and the decision (similarity/fit_similarity.hpp describes the interface). Slot
// 0 is "none"; label i has slot i + 1.
//
// The view consists of weights and labels only. Modes differ only in how rows are compared with nodes, so the code that
// uses the view is compiled once for all modes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "decision/bayes.hpp"
#include "base/memory.hpp"
#include "base/pair_rows.hpp"
#include "learner/settings.hpp"
#include "bandwidth/sparse_window.hpp"
#include "base/team.hpp"

namespace mlca::MLCA_LEVEL {

// The ID of each node: its position in the order of creation, which does not change when other nodes are replaced. As
// long as no node has been replaced, IDs equal indices and are not stored.
class NodeIds {
public:
    std::int64_t operator[](std::int64_t node) const noexcept { return numbers.empty() ? node : numbers[node]; }

    // Number of nodes ever created, given the current number of nodes.
    std::int64_t made(std::int64_t n_nodes) const noexcept { return numbers.empty() ? n_nodes : n_made; }

    // The range of indices, among the first n_nodes nodes, of the nodes whose IDs are in the given range.
    Stretch places(Stretch born, std::int64_t n_nodes) const noexcept {
        if (numbers.empty()) return {born.low, std::min(born.high, n_nodes)};
        const auto place = [&](std::int64_t number) {
            return std::lower_bound(numbers.begin(), numbers.begin() + n_nodes, number) - numbers.begin();
        };
        return {place(born.low), place(born.high)};
    }

    Array<std::int64_t> numbers;  // IDs, ascending; empty: each node's ID is its index
    std::int64_t n_made = 0;
};

inline const double* row_of(const Rows<double>& weights, std::int64_t node) noexcept { return weights[node]; }
inline SparseRow row_of(const PairRows<double>& weights, std::int64_t node) noexcept {
    const auto& row = weights[node];
    return {row.keys, row.values, row.length};
}

// Returns the row of a node, for dense and sparse weights.
template <class Weights>
struct RowOfNode {
    const Weights& weights;

    auto operator()(std::int64_t node) const noexcept { return row_of(weights, node); }
};

template <class Weights>
class NodesView {
public:
    static constexpr bool GIVES_ALL = std::is_same_v<Weights, Rows<double>>;

    // A view of the first n_nodes nodes, or of the nodes in `some`, which must be ascending and outlive the view.
    NodesView(const Settings& settings, std::int64_t n_nodes, const Weights& weights, const LabelMemory& labels, const NodeIds& node_ids, Stop* stop,
              const Array<std::int64_t>* some = nullptr)
        : settings_(settings), n_nodes_(some == nullptr ? n_nodes : static_cast<std::int64_t>(some->size())), weights_(weights), labels_(labels),
        node_ids_(node_ids), stop_(stop),
          some_(some == nullptr ? nullptr : some->data()) {
        n_slots_ = static_cast<std::int64_t>(labels.totals.size()) + 1;
        while (n_slots_ > 1 && labels.totals[n_slots_ - 2] == 0) --n_slots_;
    }

    std::int64_t n_nodes() const noexcept { return n_nodes_; }
    std::int64_t n_features() const noexcept { return settings_.n_features; }
    std::int64_t n_slots() const noexcept { return n_slots_; }
    bool is_incomplete() const noexcept { return settings_.incomplete; }
    const Nominal& nominal() const noexcept { return settings_.nominal; }
    auto row(std::int64_t node) const noexcept { return row_of(weights_, place(node)); }
    std::int64_t count(std::int64_t node) const noexcept { return labels_.node_counts[place(node)]; }
    std::int64_t node_id(std::int64_t node) const noexcept { return node_ids_[place(node)]; }
    template <class F>
    void for_each_entry(std::int64_t node, std::int64_t low, std::int64_t high, F f) const {
        if (node % 256 == 255) pause();
        const auto x = row(node);
        if constexpr (GIVES_ALL) {
            for (std::int64_t j = low; j < high; ++j) f(j, x[j]);
        } else {
            for (std::int64_t p = 0; p < x.n; ++p) {
                if (x.keys[p] >= low && x.keys[p] < high) f(std::int64_t{x.keys[p]}, x.values[p]);
            }
        }
    }
    template <class F>
    void for_each_label(std::int64_t node, F f) const { labels_.for_each_slot(place(node), f); }
    void pause() const {
        if (stop_ != nullptr) stop_->check();
    }

private:
    std::int64_t place(std::int64_t node) const noexcept { return some_ == nullptr ? node : some_[node]; }

    const Settings& settings_;
    std::int64_t n_nodes_;
    const Weights& weights_;
    const LabelMemory& labels_;
    const NodeIds& node_ids_;
    Stop* stop_;
    const std::int64_t* some_;
    std::int64_t n_slots_;
};

}  // namespace mlca::MLCA_LEVEL
