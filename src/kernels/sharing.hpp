// Work that threads may share, in the words of those who need not know of threads.
#pragma once

#include <cstdint>

#include "function_ref.hpp"
#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// Done for a stretch of numbers, low to high; stretches may be done side by side.
using WorkOnStretch = FunctionRef<void(std::int64_t low, std::int64_t high)>;

// Does the work for 0 to n, cut at the multiples of a step.
using Sharing = FunctionRef<void(std::int64_t n, std::int64_t step, WorkOnStretch work)>;

// One thread does all of it.
inline constexpr auto UNSHARED = [](std::int64_t n, std::int64_t, WorkOnStretch work) { work(0, n); };

}  // namespace mlca::MLCA_LEVEL
