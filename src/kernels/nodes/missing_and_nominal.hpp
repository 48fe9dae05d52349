// Missing values and nominal features (docs/mixed.md).
//
// In dense and in sparse rows, a missing value is stored as MISSING, the largest double: the kernels are compiled for
// finite numbers, and no valid value is that large. A feature that is missing in the row or the node is left out of a
// sum, which is then scaled up from the compared features to all features (`in_full`). Nominal features are only
// compared for equality. For correlations with labels, each value of a nominal feature is a separate trait. The indices
// of these traits follow those of the d features, in the order of features and values.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cstdint>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double MISSING = DBL_MAX;

inline bool is_missing(double value) noexcept { return value == MISSING; }

inline bool has_missing(const double* values, std::int64_t n) noexcept {
    bool any = false;
    for (std::int64_t i = 0; i < n; ++i) any |= is_missing(values[i]);
    return any;
}

// One flag per feature; empty if no feature is nominal.
using Nominal = Array<std::uint8_t>;

inline bool is_nominal(const Nominal& nominal, std::int64_t feature) noexcept { return !nominal.empty() && nominal[feature]; }

// Scale a sum over `compared` features (or groups) up to all `parts` of them; if none was compared, return the largest
// possible sum. A term is at most 2^40 units, and there are at most 2^22 parts, so intermediate results stay below
// 2^86. Because parts >= compared, different totals stay different.
inline std::int64_t in_full(std::int64_t total, std::int64_t compared, std::int64_t parts) noexcept {
    if (compared == parts) return total;
    if (compared == 0) return parts * static_cast<std::int64_t>(PER_UNIT);
    return static_cast<std::int64_t>(rounded(static_cast<Int128>(total) * parts, compared));
}

// A node's value in one feature after a move by (target - value) / step.
inline double moved_entry(double value, double target, double step, bool nominal) noexcept {
    if (is_missing(target)) return value;
    if (is_missing(value)) return target;
    if (nominal) return step < 2.0 ? target : value;
    return value + (target - value) / step;
}

// List of the distinct values of nominal features that occur in nodes, sorted by feature and value.
class NominalValues {
public:
    std::int64_t size() const noexcept { return values.size(); }

    struct Range {
        std::int64_t first, end;
    };
    // The range of a feature's values in this list.
    Range of(std::int64_t feature) const noexcept {
        const auto [first, end] = std::equal_range(features.begin(), features.end(), static_cast<std::int32_t>(feature));
        return {first - features.begin(), end - features.begin()};
    }
    // The index of a feature's value in this list; -1 if no node has the value.
    std::int64_t find(std::int64_t feature, double value) const noexcept {
        const Range range = of(feature);
        const double *first = values.data() + range.first, *end = values.data() + range.end;
        const double* place = std::lower_bound(first, end, value);
        return place != end && *place == value ? place - values.data() : -1;
    }

    // Whether this list is valid for d features, so that using it is memory-safe.
    bool is_sound(std::int64_t d) const noexcept {
        if (features.size() != values.size()) return false;
        for (std::size_t t = 0; t < values.size(); ++t) {
            if (features[t] < 0 || features[t] >= d) return false;
            if (t > 0 && !(features[t - 1] < features[t] || (features[t - 1] == features[t] && values[t - 1] < values[t]))) return false;
        }
        return true;
    }

    Array<std::int32_t> features;
    Array<double> values;
};

}  // namespace mlca::MLCA_LEVEL
