// The nodes under the learned similarity: who is nearest, and how near.
//
// Where most entries are zero, or rows come sparse, nodes are listed by attribute (learned_lists.hpp); else they are screened
// by their ranks (ranked_screen.hpp). Both are derived from the nodes and the similarity, follow every node that comes or
// moves, and are made anew when the similarity is.
//
// A row is asked about in two steps: `compare` does what is needed once, then nearest nodes are listed as often as wanted, of
// all nodes or of a stretch of them.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "learned.hpp"
#include "learned_lists.hpp"
#include "memory.hpp"
#include "pairs.hpp"
#include "ranked_screen.hpp"
#include "shortlist.hpp"
#include "sparse_window.hpp"
#include "stop.hpp"
#include "weighing.hpp"
#include "window.hpp"

namespace mlca::MLCA_LEVEL {

template <class Row>
class LearnedNodes {
public:
    static constexpr bool SPARSE_ROWS = std::is_same_v<Row, SparseRow>;
    using RowOf = FunctionRef<Row(std::int64_t)>;
    using Compared = FunctionRef<void(std::int64_t, NearestIn, FunctionRef<void(std::int64_t*)>)>;

    // Working space of a thread.
    struct Space {
        RankedScreen::Space ranked;
        SparseProbe::Space probe;
        LearnedLists::Space lists;
        Array<std::int32_t> keys, other_keys, other_ranks;
        Array<double> values, other_values;
        Shortlist found{1};
    };

    // Compute the similarity from the nodes.
    template <class View>
    static LearnedNodes of(const View& view) {
        Weighing weighing(view);
        Learned learned = weighing.learned();
        if (SPARSE_ROWS || learned.sparse) {
            LearnedNodes made(std::move(learned));
            made.lists_.emplace(view, made.learned_);
            return made;
        }
        return LearnedNodes(std::move(learned), weighing.take_rows(), view.n_nodes());
    }

    // A similarity that is known, with no node yet.
    explicit LearnedNodes(Learned learned) : learned_(std::move(learned)) {
        if (SPARSE_ROWS || learned_.sparse) {
            lists_.emplace(learned_.n_attributes());
        } else {
            screen_.emplace(learned_, RankedRows(learned_.n_attributes()), 0);
        }
    }
    // The same with dense nodes.
    LearnedNodes(Learned learned, RankedRows rows, std::int64_t n_nodes) : learned_(std::move(learned)) {
        screen_.emplace(learned_, std::move(rows), n_nodes);
    }

    const Learned& learned() const noexcept { return learned_; }

    // Make room for a node; `enter` cannot fail then.
    void reserve(std::int64_t n_nodes, const Row& x) {
        if (screen_) {
            screen_->reserve(n_nodes);
        } else {
            const Entries of_x = entries(x, entered_keys_, entered_values_);
            lists_->reserve(of_x.keys, of_x.n);
        }
    }
    // A new node; if it is dense, it is the one that there was made room for.
    void enter(std::int64_t node, const Row& x) noexcept {
        if constexpr (!SPARSE_ROWS) {
            if (screen_) return screen_->enter(learned_, node, x);
        }
        const Entries of_x = known_entries(x);
        lists_->enter(learned_, of_x.keys, of_x.values, of_x.n);
    }
    void move(std::int64_t node, const Row& x) noexcept {
        if constexpr (!SPARSE_ROWS) {
            if (screen_) return screen_->enter(learned_, node, x);
        }
        lists_->leave(node);
    }
    // Unmake the nodes from `first` on; `row(node)` are their attributes.
    void withdraw(std::int64_t first, RowOf row) noexcept {
        while (lists_ && lists_->n_nodes() > first) {
            if constexpr (SPARSE_ROWS) {
                const Row x = row(lists_->n_nodes() - 1);
                lists_->withdraw(x.keys, x.n);
            } else {
                lists_->withdraw_dense(row(lists_->n_nodes() - 1), learned_.n_attributes());
            }
        }
    }

    // Compare rows, row q with the first n_nodes[q] nodes, ascending numbers, but for those that are `gone`. f(q, nearest_in, score)
    // is called for one after the other: nearest_in(low, high, n, limit) lists nodes with their keys, score(scores) fills in the
    // row's background.
    void compare(const Row* rows, const std::int64_t* n_nodes, std::int64_t n_rows, RowOf row, const std::uint8_t* gone, Space& space, Stop& stop, Compared f) const {
        if constexpr (!SPARSE_ROWS) {
            if (screen_) return compare_screened(rows, n_nodes, n_rows, gone, space, stop, f);
        }
        for (std::int64_t q = 0; q < n_rows; ++q) {
            stop.check();
            compare_listed(rows[q], n_nodes[q], q, row, gone, space, f);
        }
    }

    // The terms of a row and a node, attribute by attribute: f(attribute, what they add to D, what they could add at most).
    template <class F>
    void for_each_term(const Row& x, const Row& y, F f) const {
        Array<double> values(static_cast<std::size_t>(2 * learned_.n_attributes()), 0.0);
        double *a = values.data(), *b = a + learned_.n_attributes();
        for_each_entry(x, [&](std::int64_t j, double value) { a[j] = value; });
        for_each_entry(y, [&](std::int64_t j, double value) { b[j] = value; });
        for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) {
            if (learned_.sparse && a[j] == 0.0 && b[j] == 0.0) continue;
            f(j, learned_.term(j, learned_.ranks(j, a[j]) - learned_.ranks(j, b[j])), learned_.weights.data()[j]);
        }
    }

private:
    struct Entries {
        const std::int32_t* keys;
        const double* values;
        std::int64_t n;
    };

    template <class F>
    void for_each_entry(const Row& x, F f) const {
        if constexpr (SPARSE_ROWS) {
            for (std::int64_t p = 0; p < x.n; ++p) f(x.keys[p], x.values[p]);
        } else {
            for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) f(j, x[j]);
        }
    }

    // The non-zeros of a row; those of a dense one are gathered in two arrays.
    Entries entries(const Row& x, Array<std::int32_t>& keys, Array<double>& values) const {
        if constexpr (SPARSE_ROWS) {
            return {x.keys, x.values, x.n};
        } else {
            grow_to(keys, learned_.n_attributes());
            grow_to(values, learned_.n_attributes());
            return gathered(x, keys.data(), values.data());
        }
    }
    // The same where the arrays are known to be long enough.
    Entries known_entries(const Row& x) noexcept {
        if constexpr (SPARSE_ROWS) {
            return {x.keys, x.values, x.n};
        } else {
            return gathered(x, entered_keys_.data(), entered_values_.data());
        }
    }
    Entries gathered(const double* x, std::int32_t* keys, double* values) const noexcept {
        std::int64_t n = 0;
        for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) {
            keys[n] = static_cast<std::int32_t>(j);
            values[n] = x[j];
            n += x[j] != 0.0;
        }
        return {keys, values, n};
    }

    void compare_screened(const Row* rows, const std::int64_t* n_nodes, std::int64_t n_rows, const std::uint8_t* gone, Space& space, Stop& stop, Compared f) const {
        for (std::int64_t first = 0; first < n_rows; first += SCAN_ROWS) {
            stop.check();
            const auto n = static_cast<int>(std::min<std::int64_t>(SCAN_ROWS, n_rows - first));
            screen_->begin(learned_, rows + first, n, n_nodes[first + n - 1], space.ranked);
            for (int q = 0; q < n; ++q) {
                const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const Shortlist& {
                    screen_->list(learned_, q, {low, high}, n_wanted, limit, gone, space.ranked, space.found);
                    return space.found;
                };
                const auto score = [&](std::int64_t* scores) {
                    learned_.background.begin(scores);
                    for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) learned_.background.add(scores, j, screen_->rank(learned_, q, j, space.ranked));
                };
                f(first + q, nearest_in, score);
            }
        }
    }

    void compare_listed(const Row& x, std::int64_t n_nodes, std::int64_t q, RowOf row, const std::uint8_t* gone, Space& space, Compared f) const {
        const Entries of_x = entries(x, space.keys, space.values);
        space.probe.reserve(learned_.n_attributes());
        const SparseProbe probe(learned_, of_x.keys, of_x.values, of_x.n, space.probe);
        lists_->correct(learned_, of_x.keys, of_x.values, of_x.n, n_nodes, space.lists);
        const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const Shortlist& {
            space.found.begin(n_wanted, limit);
            space.found.skip(gone);
            double most = Parts::most_above(space.found.limit(), 1);
            for (std::int64_t k = low; k < high; ++k) {
                const Parts parts = lists_->lists(k) ? lists_->parts(learned_, probe.alone(), k, space.lists) : parts_of_moved(row(k), probe, space);
                if (static_cast<double>(parts.above) > most * static_cast<double>(parts.below)) continue;
                space.found.offer(k, parts.key());
                most = Parts::most_above(space.found.limit(), 1);
            }
            return space.found;
        };
        const auto score = [&](std::int64_t* scores) {
            learned_.background.begin(scores);
            for (std::int64_t p = 0; p < of_x.n; ++p) learned_.background.add(scores, of_x.keys[p], space.probe.ranks.data()[of_x.keys[p]]);
        };
        f(q, nearest_in, score);
    }

    Parts parts_of_moved(const Row& y, const SparseProbe& probe, Space& space) const {
        const Entries other = entries(y, space.other_keys, space.other_values);
        grow_to(space.other_ranks, other.n);
        for (std::int64_t p = 0; p < other.n; ++p) space.other_ranks.data()[p] = learned_.ranks(other.keys[p], other.values[p]);
        return probe.parts(other.keys, space.other_ranks.data(), other.n);
    }

    Learned learned_;
    std::optional<RankedScreen> screen_;
    std::optional<LearnedLists> lists_;
    Array<std::int32_t> entered_keys_;  // working space of `enter`
    Array<double> entered_values_;
};

}  // namespace mlca::MLCA_LEVEL
