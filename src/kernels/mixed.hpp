// Rows with gaps and with nominal attributes: docs/mixed.md.
//
// A gap is an entry of the value MISSING, in dense and in sparse rows alike: kernels are compiled for finite numbers, and
// none that may come in is so large. What has a gap in row or node is left out of the sum, and the sum is put in full: as if the
// attributes that were compared stood for all.
#pragma once

#include <cfloat>
#include <cstdint>

#include "elementary.hpp"
#include "fixedpoint.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr double MISSING = DBL_MAX;

inline bool is_missing(double value) noexcept { return value == MISSING; }

// Which attributes are nominal: values that are equal or not. No flags: none.
using Nominal = Array<std::uint8_t>;

inline bool is_nominal(const Nominal& nominal, std::int64_t attribute) noexcept { return !nominal.empty() && nominal.data()[attribute]; }

// What a sum of terms over some of `parts` would be over all of them; of none it is the largest there is. Terms are at
// most 2^40 units and parts 2^22, so all stays below 2^86.
inline std::int64_t in_full(std::int64_t total, std::int64_t compared, std::int64_t parts) noexcept {
    if (compared == parts) return total;
    if (compared == 0) return parts * static_cast<std::int64_t>(PER_UNIT);
    return static_cast<std::int64_t>(rounded(static_cast<Int128>(total) * parts, compared));
}

// An entry after a move by (target - value) / step.
inline double moved_entry(double value, double target, double step, bool nominal) noexcept {
    if (is_missing(target)) return value;
    if (is_missing(value)) return target;
    if (nominal) return step < 2.0 ? target : value;
    return value + (target - value) / step;
}

}  // namespace mlca::MLCA_LEVEL
