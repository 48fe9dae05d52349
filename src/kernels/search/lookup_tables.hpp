// Lookup tables of one row: for each feature and cell, a one-byte lower bound on the term that the feature adds to the
// sum with any node in that cell.
//
// If the row's value x is outside a cell, every value in the cell differs from x at least as much as b does, the cell's
// boundary that is nearer to x. If x is in the cell, values may be equal to x. Terms never decrease when the difference
// grows, so the term at b (or 0), rounded down to a multiple of a step, is a lower bound for the whole cell, and the
// sum of these bounds over a node's cells is a lower bound on the sum with that node. Entries are small enough for
// `terms` of them to be added in a byte: four of at most 63, or two of at most 127.
//
// If features are in groups, the sum is a sum of roots of means, which has a lower bound that is a sum over features:
// because the root is concave, sqrt(mean of t over a group) >= sum of sqrt(t) / size. So an entry is then the root of
// the term, divided by the size of the feature's group.
//
// Why the bound holds exactly. Let fl denote rounding, and t = fl(x - b). The exact term of any y beyond b is computed
// from fl(x - y), which is at least as far from 0 as t because rounding is monotonic. The same holds after multiplying
// by r and after squaring. SLACK is subtracted from the term to cover the remaining errors: of the exact kernel (below
// 2^-39), and of the polynomial used here (5.5e-5, see rough_power).
//
// A table needs 15 kernel evaluations per feature. They use the eighth power of a cubic in float32, which is a hundred
// times as precise as a byte. Loops are split so that the compiler vectorises each of them; hand-written vector code is
// not faster.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "search/codes4.hpp"
#include "base/fixed_point.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"

#if defined(__SSSE3__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t TABLE = 16;
// Exceeds the total error of an approximate term: 5.5e-5, 2^-39 and a few roundings in float32.
inline constexpr float SLACK = 6.2e-5f;

constexpr int largest_entry(int terms) { return 255 / terms; }
// The largest term, in entry steps: almost one more than the largest entry, because terms are rounded down.
constexpr double entries_per_term(int terms) { return largest_entry(terms) + 0.99; }

// The number of units per entry step, rounded down. No term exceeds `largest_term` (1 under correntropy).
inline std::int64_t entry_step(int terms, double largest_term = 1.0) {
    return static_cast<std::int64_t>(largest_term * (PER_UNIT / entries_per_term(terms)) * (1.0 - 0x1p-40));
}

// Approximates 2^-w for 0 <= w <= 14 by p(w / 8)^8, where the cubic p minimises the largest error. The error is at most
// 5.1e-5 plus 52 roundings of float32.
inline float rough_power(float w) {
    const float v = 0.125f * w;
    float p = ((-0.04327093f * v + 0.23561754f) * v - 0.69267252f) * v + 0.99999385f;
    p *= p;
    p *= p;
    return p * p;
}

// NEARER[a][b]: the index of the boundary of cell b (the node's) that is nearer to cell a (the row's). If the cells are
// equal, the index makes the byte shuffle return 0.
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

// The cell of a rank; cell k ends at rank (2 k + 3) * step.
inline std::uint8_t rank_cell(std::int32_t rank, std::int32_t step) {
    const std::int32_t cell = (rank - step) >> std::bit_width(static_cast<std::uint32_t>(step));
    return static_cast<std::uint8_t>(std::min(std::max(cell, 0), static_cast<std::int32_t>(TABLE) - 1));
}

// The tables of one row: 16 bytes per feature, padded with zeros to a multiple of four features.
class LookupTables {
public:
    explicit LookupTables(std::int64_t n_features)
        : n_features_(n_features),
          bytes_(rounded_up(n_features, FOURS) * TABLE, std::uint8_t{0}) {}

    std::int64_t n_features() const noexcept { return n_features_; }
    // Number of entries that can be added without overflowing a byte.
    int terms() const noexcept { return terms_; }
    // Number of units (of the row's sums) per entry step.
    std::int64_t step() const noexcept { return step_; }
    const std::uint8_t* data() const noexcept { return bytes_.data(); }

    // Fill the tables if all features share one bandwidth.
    void fill_common(const double* x, double r, const Cells& cells) noexcept {
        begin(4, 1.0);
        const auto entries = static_cast<float>(entries_per_term(4));
        for (std::int64_t i = 0; i < n_features_; ++i) correntropy_table<false>(x[i], r, entries, cells.boundaries(i), table(i));
    }

    // Fill the tables if features are in groups; group(feature) returns the factor r and the size of the feature's
    // group. The root is steep where terms are small, so entries are finer, and only two fit into a byte: 10 % of
    // Yeast's nodes pass the bounds, instead of 12 % with four entries per byte.
    template <class Group>
    void fill_grouped(const double* x, const Group& group, const Cells& cells) noexcept {
        begin(2, 1.0);
        for (std::int64_t i = 0; i < n_features_; ++i) {
            const auto group_here = group(i);
            const auto entries = static_cast<float>(entries_per_term(2) / static_cast<double>(group_here.size) * (1.0 - 1e-6));
            correntropy_table<true>(x[i], group_here.r, entries, cells.boundaries(i), table(i));
        }
    }

    // Fill the tables under the learned similarity, whose cells have equal width in ranks: cell k ends at rank (2 k +
    // 3) * step. `ranks` are the row's ranks, `shares` are the features' shares of the total weight, of which
    // `largest_share` is the largest, and the kernel of a rank difference is 2^-(difference * r)^2.
    void fill_ranked(const std::int32_t* ranks, const float* shares, float largest_share, float r, std::int32_t step, double largest_term) noexcept {
        begin(4, largest_term);
        const auto entries = static_cast<float>(entries_per_term(4) * (1.0 - 1e-6)) / largest_share;
        for (std::int64_t i = 0; i < n_features_; ++i) ranked_table(ranks[i], shares[i] * entries, r, step, table(i));
    }

private:
    void begin(int terms, double largest_term) noexcept {
        terms_ = terms;
        step_ = entry_step(terms, largest_term);
    }

    std::uint8_t* table(std::int64_t feature) noexcept { return bytes_.data() + feature * TABLE; }

    // Write a table, given the entry at each boundary and the row's own cell.
    static void lay_out(const std::int32_t* entries, std::int64_t cell, std::uint8_t* table) noexcept {
        std::uint8_t bytes[TABLE];
        for (int k = 0; k < TABLE; ++k) bytes[k] = static_cast<std::uint8_t>(entries[k]);
        const std::uint8_t* nearer = NEARER[static_cast<int>(cell)];
#if defined(__SSSE3__)
        const auto load = [](const std::uint8_t* some) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(some)); };
        _mm_storeu_si128(reinterpret_cast<__m128i*>(table), _mm_shuffle_epi8(load(bytes), load(nearer)));
#else
        for (int k = 0; k < TABLE; ++k) table[k] = k == cell ? 0 : bytes[nearer[k]];
#endif
    }

    static void ranked_table(std::int32_t rank, float entries, float r, std::int32_t step, std::uint8_t* table) noexcept {
        const auto width = static_cast<float>(2 * step);
        const float from = static_cast<float>(rank) - 1.5f * width;  // the first boundary
        std::int32_t rounded_down[TABLE];
        for (int k = 0; k < TABLE; ++k) {
            const float z = (from - static_cast<float>(k) * width) * r, w = z * z;
            const float term = 1.0f - SLACK - rough_power(w < 14.0f ? w : 14.0f);
            rounded_down[k] = static_cast<std::int32_t>((term > 0.0f ? term : 0.0f) * entries);
        }
        lay_out(rounded_down, rank_cell(rank, step), table);
    }

    template <bool ROOTED>
    static void correntropy_table(double x, double r, float entries, const double* __restrict boundaries, std::uint8_t* table) noexcept {
        float w[TABLE];
        for (int k = 0; k < TABLE; ++k) {
            const double z = (x - boundaries[k]) * r, square = z * z;
            w[k] = static_cast<float>(square < 14.0 ? square : 14.0);
        }
        std::int64_t cell = 0;
        for (int k = 0; k < N_BOUNDARIES; ++k) cell += boundaries[k] <= x;
        std::int32_t rounded_down[TABLE];
        for (int k = 0; k < TABLE; ++k) {
            float term = 1.0f - SLACK - rough_power(w[k]);
            term = term > 0.0f ? term : 0.0f;
            rounded_down[k] = static_cast<std::int32_t>((ROOTED ? std::sqrt(term) : term) * entries);
        }
        lay_out(rounded_down, cell, table);
    }

    std::int64_t n_features_;
    int terms_ = 4;
    std::int64_t step_ = entry_step(4);
    Array<std::uint8_t> bytes_;
};

}  // namespace mlca::MLCA_LEVEL
