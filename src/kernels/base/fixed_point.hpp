// The correntropy kernel, and sums of its terms that are the same in any order of addition.
//
// k(t, s) = exp(-t^2 / (2 s^2)) is computed as 2^-(t r)^2 with r = SCALE / s. Exact terms always use `kernel`, whose
// polynomial is evaluated by explicit fused multiply-adds, which round identically on every machine, for vectors and
// for scalars. So results have the same bits everywhere.
//
// Each term of a distance, a value in [0, 1], is rounded to a multiple of 2^-40 and then added as an integer. Adding
// 1.5 * 2^12 moves the multiple into the low bits of the significand, where an integer addition can use it. So rounding
// costs one floating-point addition, and the compiler can vectorise the sums, because integers may be added in any
// order. Sums are int64 in units of 2^-40 and may have at most 2^22 terms.
//
// All functions that compute a term are forced inline: in a large file, GCC otherwise stops inlining, and a loop that
// contains a call is not vectorised and runs at an eighth of the speed.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double UNIT = 0x1p-40;
inline constexpr double PER_UNIT = 0x1p40;
// exp(-t^2 / (2 s^2)) = 2^-(t SCALE / s)^2; SCALE is the square root of log2(e) / 2.
inline constexpr double SCALE = 0x1.b2da4e9808a53p-1;

// Coefficients of q in 2^f = 1 + f q(f) on [-1/2, 1/2], interpolated at Chebyshev points, with a relative error below
// 1e-17 (tests/learner/test_fixedpoint.py recomputes them with 50 digits). 2^0 is exactly 1.
inline constexpr double POWER_COEFFICIENTS[] = {
    0x1.62e42fefa39efp-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d704a0c2p-5,  0x1.3b2ab6fba1ddap-7,
    0x1.5d87fe78a5276p-10, 0x1.430913096fd9fp-13, 0x1.ffcbfc670dcd4p-17, 0x1.62bfd47773353p-20,
    0x1.b524fae627834p-24, 0x1.e6063f7217bc6p-28, 0x1.e9d3fe3952179p-32,
};

// A shorter polynomial for 2^f, which has an error of 5.6e-11 and takes two thirds of the arithmetic. It is used for
// sums that are rounded to integers (similarity/rank_distance.hpp).
inline constexpr double NEAR_COEFFICIENTS[] = {
    0x1.ffffffffa7135p-1,  0x1.62e42fef9cc69p-1,  0x1.ebfbe0aa03df0p-3,  0x1.c6b08da70cce3p-5,
    0x1.3b29d8bb0b97ep-7,  0x1.5d877598350dep-10, 0x1.446c79efd4834p-13, 0x1.00c0e4e15189cp-16,
};
inline constexpr double NEAR_ERROR = 5.6e-11;

// Adding one of these constants rounds a number to an integer or to a multiple of 2^-40, and leaves the result in the
// low bits of the sum.
inline constexpr double ROUND_TO_ONES = 0x1.8p52;
inline constexpr double ROUND_TO_UNITS = 0x1.8p12;
// Larger exponents are clamped to this: 2^-64 is already lost by rounding when it is added to 1.
inline constexpr double LARGEST_EXPONENT = 64.0;

// The always_inline functions below must be inlined, because a call inside a sum prevents vectorisation.

// Evaluate a polynomial, given its coefficients with the constant first.
template <int N>
[[gnu::always_inline]] inline double polynomial(const double (&coefficients)[N], double f) {
    double p = std::fma(coefficients[N - 1], f, coefficients[N - 2]);
#pragma GCC unroll 16
    for (int i = N - 3; i >= 0; --i) p = std::fma(p, f, coefficients[i]);
    return p;
}

// 2^-w for w >= 0, with a relative error of 3e-16; w above 64 counts as 64.
[[gnu::always_inline]] inline double power_of_half(double w) {
    w = w < LARGEST_EXPONENT ? w : LARGEST_EXPONENT;
    const double shifted = ROUND_TO_ONES - w;
    const double f = (ROUND_TO_ONES - shifted) - w;
    const double p = std::fma(polynomial(POWER_COEFFICIENTS, f), f, 1.0);
    const auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + exponent);
}

// 2^-(t s) for t s from 0 to about 64, with a relative error of NEAR_ERROR.
[[gnu::always_inline]] inline double near_power_of_half(double t, double s) {
    const double shifted = std::fma(-t, s, ROUND_TO_ONES);
    const double p = polynomial(NEAR_COEFFICIENTS, std::fma(-t, s, ROUND_TO_ONES - shifted));
    const auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + exponent);
}

// The kernel, k = 2^-(difference r)^2.
[[gnu::always_inline]] inline double kernel(double difference, double r) {
    const double z = difference * r;
    return power_of_half(z * z);
}

// Convert a term in [0, 1] to units of 2^-40, rounded to an integer.
[[gnu::always_inline]] inline std::int64_t in_units(double term) {
    return std::bit_cast<std::int64_t>(ROUND_TO_UNITS + term) - std::bit_cast<std::int64_t>(ROUND_TO_UNITS);
}

// 1 - k in units: a feature's term if all features share one bandwidth.
[[gnu::always_inline]] inline std::int64_t dissimilarity(double difference, double r) { return in_units(1.0 - kernel(difference, r)); }

// sqrt(1 - k) in units: a feature's term if each feature has its own bandwidth.
[[gnu::always_inline]] inline std::int64_t root_dissimilarity(double difference, double r) {
    return in_units(std::sqrt(1.0 - kernel(difference, r)));
}

// The sum of 1 - k over the features, in units. Not inlined, because the compiler may not vectorise it inside a larger
// loop.
[[gnu::noinline]] inline std::int64_t common_sum(const double* __restrict x, const double* __restrict y, std::int64_t d, double r) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < d; ++i) total += dissimilarity(x[i] - y[i], r);
    return total;
}

// The sum of sqrt(1 - k) over the features, each with its own r, in units.
[[gnu::noinline]] inline std::int64_t individual_sum(const double* __restrict x, const double* __restrict y, const double* __restrict r,
                                                     std::int64_t d) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < d; ++i) total += root_dissimilarity(x[i] - y[i], r[i]);
    return total;
}

// Versions of `common_sum` and `individual_sum` for differences that were gathered beforehand.
[[gnu::noinline]] inline std::int64_t gathered_sum(const double* __restrict differences, std::int64_t n, double r) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += dissimilarity(differences[i], r);
    return total;
}
[[gnu::noinline]] inline std::int64_t gathered_roots(const double* __restrict differences, const double* __restrict r, std::int64_t n) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += root_dissimilarity(differences[i], r[i]);
    return total;
}

// sqrt(mean of 1 - k over a group) in units, from the group's sum in units.
[[gnu::always_inline]] inline std::int64_t group_root(std::int64_t total, std::int64_t size) {
    return in_units(std::sqrt(static_cast<double>(total) * UNIT / static_cast<double>(size)));
}

// Logarithm, odds and rounded quotients. They use only + - * / and the exponential above, so they give the same bits on
// every machine, regardless of its math library. src/mlca/reference/arithmetic.py has the same functions in Python.

__extension__ typedef __int128 Int128;

// Round to the nearest integer, ties to even.
inline double nearest_whole(double x) { return std::nearbyint(x); }

// Round numerator / denominator to the nearest integer, with ties rounded up; the denominator must be positive.
inline Int128 rounded(Int128 numerator, Int128 denominator) {
    const Int128 twice = 2 * denominator, raised = 2 * numerator + denominator;
    const Int128 quotient = raised / twice;
    return quotient * twice > raised ? quotient - 1 : quotient;
}

// A pseudo-random number from a counter (Steele, Lea and Flood, 2014).
inline std::uint64_t splitmix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// The natural logarithm of a normal number x > 0, by the series of artanh after scaling x to [sqrt(1/2), sqrt(2)].
[[gnu::always_inline]] inline double ln(double x) {
    constexpr double SQRT_HALF = 0x1.6a09e667f3bcdp-1, LN_2 = 0x1.62e42fefa39efp-1;
    constexpr double SERIES[] = {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    const auto bits = std::bit_cast<std::uint64_t>(x);
    // Inserting the exponent into the significand of 2^52 converts it to double without a conversion instruction, of
    // which some processors have no vector form.
    const double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1022.0);
    const double half = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);
    const bool is_small = half < SQRT_HALF;
    const double mantissa = is_small ? half + half : half;
    const double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s;
    double series = SERIES[11];
#pragma GCC unroll 11
    for (int i = 10; i >= 0; --i) series = series * square + SERIES[i];
    return (is_small ? exponent - 1.0 : exponent) * LN_2 + (2.0 * s) * series;
}

// exp(-t) for t >= 0, but never less than 2^-64.
[[gnu::always_inline]] inline double exp_of_minus(double t) { return power_of_half(t * (2.0 * SCALE * SCALE)); }

// The probability with odds o * exp(z).
[[gnu::always_inline]] inline double shifted(double o, double z) {
    const double small = exp_of_minus(std::fabs(z)), product = o * small;
    return (z >= 0.0 ? o : product) / (z >= 0.0 ? o + small : 1.0 + product);
}

[[gnu::always_inline]] inline double clipped(double p, double margin) { return std::min(std::max(p, margin), 1.0 - margin); }

[[gnu::always_inline]] inline double odds(double p) {
    p = clipped(p, 1e-6);
    return p / (1.0 - p);
}

}  // namespace mlca::MLCA_LEVEL
