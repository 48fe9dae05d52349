// The nearest of sparse nodes: bounds by attribute (postings.hpp) tell which nodes have to be summed exactly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "postings.hpp"
#include "screening.hpp"
#include "shortlist.hpp"

namespace mlca::MLCA_LEVEL {

// What a node's own non-zeros change in the sum of an instance against zeros: with x spread out over all attributes, and
// its own terms, `x[key]` and `alone[key]`. Values are gathered first, so that the terms are computed by vectors: three times
// as fast as one loop.
template <class Row>
[[gnu::noinline]] std::int64_t gathered_correction(const Row& y, const double* __restrict x, const std::int64_t* __restrict alone, double r) {
    constexpr std::int64_t STRETCH = 256;
    double differences[STRETCH];
    std::int64_t total = 0;
    for (std::int64_t first = 0; first < y.n; first += STRETCH) {
        const std::int64_t n = std::min(STRETCH, static_cast<std::int64_t>(y.n) - first);
        const std::int32_t* __restrict keys = y.keys + first;
        const double* __restrict values = y.values + first;
        for (std::int64_t p = 0; p < n; ++p) {
            differences[p] = x[keys[p]] - values[p];
            total -= alone[keys[p]];
        }
        for (std::int64_t p = 0; p < n; ++p) total += dissimilarity(differences[p], r);
    }
    return total;
}

// List the nearest of the first n nodes; `nodes(node)` has a node's non-zeros, `exact(node)` is a sum.
template <class Row, class Nodes, class Exact>
void list_nearest_sparse(const Postings& postings, const Row& x, double r, std::int64_t n_nodes, std::int64_t n_wanted, const Nodes& nodes,
                         const Exact& exact, Screening& screening, Postings::Space& space, Shortlist& nearest) {
    struct Sums {
        const Nodes& nodes;
        const Exact& sum;
        std::int64_t written;
        std::int64_t* totals;  // of nodes that are not written

        void exact(const std::int32_t* few, std::int64_t n, std::int64_t* sums) const {
            for (std::int64_t j = 0; j < n; ++j) sums[j] = few[j] < written ? sum(few[j]) : totals[few[j] - written];
        }
        [[gnu::always_inline]] void fetch(std::int64_t node) const {
            const auto y = nodes(node);
            fetch_row(y.keys, y.n);
            fetch_row(y.values, y.n);
        }
    };
    std::uint16_t* bounds = screening.bounds(0, std::max(n_nodes, postings.written()));
    const std::int64_t step = postings.bound_all(x, r, bounds, space);
    const std::int64_t written = std::min(postings.written(), n_nodes);
    grow_to(space.totals, n_nodes - written);
    const Sums sums{nodes, exact, written, space.totals.data()};
    for (std::int64_t k = written; k < n_nodes; ++k) {
        const std::int64_t total = exact(k);
        sums.totals[k - written] = total;
        bounds[k] = static_cast<std::uint16_t>(std::min<std::int64_t>(total / step, UINT16_MAX));
    }
    screening.list_nearest_directly(0, n_nodes, step, n_wanted, sums, nearest);
}

}  // namespace mlca::MLCA_LEVEL
