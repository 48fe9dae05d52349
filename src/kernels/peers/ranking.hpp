// The loss of MuENL's linear classifiers: the hinge loss of one label and its ranking loss against all other labels.
#pragma once

#include <algorithm>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

inline double positive_part(double value) { return value > 0.0 ? value : 0.0; }

// The mean hinge loss of one label, whose scores are `label_scores`, plus lambda1 times its mean ranking loss against
// all other labels. Rows are weighted by `importance`.
inline double ranking_loss(std::int64_t label, const Vector<const double>& label_scores, const Matrix<const double>& scores,
                           const Matrix<const double>& targets, const Vector<const double>& importance, double lambda1) {
    double hinge = 0.0, ranking = 0.0;
    for (std::int64_t i = 0; i < scores.n_rows; ++i) {
        const double target = targets[i][label];
        double pairs = 0.0;
        for (std::int64_t k = 0; k < scores.width; ++k) {
            if (k != label) pairs += positive_part(1.0 - (target - targets[i][k]) * (label_scores[i] - scores[i][k]));
        }
        hinge += importance[i] * positive_part(1.0 - target * label_scores[i]);
        ranking += importance[i] * pairs;
    }
    const std::int64_t n_pairs = scores.n_rows * std::max<std::int64_t>(1, scores.width - 1);
    return hinge / static_cast<double>(scores.n_rows) + lambda1 * ranking / static_cast<double>(n_pairs);
}

// The negative derivative of a label's loss with respect to its score, for each row.
inline void ranking_pull(std::int64_t label, const Matrix<const double>& scores, const Matrix<const double>& targets,
                         const Vector<const double>& importance, double share, const Vector<double>& pull) {
    for (std::int64_t i = 0; i < scores.n_rows; ++i) {
        const double target = targets[i][label], score = scores[i][label];
        double ranking = 0.0;
        for (std::int64_t k = 0; k < scores.width; ++k) {
            const double difference = target - targets[i][k];
            if (k != label && 1.0 - difference * (score - scores[i][k]) > 0.0) ranking += difference;
        }
        const double hinge = 1.0 - target * score > 0.0 ? target : 0.0;
        pull[i] = importance[i] * (hinge + share * ranking) / static_cast<double>(scores.n_rows);
    }
}

}  // namespace mlca::MLCA_LEVEL::peers
