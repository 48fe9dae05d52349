#pragma once

#include <string_view>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// Whether processor and operating system run code compiled for a level: "v2", "v3", "v4" of x86-64, or "plain".
bool processor_has(std::string_view level);

}  // namespace mlca::MLCA_LEVEL
