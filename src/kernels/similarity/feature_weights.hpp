// Conversion of correlations to feature weights, and of slopes to coefficients of the background.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "similarity/background.hpp"
#include "base/fixed_point.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t WHOLE_WEIGHT = std::int64_t{1} << 50;
inline constexpr std::int64_t TOP = 32;

// A feature that may contribute to a label's score.
struct Candidate {
    double size, slope;
    std::int32_t feature;
};

// Statistics of a feature: the sum of its ranks minus the base over the rows that have a value, the number of these
// rows, and the rank of 0 minus the base.
struct Trait {
    std::int64_t sum, rows;
    std::int32_t shift;
};

// Copy to `kept` the TOP strongest candidates among d features, and all that tie with the last of them. Features that
// are not candidates count as candidates of size 0.
inline void keep_strongest(Array<Candidate>& candidates, std::int64_t d, Array<Candidate>& kept) {
    double least = 0.0;
    if (d > TOP && static_cast<std::int64_t>(candidates.size()) >= TOP) {
        Candidate* last = candidates.data() + TOP - 1;
        std::nth_element(candidates.data(), last, candidates.data() + candidates.size(),
                         [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
        least = last->size;
    }
    kept.reserve(std::min<std::int64_t>(static_cast<std::int64_t>(candidates.size()), TOP));
    for (const Candidate& candidate : candidates) {
        if (candidate.size >= least) kept.push_back(candidate);
    }
    std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) { return a.feature < b.feature; });
}

// Turn the slopes of each slot into integers whose magnitudes sum to less than 2^31: with m = 2^(31 - b), where b is
// the bit width of the number of slopes, the largest magnitude lies between m / 2 and m. The score's mean over n rows
// is rounded once for all features without missing values together, and once for each other feature.
template <class TraitOf>
void lay_out_background(const Array<Array<Candidate>>& chosen, std::int64_t n, TraitOf trait_of, Background& background) {
    background.starts.assign(1, 0);
    for (const Array<Candidate>& candidates : chosen) {
        double largest = 0.0;
        for (const Candidate& candidate : candidates) largest = std::max(largest, std::fabs(candidate.slope));
        Int128 sum = 0, others = 0;
        if (largest > 0.0) {
            int exponent;
            std::frexp(largest, &exponent);
            exponent = 31 - static_cast<int>(std::bit_width(candidates.size())) - exponent;
            for (const Candidate& candidate : candidates) {
                const auto coefficient = static_cast<std::int32_t>(nearest_whole(std::ldexp(candidate.slope, exponent)));
                const Trait trait = trait_of(candidate.feature);
                const Int128 product = static_cast<Int128>(trait.sum) * coefficient, shift = static_cast<Int128>(trait.shift) * coefficient;
                const Int128 mean = rounded(product, trait.rows) - shift;
                background.features.push_back(candidate.feature);
                background.coefficients.push_back(coefficient);
                background.means.push_back(static_cast<std::int64_t>(mean));
                sum += trait.rows == n ? product : 0;
                others += trait.rows == n ? -shift : mean;
            }
        }
        background.starts.push_back(static_cast<std::int64_t>(background.features.size()));
        background.centres.push_back(static_cast<std::int64_t>(rounded(sum, n) + others));
    }
}

// Set the weights to 1 + correlation / (mean correlation), scaled to a sum of about WHOLE_WEIGHT. Correlations are in
// units of 2^-40; if all are 0, the weights are unchanged.
inline void set_weights(const Array<std::int64_t>& correlations, Array<std::int64_t>& weights) {
    const std::int64_t d = correlations.size();
    std::int64_t together = 0;
    for (const std::int64_t r : correlations) together += r;
    if (together == 0) return;
    const auto weight = [&](std::int64_t correlation) {
        const Int128 share = static_cast<Int128>(correlation) * d + together;
        return static_cast<std::int64_t>(rounded(WHOLE_WEIGHT * share, 2 * static_cast<Int128>(d) * together));
    };
    const std::int64_t least = weight(0);  // the weight of most features if rows are wide
    for (std::int64_t j = 0; j < d; ++j) {
        const std::int64_t correlation = correlations[j];
        weights[j] = correlation == 0 ? least : weight(correlation);
    }
}

}  // namespace mlca::MLCA_LEVEL
