// The features of the linear models: centred ranks, cells, categories and missing values.
//
// A number x of rank R(x) contributes one of these, by the first case that applies (similarity/rank_distance.hpp):
//   its value                              if all node entries are 0 or 1,
//   R(x) - R(0), zero where x is zero      if more than half of the node entries are zero,
//   (R(x) - M) / 0.289, and 0.5 for its cell   otherwise; M is the mean rank, and cells are used from 2,000 rows on, if
//     there are at most 64 numeric features.
// A category contributes 1 for its value, a missing value 1 for "missing". All values are at most 2^10 in magnitude.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "bandwidth/sparse_window.hpp"
#include "base/memory.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "similarity/rank_distance.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t CELLS_FROM = 2000;
inline constexpr std::int64_t MOST_CELLED = 64;
inline constexpr std::int64_t N_CELLS = 8;

// Identifies the linear feature that a weight belongs to; in the key of the bias, `feature` is -1.
struct FeatureKey {
    static constexpr std::uint8_t NUMBER = 0, FIRST_CELL = 1, MISSING_VALUE = FIRST_CELL + N_CELLS, CATEGORY = MISSING_VALUE + 1;

    std::int32_t feature = -1;
    std::uint8_t kind = NUMBER;
    double value = 0.0;  // the value of a category; otherwise 0

    auto ordered() const noexcept { return std::tuple(feature, kind, value); }
    bool operator<(const FeatureKey& other) const noexcept { return ordered() < other.ordered(); }
};

// Whether numbers contribute centred ranks, the third case above.
inline bool is_centred(const Learned& learned) noexcept { return learned.ranks.n_knots > 0 && !learned.sparse; }

// Whether listing the linear features of a row requires a dense copy of the row.
inline bool is_scattered(const Learned& learned) noexcept { return is_centred(learned) || !learned.nominal.empty(); }

inline bool has_cells(const Learned& learned, std::int64_t rows) noexcept {
    return rows >= CELLS_FROM && learned.n_numbers <= MOST_CELLED && is_centred(learned);
}

inline double limited_feature(double f) noexcept { return std::min(std::max(f, -1024.0), 1024.0); }

// Working memory: a dense copy of a row (zeros between uses), and its ranks.
struct FeatureSpace {
    Array<double> values;
    Array<std::int32_t> ranks;

    void reserve(std::int64_t d) {
        grow_to(values, d);
        grow_to(ranks, d);
    }
};

// The value of a number's linear feature in the first two cases.
inline double uncentred_feature(const Learned& learned, std::int64_t j, double x) noexcept {
    if (learned.ranks.n_knots == 0) return limited_feature(x);
    return limited_feature(static_cast<double>(learned.ranks(j, x)) / static_cast<double>(learned.ranks.one()));
}
inline double centred_feature(const Learned& learned, std::int64_t j, std::int32_t rank) noexcept {
    return limited_feature((static_cast<double>(rank) - learned.middles[j]) * learned.centred_scale);
}
inline std::uint8_t cell_of(std::int32_t rank, std::int64_t one) noexcept {
    return static_cast<std::uint8_t>(FeatureKey::FIRST_CELL + N_CELLS * std::clamp<std::int64_t>(rank, 0, one - 1) / one);
}

// Call f(key, value) for the numbers of a row without missing values, given its ranks; third case only.
template <class F>
void for_each_centred_feature(const Learned& learned, const std::int32_t* ranks, bool cells, F f) {
    const std::int64_t d = learned.n_features(), one = learned.ranks.one();
    for (std::int64_t j = 0; j < d; ++j) {
        const double value = centred_feature(learned, j, ranks[j]);
        if (value != 0.0) f(FeatureKey{static_cast<std::int32_t>(j)}, value);
        if (cells) f(FeatureKey{static_cast<std::int32_t>(j), cell_of(ranks[j], one)}, 0.5);
    }
}

// Call f(key, value) for every non-zero linear feature of a dense row.
template <class F>
void for_each_feature_dense(const Learned& learned, const double* x, bool cells, F f) {
    const std::int64_t d = learned.n_features(), one = learned.ranks.one();
    const bool centred = is_centred(learned);
    for (std::int64_t j = 0; j < d; ++j) {
        const auto feature = static_cast<std::int32_t>(j);
        if (is_missing(x[j])) {
            f(FeatureKey{feature, FeatureKey::MISSING_VALUE}, 1.0);
        } else if (is_nominal(learned.nominal, j)) {
            f(FeatureKey{feature, FeatureKey::CATEGORY, x[j]}, 1.0);
        } else if (centred) {
            const std::int32_t rank = learned.ranks(j, x[j]) + learned.ranks.zeros[j];
            const double value = centred_feature(learned, j, rank);
            if (value != 0.0) f(FeatureKey{feature}, value);
            if (cells) f(FeatureKey{feature, cell_of(rank, one)}, 0.5);
        } else if (x[j] != 0.0) {
            const double value = uncentred_feature(learned, j, x[j]);
            if (value != 0.0) f(FeatureKey{feature}, value);
        }
    }
}

// Call f(key, value) for every non-zero linear feature of a row; `space` must be large enough. Dense rows have no
// categories, and lack values only in prediction. The centred features of a complete row are computed from the ranks of
// the whole row.
template <class F>
void for_each_feature(const Learned& learned, const double* x, bool cells, FeatureSpace& space, F f) {
    if (!is_centred(learned) || has_missing(x, learned.n_features())) return for_each_feature_dense(learned, x, cells, f);
    learned.ranks.rank_row(x, learned.n_features(), space.ranks.data());
    for_each_centred_feature(learned, space.ranks.data(), cells, f);
}
template <class F>
void for_each_feature(const Learned& learned, const SparseRow& x, bool cells, FeatureSpace& space, F f) {
    double* values = space.values.data();
    const bool scattered = is_scattered(learned);
    if (scattered) {
        for (std::int64_t p = 0; p < x.n; ++p) values[x.keys[p]] = x.values[p];
    }
    if (is_centred(learned)) {
        for_each_feature_dense(learned, values, cells, f);
    } else {
        for (std::int64_t p = 0; p < x.n; ++p) {
            if (is_missing(x.values[p])) {
                f(FeatureKey{x.keys[p], FeatureKey::MISSING_VALUE}, 1.0);
            } else if (x.values[p] != 0.0 && !is_nominal(learned.nominal, x.keys[p])) {
                const double value = uncentred_feature(learned, x.keys[p], x.values[p]);
                if (value != 0.0) f(FeatureKey{x.keys[p]}, value);
            }
        }
        for (const std::int32_t j : learned.nominal_features) {
            if (!is_missing(values[j])) f(FeatureKey{j, FeatureKey::CATEGORY, values[j]}, 1.0);
        }
    }
    if (scattered) {
        for (std::int64_t p = 0; p < x.n; ++p) values[x.keys[p]] = 0.0;
    }
}

// Call f(key) for every linear feature that the row, or a node that moved towards it, may have. In the third case numbers are
// omitted, because any of them may be non-zero.
template <class F>
void for_each_possible_key(const Learned& learned, const double* x, F f) {
    for (std::int64_t j = 0; j < learned.n_features() && !is_centred(learned); ++j) {
        if (x[j] != 0.0) f(FeatureKey{static_cast<std::int32_t>(j)});
    }
}
template <class F>
void for_each_possible_key(const Learned& learned, const SparseRow& x, F f) {
    for (std::int64_t p = 0; p < x.n; ++p) {
        if (is_missing(x.values[p])) {
            f(FeatureKey{x.keys[p], FeatureKey::MISSING_VALUE});
        } else if (is_nominal(learned.nominal, x.keys[p])) {
            f(FeatureKey{x.keys[p], FeatureKey::CATEGORY, x.values[p]});
        } else if (!is_centred(learned)) {
            f(FeatureKey{x.keys[p]});
        }
    }
    for (const std::int32_t j : learned.nominal_features) f(FeatureKey{j, FeatureKey::CATEGORY, 0.0});
}

inline std::int64_t n_entries_of(const Learned& learned, const double*) noexcept { return learned.n_features(); }
inline std::int64_t n_entries_of(const Learned& learned, const SparseRow& x) noexcept {
    return is_centred(learned) ? learned.n_features() : x.n + static_cast<std::int64_t>(learned.nominal_features.size());
}

}  // namespace mlca::MLCA_LEVEL
