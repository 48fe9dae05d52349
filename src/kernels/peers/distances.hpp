// Distances computed from differences, summed column by column: equal rows give bit-identical distances, whether dense or
// sparse.
#pragma once

#include <cmath>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

inline double squared_distance(const double* a, const double* b, std::int64_t width) {
    double total = 0.0;
    for (std::int64_t column = 0; column < width; ++column) {
        const double difference = a[column] - b[column];
        total += difference * difference;
    }
    return total;
}

struct DenseDistance {
    Matrix<const double> queries, rows;

    double operator()(std::int64_t query, std::int64_t row) const {
        return std::sqrt(squared_distance(queries[query], rows[row], queries.width));
    }
};

template <class Index>
struct SparseDistance {
    CsrRows<Index, Index> queries, rows;

    // Merge the two rows by column, so that the same terms are added in the same order as for dense rows.
    double operator()(std::int64_t query, std::int64_t row) const {
        std::int64_t a = queries.bounds[query], b = rows.bounds[row];
        const std::int64_t a_end = queries.bounds[query + 1], b_end = rows.bounds[row + 1];
        double total = 0.0;
        while (a < a_end || b < b_end) {
            const bool a_first = b == b_end || (a < a_end && queries.columns[a] <= rows.columns[b]);
            const bool b_first = a == a_end || (b < b_end && rows.columns[b] <= queries.columns[a]);
            double difference = 0.0;
            if (a_first) difference += queries.values[a++];
            if (b_first) difference -= rows.values[b++];
            total += difference * difference;
        }
        return std::sqrt(total);
    }
};

}  // namespace mlca::MLCA_LEVEL::peers
