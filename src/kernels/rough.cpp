#include "rough.hpp"

#include <algorithm>
#include <cmath>

namespace mlca::MLCA_LEVEL {

namespace {

// min over cubics p of max |p(v)^8 - 2^-8v| on [0, 14/8], by Lawson's iteration.
constexpr float P0 = 0.99999385f, P1 = -0.69267252f, P2 = 0.23561754f, P3 = -0.04327093f;
constexpr float LARGEST_V = 14.0f / 8.0f;
// w / 8 = (t r / sqrt 8)^2
constexpr double SHRINK = 0.35355339059327379;

// min over quartics q of max |q(a)^8 - (1 - sqrt(1 - 2^-a^2))| on [0, 4.1].
constexpr float Q0 = 0.99999865f, Q1 = -0.10409658f, Q2 = -0.03767946f, Q3 = -0.00212399f, Q4 = 0.00160147f;
constexpr float LARGEST_A = 4.1f;

// About 2^-(8 v) for v = (difference r)^2.
inline float rough_kernel(float difference, float r) {
    const float z = difference * r;
    float v = z * z;
    v = v < LARGEST_V ? v : LARGEST_V;
    float p = ((P3 * v + P2) * v + P1) * v + P0;
    p *= p;
    p *= p;
    return p * p;
}

// About 1 - sqrt(1 - 2^-a^2) for a = |difference r|.
inline float rough_root_kernel(float difference, float r) {
    float a = std::abs(difference * r);
    a = a < LARGEST_A ? a : LARGEST_A;
    float q = (((Q4 * a + Q3) * a + Q2) * a + Q1) * a + Q0;
    q *= q;
    q *= q;
    return q * q;
}

}  // namespace

void rough_sums(const float* __restrict x, const float* __restrict tile, std::int64_t d, double r, float* __restrict sums) {
    const auto factor = static_cast<float>(r * SHRINK);
    float totals[TILE] = {};
    for (std::int64_t i = 0; i < d; ++i) {
        const float* column = tile + TILE * i;
        for (std::int64_t j = 0; j < TILE; ++j) totals[j] += rough_kernel(x[i] - column[j], factor);
    }
    std::copy_n(totals, TILE, sums);
}

void rough_root_sums(const float* __restrict x, const float* __restrict tile, const float* __restrict factors, std::int64_t d,
                     float* __restrict sums) {
    float totals[TILE] = {};
    for (std::int64_t i = 0; i < d; ++i) {
        const float *column = tile + TILE * i, *r = factors + TILE * i;
        for (std::int64_t j = 0; j < TILE; ++j) totals[j] += rough_root_kernel(x[i] - column[j], r[j]);
    }
    std::copy_n(totals, TILE, sums);
}

void rough_group_sums(const float* __restrict x, const float* __restrict tile, std::int64_t n_groups, const std::int64_t* order,
                      const std::int64_t* ends, const double* factors, float* __restrict sums) {
    float totals[TILE] = {};
    for (std::int64_t group = 0, start = 0; group < n_groups; start = ends[group++]) {
        const auto r = static_cast<float>(factors[group] * SHRINK);
        float part[TILE] = {};
        for (std::int64_t place = start; place < ends[group]; ++place) {
            const std::int64_t i = order[place];
            const float* column = tile + TILE * i;
            for (std::int64_t j = 0; j < TILE; ++j) part[j] += rough_kernel(x[i] - column[j], r);
        }
        const float share = 1.0f / static_cast<float>(ends[group] - start);
        for (std::int64_t j = 0; j < TILE; ++j) {
            const float mean = 1.0f - part[j] * share;
            totals[j] -= std::sqrt(mean > 0.0f ? mean : 0.0f);
        }
    }
    std::copy_n(totals, TILE, sums);
}

void rough_mixed_sums(const float* __restrict x, const float* __restrict weights, const std::uint8_t* nominal, const float* __restrict tile, std::int64_t d,
                      double r, float apart, bool zeros_count, float* __restrict above, float* __restrict below) {
    const auto factor = static_cast<float>(r * SHRINK);
    float sums[TILE] = {}, totals[TILE] = {};
    for (std::int64_t i = 0; i < d; ++i) {
        if (x[i] == GAP) continue;
        const float* column = tile + TILE * i;
        const float own = x[i], weight = weights[i];
        if (nominal != nullptr && nominal[i]) {
            for (std::int64_t j = 0; j < TILE; ++j) {
                const float counted = column[j] != GAP ? weight : 0.0f;
                sums[j] += column[j] != own ? counted * apart : 0.0f;
                totals[j] += counted;
            }
        } else {
            for (std::int64_t j = 0; j < TILE; ++j) {
                const float counted = column[j] != GAP ? weight : 0.0f;
                sums[j] += counted * (1.0f - rough_kernel(own - column[j], factor));
                totals[j] += counted;
            }
            if (zeros_count || own != 0.0f) continue;
            for (std::int64_t j = 0; j < TILE; ++j) totals[j] -= column[j] == 0.0f ? weight : 0.0f;
        }
    }
    std::copy_n(sums, TILE, above);
    std::copy_n(totals, TILE, below);
}

float rough_kernel_at(float difference, float r) { return rough_kernel(difference, static_cast<float>(static_cast<double>(r) * SHRINK)); }

float rough_root_kernel_at(float difference, float r) { return rough_root_kernel(difference, r); }

}  // namespace mlca::MLCA_LEVEL
