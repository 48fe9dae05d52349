// The sum of one row with one node roughly: in float32, straight from the weights, with a proven error.
//
// Differences, their scaling and squaring are done in float64 and cut off before anything is rounded to float32, so the
// error does not depend on how large values are, and nothing overflows that does not overflow in the exact sum. Per
// attribute, with u = 2^-24: the cubic to the eighth power is within 5.1e-5 of 2^-w for w <= 14, and 2^-14 = 6.1e-5 is
// p(14 / 8)^8 to within the same, so cutting off adds nothing; roundings of w, p and its powers are below 52 u. Adding n / 8
// terms a lane, none above 1.0001, errs by at most n / 8 u of the lane's sum, and joining 8 lanes by 3 u.
//
// It takes a fourth of the exact sum's time (no gain from a copy of the weights in float32: those would have to come from
// the second cache or beyond just the same, and be kept up to date).
#pragma once

#include <cstdint>

#include "fixedpoint.hpp"
#include "level.hpp"
#include "tables.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

// About the sum of 1 - k over the attributes, in units.
[[gnu::noinline]] inline std::int64_t rough_common_sum(const double* __restrict x, const double* __restrict y, std::int64_t d, double r) {
    std::int64_t i = 0;
    double similar = 0.0;
#if defined(__AVX2__)
    const __m256d scale = _mm256_set1_pd(r), farthest = _mm256_set1_pd(14.0);
    __m256 totals = _mm256_setzero_ps();
    for (; i + 8 <= d; i += 8) {
        __m128 halves[2];
        for (int half = 0; half < 2; ++half) {
            const __m256d t = _mm256_sub_pd(_mm256_loadu_pd(x + i + 4 * half), _mm256_loadu_pd(y + i + 4 * half));
            const __m256d z = _mm256_mul_pd(t, scale);
            halves[half] = _mm256_cvtpd_ps(_mm256_min_pd(_mm256_mul_pd(z, z), farthest));
        }
        totals = _mm256_add_ps(totals, rough_powers(_mm256_set_m128(halves[1], halves[0])));
    }
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, totals);
    for (const float lane : lanes) similar += static_cast<double>(lane);
#else
    float totals[8] = {};
    for (; i + 8 <= d; i += 8) {
        for (std::int64_t j = 0; j < 8; ++j) {
            const double z = (x[i + j] - y[i + j]) * r, w = z * z;
            totals[j] += rough_power(static_cast<float>(w < 14.0 ? w : 14.0));
        }
    }
    for (const float lane : totals) similar += static_cast<double>(lane);
#endif
    for (; i < d; ++i) {
        const double z = (x[i] - y[i]) * r, w = z * z;
        similar += static_cast<double>(rough_power(static_cast<float>(w < 14.0 ? w : 14.0)));
    }
    return static_cast<std::int64_t>((static_cast<double>(d) - similar) * PER_UNIT);
}

// What a rough sum of d attributes may be wrong by, in units.
inline std::int64_t rough_common_error(std::int64_t d) {
    const auto n = static_cast<double>(d);
    return static_cast<std::int64_t>(n * (5.1e-5 + (52.0 + 4.0 + 1.01 * n / 8.0) * 0x1p-24) * PER_UNIT) + 1;
}

}  // namespace mlca::MLCA_LEVEL
