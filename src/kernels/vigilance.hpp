// A vigilance that follows the data: how close rows lie within the first window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// `nearest`: of each row of the window, in their order, the distance from the nearest other row; rows are compared as nodes of
// that window would be when predicting, with the groups of vigilance .01. Its own sum is 0, so the nearest other is second on
// its list.
inline double vigilance_of(const double* nearest, std::int64_t n) noexcept {
    if (n < 2) return 0.01;
    double together = 0.0;
    for (std::int64_t i = 0; i < n; ++i) together += nearest[i];
    return std::max(0.01, 0.3 * (together / static_cast<double>(n)));
}

}  // namespace mlca::MLCA_LEVEL
