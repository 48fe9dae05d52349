// Four-bit codes under correntropy: find the nearest nodes at a fiftieth of the cost of computing all exact sums.
//
// Used in MLCA and MLCA-C for dense rows, with `screen_from` nodes or more. MLCA-I, where each node has its own
// bandwidths and would need its own table, uses float tiles (search/float_tiles.hpp).
//
// Byte shuffles give bounds for all nodes (search/scan_codes.hpp), sixteen-bit codes give tighter bounds
// (search/codes16.hpp), and exact sums are computed only for nodes that may still be among the nearest
// (search/screening.hpp explains the scheme and why it is exact). Codes do not depend on bandwidths, so a bandwidth
// that changes with every node only affects the row's table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "base/fixed_point.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"
#include "search/codes16.hpp"
#include "search/codes4.hpp"
#include "search/lookup_tables.hpp"
#include "search/neighbour_index.hpp"
#include "search/screening.hpp"
#include "search/taker_buckets.hpp"

namespace mlca::MLCA_LEVEL {

// The codes of the nodes: four bits for the first bounds, and sixteen bits for tighter ones.
//
// Codes are derived from the weights and only serve to exclude nodes, so they can be rebuilt at any time. When the
// number of nodes has quadrupled, boundaries are recomputed and all nodes are encoded again; in total this adds a third
// to the cost per node.
class CodedNodes {
public:
    // Nodes with more features have no codes, because sums of sixteen-bit terms could overflow.
    static constexpr std::int64_t MOST_FEATURES = 1 << 15;

    // `looks_closer`: whether to also keep sixteen-bit codes.
    explicit CodedNodes(std::int64_t n_features, bool looks_closer = true)
        : looks_closer_(looks_closer), cells_(n_features), codes_(n_features), widths_(n_features), fine_(rounded_up(n_features, FINE_LANES)) {}

    // Whether nodes have codes; with few nodes, codes do not pay off.
    bool ready() const noexcept { return cells_.built(); }
    const Cells& cells() const noexcept { return cells_; }
    const Codes4& codes() const noexcept { return codes_; }
    const Scale16& widths() const noexcept { return widths_; }
    const std::int16_t* fine(std::int64_t node) const noexcept { return fine_[node]; }

    // Reserve memory for n nodes in total; a failure changes nothing.
    void reserve(std::int64_t n) {
        codes_.reserve(n);
        if (looks_closer_) fine_.reserve(n);
        if (buckets_) buckets_->reserve(n);
    }
    void reserve_move() {
        if (buckets_) buckets_->reserve_move();
    }

    // Whether the first n nodes need new boundaries; with fewer than `first` nodes, codes do not pay off.
    bool due(std::int64_t n, std::int64_t first) const noexcept { return n >= first && cells_.due(n); }

    // Return new codes of the first n nodes, with new boundaries; weights(node) returns the weights of a node. This is
    // slow but does not change this object, so other threads may keep reading it.
    template <class Weights>
    CodedNodes renewed(std::int64_t n, const Weights& weights, bool with_buckets, ParallelFor parallel_for = ON_ONE_THREAD) const {
        CodedNodes next(cells_.n_features(), looks_closer_);
        next.reserve(n);
        next.cells_.build(n, weights, parallel_for);
        if (looks_closer_) next.widths_.build(n, weights);
        parallel_for(n, ENTERED_TOGETHER, [&](std::int64_t low, std::int64_t high) {
            for (std::int64_t node = low; node < high; ++node) next.enter(node, weights(node));
        });
        if (with_buckets) next.buckets_.emplace(n, next.cells_, weights);
        return next;
    }

    // Write the codes of a node: the next one, one that has moved, or one that replaces a withdrawn node. Threads may
    // write nodes concurrently if the nodes between two adjacent multiples of ENTERED_TOGETHER are written by a single
    // thread.
    static constexpr std::int64_t ENTERED_TOGETHER = BLOCK;
    void enter(std::int64_t node, const double* weights) noexcept {
        if (!ready()) return;
        std::uint8_t cells_of_node[MOST_FEATURES];
        if (looks_closer_) widths_.encode(weights, fine_[node]);
        cells_.assign(weights, cells_of_node);
        codes_.enter(node, cells_of_node);
        if (buckets_) buckets_->enter(node, cells_, weights);
    }

    // Collect those of the first n nodes that may absorb the row; return false if there are too many or if there are no
    // buckets.
    bool collect_from_buckets(const double* x, double reach, std::int64_t n, Array<std::int32_t>& nodes) const {
        return buckets_ && buckets_->collect(x, reach, cells_, n, nodes);
    }

private:
    bool looks_closer_;
    std::optional<TakerBuckets> buckets_;
    Cells cells_;
    Codes4 codes_;
    Scale16 widths_;
    Rows<std::int16_t> fine_;
};

// The sums of one row with the nodes, in the form that `Screening` requires; weights(node) returns the weights of a
// node.
template <class Exact, class Weights>
struct CodedSums {
    std::int64_t d;
    const Row16& fine;
    const CodedNodes& coded;
    const Exact& sum;
    const Weights& weights;

    std::int64_t exact(std::int64_t node) const { return sum(node); }
    // Compute the exact sums of a few nodes. Used if only nodes within a small distance are needed: so few nodes then
    // pass the four-bit bounds that tighter bounds do not pay off.
    void exact(const std::int32_t* nodes, std::int64_t n, std::int64_t* totals) const {
        for (std::int64_t j = 0; j < n; ++j) totals[j] = sum(nodes[j]);
    }
    [[gnu::always_inline]] void fetch(std::int64_t node) const { fetch_row(weights(node), d); }
    std::int64_t lower(std::int64_t node) const { return fine.lower(coded.fine(node)); }
    [[gnu::always_inline]] void fetch_fine(std::int64_t node) const { fetch_row(coded.fine(node), d); }
    std::int64_t looseness() const { return fine.looseness(); }
};

// If there are few features and they share one bandwidth, the exact sums of a few nodes are computed together, so that
// their terms fill vectors.
template <class Weights>
struct FewFeatures {
    static constexpr std::int64_t MOST = 8;
    const double* x;
    std::int64_t d;
    double r;
    const Weights& weights;

    [[gnu::always_inline]] void fetch(std::int64_t) const {}
    void exact(const std::int32_t* nodes, std::int64_t n, std::int64_t* totals) const {
        alignas(64) double differences[SEARCHED_TOGETHER * MOST];
        alignas(64) std::int64_t terms[SEARCHED_TOGETHER * MOST];
        for (std::int64_t j = 0; j < n; ++j) {
            const double* y = weights(nodes[j]);
            for (std::int64_t i = 0; i < d; ++i) differences[j * d + i] = x[i] - y[i];
        }
        // Rounded up to whole vectors; the excess results are unused.
        const std::int64_t end = rounded_up(n * d, 8);
        for (std::int64_t k = n * d; k < end; ++k) differences[k] = 0.0;
        for (std::int64_t k = 0; k < end; k += 8) {
            for (std::int64_t lane = 0; lane < 8; ++lane) terms[k + lane] = dissimilarity(differences[k + lane], r);
        }
        for (std::int64_t j = 0; j < n; ++j) totals[j] = std::accumulate(terms + j * d, terms + (j + 1) * d, std::int64_t{0});
    }
};

class CorrentropyCodes {
public:
    using DenseQuery = Query<const double*>;

    struct Space {
        std::vector<LookupTables> tables;
        std::vector<Row16> fine;
        Screening screening;
        Array<std::int32_t> in_buckets;  // nodes collected from buckets
    };

    // `lists_only_within_vigilance`: whether learning needs only the nodes within the vigilance.
    CorrentropyCodes(Mode mode, std::int64_t d, std::int64_t from, bool lists_only_within_vigilance)
        : is_common_(mode == Mode::common),
          looks_closer_(!is_common_ || (d > FEW && !lists_only_within_vigilance)),
          only_within_(lists_only_within_vigilance && is_common_),
          d_(d),
          from_(std::max(from, std::int64_t{1})),
          coded_(d, looks_closer_) {}

    void reserve(std::int64_t n_nodes) { coded_.reserve(n_nodes); }
    void reserve_move() { coded_.reserve_move(); }
    void enter(std::int64_t node, const double* weights) noexcept { coded_.enter(node, weights); }

    bool can() const noexcept { return coded_.ready(); }

    // Return codes with boundaries that fit the current nodes, if the boundaries are due to be recomputed.
    template <class Weights>
    std::optional<CodedNodes> renewed(std::int64_t n_nodes, const Weights& weights, ParallelFor parallel_for) const {
        if (d_ > CodedNodes::MOST_FEATURES || !coded_.due(n_nodes, from_)) return std::nullopt;
        return coded_.renewed(n_nodes, weights, only_within_ && n_nodes >= BUCKETS_FROM * from_, parallel_for);
    }
    void take(CodedNodes&& made) noexcept { coded_ = std::move(made); }

    // List the nodes nearest to each query; exact(query, node) returns an exact sum, weights(node) the weights of a
    // node.
    template <class Exact, class Weights>
    void nearest(const DenseQuery* queries, std::int64_t n, Space& space, Stop& stop, const Exact& exact, const Weights& weights) const {
        if (space.tables.empty()) {
            space.fine.resize(SCAN_ROWS, Row16(d_));
            space.tables.resize(SCAN_ROWS, LookupTables(d_));
        }
        std::int64_t first = 0;
        while (first < n && list_from_buckets(queries[first], space, weights)) ++first;
        for (; first < n; first += SCAN_ROWS) {
            stop.check();
            const auto n_rows = static_cast<int>(std::min<std::int64_t>(SCAN_ROWS, n - first));
            const DenseQuery* some = queries + first;
            const LookupTables* tables[SCAN_ROWS];
            for (int q = 0; q < n_rows; ++q) {
                fill(some[q], space.fine[q], space.tables[q]);
                tables[q] = &space.tables[q];
            }
            std::int64_t most = 0;
            for (int q = 0; q < n_rows; ++q) most = std::max(most, some[q].found->cap() / Screening::bound_step(*tables[q]));
            space.screening.bound_all(coded_.codes(), tables, n_rows, some[n_rows - 1].n_nodes, most);
            for (int q = 0; q < n_rows; ++q) list_nearest(some[q], q, Screening::bound_step(*tables[q]), space, exact, weights);
        }
    }

private:
    // Up to this number of features, an exact sum costs hardly more than a tighter bound.
    static constexpr std::int64_t FEW = 8;
    // Buckets are built if there are at least BUCKETS_FROM times `screen_from` nodes; with fewer, they save little
    // time.
    static constexpr std::int64_t BUCKETS_FROM = 64;

    // List the nodes whose sums are within the cap, using buckets; return false if this is not requested or not
    // possible, or if there would be too many candidates.
    template <class Weights>
    bool list_from_buckets(const DenseQuery& query, Space& space, const Weights& weights) const {
        if (!only_within_ || query.found->cap() == NO_LIMIT) return false;
        const std::optional<double> reach = TakerBuckets::reach_of(query.found->cap(), query.r);
        if (!reach || !coded_.collect_from_buckets(query.x, *reach, query.n_nodes, space.in_buckets)) return false;
        const std::int32_t* nodes = space.in_buckets.data();
        const std::int64_t n = space.in_buckets.size();
        const auto is_within = [&](const double* y) {
            for (std::int64_t i = 0; i < d_; ++i) {
                if (std::fabs(query.x[i] - y[i]) > *reach) return false;
            }
            return true;
        };
        for (std::int64_t k = 0; k < n; ++k) {
            if (k + SEARCHED_TOGETHER < n) __builtin_prefetch(weights(nodes[k + SEARCHED_TOGETHER]));
            const double* y = weights(nodes[k]);
            if (is_within(y)) query.found->offer(nodes[k], common_sum(query.x, y, d_, query.r));
        }
        return true;
    }

    struct Group {
        double r;
        std::int64_t size;
    };
    static auto groups_of(const DenseQuery& query) noexcept {
        return [&grouping = *query.grouping](std::int64_t i) {
            const std::int64_t group = grouping.members[i];
            return Group{grouping.factors[group], grouping.end(group) - grouping.start(group)};
        };
    }

    void fill(const DenseQuery& query, Row16& fine, LookupTables& tables) const noexcept {
        if (is_common_) {
            tables.fill_common(query.x, query.r, coded_.cells());
            if (looks_closer_) fine.fill_common(query.x, query.r, coded_.widths());
        } else {
            fine.fill_grouped(query.x, groups_of(query), coded_.widths());
            tables.fill_grouped(query.x, groups_of(query), coded_.cells());
        }
    }

    template <class Exact, class Weights>
    void list_nearest(const DenseQuery& query, int row, std::int64_t step, Space& space, const Exact& exact, const Weights& weights) const {
        const auto sum = [&](std::int64_t node) { return exact(query, node); };
        const CodedSums<decltype(sum), Weights> sums{d_, space.fine[row], coded_, sum, weights};
        if (is_common_ && d_ <= FEW) {
            const FewFeatures<Weights> few{query.x, d_, query.r, weights};
            space.screening.list_nearest_directly(row, query.n_nodes, step, query.found->most(), few, *query.found);
        } else if (!looks_closer_) {
            space.screening.list_nearest_directly(row, query.n_nodes, step, query.found->most(), sums, *query.found);
        } else {
            space.screening.list_nearest(row, query.n_nodes, step, query.found->most(), sums, *query.found);
        }
    }

    bool is_common_;  // one bandwidth for all features, rather than features in groups
    bool looks_closer_, only_within_;
    std::int64_t d_, from_;
    CodedNodes coded_;
};

}  // namespace mlca::MLCA_LEVEL
