// The distance under the learned similarity: a weighted mean over features, based on differences of ranks.
//
// D = (sum of weight * (1 - exp(-difference^2 / (2 * 0.289^2)))) / (sum of weights). If more than half of the nodes'
// entries are zero, only features that are non-zero in the row or the node count. Weights are integers in units of
// 2^-50 and sum to about 1. Terms are rounded to the same unit, so no sum exceeds 2^50 + 2^22 units. The quotient of
// the two sums, rounded to an integer in units of 10^-7, is the *key* by which nodes are compared. A smaller key means
// nearer; ties go to the older node. Features that are missing in the row or the node are left out of both sums;
// nominal features differ by `apart` or not at all.
//
// The similarity is a function of the nodes (similarity/fit_similarity.hpp). It is recomputed periodically, and is
// stored in the model between these times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "similarity/background.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "similarity/ranks.hpp"
#include "similarity/feature_weights.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double WIDTH = 0.289;
inline constexpr double PER_KEY = 1e7;
inline constexpr std::int64_t FIRST_ROWS = 50;

// Number of rows after which the similarity is next recomputed, if it was last recomputed after `rows` rows.
inline std::int64_t due_after(std::int64_t rows) { return rows < FIRST_ROWS ? rows + 1 : rows + rows / 4; }

// Numerator (`above`) and denominator (`below`) of D.
struct Parts {
    std::int64_t above = 0, below = 0;

    std::int64_t key() const {
        if (below == 0) return 0;
        return static_cast<std::int64_t>(nearest_whole(static_cast<double>(above) / static_cast<double>(below) * PER_KEY));
    }
    // An upper bound on the numerators whose keys are within the limit, so that a search can skip nodes without
    // computing keys.
    static double most_above(std::int64_t limit, std::int64_t below) noexcept {
        return static_cast<double>(below) * ((static_cast<double>(limit) + 1.0) / PER_KEY);
    }
};

class Learned {
public:
    explicit Learned(Ranks of_values) : ranks(std::move(of_values)) {}
    // An empty object, to be filled with a state and completed by `restore` if the state is valid.
    Learned() = default;

    std::int64_t n_features() const noexcept { return weights.size(); }

    // Whether the state is valid for d features, so that using it is memory-safe.
    bool is_sound(std::int64_t d) const noexcept {
        if (n_features() != d || !ranks.is_sound(d) || !traits.is_sound(d) || !background.is_sound(d + traits.size())) return false;
        if (has_background == background.centres.empty()) return false;
        const auto possible = [this](double middle) { return middle >= 0.0 && middle <= static_cast<double>(ranks.one()); };
        if (!std::all_of(middles.begin(), middles.end(), possible)) return false;
        std::int64_t together = 0;
        for (const std::int64_t weight : weights) {
            if (weight <= 0 || weight > WHOLE_WEIGHT || (together += weight) > WHOLE_WEIGHT + d) return false;
        }
        return true;
    }

    // Compute the derived members. The state consists of n_knots, starts, knots and up_to of the ranks; sparse,
    // has_background, weights, traits and middles; and starts, features, coefficients, means, centres and deviations of
    // the background.
    void restore() {
        ranks.restore(n_features());
        background.restore_lists(n_features() + traits.size());
        restore_sums();
    }
    // Compute the derived members, given ranks and background that are already complete.
    void restore_sums() {
        factors.assign(padded(n_features()), 0.0);
        total = nominal_total = 0;
        for (std::size_t j = 0; j < weights.size(); ++j) {
            factors[j] = static_cast<double>(weights[j]) * 0x1p-50;
            total += weights[j];
            nominal_total += is_nominal(nominal, static_cast<std::int64_t>(j)) ? weights[j] : 0;
        }
        certain_ = 0.5 - PER_KEY * (2.0 * NEAR_ERROR + 2.0 * static_cast<double>(n_features()) / static_cast<double>(total));
        r = SCALE / WIDTH / static_cast<double>(ranks.one());
        centred_scale = 1.0 / (WIDTH * static_cast<double>(ranks.one()));
        nominal_features.clear();
        for (std::int64_t j = 0; j < static_cast<std::int64_t>(nominal.size()); ++j) {
            if (nominal[j]) nominal_features.push_back(static_cast<std::int32_t>(j));
        }
        n_numbers = n_features() - static_cast<std::int64_t>(nominal_features.size());
        far = static_cast<std::int64_t>(nearest_whole(PER_KEY * (1.0 - kernel(static_cast<double>(apart()), r))));
    }

    // The rank difference between two different categories: that of 0 and 1 if all nodes are 0 or 1, otherwise one that
    // is so large that its kernel is practically 0.
    std::int32_t apart() const noexcept { return static_cast<std::int32_t>(ranks.n_knots == 0 ? BINARY_ONE : 4 * ranks.one()); }

    // The weight of a feature that is zero in both row and node, and the additional weight if it is non-zero in either.
    std::int64_t weight_of_zero(std::int64_t feature) const noexcept { return !sparse || is_nominal(nominal, feature) ? weights[feature] : 0; }
    std::int64_t weight_of_entry(std::int64_t feature) const noexcept { return weights[feature] - weight_of_zero(feature); }

    // The contribution of a rank difference in a feature to the numerator of D; at most the feature's weight.
    std::int64_t term(std::int64_t feature, std::int32_t difference) const noexcept {
        return term_of(static_cast<double>(difference), factors[feature], r);
    }

    // The number of ranks of a dense row, which are padded to whole vectors; the padding has weight 0.
    static std::int64_t padded(std::int64_t d) noexcept { return (d + 7) / 8 * 8; }

    // The key of a dense row and a dense node, both padded, if all features count. An approximate sum gives the same
    // key as exact terms, unless D is close to the midpoint between two keys (in about one of 450 comparisons); then
    // exact terms are used. The error of an approximate term is at most NEAR_ERROR times its factor plus half a unit,
    // that of an exact term half a unit, so the error of D is at most NEAR_ERROR plus d units divided by the total.
    // (Rounding in float64 adds less than the second NEAR_ERROR in `certain_`.)
    std::int64_t dense_key(const std::int32_t* x_ranks, const std::int32_t* y_ranks) const noexcept {
        const std::int64_t d = padded(n_features());
        const std::int64_t near = total - near_likeness(x_ranks, y_ranks, factors.data(), d, r * r);
        const double keys = static_cast<double>(near) / static_cast<double>(total) * PER_KEY, key = nearest_whole(keys);
        if (std::fabs(keys - key) < certain_) return static_cast<std::int64_t>(key);
        return Parts{sum_of_terms(x_ranks, y_ranks, factors.data(), d, r), total}.key();
    }

    // The key of a dense row with missing values: `present` holds the factors of the features that the row has, and 0
    // elsewhere. The weights of these features sum to `below`.
    std::int64_t dense_key_of_present(const std::int32_t* x_ranks, const std::int32_t* y_ranks, const double* present,
        std::int64_t below) const noexcept {
        return below == 0 ? far : Parts{sum_of_terms(x_ranks, y_ranks, present, padded(n_features()), r), below}.key();
    }

    Ranks ranks;
    bool sparse = false;            // more than half of the nodes' entries are zero
    bool has_background = false;    // there are at least 20 nodes and a label
    Array<std::int64_t> weights;
    Nominal nominal;                // a parameter, not learned
    NominalValues traits;
    Background background;
    // Per feature: mean rank, counted from the lowest; empty if most entries are zero or all are 0 or 1.
    Array<double> middles;
    // The members below are derived from those above.
    Array<double> factors;
    Array<std::int32_t> nominal_features;
    std::int64_t n_numbers = 0;     // number of features that are not nominal
    double centred_scale = 0.0;     // factor by which ranks minus their mean are scaled
    std::int64_t total = 0, nominal_total = 0;
    double r = 0.0;
    // The key of a row and a node if no feature is present in both.
    std::int64_t far = 0;

    // The contributions of several rank differences in one feature to the numerator of D.
    void terms(std::int64_t feature, const double* differences, std::int64_t n, std::int64_t* result) const noexcept {
        each_term(differences, n, factors[feature], r, result);
    }

    // The sum of the terms of gathered rank differences, given the factors of their features.
    [[gnu::noinline]] static std::int64_t sum_of_gathered(const double* __restrict differences, const double* __restrict gathered_factors,
                                                          std::int64_t n, double r) noexcept {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += term_of(differences[i], gathered_factors[i], r);
        return sum;
    }

private:
    double certain_ = 0.0;  // largest distance from an integer at which an approximate key is used

    // Adding 6 rounds a number of at most 2 to a multiple of 2^-50, and moves it into the low bits of the significand.
    [[gnu::always_inline]] static std::int64_t term_of(double difference, double factor, double r) noexcept {
        const double term = factor * (1.0 - kernel(difference, r));
        return std::bit_cast<std::int64_t>(6.0 + term) - std::bit_cast<std::int64_t>(6.0);
    }

    [[gnu::noinline]] static void each_term(const double* __restrict differences, std::int64_t n, double factor, double r,
                                            std::int64_t* __restrict result) noexcept {
        for (std::int64_t i = 0; i < n; ++i) result[i] = term_of(differences[i], factor, r);
    }

    // Differences are converted in a separate loop, so that each loop uses numbers of one width and can be vectorised.
    static constexpr std::int64_t TOGETHER_CONVERTED = 512;

    [[gnu::noinline]] static std::int64_t sum_of_terms(const std::int32_t* __restrict x, const std::int32_t* __restrict y,
                                                       const double* __restrict factors, std::int64_t d, double r) noexcept {
        double differences[TOGETHER_CONVERTED];
        std::int64_t sum = 0;
        for (std::int64_t first = 0; first < d; first += TOGETHER_CONVERTED) {
            const std::int64_t n = std::min(TOGETHER_CONVERTED, d - first);
            for (std::int64_t i = 0; i < n; ++i) differences[i] = static_cast<double>(x[first + i] - y[first + i]);
            for (std::int64_t i = 0; i < n; ++i) sum += term_of(differences[i], factors[first + i], r);
        }
        return sum;
    }

    // The approximate sum of factor * kernel over the features, which equals the total weight minus the sum of terms.
    // It takes a quarter less arithmetic than the sum of terms.
    [[gnu::noinline]] static std::int64_t near_likeness(const std::int32_t* __restrict x, const std::int32_t* __restrict y,
                                                        const double* __restrict factors, std::int64_t d, double r_squared) noexcept {
        double differences[TOGETHER_CONVERTED];
        const double farthest = LARGEST_EXPONENT / r_squared;
        std::int64_t sum = 0;
        for (std::int64_t first = 0; first < d; first += TOGETHER_CONVERTED) {
            const std::int64_t n = std::min(TOGETHER_CONVERTED, d - first);
            for (std::int64_t i = 0; i < n; ++i) differences[i] = static_cast<double>(x[first + i] - y[first + i]);
            for (std::int64_t i = 0; i < n; ++i) {
                const double square = differences[i] * differences[i];
                const double likeness = near_power_of_half(square < farthest ? square : farthest, r_squared);
                sum += std::bit_cast<std::int64_t>(std::fma(factors[first + i], likeness, 6.0)) - std::bit_cast<std::int64_t>(6.0);
            }
        }
        return sum;
    }
};

// A row that is compared with nodes; its entries are scattered into arrays over all features for the lifetime of the
// object.
//
// Terms are integers, so they can be subtracted exactly. The row's sums with a node of zeros are computed once; for
// each node, they are corrected at the node's entries. Entries may be in any order and may be missing values, but must
// not be zero.
class Probe {
public:
    // Arrays over all features, zero between uses.
    struct Space {
        Array<double> values;
        Array<std::int32_t> ranks;
        Array<std::int64_t> terms;

        void reserve(std::int64_t d) {
            grow_to(values, d);
            grow_to(ranks, d);
            grow_to(terms, d);
        }
    };

    // Scatter the row and compute its sums with a node of zeros. The space must have room for all features.
    Probe(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, Space& space) noexcept
        : learned_(learned), keys_(keys), n_(n), space_(space), compared_(learned.n_features()) {
        alone_.below = learned.sparse ? learned.nominal_total : learned.total;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            space.values[j] = values[p];
            if (is_missing(values[p])) {
                alone_.below -= learned.weight_of_zero(j);
                --compared_;
                continue;
            }
            const bool nominal = is_nominal(learned.nominal, j);
            const std::int32_t rank = nominal ? 0 : learned.ranks(j, values[p]);
            space.ranks[j] = rank;
            space.terms[j] = learned.term(j, nominal ? learned.apart() : rank);
            alone_.above += space.terms[j];
            alone_.below += learned.weight_of_entry(j);
        }
    }
    ~Probe() {
        for (std::int64_t p = 0; p < n_; ++p) {
            space_.values[keys_[p]] = 0.0;
            space_.ranks[keys_[p]] = 0;
            space_.terms[keys_[p]] = 0;
        }
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    // The sums of the row with a node of zeros.
    const Parts& alone() const noexcept { return alone_; }

    // The key of the row and a node with the given entries; `ranks` holds one rank per entry, which is used if the
    // entry is a number.
    std::int64_t key(const std::int32_t* keys, const double* values, const std::int32_t* ranks, std::int64_t n) const noexcept {
        constexpr std::int64_t TOGETHER_SUMMED = 64;
        double differences[TOGETHER_SUMMED], factors[TOGETHER_SUMMED];
        Parts sums = alone_;
        std::int64_t compared = compared_, gathered = 0;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            const double x = space_.values[j];
            if (is_missing(x)) continue;
            sums.above -= space_.terms[j];
            if (is_missing(values[p])) {
                sums.below -= x != 0.0 ? learned_.weights[j] : learned_.weight_of_zero(j);
                --compared;
                continue;
            }
            if (x == 0.0) sums.below += learned_.weight_of_entry(j);
            if (is_nominal(learned_.nominal, j)) {
                sums.above += x == values[p] ? 0 : learned_.term(j, learned_.apart());
                continue;
            }
            differences[gathered] = static_cast<double>(space_.ranks[j] - ranks[p]);
            factors[gathered] = learned_.factors[j];
            if (++gathered < TOGETHER_SUMMED) continue;
            sums.above += Learned::sum_of_gathered(differences, factors, gathered, learned_.r);
            gathered = 0;
        }
        sums.above += Learned::sum_of_gathered(differences, factors, gathered, learned_.r);
        // If no feature is present in both row and node, they count as maximally different. Two rows of zeros are
        // equal.
        if (sums.below == 0 && compared == 0) return learned_.far;
        return sums.key();
    }

private:
    const Learned& learned_;
    const std::int32_t* keys_;
    std::int64_t n_;
    Space& space_;
    Parts alone_;
    std::int64_t compared_;
};

}  // namespace mlca::MLCA_LEVEL
