// Dense nodes by their ranks: the nearest under the learned similarity, out of all, by bounds first.
//
// The scheme is that of screening.hpp: four bits an attribute, a closer look, exact sums of what may be nearest. Here cells
// are of equal width in ranks, so that each holds about as many nodes as any other, tables need no boundaries of their own,
// and a node's code is a shift of its ranks. The closer look is that of ranked_look.hpp.
//
// Sums stand in this file for keys (see learned.hpp) in units of 2^-20, plus one whole key: rounding D to a key may take half
// a key away, and a bound of D must not exceed what stands for its key.
//
//   Yeast, 2,000 nodes, 51 nearest: a tenth of the nodes get the closer look, 60 are summed exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codes.hpp"
#include "learned.hpp"
#include "memory.hpp"
#include "ranked_columns.hpp"
#include "ranked_look.hpp"
#include "scan.hpp"
#include "screening.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

class RankedScreen {
public:
    static constexpr std::int64_t PER_KEY_UNIT = std::int64_t{1} << 20;

    // Working space of up to SCAN_ROWS rows.
    struct Space {
        Array<std::int32_t> ranks[SCAN_ROWS];
        Array<std::int16_t> codes[SCAN_ROWS];
        std::vector<Tables> tables;
        Screening screening;
        std::int64_t step = 0;  // what 1 in the bounds stands for
        // What is known of each node, of the row that was asked about last, when it is asked about more than once.
        int row = -1;
        std::int64_t n_asked = 0, n_nodes = 0;
        Array<std::int64_t> exact, lower;
    };

    // The first nodes are known already. The similarity must have weights of all attributes in its sums.
    RankedScreen(const Learned& learned, RankedRows known, std::int64_t n_nodes)
        : d_(learned.n_attributes()), width_(Learned::padded(d_)), rows_(std::move(known)), look_(learned, n_nodes > 0 ? RankedRows::expected(n_nodes) : INT64_MAX), shares_(static_cast<std::size_t>(width_), 0.0f), cells_of_node_(static_cast<std::size_t>(d_)) {
        for (std::int64_t j = 0; j < d_; ++j) {
            shares_.data()[j] = static_cast<float>(static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total));
            largest_share_ = std::max(largest_share_, shares_.data()[j]);
        }
        r_ = static_cast<float>(learned.r);
        look_.reserve(n_nodes);
        for (std::int64_t k = 0; k < n_nodes; ++k) look_.enter(k, rows_.ranks[k]);
    }

    // Make room for n nodes in all; a failure leaves everything as it was.
    void reserve(std::int64_t n) {
        look_.reserve(n);
        rows_.reserve(n);
    }

    // Write a node: the next one, one that has moved, or one in the place of a node that was withdrawn.
    void enter(const Learned& learned, std::int64_t node, const double* weights) noexcept {
        std::int32_t* ranks = rows_.ranks[node];
        learned.ranks.rank_row(weights, d_, ranks);
        look_.enter(node, ranks);
        if (!rows_.is_coded) return;
        for (std::int64_t j = 0; j < d_; ++j) cells_of_node_.data()[j] = rank_cell(ranks[j], RANK_STEP);
        rows_.codes.enter(node, cells_of_node_.data());
    }

    // Compare up to SCAN_ROWS rows with the first n nodes.
    void begin(const Learned& learned, const double* const* rows, int n_rows, std::int64_t n_nodes, Space& space) const {
        for (int q = 0; q < n_rows; ++q) {
            grow_to(space.ranks[q], width_);
            std::int32_t* ranks = space.ranks[q].data();
            learned.ranks.rank_row(rows[q], d_, ranks);
            std::fill(ranks + d_, ranks + width_, 0);
            grow_to(space.codes[q], look_.width());
            look_.encode(ranks, space.codes[q].data());
        }
        space.row = -1;
        space.n_nodes = n_nodes;
        if (!rows_.is_coded) {
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
        space.screening.bound_all(rows_.codes, tables, n_rows, n_nodes);
        space.step = Screening::bound_step(*tables[0]);
    }

    // List the nearest of a stretch of nodes to row q, with their keys; keys above the limit may be left out. What is
    // computed for a second list is kept for those that follow, and so is the first.
    void list(const Learned& learned, int q, Stretch nodes, std::int64_t n_wanted, std::int64_t limit, const std::uint8_t* gone, Space& space,
              Shortlist& found) const {
        const Sums sums{*this, learned, space.ranks[q].data(), space.codes[q].data()};
        const std::int64_t cap = limit < NO_LIMIT / PER_KEY_UNIT - 1 ? (limit + 1) * PER_KEY_UNIT : NO_LIMIT;
        if (space.row != q) {
            space.row = q;
            space.n_asked = 0;
        }
        if (space.n_asked++ == 0) {
            space.screening.list_nearest_within(q, nodes, space.step, n_wanted, cap, sums, gone, found);
        } else {
            if (space.n_asked == 2) remember(space, found);
            const Remembered remembered{sums, space.exact.data(), space.lower.data()};
            space.screening.list_nearest_within(q, nodes, space.step, n_wanted, cap, remembered, gone, found);
        }
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
        const std::int16_t* code;

        std::int64_t exact(std::int64_t node) const {
            return (learned.dense_key(x, screen.rows_.ranks[node]) + 1) * PER_KEY_UNIT;
        }
        [[gnu::always_inline]] void fetch(std::int64_t node) const { fetch_row(screen.rows_.ranks[node], screen.d_); }
        std::int64_t lower(std::int64_t node) const {
            const double d = screen.look_.lower(code, node);
            return d > 0.0 ? static_cast<std::int64_t>(d * (PER_KEY * static_cast<double>(PER_KEY_UNIT))) : 0;
        }
        [[gnu::always_inline]] void fetch_fine(std::int64_t node) const { fetch_row(screen.look_.code(node), screen.d_); }
        // And up to two keys of rounding.
        std::int64_t looseness() const {
            return static_cast<std::int64_t>((screen.look_.looseness() * PER_KEY + 2.0) * static_cast<double>(PER_KEY_UNIT));
        }
    };

    // The same, of what was asked before.
    struct Remembered {
        const Sums& sums;
        std::int64_t *known, *known_lower;  // negative: not yet

        std::int64_t exact(std::int64_t node) const {
            if (known[node] < 0) known[node] = sums.exact(node);
            return known[node];
        }
        [[gnu::always_inline]] void fetch(std::int64_t node) const {
            if (known[node] < 0) sums.fetch(node);
        }
        std::int64_t lower(std::int64_t node) const {
            if (known[node] >= 0) return known[node];
            if (known_lower[node] < 0) known_lower[node] = sums.lower(node);
            return known_lower[node];
        }
        [[gnu::always_inline]] void fetch_fine(std::int64_t node) const {
            if (known[node] < 0 && known_lower[node] < 0) sums.fetch_fine(node);
        }
        std::int64_t looseness() const { return sums.looseness(); }
    };

    // Begin to keep what is known, with the list that was made first.
    static void remember(Space& space, const Shortlist& first) {
        space.exact.assign(static_cast<std::size_t>(space.n_nodes), -1);
        space.lower.assign(static_cast<std::size_t>(space.n_nodes), -1);
        for (std::int64_t i = 0; i < first.size(); ++i) space.exact.data()[first.nodes.data()[i]] = (first.sums.data()[i] + 1) * PER_KEY_UNIT;
    }

    std::int64_t d_, width_;
    RankedRows rows_;
    RankedLook look_;
    Array<float> shares_;           // each attribute's weight out of all
    Array<std::uint8_t> cells_of_node_;
    float largest_share_ = 0.0f, r_ = 0.0f;
};

}  // namespace mlca::MLCA_LEVEL
