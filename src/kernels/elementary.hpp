// Logarithm, odds and rounded quotients: the same bits on every machine, whatever its library does.
//
// Only + - * / and the one exponential of fixedpoint.hpp; tests/learner/elementary.py is the same text in Python.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "fixedpoint.hpp"
#include "level.hpp"

namespace mlca::MLCA_LEVEL {

__extension__ typedef __int128 Int128;

// The whole number next to a value, the even one of two.
inline double nearest_whole(double x) { return std::nearbyint(x); }

// The whole number next to numerator / denominator > 0, the larger of two.
inline Int128 rounded(Int128 numerator, Int128 denominator) {
    const Int128 twice = 2 * denominator, raised = 2 * numerator + denominator;
    const Int128 quotient = raised / twice;
    return quotient * twice > raised ? quotient - 1 : quotient;
}

// A number that looks drawn, from one that counts (Steele, Lea and Flood, 2014).
inline std::uint64_t splitmix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// The logarithm of a normal number x > 0: artanh's series on [sqrt(1/2), sqrt(2)].
inline double ln(double x) {
    constexpr double SQRT_HALF = 0x1.6a09e667f3bcdp-1, LN_2 = 0x1.62e42fefa39efp-1;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<std::int64_t>(bits >> 52) - 1022;
    double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);
    if (mantissa < SQRT_HALF) {
        mantissa *= 2.0;
        --exponent;
    }
    const double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s;
    double series = 1.0 / 23.0;
    for (int odd = 21; odd > 0; odd -= 2) series = series * square + 1.0 / odd;
    return static_cast<double>(exponent) * LN_2 + (2.0 * s) * series;
}

// exp(-t) for t >= 0; beyond 2^-64 it stays there.
inline double exp_of_minus(double t) { return power_of_half(t * (2.0 * SCALE * SCALE)); }

// The probability whose odds are o exp(z).
inline double shifted(double o, double z) {
    const double small = exp_of_minus(std::fabs(z));
    return z >= 0.0 ? o / (o + small) : o * small / (1.0 + o * small);
}

inline double clipped(double p, double margin) { return std::min(std::max(p, margin), 1.0 - margin); }

inline double odds(double p) {
    p = clipped(p, 1e-6);
    return p / (1.0 - p);
}

}  // namespace mlca::MLCA_LEVEL
