// Processing of dense nodes feature by feature: their knots, ranks and sums of ranks.
//
// Nodes are stored as rows, but knots, ranks and sums need one feature of all nodes. So eight features at a time (one
// cache line of a row) are transposed into columns. Knots are selected from a column; its ranks, sums and four-bit
// codes are computed by vectors; ranks are written back to rows. This takes a third of the time of processing values
// one by one.
//
// The first and the last knot are the smallest and the largest node value of a feature, so no value needs
// extrapolation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/memory.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "search/codes4.hpp"
#include "search/lookup_tables.hpp"
#include "search/scan_codes.hpp"
#include "similarity/rank_distance.hpp"
#include "similarity/ranks.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

// The ranks of dense nodes. Searches keep the four-bit codes, and the ranks in fewer bits (search/rank_codes.hpp).
struct RankedRows {
    // Maximum number of features for four-bit codes; with more, sixteen-bit sums could overflow.
    static constexpr std::int64_t MOST_CODED = 1 << 15;

    explicit RankedRows(std::int64_t d, std::int64_t n_expected = UNKNOWN_NUMBER)
        : is_coded(d <= MOST_CODED), ranks(Learned::padded(d), n_expected), codes(is_coded ? d : 1, n_expected) {}

    // Number of nodes expected when the similarity of n nodes is next recomputed.
    static std::int64_t expected(std::int64_t n) noexcept { return due_after(n) + 1; }

    void reserve(std::int64_t n) {
        ranks.reserve(n);
        if (is_coded) codes.reserve(n);
    }

    bool is_coded;
    Rows<std::int32_t> ranks;  // counted from the lowest: the rank of 0 is not subtracted
    Codes4 codes;               // the cell of each rank
};

template <class View>
class RankedColumns {
public:
    // The view (see similarity/fit_similarity.hpp) must give all entries, including zeros. `binary`: whether all are 0
    // or 1.
    RankedColumns(const View& view, bool binary)
        : ranks(binary ? Ranks::binary(view.n_features()) : Ranks::with_knots(view.n_features(), view.n_nodes())),
          rows(view.n_features(), RankedRows::expected(view.n_nodes())),
          sums(static_cast<std::size_t>(view.n_features())),
          squares(sums.size()),
          view_(view),
          n_(view.n_nodes()) {
        rows.reserve(n_);
        ranks.reserve(view.n_features());
        values_.resize(TOGETHER_RANKED * n_);
        // Whole blocks of codes are written; entries beyond the last node are unused.
        const std::int64_t room = rounded_up(n_, BLOCK);
        column_room_ = room;
        columns_.assign(TOGETHER_RANKED * room, 0);
        counts_.resize(n_);
        for (std::int64_t k = 0; k < n_; ++k) counts_[k] = view.count(k);
        for (std::int64_t i = 0; i < ranks.n_knots; ++i) positions_[i] = ranks.position(i, n_);
        for (std::int64_t low = 0; low < view.n_features(); low += TOGETHER_RANKED) {
            rank_some(low, std::min(low + TOGETHER_RANKED, view.n_features()));
        }
        if (!binary) ranks.lay_out(view.n_features());
    }

    Ranks ranks;
    RankedRows rows;
    // Per feature, over the rows that the nodes represent: the sums of ranks minus the base, and of their squares.
    Array<std::int64_t> sums;
    Array<Int128> squares;

private:
    static constexpr std::int64_t TOGETHER_RANKED = 8;  // number of features that are ranked together
    static constexpr std::int64_t TOGETHER_PLACED = 64;

    void rank_some(std::int64_t low, std::int64_t high) {
        double* __restrict values = values_.data();
        for (std::int64_t k = 0; k < n_; ++k) {
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
        for (std::int64_t k = 0; k < n_; ++k) {
            for (std::int64_t j = 0; j < high - low; ++j) rows.ranks[k][low + j] = columns_[j * column_room_ + k];
        }
    }

    // Compute the ranks of a column, which equal those of `Ranks`. Without AVX-512, the number of knots below a value
    // is found by comparing the value with every knot.
#if defined(__AVX512F__)
    // Tables of 16 values are held in registers: a binary search with four lookups replaces 16 comparisons, and the
    // interpolation constants need no gather. The selected knots and the divisions are the same as without AVX-512. On
    // Zen 4, learning Scene takes 2.3 instead of 6.1 microseconds per row.
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
        // Entry 16 is held separately; entry 0 of `from` is never used, because no value is below the first knot.
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
            const __m512d steps = _mm512_maskz_roundscale_pd(here, _mm512_mul_pd(part, _mm512_set1_pd(2.0 * RANK_STEP)), 8);  // rounded to nearest
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
        // Squares are below 2^44.2; sums of their upper and lower halves over 2^40 rows stay below 2^63.
        std::int64_t sum = 0, upper = 0, lower = 0;
        for (std::int64_t k = 0; k < n_; ++k) {
            const std::int64_t rank = std::int32_t{column_ranks[k] - base}, square = rank * rank;
            sum += counts[k] * rank;
            upper += counts[k] * (square >> 22);
            lower += counts[k] * (square & LOW);
        }
        sums[j] = sum;
        squares[j] = (static_cast<Int128>(upper) << 22) + lower;
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
    Array<double> values_;          // the values of a few columns
    Array<std::int32_t> columns_;   // the ranks of these columns
    Array<std::int64_t> counts_;
    Ranks::Space space_;
    std::int64_t positions_[MOST_KNOTS] = {};
};

// The entries of all nodes as ranks.
//
// A base is subtracted from ranks, so that zeros add nothing to sums and ranks are small; it is the rank of 0 if any
// node is 0 in the feature (see Ranks::base). If dense nodes have few zeros, all their ranks are stored, counted from
// the lowest; otherwise only the ranks of non-zeros, with their features.
class RankedNodes {
public:
    RankedNodes() = default;

    // Take over the known ranks of dense nodes.
    RankedNodes(const Ranks& ranks, RankedRows rows) : RankedNodes(ranks) { rows_.emplace(std::move(rows)); }

    // Compute the ranks of the nodes of a view (see similarity/fit_similarity.hpp) with n_entries non-zeros.
    template <class View>
    RankedNodes(const View& view, const Ranks& ranks, std::int64_t n_entries) : RankedNodes(ranks) {
        starts_.reserve(view.n_nodes() + 1);
        starts_.push_back(0);
        keys_.resize(n_entries);
        ranks_.resize(n_entries);
        std::int64_t place = 0;
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            view.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                keys_[place] = static_cast<std::int32_t>(j);
                ranks_[place++] = ranks(j, value) + shifts_[j];
            });
            starts_.push_back(place);
        }
    }

    // Compute the ranks of the nodes of a view in which values may be missing. Each value of a nominal feature is a
    // trait, in which nodes with the value have the rank `one` (nodes/missing_and_nominal.hpp).
    template <class View>
    RankedNodes(const View& view, const Ranks& ranks, const NominalValues& traits) : RankedNodes(ranks) {
        const auto one = static_cast<std::int32_t>(ranks.one());
        const auto append = [this](std::int64_t t, std::int32_t rank) {
            keys_.push_back(static_cast<std::int32_t>(t));
            ranks_.push_back(rank);
        };
        shifts_.resize(d_ + traits.size(), 0);
        Array<std::int64_t> latest(d_, -1);  // the last node with an entry in the feature
        starts_.push_back(0);
        missing_starts_.push_back(0);
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            view.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                latest[j] = k;
                const bool nominal = is_nominal(view.nominal(), j);
                if (!is_missing(value)) return nominal ? append(d_ + traits.find(j, value), one) : append(j, ranks(j, value) + shifts_[j]);
                if (!nominal) missing_.push_back(static_cast<std::int32_t>(j));
                const auto [first, end] = traits.of(j);
                for (std::int64_t t = first; t < end; ++t) missing_.push_back(static_cast<std::int32_t>(d_ + t));
            });
            for (std::int64_t t = 0; t < traits.size(); ++t) {
                if (traits.values[t] == 0.0 && latest[traits.features[t]] != k) append(d_ + t, one);
            }
            starts_.push_back(static_cast<std::int64_t>(keys_.size()));
            missing_starts_.push_back(static_cast<std::int64_t>(missing_.size()));
        }
    }

    bool is_dense() const noexcept { return rows_.has_value(); }
    // `row` returns a dense node's ranks, counted from the lowest. Subtracting `base` gives the ranks that `for_each`
    // passes.
    const std::int32_t* row(std::int64_t k) const noexcept { return rows_->ranks[k]; }
    std::int32_t base(std::int64_t feature) const noexcept { return bases_[feature]; }
    // Move the ranks of dense nodes out of this object.
    RankedRows take_rows() noexcept { return std::move(*rows_); }
    // The rank of 0 in a feature minus the feature's base.
    std::int32_t shift(std::int64_t feature) const noexcept { return shifts_[feature]; }

    // Call f(feature, rank minus the base) for the stored entries of a node.
    template <class F>
    void for_each(std::int64_t k, F f) const {
        if (is_dense()) {
            const std::int32_t* __restrict node_ranks = row(k);
            for (std::int64_t j = 0; j < d_; ++j) f(j, std::int64_t{node_ranks[j] - base(j)});
        } else {
            for (std::int64_t p = starts_[k]; p < starts_[k + 1]; ++p) f(keys_[p], std::int64_t{ranks_[p]});
        }
    }

    // Call f(trait) for each trait for which a node has no value.
    template <class F>
    void for_each_missing(std::int64_t k, F f) const {
        if (missing_starts_.empty()) return;
        for (std::int64_t p = missing_starts_[k]; p < missing_starts_[k + 1]; ++p) f(std::int64_t{missing_[p]});
    }

private:
    explicit RankedNodes(const Ranks& ranks) : d_(static_cast<std::int64_t>(ranks.zeros.size())) {
        shifts_.resize(ranks.zeros.size());
        bases_.resize(ranks.zeros.size());
        for (std::int64_t j = 0; j < d_; ++j) {
            bases_[j] = ranks.base(j);
            shifts_[j] = ranks.zeros[j] - bases_[j];
        }
    }

    std::int64_t d_ = 0;
    std::optional<RankedRows> rows_;
    Array<std::int64_t> starts_;
    Array<std::int32_t> keys_, ranks_;
    Array<std::int32_t> bases_, shifts_;
    Array<std::int64_t> missing_starts_;
    Array<std::int32_t> missing_;
};

}  // namespace mlca::MLCA_LEVEL
