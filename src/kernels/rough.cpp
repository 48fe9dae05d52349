// Sums whose error is bounded rather than exact: products and sums may fuse here, and only here.

#include "level.hpp"

namespace mlca::MLCA_LEVEL {}  // namespace mlca::MLCA_LEVEL
