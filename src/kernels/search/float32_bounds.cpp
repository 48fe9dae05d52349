#include "search/float32_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mlca::MLCA_LEVEL {

namespace {

// Coefficients of the cubic p that minimises max |p(v)^8 - 2^-(8 v)| on [0, 14/8], found by Lawson's iteration.
constexpr float P0 = 0.99999385f, P1 = -0.69267252f, P2 = 0.23561754f, P3 = -0.04327093f;
constexpr float LARGEST_V = 14.0f / 8.0f;
// 1 / sqrt(8): scales r, so that v = (t r)^2 / 8.
constexpr double SHRINK = 0.35355339059327379;

// Coefficients of the quartic q that minimises max |q(a)^8 - (1 - sqrt(1 - 2^-a^2))| on [0, 4.1].
constexpr float Q0 = 0.99999865f, Q1 = -0.10409658f, Q2 = -0.03767946f, Q3 = -0.00212399f, Q4 = 0.00160147f;
constexpr float LARGEST_A = 4.1f;

// Approximates 2^-(8 v) for v = (difference r)^2.
inline float rough_kernel(float difference, float r) {
    const float z = difference * r;
    float v = z * z;
    v = v < LARGEST_V ? v : LARGEST_V;
    float p = ((P3 * v + P2) * v + P1) * v + P0;
    p *= p;
    p *= p;
    return p * p;
}

// Approximates 1 - sqrt(1 - 2^-a^2) for a = |difference r|.
inline float rough_root_kernel(float difference, float r) {
    float a = std::abs(difference * r);
    a = a < LARGEST_A ? a : LARGEST_A;
    float q = (((Q4 * a + Q3) * a + Q2) * a + Q1) * a + Q0;
    q *= q;
    q *= q;
    return q * q;
}

}  // namespace

void rough_root_sums(const float* __restrict x, const float* __restrict tile, const float* __restrict factors, std::int64_t d,
                     float* __restrict sums) {
    float totals[TILE] = {};
    for (std::int64_t i = 0; i < d; ++i) {
        const float *column = tile + TILE * i, *r = factors + TILE * i;
        for (std::int64_t j = 0; j < TILE; ++j) totals[j] += rough_root_kernel(x[i] - column[j], r[j]);
    }
    std::copy_n(totals, TILE, sums);
}

namespace {

// With two sums per node, explicit vectors are used, because the compiler would keep arrays of sums in memory.
typedef float Eight __attribute__((vector_size(32)));
typedef float EightAnywhere __attribute__((vector_size(32), aligned(4), may_alias));

// Half a tile is processed at a time, so that the sums stay in registers.
constexpr int HALF_TILE = TILE / 2;

enum class Counted { category, number, number_but_zero };

// Add one feature's terms and weights to the sums and totals of half a tile of nodes. `factors` are the nodes' own
// factors, or null if `factor` applies to all of them.
template <Counted kind, bool rooted>
[[gnu::always_inline]] inline void add_mixed(const RoughMixed& compared, std::int64_t i, const float* column, float factor, const float* factors,
    Eight* sums, Eight* totals) {
    const Eight none = {}, gap = none + MISSING_FLOAT, x = none + compared.x[i], full = none + compared.weights[i];
#pragma GCC unroll 4
    for (int k = 0; k < HALF_TILE / 8; ++k) {
        const Eight y = reinterpret_cast<const EightAnywhere*>(column)[k];
        Eight there = y != gap ? full : none;
        if constexpr (kind == Counted::number_but_zero) there = y != none ? there : none;
        totals[k] += there;
        if constexpr (kind == Counted::category) {
            sums[k] += y != x ? there * compared.apart : none;
        } else if constexpr (rooted) {
            Eight a = (x - y) * reinterpret_cast<const EightAnywhere*>(factors)[k];
            a = a < none ? -a : a;
            a = a < LARGEST_A ? a : none + LARGEST_A;
            Eight q = (((Q4 * a + Q3) * a + Q2) * a + Q1) * a + Q0;
            q *= q;
            q *= q;
            sums[k] += there * (1.0f - q * q);
        } else {
            const Eight z = (x - y) * factor;
            Eight v = z * z;
            v = v < LARGEST_V ? v : none + LARGEST_V;
            Eight p = ((P3 * v + P2) * v + P1) * v + P0;
            p *= p;
            p *= p;
            sums[k] += there * (1.0f - p * p);
        }
    }
}

template <bool rooted>
void add_up_mixed(const RoughMixed& compared, const float* tile, float factor, const float* factors, float* above, float* below) {
    for (std::int64_t half = 0; half < TILE; half += HALF_TILE) {
        Eight sums[HALF_TILE / 8] = {}, totals[HALF_TILE / 8] = {};
        for (std::int64_t i = 0; i < compared.d; ++i) {
            if (compared.x[i] == MISSING_FLOAT) continue;
            const float *column = tile + TILE * i + half, *column_factors = rooted ? factors + TILE * i + half : nullptr;
            if (compared.nominal != nullptr && compared.nominal[i]) {
                add_mixed<Counted::category, rooted>(compared, i, column, factor, column_factors, sums, totals);
            } else if (compared.zeros_count || compared.x[i] != 0.0f) {
                add_mixed<Counted::number, rooted>(compared, i, column, factor, column_factors, sums, totals);
            } else {
                add_mixed<Counted::number_but_zero, rooted>(compared, i, column, factor, column_factors, sums, totals);
            }
        }
        std::memcpy(above + half, sums, sizeof sums);
        std::memcpy(below + half, totals, sizeof totals);
    }
}

}  // namespace

void rough_mixed_sums(const RoughMixed& compared, const float* tile, double r, float* above, float* below) {
    add_up_mixed<false>(compared, tile, static_cast<float>(r * SHRINK), nullptr, above, below);
}

void rough_mixed_root_sums(const RoughMixed& compared, const float* tile, const float* factors, float* above, float* below) {
    add_up_mixed<true>(compared, tile, 0.0f, factors, above, below);
}

float rough_kernel_at(float difference, float r) { return rough_kernel(difference, static_cast<float>(static_cast<double>(r) * SHRINK)); }

float rough_root_kernel_at(float difference, float r) { return rough_root_kernel(difference, r); }

}  // namespace mlca::MLCA_LEVEL
