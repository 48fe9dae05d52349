// Rough sums in float32, at a fifth of the cost of exact ones. See search/float_tiles.hpp for what they are good for.
//
// They are compiled apart (search/float32_bounds.cpp), because products and sums may fuse here: the error is bounded either way. No other
// header may be included there: the linker could take the fused copy of an inline function for all callers.
#pragma once

#include <cstdint>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t TILE = 64;

// Polynomials are fitted to within this, see search/float32_bounds.cpp.
inline constexpr double FIT_ERROR = 5.1e-5;
inline constexpr double ROOT_FIT_ERROR = 1.8e-5;

// Write about the sum of 1 - sqrt(1 - k) over the features for the 64 nodes of a tile, each with its own factors.
void rough_root_sums(const float* x, const float* tile, const float* factors, std::int64_t d, float* sums);

// What stands for a gap in a tile, and in a row beside it.
inline constexpr float MISSING_FLOAT = 3.40282347e38f;

// What is compared in a tile of mixed rows: a row, the weights of features, which of them are nominal (none: null), and the term of categories that
// differ. Numbers that are zero in both count or not.
struct RoughMixed {
    const float *x, *weights;
    const std::uint8_t* nominal;
    std::int64_t d;
    float apart;
    bool zeros_count;
};

// Write about the weighted sums of 1 - k over the features that row and node both have, and about the sums of these weights.
void rough_mixed_sums(const RoughMixed& compared, const float* tile, double r, float* above, float* below);

// The same with sqrt(1 - k), each node with its own factors.
void rough_mixed_root_sums(const RoughMixed& compared, const float* tile, const float* factors, float* above, float* below);

// The kernels themselves, of one feature, for the test of their bounds.
float rough_kernel_at(float difference, float r);
float rough_root_kernel_at(float difference, float r);

}  // namespace mlca::MLCA_LEVEL
