// The background: one linear score per label, used for the many labels that no voter has.
//
// A label's score is the sum of coefficient * rank over its strongest features, centred to a mean of zero. Divided by
// its standard deviation over the nodes, it shifts the label's prior. Coefficients are integers in a unit specific to
// the label; their magnitudes sum to less than 2^31 and ranks are within 2^30, so a score stays below 2^62. A missing
// value counts as the mean of the present values, whose contribution is stored with the coefficient.
//
// "Features" are those of the input rows, followed by the values of nominal features (nodes/missing_and_nominal.hpp).
#pragma once

#include <cstdint>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class Background {
public:
    std::int64_t n_slots() const noexcept { return centres.size(); }

    // Build the lists of coefficients by feature from the coefficients by slot.
    void restore_lists(std::int64_t d) {
        list_starts.assign(d + 2, 0);
        list_slots.resize(features.size());
        list_coefficients.resize(features.size());
        list_means.resize(features.size());
        for (const std::int32_t j : features) ++list_starts[j + 2];
        // While the lists are filled, list_starts[j + 1] is the current end of list j; afterwards it is the start of
        // the next.
        for (std::int64_t j = 0; j < d; ++j) list_starts[j + 2] += list_starts[j + 1];
        for (std::int64_t slot = 0; slot < n_slots(); ++slot) {
            for (std::int64_t p = starts[slot]; p < starts[slot + 1]; ++p) {
                const std::int64_t place = list_starts[features[p] + 1]++;
                list_slots[place] = static_cast<std::int32_t>(slot);
                list_coefficients[place] = coefficients[p];
                list_means[place] = means[p];
            }
        }
        list_starts.pop_back();
    }

    // Whether the restored background is valid for d features, so that using it is memory-safe.
    bool is_sound(std::int64_t d) const noexcept {
        const std::int64_t n = n_slots();
        const std::int64_t n_coefficients = coefficients.size();
        if (static_cast<std::int64_t>(means.size()) != n_coefficients) return false;
        if (n == 0) return starts.empty() && features.empty() && coefficients.empty() && deviations.empty();
        if (static_cast<std::int64_t>(starts.size()) != n + 1 || static_cast<std::int64_t>(deviations.size()) != n) return false;
        if (static_cast<std::int64_t>(features.size()) != n_coefficients || starts.front() != 0 || starts.back() != n_coefficients) return false;
        for (std::int64_t slot = 0; slot < n; ++slot) {
            const std::int64_t start = starts[slot], end = starts[slot + 1];
            const double deviation = deviations[slot];
            // A deviation is 0, or the root of a sum of squares >= 1 divided by at most 2^40 rows, in units of 2^22.
            if (end < start || end > n_coefficients || !(deviation == 0.0 || (deviation >= 1.0 && deviation < 0x1p80))) return false;
            std::int64_t together = 0, mean = 0;
            for (std::int64_t p = start; p < end; ++p) {
                const std::int64_t j = features[p], coefficient = coefficients[p];
                if (j < 0 || j >= d || (p > start && features[p - 1] >= j)) return false;
                together += coefficient < 0 ? -coefficient : coefficient;
                if (means[p] < -(std::int64_t{1} << 61) || means[p] > std::int64_t{1} << 61) return false;
                mean += means[p] < 0 ? -means[p] : means[p];
                if (mean > std::int64_t{1} << 61) return false;
            }
            const std::int64_t centre = centres[slot];
            if (together >= std::int64_t{1} << 31 || centre >= MOST_CENTRE || centre <= -MOST_CENTRE) return false;
        }
        return true;
    }

    // Initialise the scores of a row.
    void begin(std::int64_t* scores) const noexcept {
        for (std::int64_t slot = 0; slot < n_slots(); ++slot) scores[slot] = -centres[slot];
    }
    // Add the contribution of one entry of the row. Entries may come in any order; zeros may be omitted.
    void add(std::int64_t* scores, std::int64_t feature, std::int32_t rank) const noexcept {
        for (std::int64_t p = list_starts[feature]; p < list_starts[feature + 1]; ++p) {
            scores[list_slots[p]] += static_cast<std::int64_t>(list_coefficients[p]) * rank;
        }
    }
    // Add the mean contribution of a feature, for a row in which it is missing.
    void add_missing(std::int64_t* scores, std::int64_t feature) const noexcept {
        for (std::int64_t p = list_starts[feature]; p < list_starts[feature + 1]; ++p) {
            scores[list_slots[p]] += list_means[p];
        }
    }
    // The amount by which a score shifts its label's prior; 0 for labels that appeared after the background was
    // computed, and for scores that do not vary.
    double shift(const std::int64_t* scores, std::int64_t slot) const noexcept {
        return slot < n_slots() && deviations[slot] > 0.0 ? static_cast<double>(scores[slot]) / deviations[slot] : 0.0;
    }
    double probability(const std::int64_t* scores, std::int64_t slot, double prior) const noexcept {
        return shifted(odds(prior), shift(scores, slot));
    }

    // Blend a probability with the background's.
    [[gnu::always_inline]] static double blended(double p, double background) noexcept { return 0.9 * p + 0.1 * background; }
    // Blend the probabilities of n labels with the background's.
    [[gnu::noinline]] static void blend(double* __restrict p, const double* __restrict priors, const double* __restrict shifts,
        std::int64_t n) noexcept {
        for (std::int64_t k = 0; k < n; ++k) p[k] = blended(p[k], shifted(odds(priors[k]), shifts[k]));
    }

    Array<std::int64_t> starts;         // where the coefficients of each slot start
    Array<std::int32_t> features;
    Array<std::int32_t> coefficients;
    Array<std::int64_t> means;          // per coefficient: its mean contribution
    Array<std::int64_t> centres;        // per slot: the mean score over the nodes' rows
    Array<double> deviations;           // per slot: standard deviation of the score; 0 if there is no score
    // Derived from the members above: the coefficients sorted by feature.
    Array<std::int64_t> list_starts;
    Array<std::int32_t> list_slots, list_coefficients;
    Array<std::int64_t> list_means;

private:
    static constexpr std::int64_t MOST_CENTRE = std::int64_t{1} << 62;
};

}  // namespace mlca::MLCA_LEVEL
