// Postings under the learned similarity: exact distances of a row to all nodes at once, by lists of the nodes that have a feature.
//
// Chosen where rows come sparse, or most entries of the nodes are zero. Dense rows use four-bit codes (search/rank_codes.hpp), short rows
// with missing or nominal values of which most are not zero use float tiles (search/float_tiles.hpp).
//
// Where only one of row and node has a feature, what it adds is known beforehand: it is part of the row's sums against
// zeros, or of the node's. Lists are gone through for the row's own features, and correct the sums of the nodes that share
// them. All are whole numbers, so these are the sums that a comparison one by one would make. Missing values and categories are entries
// as others are, in lists of their own: a missing value takes away what the other side added, or the weight that counts everywhere.
//
// Lists follow the similarity: when it is recomputed, so are they. A node that moves leaves them until then, and is
// compared by itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "similarity/rank_distance.hpp"
#include "base/memory.hpp"
#include "base/pair_rows.hpp"

namespace mlca::MLCA_LEVEL {

class RankPostings {
public:
    // Corrections of every node for one row.
    struct Space {
        Array<Parts> corrections;
    };

    explicit RankPostings(std::int64_t d) {
        numbers_.resize(d);
        others_.resize(d);
    }

    // All nodes of a view (see similarity/fit_similarity.hpp), under a similarity.
    template <class View>
    RankPostings(const View& view, const Learned& learned) : RankPostings(view.n_features()) {
        Array<std::int32_t> keys;
        Array<double> values;
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            keys.clear();
            values.clear();
            view.for_each_entry(k, 0, view.n_features(), [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                keys.push_back(static_cast<std::int32_t>(j));
                values.push_back(value);
            });
            const auto n = static_cast<std::int64_t>(keys.size());
            reserve(learned, keys.data(), values.data(), n);
            enter(learned, keys.data(), values.data(), n);
        }
    }

    // Reserve memory for a node of these entries, so that `enter` cannot fail.
    void reserve(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) {
        if (alone_.size() == alone_.capacity()) {
            const std::size_t room = alone_.size() + alone_.size() / 2 + 64;
            is_listed_.reserve(room);
            alone_.reserve(room);
        }
        for (std::int64_t p = 0; p < n; ++p) {
            if (is_number(learned, keys[p], values[p])) {
                numbers_.make_room(keys[p], 1);
            } else {
                others_.make_room(keys[p], 1);
            }
        }
    }

    // Put in the next node.
    void enter(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) noexcept {
        const auto node = static_cast<std::int32_t>(alone_.size());
        Parts sums;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            if (is_number(learned, j, values[p])) {
                const std::int32_t rank = learned.ranks(j, values[p]);
                sums.above += learned.term(j, rank);
                sums.below += learned.weight_of_entry(j);
                numbers_.append(j, node, rank);
            } else {
                if (is_missing(values[p])) {
                    sums.below -= learned.weight_of_zero(j);
                } else {
                    sums.above += learned.term(j, learned.apart());
                }
                others_.append(j, node, values[p]);
            }
        }
        alone_.push_back(sums);
        is_listed_.push_back(1);
    }

    // Remove the youngest node, of these entries.
    void withdraw(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) noexcept {
        for (std::int64_t p = 0; p < n; ++p) {
            if (is_number(learned, keys[p], values[p])) {
                --numbers_[keys[p]].length;
            } else {
                --others_[keys[p]].length;
            }
        }
        alone_.pop_back();
        is_listed_.pop_back();
    }
    void withdraw_dense(const double* weights, std::int64_t d) noexcept {
        for (std::int64_t j = 0; j < d; ++j) numbers_[j].length -= weights[j] != 0.0;
        alone_.pop_back();
        is_listed_.pop_back();
    }
    std::int64_t n_nodes() const noexcept { return static_cast<std::int64_t>(alone_.size()); }

    // The node has moved.
    void leave(std::int64_t node) noexcept { is_listed_.data()[node] = 0; }
    bool lists(std::int64_t node) const noexcept { return is_listed_.data()[node]; }

    // Go through the lists of a row's entries, for the first that many nodes.
    void correct(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, std::int64_t n_nodes, Space& space) const {
        space.corrections.assign(static_cast<std::size_t>(n_nodes), Parts{});
        Parts* const corrections = space.corrections.data();
        for (std::int64_t p = 0; p < n; ++p) {
            const auto& numbers = numbers_[keys[p]];
            const auto& others = others_[keys[p]];
            correct_numbers(learned, keys[p], values[p], numbers, length_within(numbers, n_nodes), corrections);
            if (others.length > 0) correct_others(learned, keys[p], values[p], others, length_within(others, n_nodes), corrections);
        }
    }

    // The sums of a node that is listed with a row of these sums against zeros.
    Parts parts(const Parts& alone, std::int64_t node, const Space& space) const noexcept {
        const Parts &node_alone = alone_.data()[node], &correction = space.corrections.data()[node];
        return {alone.above + node_alone.above + correction.above, alone.below + node_alone.below + correction.below};
    }

private:
    static constexpr std::int64_t TOGETHER = 64;

    static bool is_number(const Learned& learned, std::int32_t feature, double value) noexcept {
        return !is_missing(value) && !is_nominal(learned.nominal, feature);
    }
    // How many of the first nodes are on a list.
    template <class List>
    static std::int64_t length_within(const List& list, std::int64_t n_nodes) noexcept {
        return std::lower_bound(list.keys, list.keys + list.length, n_nodes) - list.keys;
    }

    // What changes where nodes have a number and the row a number or a missing value.
    static void correct_numbers(const Learned& learned, std::int32_t feature, double value, const PairRows<std::int32_t>::Row& list,
        std::int64_t length, Parts* corrections) {
        const std::int64_t weight = learned.weight_of_entry(feature);
        if (is_missing(value)) {
            for (std::int64_t i = 0; i < length; ++i) {
                Parts& correction = corrections[list.keys[i]];
                correction.above -= learned.term(feature, list.values[i]);
                correction.below -= weight;
            }
            return;
        }
        if (length == 0) return;
        ParallelFor sharing(learned, feature, learned.ranks(feature, value));
        for (std::int64_t first = 0; first < length; first += TOGETHER) {
            const std::int64_t n_here = std::min(TOGETHER, length - first);
            const std::int64_t* const changes = sharing.changes(list.values + first, n_here);
            for (std::int64_t i = 0; i < n_here; ++i) {
                Parts& correction = corrections[list.keys[first + i]];
                correction.above += changes[i];
                correction.below -= weight;
            }
        }
    }

    // What changes where nodes have a category or a missing value.
    static void correct_others(const Learned& learned, std::int32_t feature, double value, const PairRows<double>::Row& list, std::int64_t length,
        Parts* corrections) {
        const std::int64_t apart = learned.term(feature, learned.apart());
        Parts at_category, at_equal, at_missing;  // by what the node has
        if (is_missing(value)) {
            at_category.above = -apart;
            at_missing.below = learned.weight_of_zero(feature);
        } else {
            const std::int64_t alone = is_nominal(learned.nominal, feature) ? apart : learned.term(feature, learned.ranks(feature, value));
            at_category.above = -apart;
            at_equal.above = -2 * apart;
            at_missing = {-alone, -learned.weight_of_entry(feature)};
        }
        for (std::int64_t i = 0; i < length; ++i) {
            const Parts& change = is_missing(list.values[i]) ? at_missing : list.values[i] == value ? at_equal : at_category;
            Parts& correction = corrections[list.keys[i]];
            correction.above += change.above;
            correction.below += change.below;
        }
    }

    // What sharing a feature with a row changes in the sums above: the term of the difference comes, those against zeros go.
    // They are computed for many nodes at once, with vectors, and are the integers that one by one would give.
    class ParallelFor {
    public:
        ParallelFor(const Learned& learned, std::int32_t feature, std::int32_t rank) noexcept
            : learned_(learned), feature_(feature), rank_(rank), alone_(learned.term(feature, rank)) {}

        // For nodes of these ranks; good until the next call.
        const std::int64_t* changes(const std::int32_t* ranks, std::int64_t n) noexcept {
            std::int32_t differing = 0;
            for (std::int64_t i = 0; i < n; ++i) differing |= ranks[i] ^ rank_;
            if (differing == 0) {  // as nearly always where rows are zeros and ones
                std::fill_n(changes_, n, -2 * alone_);
                return changes_;
            }
            double between[TOGETHER], from_zero[TOGETHER];
            for (std::int64_t i = 0; i < n; ++i) between[i] = static_cast<double>(rank_ - ranks[i]);
            for (std::int64_t i = 0; i < n; ++i) from_zero[i] = static_cast<double>(ranks[i]);
            std::int64_t terms_from_zero[TOGETHER];
            learned_.terms(feature_, between, n, changes_);
            learned_.terms(feature_, from_zero, n, terms_from_zero);
            for (std::int64_t i = 0; i < n; ++i) changes_[i] -= alone_ + terms_from_zero[i];
            return changes_;
        }

    private:
        const Learned& learned_;
        std::int32_t feature_, rank_;
        std::int64_t alone_;
        std::int64_t changes_[TOGETHER];
    };

    PairRows<std::int32_t> numbers_;  // of each feature: nodes and their ranks
    PairRows<double> others_;        // of each feature: nodes and their categories or missing values
    Array<Parts> alone_;             // of each node: its sums against zeros
    Array<std::uint8_t> is_listed_;
};

}  // namespace mlca::MLCA_LEVEL
