// The machine's own limits: the bare summed kernel, one thread, data in cache. What `mlca bench` compares the learner with.
#pragma once

#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// Sum the exact kernel of x with each of n nodes, again and again; the sum of all wraps around.
std::uint64_t sum_exactly(const double* x, const double* nodes, std::int64_t n, std::int64_t d, double r, std::int64_t repeats);

// Sum the rough kernel of x with the nodes of a tile, again and again.
void sum_roughly(const float* x, const float* tile, std::int64_t d, double r, float* sums, std::int64_t repeats);

}  // namespace mlca::MLCA_LEVEL
