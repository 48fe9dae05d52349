// The dual problem of mlODM: one weight for each pair of a relevant and an irrelevant label of a row. The weight moves
// the margin between the two scores towards the band from 1 - theta to 1 + theta.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

inline constexpr int PAIR_CYCLES = 10'000;  // far more than needed: the problem of one row is strictly convex

// The pairs of a relevant and an irrelevant label of each row. A row's pairs start at starts[row], ordered by relevant
// label, then by irrelevant label. costs[row] weights the loss of each pair of the row.
struct Pairs {
    Matrix<const bool> relevant;
    Vector<const double> costs;
    Vector<const std::int64_t> starts;
    double theta, mu;

    // Call visit(pair, p, q) for each relevant label p and irrelevant label q of a row.
    template <class Visit>
    void of_row(std::int64_t row, Visit visit) const {
        std::int64_t pair = starts[row];
        for (std::int64_t p = 0; p < relevant.width; ++p) {
            if (!relevant[row][p]) continue;
            for (std::int64_t q = 0; q < relevant.width; ++q) {
                if (!relevant[row][q]) visit(pair++, p, q);
            }
        }
    }
};

// Optimise the weights of each row's pairs, to the tolerance `tol`, while the weights of all other rows are fixed;
// return the largest change of a weight. A negative weight means that the margin is above the band. Weights, dual and
// scores are updated in place.
inline double visit_rows(const Vector<const std::int64_t>& order, const Matrix<const double>& kernel, const Pairs& pairs, double tol,
                         const Vector<double>& weights, const Matrix<double>& dual, const Matrix<double>& scores) {
    const std::int64_t n_labels = pairs.relevant.width;
    std::vector<double> change(static_cast<std::size_t>(n_labels));
    double largest = 0.0;
    for (std::int64_t place = 0; place < order.size; ++place) {
        const std::int64_t i = order[place];
        const double with_itself = kernel[i][i], *score = scores[i];
        double* moves = change.data();
        const double below = 2.0 * with_itself + 1.0 / pairs.costs[i];
        const double above = 2.0 * with_itself + 1.0 / (pairs.costs[i] * pairs.mu);
        std::fill(change.begin(), change.end(), 0.0);
        for (int cycle = 0; cycle < PAIR_CYCLES; ++cycle) {
            double moved = 0.0;
            pairs.of_row(i, [&](std::int64_t pair, std::int64_t p, std::int64_t q) {
                // The margin of this pair without the contribution of its own weight.
                const double margin = score[p] - score[q] + with_itself * (moves[p] - moves[q] - 2.0 * weights[pair]);
                double weight = 0.0;
                if (margin < 1.0 - pairs.theta) {
                    weight = (1.0 - pairs.theta - margin) / below;
                } else if (margin > 1.0 + pairs.theta) {
                    weight = (1.0 + pairs.theta - margin) / above;
                }
                const double move = weight - weights[pair];
                weights[pair] = weight;
                moves[p] += move;
                moves[q] -= move;
                moved = std::max(moved, std::abs(move));
            });
            largest = std::max(largest, moved);
            if (moved < tol) break;
        }
        for (std::int64_t k = 0; k < n_labels; ++k) dual[i][k] += moves[k];
        for (std::int64_t j = 0; j < scores.n_rows; ++j) {
            const double similarity = kernel[i][j];
            for (std::int64_t k = 0; k < n_labels; ++k) scores[j][k] += similarity * moves[k];
        }
    }
    return largest;
}

struct Objectives {
    double primal, dual;
};

// The primal and the dual objective; the primal is never below the dual.
inline Objectives objectives(const Pairs& pairs, const Vector<const double>& weights, const Matrix<const double>& dual,
                             const Matrix<const double>& scores) {
    double product = 0.0, loss = 0.0, gain = 0.0;
    for (std::int64_t cell = 0; cell < dual.n_rows * dual.width; ++cell) product += dual.data[cell] * scores.data[cell];
    const double half_norm = 0.5 * product;
    const double theta = pairs.theta, mu = pairs.mu;
    for (std::int64_t i = 0; i < scores.n_rows; ++i) {
        const double cost = pairs.costs[i], *score = scores[i];
        pairs.of_row(i, [&](std::int64_t pair, std::int64_t p, std::int64_t q) {
            const double margin = score[p] - score[q];
            const double too_short = std::max(0.0, 1.0 - theta - margin), too_long = std::max(0.0, margin - 1.0 - theta);
            loss += 0.5 * cost * (too_short * too_short + mu * (too_long * too_long));
            const double weight = weights[pair];
            if (weight > 0.0) {
                gain += (1.0 - theta) * weight - weight * weight / (2.0 * cost);
            } else {
                gain += (1.0 + theta) * weight - weight * weight / (2.0 * cost * mu);
            }
        });
    }
    return {half_norm + loss, gain - half_norm};
}

}  // namespace mlca::MLCA_LEVEL::peers
