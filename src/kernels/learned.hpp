// The distance by the learned similarity: how unlike an instance and a node are, by weighted differences of ranks.
//
// D = (sum of weight * (1 - exp(-difference^2 / (2 * .289^2)))) / (sum of weights). Where more than half of the nodes' entries
// are zero only attributes count in which instance or node is not zero. Weights are whole numbers of 2^-50, about 1 in
// all, and so is each term; no sum exceeds 2^50 + 2^22. The quotient of the two sums is rounded to 10^-7 and a
// whole number again: the key by which nodes are compared. Small is near; of equals the older is nearer.
//
// It is a function of the nodes (see weighing.hpp), computed anew now and then, and part of the model in between.
#pragma once

#include <cstdint>

#include "background.hpp"
#include "mixed.hpp"
#include "ranks.hpp"
#include "strongest.hpp"
#include "traits.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double WIDTH = 0.289;
inline constexpr double PER_KEY = 1e7;
inline constexpr std::int64_t FIRST_ROWS = 50;

// After how many rows the similarity is computed anew, if it was after `rows`.
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

    std::int64_t n_attributes() const noexcept { return static_cast<std::int64_t>(weights.size()); }

    // Whether the state could be that of d attributes: whatever passes can be computed with.
    bool is_sound(std::int64_t d) const noexcept {
        if (n_attributes() != d || !ranks.is_sound(d) || !traits.is_sound(d) || !background.is_sound(d + traits.size())) return false;
        if (has_background == background.centres.empty()) return false;
        std::int64_t together = 0;
        for (const std::int64_t weight : weights) {
            if (weight <= 0 || weight > WHOLE_WEIGHT || (together += weight) > WHOLE_WEIGHT + d) return false;
        }
        return true;
    }

    // Fill in what follows from the state: n_knots, starts, knots, up_to of the ranks; sparse, has_background, weights;
    // starts, attributes, coefficients, means, centres, deviations of the background; traits.
    void restore() {
        ranks.restore(n_attributes());
        background.restore_lists(n_attributes() + traits.size());
        restore_sums();
    }
    // The same where ranks and background are as they should be.
    void restore_sums() {
        factors.assign(static_cast<std::size_t>(padded(n_attributes())), 0.0);
        total = 0;
        for (std::size_t j = 0; j < weights.size(); ++j) {
            factors[j] = static_cast<double>(weights[j]) * 0x1p-50;
            total += weights[j];
        }
        certain_ = 0.5 - PER_KEY * (2.0 * NEAR_ERROR + 2.0 * static_cast<double>(n_attributes()) / static_cast<double>(total));
        r = SCALE / WIDTH / static_cast<double>(ranks.one());
        far = static_cast<std::int64_t>(nearest_whole(PER_KEY * (1.0 - kernel(static_cast<double>(apart()), r))));
    }

    // The difference of ranks that is as large as any: 1 where all nodes are 0 or 1, else one whose kernel is 0.
    std::int32_t apart() const noexcept { return static_cast<std::int32_t>(ranks.n_knots == 0 ? BINARY_ONE : 4 * ranks.one()); }

    // What a difference of ranks adds in an attribute: at most its weight.
    std::int64_t term(std::int64_t attribute, std::int32_t difference) const noexcept {
        return term_of(static_cast<double>(difference), factors.data()[attribute], r);
    }

    // Ranks of dense rows are filled up to whole vectors; what is filled up weighs nothing.
    static std::int64_t padded(std::int64_t d) noexcept { return (d + 7) / 8 * 8; }

    // The key of a dense instance and a dense node, both filled up, where all attributes count. A sum that is only near tells it, too,
    // unless D is next to the middle between two keys, once in 450 times: then exact terms decide. A term is wrong by no more than
    // NEAR_ERROR times its factor and by half a unit, as an exact one is: D by NEAR_ERROR and d units out of all. (Float64 adds
    // less than the second NEAR_ERROR of `certain_`.) Learning Scene, 10.6 microseconds a row instead of 14 on Zen 4.
    std::int64_t dense_key(const std::int32_t* x_ranks, const std::int32_t* y_ranks) const noexcept {
        const std::int64_t d = padded(n_attributes());
        const std::int64_t near = total - near_likeness(x_ranks, y_ranks, factors.data(), d, r * r);
        const double keys = static_cast<double>(near) / static_cast<double>(total) * PER_KEY, key = nearest_whole(keys);
        if (std::fabs(keys - key) < certain_) return static_cast<std::int64_t>(key);
        return Parts{sum_of_terms(x_ranks, y_ranks, factors.data(), d, r), total}.key();
    }

    Ranks ranks;
    bool sparse = false;            // more than half of the nodes' entries were zero
    bool has_background = false;    // there were 20 nodes and a label
    Array<std::int64_t> weights;
    Nominal nominal;                // told, not learned
    Traits traits;
    Background background;
    // These follow from the others.
    Array<double> factors;
    std::int64_t total = 0;
    double r = 0.0;
    // The key of an instance and a node that have nothing in common.
    std::int64_t far = 0;

    // What differences of ranks add in one attribute, one by one.
    void terms(std::int64_t attribute, const double* differences, std::int64_t n, std::int64_t* result) const noexcept {
        each_term(differences, n, factors.data()[attribute], r, result);
    }

    // The sum of terms of differences of ranks that were gathered with the factors of their attributes.
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

// A sparse instance that nodes are compared with: its entries in arrays over all attributes, for as long as it lives.
//
// Whole numbers can be taken away again without losing a bit: the instance's sum against zeros is made once, and each node
// corrects it at its own entries. Entries may come in any order; none is zero.
class SparseProbe {
public:
    // Arrays over all attributes, zero between uses.
    struct Space {
        Array<std::int32_t> ranks;
        Array<std::int64_t> terms;
        Array<std::uint8_t> present;

        void reserve(std::int64_t d) {
            grow_to(ranks, d);
            grow_to(terms, d);
            grow_to(present, d);
        }
    };

    // The space must have room for all attributes.
    SparseProbe(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, Space& space) noexcept
        : learned_(learned), keys_(keys), n_(n), space_(space) {
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p], rank = learned.ranks(j, values[p]);
            const std::int64_t term = learned.term(j, rank);
            space.ranks.data()[j] = rank;
            space.terms.data()[j] = term;
            space.present.data()[j] = 1;
            alone_.above += term;
            alone_.below += learned.weights.data()[j];
        }
    }
    ~SparseProbe() {
        for (std::int64_t p = 0; p < n_; ++p) {
            space_.ranks.data()[keys_[p]] = 0;
            space_.terms.data()[keys_[p]] = 0;
            space_.present.data()[keys_[p]] = 0;
        }
    }
    SparseProbe(const SparseProbe&) = delete;
    SparseProbe& operator=(const SparseProbe&) = delete;

    // The sums with a node of zeros.
    const Parts& alone() const noexcept { return alone_; }

    // The sums with a node of these entries, given by their ranks.
    Parts parts(const std::int32_t* keys, const std::int32_t* ranks, std::int64_t n) const noexcept {
        Parts sums = alone_;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            sums.above += learned_.term(j, space_.ranks.data()[j] - ranks[p]) - space_.terms.data()[j];
            sums.below += space_.present.data()[j] ? 0 : learned_.weights.data()[j];
        }
        if (!learned_.sparse) sums.below = learned_.total;
        return sums;
    }

private:
    const Learned& learned_;
    const std::int32_t* keys_;
    std::int64_t n_;
    Space& space_;
    Parts alone_;
};

}  // namespace mlca::MLCA_LEVEL
