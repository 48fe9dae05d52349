// An instance of mixed rows that nodes are compared with by the learned similarity.
//
// As in SparseProbe the instance's sums against zeros are made once, and each node corrects them at its own entries: here also
// where either has a gap, and where categories are compared.
#pragma once

#include <cstdint>

#include "learned.hpp"
#include "memory.hpp"
#include "mixed.hpp"

namespace mlca::MLCA_LEVEL {

class MixedProbe {
public:
    // Arrays over all attributes, zero between uses.
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

    // The space must have room for all attributes. Entries may come in any order; none is zero. `nominal_weight` is that of all
    // nominal attributes together.
    MixedProbe(const Learned& learned, std::int64_t nominal_weight, const std::int32_t* keys, const double* values, std::int64_t n, Space& space) noexcept
        : learned_(learned), keys_(keys), n_(n), space_(space), compared_(learned.n_attributes()) {
        alone_.below = learned.sparse ? nominal_weight : learned.total;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            const std::int64_t weight = learned.weights.data()[j];
            space.values.data()[j] = values[p];
            if (is_missing(values[p])) {
                alone_.below -= always_counts(j) ? weight : 0;
                --compared_;
                continue;
            }
            space.ranks.data()[j] = is_nominal(learned.nominal, j) ? 0 : learned.ranks(j, values[p]);
            space.terms.data()[j] = learned.term(j, is_nominal(learned.nominal, j) ? learned.apart() : space.ranks.data()[j]);
            alone_.above += space.terms.data()[j];
            alone_.below += always_counts(j) ? 0 : weight;
        }
    }
    ~MixedProbe() {
        for (std::int64_t p = 0; p < n_; ++p) {
            space_.values.data()[keys_[p]] = 0.0;
            space_.ranks.data()[keys_[p]] = 0;
            space_.terms.data()[keys_[p]] = 0;
        }
    }
    MixedProbe(const MixedProbe&) = delete;
    MixedProbe& operator=(const MixedProbe&) = delete;

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
                sums.below -= always_counts(j) || x != 0.0 ? learned_.weights.data()[j] : 0;
                --compared;
                continue;
            }
            if (!always_counts(j) && x == 0.0) sums.below += learned_.weights.data()[j];
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
        // Rows of zeros are equal; rows that share no attribute have nothing in common.
        if (sums.below == 0 && compared == 0) return learned_.far;
        return sums.key();
    }

private:
    // Whether an attribute counts wherever there is a value, zero or not.
    bool always_counts(std::int32_t j) const noexcept { return !learned_.sparse || is_nominal(learned_.nominal, j); }

    const Learned& learned_;
    const std::int32_t* keys_;
    std::int64_t n_;
    Space& space_;
    Parts alone_;
    std::int64_t compared_;
};

// Add what a row says to the background's scores, for entries in any order; a nominal attribute that is not among them has the
// category 0, which the caller names as an entry.
inline void add_to_scores(const Learned& learned, std::int64_t attribute, double value, std::int64_t* scores) noexcept {
    const std::int64_t d = learned.n_attributes();
    if (!is_nominal(learned.nominal, attribute)) {
        if (is_missing(value)) return learned.background.add_missing(scores, attribute);
        return learned.background.add(scores, attribute, learned.ranks(attribute, value));
    }
    if (is_missing(value)) {
        const auto [first, end] = learned.traits.of(attribute);
        for (std::int64_t t = first; t < end; ++t) learned.background.add_missing(scores, d + t);
        return;
    }
    const std::int64_t t = learned.traits.find(attribute, value);
    if (t >= 0) learned.background.add(scores, d + t, static_cast<std::int32_t>(learned.ranks.one()));
}

}  // namespace mlca::MLCA_LEVEL
