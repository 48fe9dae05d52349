// The nearest nodes of a row out of all, from lower bounds of their sums: what cannot be among them is never computed.
//
// Let L be a number that at least N sums do not exceed. A node whose bound is above L is farther than these N, so
// it is not among the N nearest, ties included. The search makes L small quickly and looks at the rest:
//   1. The nodes with about the N smallest bounds are summed roughly (rough_sum.hpp); the N-th smallest rough sum
//      plus its error is the first L.
//   2. All other nodes whose bounds are not above L follow, in the order of their bounds by 16 classes, while L shrinks.
//   3. Nodes whose rough sum less its error is not above L, as a rule N or one more, are summed exactly, and
//      the exact sums alone decide, the older of two equals first.
// No step ever drops a node that could be on the list, whatever the bounds are worth: with bounds of 0 all nodes
// are summed roughly, and the list is the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codes.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "rough_sum.hpp"
#include "scan.hpp"
#include "shortlist.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

// Rows whose bounds are computed together: they share each load of the codes.
inline constexpr int SCAN_ROWS = 4;

// How one row is compared with nodes under a common bandwidth; `weights(node)` are a node's attributes.
template <class Weights>
struct CommonSums {
    const double* x;
    std::int64_t d;
    double r;
    const Weights& weights;

    std::int64_t exact(std::int64_t node) const { return common_sum(x, weights(node), d, r); }
    std::int64_t rough(std::int64_t node) const { return rough_common_sum(x, weights(node), d, r); }
    std::int64_t error() const { return rough_common_error(d); }
    void fetch(std::int64_t node) const {
        const double* row = weights(node);
        for (std::int64_t i = 0; i < d; i += 8) __builtin_prefetch(row + i);
    }
};

class Screening {
public:
    // Bounds of so many nodes, to be written by the caller (or by `bound_all`); there is room for whole blocks.
    std::uint16_t* bounds(std::int64_t row, std::int64_t n_nodes) {
        const std::int64_t room = rounded_up(n_nodes, BLOCK);
        grow_to(bounds_[row], room);
        return bounds_[row].data();
    }

    // Write the bounds of up to SCAN_ROWS rows with the first n nodes.
    void bound_all(const Codes& codes, const Tables* const* tables, int n_rows, std::int64_t n_nodes) {
        const std::uint8_t* entries[SCAN_ROWS];
        std::uint16_t* sums[SCAN_ROWS];
        for (int q = 0; q < n_rows; ++q) {
            entries[q] = tables[q]->data();
            sums[q] = bounds(q, n_nodes);
        }
        const std::int64_t d = codes.n_attributes(), n_blocks = rounded_up(n_nodes, BLOCK) / BLOCK;
        for (std::int64_t b = 0; b < n_blocks; ++b) {
            const std::uint8_t* block = codes.block(b);
            switch (n_rows) {
                case 1: scan<1>(block, entries, d, sums); break;
                case 2: scan<2>(block, entries, d, sums); break;
                case 3: scan<3>(block, entries, d, sums); break;
                default: scan<4>(block, entries, d, sums);
            }
            for (int q = 0; q < n_rows; ++q) sums[q] += BLOCK;
        }
    }

    // Fill the list with the nearest of the first n nodes; 1 in the bounds of `row` stands for `step` units of a sum.
    template <class Sums>
    void list_nearest(std::int64_t row, std::int64_t n_nodes, std::int64_t step, std::int64_t n_wanted, const Sums& sums,
                      Shortlist& nearest) {
        const std::uint16_t* bounds = bounds_[row].data();
        nearest.clear();
        begin(n_nodes, n_wanted);
        const std::int64_t first = likely_bound(bounds, n_nodes, n_wanted);
        look_at(collect(bounds, n_nodes, 0, first, candidates_.data()), sums);
        const std::int64_t last = std::min<std::int64_t>(limit(sums) / step, UINT16_MAX);
        if (first < last) {
            const std::int64_t n = collect(bounds, n_nodes, first + 1, last, candidates_.data());
            in_order(bounds, n, first + 1, last);
            look_at_promising(bounds, n, step, sums);
        }
        const std::int64_t worst = limit(sums) + sums.error();
        for (std::int64_t k = 0; k < n_kept_; ++k) {
            const Kept& one = kept_[static_cast<std::size_t>(k)];
            if (one.rough <= worst) nearest.offer(one.node, sums.exact(one.node));
        }
    }

private:
    struct Kept {
        std::int64_t node, rough;
    };
    static constexpr std::int64_t COLUMNS = 256;
    static constexpr std::int64_t CLASSES = 16;

    void begin(std::int64_t n_nodes, std::int64_t n_wanted) {
        grow_to(candidates_, n_nodes + BLOCK);
        grow_to(ordered_, n_nodes + BLOCK);
        grow_to(kept_, n_nodes);
        grow_to(best_, n_wanted);
        n_kept_ = n_best_ = 0;
        n_wanted_ = n_wanted;
    }

    // A number that at least N bounds do not exceed, hardly larger than the N-th: the N-th of the least bounds of
    // columns of nodes. Columns are compared by vectors.
    std::int64_t likely_bound(const std::uint16_t* bounds, std::int64_t n_nodes, std::int64_t n_wanted) {
        if (n_wanted > COLUMNS / 2 || n_nodes < 2 * n_wanted) return UINT16_MAX;
        std::uint16_t least[COLUMNS];
        const std::int64_t n_columns = std::min(n_nodes, COLUMNS);
        std::copy_n(bounds, n_columns, least);
        std::int64_t start = COLUMNS;
        for (; start + COLUMNS <= n_nodes; start += COLUMNS) {
            for (std::int64_t j = 0; j < COLUMNS; ++j) least[j] = std::min(least[j], bounds[start + j]);
        }
        for (std::int64_t j = 0; start + j < n_nodes; ++j) least[j] = std::min(least[j], bounds[start + j]);
        std::nth_element(least, least + n_wanted - 1, least + n_columns);
        return least[n_wanted - 1];
    }

    // Write down the nodes whose bounds lie between two numbers; return how many.
    static std::int64_t collect(const std::uint16_t* bounds, std::int64_t n_nodes, std::int64_t low, std::int64_t high,
                                std::int32_t* found) noexcept {
        std::int64_t n = 0, k = 0;
#if defined(__AVX2__)
        const __m256i base = _mm256_set1_epi16(static_cast<short>(low)), reach = _mm256_set1_epi16(static_cast<short>(high - low));
        for (; k + 16 <= n_nodes; k += 16) {
            const __m256i above = _mm256_sub_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bounds + k)), base);
            const __m256i inside = _mm256_cmpeq_epi16(_mm256_min_epu16(above, reach), above);
            auto bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(inside));
            while (bits != 0) {
                const int bit = std::countr_zero(bits);
                found[n++] = static_cast<std::int32_t>(k + bit / 2);
                bits &= bits - 1;
                bits &= bits - 1;
            }
        }
#endif
        for (; k < n_nodes; ++k) {
            found[n] = static_cast<std::int32_t>(k);
            n += bounds[k] >= low && bounds[k] <= high;
        }
        return n;
    }

    // Bring the candidates into the order of their bounds, as far as classes tell.
    void in_order(const std::uint16_t* bounds, std::int64_t n, std::int64_t low, std::int64_t high) noexcept {
        const auto width = static_cast<std::uint32_t>((high - low) / CLASSES + 1);
        const std::uint32_t inverse = (1u << 16) / width;
        const auto class_of = [&](std::int32_t node) { return ((bounds[node] - static_cast<std::uint32_t>(low)) * inverse) >> 16; };
        std::int32_t places[CLASSES + 1] = {};
        for (std::int64_t k = 0; k < n; ++k) ++places[class_of(candidates_[static_cast<std::size_t>(k)]) + 1];
        for (std::int64_t j = 0; j < CLASSES; ++j) places[j + 1] += places[j];
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int32_t node = candidates_[static_cast<std::size_t>(k)];
            ordered_[static_cast<std::size_t>(places[class_of(node)]++)] = node;
        }
    }

    template <class Sums>
    void look_at(std::int64_t n, const Sums& sums) {
        for (std::int64_t k = 0; k < n; ++k) {
            if (k + 1 < n) sums.fetch(candidates_[static_cast<std::size_t>(k + 1)]);
            const std::int32_t node = candidates_[static_cast<std::size_t>(k)];
            keep(node, sums.rough(node), sums);
        }
    }

    template <class Sums>
    void look_at_promising(const std::uint16_t* bounds, std::int64_t n, std::int64_t step, const Sums& sums) {
        std::int64_t last = limit(sums) / step;
        for (std::int64_t k = 0; k < n; ++k) {
            if (k + 1 < n) sums.fetch(ordered_[static_cast<std::size_t>(k + 1)]);
            const std::int32_t node = ordered_[static_cast<std::size_t>(k)];
            if (bounds[node] > last) continue;
            if (keep(node, sums.rough(node), sums)) last = limit(sums) / step;
        }
    }

    // Note a node unless it is out for certain; return whether the limit has changed.
    template <class Sums>
    bool keep(std::int64_t node, std::int64_t rough, const Sums& sums) noexcept {
        const std::int64_t nth = n_best_ == n_wanted_ ? best_[static_cast<std::size_t>(n_best_ - 1)] : NO_LIMIT;
        if (rough > nth && rough - sums.error() > nth + sums.error()) return false;
        kept_[static_cast<std::size_t>(n_kept_++)] = {node, rough};
        if (rough >= nth) return false;
        if (n_best_ < n_wanted_) ++n_best_;
        auto place = static_cast<std::size_t>(n_best_ - 1);
        for (; place > 0 && best_[place - 1] > rough; --place) best_[place] = best_[place - 1];
        best_[place] = rough;
        return true;
    }

    // No fewer than N sums are at most this.
    template <class Sums>
    std::int64_t limit(const Sums& sums) const noexcept {
        return n_best_ == n_wanted_ ? best_[static_cast<std::size_t>(n_best_ - 1)] + sums.error() : NO_LIMIT;
    }

    Array<std::uint16_t> bounds_[SCAN_ROWS];
    Array<std::int32_t> candidates_, ordered_;
    Array<Kept> kept_;
    Array<std::int64_t> best_;
    std::int64_t n_kept_ = 0, n_best_ = 0, n_wanted_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
