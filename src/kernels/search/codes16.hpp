// Sixteen-bit codes of the nodes: tighter bounds for the nodes that four-bit codes do not exclude.
//
// The range of a feature is divided into steps of equal width; y becomes Y = round((y - low) / width), clamped to 0 and
// 32767. The difference of two codes is scaled to z = (x - y) r in units of 2^-13, and the eighth power of a cubic in
// z^2 approximates 2^-z^2. Sixteen-bit arithmetic processes 16 features at once. If weights were in the first-level
// cache, float32 would be as fast. But the nodes that need tighter bounds are scattered in memory, and these codes take
// a quarter of the memory of the weights.
//
// Why the sum minus its error is a lower bound: rounding to Y moves each value by at most half a width, and clamping
// moves no two values further apart, so |X - Y| <= |x - y| / width + 1. Multiplying by M <= width r 2^(28 - s),
// shifting, and doubling s times (clamped at 4, because 2^-16 is practically 0) gives a z that is too large by at most
// width r + 2^(s - 14). The slope of 1 - 2^-z^2 is at most 0.72, so the term is too large by at most 0.72 times this,
// plus the error of the sixteen-bit arithmetic, POWER_ERROR, found by testing all values of z (tests/kernels). If M had
// to be clamped, z can only be too small. So the result is always a lower bound; usually it is also close to the exact
// sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "search/codes4.hpp"
#include "base/fixed_point.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t FINE_LANES = 16;
inline constexpr double FINEST = 32767.0;
// Upper bounds on the amounts by which fine_power and fine_root_power are too small. The largest amounts over all z are
// 4.33e-4 and 4.25e-4.
inline constexpr double POWER_ERROR = 4.4e-4;
inline constexpr double ROOT_POWER_ERROR = 4.4e-4;
// Maximum number of times that a scaled difference is doubled. It suffices for features with a range of up to 64 / r.
inline constexpr int MOST_DOUBLINGS = 4;

// The product of two numbers as the vector instruction computes it: (a b + 2^14) >> 15.
inline std::int16_t scaled_product(int a, int b) { return static_cast<std::int16_t>((a * b + 0x4000) >> 15); }

// Halved coefficients, in units of 2^-15, of a cubic in u = z^2 / 16: 2^-2u is approximately 2 (A + B u + C u^2 + D
// u^3). Its eighth power is 2^-z^2.
inline constexpr std::int16_t FINE_A = 16384, FINE_B = -22697, FINE_C = 15441, FINE_D = -5672;
// Coefficients of the quartic in u = z / 4 whose eighth power approximates 1 - sqrt(1 - 2^-z^2).
inline constexpr std::int16_t FINE_ROOT[] = {32767, -13644, -19755, -4454, 13434};

inline std::int16_t eighth_power(std::int16_t p) {
    for (int k = 0; k < 3; ++k) p = scaled_product(p, p);
    return p;
}

// Approximates 2^15 * 2^-z^2; z >= 0 is given in units of 2^-13.
inline std::int16_t fine_power(std::int16_t z) {
    const std::int16_t u = scaled_product(z, z);
    int p = scaled_product(FINE_D, u) + FINE_C;
    p = scaled_product(p, u) + FINE_B;
    p = scaled_product(p, u) + FINE_A;
    return eighth_power(static_cast<std::int16_t>(std::min(2 * p, 32767)));
}

// Approximates 2^15 * (1 - sqrt(1 - 2^-z^2)).
inline std::int16_t fine_root_power(std::int16_t z) {
    int p = FINE_ROOT[4];
    for (int k = 3; k >= 0; --k) p = scaled_product(p, z) + FINE_ROOT[k];
    return eighth_power(static_cast<std::int16_t>(p));
}

#if defined(__AVX2__)
// Vectors of sixteen 16-bit integers.
struct Words16 {
    using Words = __m256i;
    [[gnu::always_inline]] static Words all(std::int16_t value) { return _mm256_set1_epi16(value); }
    [[gnu::always_inline]] static Words load(const std::int16_t* some) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(some)); }
    [[gnu::always_inline]] static Words distance(Words a, Words b) { return _mm256_abs_epi16(_mm256_sub_epi16(a, b)); }
    [[gnu::always_inline]] static Words product(Words a, Words b) { return _mm256_mulhrs_epi16(a, b); }
    [[gnu::always_inline]] static Words sum(Words a, Words b) { return _mm256_add_epi16(a, b); }
    [[gnu::always_inline]] static Words limited_sum(Words a, Words b) { return _mm256_adds_epi16(a, b); }
    // Multiplies lane by lane, and adds the two products of each pair of neighbouring lanes to the pair's 32-bit sum.
    [[gnu::always_inline]] static Words add_products(Words sums, Words a, Words b) { return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)); }
};
#if defined(__AVX512BW__)
// Vectors of thirty-two 16-bit integers. Each power is a chain of eight dependent products, so wider vectors help even
// on processors without wider units, because more chains overlap: 13 instead of 16 nanoseconds per node on Yeast (Zen
// 4).
struct Words32 {
    using Words = __m512i;
    [[gnu::always_inline]] static Words all(std::int16_t value) { return _mm512_set1_epi16(value); }
    [[gnu::always_inline]] static Words load(const std::int16_t* some) { return _mm512_loadu_si512(some); }
    [[gnu::always_inline]] static Words distance(Words a, Words b) { return _mm512_abs_epi16(_mm512_sub_epi16(a, b)); }
    [[gnu::always_inline]] static Words product(Words a, Words b) { return _mm512_mulhrs_epi16(a, b); }
    [[gnu::always_inline]] static Words sum(Words a, Words b) { return _mm512_add_epi16(a, b); }
    [[gnu::always_inline]] static Words limited_sum(Words a, Words b) { return _mm512_adds_epi16(a, b); }
    // Multiplies lane by lane, and adds the two products of each pair of neighbouring lanes to the pair's 32-bit sum.
    [[gnu::always_inline]] static Words add_products(Words sums, Words a, Words b) { return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)); }
};
#endif

// Vector versions of the functions above, with the same results.
template <class W>
[[gnu::always_inline]] inline typename W::Words fine_polynomial(typename W::Words p, typename W::Words u, std::int16_t next) {
    return W::sum(W::product(p, u), W::all(next));
}
template <class W>
[[gnu::always_inline]] inline typename W::Words eighth_powers(typename W::Words p) {
    for (int k = 0; k < 3; ++k) p = W::product(p, p);
    return p;
}
template <class W>
[[gnu::always_inline]] inline typename W::Words fine_powers(typename W::Words z) {
    const auto u = W::product(z, z);
    auto p = fine_polynomial<W>(W::all(FINE_D), u, FINE_C);
    p = fine_polynomial<W>(fine_polynomial<W>(p, u, FINE_B), u, FINE_A);
    return eighth_powers<W>(W::limited_sum(p, p));
}
template <class W>
[[gnu::always_inline]] inline typename W::Words fine_root_powers(typename W::Words z) {
    auto p = W::all(FINE_ROOT[4]);
    for (int k = 3; k >= 0; --k) p = fine_polynomial<W>(p, z, FINE_ROOT[k]);
    return eighth_powers<W>(p);
}
#if defined(__AVX512BW__)
// Add the two halves of sixteen 32-bit integers. (Full masks work around a GCC warning, see search/scan_codes.hpp.)
[[gnu::always_inline]] inline __m256i half_as_many(__m512i totals) {
    return _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, totals, 0), _mm512_maskz_extracti64x4_epi64(0xff, totals, 1));
}
#endif
// The sum of eight 32-bit integers.
[[gnu::always_inline]] inline std::int64_t sum_of_halves(__m256i totals) {
    const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(totals));
    const __m256i four = _mm256_add_epi64(low, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(totals, 1)));
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
}
#endif

// The sum over some features of weight * 2^-z^2 or, if ROOTED, of weight * (1 - sqrt(1 - 2^-z^2)). z is the difference
// of two codes; if SCALED, it is multiplied by a factor and doubled DOUBLINGS times. If SCALED and not ROOTED, all
// weights are 1.
template <bool SCALED, int DOUBLINGS, bool ROOTED>
inline std::int64_t sum_of_likeness(const std::int16_t* __restrict x, const std::int16_t* __restrict y, const std::int16_t* __restrict factors,
                                    const std::int16_t* __restrict weights, std::int64_t n) noexcept {
    constexpr bool WEIGHTED = ROOTED || !SCALED;
#if defined(__AVX2__)
    const auto add = [&]<class W>(W, typename W::Words sums, std::int64_t i) [[gnu::always_inline]] {
        auto z = W::distance(W::load(x + i), W::load(y + i));
        if constexpr (SCALED) z = W::product(z, W::load(factors + i));
        for (int k = 0; k < DOUBLINGS; ++k) z = W::limited_sum(z, z);
        const auto p = ROOTED ? fine_root_powers<W>(z) : fine_powers<W>(z);
        return W::add_products(sums, p, WEIGHTED ? W::load(weights + i) : W::all(1));
    };
    __m256i totals = _mm256_setzero_si256();
    std::int64_t i = 0;
#if defined(__AVX512BW__)
    __m512i wide = _mm512_setzero_si512();
    for (; i + 2 * FINE_LANES <= n; i += 2 * FINE_LANES) wide = add(Words32(), wide, i);
    totals = half_as_many(wide);
#endif
    for (; i < n; i += FINE_LANES) totals = add(Words16(), totals, i);
    return sum_of_halves(totals);
#else
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        int z = std::abs(x[i] - y[i]);
        if constexpr (SCALED) z = scaled_product(z, factors[i]);
        for (int k = 0; k < DOUBLINGS; ++k) z = std::min(2 * z, 32767);
        const auto short_z = static_cast<std::int16_t>(z);
        const std::int16_t p = ROOTED ? fine_root_power(short_z) : fine_power(short_z);
        total += WEIGHTED ? weights[i] * p : p;
    }
    return total;
#endif
}

// Maps the range of each feature to sixteen-bit codes.
class Scale16 {
public:
    explicit Scale16(std::int64_t n_features)
        : low_(n_features, 0.0),
          width_(n_features, 1.0),
          widths_per_unit_(n_features, 1.0) {}

    std::int64_t n_features() const noexcept { return low_.size(); }
    double width(std::int64_t feature) const noexcept { return width_[feature]; }

    // Set each feature's range: it encloses the values of all nodes, but is at most a few times as wide as the range of
    // a sample. weights(node) returns the weights of a node.
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
            widths_per_unit_[i] = 1.0 / width_[i];
        }
    }

    // Encode a row. Codes are monotonic: a larger value never has a smaller code. Multiplying by the inverse of a
    // width, instead of dividing by the width, adds an error of at most a billionth of a width.
    void encode(const double* __restrict values, std::int16_t* __restrict code) const noexcept {
        const double *__restrict low = low_.data(), *__restrict widths_per_unit = widths_per_unit_.data();
        for (std::int64_t i = 0; i < n_features(); ++i) code[i] = encoded(values[i], low[i], widths_per_unit[i]);
    }

private:
    static constexpr std::int64_t SAMPLE = 128;
    static constexpr double SMALLEST = 1e-300;

    [[gnu::always_inline]] static std::int16_t encoded(double value, double low, double widths_per_unit) noexcept {
        double place = (value - low) * widths_per_unit;
        place = place > 0.0 ? place : 0.0;
        place = place < FINEST ? place : FINEST;
        return static_cast<std::int16_t>(static_cast<std::int32_t>(place + 0.5));
    }

    Array<double> low_, width_, widths_per_unit_;
};

// One row prepared for comparison with sixteen-bit codes, either with one bandwidth for all features or with features
// in groups.
//
// With groups, the quantity to bound is a sum of roots of means, sum_g sqrt(mean of 1 - k over g). The root is concave,
// so this is at least the sum over all features of sqrt(1 - k) / (size of its group), which is again a weighted sum
// over features. With exact terms, only one node in a hundred would pass this bound, so it is tight enough.
class Row16 {
public:
    explicit Row16(std::int64_t n_features)
        : code_(rounded_up(n_features, FINE_LANES), std::int16_t{0}),
          factors_(code_.size(), std::int16_t{0}),
          weights_(code_.size(), std::int16_t{0}) {}

    void fill_common(const double* x, double r, const Scale16& widths) noexcept {
        widths.encode(x, code_.data());
        const double loose = set_factors(widths, [&](std::int64_t) { return r; });
        rooted_ = false;
        const auto n = static_cast<double>(code_.size());
        const double error = n * (POWER_ERROR + UNITS) + STEEPEST * (loose + n * shift_error());
        most_ = static_cast<std::int64_t>((n - error) * PER_UNIT);
        error_ = static_cast<std::int64_t>(error * PER_UNIT);
    }

    // Prepare a row if features are in groups; group(feature) returns the factor r and the size of the group to which
    // the feature belongs.
    template <class Group>
    void fill_grouped(const double* x, const Group& group, const Scale16& widths) noexcept {
        widths.encode(x, code_.data());
        set_factors(widths, [&](std::int64_t i) { return group(i).r; });
        rooted_ = true;
        double most = 0.0, error = 0.0;
        for (std::int64_t i = 0; i < widths.n_features(); ++i) {
            const auto group_here = group(i);
            const auto weight = static_cast<std::int32_t>(static_cast<double>(WEIGHT) / static_cast<double>(group_here.size));
            weights_[i] = static_cast<std::int16_t>(weight);
            const double share = static_cast<double>(weight) / static_cast<double>(WEIGHT);
            const double in_z = std::min(widths.width(i) * group_here.r, 1.0);
            most += share;
            error += share * (ROOT_POWER_ERROR + UNITS + ROOT_STEEPEST * (1.0001 * in_z + shift_error()));
        }
        most_ = static_cast<std::int64_t>((most - error) * PER_UNIT);
        error_ = static_cast<std::int64_t>(error * PER_UNIT);
    }

    // Typical gap between the lower bound and the exact sum: errors of individual terms largely cancel, so it is
    // roughly the error allowance. This is an estimate, not a guarantee.
    std::int64_t looseness() const noexcept { return error_ + error_ / 8; }

    // A lower bound on the row's sum with a node, in units; `node` holds the node's codes.
    std::int64_t lower(const std::int16_t* node) const noexcept {
        switch (2 * doublings_ + rooted_) {
            case 0: return lower_bound<0, false>(node);
            case 1: return lower_bound<0, true>(node);
            case 2: return lower_bound<1, false>(node);
            case 3: return lower_bound<1, true>(node);
            case 4: return lower_bound<2, false>(node);
            case 5: return lower_bound<2, true>(node);
            case 6: return lower_bound<3, false>(node);
            case 7: return lower_bound<3, true>(node);
            case 8: return lower_bound<MOST_DOUBLINGS, false>(node);
            default: return lower_bound<MOST_DOUBLINGS, true>(node);
        }
    }

private:
    // Upper bounds on the slopes of 1 - 2^-z^2 and of its square root.
    static constexpr double STEEPEST = 0.72, ROOT_STEEPEST = 0.84;
    // An upper bound on the rounding error of an exact term.
    static constexpr double UNITS = 0x1p-38;
    // The weight of a feature that is alone in its group.
    static constexpr std::int32_t WEIGHT = 512;
    // Number of features whose weighted terms can be added in eight 32-bit lanes, an eighth of them in each, without
    // overflow.
    static constexpr std::int64_t STRETCH = 512;

    double shift_error() const noexcept { return std::ldexp(1.0, doublings_ - 14); }

    // Set the factors by which differences of codes are multiplied; return the sum of all widths in units of z.
    template <class ROf>
    double set_factors(const Scale16& widths, const ROf& r_of) noexcept {
        const std::int64_t d = widths.n_features();
        // Widths are summed as integers in units of 2^-40, rounded up: floating-point additions would form a dependency
        // chain.
        double widest = 0.0;
        std::int64_t units = 0;
        for (std::int64_t i = 0; i < d; ++i) {
            const double in_z = std::min(widths.width(i) * r_of(i), 1.0);
            widest = std::max(widest, in_z);
            units += in_units(in_z) + 1;
        }
        const double total = static_cast<double>(units) * UNIT;
        doublings_ = 0;
        while (doublings_ < MOST_DOUBLINGS && widest * 0x1p13 > static_cast<double>(1 << doublings_)) ++doublings_;
        const double unit = std::ldexp(1.0, 28 - doublings_);
        for (std::int64_t i = 0; i < d; ++i) {
            const double factor = widths.width(i) * r_of(i) * unit;
            factors_[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(factor < FINEST ? factor : FINEST));
        }
        return 1.0001 * total;
    }

    template <int DOUBLINGS, bool ROOTED>
    std::int64_t lower_bound(const std::int16_t* node) const noexcept {
        const std::int64_t n = code_.size();
        std::int64_t similar = 0;
        for (std::int64_t first = 0; first < n; first += STRETCH) {
            similar += sum_of_likeness<true, DOUBLINGS, ROOTED>(
                code_.data() + first, node + first, factors_.data() + first, weights_.data() + first, std::min(STRETCH, n - first));
        }
        return most_ - similar * (ROOTED ? std::int64_t{(1 << 25) / WEIGHT} : std::int64_t{1 << 25});
    }

    Array<std::int16_t> code_, factors_, weights_;
    int doublings_ = 0;
    bool rooted_ = false;
    std::int64_t most_ = 0, error_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
