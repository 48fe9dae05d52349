// Nodes with dense weights: which N are nearest to an instance, and how near exactly.
//
// Sums are in units of 2^-40 (see fixedpoint.hpp); small is near. From some number of nodes on they are screened first, a
// few instances at a time, and only what survives is computed exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "coded_screen.hpp"
#include "dense_window.hpp"
#include "fixedpoint.hpp"
#include "float_screen.hpp"
#include "memory.hpp"
#include "learned_nodes.hpp"
#include "query.hpp"
#include "settings.hpp"
#include "sharing.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode>
class DenseNodes {
public:
    using Window = DenseWindow;
    using Row = const double*;
    using NodesAsLearned = LearnedNodes<Row>;
    using DenseQuery = Query<Row>;
    // What looks a byte up 16 or more times at once screens by codes; other machines in float32.
    using Screen = std::conditional_t<mode == Mode::individual || !CODES_PAY, FloatScreen<mode>, CodedScreen<mode == Mode::individual ? Mode::common : mode>>;

    struct Space {
        typename Screen::Space screen;
        Array<double> x, y, r;
        Array<std::int64_t> before;
    };

    explicit DenseNodes(const Settings& told)
        : d_(told.n_features), weights_(d_), factors_(mode == Mode::individual ? d_ : 1), screen_(d_, told.screen_from) {}
    DenseNodes(const DenseNodes& other) : d_(other.d_), weights_(other.weights_.shared()), factors_(other.factors_), screen_(other.screen_) {}
    DenseNodes(DenseNodes&&) noexcept = default;
    DenseNodes& operator=(DenseNodes&&) noexcept = default;

    // Make room for so many nodes in all; whatever is done to them afterwards cannot fail.
    void reserve(std::int64_t n_nodes, Row) {
        weights_.reserve(n_nodes);
        if constexpr (mode == Mode::individual) factors_.reserve(n_nodes);
        screen_.reserve(n_nodes);
    }
    void reserve_move(std::int64_t node, Row, std::int64_t = -1) { weights_.own(node); }

    // Threads may create nodes side by side if those between two multiples of this number are one's; 0: one after the other.
    static constexpr std::int64_t CREATED_TOGETHER = Screen::ENTERED_TOGETHER;
    void create(std::int64_t node, Row x, const double* bandwidths) noexcept {
        std::copy_n(x, d_, weights_[node]);
        if constexpr (mode == Mode::individual) {
            for (std::int64_t i = 0; i < d_; ++i) factors_[node][i] = SCALE / bandwidths[i];
        }
        screen_.enter(node, weights_[node], factors(node));
    }

    // Move a node towards a target: y += (target - y) / step. Return whether it may have changed.
    bool move(std::int64_t node, Row target, double step) noexcept {
        double* y = weights_[node];
        for (std::int64_t i = 0; i < d_; ++i) y[i] += (target[i] - y[i]) / step;
        screen_.enter(node, y, factors(node));
        return true;
    }

    // Unmake the nodes from one on: the next ones overwrite them, and bounds that are too large do no harm.
    void withdraw(std::int64_t) noexcept {}

    const Rows<double>& weights() const noexcept { return weights_; }
    Row row(std::int64_t node) const noexcept { return weights_[node]; }
    // All rows as they are now, whatever becomes of them.
    Rows<double> shared_rows() const { return weights_.shared(); }
    // The groups of an instance's attributes.
    void group(const Groups& by, Row x, const double* bandwidth_sums, std::int64_t n_nodes, Grouping& grouping, Space&) const {
        by.group(x, bandwidth_sums, d_, n_nodes, grouping);
    }

    std::int64_t n_entries(std::int64_t n_nodes) const noexcept { return n_nodes * d_; }
    // About how many pairs of attributes a search among so many nodes compares.
    std::int64_t pairs(std::int64_t n_nodes) const noexcept { return n_nodes * d_; }

    // What screening needs made anew, now and then: `successor` takes its time and only reads, `take` is done at once.
    auto successor(std::int64_t n_nodes, double, Sharing sharing = UNSHARED) const {
        return screen_.successor(n_nodes, [this](std::int64_t node) { return row(node); }, sharing);
    }
    template <class Successor>
    void take(Successor&& made) noexcept { screen_.take(std::forward<Successor>(made)); }

    // List the nearest nodes of each query; they ask for ascending numbers of nodes.
    void search(DenseQuery* queries, std::int64_t n, Space& space, Stop& stop) const {
        for (std::int64_t j = 0; j < n; ++j) queries[j].found->clear();
        const auto exact = [&](const DenseQuery& query, std::int64_t node) { return sum(query, node, space); };
        // Groups differ from row to row: one row at a time is laid out by them.
        const std::int64_t together = mode == Mode::clustered ? 1 : n;
        for (std::int64_t first = 0; first < n; first += together) {
            const DenseQuery* some = queries + first;
            if constexpr (mode == Mode::clustered) lay_out(*some, space);
            if (screen_.can(some, together)) {
                screen_.search(some, together, space.screen, stop, exact, [this](std::int64_t node) { return row(node); });
            } else {
                for (std::int64_t j = 0; j < together; ++j) {
                    sum_all(some[j], space, stop, [&](std::int64_t k, std::int64_t total) { some[j].found->offer(k, total); });
                }
            }
        }
    }

    // f(node, sum) for all nodes that are asked about, in order.
    template <class F>
    void for_each_sum(const DenseQuery& query, Space& space, Stop& stop, const F& f) const {
        if constexpr (mode == Mode::clustered) lay_out(query, space);
        sum_all(query, space, stop, f);
    }

private:
    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 256;

    template <class F>
    void sum_all(const DenseQuery& query, Space& space, Stop& stop, const F& f) const {
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            f(k, sum(query, k, space));
        }
    }

    const double* factors(std::int64_t node) const noexcept { return mode == Mode::individual ? factors_[node] : nullptr; }

    std::int64_t sum(const DenseQuery& query, std::int64_t node, Space& space) const {
        if constexpr (mode == Mode::common) {
            return common_sum(query.x, weights_[node], d_, query.r);
        } else if constexpr (mode == Mode::individual) {
            return individual_sum(query.x, weights_[node], factors_[node], d_);
        } else {
            return clustered_sum(*query.grouping, weights_[node], space);
        }
    }

    // Put the row's values and factors in the order of its groups.
    void lay_out(const DenseQuery& query, Space& space) const {
        const auto d = static_cast<std::size_t>(d_);
        space.x.resize(d);
        space.y.resize(d);
        space.r.resize(d);
        space.before.resize(d + 1);
        const Grouping& grouping = *query.grouping;
        for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
            for (auto place = static_cast<std::size_t>(grouping.start(group)); place < static_cast<std::size_t>(grouping.end(group)); ++place) {
                space.x[place] = query.x[grouping.order[place]];
                space.r[place] = grouping.factors[static_cast<std::size_t>(group)];
            }
        }
    }

    [[gnu::noinline]] std::int64_t clustered_sum(const Grouping& grouping, const double* weights, Space& space) const {
        const std::int64_t* order = grouping.order.data();
        double *y = space.y.data(), *x = space.x.data(), *r = space.r.data();
        // Sums of all terms before a place: a group's sum is a difference of two, with no branch on its size.
        std::int64_t* __restrict before = space.before.data();
        for (std::int64_t place = 0; place < d_; ++place) y[place] = weights[order[place]];
        for (std::int64_t place = 0; place < d_; ++place) before[place + 1] = dissimilarity(x[place] - y[place], r[place]);
        before[0] = 0;
        for (std::int64_t place = 0; place < d_; ++place) before[place + 1] += before[place];
        std::int64_t total = 0;
        for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
            const std::int64_t start = grouping.start(group), end = grouping.end(group);
            total += group_root(before[end] - before[start], end - start);
        }
        return total;
    }

    std::int64_t d_;
    Rows<double> weights_, factors_;
    Screen screen_;
};

}  // namespace mlca::MLCA_LEVEL
