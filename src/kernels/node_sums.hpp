// How one row is compared with dense nodes, for screening.hpp: exact sums, and closer looks where these pay.
#pragma once

#include <cstdint>
#include <numeric>

#include "coded_nodes.hpp"
#include "codes.hpp"
#include "fine.hpp"
#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

// Nodes that are looked at together.
inline constexpr std::int64_t SEARCHED_TOGETHER = 8;

// How one row is compared with nodes under a common bandwidth; `weights(node)` are a node's attributes.
template <class Weights>
struct CommonSums {
    const double* x;
    std::int64_t d;
    double r;
    const FineRow& fine;
    const CodedNodes& coded;
    const Weights& weights;

    std::int64_t exact(std::int64_t node) const { return common_sum(x, weights(node), d, r); }
    [[gnu::always_inline]] void fetch(std::int64_t node) const { fetch_row(weights(node), d); }
    std::int64_t lower(std::int64_t node) const { return fine.lower(coded.fine(node)); }
    [[gnu::always_inline]] void fetch_fine(std::int64_t node) const { fetch_row(coded.fine(node), d); }
    std::int64_t looseness() const { return fine.looseness(); }
};

// The same in few dimensions: exact sums of a few nodes are taken together, so that their terms fill vectors.
template <class Weights>
struct FewAttributes {
    static constexpr std::int64_t MOST = 8;
    const double* x;
    std::int64_t d;
    double r;
    const Weights& weights;

    [[gnu::always_inline]] void fetch(std::int64_t) const {}
    void exact(const std::int32_t* nodes, std::int64_t n, std::int64_t* totals) const {
        alignas(64) double differences[SEARCHED_TOGETHER * MOST];
        alignas(64) std::int64_t terms[SEARCHED_TOGETHER * MOST];
        for (std::int64_t j = 0; j < n; ++j) {
            const double* y = weights(nodes[j]);
            for (std::int64_t i = 0; i < d; ++i) differences[j * d + i] = x[i] - y[i];
        }
        // Whole vectors: what is left over is computed and not used.
        const std::int64_t end = rounded_up(n * d, 8);
        for (std::int64_t k = n * d; k < end; ++k) differences[k] = 0.0;
        for (std::int64_t k = 0; k < end; k += 8) {
            for (std::int64_t lane = 0; lane < 8; ++lane) terms[k + lane] = dissimilarity(differences[k + lane], r);
        }
        for (std::int64_t j = 0; j < n; ++j) totals[j] = std::accumulate(terms + j * d, terms + (j + 1) * d, std::int64_t{0});
    }
};

// How one row is compared with nodes where its attributes are in groups; `exact(node)` sums the roots.
template <class Exact>
struct GroupedSums {
    std::int64_t d;
    const FineRow& fine;
    const CodedNodes& coded;
    const Exact& sum;

    std::int64_t exact(std::int64_t node) const { return sum(node); }
    [[gnu::always_inline]] void fetch(std::int64_t) const {}
    std::int64_t lower(std::int64_t node) const { return fine.lower(coded.fine(node)); }
    [[gnu::always_inline]] void fetch_fine(std::int64_t node) const { fetch_row(coded.fine(node), d); }
    std::int64_t looseness() const { return fine.looseness(); }
};

}  // namespace mlca::MLCA_LEVEL
