// The distance by the learned similarity: how unlike a row and a node are, by weighted differences of ranks.
//
// D = (sum of weight * (1 - exp(-difference^2 / (2 * .289^2)))) / (sum of weights). Where more than half of the nodes' entries
// are zero only features count in which row or node is not zero. Weights are whole numbers of 2^-50, about 1 in
// all, and so is each term; no sum exceeds 2^50 + 2^22. The quotient of the two sums is rounded to 10^-7 and a
// whole number again: the key by which nodes are compared. Small is near; of equals the older is nearer.
// Features that row or node lacks are left out of both sums; nominal ones differ by `apart` or not at all.
//
// It is a function of the nodes (see similarity/fit_similarity.hpp), recomputed now and then, and part of the model in between.
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

// After how many rows the similarity is recomputed, if it was after `rows`.
inline std::int64_t due_after(std::int64_t rows) { return rows < FIRST_ROWS ? rows + 1 : rows + rows / 4; }

// The two sums that D is the quotient of.
struct Parts {
    std::int64_t above = 0, below = 0;

    std::int64_t key() const {
        if (below == 0) return 0;
        return static_cast<std::int64_t>(nearest_whole(static_cast<double>(above) / static_cast<double>(below) * PER_KEY));
    }
    // If the key is within the limit, the sum above is within this: for searches that have bounds of sums.
    static double most_above(std::int64_t limit, std::int64_t below) noexcept {
        return static_cast<double>(below) * ((static_cast<double>(limit) + 1.0) / PER_KEY);
    }
};

class Learned {
public:
    explicit Learned(Ranks of_values) : ranks(std::move(of_values)) {}
    // Nothing is known yet: the state of another is put in, and `restore` called if it is sound.
    Learned() = default;

    std::int64_t n_features() const noexcept { return static_cast<std::int64_t>(weights.size()); }

    // Whether the state could be that of d features: any that passes is safe to use.
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

    // Fill in what follows from the state: n_knots, starts, knots, up_to of the ranks; sparse, has_background, weights;
    // starts, features, coefficients, means, centres, deviations of the background; traits.
    void restore() {
        ranks.restore(n_features());
        background.restore_lists(n_features() + traits.size());
        restore_sums();
    }
    // The same where ranks and background are as they should be.
    void restore_sums() {
        factors.assign(static_cast<std::size_t>(padded(n_features())), 0.0);
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
            if (nominal.data()[j]) nominal_features.push_back(static_cast<std::int32_t>(j));
        }
        n_numbers = n_features() - static_cast<std::int64_t>(nominal_features.size());
        far = static_cast<std::int64_t>(nearest_whole(PER_KEY * (1.0 - kernel(static_cast<double>(apart()), r))));
    }

    // The difference of ranks that is as large as any: 1 where all nodes are 0 or 1, else one whose kernel is 0.
    std::int32_t apart() const noexcept { return static_cast<std::int32_t>(ranks.n_knots == 0 ? BINARY_ONE : 4 * ranks.one()); }

    // What a feature weighs wherever there is a value, zero or not; and what an entry weighs more than a zero.
    std::int64_t weight_of_zero(std::int64_t feature) const noexcept { return !sparse || is_nominal(nominal, feature) ? weights.data()[feature] : 0; }
    std::int64_t weight_of_entry(std::int64_t feature) const noexcept { return weights.data()[feature] - weight_of_zero(feature); }

    // What a difference of ranks adds in a feature: at most its weight.
    std::int64_t term(std::int64_t feature, std::int32_t difference) const noexcept {
        return term_of(static_cast<double>(difference), factors.data()[feature], r);
    }

    // Ranks of dense rows are filled up to whole vectors; what is filled up weighs nothing.
    static std::int64_t padded(std::int64_t d) noexcept { return (d + 7) / 8 * 8; }

    // The key of a dense row and a dense node, both filled up, where all features count. A sum that is only near tells it, too,
    // unless D is next to the middle between two keys, once in 450 times: then exact terms decide. A term is wrong by no more than
    // NEAR_ERROR times its factor and by half a unit, as an exact one is: D by NEAR_ERROR and d units out of all. (Float64 adds
    // less than the second NEAR_ERROR of `certain_`.) Learning Scene, 10.6 microseconds a row instead of 14 on Zen 4.
    std::int64_t dense_key(const std::int32_t* x_ranks, const std::int32_t* y_ranks) const noexcept {
        const std::int64_t d = padded(n_features());
        const std::int64_t near = total - near_likeness(x_ranks, y_ranks, factors.data(), d, r * r);
        const double keys = static_cast<double>(near) / static_cast<double>(total) * PER_KEY, key = nearest_whole(keys);
        if (std::fabs(keys - key) < certain_) return static_cast<std::int64_t>(key);
        return Parts{sum_of_terms(x_ranks, y_ranks, factors.data(), d, r), total}.key();
    }

    // The same for a row without some of the values: `present` are the factors of the features that it has, 0 elsewhere, and weigh
    // `below` in all.
    std::int64_t dense_key_of_present(const std::int32_t* x_ranks, const std::int32_t* y_ranks, const double* present,
        std::int64_t below) const noexcept {
        return below == 0 ? far : Parts{sum_of_terms(x_ranks, y_ranks, present, padded(n_features()), r), below}.key();
    }

    Ranks ranks;
    bool sparse = false;            // more than half of the nodes' entries were zero
    bool has_background = false;    // there were 20 nodes and a label
    Array<std::int64_t> weights;
    Nominal nominal;                // given as a parameter, not learned
    NominalValues traits;
    Background background;
    Array<double> middles;          // each feature's mean rank, from the lowest; empty where most entries are zero or all are 0 or 1
    // These follow from the others.
    Array<double> factors;
    Array<std::int32_t> nominal_features;
    std::int64_t n_numbers = 0;     // features that are not nominal
    double centred_scale = 0.0;     // of ranks less their mean
    std::int64_t total = 0, nominal_total = 0;
    double r = 0.0;
    // The key of a row and a node that have nothing in common.
    std::int64_t far = 0;

    // What differences of ranks add in one feature, one by one.
    void terms(std::int64_t feature, const double* differences, std::int64_t n, std::int64_t* result) const noexcept {
        each_term(differences, n, factors.data()[feature], r, result);
    }

    // The sum of terms of differences of ranks that were gathered with the factors of their features.
    [[gnu::noinline]] static std::int64_t sum_of_gathered(const double* __restrict differences, const double* __restrict gathered_factors,
                                                          std::int64_t n, double r) noexcept {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += term_of(differences[i], gathered_factors[i], r);
        return sum;
    }

private:
    double certain_ = 0.0;  // so far from a whole number of keys a near sum may be

    // Adding 6 moves multiples of 2^-50 up to 2 into the low bits of the significand.
    [[gnu::always_inline]] static std::int64_t term_of(double difference, double factor, double r) noexcept {
        const double term = factor * (1.0 - kernel(difference, r));
        return std::bit_cast<std::int64_t>(6.0 + term) - std::bit_cast<std::int64_t>(6.0);
    }

    [[gnu::noinline]] static void each_term(const double* __restrict differences, std::int64_t n, double factor, double r,
                                            std::int64_t* __restrict result) noexcept {
        for (std::int64_t i = 0; i < n; ++i) result[i] = term_of(differences[i], factor, r);
    }

    // Differences are converted first: numbers of one width, else the loops that follow would not become vectors.
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

    // What the terms miss of the weights in all: sums of factor * kernel, which take a quarter less arithmetic than those of terms.
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

// A row that nodes are compared with: its entries in arrays over all features, for as long as it lives.
//
// Whole numbers can be taken away again without losing a bit: the row's sums against zeros are made once, and each node corrects
// them at its own entries. Entries may come in any order and be missing; none is zero.
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

    // The space must have room for all features.
    Probe(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, Space& space) noexcept
        : learned_(learned), keys_(keys), n_(n), space_(space), compared_(learned.n_features()) {
        alone_.below = learned.sparse ? learned.nominal_total : learned.total;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            space.values.data()[j] = values[p];
            if (is_missing(values[p])) {
                alone_.below -= learned.weight_of_zero(j);
                --compared_;
                continue;
            }
            const bool nominal = is_nominal(learned.nominal, j);
            const std::int32_t rank = nominal ? 0 : learned.ranks(j, values[p]);
            space.ranks.data()[j] = rank;
            space.terms.data()[j] = learned.term(j, nominal ? learned.apart() : rank);
            alone_.above += space.terms.data()[j];
            alone_.below += learned.weight_of_entry(j);
        }
    }
    ~Probe() {
        for (std::int64_t p = 0; p < n_; ++p) {
            space_.values.data()[keys_[p]] = 0.0;
            space_.ranks.data()[keys_[p]] = 0;
            space_.terms.data()[keys_[p]] = 0;
        }
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    // The sums with a node of zeros.
    const Parts& alone() const noexcept { return alone_; }

    // The key of a node of these entries; where they are numbers `ranks` are theirs.
    std::int64_t key(const std::int32_t* keys, const double* values, const std::int32_t* ranks, std::int64_t n) const noexcept {
        constexpr std::int64_t TOGETHER_SUMMED = 64;
        double differences[TOGETHER_SUMMED], factors[TOGETHER_SUMMED];
        Parts sums = alone_;
        std::int64_t compared = compared_, gathered = 0;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            const double x = space_.values.data()[j];
            if (is_missing(x)) continue;
            sums.above -= space_.terms.data()[j];
            if (is_missing(values[p])) {
                sums.below -= x != 0.0 ? learned_.weights.data()[j] : learned_.weight_of_zero(j);
                --compared;
                continue;
            }
            if (x == 0.0) sums.below += learned_.weight_of_entry(j);
            if (is_nominal(learned_.nominal, j)) {
                sums.above += x == values[p] ? 0 : learned_.term(j, learned_.apart());
                continue;
            }
            differences[gathered] = static_cast<double>(space_.ranks.data()[j] - ranks[p]);
            factors[gathered] = learned_.factors.data()[j];
            if (++gathered < TOGETHER_SUMMED) continue;
            sums.above += Learned::sum_of_gathered(differences, factors, gathered, learned_.r);
            gathered = 0;
        }
        sums.above += Learned::sum_of_gathered(differences, factors, gathered, learned_.r);
        // Rows of zeros are equal; rows that share no feature have nothing in common.
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
