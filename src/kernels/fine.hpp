// The nodes a third time, sixteen bits an attribute: a closer look at those whose four bits promise something.
//
// An attribute's line is divided evenly between two ends, y becomes Y = round((y - low) / width), cut off at 0 and 32767.
// The difference of two such numbers, scaled to z = (x - y) r in units of 2^-13, squared, and put through the eighth
// power of a cubic, all in sixteen bits, gives 2^-z^2 of 16 attributes at once: 7 billion terms a second on a core where exact
// ones come at 0.84 and float32 at 4.6, and from a fourth of the memory, which matters more: survivors lie far apart.
//
// Why the sum less its error is a lower bound. Rounding to Y moves each value by at most half a width, and cutting off
// brings no two values further apart: |X - Y| <= |x - y| / width + 1. Multiplying by M <= width r 2^(28 - s), shifting and
// doubling s times (cut off at 4, as 2^-16 is as good as 0) gives a z that is too large by at most width r + 2^(s - 14). As
// 1 - 2^-z^2 grows with z, nowhere faster than 0.72, the term is too large by at most 0.72 of that, plus what the
// arithmetic in sixteen bits can be wrong by: POWER_ERROR, found by trying all values of z (tests/kernels).
// If M had to be cut off as well, z is too small only. So it is a lower bound under all circumstances; in usual ones it
// is close to the exact sum from both sides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "codes.hpp"
#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t FINE_LANES = 16;
inline constexpr double FINEST = 32767.0;
// What fine_power may be too small by: 4.33e-4 at worst, of all z.
inline constexpr double POWER_ERROR = 4.4e-4;
// Doublings that are enough for attributes up to 64 / r wide.
inline constexpr int MOST_DOUBLINGS = 4;

// (a b + 2^14) >> 15, as vector instructions multiply.
inline std::int16_t scaled_product(int a, int b) { return static_cast<std::int16_t>((a * b + 0x4000) >> 15); }

// Coefficients of the cubic in u = z^2 / 16, halved: 2^-2u is about 2 (A + B u + C u^2 + D u^3).
inline constexpr std::int16_t FINE_A = 16384, FINE_B = -22697, FINE_C = 15441, FINE_D = -5672;

// About 2^15 2^-z^2 for z >= 0 in units of 2^-13.
inline std::int16_t fine_power(std::int16_t z) {
    const std::int16_t u = scaled_product(z, z);
    int p = scaled_product(FINE_D, u) + FINE_C;
    p = scaled_product(p, u) + FINE_B;
    p = scaled_product(p, u) + FINE_A;
    p = std::min(2 * p, 32767);
    p = scaled_product(p, p);
    p = scaled_product(p, p);
    return scaled_product(p, p);
}

// How each attribute's line is divided.
class FineWidths {
public:
    explicit FineWidths(std::int64_t n_attributes)
        : low_(static_cast<std::size_t>(n_attributes), 0.0), width_(static_cast<std::size_t>(n_attributes), 1.0) {}

    std::int64_t n_attributes() const noexcept { return static_cast<std::int64_t>(low_.size()); }
    double width(std::int64_t attribute) const noexcept { return width_[static_cast<std::size_t>(attribute)]; }

    // Place the ends anew, around the values of all nodes, but no farther out than a few times the range of some of
    // them; `weights(node)` are the attributes of a node.
    template <class Weights>
    void build(std::int64_t n_nodes, const Weights& weights) {
        const std::size_t d = low_.size();
        Array<double> least(d), most(d);
        const auto take_in = [&](std::int64_t node, Array<double>& low, Array<double>& high) {
            const double* row = weights(node);
            for (std::size_t i = 0; i < d; ++i) {
                low[i] = std::min(low[i], row[i]);
                high[i] = std::max(high[i], row[i]);
            }
        };
        std::copy_n(weights(0), d, least.begin());
        std::copy_n(weights(0), d, most.begin());
        const std::int64_t n = std::min(n_nodes, SAMPLE);
        for (std::int64_t k = 0; k < n; ++k) take_in(k * n_nodes / n, least, most);
        Array<double> low = least, high = most;
        for (std::int64_t k = 0; k < n_nodes; ++k) take_in(k, low, high);
        for (std::size_t i = 0; i < d; ++i) {
            const double range = 0.5 * most[i] - 0.5 * least[i];
            const double bottom = std::max(low[i] - 0.125 * range, least[i] - 4.0 * range);
            const double top = std::min(high[i] + 0.125 * range, most[i] + 4.0 * range);
            low_[i] = bottom;
            width_[i] = std::max(top / FINEST - bottom / FINEST, SMALLEST);
        }
    }

    void encode(const double* __restrict values, std::int16_t* __restrict code) const noexcept {
        const double *__restrict low = low_.data(), *__restrict width = width_.data();
        for (std::int64_t i = 0; i < n_attributes(); ++i) {
            double place = (values[i] - low[i]) / width[i];
            place = place > 0.0 ? place : 0.0;
            place = place < FINEST ? place : FINEST;
            code[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(place + 0.5));
        }
    }

private:
    static constexpr std::int64_t SAMPLE = 128;
    static constexpr double SMALLEST = 1e-300;

    Array<double> low_, width_;
};

// One row, ready to be compared with fine codes under a common bandwidth.
class FineRow {
public:
    explicit FineRow(std::int64_t n_attributes)
        : code_(static_cast<std::size_t>(rounded_up(n_attributes, FINE_LANES)), std::int16_t{0}),
          factors_(code_.size(), std::int16_t{0}) {}

    void fill_common(const double* x, double r, const FineWidths& widths) noexcept {
        widths.encode(x, code_.data());
        const std::int64_t d = widths.n_attributes();
        double widest = 0.0, total = 0.0;
        for (std::int64_t i = 0; i < d; ++i) {
            const double in_z = std::min(widths.width(i) * r, 1.0);
            widest = std::max(widest, in_z);
            total += in_z;
        }
        doublings_ = 0;
        while (doublings_ < MOST_DOUBLINGS && widest * 0x1p13 > static_cast<double>(1 << doublings_)) ++doublings_;
        const double scale = r * std::ldexp(1.0, 28 - doublings_);
        for (std::int64_t i = 0; i < d; ++i) {
            const double factor = widths.width(i) * scale;
            factors_[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(static_cast<std::int32_t>(factor < FINEST ? factor : FINEST));
        }
        const auto n = static_cast<double>(code_.size());
        const double error = n * (POWER_ERROR + 0x1p-38) + 0.72 * (1.0001 * total + n * std::ldexp(1.0, doublings_ - 14));
        most_ = static_cast<std::int64_t>((n - error) * PER_UNIT);
        error_ = static_cast<std::int64_t>(error * PER_UNIT);
    }

    // By how much the lower bound stays below the exact sum as a rule: errors of single terms cancel, what is left is
    // the allowance for them. A guess, not a promise.
    std::int64_t looseness() const noexcept { return error_ + error_ / 8; }

    // A lower bound of the sum with a node, in units.
    std::int64_t lower(const std::int16_t* node) const noexcept {
        switch (doublings_) {
            case 0: return lower_bound<0>(node);
            case 1: return lower_bound<1>(node);
            case 2: return lower_bound<2>(node);
            case 3: return lower_bound<3>(node);
            default: return lower_bound<MOST_DOUBLINGS>(node);
        }
    }

private:
    template <int DOUBLINGS>
    std::int64_t lower_bound(const std::int16_t* node) const noexcept {
        const std::int16_t *x = code_.data(), *factors = factors_.data();
        const auto n = static_cast<std::int64_t>(code_.size());
#if defined(__AVX2__)
        const __m256i a = _mm256_set1_epi16(FINE_A), b = _mm256_set1_epi16(FINE_B), c = _mm256_set1_epi16(FINE_C);
        const __m256i d = _mm256_set1_epi16(FINE_D), ones = _mm256_set1_epi16(1);
        __m256i totals = _mm256_setzero_si256();
        for (std::int64_t i = 0; i < n; i += FINE_LANES) {
            const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(node + i));
            const __m256i t = _mm256_abs_epi16(_mm256_sub_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(x + i)), y));
            __m256i z = _mm256_mulhrs_epi16(t, _mm256_load_si256(reinterpret_cast<const __m256i*>(factors + i)));
            for (int k = 0; k < DOUBLINGS; ++k) z = _mm256_adds_epi16(z, z);
            const __m256i u = _mm256_mulhrs_epi16(z, z);
            __m256i p = _mm256_add_epi16(_mm256_mulhrs_epi16(d, u), c);
            p = _mm256_add_epi16(_mm256_mulhrs_epi16(p, u), b);
            p = _mm256_add_epi16(_mm256_mulhrs_epi16(p, u), a);
            p = _mm256_adds_epi16(p, p);
            p = _mm256_mulhrs_epi16(p, p);
            p = _mm256_mulhrs_epi16(p, p);
            p = _mm256_mulhrs_epi16(p, p);
            totals = _mm256_add_epi32(totals, _mm256_madd_epi16(p, ones));
        }
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(totals), _mm256_extracti128_si256(totals, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        const std::int64_t similar = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
#else
        std::int64_t similar = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            int z = scaled_product(std::abs(x[i] - node[i]), factors[i]);
            for (int k = 0; k < DOUBLINGS; ++k) z = std::min(2 * z, 32767);
            similar += fine_power(static_cast<std::int16_t>(z));
        }
#endif
        return most_ - similar * (std::int64_t{1} << 25);
    }

    Array<std::int16_t> code_, factors_;
    int doublings_ = 0;
    std::int64_t most_ = 0, error_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
