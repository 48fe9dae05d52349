#include "probes.hpp"

#include "fixedpoint.hpp"
#include "rough.hpp"

namespace mlca::MLCA_LEVEL {

std::uint64_t sum_exactly(const double* x, const double* nodes, std::int64_t n, std::int64_t d, double r, std::int64_t repeats) {
    std::uint64_t total = 0;
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
        for (std::int64_t node = 0; node < n; ++node) total += static_cast<std::uint64_t>(common_sum(x, nodes + node * d, d, r));
    }
    return total;
}

void sum_roughly(const float* x, const float* tile, std::int64_t d, double r, float* sums, std::int64_t repeats) {
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) rough_sums(x, tile, d, r, sums);
}

}  // namespace mlca::MLCA_LEVEL
