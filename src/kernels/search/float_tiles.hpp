// Float tiles: float32 bounds exclude nodes that cannot be among the nearest, at a fifth of the cost of exact sums.
//
// Used for MLCA-I, whose nodes have their own bandwidths (four-bit codes would need a separate table for every node),
// and for missing values or nominal features in rows or nodes. Yeast is learned four times as fast with them, both by
// MLCA-I and with a tenth of its values missing.
//
// Nodes are stored a second time, in float32, as tiles of 64: tile[i, j] is feature i of the tile's node j, so that one
// vector load reads a feature of many nodes, and no sum runs across the lanes of a vector. Approximate sums or means
// are computed for all nodes. A node is skipped if its approximate distance, minus the largest possible error, excludes
// it from the N nearest, ties included. Exact distances are computed for the rest, usually a dozen nodes, so the
// float32 bounds do not affect the result.
//
// In MLCA-I, k = 1 - sqrt(1 - 2^-z^2) is evaluated as p(|z|)^8 with a quartic p. This takes four multiply-adds and
// three squarings, and neither a root nor exponent arithmetic. 2^-z^2 is evaluated in the same way with a cubic.
//
// Why the bound holds for complete rows and nodes. Let u = 2^-24, and let z = t r be the exact argument. The errors per
// feature are:
//   the polynomial      |p(min(|z|, 4.1))^8 - k| <= ROOT_FIT_ERROR for all z (tested on a sufficiently fine grid);
//   rounding in p       below 48 u, as p^8 magnifies the relative error of p by eight;
//   t = x - y, z = t r  x, y, r and both operations are rounded: the error of z is at most
//     u r (|x| + |y|) + 4 u |z| <= 2 u r |y| + 5 u |z|, and k changes by at most 0.84 per unit of z.
// Adding d such non-negative terms in float32 causes an error of at most d u times the sum, which is at most d. So the
// error of the mean of the terms is at most `rough_error`, which includes the fixed-point rounding of the exact terms
// (2^-41 each).
//
// Why it holds with missing values. Distances are means of weighted terms over the features that row and node both have
// (docs/mixed.md). The error of a term with a root is as above; that of a term 1 - k is at most FIT_ERROR + 52 u + 1.44
// u r |y|, where y is a number or a rank, which are rounded to float in the same way. A rank of 0 that is not the
// number 0 is stored as 1/4, so that only zeros are zero: this changes a term by less than 2 u. Equal categories are
// equal in float32, so their term is 0; if different categories become equal in float32, the term is too small, so the
// bound still holds. The error of a mean is at most the largest error of its terms. Adding d non-negative numbers in
// numerator and denominator causes a relative error of d u in each, so the relative error of the quotient is at most 2
// (d + 4) u. A missing value is stored as a number that differs from all values within LARGEST.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "base/memory.hpp"
#include "base/team.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "search/float32_bounds.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double HALF_ULP = 0x1p-24;
// With factors beyond this, float32 could overflow, so tiles are not used.
inline constexpr double LARGEST_FACTOR = 1e18;
inline bool is_in_range(double r) noexcept { return r <= LARGEST_FACTOR && r * LARGEST_FACTOR >= 1.0; }

// Upper bound on the error of an approximate mean of terms, if r |y| is at most `largest_scaled`. `n_added`: number of
// terms whose addition may cause errors; 0 if these are taken into account elsewhere.
inline double rough_error(double fit_error, double largest_scaled, std::int64_t n_added) {
    return fit_error + (64.0 + 1.7 * largest_scaled + 1.02 * static_cast<double>(n_added)) * HALF_ULP;
}

// A dense row as a list of entries, for tiles.
struct AllEntries {
    struct {
        std::int64_t operator[](std::int64_t p) const noexcept { return p; }
    } keys;
    std::int64_t n;
};

// Maps places (positions in the list of bounds) to nodes: here node k is at place k. NodeCells::Places is an
// alternative.
struct PlacesOfAll {
    std::int64_t block(std::int64_t i) const noexcept { return i; }
    bool holds(std::int64_t) const noexcept { return true; }
    std::int64_t node(std::int64_t place) const noexcept { return place; }
};

class FloatTiles {
public:
    // Longer rows have no tiles, because they are mostly zeros, and their lists of entries are shorter than their rows
    // in a tile.
    static constexpr std::int64_t MOST_FEATURES = 1024;
    static constexpr double LARGEST = 1e18;

    struct Space {
        Array<float> x;
        bool is_complete = true;  // whether x has no missing value
        Array<std::int64_t> lower;
        TopK likely{1};
    };

    // `weights`: one per feature. `factors_by_node`: whether each node has its own factor for every feature; all
    // weights are then 1.
    FloatTiles(Array<float> weights, const Nominal& nominal, bool factors_by_node = false)
        : d_(std::ssize(weights)), factors_by_node_(factors_by_node), nominal_(nominal), weights_(std::move(weights)),
        tiles_(d_ * TILE), factor_tiles_(factors_by_node ? d_ * TILE : 1) {}

    bool can() const noexcept { return largest_ <= LARGEST && largest_factor_ <= LARGEST_FACTOR; }

    // Reserve memory for n nodes in total.
    void reserve(std::int64_t n) {
        tiles_.reserve((n + TILE - 1) / TILE);
        if (factors_by_node_) factor_tiles_.reserve((n + TILE - 1) / TILE);
    }

    // Write or update a node at its index or slot; kept(p) is the value to store for entry p of its row y, possibly
    // MISSING. `factors` are the node's own factors.
    template <class Row, class Kept>
    void enter(std::int64_t node, const Row& y, const Kept& kept, const double* factors = nullptr) noexcept {
        float* place = tiles_[node / TILE] + node % TILE;
        for (std::int64_t i = 0; i < d_; ++i) place[i * TILE] = 0.0f;
        for (std::int64_t p = 0; p < y.n; ++p) {
            place[y.keys[p] * TILE] = as_float(kept(p), largest_);
            are_complete_ = are_complete_ && !is_missing(kept(p));
        }
        if (!factors_by_node_) return;
        float* factor = factor_tiles_[node / TILE] + node % TILE;
        for (std::int64_t i = 0; i < d_; ++i) {
            factor[i * TILE] = static_cast<float>(factors[i]);
            largest_factor_ = std::max({largest_factor_, factors[i], 1.0 / factors[i]});
        }
        for (std::int64_t p = 0; p < y.n; ++p) {
            if (!is_missing(kept(p))) largest_scaled_ = std::max(largest_scaled_, std::fabs(kept(p)) * factors[y.keys[p]]);
        }
    }

    // Lay out a row in the same way as a node, for `bound`; return whether `bound` can be used for it.
    template <class Row, class Kept>
    bool lay_out(const Row& x, const Kept& kept, Space& space) const {
        space.x.assign(d_, 0.0f);
        double largest = 0.0;
        space.is_complete = true;
        for (std::int64_t p = 0; p < x.n; ++p) {
            space.x[x.keys[p]] = as_float(kept(p), largest);
            space.is_complete = space.is_complete && !is_missing(kept(p));
        }
        return largest <= LARGEST;
    }

    // Compute lower bounds on the distances between the row that was laid out and the nodes at the first n places, in
    // units of 1 / per_unit. `apart` is the term for two different categories; for `zeros_count`, see `RoughMixed`.
    template <class Places>
    void bound(const Places& places, std::int64_t n_places, double r, double apart, bool zeros_count, double per_unit, Space& space, Stop& stop) const {
        grow_to(space.lower, (n_places + TILE - 1) / TILE * TILE);
        const auto d = static_cast<double>(d_);
        const bool complete = factors_by_node_ && nominal_.empty() && are_complete_ && space.is_complete;
        const double error = factors_by_node_ ? rough_error(ROOT_FIT_ERROR, largest_scaled_, complete ? d_ : 0)
            : rough_error(FIT_ERROR, r * largest_, 0);
        const double part = 1.0 - 4.0 * (d + 4.0) * HALF_ULP;
        const RoughMixed compared{space.x.data(), weights_.data(), nominal_.empty() ? nullptr : nominal_.data(), d_, static_cast<float>(apart),
            zeros_count};
        for (std::int64_t i = 0; i * TILE < n_places; ++i) {
            if (i % TILES_BETWEEN_CHECKS == TILES_BETWEEN_CHECKS - 1) stop.check();
            const std::int64_t tile = places.block(i);
            float above[TILE], below[TILE];
            if (complete) {
                rough_root_sums(space.x.data(), tiles_[tile], factor_tiles_[tile], d_, above);
                for (float& sum : above) sum = static_cast<float>(d_) - sum;  // sum of kernels -> sum of 1 - kernel
                std::fill_n(below, TILE, static_cast<float>(d_));
            } else if (factors_by_node_) {
                rough_mixed_root_sums(compared, tiles_[tile], factor_tiles_[tile], above, below);
            } else {
                rough_mixed_sums(compared, tiles_[tile], r, above, below);
            }
            for (std::int64_t j = 0; j < TILE; ++j) {
                const double mean = below[j] > 0.0f ? static_cast<double>(above[j]) / static_cast<double>(below[j]) * part - error : 0.0;
                // The 2 covers the rounding of exact values to integers, once or twice.
                space.lower[i * TILE + j] = static_cast<std::int64_t>(std::max(mean * per_unit - 2.0, 0.0));
            }
        }
    }

    // Offer the nearest nodes of a range of places to `found`, using their bounds; exact(node) returns the sum or the
    // key by which `found` orders nodes.
    template <class Places, class Exact>
    static void list_nearest(const Places& places, std::int64_t low, std::int64_t high, Space& space, TopK& found, const Exact& exact) {
        std::int64_t* lower = space.lower.data();
        const auto skips = [&](std::int64_t p) { return !places.holds(p) || found.skips(places.node(p)); };
        space.likely.begin(found.most(), found.cap());
        for (std::int64_t p = low, limit = space.likely.limit(); p < high; ++p) {
            if (lower[p] > limit || skips(p)) continue;
            space.likely.offer(p, lower[p]);
            limit = space.likely.limit();
        }
        for (std::int64_t i = 0; i < space.likely.size(); ++i) {
            const std::int64_t p = space.likely.nodes[i];
            lower[p] = DONE;
            found.offer(places.node(p), exact(places.node(p)));
        }
        for (std::int64_t p = low; p < high; ++p) {
            if (lower[p] <= found.limit() && !skips(p)) found.offer(places.node(p), exact(places.node(p)));
        }
        for (std::int64_t i = 0; i < space.likely.size(); ++i) lower[space.likely.nodes[i]] = space.likely.sums[i];
    }

    // List the nearest of the first n nodes by correntropy; exact(node) returns a node's sum over the d features, and
    // kept(p) the value of the row's entry p. Return false if bounds are not available.
    template <class Row, class Kept, class Exact>
    bool search(const Row& x, const Kept& kept, std::int64_t n_nodes, double r, Space& space, Stop& stop, TopK& found, const Exact& exact) const {
        if (!can() || !lay_out(x, kept, space)) return false;
        bound(PlacesOfAll{}, n_nodes, r, 1.0, true, static_cast<double>(d_) * PER_UNIT, space, stop);
        list_nearest(PlacesOfAll{}, 0, n_nodes, space, found, exact);
        return true;
    }

private:
    static constexpr std::int64_t TILES_BETWEEN_CHECKS = 32;
    static constexpr std::int64_t DONE = std::numeric_limits<std::int64_t>::max();

    static float as_float(double kept, double& largest) noexcept {
        if (is_missing(kept)) return MISSING_FLOAT;
        largest = std::max(largest, std::fabs(kept));
        return static_cast<float>(kept);
    }

    std::int64_t d_;
    bool factors_by_node_;
    Nominal nominal_;
    Array<float> weights_;
    Rows<float> tiles_, factor_tiles_;
    bool are_complete_ = true;     // whether no value ever stored was missing
    double largest_ = 0.0;         // largest magnitude of all values ever stored
    double largest_factor_ = 0.0;  // largest of the nodes' own factors and their inverses
    double largest_scaled_ = 0.0;  // largest magnitude of a stored value times its node's own factor
};

// Tiles of complete nodes, for rows with missing values. They are built after FROM such rows have been searched since
// the nodes last changed, because building them costs about as much as a few searches without them. The next change
// discards them. Readers may search concurrently; a thread that changes nodes holds the exclusive lock.
template <class Tiles>
class TilesOnDemand {
public:
    TilesOnDemand() = default;
    TilesOnDemand(const TilesOnDemand&) noexcept {}
    TilesOnDemand& operator=(TilesOnDemand&&) noexcept {
        drop();
        return *this;
    }

    // The tiles of the first n nodes, or null if they are not built yet.
    template <class Make>
    std::shared_ptr<const Tiles> get(std::int64_t n, const Make& make) const {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (n_asked_++ >= FROM && (!made_ || n_ < n)) {
            made_ = std::make_shared<const Tiles>(make());
            n_ = n;
        }
        return n_ < n ? nullptr : made_;
    }
    void drop() noexcept {
        made_.reset();
        n_asked_ = 0;
    }

private:
    static constexpr std::int64_t FROM = 4;

    mutable std::mutex mutex_;
    mutable std::shared_ptr<const Tiles> made_;
    mutable std::int64_t n_ = 0, n_asked_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
