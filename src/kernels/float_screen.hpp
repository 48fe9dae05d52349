// Screening: which nodes cannot be among the nearest, found in float32 at a fifth of the cost.
//
// For each node a rough sum of k over the attributes is computed in float32. If E bounds its error, and L is the N-th
// largest of the rough sums less E, then N nodes have an exact sum of at least L, and a node whose rough sum plus E stays
// below L is excluded for certain, ties included. What survives, a dozen nodes as a rule, is computed again
// exactly. float32 never decides.
//
// Why it is fast. k = 2^-w is evaluated as p(w / 8)^8 with a cubic p: three multiply-adds and three squarings, no
// exponent arithmetic. Weights are kept a second time, in float32, as tiles of 64 nodes: tile[i, j] is attribute i of the
// tile's node j, so that one attribute of many nodes is one vector load and nothing is ever summed across a vector. Where
// several instances are at hand, each tile is read once for 8 of them (5 % on one thread). Tried without gain: strips of
// tiles in the first cache (the arithmetic is the limit), abandoning a tile half-way (all of its 64 nodes would have to
// be hopeless: 1 % of the terms on Yeast, 14 % on Mediamill, before the cost of asking).
//
// Why the bound holds. Per attribute, with u = 2^-24 and z = t r the exact argument:
//   the polynomial      |p(min(w, 14) / 8)^8 - 2^-w| <= FIT_ERROR for all w >= 0 (tested on a grid finer than its slope
//                       needs);
//   rounding in p       below 48 u, as p^8 magnifies the relative error of p by eight;
//   t = x - y, z = t r  x, y, r and both operations are rounded: the error of z is at most
//                       u r (|x| + |y|) + 4 u |z| <= 2 u r |y| + 5 u |z|, and 2^-z^2 changes by at most 0.72 a
//                       unit of z, and z times its slope is at most 0.74.
// Adding d such terms, none negative, in float32 errs by at most d u times the sum. So for node y
//   E = d (FIT_ERROR + 52 u) + 1.5 u r sum|y| + 1.01 d u sum_k(rough).
// The fixed-point rounding of the exact terms (2^-41 each) is below 1 u a term and is contained in the 52.
//
// The root of MLCA-I, 1 - sqrt(1 - 2^-z^2), is a smooth function of |z| with slope at most 0.84; a quartic to the eighth
// power takes the cubic's place and 2 u r |y| is added up with each attribute's own r.
//
// MLCA-C's sum is one of roots of group means. If D bounds the error of a group's mean, sqrt(D) bounds that of its root;
// D is the bound above for one attribute, with the largest |y| of any node in the group's attributes, plus the error of
// adding. Learning Yeast became about three times as fast by it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "memory.hpp"
#include "query.hpp"
#include "rough.hpp"
#include "sharing.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double HALF_ULP = 0x1p-24;
inline constexpr double ROUNDING = 52 * HALF_ULP;
// Beyond these, float32 could overflow, and nothing is screened.
inline constexpr double LARGEST_NORM = 1e18;
inline constexpr double LARGEST_FACTOR = 1e18;
inline bool is_in_range(double r) noexcept { return r <= LARGEST_FACTOR && r * LARGEST_FACTOR >= 1.0; }

// Bounds the error of every rough sum of nodes whose r sum|y| is at most `scaled_norm`.
inline double rough_error(std::int64_t n_attributes, double fit_error, double scaled_norm, double largest_sum) {
    const auto d = static_cast<double>(n_attributes);
    return d * (fit_error + ROUNDING) + 1.7 * HALF_ULP * scaled_norm + 1.01 * d * HALF_ULP * largest_sum;
}

// Bounds the error of every rough sum of groups' roots; reach[i] is the largest |y| of any node in attribute i.
inline double rough_group_error(const Grouping& grouping, const double* reach) {
    double total = 0.0;
    for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
        const std::int64_t start = grouping.start(group), end = grouping.end(group);
        double farthest = 0.0;
        for (std::int64_t place = start; place < end; ++place) {
            farthest = std::max(farthest, reach[grouping.order[static_cast<std::size_t>(place)]]);
        }
        const double factor = grouping.factors[static_cast<std::size_t>(group)];
        const double in_mean = FIT_ERROR + ROUNDING + 1.7 * HALF_ULP * factor * farthest + 1.01 * static_cast<double>(end - start) * HALF_ULP;
        total += std::sqrt(std::min(in_mean, 1.0));
    }
    const auto n_groups = static_cast<double>(grouping.n_groups);
    return total + 2.0 * HALF_ULP * n_groups * (n_groups + 2.0);
}

template <Mode mode>
class FloatScreen {
public:
    using DenseQuery = Query<const double*>;

    // Working space of a search, one for each thread.
    struct Space {
        Array<float> rows, rough, best;
    };

    // With fewer nodes than `from`, nothing is screened.
    FloatScreen(std::int64_t d, std::int64_t from)
        : d_(d), from_(from), tiles_(d * TILE), factor_tiles_(mode == Mode::individual ? d * TILE : 1), reach_(static_cast<std::size_t>(mode == Mode::clustered ? d : 0), 0.0) {}

    void reserve(std::int64_t n_nodes) {
        tiles_.reserve((n_nodes + TILE - 1) / TILE);
        if constexpr (mode == Mode::individual) factor_tiles_.reserve((n_nodes + TILE - 1) / TILE);
    }

    // Enter a node, or what has become of it; `factors` are its own (individual). One thread at a time: it has to do with all nodes.
    static constexpr std::int64_t ENTERED_TOGETHER = 0;
    void enter(std::int64_t node, const double* weights, const double* factors) noexcept {
        put_in_tile(tiles_, node, weights);
        double norm = 0.0;
        if constexpr (mode == Mode::individual) {
            put_in_tile(factor_tiles_, node, factors);
            for (std::int64_t i = 0; i < d_; ++i) {
                norm += std::abs(weights[i]) * factors[i];
                largest_factor_ = std::max({largest_factor_, factors[i], 1.0 / factors[i]});
            }
        } else {
            for (std::int64_t i = 0; i < d_; ++i) norm += std::abs(weights[i]);
        }
        largest_norm_ = std::max(largest_norm_, norm);
        if constexpr (mode == Mode::clustered) {
            for (std::int64_t i = 0; i < d_; ++i) reach_[static_cast<std::size_t>(i)] = std::max(reach_[static_cast<std::size_t>(i)], std::abs(weights[i]));
        }
    }

    // Whether there are enough nodes, and float32 can hold the numbers of these queries.
    bool can(const DenseQuery* queries, std::int64_t n) const noexcept {
        bool in_range = queries[0].n_nodes >= from_ && largest_norm_ <= LARGEST_NORM && largest_factor_ <= LARGEST_FACTOR;
        for (std::int64_t j = 0; j < n; ++j) {
            if constexpr (mode == Mode::common) in_range = in_range && is_in_range(queries[j].r);
            if constexpr (mode == Mode::clustered) {
                const Grouping& grouping = *queries[j].grouping;
                for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
                    in_range = in_range && is_in_range(grouping.factors[static_cast<std::size_t>(group)]);
                }
            }
        }
        return in_range;
    }

    // Float32 needs nothing that would have to be made anew as nodes come.
    template <class Weights>
    static std::optional<Nothing> successor(std::int64_t, const Weights&, Sharing) noexcept { return std::nullopt; }
    static void take(Nothing) noexcept {}

    // List the nearest nodes of each query; `exact(query, node)` is a sum. Queries ask for ascending numbers of nodes.
    template <class Exact, class Weights>
    void search(const DenseQuery* queries, std::int64_t n, Space& space, Stop& stop, const Exact& exact, const Weights&) const {
        const std::int64_t n_tiles = (queries[n - 1].n_nodes + TILE - 1) / TILE;
        space.rows.resize(static_cast<std::size_t>(n * d_));
        for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < d_; ++i) space.rows[static_cast<std::size_t>(j * d_ + i)] = static_cast<float>(queries[j].x[i]);
        }
        space.rough.resize(static_cast<std::size_t>(n * n_tiles * TILE));
        for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
            if (tile % TILES_BETWEEN_CHECKS == TILES_BETWEEN_CHECKS - 1) stop.check();
            for (std::int64_t j = 0; j < n; ++j) {
                fill_in(queries[j], space.rows.data() + j * d_, tile, space.rough.data() + (j * n_tiles + tile) * TILE);
            }
        }
        for (std::int64_t j = 0; j < n; ++j) {
            const float* rough = space.rough.data() + j * n_tiles * TILE;
            const double bar = lowest_hopeful(queries[j], rough, space.best);
            for (std::int64_t k = 0; k < queries[j].n_nodes; ++k) {
                if (static_cast<double>(rough[k]) >= bar) queries[j].found->offer(k, exact(queries[j], k));
            }
        }
    }

private:
    static constexpr std::int64_t TILES_BETWEEN_CHECKS = 32;


    void put_in_tile(Rows<float>& tiles, std::int64_t node, const double* values) noexcept {
        float* place = tiles[node / TILE] + node % TILE;
        for (std::int64_t i = 0; i < d_; ++i) place[i * TILE] = static_cast<float>(values[i]);
    }

    void fill_in(const DenseQuery& query, const float* x, std::int64_t tile, float* sums) const {
        if constexpr (mode == Mode::common) {
            rough_sums(x, tiles_[tile], d_, query.r, sums);
        } else if constexpr (mode == Mode::individual) {
            rough_root_sums(x, tiles_[tile], factor_tiles_[tile], d_, sums);
        } else {
            const Grouping& grouping = *query.grouping;
            rough_group_sums(x, tiles_[tile], grouping.n_groups, grouping.order.data(), grouping.ends.data(), grouping.factors.data(), sums);
        }
    }

    // The rough sum below which a node is certainly not among the nearest.
    double lowest_hopeful(const DenseQuery& query, const float* rough, Array<float>& best) const {
        const double last = nth_largest(rough, query.n_nodes, *query.found, best);
        double error;
        if constexpr (mode == Mode::common) {
            error = rough_error(d_, FIT_ERROR, query.r * largest_norm_, static_cast<double>(best[0]));
        } else if constexpr (mode == Mode::individual) {
            error = rough_error(d_, ROOT_FIT_ERROR, largest_norm_, static_cast<double>(best[0]));
        } else {
            error = rough_group_error(*query.grouping, reach_.data());
        }
        return last - 2.0 * error;
    }

    // The value of the last that the list would hold, or the smallest; `best` gets the largest in descending order.
    static double nth_largest(const float* values, std::int64_t count, const Shortlist& list, Array<float>& best) {
        best.resize(static_cast<std::size_t>(list.most()));
        std::size_t length = 0;
        for (std::int64_t k = 0; k < count; ++k) {
            const float value = values[k];
            if (list.skips(k)) continue;
            if (length == best.size()) {
                if (value <= best[length - 1]) continue;
                --length;
            }
            std::size_t place = length;
            for (; place > 0 && best[place - 1] < value; --place) best[place] = best[place - 1];
            best[place] = value;
            ++length;
        }
        return static_cast<double>(best[length - 1]);
    }

    std::int64_t d_, from_;
    Rows<float> tiles_, factor_tiles_;
    double largest_norm_ = 0.0;   // of sum|y|, or sum r|y| (individual), over all nodes there ever were
    double largest_factor_ = 0.0;  // of r and 1 / r (individual)
    Array<double> reach_;         // the largest |y| in each attribute (clustered)
};

}  // namespace mlca::MLCA_LEVEL
