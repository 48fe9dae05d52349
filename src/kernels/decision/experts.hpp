// Experts whose probabilities are mixed: those that were right weigh more, and none is ever given up.
//
// Losses are added over the labels in whole numbers of 2^-32, so the order of labels does not matter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class Pool {
public:
    static constexpr std::int64_t MOST_EXPERTS = 8;

    explicit Pool(std::int64_t experts) : n_experts(experts) {
        log_weights[0] = ln(0.9);
        for (std::int64_t e = 1; e < n_experts; ++e) log_weights[e] = ln(0.1 / static_cast<double>(n_experts - 1));
        refresh();
    }

    double mix(const double* opinions) const noexcept {
        double total = 0.0;
        for (std::int64_t e = 0; e < n_experts; ++e) total += weights[e] * opinions[e];
        return total;
    }

    // Begin a row; then hear what the experts said of each label; then learn.
    void begin() noexcept { std::fill_n(losses_, MOST_EXPERTS, 0); }
    void hear(const double* opinions, bool has_label) noexcept {
        for (std::int64_t e = 0; e < n_experts; ++e) {
            const double p = clipped(opinions[e], 1e-3);
            losses_[e] += static_cast<std::int64_t>(nearest_whole(ln(has_label ? p : 1.0 - p) * 0x1p32));
        }
    }
    void learn() noexcept {
        for (std::int64_t e = 0; e < n_experts; ++e) {
            log_weights[e] = ln(weights[e]) + 0.5 * (static_cast<double>(losses_[e]) / 0x1p32);
        }
        refresh();
    }

    // Fill in the weights, which follow from their logarithms.
    void refresh() noexcept {
        double top = log_weights[0], together = 0.0;
        for (std::int64_t e = 1; e < n_experts; ++e) top = std::max(top, log_weights[e]);
        for (std::int64_t e = 0; e < n_experts; ++e) {
            weights[e] = exp_of_minus(top - log_weights[e]);
            together += weights[e];
        }
        for (std::int64_t e = 0; e < n_experts; ++e) {
            weights[e] = 0.999 * weights[e] / together + 0.001 / static_cast<double>(n_experts);
        }
    }

    // Whether the logarithms could have been learned: whatever passes can be computed with.
    bool is_sound() const noexcept {
        return std::all_of(log_weights, log_weights + n_experts, [](double w) { return w <= 0.0 && w >= -1e15; });
    }

    std::int64_t n_experts;
    double log_weights[MOST_EXPERTS] = {};  // before they are made to add up to one
    double weights[MOST_EXPERTS] = {};

private:
    std::int64_t losses_[MOST_EXPERTS] = {};
};

}  // namespace mlca::MLCA_LEVEL
