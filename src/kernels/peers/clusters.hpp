// Micro-clusters (MCIC): each stores a weight and the faded sums of its rows and of their squares.
#pragma once

#include <cmath>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

// The distance of x to the centre of each given cluster, after the centre is multiplied by the cluster's `drift`.
inline void distances_to_centers(const Vector<const double>& x, const Vector<const std::int64_t>& clusters, const Vector<const double>& drift,
                                 const Matrix<const double>& sums, const Vector<const double>& weights, const Vector<double>& distances) {
    for (std::int64_t i = 0; i < clusters.size; ++i) {
        const double* sum = sums[clusters[i]];
        const double factor = drift[i] / weights[clusters[i]];
        double total = 0.0;
        for (std::int64_t column = 0; column < x.size; ++column) {
            const double difference = x[column] - factor * sum[column];
            total += difference * difference;
        }
        distances[i] = std::sqrt(total);
    }
}

// The radius that a cluster would have after row x is added: its largest standard deviation in any feature.
inline double radius_with(const Vector<const double>& x, double fading, const Vector<const double>& sums, const Vector<const double>& squares,
                          double weight) {
    weight = fading * weight + 1.0;
    double largest = 0.0;
    for (std::int64_t column = 0; column < x.size; ++column) {
        const double mean = (fading * sums[column] + x[column]) / weight;
        const double mean_square = (fading * squares[column] + x[column] * x[column]) / weight;
        const double variance = mean_square - mean * mean;
        if (variance > largest) largest = variance;
    }
    return std::sqrt(largest);
}

}  // namespace mlca::MLCA_LEVEL::peers
