// The nearest of sparse nodes: bounds by attribute (postings.hpp) tell which nodes have to be summed exactly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "postings.hpp"
#include "scattered.hpp"
#include "screening.hpp"
#include "shortlist.hpp"
#include "sparse_codes.hpp"
#include "terms.hpp"

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

// Where two sparse rows are both non-zero: places in the one, values of the other.
struct SharedAttributes {
    Array<std::int32_t> places;
    Array<double> values;

    // `places_of[key]` is 1 + the one's place of an attribute, or 0. Each of the other's non-zeros is written down and most are
    // overwritten by the next: to ask first would take longer, as no processor foresees the answer.
    template <class Row>
    std::int64_t find(const std::int32_t* places_of, const Row& other) {
        grow_to(places, other.n);
        grow_to(values, other.n);
        std::int64_t n = 0;
        for (std::int64_t p = 0; p < other.n; ++p) {
            const std::int32_t place = places_of[other.keys[p]];
            places.data()[n] = place - 1;
            values.data()[n] = other.values[p];
            n += place != 0;
        }
        return n;
    }
};

// What an instance's non-zeros change in a node's sum against zeros, under the node's own factors.
template <class Row>
[[gnu::noinline]] std::int64_t individual_correction(const Row& x, const double* factors, const SharedAttributes& shared, std::int64_t n_shared, Terms& both, Terms& own) {
    for (std::int64_t p = 0; p < x.n; ++p) both.put(p, x.values[p], factors[x.keys[p]]);
    for (std::int64_t p = 0; p < n_shared; ++p) {
        const std::int32_t place = shared.places[static_cast<std::size_t>(p)];
        const double value = shared.values[static_cast<std::size_t>(p)];
        both.put(place, x.values[place] - value, factors[x.keys[place]]);
        own.put(p, value, factors[x.keys[place]]);
    }
    return both.sum_of_roots(x.n) - own.sum_of_roots(n_shared);
}

// How one row is compared with sparse nodes, for screening.hpp. Nodes that are not written are summed beforehand.
template <class Nodes, class Exact>
struct SparseSums {
    const Postings& postings;
    const Nodes& nodes;
    const Exact& sum;
    std::int64_t n_attributes, base, written;  // of the row: non-zeros, its sum against zeros
    float shrinking;
    const std::uint32_t* words;
    const std::int64_t* totals;  // of nodes that are not written

    std::int64_t exact(std::int64_t node) const { return node < written ? sum(node) : totals[node - written]; }
    [[gnu::always_inline]] void fetch(std::int64_t node) const {
        const auto y = nodes(node);
        fetch_row(y.keys, y.n);
        fetch_row(y.values, y.n);
    }
    std::int64_t lower(std::int64_t node) const {
        if (node >= written || !postings.knows(node)) return exact(node);
        const auto y = nodes(node);
        return base + SparseCodes::lower(y.keys, postings.codes()[node], y.n, words, shrinking);
    }
    [[gnu::always_inline]] void fetch_fine(std::int64_t node) const {
        if (node >= written) return;
        const auto y = nodes(node);
        fetch_row(y.keys, y.n);
        fetch_row(postings.codes()[node], y.n);
    }
    std::int64_t looseness() const { return SparseCodes::looseness(n_attributes, shrinking); }
};

// List the nearest of the first n nodes; `nodes(node)` has a node's non-zeros, `exact(node)` is a sum.
template <class Row, class Nodes, class Exact>
void list_nearest_sparse(const Postings& postings, const Row& x, double r, std::int64_t n_nodes, std::int64_t n_wanted, const Nodes& nodes,
                         const Exact& exact, Screening& screening, Postings::Space& space, Shortlist& nearest) {
    std::uint16_t* bounds = screening.bounds(0, std::max(n_nodes, postings.written()));
    const std::int64_t step = postings.bound_all(x, r, bounds, space);
    const std::int64_t written = std::min(postings.written(), n_nodes);
    grow_to(space.totals, n_nodes - written);
    for (std::int64_t k = written; k < n_nodes; ++k) {
        const std::int64_t total = exact(k);
        space.totals[static_cast<std::size_t>(k - written)] = total;
        bounds[k] = static_cast<std::uint16_t>(std::min<std::int64_t>(total / step, UINT16_MAX));
    }
    grow_to(space.words, std::max<std::int64_t>(postings.n_keys(), x.n > 0 ? x.keys[x.n - 1] + std::int64_t{1} : 0));
    std::int64_t base = 0;
    const Scattered<std::uint32_t> scattered(space.words, {x.keys, x.values, x.n}, [&](std::int64_t p) {
        const double alone = space.alone[static_cast<std::size_t>(p)];
        base += static_cast<std::int64_t>(alone * PER_UNIT);
        return postings.codes().word(x.values[p], alone);
    });
    const SparseSums<Nodes, Exact> sums{
        postings, nodes, exact, x.n, base, written, postings.codes().shrinking(r), space.words.data(), space.totals.data()};
    screening.list_nearest(0, n_nodes, step, n_wanted, sums, nearest);
}

}  // namespace mlca::MLCA_LEVEL
