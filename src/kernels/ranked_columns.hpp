// Dense nodes, attribute by attribute: their knots, their ranks, and what is summed up of them.
//
// Nodes are rows, but all that is asked of ranks is about one attribute of all nodes. So eight attributes at a time are laid
// out as columns, as wide as a cache line of the rows; knots are selected from a column, its ranks, sums and four-bit codes are
// computed by vectors, and ranks go back to rows. A node's value takes a third of the time that it takes one by one.
//
// Every node lies between the first and the last knot, as these are the smallest and the largest node: no rank is outside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "codes.hpp"
#include "learned.hpp"
#include "memory.hpp"
#include "ranks.hpp"
#include "scan.hpp"
#include "tables.hpp"
#include "transposing.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

// What dense nodes keep of their ranks, for searches by them.
struct RankedRows {
    // Sums of sixteen bits do not hold more attributes; longer rows go without codes.
    static constexpr std::int64_t MOST_CODED = 1 << 15;

    explicit RankedRows(std::int64_t d, std::int64_t n_expected = INT64_MAX)
        : is_coded(CODES_PAY && d <= MOST_CODED), ranks(Learned::padded(d), n_expected), codes(is_coded ? d : 1, n_expected) {}

    // How many nodes there will be until the similarity of n nodes is computed anew.
    static std::int64_t expected(std::int64_t n) noexcept { return due_after(n) + 1; }

    void reserve(std::int64_t n) {
        ranks.reserve(n);
        if (is_coded) codes.reserve(n);
    }

    bool is_coded;
    Rows<std::int32_t> ranks;  // from the lowest: the rank of 0 is added again
    Codes codes;               // each rank's cell
};

template <class View>
class RankedColumns {
public:
    // The nodes of a view (see weighing.hpp) that gives all entries, zeros too. `binary`: they are 0 or 1.
    RankedColumns(const View& view, bool binary)
        : ranks(binary ? Ranks::binary(view.n_attributes()) : Ranks::with_knots(view.n_attributes(), view.n_nodes())),
          rows(view.n_attributes(), RankedRows::expected(view.n_nodes())),
          sums(static_cast<std::size_t>(view.n_attributes())),
          squares(sums.size()),
          view_(view),
          n_(view.n_nodes()) {
        rows.reserve(n_);
        ranks.reserve(view.n_attributes());
        values_.resize(static_cast<std::size_t>(TOGETHER_RANKED * n_));
        // Whole blocks of codes are written: what is beyond the nodes is nobody's.
        const std::int64_t room = rounded_up(n_, BLOCK);
        column_room_ = room;
        columns_.assign(static_cast<std::size_t>(TOGETHER_RANKED * room), 0);
        counts_.resize(static_cast<std::size_t>(n_));
        for (std::int64_t k = 0; k < n_; ++k) counts_.data()[k] = view.count(k);
        counts_are_one_ = std::all_of(counts_.begin(), counts_.end(), [](std::int64_t count) { return count == 1; });
        for (std::int64_t i = 0; i < ranks.n_knots; ++i) positions_[i] = ranks.position(i, n_);
        for (std::int64_t low = 0; low < view.n_attributes(); low += TOGETHER_RANKED) {
            rank_some(low, std::min(low + TOGETHER_RANKED, view.n_attributes()));
        }
        if (!binary) ranks.lay_out(view.n_attributes());
    }

    Ranks ranks;
    RankedRows rows;
    // Of each attribute, over the rows that the nodes stand for, of ranks less the base.
    Array<std::int64_t> sums;
    Array<Int128> squares;

private:
    static constexpr std::int64_t TOGETHER_RANKED = 8;  // attributes, and nodes that are laid out
    static constexpr std::int64_t TOGETHER_PLACED = 64;
    static constexpr std::int64_t FETCHED_AHEAD = 16;

    void rank_some(std::int64_t low, std::int64_t high) {
        double* __restrict values = values_.data();
        // A few attributes of each node are far apart in memory, and no processor sees by itself which come next.
        const std::int64_t whole = n_ / TOGETHER_RANKED * TOGETHER_RANKED;
        for (std::int64_t k = 0; k < whole; k += TOGETHER_RANKED) {
            if (k % 256 == 0) view_.pause();
            const double* some[TOGETHER_RANKED];
            for (std::int64_t i = 0; i < TOGETHER_RANKED; ++i) {
                some[i] = view_.row(k + i) + low;
                if (k + i + FETCHED_AHEAD >= n_) continue;
                const double* later = view_.row(k + i + FETCHED_AHEAD) + low;
                __builtin_prefetch(later);
                __builtin_prefetch(later + (high - low - 1));
            }
            write_columns(some, high - low, values + k, n_);
        }
        for (std::int64_t k = whole; k < n_; ++k) {
            view_.for_each_entry(k, low, high, [&](std::int64_t j, double value) { values[(j - low) * n_ + k] = value; });
        }
        for (std::int64_t j = low; j < high; ++j) {
            const double* column = values_.data() + (j - low) * n_;
            std::int32_t* column_ranks = columns_.data() + (j - low) * column_room_;
            if (ranks.n_knots == 0) {
                for (std::int64_t k = 0; k < n_; ++k) column_ranks[k] = static_cast<std::int32_t>(column[k] * static_cast<double>(BINARY_ONE));
            } else {
                ranks.add_column(column, n_, positions_, space_);
                rank_column(j, column, column_ranks);
            }
            sum_up(j, column_ranks);
            if (rows.is_coded) encode(j, column_ranks);
        }
        for (std::int64_t k = 0; k < whole; k += TOGETHER_RANKED) {
            std::int32_t* some[TOGETHER_RANKED];
            for (std::int64_t i = 0; i < TOGETHER_RANKED; ++i) {
                some[i] = rows.ranks[k + i] + low;
                if (k + i + FETCHED_AHEAD < n_) __builtin_prefetch(rows.ranks[k + i + FETCHED_AHEAD] + low, 1);
            }
            write_rows(columns_.data() + k, column_room_, high - low, some);
        }
        for (std::int64_t k = whole; k < n_; ++k) {
            for (std::int64_t j = 0; j < high - low; ++j) rows.ranks[k][low + j] = columns_.data()[j * column_room_ + k];
        }
    }

    // The ranks of a column, as Ranks has them: how many knots are below is counted knot by knot.
#if defined(__AVX512F__)
    // Tables of 16 numbers are looked up in registers: by halves a value finds its place with four look-ups instead of 16 comparisons,
    // and what its rank is made of without a gather: the same comparisons and divisions. On Zen 4, learning Scene, 2.3 microseconds a row
    // instead of 6.1.
    void rank_column(std::int64_t j, const double* column, std::int32_t* column_ranks) const noexcept {
        static_assert(MOST_KNOTS == 17);
        const auto table = ranks.interpolation(j);
        double knots[MOST_KNOTS];
        std::fill(std::copy_n(table.upper, std::max<std::int64_t>(table.n, 1), knots), knots + MOST_KNOTS, std::numeric_limits<double>::max());
        struct Sixteen {
            __m512d first, second;
            explicit Sixteen(const double* numbers) : first(_mm512_loadu_pd(numbers)), second(_mm512_loadu_pd(numbers + 8)) {}
            __m512d operator[](__m512i places) const { return _mm512_permutex2var_pd(first, places, second); }
        };
        // Numbers 16 stand apart; `from` is never asked for number 0, as no value is below the first knot.
        const Sixteen knot(knots), from(table.from + 1), at_upper(table.at_upper);
        const __m512d last_knot = _mm512_set1_pd(knots[16]), last_at_upper = _mm512_set1_pd(table.at_upper[16]), middle = _mm512_set1_pd(knots[7]);
        const __m512i one = _mm512_set1_epi64(1);
        for (std::int64_t first = 0; first < n_; first += 8) {
            const auto here = static_cast<__mmask8>(n_ - first >= 8 ? 0xff : (1 << (n_ - first)) - 1);
            __m512d x = _mm512_maskz_loadu_pd(here, column + first);
            x = _mm512_maskz_min_pd(here, _mm512_maskz_max_pd(here, x, _mm512_set1_pd(-0x1p1000)), _mm512_set1_pd(0x1p1000));
            __m512i place = _mm512_maskz_set1_epi64(_mm512_cmp_pd_mask(middle, x, _CMP_LT_OQ), 8);
            const auto step = [&](__m512d at, std::int64_t by) {
                place = _mm512_mask_add_epi64(place, _mm512_cmp_pd_mask(at, x, _CMP_LT_OQ), place, _mm512_set1_epi64(by));
            };
            step(knot[_mm512_add_epi64(place, _mm512_set1_epi64(3))], 4);
            step(knot[_mm512_add_epi64(place, one)], 2);
            step(knot[place], 1);
            step(knot[place], 1);
            const __mmask8 last = _mm512_cmpeq_epi64_mask(place, _mm512_set1_epi64(16));
            const __m512i below = _mm512_sub_epi64(place, one);
            const __m512d lower = knot[below], upper = _mm512_mask_mov_pd(knot[place], last, last_knot);
            const __m512d part = _mm512_div_pd(_mm512_sub_pd(x, lower), _mm512_sub_pd(upper, lower));
            const __m512d steps = _mm512_maskz_roundscale_pd(here, _mm512_mul_pd(part, _mm512_set1_pd(2.0 * RANK_STEP)), 8);  // to the nearest
            const __m512d rank = _mm512_mask_mov_pd(_mm512_add_pd(from[below], steps), _mm512_cmp_pd_mask(x, upper, _CMP_EQ_OQ),
                                                    _mm512_mask_mov_pd(at_upper[place], last, last_at_upper));
            _mm256_mask_storeu_epi32(column_ranks + first, here, _mm512_maskz_cvtpd_epi32(here, rank));
        }
    }
#else
    void rank_column(std::int64_t j, const double* __restrict column, std::int32_t* __restrict column_ranks) const noexcept {
        const auto table = ranks.interpolation(j);
        for (std::int64_t first = 0; first < n_; first += TOGETHER_PLACED) {
            const std::int64_t n = std::min(TOGETHER_PLACED, n_ - first);
            double x[TOGETHER_PLACED];
            std::int64_t places[TOGETHER_PLACED] = {};
            for (std::int64_t i = 0; i < n; ++i) x[i] = Ranks::limited_value(column[first + i]);
            std::fill(x + n, x + TOGETHER_PLACED, 0.0);
            for (std::int64_t p = 0; p + 1 < table.n; ++p) {
                const double knot = table.knots[p];
                for (std::int64_t i = 0; i < TOGETHER_PLACED; ++i) places[i] += knot < x[i];
            }
            for (std::int64_t i = 0; i < n; ++i) column_ranks[first + i] = table.rank(places[i], x[i]);
        }
    }
#endif

    void sum_up(std::int64_t j, const std::int32_t* __restrict column_ranks) noexcept {
        constexpr std::int64_t LOW = (std::int64_t{1} << 22) - 1;
        const std::int32_t base = ranks.base(j);
        const std::int64_t* __restrict counts = counts_.data();
        // Squares are below 2^44.2: of their upper and lower halves sums over 2^40 rows stay below 2^63.
        std::int64_t sum = 0, upper = 0, lower = 0;
        if (counts_are_one_) {
            for (std::int64_t k = 0; k < n_; ++k) {
                const std::int64_t rank = std::int32_t{column_ranks[k] - base}, square = rank * rank;
                sum += rank;
                upper += square >> 22;
                lower += square & LOW;
            }
        } else {
            for (std::int64_t k = 0; k < n_; ++k) {
                const std::int64_t rank = std::int32_t{column_ranks[k] - base}, square = rank * rank;
                sum += counts[k] * rank;
                upper += counts[k] * (square >> 22);
                lower += counts[k] * (square & LOW);
            }
        }
        sums.data()[j] = sum;
        squares.data()[j] = (static_cast<Int128>(upper) << 22) + lower;
    }

    void encode(std::int64_t j, const std::int32_t* column_ranks) noexcept {
        std::uint8_t cells[BLOCK];
        for (std::int64_t first = 0; first < n_; first += BLOCK) {
            for (std::int64_t i = 0; i < BLOCK; ++i) cells[i] = rank_cell(column_ranks[first + i], RANK_STEP);
            rows.codes.enter_block(first / BLOCK, j, cells);
        }
    }

    const View& view_;
    std::int64_t n_, column_room_ = 0;
    Array<double> values_;          // a few columns
    Array<std::int32_t> columns_;   // and their ranks
    Array<std::int64_t> counts_;
    bool counts_are_one_ = false;
    Ranks::Space space_;
    std::int64_t positions_[MOST_KNOTS] = {};
};

}  // namespace mlca::MLCA_LEVEL
