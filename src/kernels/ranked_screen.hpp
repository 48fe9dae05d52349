// Dense nodes by their ranks: the nearest under the learned similarity, out of all, by bounds first.
//
// The scheme is that of screening.hpp: four bits an attribute, a closer look, exact sums of what may be nearest. Here cells
// are of equal width in ranks, so that each holds about as many nodes as any other, tables need no boundaries of their own,
// and a node's code is a shift of its ranks. The closer look is the sum itself in float32.
//
// Sums stand in this file for keys (see learned.hpp) in units of 2^-20, plus one whole key: rounding D to a key may take half
// a key away, and a bound of D must not exceed what stands for its key.
//
//   Yeast, 2,000 nodes, 51 nearest: a tenth of the nodes get the closer look, 60 are summed exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codes.hpp"
#include "learned.hpp"
#include "memory.hpp"
#include "ranked_nodes.hpp"
#include "scan.hpp"
#include "screening.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

class RankedScreen {
public:
    static constexpr std::int64_t LANES = 8;
    static constexpr std::int64_t PER_KEY_UNIT = std::int64_t{1} << 20;
    // Sums of sixteen bits do not hold more attributes; longer rows go without bounds.
    static constexpr std::int64_t MOST_CODED = 1 << 15;

    // Working space of up to SCAN_ROWS rows.
    struct Space {
        Array<std::int32_t> ranks[SCAN_ROWS];
        std::vector<Tables> tables;
        Screening screening;
        std::int64_t step = 0;  // what 1 in the bounds stands for
    };

    // No nodes yet. The similarity must have weights of all attributes in its sums.
    explicit RankedScreen(const Learned& learned)
        : d_(learned.n_attributes()),
          width_(Learned::padded(d_)),
          is_coded_(CODES_PAY && d_ <= MOST_CODED),
          codes_(is_coded_ ? d_ : 1),
          ranks_(width_),
          shares_(static_cast<std::size_t>(width_), 0.0f),
          own_(static_cast<std::size_t>(d_)) {
        for (std::int64_t j = 0; j < d_; ++j) {
            shares_.data()[j] = static_cast<float>(static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total));
            largest_share_ = std::max(largest_share_, shares_.data()[j]);
        }
        r_ = static_cast<float>(learned.r);
        // All errors of a closer look: of the polynomial a term, and of adding up in float32.
        slack_ = SLACK + 7e-8 * static_cast<double>(width_ / LANES + 16);
    }

    // Make room for n nodes in all; a failure leaves everything as it was.
    void reserve(std::int64_t n) {
        if (is_coded_) codes_.reserve(n);
        ranks_.reserve(n);
    }

    // Write a node: the next one, one that has moved, or one in the place of a node that was withdrawn.
    void enter(const Learned& learned, std::int64_t node, const double* weights) noexcept {
        std::int32_t* ranks = ranks_[node];
        for (std::int64_t j = 0; j < d_; ++j) ranks[j] = learned.ranks(j, weights[j]) + learned.ranks.zeros.data()[j];
        encode(node);
    }
    // The same, from ranks that are known.
    void enter(const Learned& learned, std::int64_t node, const RankedNodes& known) noexcept {
        std::int32_t* ranks = ranks_[node];
        known.unfold(node, ranks);
        for (std::int64_t j = 0; j < d_; ++j) ranks[j] += learned.ranks.zeros.data()[j];
        encode(node);
    }

    // Compare up to SCAN_ROWS rows with the first n nodes.
    void begin(const Learned& learned, const double* const* rows, int n_rows, std::int64_t n_nodes, Space& space) const {
        for (int q = 0; q < n_rows; ++q) {
            grow_to(space.ranks[q], width_);
            std::int32_t* ranks = space.ranks[q].data();
            for (std::int64_t j = 0; j < d_; ++j) ranks[j] = learned.ranks(j, rows[q][j]) + learned.ranks.zeros.data()[j];
            std::fill(ranks + d_, ranks + width_, 0);
        }
        if (!is_coded_) {
            space.step = 1;
            for (int q = 0; q < n_rows; ++q) std::fill_n(space.screening.bounds(q, n_nodes), n_nodes, std::uint16_t{0});
            return;
        }
        if (space.tables.empty() || space.tables[0].n_attributes() != d_) space.tables.assign(SCAN_ROWS, Tables(d_));
        const double largest_term = static_cast<double>(largest_share_) * PER_KEY * static_cast<double>(PER_KEY_UNIT) / PER_UNIT * (1.0 - 1e-6);
        const Tables* tables[SCAN_ROWS];
        for (int q = 0; q < n_rows; ++q) {
            space.tables[static_cast<std::size_t>(q)].fill_ranked(space.ranks[q].data(), shares_.data(), largest_share_, r_, RANK_STEP, largest_term);
            tables[q] = &space.tables[static_cast<std::size_t>(q)];
        }
        space.screening.bound_all(codes_, tables, n_rows, n_nodes);
        space.step = Screening::bound_step(*tables[0]);
    }

    // List the nearest of the nodes from `low` up to `high` to row q, with their keys.
    void list(const Learned& learned, int q, Stretch nodes, std::int64_t n_wanted, const std::uint8_t* gone, Space& space, Shortlist& found) const {
        const Sums sums{*this, learned, space.ranks[q].data()};
        space.screening.list_nearest_within(q, nodes, space.step, n_wanted, sums, gone, found);
        for (std::int64_t i = 0; i < found.size(); ++i) {
            std::int64_t& sum = found.sums.data()[i];
            sum = sum / PER_KEY_UNIT - 1;
        }
    }

    // A row's ranks less those of 0, as the background needs them.
    std::int32_t rank(const Learned& learned, int q, std::int64_t attribute, const Space& space) const noexcept {
        return space.ranks[q].data()[attribute] - learned.ranks.zeros.data()[attribute];
    }

private:
    struct Sums {
        const RankedScreen& screen;
        const Learned& learned;
        const std::int32_t* x;

        std::int64_t exact(std::int64_t node) const {
            return (learned.dense_parts(x, screen.ranks_[node]).key() + 1) * PER_KEY_UNIT;
        }
        [[gnu::always_inline]] void fetch(std::int64_t) const {}
        std::int64_t lower(std::int64_t node) const {
            const double d = static_cast<double>(screen.closer_look(x, screen.ranks_[node])) - screen.slack_;
            return d > 0.0 ? static_cast<std::int64_t>(d * (PER_KEY * static_cast<double>(PER_KEY_UNIT))) : 0;
        }
        [[gnu::always_inline]] void fetch_fine(std::int64_t node) const { fetch_row(screen.ranks_[node], screen.d_); }
        // Up to the sum above the true one, and up to two keys of rounding.
        std::int64_t looseness() const {
            return static_cast<std::int64_t>((2.0 * screen.slack_ * PER_KEY + 2.0) * static_cast<double>(PER_KEY_UNIT));
        }
    };

    void encode(std::int64_t node) noexcept {
        if (!is_coded_) return;
        const std::int32_t* ranks = ranks_[node];
        for (std::int64_t j = 0; j < d_; ++j) own_.data()[j] = static_cast<std::uint8_t>(rank_cell(ranks[j], RANK_STEP));
        codes_.enter(node, own_.data());
    }

    // D in float32, of ranks filled up to whole lanes; shares of what is filled up are zero.
    [[gnu::noinline]] float closer_look(const std::int32_t* __restrict x, const std::int32_t* __restrict y) const noexcept {
        const float* __restrict shares = shares_.data();
        const float r = r_;
        float totals[LANES] = {};
        for (std::int64_t first = 0; first < width_; first += LANES) {
            for (std::int64_t lane = 0; lane < LANES; ++lane) {
                const float z = static_cast<float>(x[first + lane] - y[first + lane]) * r, w = z * z;
                totals[lane] += shares[first + lane] * (1.0f - rough_power(w < 14.0f ? w : 14.0f));
            }
        }
        return ((totals[0] + totals[1]) + (totals[2] + totals[3])) + ((totals[4] + totals[5]) + (totals[6] + totals[7]));
    }

    std::int64_t d_, width_;
    bool is_coded_;
    Codes codes_;
    Rows<std::int32_t> ranks_;      // from the lowest: the rank of 0 is added again
    Array<float> shares_;           // each attribute's weight out of all
    Array<std::uint8_t> own_;
    float largest_share_ = 0.0f, r_ = 0.0f;
    double slack_ = 0.0;
};

}  // namespace mlca::MLCA_LEVEL
