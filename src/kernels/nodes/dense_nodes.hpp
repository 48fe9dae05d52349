// Nodes with dense weights, and exact search for the N nodes nearest to a row.
//
// Sums are in units of 2^-40 (see base/fixed_point.hpp); smaller is nearer. With `screen_from` nodes or more, nodes are
// first screened for a few rows at a time, and exact sums are computed only for the nodes that pass.
//
// Dense nodes have no missing values: learning the first row with a missing value converts the model to sparse storage
// (nodes/sparse_nodes.hpp). Rows to predict may have missing values. Their sums include only the features that the row
// has, and nodes are screened for them by tiles that are built on demand (search/float_tiles.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "search/correntropy_codes.hpp"
#include "bandwidth/dense_window.hpp"
#include "base/fixed_point.hpp"
#include "search/float_tiles.hpp"
#include "base/memory.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "similarity/rank_index.hpp"
#include "search/neighbour_index.hpp"
#include "learner/settings.hpp"
#include "base/team.hpp"

namespace mlca::MLCA_LEVEL {

class DenseNodes {
public:
    using Window = DenseWindow;
    using Row = const double*;
    using RankIndexOfNodes = RankIndex<Row>;
    using DenseQuery = Query<Row>;

    struct Space {
        CorrentropyCodes::Space codes;
        FloatTiles::Space tiles;
        Array<double> x, y, r;
        Array<std::int64_t> before, present;
    };

    explicit DenseNodes(const Settings& settings)
        : mode_(settings.mode), d_(settings.n_features), screen_from_(settings.screen_from), weights_(d_),
        factors_(mode_ == Mode::individual ? d_ : 1) {
        if (mode_ == Mode::individual) {
            tiles_.emplace(no_tiles());
        } else {
            codes_.emplace(mode_, d_, screen_from_, settings.lists_only_within_vigilance());
        }
    }
    DenseNodes(const DenseNodes& other)
        : mode_(other.mode_),
          d_(other.d_),
          screen_from_(other.screen_from_),
          weights_(other.weights_.shared()),
          factors_(other.factors_),
          codes_(other.codes_),
          tiles_(other.tiles_) {}
    DenseNodes(DenseNodes&&) noexcept = default;
    DenseNodes& operator=(DenseNodes&&) noexcept = default;

    // Reserve memory for n_nodes nodes in total, so that later operations on them cannot fail.
    void reserve(std::int64_t n_nodes, Row) {
        weights_.reserve(n_nodes);
        if (codes_) codes_->reserve(n_nodes);
        if (tiles_) {
            factors_.reserve(n_nodes);
            tiles_->reserve(n_nodes);
        }
        tiles_on_demand_.drop();
    }
    void reserve_move(std::int64_t node, Row, std::int64_t = -1) {
        weights_.own(node);
        if (codes_) codes_->reserve_move();
    }

    // The block size for entering nodes concurrently: the nodes between two adjacent multiples of it must be entered by
    // a single thread. 0: all nodes must be entered one after another.
    std::int64_t entered_together() const noexcept { return codes_ ? CodedNodes::ENTERED_TOGETHER : 0; }
    void enter(std::int64_t node, Row x, const double* bandwidths) noexcept {
        std::copy_n(x, d_, weights_[node]);
        for (std::int64_t i = 0; tiles_ && i < d_; ++i) factors_[node][i] = SCALE / bandwidths[i];
        enter_screen(node);
    }

    // Move a node towards a target: y += (target - y) / step. Return whether it may have changed.
    bool move(std::int64_t node, Row target, double step) noexcept {
        double* y = weights_[node];
        for (std::int64_t i = 0; i < d_; ++i) y[i] += (target[i] - y[i]) / step;
        enter_screen(node);
        tiles_on_demand_.drop();
        return true;
    }

    // Remove the given node and all later ones. Nothing has to be done: new nodes overwrite them, and stored maxima
    // that are too large only loosen bounds.
    void withdraw(std::int64_t) noexcept {}

    const Rows<double>& weights() const noexcept { return weights_; }
    Row row(std::int64_t node) const noexcept { return weights_[node]; }
    // A snapshot of the weights of all nodes.
    Rows<double> shared_rows() const { return weights_.shared(); }
    // Assign a row's features to groups.
    void group(const Groups& by, Row x, const double* bandwidth_sums, std::int64_t n_nodes, Grouping& grouping, Space&) const {
        by.group(x, {}, bandwidth_sums, d_, n_nodes, grouping);
    }

    std::int64_t n_entries(std::int64_t n_nodes) const noexcept { return n_nodes * d_; }
    // Approximate number of feature comparisons in a search among n_nodes nodes.
    std::int64_t pairs(std::int64_t n_nodes) const noexcept { return n_nodes * d_; }

    // Rebuild the screening data when it is due: `renewed` is slow but only reads; `take` then installs the result
    // immediately.
    std::optional<CodedNodes> renewed(std::int64_t n_nodes, double, ParallelFor parallel_for = ON_ONE_THREAD) const {
        if (!codes_) return std::nullopt;
        return codes_->renewed(n_nodes, [this](std::int64_t node) { return row(node); }, parallel_for);
    }
    void take(CodedNodes&& made) noexcept { codes_->take(std::move(made)); }

    // List the nodes nearest to each query; the queries must be in ascending order of n_nodes.
    void nearest(DenseQuery* queries, std::int64_t n, Space& space, Stop& stop) const {
        for (std::int64_t j = 0; j < n; ++j) queries[j].found->clear();
        const auto exact = [&](const DenseQuery& query, std::int64_t node) { return sum(query, node, space); };
        // Several rows are screened together only if all features share one bandwidth and no value is missing.
        const bool one_by_one = mode_ != Mode::common
            || !std::all_of(queries, queries + n, [this](const DenseQuery& query) { return is_complete(query); });
        const std::int64_t together = one_by_one ? 1 : n;
        for (std::int64_t first = 0; first < n; first += together) {
            const DenseQuery* some = queries + first;
            const bool complete = !one_by_one || is_complete(*some);
            if (mode_ == Mode::clustered) lay_out(*some, space);
            if (complete && codes_ && codes_->can()) {
                codes_->nearest(some, together, space.codes, stop, exact, [this](std::int64_t node) { return row(node); });
            } else if (!one_by_one || !search_tiles(*some, space, stop)) {
                for (std::int64_t j = 0; j < together; ++j) {
                    sum_all(some[j], space, stop, [&](std::int64_t k, std::int64_t total) { some[j].found->offer(k, total); });
                }
            }
        }
    }

    // Call f(node, sum) for each of the query's n_nodes nodes, in order.
    template <class F>
    void for_each_sum(const DenseQuery& query, Space& space, Stop& stop, const F& f) const {
        if (mode_ == Mode::clustered) lay_out(query, space);
        sum_all(query, space, stop, f);
    }

private:
    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 256;

    void enter_screen(std::int64_t node) noexcept {
        if (codes_) codes_->enter(node, weights_[node]);
        if (tiles_) enter_tiles(*tiles_, node);
    }

    bool is_complete(const DenseQuery& query) const noexcept { return !has_missing(query.x, d_); }

    template <class F>
    void sum_all(const DenseQuery& query, Space& space, Stop& stop, const F& f) const {
        const bool complete = mode_ == Mode::clustered || is_complete(query);
        if (!complete) lay_out_present(query, space);
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            f(k, complete ? sum(query, k, space) : sum_of_present(query, k, space));
        }
    }

    FloatTiles no_tiles() const { return {Array<float>(d_, 1.0f), {}, mode_ == Mode::individual}; }
    void enter_tiles(FloatTiles& tiles, std::int64_t node) const noexcept {
        tiles.enter(node, AllEntries{{}, d_}, [y = row(node)](std::int64_t i) { return y[i]; }, tiles_ ? factors_[node] : nullptr);
    }

    // List the nearest nodes using bounds from tiles; return false if such bounds are not available.
    bool search_tiles(const DenseQuery& query, Space& space, Stop& stop) const {
        if (mode_ == Mode::clustered || query.n_nodes < screen_from_ || (mode_ == Mode::common && !is_in_range(query.r))) return false;
        std::shared_ptr<const FloatTiles> made;
        if (!tiles_ && d_ <= FloatTiles::MOST_FEATURES) {
            made = tiles_on_demand_.get(query.n_nodes, [&] {
                FloatTiles tiles = no_tiles();
                tiles.reserve(query.n_nodes);
                for (std::int64_t k = 0; k < query.n_nodes; ++k) enter_tiles(tiles, k);
                return tiles;
            });
        }
        const FloatTiles* tiles = tiles_ ? &*tiles_ : made.get();
        const bool complete = is_complete(query);
        if (!complete) lay_out_present(query, space);
        const auto exact = [&](std::int64_t k) { return complete ? sum(query, k, space) : sum_of_present(query, k, space); };
        const auto kept = [&](std::int64_t i) { return query.x[i]; };
        return tiles != nullptr && tiles->search(AllEntries{{}, d_}, kept, query.n_nodes, query.r, space.tiles, stop, *query.found, exact);
    }

    void lay_out_present(const DenseQuery& query, Space& space) const {
        space.present.clear();
        space.x.clear();
        for (std::int64_t i = 0; i < d_; ++i) {
            if (is_missing(query.x[i])) continue;
            space.present.push_back(i);
            space.x.push_back(query.x[i]);
        }
        space.y.resize(space.x.size());
        space.r.resize(space.x.size());
    }

    // The sum over the features that the row has, scaled up to all features.
    std::int64_t sum_of_present(const DenseQuery& query, std::int64_t node, Space& space) const {
        const std::int64_t n = space.present.size();
        const double* weights = weights_[node];
        for (std::int64_t p = 0; p < n; ++p) space.y[p] = weights[space.present[p]];
        if (mode_ != Mode::individual) return in_full(common_sum(space.x.data(), space.y.data(), n, query.r), n, d_);
        for (std::int64_t p = 0; p < n; ++p) space.r[p] = factors_[node][space.present[p]];
        return in_full(individual_sum(space.x.data(), space.y.data(), space.r.data(), n), n, d_);
    }

    std::int64_t sum(const DenseQuery& query, std::int64_t node, Space& space) const {
        if (mode_ == Mode::common) return common_sum(query.x, weights_[node], d_, query.r);
        if (mode_ == Mode::individual) return individual_sum(query.x, weights_[node], factors_[node], d_);
        return clustered_sum(*query.grouping, weights_[node], space);
    }

    // Arrange the row's values and factors in the order of its groups.
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
                space.r[place] = grouping.factors[group];
            }
        }
    }

    [[gnu::noinline]] std::int64_t clustered_sum(const Grouping& grouping, const double* weights, Space& space) const {
        const std::int64_t* order = grouping.order.data();
        double *y = space.y.data(), *x = space.x.data(), *r = space.r.data();
        const std::int64_t n_present = grouping.end(grouping.n_groups - 1);
        if (n_present == 0) return in_full(0, 0, grouping.n_groups);
        // Compute prefix sums of the terms: a group's sum is the difference of two, without a branch on the group's
        // size.
        std::int64_t* __restrict before = space.before.data();
        for (std::int64_t place = 0; place < n_present; ++place) y[place] = weights[order[place]];
        for (std::int64_t place = 0; place < n_present; ++place) before[place + 1] = dissimilarity(x[place] - y[place], r[place]);
        before[0] = 0;
        for (std::int64_t place = 0; place < n_present; ++place) before[place + 1] += before[place];
        std::int64_t total = 0;
        for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
            const std::int64_t start = grouping.start(group), end = grouping.end(group);
            total += group_root(before[end] - before[start], end - start);
        }
        return total;
    }

    Mode mode_;
    std::int64_t d_, screen_from_;
    Rows<double> weights_, factors_;
    std::optional<CorrentropyCodes> codes_;    // MLCA, MLCA-C
    std::optional<FloatTiles> tiles_;         // MLCA-I
    TilesOnDemand<FloatTiles> tiles_on_demand_;  // MLCA, for rows with missing values
};

}  // namespace mlca::MLCA_LEVEL
