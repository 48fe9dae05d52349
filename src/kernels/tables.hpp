// For one row: the least that each attribute can add to the sum with a node, cell by cell, in bytes.
//
// Whatever lies in a cell differs from the row's value x by at least as much as the cell's nearer boundary b, and by
// nothing where x is in the cell itself. Terms never shrink when the difference grows, so the term at b, rounded down to
// a multiple of a step, is a lower bound for the whole cell, and the row's sum of such bounds over a node's cells is a
// lower bound of the sum with that node. Entries are small enough for `terms` of them to be added in a byte: four, each at
// most 63, or two, each at most 127.
//
// Groups of attributes, whose sum is one of roots of means, are bounded by a sum over attributes as well: as the root is
// concave, sqrt(mean of t over a group) >= sum of sqrt(t) / size. So the entry is the root, over the size of its group.
//
// Why the bound holds to the last bit. With t = fl(x - b), the exact term of any y beyond b starts from
// fl(x - y), which lies no nearer to 0 than t, because rounding keeps order; so do the products with r and with itself.
// What is left are the errors of the exact kernel (below 2^-39) and of the polynomial here (see rough_power: 5.5e-5),
// and SLACK is taken off the term for both.
//
// A table costs 15 evaluations an attribute, in float32 by the eighth power of a cubic, as in the rough sums: their
// precision is a hundred times that of a byte. With the row's sixteen bits at hand (fine.hpp) it takes a third of that:
// all boundaries are one register. There, too, every boundary between the row and a node lies between their codes, or equals
// one; so the term of the codes' difference, less its error, is a lower bound by the same proof as the closer look's.
// Attributes so wide that sixteen bits are coarse keep float32. The error is larger than SLACK, so a few more nodes pass.
// With all else that came with it (windows, medians, cells from codes), interleaved with the version before on a busy machine,
// CPU time a row: learning Scene 32.4 microseconds instead of 39.5, Yeast 16.4 (18.1); predicting Yeast 15.1 (17.1), Scene
// 27.1 (27.7). What of it is the tables' alone was not measured.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "cells.hpp"
#include "codes.hpp"
#include "fine.hpp"
#include "fine_cells.hpp"
#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t TABLE = 16;
// More than all errors of a rough term: 5.5e-5 + 2^-39 and a few roundings of float32.
inline constexpr float SLACK = 6.2e-5f;

constexpr int largest_entry(int terms) { return 255 / terms; }
// How many entries the largest term is worth: so many, and a little less than one more.
constexpr double entries_a_term(int terms) { return largest_entry(terms) + 0.99; }

// The least number of units that an entry of 1 stands for, where no term is above `largest_term` (1 under correntropy).
inline std::int64_t entry_step(int terms, double largest_term = 1.0) {
    return static_cast<std::int64_t>(largest_term * (PER_UNIT / entries_a_term(terms)) * (1.0 - 0x1p-40));
}

// About 2^-w for 0 <= w <= 14, to 5.1e-5 and 52 roundings of float32: min over cubics p of max |p(w / 8)^8 - 2^-w|.
inline float rough_power(float w) {
    const float v = 0.125f * w;
    float p = ((-0.04327093f * v + 0.23561754f) * v - 0.69267252f) * v + 0.99999385f;
    p *= p;
    p *= p;
    return p * p;
}

#if defined(__AVX2__)
inline __m256 rough_powers(__m256 w) {
    const __m256 v = _mm256_mul_ps(w, _mm256_set1_ps(0.125f));
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(-0.04327093f), v, _mm256_set1_ps(0.23561754f));
    p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(-0.69267252f));
    p = _mm256_fmadd_ps(p, v, _mm256_set1_ps(0.99999385f));
    p = _mm256_mul_ps(p, p);
    p = _mm256_mul_ps(p, p);
    return _mm256_mul_ps(p, p);
}
#endif

// For each cell that the row may be in, the boundary nearer to each cell; none (which looks up 0) for the row's own.
inline constexpr auto NEARER = [] {
    struct {
        std::uint8_t of[TABLE][TABLE];
        constexpr const std::uint8_t* operator[](int cell) const { return of[cell]; }
    } all{};
    for (int cell = 0; cell < TABLE; ++cell) {
        for (int k = 0; k < TABLE; ++k) all.of[cell][k] = static_cast<std::uint8_t>(k < cell ? k : k > cell ? k - 1 : 0x80);
    }
    return all;
}();

// The cell of a rank, where cell k ends at rank (2 k + 3) `step`.
inline std::uint8_t rank_cell(std::int32_t rank, std::int32_t step) {
    const std::int32_t cell = (rank - step) >> std::bit_width(static_cast<std::uint32_t>(step));
    return static_cast<std::uint8_t>(std::min(std::max(cell, 0), static_cast<std::int32_t>(TABLE) - 1));
}

// The tables of one row: 16 bytes an attribute, filled up with zeros to a multiple of four attributes.
class Tables {
public:
    explicit Tables(std::int64_t n_attributes)
        : n_attributes_(n_attributes),
          bytes_(static_cast<std::size_t>(rounded_up(n_attributes, FOURS) * TABLE), std::uint8_t{0}) {}

    std::int64_t n_attributes() const noexcept { return n_attributes_; }
    // How many entries can be added in a byte.
    int terms() const noexcept { return terms_; }
    // What an entry of 1 stands for at least, in units of the row's sums.
    std::int64_t step() const noexcept { return step_; }
    const std::uint8_t* data() const noexcept { return bytes_.data(); }

    // Under one bandwidth for all attributes.
    void fill_common(const double* x, double r, const Cells& cells) noexcept {
        begin(4, 1.0);
        const auto entries = static_cast<float>(entries_a_term(4));
        for (std::int64_t i = 0; i < n_attributes_; ++i) correntropy_table<false>(x[i], r, entries, cells.boundaries(i), table(i));
    }

    // With attributes in groups; `group(attribute)` has the r and the size of the attribute's group. Roots are steep where
    // terms are small, so entries are finer: 10 % of Yeast's nodes pass, with four in a byte 12 %.
    template <class Group>
    void fill_grouped(const double* x, const Group& group, const Cells& cells) noexcept {
        begin(2, 1.0);
        for (std::int64_t i = 0; i < n_attributes_; ++i) {
            const auto group_here = group(i);
            const auto entries = static_cast<float>(entries_a_term(2) / static_cast<double>(group_here.size) * (1.0 - 1e-6));
            correntropy_table<true>(x[i], group_here.r, entries, cells.boundaries(i), table(i));
        }
    }

    // Under the learned similarity, whose cells are of equal width in ranks: cell k ends at rank (2 k + 3) `step`. `ranks` are
    // the row's, `shares(attribute)` its weight out of `largest_share`, r turns ranks into exponents.
    void fill_ranked(const std::int32_t* ranks, const float* shares, float largest_share, float r, std::int32_t step, double largest_term) noexcept {
        begin(4, largest_term);
        const auto entries = static_cast<float>(entries_a_term(4) * (1.0 - 1e-6)) / largest_share;
        for (std::int64_t i = 0; i < n_attributes_; ++i) ranked_table(ranks[i], shares[i] * entries, r, step, table(i));
    }

    // The same with the row's sixteen bits at hand, filled under the same bandwidth or groups.
    void fill_common(const double* x, double r, const FineRow& row, const Cells& cells, const FineCells& fine, const FineWidths& widths) noexcept {
#if defined(__AVX2__)
        struct Group {
            double r;
            std::int64_t size = 1;
        };
        fill_finely<false>(x, [r](std::int64_t) { return Group{r}; }, row, cells, fine, widths);
#else
        (void)row, (void)fine, (void)widths;
        fill_common(x, r, cells);
#endif
    }
    template <class Group>
    void fill_grouped(const double* x, const Group& group, const FineRow& row, const Cells& cells, const FineCells& fine, const FineWidths& widths) noexcept {
#if defined(__AVX2__)
        fill_finely<true>(x, group, row, cells, fine, widths);
#else
        (void)row, (void)fine, (void)widths;
        fill_grouped(x, group, cells);
#endif
    }

    // Under any sum over attributes whose terms never shrink when a value moves away from the row's.
    // `term(attribute, boundary)`: the term of the row with a node that has the boundary's value, at most `largest_term`;
    // it may be wrong by SLACK times the largest.
    template <class Term>
    void fill(const double* x, const Cells& cells, double largest_term, const Term& term) noexcept {
        begin(4, largest_term);
        for (std::int64_t i = 0; i < n_attributes_; ++i) {
            const double* boundaries = cells.boundaries(i);
            std::uint8_t entries[TABLE] = {};
            for (std::int64_t k = 0; k < N_BOUNDARIES; ++k) {
                const double scaled = entries_a_term(4) * (term(i, boundaries[k]) / largest_term - static_cast<double>(SLACK));
                entries[k] = static_cast<std::uint8_t>(std::clamp(scaled, 0.0, static_cast<double>(largest_entry(4))));
            }
            lay_out(entries, cells.cell(i, x[i]), table(i));
        }
    }

private:
    void begin(int terms, double largest_term) noexcept {
        terms_ = terms;
        step_ = entry_step(terms, largest_term);
    }

    std::uint8_t* table(std::int64_t attribute) noexcept { return bytes_.data() + attribute * TABLE; }

    static void lay_out(const std::uint8_t* entries, int cell, std::uint8_t* table) noexcept {
        for (int k = 0; k < TABLE; ++k) table[k] = k == cell ? 0 : entries[NEARER[cell][k]];
    }

#if defined(__AVX2__)
    static void ranked_table(std::int32_t rank, float entries, float r, std::int32_t step, std::uint8_t* table) noexcept {
        const auto width = static_cast<float>(2 * step);
        const __m256 first = _mm256_set_ps(7.0f, 6.0f, 5.0f, 4.0f, 3.0f, 2.0f, 1.0f, 0.0f);
        const __m256 from = _mm256_set1_ps(static_cast<float>(rank) - 1.5f * width);  // the first boundary
        const auto scaled = [&](float begin) {
            const __m256 t = _mm256_fnmadd_ps(_mm256_add_ps(first, _mm256_set1_ps(begin)), _mm256_set1_ps(width), from);
            const __m256 z = _mm256_mul_ps(t, _mm256_set1_ps(r));
            const __m256 powers = rough_powers(_mm256_min_ps(_mm256_mul_ps(z, z), _mm256_set1_ps(14.0f)));
            const __m256 least = _mm256_max_ps(_mm256_sub_ps(_mm256_set1_ps(1.0f - SLACK), powers), _mm256_setzero_ps());
            return _mm256_cvttps_epi32(_mm256_mul_ps(least, _mm256_set1_ps(entries)));
        };
        // The lanes come out as 0-3, 8-11, 4-7, 12-15.
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(scaled(0.0f), scaled(8.0f)), 0xd8);
        const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        const __m128i which = _mm_loadu_si128(reinterpret_cast<const __m128i*>(NEARER[rank_cell(rank, step)]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(table), _mm_shuffle_epi8(bytes, which));
    }

    // Widths in z beyond which sixteen bits are coarse beside a byte: an attribute 64 bandwidths wide, or so.
    static constexpr double COARSE = 0x1p-9;

    template <bool ROOTED, class Group>
    void fill_finely(const double* x, const Group& group, const FineRow& row, const Cells& cells, const FineCells& fine, const FineWidths& widths) noexcept {
        switch (row.doublings()) {
            case 0: return fill_finely<ROOTED, 0>(x, group, row, cells, fine, widths);
            case 1: return fill_finely<ROOTED, 1>(x, group, row, cells, fine, widths);
            case 2: return fill_finely<ROOTED, 2>(x, group, row, cells, fine, widths);
            case 3: return fill_finely<ROOTED, 3>(x, group, row, cells, fine, widths);
            default: return fill_finely<ROOTED, MOST_DOUBLINGS>(x, group, row, cells, fine, widths);
        }
    }

    // A term of 1 is 2^6 (groups: 2^7) entries here, and the entry one of it at the most, less the error.
    template <bool ROOTED, int DOUBLINGS, class Group>
    [[gnu::noinline]] void fill_finely(const double* x, const Group& group, const FineRow& row, const Cells& cells, const FineCells& fine, const FineWidths& widths) noexcept {
        constexpr int TERMS = ROOTED ? 2 : 4;
        terms_ = TERMS;
        step_ = (std::int64_t{1} << 40) / (256 / TERMS);
        const auto error = static_cast<int>(std::ceil(row.term_error(COARSE) * 0x1p15));
        const __m256i most = _mm256_set1_epi16(static_cast<short>(std::max(0, 32767 - error)));
        for (std::int64_t i = 0; i < n_attributes_; ++i) {
            const __m256i boundaries = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(fine.boundaries(i)));
            const __m256i code = _mm256_set1_epi16(row.code(i));
            const __m256i p = fine_powers<Words16, DOUBLINGS, ROOTED>(_mm256_sub_epi16(code, boundaries), _mm256_set1_epi16(row.factor(i)));
            const __m256i term = _mm256_max_epi16(_mm256_sub_epi16(most, p), _mm256_setzero_si256());
            __m256i words;
            if constexpr (ROOTED) {
                const auto shares = static_cast<short>(static_cast<std::int32_t>(0x1p15 / static_cast<double>(group(i).size)) - 1);
                words = _mm256_srli_epi16(_mm256_mulhi_epu16(_mm256_slli_epi16(term, 1), _mm256_set1_epi16(shares)), 8);
            } else {
                words = _mm256_srli_epi16(term, 9);
            }
            const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
            const int cell = FineCells::first_above(_mm256_cmpgt_epi16(boundaries, code));
            const __m128i which = _mm_loadu_si128(reinterpret_cast<const __m128i*>(NEARER[cell]));
            _mm_storeu_si128(reinterpret_cast<__m128i*>(table(i)), _mm_shuffle_epi8(bytes, which));
        }
        if (row.widest() <= COARSE) return;
        for (std::int64_t i = 0; i < n_attributes_; ++i) {
            const auto group_here = group(i);
            if (widths.width(i) * group_here.r <= COARSE) continue;
            const auto entries = static_cast<float>(entries_a_term(TERMS) / static_cast<double>(group_here.size) * (1.0 - 1e-6));
            correntropy_table<ROOTED>(x[i], group_here.r, entries, cells.boundaries(i), table(i));
        }
    }

    template <bool ROOTED>
    static void correntropy_table(double x, double r, float entries, const double* boundaries, std::uint8_t* table) noexcept {
        const __m256d value = _mm256_set1_pd(x), factor = _mm256_set1_pd(r), farthest = _mm256_set1_pd(14.0);
        __m128 quarters[4];
        int above = 1 << N_BOUNDARIES;
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
            const __m256d t = _mm256_sub_pd(value, _mm256_loadu_pd(boundaries + 4 * k));
            const __m256d z = _mm256_mul_pd(t, factor);
            quarters[k] = _mm256_cvtpd_ps(_mm256_min_pd(_mm256_mul_pd(z, z), farthest));
            above |= _mm256_movemask_pd(t) << (4 * k);
        }
        const int cell = std::countr_zero(static_cast<unsigned>(above));
        const auto scaled = [&](__m256 w) {
            const __m256 term = _mm256_sub_ps(_mm256_set1_ps(1.0f - SLACK), rough_powers(w));
            const __m256 least = _mm256_max_ps(term, _mm256_setzero_ps());
            return _mm256_cvttps_epi32(_mm256_mul_ps(ROOTED ? _mm256_sqrt_ps(least) : least, _mm256_set1_ps(entries)));
        };
        const __m256i low = scaled(_mm256_set_m128(quarters[1], quarters[0]));
        const __m256i high = scaled(_mm256_set_m128(quarters[3], quarters[2]));
        // The lanes come out as 0-3, 8-11, 4-7, 12-15.
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
        const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        const __m128i which = _mm_loadu_si128(reinterpret_cast<const __m128i*>(NEARER[cell]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(table), _mm_shuffle_epi8(bytes, which));
    }
#else
    static void ranked_table(std::int32_t rank, float entries, float r, std::int32_t step, std::uint8_t* table) noexcept {
        const auto width = static_cast<float>(2 * step);
        const float from = static_cast<float>(rank) - 1.5f * width;
        std::uint8_t bytes[TABLE];
        for (int k = 0; k < TABLE; ++k) {
            const float z = (from - static_cast<float>(k) * width) * r, w = z * z;
            const float term = 1.0f - SLACK - rough_power(w < 14.0f ? w : 14.0f);
            bytes[k] = static_cast<std::uint8_t>((term > 0.0f ? term : 0.0f) * entries);
        }
        lay_out(bytes, rank_cell(rank, step), table);
    }

    template <bool ROOTED>
    static void correntropy_table(double x, double r, float entries, const double* boundaries, std::uint8_t* table) noexcept {
        std::uint8_t bytes[TABLE];
        int cell = 0;
        for (std::int64_t k = 0; k < TABLE; ++k) {
            const double z = (x - boundaries[k]) * r;
            const double w = z * z;
            float term = 1.0f - SLACK - rough_power(static_cast<float>(w < 14.0 ? w : 14.0));
            term = term > 0.0f ? term : 0.0f;
            bytes[k] = static_cast<std::uint8_t>((ROOTED ? std::sqrt(term) : term) * entries);
            cell += k < N_BOUNDARIES && boundaries[k] <= x;
        }
        lay_out(bytes, cell, table);
    }
#endif

    std::int64_t n_attributes_;
    int terms_ = 4;
    std::int64_t step_ = entry_step(4);
    Array<std::uint8_t> bytes_;
};

}  // namespace mlca::MLCA_LEVEL
