// Nodes with gaps and nominal attributes, and correntropy's distance to them (docs/mixed.md).
//
// Rows and nodes are lists of entries other than zero, gaps as MISSING; dense tables are listed, too, so that there is one way for both.
// A node is compared with an instance where either has an entry: first at the node's own, then at those of the instance that the node has not.
// Terms are integers, put in full (mixed.hpp). Numbers are gathered first and then go through the kernel together, as vectors. Nodes are
// screened (mixed_tiles.hpp), unless rows are long or their attributes in groups.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "fixedpoint.hpp"
#include "memory.hpp"
#include "mixed.hpp"
#include "mixed_learned_nodes.hpp"
#include "mixed_tiles.hpp"
#include "mixed_window.hpp"
#include "nodes_view.hpp"
#include "pairs.hpp"
#include "query.hpp"
#include "scattered.hpp"
#include "settings.hpp"
#include "sharing.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode>
class MixedNodes {
public:
    using Window = MixedWindow;
    using Row = SparseRow;
    using NodesAsLearned = MixedLearnedNodes;
    using MixedQuery = Query<Row>;

    struct Space {
        Array<double> x, unfolded;          // x: zero between uses
        Array<std::int64_t> seen;           // the number of the last comparison in which the node had an entry there
        std::int64_t n_compared = 0;
        Array<std::int64_t> sums, sizes;    // of groups
        MixedTiles::Space tiles;
    };

    explicit MixedNodes(const Settings& told)
        : d_(told.n_features),
          screen_from_(told.screen_from),
          nominal_(told.nominal),
          factors_(mode == Mode::individual ? told.n_features : 1),
          tiles_(told.n_features, told.nominal, mode == Mode::individual),
          ones_(static_cast<std::size_t>(told.n_features), 1.0f) {}

    void reserve(std::int64_t n_nodes, const Row& x) {
        weights_.reserve(x.n);
        if constexpr (mode == Mode::individual) factors_.reserve(n_nodes);
        if constexpr (mode != Mode::clustered) tiles_.reserve(n_nodes);
    }
    // Make sure that a node can be moved towards x, or towards another node that was itself moved towards x.
    void reserve_move(std::int64_t node, const Row& x, std::int64_t towards = -1) {
        grow_to(target_, d_);
        grow_to(visited_, d_);
        weights_.make_room(node, x.n + (towards < 0 ? 0 : weights_[towards].length));
    }

    static constexpr std::int64_t CREATED_TOGETHER = 0;
    void create(std::int64_t node, const Row& x, const double* bandwidths) noexcept {
        weights_.open(x.keys, x.values, x.n);
        n_pairs_ += x.n;
        if constexpr (mode == Mode::individual) {
            for (std::int64_t i = 0; i < d_; ++i) factors_[node][i] = SCALE / bandwidths[i];
        }
        if constexpr (mode != Mode::clustered) keep(node, x);
    }

    // Move a node towards a target, entry by entry. Return whether it changed.
    bool move(std::int64_t node, const Row& target, double step) noexcept {
        auto& weights = weights_[node];
        n_pairs_ -= weights.length;
        for (std::int64_t p = 0; p < target.n; ++p) target_.data()[target.keys[p]] = target.values[p];
        std::int32_t kept = 0;
        bool same = true;
        for (std::int32_t place = 0; place < weights.length; ++place) {
            const std::int32_t i = weights.keys[place];
            const double before = weights.values[place], moved = moved_entry(before, target_.data()[i], step, is_nominal(nominal_, i));
            visited_.data()[i] = moved != 0.0 || target_.data()[i] != 0.0;
            same = same && moved == before;
            weights.keys[kept] = i;
            weights.values[kept] = moved;
            kept += moved != 0.0;
        }
        weights.length = kept;
        for (std::int64_t p = 0; p < target.n; ++p) {
            const std::int32_t i = target.keys[p];
            const double moved = moved_entry(0.0, target.values[p], step, is_nominal(nominal_, i));
            if (!visited_.data()[i] && moved != 0.0) {
                weights_.append(node, i, moved);
                same = false;
            }
        }
        for (std::int32_t place = 0; place < weights.length; ++place) visited_.data()[weights.keys[place]] = 0;
        for (std::int64_t p = 0; p < target.n; ++p) {
            target_.data()[target.keys[p]] = 0.0;
            visited_.data()[target.keys[p]] = 0;
        }
        n_pairs_ += weights.length;
        if constexpr (mode != Mode::clustered) keep(node, row(node));
        return !same;
    }

    void withdraw(std::int64_t first) noexcept {
        for (std::int64_t node = weights_.size() - 1; node >= first; --node) {
            n_pairs_ -= weights_[node].length;
            weights_.withdraw();
        }
    }

    const PairRows<double>& weights() const noexcept { return weights_; }
    Row row(std::int64_t node) const noexcept { return row_of(weights_, node); }

    // There is nothing to renew.
    std::optional<Nothing> successor(std::int64_t, double, Sharing = UNSHARED) const noexcept { return std::nullopt; }
    void take(const Nothing&) noexcept {}

    std::int64_t pairs(std::int64_t) const noexcept { return n_pairs_; }
    std::int64_t n_entries(std::int64_t) const noexcept { return n_pairs_; }

    // The groups of an instance's attributes.
    void group(const Groups& by, const Row& x, const double* bandwidth_sums, std::int64_t n_nodes, Grouping& grouping, Space& space) const {
        space.unfolded.assign(static_cast<std::size_t>(d_), 0.0);
        for (std::int64_t p = 0; p < x.n; ++p) space.unfolded.data()[x.keys[p]] = x.values[p];
        by.group(space.unfolded.data(), nominal_, bandwidth_sums, d_, n_nodes, grouping);
    }

    void search(MixedQuery* queries, std::int64_t n, Space& space, Stop& stop) const {
        for (std::int64_t j = 0; j < n; ++j) {
            Shortlist& found = *queries[j].found;
            found.clear();
            if (search_screened(queries[j], space, stop)) continue;
            sum_within(queries[j], space, stop, [&] { return found.limit(); }, [&](std::int64_t k, std::int64_t total) { found.offer(k, total); });
        }
    }

    // f(node, sum in full) for all nodes that are asked about, in order.
    template <class F>
    void for_each_sum(const MixedQuery& query, Space& space, Stop& stop, const F& f) const {
        sum_within(query, space, stop, [] { return NO_LIMIT; }, f);
    }

private:
    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 64;
    static constexpr std::int64_t TOGETHER_SUMMED = 32;

    void keep(std::int64_t node, const Row& y) noexcept {
        tiles_.enter(node, y, [&](std::int64_t p) { return y.values[p]; }, mode == Mode::individual ? factors_[node] : nullptr);
    }

    // List the nearest nodes by bounds, if there are some.
    bool search_screened(const MixedQuery& query, Space& space, Stop& stop) const {
        if constexpr (mode == Mode::clustered) return false;
        if (mode == Mode::common && !is_in_range(query.r)) return false;
        const Row& x = query.x;
        const auto value = [&](std::int64_t p) { return x.values[p]; };
        if (query.n_nodes < screen_from_ || !tiles_.can() || !tiles_.lay_out(x, value, space.tiles)) return false;
        tiles_.bound(query.n_nodes, query.r, ones_.data(), 1.0, true, static_cast<double>(d_) * PER_UNIT, space.tiles, stop);
        grow_to(space.x, d_);
        grow_to(space.seen, d_);
        const Scattered<double> scattered(space.x, x, value);
        Shortlist& found = *query.found;
        MixedTiles::list_nearest(0, query.n_nodes, space.tiles, found, [&](std::int64_t k) { return whole_sum(query, k, found.limit(), space); });
        return true;
    }

    // The same; of a node whose sum is beyond the limit at the time, it may be any number beyond it.
    template <class Limit, class F>
    void sum_within(const MixedQuery& query, Space& space, Stop& stop, const Limit& limit, const F& f) const {
        const Row& x = query.x;
        grow_to(space.x, d_);
        grow_to(space.seen, d_);
        const Scattered<double> scattered(space.x, x, [&](std::int64_t p) { return x.values[p]; });
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            if constexpr (mode == Mode::clustered) {
                f(k, clustered_sum(query, k, space));
            } else {
                f(k, whole_sum(query, k, limit(), space));
            }
        }
    }

    // f(attribute, the instance's value, the node's value) wherever one of them is not zero, until it returns false.
    template <class F>
    void for_each_pair(const Row& x, std::int64_t k, Space& space, F f) const {
        const Row y = row(k);
        const std::int64_t number = ++space.n_compared;
        for (std::int64_t p = 0; p < y.n; ++p) {
            space.seen.data()[y.keys[p]] = number;
            if (!f(y.keys[p], space.x.data()[y.keys[p]], y.values[p])) return;
        }
        for (std::int64_t p = 0; p < x.n; ++p) {
            if (space.seen.data()[x.keys[p]] != number && !f(x.keys[p], x.values[p], 0.0)) return;
        }
    }

    // Put in full a sum only grows: once it is beyond the limit, the rest does not matter.
    std::int64_t whole_sum(const MixedQuery& query, std::int64_t k, std::int64_t limit, Space& space) const {
        double differences[TOGETHER_SUMMED] = {}, factors[TOGETHER_SUMMED] = {};
        std::int64_t total = 0, compared = d_, gathered = 0;
        for_each_pair(query.x, k, space, [&](std::int32_t i, double a, double b) {
            if (is_missing(a) || is_missing(b)) {
                --compared;
            } else if (is_nominal(nominal_, i)) {
                total += a == b ? 0 : static_cast<std::int64_t>(PER_UNIT);
            } else {
                differences[gathered] = a - b;
                if constexpr (mode == Mode::individual) factors[gathered] = factors_[k][i];
                if (++gathered < TOGETHER_SUMMED) return true;
                total += sum_of(differences, factors, gathered, query.r);
                gathered = 0;
            }
            return total <= limit;
        });
        if (total > limit) return total;
        return in_full(total + sum_of(differences, factors, gathered, query.r), compared, d_);
    }

    static std::int64_t sum_of(const double* differences, const double* factors, std::int64_t n, double r) noexcept {
        if constexpr (mode == Mode::individual) return sum_of_roots(differences, factors, n);
        return sum_of_terms(differences, n, r);
    }
    [[gnu::noinline]] static std::int64_t sum_of_terms(const double* __restrict differences, std::int64_t n, double r) noexcept {
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += dissimilarity(differences[i], r);
        return total;
    }
    [[gnu::noinline]] static std::int64_t sum_of_roots(const double* __restrict differences, const double* __restrict factors, std::int64_t n) noexcept {
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += root_dissimilarity(differences[i], factors[i]);
        return total;
    }

    std::int64_t clustered_sum(const MixedQuery& query, std::int64_t k, Space& space) const {
        const Grouping& grouping = *query.grouping;
        space.sums.assign(static_cast<std::size_t>(grouping.n_groups), 0);
        space.sizes.resize(static_cast<std::size_t>(grouping.n_groups));
        for (std::int64_t g = 0; g < grouping.n_groups; ++g) space.sizes.data()[g] = grouping.end(g) - grouping.start(g);
        for_each_pair(query.x, k, space, [&](std::int32_t i, double a, double b) {
            if (is_missing(a)) return true;
            const std::int64_t g = grouping.members.data()[i];
            if (is_missing(b)) {
                --space.sizes.data()[g];
            } else if (is_nominal(nominal_, i)) {
                space.sums.data()[g] += a == b ? 0 : static_cast<std::int64_t>(PER_UNIT);
            } else {
                space.sums.data()[g] += dissimilarity(a - b, grouping.factors.data()[g]);
            }
            return true;
        });
        std::int64_t total = 0, compared = 0;
        for (std::int64_t g = 0; g < grouping.n_groups; ++g) {
            if (space.sizes.data()[g] == 0) continue;
            total += group_root(space.sums.data()[g], space.sizes.data()[g]);
            ++compared;
        }
        return in_full(total, compared, grouping.n_groups);
    }

    std::int64_t d_, screen_from_;
    Nominal nominal_;
    std::int64_t n_pairs_ = 0;
    PairRows<double> weights_;
    Rows<double> factors_;  // individual: each node's r
    MixedTiles tiles_;      // unless clustered
    Array<float> ones_;     // what each attribute weighs
    // Working space of `move`, zero between uses.
    Array<double> target_;
    Array<std::uint8_t> visited_;
};

}  // namespace mlca::MLCA_LEVEL
