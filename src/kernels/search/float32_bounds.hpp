// Approximate sums in float32, at a fifth of the cost of exact sums; search/float_tiles.hpp uses them.
//
// These functions are compiled separately (search/float32_bounds.cpp), because the compiler may fuse products and sums
// in them: the error is bounded either way. Do not include other headers in that file: the linker could choose its
// fused copy of an inline function for all callers.
#pragma once

#include <cstdint>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t TILE = 64;

// Maximum errors of the fitted polynomials (see search/float32_bounds.cpp).
inline constexpr double FIT_ERROR = 5.1e-5;
inline constexpr double ROOT_FIT_ERROR = 1.8e-5;

// Write the approximate sums over the features of 1 - sqrt(1 - k), for a row and each of the 64 nodes of a tile, which
// have their own factors.
void rough_root_sums(const float* x, const float* tile, const float* factors, std::int64_t d, float* sums);

// Stands for a missing value in a tile and in the row compared with it.
inline constexpr float MISSING_FLOAT = 3.40282347e38f;

// A row to be compared with a tile of nodes that may have missing values and nominal features: the row's values, the
// features' weights, one flag per feature that marks nominal ones (null if there are none), and the term for two
// different categories (`apart`). `zeros_count` is whether a numeric feature that is zero in both row and node counts.
struct RoughMixed {
    const float *x, *weights;
    const std::uint8_t* nominal;
    std::int64_t d;
    float apart;
    bool zeros_count;
};

// For each node of a tile, write to `above` the approximate weighted sum of 1 - k over the features that row and node
// both have, and to `below` the sum of these features' weights.
void rough_mixed_sums(const RoughMixed& compared, const float* tile, double r, float* above, float* below);

// The variant of `rough_mixed_sums` for sqrt(1 - k) instead of 1 - k, where each node has its own factors.
void rough_mixed_root_sums(const RoughMixed& compared, const float* tile, const float* factors, float* above, float* below);

// The approximate kernels for one feature, used to test their error bounds.
float rough_kernel_at(float difference, float r);
float rough_root_kernel_at(float difference, float r);

}  // namespace mlca::MLCA_LEVEL
