// Screening: find the nodes nearest to a row by lower bounds on their sums, and compute exact sums only for nodes that
// may be among the nearest.
//
// Let L be the N-th smallest of the exact sums computed so far. A node whose bound exceeds L is farther away than these
// N nodes, so it is not among the N nearest, not even by a tie. The search makes L small quickly:
//   1. Tighter bounds (search/codes16.hpp), which are close to the sums, are computed for the nodes with about the N
//     smallest bounds. The N-th smallest of them, plus their typical looseness, is a guess of L.
//   2. Tighter bounds are computed for all other nodes whose bounds do not exceed the guess, which shrinks meanwhile.
//   3. Exact sums are computed in the order of the tighter bounds, until these exceed L: for N nodes or a few more.
//     Only exact sums determine the list; ties go to the older node.
//   4. If L exceeds the guess, the remaining nodes with bounds up to L are processed. Tighter bounds exist for those
//     with bounds up to the guess, and are computed now for the others.
// No step excludes a node that belongs on the list, however loose the bounds and the guess are: if all bounds were 0,
// tighter bounds would be computed for all nodes, and the list would be the same. With few features, exact sums cost
// hardly more than tighter bounds, so steps 1 to 3 use exact sums directly.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "search/codes4.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"
#include "search/scan_codes.hpp"
#include "search/neighbour_index.hpp"
#include "search/lookup_tables.hpp"

namespace mlca::MLCA_LEVEL {

// Number of rows whose bounds are computed together; they share each load of the codes.
inline constexpr int SCAN_ROWS = 4;
// Number of nodes that are processed together.
inline constexpr std::int64_t SEARCHED_TOGETHER = 8;

class Screening {
public:
    // Memory for n_nodes bounds of a row, padded to whole blocks; filled by the caller or by `bound_all`.
    std::uint16_t* bounds(std::int64_t row, std::int64_t n_nodes) {
        const std::int64_t room = rounded_up(n_nodes, BLOCK);
        grow_to(bounds_[row], room);
        return bounds_[row].data();
    }

    // Write the bounds on the sums of up to SCAN_ROWS rows with each of the first n nodes. All tables must have the
    // same number of terms per byte. Bounds above `most` may be too small, but are never written as `most` or less.
    void bound_all(const Codes4& codes, const LookupTables* const* tables, int n_rows, std::int64_t n_nodes, std::int64_t most = UINT16_MAX) {
        const std::uint8_t* entries[SCAN_ROWS];
        std::uint16_t* sums[SCAN_ROWS];
        for (int q = 0; q < n_rows; ++q) {
            entries[q] = tables[q]->data();
            sums[q] = bounds(q, n_nodes);
        }
        if (tables[0]->terms() == 4) {
            scan_all<4>(codes, entries, n_rows, n_nodes, most, sums);
        } else {
            scan_all<2>(codes, entries, n_rows, n_nodes, most, sums);
        }
    }

    // Write the bounds on the sums of one row with the nodes of several blocks. An element of `blocks` stands for the
    // first `n` nodes of the block with the index `number`.
    template <class Blocks>
    void bound_blocks(const Codes4& codes, const LookupTables& tables, const Blocks& blocks) {
        const std::uint8_t* entries = tables.data();
        const std::int64_t bytes = rounded_up(codes.n_features(), FOURS) * BLOCK_BYTES;
        const std::int64_t n_blocks = blocks.size();
        std::uint16_t* sums = bounds(0, n_blocks * BLOCK);
        for (std::int64_t b = 0; b < n_blocks; ++b, sums += BLOCK) {
            const auto& block = blocks[b];
            // Prefetch, because the last blocks of cells are scattered in memory.
            if (b + AHEAD < n_blocks) fetch_row(codes.block(blocks[b + AHEAD].number), bytes);
            if (tables.terms() == 4) {
                scan<1, 4>(codes.block(block.number), &entries, codes.n_features(), &sums, UINT16_MAX);
            } else {
                scan<1, 2>(codes.block(block.number), &entries, codes.n_features(), &sums, UINT16_MAX);
            }
            std::fill(sums + block.n, sums + BLOCK, UINT16_MAX);
        }
    }

    // The number of units per bound step, for the bounds of one row.
    static std::int64_t bound_step(const LookupTables& tables) noexcept {
        return tables.step() << scan_shift(tables.n_features(), tables.terms());
    }

    // Fill the list with the nearest of the first n nodes; the bounds that were computed for row number `row` are in
    // steps of `step` units.
    template <class Sums>
    void list_nearest(std::int64_t row, std::int64_t n_nodes, std::int64_t step, std::int64_t n_wanted, const Sums& sums,
                      TopK& nearest) {
        nearest.clear();
        list_nearest_of(bounds_[row].data(), n_nodes, step, n_wanted, Addressed<Sums, Consecutive>{sums, {0}}, nearest);
    }

    // Fill the list with the nearest nodes of a range, excluding nodes whose sums exceed the cap and nodes flagged in
    // `gone`.
    template <class Sums>
    void list_nearest_within(std::int64_t row, Stretch nodes, std::int64_t step, std::int64_t n_wanted, std::int64_t cap, const Sums& sums,
                             const std::uint8_t* gone, TopK& nearest) {
        nearest.begin(n_wanted, cap);
        nearest.skip(gone);
        list_nearest_of(bounds_[row].data() + nodes.low, nodes.high - nodes.low, step, n_wanted, Addressed<Sums, Consecutive>{sums, {nodes.low}}, nearest);
    }

    // Fill the list with the nearest nodes of the blocks that were passed to `bound_blocks`. `places` maps the position
    // of a bound to a node and to the slot of its codes.
    template <class Sums, class Places>
    void list_nearest_in_blocks(std::int64_t n_blocks, const Places& places, std::int64_t step, std::int64_t n_wanted, std::int64_t cap,
                                const Sums& sums, const std::uint8_t* gone, TopK& nearest) {
        nearest.begin(n_wanted, cap);
        nearest.skip(gone);
        list_nearest_of(bounds_[0].data(), n_blocks * BLOCK, step, n_wanted, Addressed<Sums, Places>{sums, places}, nearest);
    }

    // The variant of `list_nearest` for cheap exact sums: sums.exact(nodes, n, totals) computes the sums of a few
    // nodes.
    template <class Sums>
    void list_nearest_directly(std::int64_t row, std::int64_t n_nodes, std::int64_t step, std::int64_t n_wanted, const Sums& sums,
                               TopK& nearest) {
        const std::uint16_t* bounds = bounds_[row].data();
        nearest.clear();
        begin(n_nodes, n_wanted, 0, nearest.cap());
        const std::int64_t first = likely_bound(bounds, n_nodes, n_wanted, nearest.cap() / step);
        sum_few(bounds, collect(bounds, n_nodes, 0, first, candidates_.data()), step, sums, nearest);
        const std::int64_t last = std::min<std::int64_t>(nearest.limit() / step, UINT16_MAX);
        if (first >= last) return;
        const std::int64_t n = collect(bounds, n_nodes, first + 1, last, candidates_.data());
        sum_few(bounds, n, step, sums, nearest);
    }

private:
    // Maps the positions of bounds to consecutive nodes, whose codes are stored in the same order.
    struct Consecutive {
        std::int64_t low;

        std::int64_t slot(std::int64_t place) const noexcept { return low + place; }
        static bool holds(std::int64_t) noexcept { return true; }
        std::int64_t node(std::int64_t place) const noexcept { return low + place; }
    };
    // Adapter for `Sums`: its functions take the position of a bound, where those of `Sums` take a node or a slot.
    template <class Sums, class Places>
    struct Addressed {
        const Sums& sums;
        Places places;

        std::int64_t node(std::int64_t place) const { return places.node(place); }
        std::int64_t exact(std::int64_t place) const { return sums.exact(node(place)); }
        [[gnu::always_inline]] void fetch(std::int64_t place) const { sums.fetch(node(place)); }
        std::int64_t lower(std::int64_t place) const { return sums.lower(places.slot(place)); }
        [[gnu::always_inline]] void fetch_fine(std::int64_t place) const { sums.fetch_fine(places.slot(place)); }
        std::int64_t looseness() const { return sums.looseness(); }
        bool skips(std::int64_t place, const TopK& nearest) const { return !places.holds(place) || nearest.skips(node(place)); }
    };

    template <class Sums>
    void list_nearest_of(const std::uint16_t* bounds, std::int64_t n_nodes, std::int64_t step, std::int64_t n_wanted, const Sums& sums,
                         TopK& nearest) {
        begin(n_nodes, n_wanted, sums.looseness(), nearest.cap());
        const std::int64_t first = likely_bound(bounds, n_nodes, n_wanted, nearest.cap() / step);
        add_closer_bounds(bounds, collect(bounds, n_nodes, 0, first, candidates_.data()), step, sums, nearest);
        const std::int64_t last = std::min<std::int64_t>(guess_ / step, UINT16_MAX);
        if (first < last) {
            const std::int64_t n = collect(bounds, n_nodes, first + 1, last, candidates_.data());
            add_closer_bounds(bounds, n, step, sums, nearest);
        }
        sum_exactly(sums, nearest);
        if (nearest.limit() > guess_) sum_rest(bounds, n_nodes, step, sums, nearest);
    }

    struct Kept {
        std::int64_t lower, node;
    };
    static constexpr std::int64_t MOST_COLUMNS = 512, AHEAD = 3;
    static constexpr std::int64_t FEW = SEARCHED_TOGETHER;
    // Number of node indices in a vector. `collect` may write up to one vector beyond its last result.
    static constexpr int WRITTEN_TOGETHER = 16;

    template <int TERMS>
    static void scan_all(const Codes4& codes, const std::uint8_t* const* entries, int n_rows, std::int64_t n_nodes, std::int64_t most,
        std::uint16_t** sums) {
        const std::int64_t d = codes.n_features(), n_blocks = rounded_up(n_nodes, BLOCK) / BLOCK;
        for (std::int64_t b = 0; b < n_blocks; ++b) {
            const std::uint8_t* block = codes.block(b);
            switch (n_rows) {
                case 1: scan<1, TERMS>(block, entries, d, sums, most); break;
                case 2: scan<2, TERMS>(block, entries, d, sums, most); break;
                case 3: scan<3, TERMS>(block, entries, d, sums, most); break;
                default: scan<4, TERMS>(block, entries, d, sums, most);
            }
            for (int q = 0; q < n_rows; ++q) sums[q] += BLOCK;
        }
    }

    void begin(std::int64_t n_nodes, std::int64_t n_wanted, std::int64_t looseness, std::int64_t cap) {
        grow_to(candidates_, n_nodes + WRITTEN_TOGETHER);
        grow_to(kept_, n_nodes);
        grow_to(best_, n_wanted + n_wanted / 4 + 1);
        n_kept_ = n_summed_ = n_best_ = 0;
        n_wanted_ = n_wanted;
        looseness_ = looseness;
        cap_ = guess_ = cap;
    }

    // A value slightly above the N-th smallest bound, so that at least N bounds do not exceed it. Bounds are arranged
    // in columns, and the value is the N-th smallest of the columns' minima, which are computed by vectors. If bounds
    // above `most` do not matter, the value is `most`.
    static std::int64_t likely_bound(const std::uint16_t* __restrict bounds, std::int64_t n_nodes, std::int64_t n_wanted,
        std::int64_t most) noexcept {
        if (most < UINT16_MAX) return most;
        const std::int64_t n_columns = rounded_up(std::max<std::int64_t>(4 * n_wanted, BLOCK), BLOCK);
        if (n_columns > MOST_COLUMNS || n_nodes < n_columns) return UINT16_MAX;
        std::uint16_t least[MOST_COLUMNS];
        std::copy_n(bounds, n_columns, least);
        std::int64_t start = n_columns;
        for (; start + n_columns <= n_nodes; start += n_columns) {
            for (std::int64_t j = 0; j < n_columns; ++j) least[j] = bounds[start + j] < least[j] ? bounds[start + j] : least[j];
        }
        for (std::int64_t j = 0; start + j < n_nodes; ++j) least[j] = std::min(least[j], bounds[start + j]);
        // Find the N-th smallest minimum bit by bit: the largest value with fewer than N minima below it.
        std::int64_t nth = 0;
        for (int bit = std::bit_width(*std::max_element(least, least + n_columns)) - 1; bit >= 0; --bit) {
            const auto candidate = static_cast<std::uint16_t>(nth + (1 << bit));
            std::uint16_t below = 0;
            for (std::int64_t j = 0; j < n_columns; ++j) below = static_cast<std::uint16_t>(below + (least[j] < candidate));
            if (below < n_wanted) nth = candidate;
        }
        return nth;
    }

    // Write the indices of the nodes whose bounds are from `low` to `high`; return how many there are.
    static std::int64_t collect(const std::uint16_t* bounds, std::int64_t n_nodes, std::int64_t low, std::int64_t high,
                                std::int32_t* found) noexcept {
        std::int64_t n = 0, k = 0;
#if defined(__AVX512BW__)
        // The indices of accepted nodes are compressed and written as a whole vector, without a branch. On Zen 4,
        // predicting `datasets.three_discs` takes a fifth less time this way.
        const __m512i base = _mm512_set1_epi16(static_cast<short>(low)), reach = _mm512_set1_epi16(static_cast<short>(high - low));
        __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        const auto write = [&](__mmask16 inside) {
            _mm512_storeu_si512(found + n, _mm512_maskz_compress_epi32(inside, numbers));
            n += std::popcount(static_cast<unsigned>(inside));
            numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(WRITTEN_TOGETHER));
        };
        for (; k + 2 * WRITTEN_TOGETHER <= n_nodes; k += 2 * WRITTEN_TOGETHER) {
            const __mmask32 inside = _mm512_cmple_epu16_mask(_mm512_sub_epi16(_mm512_loadu_si512(bounds + k), base), reach);
            write(static_cast<__mmask16>(inside));
            write(static_cast<__mmask16>(inside >> WRITTEN_TOGETHER));
        }
#elif defined(__AVX2__)
        const __m256i base = _mm256_set1_epi16(static_cast<short>(low)), reach = _mm256_set1_epi16(static_cast<short>(high - low));
        const auto inside = [&](const std::uint16_t* some) {
            const __m256i above = _mm256_sub_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(some)), base);
            return _mm256_cmpeq_epi16(_mm256_min_epu16(above, reach), above);
        };
        for (; k + 32 <= n_nodes; k += 32) {
            const __m256i both = _mm256_packs_epi16(inside(bounds + k), inside(bounds + k + 16));
            auto bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8)));
            for (; bits != 0; bits &= bits - 1) found[n++] = static_cast<std::int32_t>(k + std::countr_zero(bits));
        }
#endif
        for (; k < n_nodes; ++k) {
            found[n] = static_cast<std::int32_t>(k);
            n += bounds[k] >= low && bounds[k] <= high;
        }
        return n;
    }

    template <class Sums>
    void sum_few(const std::uint16_t* bounds, std::int64_t n, std::int64_t step, const Sums& sums, TopK& nearest) const {
        const std::int32_t* nodes = candidates_.data();
        std::int64_t last = nearest.limit() / step;
        for (std::int64_t k = 0; k < n;) {
            std::int32_t few[FEW];
            std::int64_t n_few = 0, totals[FEW];
            for (; k < n && n_few < FEW; ++k) {
                few[n_few] = nodes[k];
                n_few += bounds[nodes[k]] <= last;
            }
            for (std::int64_t j = k; j < std::min(k + FEW, n); ++j) sums.fetch(nodes[j]);
            sums.exact(few, n_few, totals);
            for (std::int64_t j = 0; j < n_few; ++j) {
                if (totals[j] <= nearest.limit()) nearest.offer(few[j], totals[j]);
            }
            last = nearest.limit() / step;
        }
    }

    // Compute tighter bounds for those of the first n candidates whose bounds are within the guess. A few nodes are
    // processed at a time, so that no bound has to wait until the previous one has updated the guess.
    template <class Sums>
    void add_closer_bounds(const std::uint16_t* bounds, std::int64_t n, std::int64_t step, const Sums& sums, const TopK& nearest) {
        const std::int32_t* nodes = candidates_.data();
        std::int64_t last = guess_ / step;
        for (std::int64_t k = 0; k < n;) {
            std::int32_t few[FEW];
            std::int64_t n_few = 0, lower[FEW];
            for (; k < n && n_few < FEW; ++k) {
                few[n_few] = nodes[k];
                n_few += bounds[nodes[k]] <= last && !sums.skips(nodes[k], nearest);
            }
            for (std::int64_t j = k; j < std::min(k + FEW, n); ++j) sums.fetch_fine(nodes[j]);
            for (std::int64_t j = 0; j < n_few; ++j) lower[j] = sums.lower(few[j]);
            for (std::int64_t j = 0; j < n_few; ++j) {
                kept_[n_kept_++] = {lower[j], few[j]};
                if (improve(lower[j])) last = guess_ / step;
            }
        }
        find_guess();
    }

    // Add a tighter bound to the N smallest; return whether the guess has changed. The N-th smallest is recomputed only
    // after several additions.
    bool improve(std::int64_t lower) noexcept {
        if (lower > guess_ - looseness_) return false;
        best_[n_best_++] = lower;
        return n_best_ >= n_wanted_ + n_wanted_ / 4 && find_guess();
    }

    bool find_guess() noexcept {
        if (n_best_ < n_wanted_) return false;
        const auto begin = best_.begin(), last = begin + (n_wanted_ - 1);
        std::nth_element(begin, last, begin + n_best_);
        n_best_ = n_wanted_;
        const std::int64_t before = guess_;
        guess_ = std::min(cap_, *last + looseness_);
        return guess_ < before;
    }

    // Compute exact sums of the nodes whose tighter bounds are within the guess, in ascending order of these bounds.
    template <class Sums>
    void sum_exactly(const Sums& sums, TopK& nearest) {
        const auto begin = kept_.begin();
        const auto end = std::partition(begin, begin + n_kept_, [&](const Kept& one) { return one.lower <= guess_; });
        std::sort(begin, end, [](const Kept& a, const Kept& b) { return a.lower < b.lower; });
        for (auto one = begin; one < std::min(end, begin + n_wanted_); ++one) sums.fetch(one->node);
        auto one = begin;
        for (; one < end && one->lower <= nearest.limit(); ++one) nearest.offer(sums.node(one->node), sums.exact(one->node));
        n_summed_ = one - begin;
    }

    // Compute exact sums of all other nodes that the bounds do not exclude. Tighter bounds already exist for nodes with
    // bounds up to the guess, because the guess only shrinks; these bounds are reused.
    template <class Sums>
    void sum_rest(const std::uint16_t* bounds, std::int64_t n_nodes, std::int64_t step, const Sums& sums, TopK& nearest) {
        const auto begin = kept_.begin(), summed = begin + n_summed_;
        const std::int64_t looked_at = std::min<std::int64_t>(guess_ / step, UINT16_MAX);
        for (auto one = summed; one < begin + n_kept_; ++one) {
            if (one->lower <= nearest.limit() && bounds[one->node] <= looked_at) nearest.offer(sums.node(one->node), sums.exact(one->node));
        }
        const std::int64_t last = std::min<std::int64_t>(nearest.limit() / step, UINT16_MAX);
        if (last <= looked_at) return;
        const std::int64_t n = collect(bounds, n_nodes, looked_at + 1, last, candidates_.data());
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int32_t node = candidates_[k];
            if (sums.skips(node, nearest) || sums.lower(node) > nearest.limit()) continue;
            if (std::any_of(begin, summed, [&](const Kept& one) { return one.node == node; })) continue;
            nearest.offer(sums.node(node), sums.exact(node));
        }
    }

    Array<std::uint16_t> bounds_[SCAN_ROWS];
    Array<std::int32_t> candidates_;
    Array<Kept> kept_;
    Array<std::int64_t> best_;
    std::int64_t n_kept_ = 0, n_summed_ = 0, n_best_ = 0, n_wanted_ = 0, looseness_ = 0, cap_ = 0, guess_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
