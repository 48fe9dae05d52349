// Settings of the algorithm, in the form that the inner loops use. This is the only place where parameters become
// thresholds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/fixed_point.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

// Rule by which nodes move: that of the code behind the paper's tables, of the released code, or of the printed
// equations.
enum class Rule { published, released, text };

// Whether neighbours vote with their label counts or with the share of their rows that have the label.
enum class Vote { counts, frequencies };

// The largest number of voters of a calibrated decision, plus one.
inline constexpr std::int64_t MOST_LISTED = 101;

struct Settings {
    Mode mode;
    Rule rule;
    Vote vote;
    std::int64_t n_features;
    std::int64_t n_neighbors;
    std::int64_t window;
    double vigilance;
    double smoothing;
    std::int64_t screen_from;  // with fewer nodes than this, screening does not pay off
    // Options beyond the paper.
    bool learned = false;          // voters are chosen by the learned similarity, not by correntropy
    bool calibrated = false;       // votes become probabilities by calibration, not by Bayes' rule
    bool mixes = false;            // linear models and calibrated votes are mixed; implies `calibrated`
    bool recency = false;
    bool follows_drift = false;
    std::int64_t max_nodes = 0;    // 0: unbounded
    CellLimits cells;              // for searches by the learned similarity
    bool incomplete = false;       // values may be missing, or features nominal
    Nominal nominal;

    // Whether the vigilance is determined from the first window; until then it is negative.
    bool finds_vigilance() const noexcept { return vigilance < 0.0; }
    // Number of nearest nodes that a search by correntropy lists.
    std::int64_t n_listed() const noexcept {
        return calibrated && !learned ? std::max(n_neighbors, MOST_LISTED) : n_neighbors;
    }

    // Whether learning lists only nodes within the vigilance, because the learned similarity finds the voters.
    bool lists_only_within_vigilance() const noexcept { return learned && rule != Rule::text; }

    std::int64_t n_bins() const noexcept { return n_neighbors + 1; }
    std::int64_t bandwidth_width() const noexcept { return mode == Mode::common ? 1 : n_features; }

    // The threshold of the vigilance test, in fixed-point units. In MLCA-I (V d) and in MLCA-C (V times the number of
    // groups) it is rounded down. Sums are whole units, so rounding down changes no comparison.
    std::int64_t threshold(const Grouping& grouping) const noexcept {
        if (mode == Mode::common) return common_threshold(n_features);
        const std::int64_t n = mode == Mode::individual ? n_features : grouping.n_groups;
        return static_cast<std::int64_t>(std::floor(vigilance * static_cast<double>(n) * PER_UNIT));
    }

    // The threshold V^2 d, rounded to whole units; with d = 1, the threshold that separates groups of features.
    std::int64_t common_threshold(std::int64_t d) const noexcept {
        return static_cast<std::int64_t>(std::nearbyint(vigilance * vigilance * static_cast<double>(d) * PER_UNIT));
    }

    // Factor by which the second nearest node moves more slowly than the winner.
    std::int64_t second_slowing() const noexcept { return rule == Rule::released ? 10 : n_neighbors; }
};

}  // namespace mlca::MLCA_LEVEL
