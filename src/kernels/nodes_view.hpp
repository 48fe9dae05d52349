// The nodes as the similarity and the decision look at them (weighing.hpp says what is asked): labels have slots, the first is "none".
//
// Nodes differ from mode to mode in how instances are compared with them, which does not matter here: the view is that of
// weights and labels alone, so that what works on it is compiled once for all modes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "births.hpp"
#include "labels.hpp"
#include "memory.hpp"
#include "pairs.hpp"
#include "settings.hpp"
#include "sparse_window.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

inline const double* row_of(const Rows<double>& weights, std::int64_t node) noexcept { return weights[node]; }
inline SparseRow row_of(const PairRows<double>& weights, std::int64_t node) noexcept {
    const auto& row = weights[node];
    return {row.keys, row.values, row.length};
}

// The row of a node, whatever its mode.
template <class Weights>
struct RowOfNode {
    const Weights& weights;

    auto operator()(std::int64_t node) const noexcept { return row_of(weights, node); }
};

template <class Weights>
class NodesView {
public:
    static constexpr bool GIVES_ALL = std::is_same_v<Weights, Rows<double>>;

    NodesView(const Settings& settings, std::int64_t n_nodes, const Weights& weights, const LabelMemory& labels, const Births& births, Stop* stop)
        : settings_(settings), n_nodes_(n_nodes), weights_(weights), labels_(labels), births_(births), stop_(stop) {
        n_slots_ = static_cast<std::int64_t>(labels.totals.size()) + 1;
        while (n_slots_ > 1 && labels.totals.data()[n_slots_ - 2] == 0) --n_slots_;
    }

    std::int64_t n_nodes() const noexcept { return n_nodes_; }
    std::int64_t n_attributes() const noexcept { return settings_.n_features; }
    std::int64_t n_slots() const noexcept { return n_slots_; }
    const Nominal& nominal() const noexcept { return settings_.nominal; }
    auto row(std::int64_t node) const noexcept { return row_of(weights_, node); }
    std::int64_t count(std::int64_t node) const noexcept { return labels_.node_counts.data()[node]; }
    std::int64_t birth(std::int64_t node) const noexcept { return births_[node]; }
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
    void for_each_label(std::int64_t node, F f) const { labels_.for_each_slot(node, f); }
    void pause() const {
        if (stop_ != nullptr) stop_->check();
    }

private:
    const Settings& settings_;
    std::int64_t n_nodes_;
    const Weights& weights_;
    const LabelMemory& labels_;
    const Births& births_;
    Stop* stop_;
    std::int64_t n_slots_;
};

}  // namespace mlca::MLCA_LEVEL
