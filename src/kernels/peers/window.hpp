// The window of MLSA-kNN (src/mlca/peers/mlsaknn_window.py). Rows are addressed by position, oldest first. `slots` maps
// a position to the storage of its row, `mask_slots` to the mask of the labels on which the row may vote.
#pragma once

#include <algorithm>
#include <cmath>

#include "peers/views.hpp"

namespace mlca::MLCA_LEVEL::peers {

inline constexpr std::int64_t LARGEST_K = 7;  // the authors try 1, 3, 5 and 7 neighbours
inline constexpr std::int64_t N_CHOICES = 4;

// Only `judge_voters` changes masks; elsewhere, Mask is const.
template <class Mask>
struct WindowView {
    Vector<const std::int64_t> slots, mask_slots;
    Matrix<const std::uint8_t> indicator;
    Matrix<Mask> masks;

    bool says(std::int64_t position, std::int64_t label) const { return indicator[slots[position]][label] != 0; }
    Mask& may_vote(std::int64_t position, std::int64_t label) const { return masks[mask_slots[position]][label]; }
};

// The distance of x to the row of each slot, on features scaled by their ranges.
inline void scaled_distances(const Vector<const double>& x, const Matrix<const double>& rows, const Vector<const std::int64_t>& slots,
                             const Vector<const double>& low, const Vector<const double>& high, const Vector<double>& distances) {
    for (std::int64_t position = 0; position < slots.size; ++position) {
        const double* row = rows[slots[position]];
        double total = 0.0;
        for (std::int64_t column = 0; column < x.size; ++column) {
            const double span = high[column] - low[column];
            if (span > 0) {
                const double difference = (x[column] - low[column]) / span - (row[column] - low[column]) / span;
                total += difference * difference;
            }
        }
        distances[position] = std::sqrt(total);
    }
}

// The share of each label among its k nearest voters; 0 if there are fewer than k.
inline void count_votes(const Vector<const std::int64_t>& by_distance, const Vector<const std::int64_t>& k,
    const WindowView<const std::uint8_t>& window,
                        const Vector<double>& votes) {
    for (std::int64_t label = 0; label < k.size; ++label) {
        votes[label] = 0.0;
        std::int64_t n_voters = 0, n_ones = 0;
        for (std::int64_t place = 0; place < by_distance.size; ++place) {
            if (!window.may_vote(by_distance[place], label)) continue;
            n_ones += window.says(by_distance[place], label);
            if (++n_voters == k[label]) {
                votes[label] = static_cast<double>(n_ones) / static_cast<double>(n_voters);
                break;
            }
        }
    }
}

// Update masks and errors by the true labels; output the votes, and which of the four values of k were right per label.
inline void judge_voters(const Vector<const std::int64_t>& by_distance, const Vector<const std::int64_t>& k,
                         const Vector<const std::uint8_t>& truth, const WindowView<std::uint8_t>& window, const Vector<std::int64_t>& errors,
                         const Vector<double>& votes, const Matrix<std::uint8_t>& was_right) {
    for (std::int64_t label = 0; label < k.size; ++label) {
        const bool present = truth[label] != 0;
        votes[label] = 0.0;
        std::int64_t n_voters = 0, n_ones = 0;
        bool deciding = true;
        for (std::int64_t place = 0; place < by_distance.size && n_voters < LARGEST_K; ++place) {
            const std::int64_t position = by_distance[place];
            const bool says = window.says(position, label);
            std::uint8_t& may_vote = window.may_vote(position, label);
            if (!may_vote) {
                if (deciding && says == present) may_vote = 1;
                continue;
            }
            ++n_voters;
            n_ones += says;
            if (deciding && says != present) {
                may_vote = 0;
                ++errors[window.slots[position]];
            }
            if (n_voters % 2 == 1) was_right[label][n_voters / 2] = (2 * n_ones >= n_voters) == present;
            if (n_voters % 2 == 1 && n_voters == k[label]) {
                votes[label] = static_cast<double>(n_ones) / static_cast<double>(n_voters);
                deciding = false;
            }
        }
        // With too few voters, a label counts as absent.
        for (std::int64_t choice = (n_voters + 1) / 2; choice < N_CHOICES; ++choice) was_right[label][choice] = !present;
    }
}

// Predict each row from `first` on, using the rows from `start` up to that row, and count its correctly predicted labels.
inline void test_rows(std::int64_t start, std::int64_t first, const Vector<const std::int64_t>& k, bool from_scratch,
                      const Matrix<const double>& distances, const WindowView<const std::uint8_t>& window, const Vector<std::int64_t>& n_right) {
    std::int64_t nearest[LARGEST_K];
    for (std::int64_t position = first; position < first + n_right.size; ++position) {
        const double* to_slot = distances[window.slots[position]];
        const auto distance_to = [&](std::int64_t other) { return to_slot[window.slots[other]]; };
        n_right[position - first] = 0;
        for (std::int64_t label = 0; label < k.size; ++label) {
            // When a window is re-tested, its first rows use fewer neighbours.
            const std::int64_t n_wanted = from_scratch ? std::clamp<std::int64_t>(position - start, 0, k[label]) : k[label];
            // If too few rows may vote, the oldest row fills the missing places.
            std::fill_n(nearest, LARGEST_K, 0);
            std::int64_t n_found = 0;
            for (std::int64_t other = start; other < position && n_wanted > 0; ++other) {
                if (!window.may_vote(other, label)) continue;
                const double distance = distance_to(other);
                if (n_found < n_wanted) {
                    ++n_found;
                } else if (!(distance < distance_to(nearest[n_found - 1]))) {
                    continue;
                }
                std::int64_t at = n_found - 1;
                for (; at > 0 && distance < distance_to(nearest[at - 1]); --at) nearest[at] = nearest[at - 1];
                nearest[at] = other;
            }
            std::int64_t n_ones = 0;
            for (std::int64_t at = 0; at < n_wanted; ++at) n_ones += window.says(nearest[at], label);
            const bool predicted = n_wanted > 0 && 2 * n_ones >= n_wanted;
            n_right[position - first] += predicted == window.says(position, label);
        }
    }
}

}  // namespace mlca::MLCA_LEVEL::peers
