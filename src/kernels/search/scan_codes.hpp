// Lower bounds on the sums of a few rows with the 64 nodes of a block, computed by lookups in registers.
//
// A byte shuffle looks up one of 16 table entries for every byte of a register: 32 nodes per instruction with AVX2, for
// one feature. Entries are at most 63 (or 127), so four (two) features are added in bytes, and their sums in sixteen
// bits. These cannot overflow with up to 1,040 (516) features; longer rows are processed in parts whose sums are
// shifted. All arithmetic is on integers, and every variant gives the same results.
//
// Four features per byte are faster than two with entries up to 127, although the coarser entries let a tenth more
// nodes pass.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "search/codes4.hpp"
#include "base/level.hpp"
#include "search/lookup_tables.hpp"

#if defined(__AVX2__) || defined(__SSSE3__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace mlca::MLCA_LEVEL {

// Number of features per part, whose entries are added in sixteen bits.
constexpr std::int64_t scan_part_length(int terms) { return 256 * terms; }

// Number of bits by which the sums of a part are shifted, so that all parts together stay below 2^16.
inline int scan_shift(std::int64_t n_features, int terms) {
    const auto largest = static_cast<std::uint64_t>(n_features * largest_entry(terms));
    return std::max(0, static_cast<int>(std::bit_width(largest)) - 16);
}

// Register operations for each type of processor: `Bytes` are the cells or entries of the nodes in a register,
// `FEATURES` is the number of features side by side in a register, and `SIDES` the number of registers for the 32 bytes
// of a feature. `Sums` are sixteen-bit sums of all nodes whose cells are in one register.
#if defined(__AVX2__)

// Write 32 sums in node order, given 16 sums of even nodes and 16 sums of odd nodes.
inline void write_sums(__m256i even, __m256i odd, int shift, bool more, std::uint16_t* sums) {
    const __m256i a = _mm256_unpacklo_epi16(even, odd), b = _mm256_unpackhi_epi16(even, odd);
    const __m256i result[2] = {_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)};
    for (int half = 0; half < 2; ++half) {
        auto* place = reinterpret_cast<__m256i*>(sums + 16 * half);
        __m256i sum = _mm256_srl_epi16(result[half], _mm_cvtsi32_si128(shift));
        if (more) sum = _mm256_add_epi16(sum, _mm256_loadu_si256(place));
        _mm256_storeu_si256(place, sum);
    }
}

struct Register256 {
    using Bytes = __m256i;
    static constexpr int FEATURES = 1, SIDES = 1, WIDTH = 32;

    static Bytes load(const std::uint8_t* codes) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)); }
    static Bytes low(Bytes codes) { return _mm256_and_si256(codes, _mm256_set1_epi8(15)); }
    static Bytes high(Bytes codes) { return low(_mm256_srli_epi16(codes, 4)); }
    static Bytes table(const std::uint8_t* entries) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries)));
    }
    static Bytes look_up(Bytes table, Bytes cells) { return _mm256_shuffle_epi8(table, cells); }
    static Bytes add(Bytes a, Bytes b) { return _mm256_add_epi8(a, b); }

    struct Sums {
        // `pairs` holds the sums of even entries plus 256 times the odd entries, `odd` the sums of odd entries alone.
        // Subtracting 256 times `odd` at the end takes one operation less than separating the entries first.
        __m256i pairs = _mm256_setzero_si256(), odd = _mm256_setzero_si256();

        void add(Bytes entries) {
            pairs = _mm256_add_epi16(pairs, entries);
            odd = _mm256_add_epi16(odd, _mm256_srli_epi16(entries, 8));
        }
        void write(int shift, bool more, std::uint16_t* sums) const {
            write_sums(_mm256_sub_epi16(pairs, _mm256_slli_epi16(odd, 8)), odd, shift, more, sums);
        }
    };
};

#endif

#if defined(__AVX512BW__)

struct Register512 {
    using Bytes = __m512i;
    static constexpr int FEATURES = 2, SIDES = 1;

    static Bytes load(const std::uint8_t* codes) { return _mm512_loadu_si512(codes); }
    static Bytes low(Bytes codes) { return _mm512_and_si512(codes, _mm512_set1_epi8(15)); }
    static Bytes high(Bytes codes) { return low(_mm512_srli_epi16(codes, 4)); }
    static Bytes table(const std::uint8_t* entries) {
        const __m512i two = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(entries)));
        return _mm512_maskz_shuffle_i64x2(0xff, two, two, 0x50);
    }
    static Bytes look_up(Bytes table, Bytes cells) { return _mm512_shuffle_epi8(table, cells); }
    static Bytes add(Bytes a, Bytes b) { return _mm512_add_epi8(a, b); }

    struct Sums {
        __m512i pairs = _mm512_setzero_si512(), odd = _mm512_setzero_si512();

        void add(Bytes entries) {
            pairs = _mm512_add_epi16(pairs, entries);
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16(entries, 8));
        }
        void write(int shift, bool more, std::uint16_t* sums) const {
            const __m256i all = halves(pairs), odds = halves(odd);
            write_sums(_mm256_sub_epi16(all, _mm256_slli_epi16(odds, 8)), odds, shift, more, sums);
        }

    private:
        // The sums over both features of a register. (Full masks are used, because GCC 12 reports uninitialised values
        // in the unmasked forms.)
        static __m256i halves(__m512i both) {
            return _mm256_add_epi16(_mm512_maskz_extracti64x4_epi64(0xff, both, 0), _mm512_maskz_extracti64x4_epi64(0xff, both, 1));
        }
    };
};

using Register = Register512;

#elif defined(__AVX2__)

using Register = Register256;

#elif defined(__SSSE3__)

struct Register {
    using Bytes = __m128i;
    static constexpr int FEATURES = 1, SIDES = 2, WIDTH = 16;

    static Bytes load(const std::uint8_t* codes) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)); }
    static Bytes low(Bytes codes) { return _mm_and_si128(codes, _mm_set1_epi8(15)); }
    static Bytes high(Bytes codes) { return low(_mm_srli_epi16(codes, 4)); }
    static Bytes table(const std::uint8_t* entries) { return load(entries); }
    static Bytes look_up(Bytes table, Bytes cells) { return _mm_shuffle_epi8(table, cells); }
    static Bytes add(Bytes a, Bytes b) { return _mm_add_epi8(a, b); }

    struct Sums {
        __m128i pairs = _mm_setzero_si128(), odd = _mm_setzero_si128();

        void add(Bytes entries) {
            pairs = _mm_add_epi16(pairs, entries);
            odd = _mm_add_epi16(odd, _mm_srli_epi16(entries, 8));
        }
        void write(int shift, bool more, std::uint16_t* sums) const {
            const __m128i even = _mm_sub_epi16(pairs, _mm_slli_epi16(odd, 8));
            const __m128i result[2] = {_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd)};
            for (int half = 0; half < 2; ++half) {
                auto* place = reinterpret_cast<__m128i*>(sums + 8 * half);
                __m128i sum = _mm_srl_epi16(result[half], _mm_cvtsi32_si128(shift));
                if (more) sum = _mm_add_epi16(sum, _mm_loadu_si128(place));
                _mm_storeu_si128(place, sum);
            }
        }
    };
};

#elif defined(__ARM_NEON) && defined(__aarch64__)

struct Register {
    using Bytes = uint8x16_t;
    static constexpr int FEATURES = 1, SIDES = 2, WIDTH = 16;

    static Bytes load(const std::uint8_t* codes) { return vld1q_u8(codes); }
    static Bytes low(Bytes codes) { return vandq_u8(codes, vdupq_n_u8(15)); }
    static Bytes high(Bytes codes) { return vshrq_n_u8(codes, 4); }
    static Bytes table(const std::uint8_t* entries) { return vld1q_u8(entries); }
    static Bytes look_up(Bytes table, Bytes cells) { return vqtbl1q_u8(table, cells); }
    static Bytes add(Bytes a, Bytes b) { return vaddq_u8(a, b); }

    struct Sums {
        uint16x8_t halves[2] = {vdupq_n_u16(0), vdupq_n_u16(0)};

        void add(Bytes entries) {
            halves[0] = vaddw_u8(halves[0], vget_low_u8(entries));
            halves[1] = vaddw_high_u8(halves[1], entries);
        }
        void write(int shift, bool more, std::uint16_t* sums) const {
            for (int half = 0; half < 2; ++half) {
                uint16x8_t sum = vshlq_u16(halves[half], vdupq_n_s16(static_cast<std::int16_t>(-shift)));
                if (more) sum = vaddq_u16(sum, vld1q_u16(sums + 8 * half));
                vst1q_u16(sums + 8 * half, sum);
            }
        }
    };
};

#else

// Without byte shuffles, entries are looked up one by one, which takes about as long as float32 arithmetic.
struct Register {
    static constexpr int FEATURES = 1, SIDES = 2, WIDTH = 16;
    using Bytes = std::array<std::uint8_t, WIDTH>;

    template <class F>
    static Bytes each(F f) {
        Bytes result;
        for (std::size_t j = 0; j < WIDTH; ++j) result[j] = static_cast<std::uint8_t>(f(j));
        return result;
    }
    static Bytes load(const std::uint8_t* codes) { return each([&](std::size_t j) { return codes[j]; }); }
    static Bytes low(const Bytes& codes) { return each([&](std::size_t j) { return codes[j] & 15; }); }
    static Bytes high(const Bytes& codes) { return each([&](std::size_t j) { return codes[j] >> 4; }); }
    static Bytes table(const std::uint8_t* entries) { return load(entries); }
    static Bytes look_up(const Bytes& table, const Bytes& cells) { return each([&](std::size_t j) { return table[cells[j]]; }); }
    static Bytes add(const Bytes& a, const Bytes& b) { return each([&](std::size_t j) { return a[j] + b[j]; }); }

    struct Sums {
        std::array<std::uint16_t, WIDTH> of_nodes{};

        void add(const Bytes& entries) {
            for (std::size_t j = 0; j < WIDTH; ++j) of_nodes[j] = static_cast<std::uint16_t>(of_nodes[j] + entries[j]);
        }
        void write(int shift, bool more, std::uint16_t* sums) const {
            for (std::size_t j = 0; j < WIDTH; ++j) sums[j] = static_cast<std::uint16_t>((of_nodes[j] >> shift) + (more ? sums[j] : 0));
        }
    };
};

#endif

// The widest register that holds a single feature.
#if defined(__AVX2__)
using OneFeature = Register256;
#else
using OneFeature = Register;
#endif

// Compute the sums over one part of the features.
template <int ROWS, int TERMS>
inline void scan_part(const std::uint8_t* codes, const std::uint8_t* const* tables, std::int64_t n_features, int shift, bool more,
                      std::uint16_t* const* sums) {
    using Bytes = Register::Bytes;
    for (int side = 0; side < Register::SIDES; ++side) {
        Register::Sums first[ROWS], second[ROWS];  // for nodes in the low four bits; in the high four bits
        for (std::int64_t i = 0; i < n_features; i += TERMS) {
            Bytes low[ROWS], high[ROWS];
#pragma GCC unroll 4
            for (int step = 0; step < TERMS; step += Register::FEATURES) {
                const Bytes both = Register::load(codes + (i + step) * BLOCK_BYTES + 16 * side);
                const Bytes low_cells = Register::low(both), high_cells = Register::high(both);
#pragma GCC unroll 8
                for (int q = 0; q < ROWS; ++q) {
                    const Bytes table = Register::table(tables[q] + (i + step) * TABLE);
                    const Bytes a = Register::look_up(table, low_cells), b = Register::look_up(table, high_cells);
                    low[q] = step == 0 ? a : Register::add(low[q], a);
                    high[q] = step == 0 ? b : Register::add(high[q], b);
                }
            }
#pragma GCC unroll 8
            for (int q = 0; q < ROWS; ++q) {
                first[q].add(low[q]);
                second[q].add(high[q]);
            }
        }
        for (int q = 0; q < ROWS; ++q) {
            first[q].write(shift, more, sums[q] + 16 * side);
            second[q].write(shift, more, sums[q] + BLOCK_BYTES + 16 * side);
        }
    }
}

// Whether the sums of all nodes of a block exceed `most`, for all rows.
template <int ROWS>
inline bool all_beyond(std::int64_t most, std::uint16_t* const* sums) {
    std::uint16_t least = UINT16_MAX;
    for (int q = 0; q < ROWS; ++q) {
        const std::uint16_t* __restrict of_row = sums[q];
        for (std::int64_t j = 0; j < BLOCK; ++j) least = of_row[j] < least ? of_row[j] : least;
    }
    return least > most;
}

// Write the bounds on the sums of ROWS rows with the nodes of one block, in entry steps, shifted by `scan_shift`. The
// block is abandoned once the features processed so far put all its bounds above `most`. So a search for the nodes
// within the vigilance reads only a few of the codes.
template <int ROWS, int TERMS>
inline void scan(const std::uint8_t* block, const std::uint8_t* const* tables, std::int64_t n_features, std::uint16_t* const* sums,
                 std::int64_t most = UINT16_MAX) {
    constexpr std::int64_t PART = scan_part_length(TERMS), FIRST_PART = 16;
    const int shift = scan_shift(n_features, TERMS);
    const bool may_end = most < UINT16_MAX;
    const std::uint8_t* rest[ROWS];
    std::copy_n(tables, ROWS, rest);
    for (std::int64_t first = 0, n; first < n_features; first += n) {
        n = std::min(may_end ? std::clamp(3 * first, FIRST_PART, PART) : PART, n_features - first);
        scan_part<ROWS, TERMS>(block + first * BLOCK_BYTES, rest, n, shift, first > 0, sums);
        if (may_end && all_beyond<ROWS>(most, sums)) return;
        for (int q = 0; q < ROWS; ++q) rest[q] += n * TABLE;
    }
}

}  // namespace mlca::MLCA_LEVEL
