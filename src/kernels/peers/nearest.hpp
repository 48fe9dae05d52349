// The k nearest rows of each query (ML-kNN); ties are ordered by row index.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

// The k-th smallest value, excluding one row; k is the length of `smallest`, which is used as working memory.
inline double kth_smallest(const double* values, std::int64_t n, std::int64_t left_out, std::vector<double>& smallest) {
    std::fill(smallest.begin(), smallest.end(), std::numeric_limits<double>::infinity());
    for (std::int64_t j = 0; j < n; ++j) {
        if (!(values[j] < smallest.back()) || j == left_out) continue;
        std::size_t at = smallest.size() - 1;
        for (; at > 0 && smallest[at - 1] > values[j]; --at) smallest[at] = smallest[at - 1];
        smallest[at] = values[j];
    }
    return smallest.back();
}

struct Candidate {
    double distance;
    std::int64_t row;
};

// Numbers come before NaN, which arises when distances overflow; a stable sort keeps ties in order of rows.
inline bool nearer(const Candidate& a, const Candidate& b) {
    return a.distance < b.distance || (std::isnan(b.distance) && !std::isnan(a.distance));
}

// Find the k nearest rows of each query. `rough` (n_queries x n_rows) holds approximate distances with an error below
// half of `margin`; `distance` decides between the rows that can be among the nearest. With `left_out` >= 0, row
// `left_out` + i is not a neighbour of query i.
template <class Distance>
void find_nearest(const Matrix<const double>& rough, const Vector<const double>& margin, const Distance& distance, std::int64_t left_out,
                  const Matrix<std::int64_t>& nearest) {
    std::vector<double> smallest(static_cast<std::size_t>(nearest.width));
    std::vector<Candidate> candidates;
    for (std::int64_t i = 0; i < rough.n_rows; ++i) {
        const std::int64_t skipped = left_out >= 0 ? left_out + i : -1;
        const double limit = kth_smallest(rough[i], rough.width, skipped, smallest) + margin[i];
        candidates.clear();
        for (std::int64_t j = 0; j < rough.width; ++j) {
            // The negated comparison also accepts NaN: if distances overflow, exact distances decide.
            if (!(rough[i][j] > limit) && j != skipped) candidates.push_back({distance(i, j), j});
        }
        if (candidates.size() < smallest.size()) throw std::invalid_argument("a query has fewer than k candidates");
        std::stable_sort(candidates.begin(), candidates.end(), nearer);
        for (std::int64_t at = 0; at < nearest.width; ++at) nearest[i][at] = candidates[static_cast<std::size_t>(at)].row;
    }
}

// Count, for each query and label, the neighbours of the query that have the label.
inline void count_labels(const Matrix<const std::int64_t>& neighbours, const CsrRows<std::int64_t, std::int32_t>& labels,
                         const Matrix<std::int64_t>& counts) {
    std::fill_n(counts.data, counts.n_rows * counts.width, 0);
    for (std::int64_t i = 0; i < neighbours.n_rows; ++i) {
        for (std::int64_t at = 0; at < neighbours.width; ++at) {
            const std::int64_t row = neighbours[i][at];
            for (std::int64_t p = labels.bounds[row]; p < labels.bounds[row + 1]; ++p) ++counts[i][labels.columns[p]];
        }
    }
}

}  // namespace mlca::MLCA_LEVEL::peers
