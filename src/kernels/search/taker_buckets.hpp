// Buckets: find the nodes that may absorb a row, by visiting only the buckets whose nodes may be within the vigilance.
//
// When a row is learned under a learned similarity, correntropy is only used to find the nodes within the vigilance.
// The sum of such a node is at most the threshold T, and so is each of its terms. So in every feature |x - y| is at
// most a *reach* that follows from T and the bandwidth. With a vigilance of 0.01 and 32 features, the reach is a
// fifteenth of a standard deviation. Nodes are therefore kept in buckets by their four-bit cells in a few features, and
// only buckets within reach are visited. Their nodes are tested by their cells in four additional features, which are
// stored in the bucket. So the weights of only a few nodes are read, however many nodes there are. Nodes that pass are
// tested feature by feature, and exact sums are computed for the few that remain. The resulting list is the same as
// that of any other search.
//
// Why no node is missed. A term of at most T units means a kernel of at least 1 - (T + 1) 2^-40. The kernel equals
// 2^-(t r)^2 to within 3e-16, so 2^-(t r)^2 is at least 1 - (T + 2) 2^-40. The reach that follows is widened by 1e-9 of
// itself, and by 4e-15 of the row's value, which is far more than the rounding errors of the few operations involved.
// Cells are monotonic in values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "search/codes4.hpp"

namespace mlca::MLCA_LEVEL {

class TakerBuckets {
public:
    // The largest difference from a row that a node whose sum is within the threshold can have in any feature; empty if
    // there is no useful limit.
    static std::optional<double> reach_of(std::int64_t threshold, double r) {
        const double most = (static_cast<double>(threshold) + 2.0) * UNIT;
        if (most > 0.5 || !(r > 0.0)) return std::nullopt;
        return std::sqrt(-std::log2(1.0 - most)) / r * (1.0 + 1e-9);
    }

    // Put n nodes into buckets, by the features that best distinguish them; weights(node) returns the weights of a
    // node.
    template <class Weights>
    TakerBuckets(std::int64_t n, const Cells& cells, const Weights& weights) {
        Array<std::int64_t> crowding(static_cast<std::size_t>(cells.n_features()));
        Array<std::int32_t> order(crowding.size());
        for (std::int64_t j = 0; j < cells.n_features(); ++j) {
            std::int64_t counts[N_CELLS] = {};
            for (std::int64_t s = 0; s < SAMPLE; ++s) ++counts[cells.cell(j, weights(s * n / SAMPLE)[j])];
            crowding.data()[j] = std::inner_product(counts, counts + N_CELLS, counts, std::int64_t{0});
        }
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return crowding.data()[a] < crowding.data()[b]; });
        const auto most = static_cast<int>(std::min<std::int64_t>(MOST_FEATURES, cells.n_features()));
        std::int64_t n_buckets = N_CELLS;
        // There are at least two nodes per bucket on average, because blocks of nearly empty buckets would take 50
        // bytes per node.
        for (n_features_ = 1; n_features_ < most && 2 * N_CELLS * n_buckets <= n; ++n_features_) n_buckets *= N_CELLS;
        n_used_ = static_cast<int>(std::min<std::int64_t>(n_features_ + FURTHER, cells.n_features()));
        std::copy_n(order.begin(), n_used_, features_);
        heads_.assign(static_cast<std::size_t>(n_buckets), -1);
        for (std::int64_t k = 0; k < n; ++k) {
            reserve(k + 1);
            enter(k, cells, weights(k));
        }
    }

    // Reserve memory for n nodes in total, and for the moves that one row may cause.
    void reserve(std::int64_t n) {
        const auto make_room = [](auto& array, std::size_t wanted) {
            if (array.capacity() < wanted) array.reserve(wanted + wanted / 2);
        };
        make_room(places_, static_cast<std::size_t>(n));
        make_room(blocks_, blocks_.size() + MOVES);
    }
    void reserve_move() { reserve(0); }

    // Enter the next node, one that has moved, or one that replaces a withdrawn node.
    void enter(std::int64_t node, const Cells& cells, const double* weights) noexcept {
        Place place{0, 0};
        for (int i = 0; i < n_features_; ++i) place.bucket = static_cast<std::uint16_t>(place.bucket * N_CELLS + cells.cell(features_[i], weights[features_[i]]));
        for (int i = n_features_; i < n_used_; ++i) place.further = static_cast<std::uint16_t>(place.further * N_CELLS + cells.cell(features_[i], weights[features_[i]]));
        if (node < static_cast<std::int64_t>(places_.size())) {
            if (places_.data()[node] == place) return;
            remove(node, places_.data()[node].bucket);
            places_.data()[node] = place;
        } else {
            places_.push_back(place);
        }
        insert(static_cast<std::int32_t>(node), place);
    }

    // Collect those of the first n nodes whose cells are within reach of a row; return false if there are too many.
    bool collect(const double* x, double reach, const Cells& cells, std::int64_t n, Array<std::int32_t>& nodes) const {
        std::int32_t low[MOST_FEATURES + FURTHER], high[MOST_FEATURES + FURTHER], at[MOST_FEATURES];
        std::int64_t n_reached = 1;
        for (int i = 0; i < n_used_; ++i) {
            const double value = x[features_[i]], widened = reach + std::fabs(value) * 4e-15;
            low[i] = cells.cell(features_[i], value - widened);
            high[i] = cells.cell(features_[i], value + widened);
            if (i < n_features_) n_reached *= high[i] - low[i] + 1;
        }
        std::copy_n(low, n_features_, at);
        // For each additional feature, the last one first: a mask with one bit per cell, set if the cell is within
        // reach. If there are fewer features, the missing ones count as within reach.
        std::uint32_t within[FURTHER];
        for (int f = 0; f < FURTHER; ++f) {
            const int i = n_used_ - 1 - f;
            within[f] = i < n_features_ ? 1 : (std::uint32_t{2} << high[i]) - (std::uint32_t{1} << low[i]);
        }
        if (8 * n_reached > static_cast<std::int64_t>(heads_.size())) return false;
        nodes.clear();
        std::int64_t n_tested = 0;
        for (int i = 0; i >= 0;) {
            const std::int32_t bucket =
                std::accumulate(at, at + n_features_, 0, [](std::int32_t sum, std::int32_t cell) { return sum * N_CELLS + cell; });
            for (std::int32_t b = heads_.data()[bucket]; b >= 0; b = blocks_.data()[b].next) {
                const Block& block = blocks_.data()[b];
                n_tested += block.n;
                for (std::int32_t k = 0; k < block.n; ++k) {
                    const std::uint32_t further = block.further[k];
                    std::uint32_t is_within = block.nodes[k] < n;
                    for (int f = 0; f < FURTHER; ++f) is_within &= within[f] >> (further >> (4 * f) & 15);
                    if (is_within) nodes.push_back(block.nodes[k]);
                }
            }
            if (4 * n_tested > n || 16 * static_cast<std::int64_t>(nodes.size()) > n) return false;
            // Advance to the next combination of cells.
            for (i = n_features_ - 1; i >= 0 && at[i] == high[i]; --i) at[i] = low[i];
            if (i >= 0) ++at[i];
        }
        return true;
    }

private:
    // Maximum number of features that determine the bucket, and of additional features whose cells are stored in it. A
    // cell takes four bits, so the cells of either set of features fit into 16 bits.
    static constexpr int MOST_FEATURES = 4, FURTHER = 4;
    static constexpr std::int32_t N_CELLS = 16;
    static constexpr std::int64_t SAMPLE = 256;
    static constexpr std::size_t MOVES = 4;

    // The cells of a node.
    struct Place {
        std::uint16_t bucket, further;

        bool operator==(const Place&) const = default;
    };

    // Some nodes of a bucket, and their cells in the additional features; a block fills a cache line.
    struct Block {
        static constexpr std::int32_t MOST = 9;

        std::int32_t nodes[MOST], n, next;
        std::uint16_t further[MOST];
    };

    void insert(std::int32_t node, const Place& place) noexcept {
        std::int32_t& head = heads_.data()[place.bucket];
        if (head < 0 || blocks_.data()[head].n == Block::MOST) {
            std::int32_t block = free_;
            if (block >= 0) {
                free_ = blocks_.data()[block].next;
            } else {
                block = static_cast<std::int32_t>(blocks_.size());
                blocks_.push_back({});
            }
            blocks_.data()[block].n = 0;
            blocks_.data()[block].next = head;
            head = block;
        }
        Block& first = blocks_.data()[head];
        first.further[first.n] = place.further;
        first.nodes[first.n++] = node;
    }

    // Remove a node from its bucket; the last node of the bucket's first block takes its position.
    void remove(std::int64_t node, std::int32_t bucket) noexcept {
        std::int32_t& head = heads_.data()[bucket];
        Block& first = blocks_.data()[head];
        const std::int32_t last = first.nodes[--first.n];
        for (std::int32_t b = head; b >= 0 && last != node; b = blocks_.data()[b].next) {
            Block& block = blocks_.data()[b];
            const std::int64_t i = std::find(block.nodes, block.nodes + block.n, static_cast<std::int32_t>(node)) - block.nodes;
            if (i == block.n) continue;
            block.nodes[i] = last;
            block.further[i] = first.further[first.n];
            break;
        }
        if (first.n > 0) return;
        const std::int32_t emptied = head;
        head = first.next;
        blocks_.data()[emptied].next = free_;
        free_ = emptied;
    }

    int n_features_ = 0, n_used_ = 0;  // n_used_: including additional features
    std::int32_t features_[MOST_FEATURES + FURTHER] = {};
    Array<std::int32_t> heads_;  // first block of each bucket
    Array<Place> places_;        // per node: its cells
    Array<Block> blocks_;
    std::int32_t free_ = -1;       // first block of the chain of unused blocks
};

}  // namespace mlca::MLCA_LEVEL
