// Nodes with gaps and nominal attributes once more, in float32, for lower bounds of their distances.
//
// Both distances of mixed rows are means: of weighted terms over the attributes that row and node both have (docs/mixed.md). A
// rough mean is found 64 nodes at a time (rough.hpp), and what it may be too large by is taken away. A node whose bound is above the
// N-th smallest of some exact distances is not among the N nearest, ties included; all others are computed exactly, the most
// promising first. Exact distances alone decide, whatever the bounds are worth.
//
// Why the bound holds. With u = 2^-24 a term 1 - k errs by at most FIT_ERROR + 52 u + 1.44 u r |y| (float_screen.hpp), wherever
// row and node have a value; y is a number, or a rank, of which a float holds as much. A rank of 0 that is not the number 0
// is written as 1/4 (so that only zeros are zero): less than 2 u of a term. Categories that are equal are equal in float32: their term is 0, or too small. A
// mean of terms errs by no more than the largest of them. Adding up d numbers that are not negative, above and below, errs by d u of
// each sum, so the quotient by 2 (d + 4) u of itself. Gaps are told by a value that no other has as long as all are within LARGEST. Where nodes have factors of their
// own, terms are roots of 1 - k, and r |y| is theirs.
//
// Yeast with a tenth of the cells missing is learned four times as fast by it and predicted eight times.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "float_screen.hpp"
#include "memory.hpp"
#include "mixed.hpp"
#include "rough.hpp"
#include "shortlist.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

class MixedTiles {
public:
    // Longer rows are mostly zeros, and their lists of entries shorter than a row of a tile.
    static constexpr std::int64_t MOST_ATTRIBUTES = 1024;
    static constexpr double LARGEST = 1e18;

    struct Space {
        Array<float> x;
        Array<std::int64_t> lower;
        Shortlist likely{1};
    };

    // `factors_by_node`: each node has one for every attribute.
    MixedTiles(std::int64_t d, const Nominal& nominal, bool factors_by_node = false)
        : d_(d), factors_by_node_(factors_by_node), nominal_(nominal), tiles_(d <= MOST_ATTRIBUTES ? d * TILE : 1), factor_tiles_(factors_by_node && d <= MOST_ATTRIBUTES ? d * TILE : 1) {}

    bool can() const noexcept { return d_ <= MOST_ATTRIBUTES && largest_ <= LARGEST && largest_factor_ <= LARGEST_FACTOR; }

    // Make room for n nodes in all.
    void reserve(std::int64_t n) {
        if (d_ > MOST_ATTRIBUTES) return;
        tiles_.reserve((n + TILE - 1) / TILE);
        if (factors_by_node_) factor_tiles_.reserve((n + TILE - 1) / TILE);
    }

    // Write a node, or what has become of it; kept(p) is what is kept of the row's entry p, perhaps MISSING. `factors` are its own.
    template <class Row, class Kept>
    void enter(std::int64_t node, const Row& y, const Kept& kept, const double* factors = nullptr) noexcept {
        if (d_ > MOST_ATTRIBUTES) return;
        float* place = tiles_[node / TILE] + node % TILE;
        for (std::int64_t i = 0; i < d_; ++i) place[i * TILE] = 0.0f;
        for (std::int64_t p = 0; p < y.n; ++p) {
            place[y.keys[p] * TILE] = as_float(kept(p), largest_);
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

    // Lay out a row in the same way, for `bound`; tell whether it can be bounded.
    template <class Row, class Kept>
    bool lay_out(const Row& x, const Kept& kept, Space& space) const {
        space.x.assign(static_cast<std::size_t>(d_), 0.0f);
        double largest = 0.0;
        for (std::int64_t p = 0; p < x.n; ++p) space.x.data()[x.keys[p]] = as_float(kept(p), largest);
        return largest <= LARGEST;
    }

    // Fill in lower bounds of the distance between the row that was laid out and the first n nodes, in units of 1 / per_unit.
    // `weights` are those of the attributes, `apart` is the term of categories that differ, and numbers that are zero in both
    // count or not.
    void bound(std::int64_t n_nodes, double r, const float* weights, double apart, bool zeros_count, double per_unit, Space& space, Stop& stop) const {
        grow_to(space.lower, (n_nodes + TILE - 1) / TILE * TILE);
        const auto d = static_cast<double>(d_);
        const double fit_error = factors_by_node_ ? ROOT_FIT_ERROR : FIT_ERROR, scaled = factors_by_node_ ? largest_scaled_ : r * largest_;
        const double error = fit_error + 64.0 * HALF_ULP + 1.7 * HALF_ULP * scaled, part = 1.0 - 4.0 * (d + 4.0) * HALF_ULP;
        const RoughMixed compared{space.x.data(), weights, nominal_.empty() ? nullptr : nominal_.data(), d_, static_cast<float>(apart), zeros_count};
        for (std::int64_t tile = 0; tile * TILE < n_nodes; ++tile) {
            if (tile % TILES_BETWEEN_CHECKS == TILES_BETWEEN_CHECKS - 1) stop.check();
            float above[TILE], below[TILE];
            if (factors_by_node_) {
                rough_mixed_root_sums(compared, tiles_[tile], factor_tiles_[tile], above, below);
            } else {
                rough_mixed_sums(compared, tiles_[tile], r, above, below);
            }
            for (std::int64_t j = 0; j < TILE; ++j) {
                const double mean = below[j] > 0.0f ? static_cast<double>(above[j]) / static_cast<double>(below[j]) * part - error : 0.0;
                // What is exact is rounded to a whole number, once or twice.
                space.lower.data()[tile * TILE + j] = static_cast<std::int64_t>(std::max(mean * per_unit - 2.0, 0.0));
            }
        }
    }

    // Offer the nearest of a stretch of nodes, by their bounds; exact(node) is what the list compares.
    template <class Exact>
    static void list_nearest(std::int64_t low, std::int64_t high, Space& space, Shortlist& found, const Exact& exact) {
        std::int64_t* lower = space.lower.data();
        space.likely.begin(found.most(), found.cap());
        for (std::int64_t k = low, limit = space.likely.limit(); k < high; ++k) {
            if (lower[k] > limit || found.skips(k)) continue;
            space.likely.offer(k, lower[k]);
            limit = space.likely.limit();
        }
        for (std::int64_t i = 0; i < space.likely.size(); ++i) {
            const std::int64_t k = space.likely.nodes.data()[i];
            lower[k] = DONE;
            found.offer(k, exact(k));
        }
        for (std::int64_t k = low; k < high; ++k) {
            if (lower[k] <= found.limit() && !found.skips(k)) found.offer(k, exact(k));
        }
        for (std::int64_t i = 0; i < space.likely.size(); ++i) lower[space.likely.nodes.data()[i]] = space.likely.sums.data()[i];
    }

private:
    static constexpr std::int64_t TILES_BETWEEN_CHECKS = 32;
    static constexpr std::int64_t DONE = std::numeric_limits<std::int64_t>::max();

    static float as_float(double kept, double& largest) noexcept {
        if (is_missing(kept)) return GAP;
        largest = std::max(largest, std::fabs(kept));
        return static_cast<float>(kept);
    }

    std::int64_t d_;
    bool factors_by_node_;
    Nominal nominal_;
    Rows<float> tiles_, factor_tiles_;
    double largest_ = 0.0;         // of all that was ever kept
    double largest_factor_ = 0.0;  // of nodes' own factors and their inverses
    double largest_scaled_ = 0.0;  // of all that was ever kept, times its own factor
};

}  // namespace mlca::MLCA_LEVEL
