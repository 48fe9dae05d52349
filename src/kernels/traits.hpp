// The values of nominal attributes that nodes have: what correlates with labels in their place.
//
// A value is a trait, numbered behind the d attributes in the order of attributes and values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

class Traits {
public:
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(values.size()); }

    // The number of a value, -1 if no node had it; `first` and `end` are those of its attribute.
    struct Range {
        std::int64_t first, end;
    };
    Range of(std::int64_t attribute) const noexcept {
        const auto [first, end] = std::equal_range(attributes.begin(), attributes.end(), static_cast<std::int32_t>(attribute));
        return {first - attributes.begin(), end - attributes.begin()};
    }
    std::int64_t find(std::int64_t attribute, double value) const noexcept {
        const Range range = of(attribute);
        const double *first = values.data() + range.first, *end = values.data() + range.end;
        const double* place = std::lower_bound(first, end, value);
        return place != end && *place == value ? place - values.data() : -1;
    }

    // Whether these could be the values of d attributes.
    bool is_sound(std::int64_t d) const noexcept {
        if (attributes.size() != values.size()) return false;
        for (std::size_t t = 0; t < values.size(); ++t) {
            if (attributes[t] < 0 || attributes[t] >= d) return false;
            if (t > 0 && !(attributes[t - 1] < attributes[t] || (attributes[t - 1] == attributes[t] && values[t - 1] < values[t]))) return false;
        }
        return true;
    }

    Array<std::int32_t> attributes;
    Array<double> values;
};

}  // namespace mlca::MLCA_LEVEL
