// The trees of MuENL's detector: inner nodes split rows by 2-means, leaves store the ball around their rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "peers/distances.hpp"
#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

inline constexpr int LLOYD_STEPS = 100;

// The largest distance of a point to the centre.
inline double farthest(const Matrix<const double>& points, const Vector<const double>& centre) {
    double largest = 0.0;
    for (std::int64_t i = 0; i < points.n_rows; ++i) {
        const double distance = std::sqrt(squared_distance(points[i], centre.data, points.width));
        if (distance > largest) largest = distance;
    }
    return largest;
}

// Split points into two clusters, starting from the given means. `first` receives, for each point, whether it is
// strictly nearer to the first mean. Return whether the clusters converged and neither is empty.
inline bool two_means(const Matrix<const double>& points, const Matrix<double>& means, const Vector<bool>& first) {
    std::fill_n(first.data, first.size, false);
    for (int step = 0; step < LLOYD_STEPS; ++step) {
        bool changed = step == 0;
        std::int64_t n_first = 0;
        for (std::int64_t i = 0; i < points.n_rows; ++i) {
            const bool side = squared_distance(points[i], means[0], points.width) < squared_distance(points[i], means[1], points.width);
            changed |= side != first[i];
            first[i] = side;
            n_first += side;
        }
        if (n_first == 0 || n_first == points.n_rows) return false;
        if (!changed) return true;
        std::fill_n(means.data, 2 * means.width, 0.0);
        for (std::int64_t i = 0; i < points.n_rows; ++i) {
            double* mean = means[first[i] ? 0 : 1];
            for (std::int64_t column = 0; column < points.width; ++column) mean[column] += points[i][column];
        }
        for (std::int64_t column = 0; column < points.width; ++column) {
            means[0][column] /= static_cast<double>(n_first);
            means[1][column] /= static_cast<double>(points.n_rows - n_first);
        }
    }
    return false;
}

// The nodes of one tree. A node's second child follows its first; a leaf has child -1.
struct TreeView {
    Vector<const std::int64_t> child;
    Matrix<const std::int64_t> columns;  // columns of the features, followed by columns of the scores
    Matrix<const double> means;          // two rows per node
    Matrix<const double> centres;
    Vector<const double> radii;
};

// Pass each row down one tree and add 1 to its votes if it lies outside its leaf's ball.
inline void add_votes(const Matrix<const double>& rows, const Matrix<const double>& scores, const TreeView& tree, double ratio,
                      const Vector<double>& votes) {
    const std::int64_t width = tree.columns.width;
    std::vector<double> point(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < rows.n_rows; ++i) {
        std::int64_t node = 0;
        while (tree.child[node] >= 0) {
            for (std::int64_t c = 0; c < width; ++c) {
                const std::int64_t column = tree.columns[node][c];
                point[static_cast<std::size_t>(c)] = column < rows.width ? rows[i][column] : scores[i][column - rows.width];
            }
            const bool nearer_to_first = squared_distance(point.data(), tree.means[2 * node], width) <
                                         squared_distance(point.data(), tree.means[2 * node + 1], width);
            node = nearer_to_first ? tree.child[node] : tree.child[node] + 1;
        }
        if (std::sqrt(squared_distance(rows[i], tree.centres[node], rows.width)) > ratio * tree.radii[node]) votes[i] += 1.0;
    }
}

}  // namespace mlca::MLCA_LEVEL::peers
