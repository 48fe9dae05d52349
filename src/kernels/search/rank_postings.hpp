// Postings under the learned similarity: exact distances from a row to all nodes at once, computed from lists of the
// nodes that have each feature.
//
// Used if rows are sparse, or if most values of the nodes are zero. Other dense rows use four-bit codes
// (search/rank_codes.hpp); short, mostly non-zero rows with missing or nominal values use float tiles
// (search/float_tiles.hpp).
//
// If only one of row and node has a feature, its contribution is already part of the row's or the node's sums against
// zeros. The lists of the row's features are traversed to correct the sums of the nodes that share them. All terms are
// integers, so the results equal those of comparing nodes one by one. Missing values and categories are also entries,
// in separate lists: a missing value removes the contribution of the other side, or the weight that the feature would
// have if it were zero.
//
// Lists are rebuilt when the similarity is recomputed. Until then, the entries of a node that has moved are ignored,
// and the node is compared separately.
#pragma once

#include <algorithm>
#include <cstdint>

#include "similarity/rank_distance.hpp"
#include "base/memory.hpp"
#include "base/pair_rows.hpp"

namespace mlca::MLCA_LEVEL {

class RankPostings {
public:
    // Working memory of a search: the corrections to the sums of every node.
    struct Space {
        Array<Parts> corrections;
    };

    explicit RankPostings(std::int64_t d) : list_of_(d, NO_LIST) {}

    // Enter all nodes of a view (see similarity/fit_similarity.hpp) under a similarity.
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
            const std::int64_t n = keys.size();
            reserve(learned, keys.data(), values.data(), n);
            enter(learned, keys.data(), values.data(), n);
        }
    }

    // Reserve memory for a node with these entries, so that `enter` cannot fail.
    void reserve(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) {
        if (alone_.size() == alone_.capacity()) {
            const std::size_t room = alone_.size() + alone_.size() / 2 + 64;
            is_listed_.reserve(room);
            alone_.reserve(room);
        }
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t list = list_for(keys[p]);
            if (is_number(learned, keys[p], values[p])) {
                numbers_.make_room(list, 1);
            } else {
                others_.make_room(list, 1);
            }
        }
    }

    // Enter the next node.
    void enter(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) noexcept {
        const auto node = static_cast<std::int32_t>(alone_.size());
        Parts sums;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t j = keys[p];
            if (is_number(learned, j, values[p])) {
                const std::int32_t rank = learned.ranks(j, values[p]);
                sums.above += learned.term(j, rank);
                sums.below += learned.weight_of_entry(j);
                numbers_.append(list_of_[j], node, rank);
            } else {
                if (is_missing(values[p])) {
                    sums.below -= learned.weight_of_zero(j);
                } else {
                    sums.above += learned.term(j, learned.apart());
                }
                others_.append(list_of_[j], node, values[p]);
            }
        }
        alone_.push_back(sums);
        is_listed_.push_back(1);
    }

    // Remove the newest node, given its entries.
    void withdraw(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) noexcept {
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t list = list_of_[keys[p]];
            if (is_number(learned, keys[p], values[p])) {
                --numbers_[list].length;
            } else {
                --others_[list].length;
            }
        }
        alone_.pop_back();
        is_listed_.pop_back();
    }
    void withdraw_dense(const double* weights, std::int64_t d) noexcept {
        for (std::int64_t j = 0; j < d; ++j) {
            if (weights[j] != 0.0) --numbers_[list_of_[j]].length;
        }
        alone_.pop_back();
        is_listed_.pop_back();
    }
    std::int64_t n_nodes() const noexcept { return alone_.size(); }

    // Ignore a node's entries in the lists from now on, because it has moved.
    void leave(std::int64_t node) noexcept { is_listed_[node] = 0; }
    bool lists(std::int64_t node) const noexcept { return is_listed_[node]; }

    // Traverse the lists for a row's entries, and compute the corrections for the first n_nodes nodes.
    void correct(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, std::int64_t n_nodes, Space& space) const {
        space.corrections.assign(n_nodes, Parts{});
        Parts* const corrections = space.corrections.data();
        for (std::int64_t p = 0; p < n; ++p) {
            fetch_lists(keys, p, n);
            const std::int32_t list = list_of_[keys[p]];
            if (list == NO_LIST) continue;
            const auto& numbers = numbers_[list];
            const auto& others = others_[list];
            correct_numbers(learned, keys[p], values[p], numbers, length_within(numbers, n_nodes), corrections);
            if (others.length > 0) correct_others(learned, keys[p], values[p], others, length_within(others, n_nodes), corrections);
        }
    }

    // The sums of a listed node with a row; `alone` are the row's sums against zeros.
    Parts parts(const Parts& alone, std::int64_t node, const Space& space) const noexcept {
        const Parts &node_alone = alone_[node], &correction = space.corrections[node];
        return {alone.above + node_alone.above + correction.above, alone.below + node_alone.below + correction.below};
    }

private:
    static constexpr std::int64_t TOGETHER = 64;
    static constexpr std::int32_t NO_LIST = -1;

    // The index of a feature's list, which is created if it does not exist.
    std::int32_t list_for(std::int32_t feature) {
        std::int32_t& list = list_of_[feature];
        if (list == NO_LIST) {
            numbers_.resize(n_lists_ + 1);
            others_.resize(n_lists_ + 1);
            list = n_lists_++;
        }
        return list;
    }

    // Prefetch lists of the row's next features: the headers of lists that are needed a little later, and the
    // beginnings of lists that are needed soon.
    void fetch_lists(const std::int32_t* keys, std::int64_t p, std::int64_t n) const noexcept {
        constexpr std::int64_t FAR = 8, NEAR = 4;
        const std::int32_t far = p + FAR < n ? list_of_[keys[p + FAR]] : NO_LIST, near = p + NEAR < n ? list_of_[keys[p + NEAR]] : NO_LIST;
        if (far != NO_LIST) {
            __builtin_prefetch(&numbers_[far]);
            __builtin_prefetch(&others_[far]);
        }
        if (near != NO_LIST) {
            const auto& numbers = numbers_[near];
            fetch_row(numbers.keys, std::min(numbers.length, 64));
            fetch_row(numbers.values, std::min(numbers.length, 64));
        }
    }

    static bool is_number(const Learned& learned, std::int32_t feature, double value) noexcept {
        return !is_missing(value) && !is_nominal(learned.nominal, feature);
    }
    // Add to both sums with one vector operation.
    [[gnu::always_inline]] static void add(Parts& sums, const Parts& change) noexcept {
        typedef std::int64_t Two __attribute__((vector_size(16), aligned(8), may_alias));
        reinterpret_cast<Two&>(sums) += Two{change.above, change.below};
    }
    // Number of leading entries of a list that belong to the first n_nodes nodes.
    template <class List>
    static std::int64_t length_within(const List& list, std::int64_t n_nodes) noexcept {
        return std::lower_bound(list.keys, list.keys + list.length, n_nodes) - list.keys;
    }

    // Correct the sums of nodes that have a number in a feature in which the row has a number or a missing value.
    static void correct_numbers(const Learned& learned, std::int32_t feature, double value, const PairRows<std::int32_t>::Row& list,
        std::int64_t length, Parts* corrections) {
        const std::int64_t weight = learned.weight_of_entry(feature);
        if (is_missing(value)) {
            for (std::int64_t i = 0; i < length; ++i) {
                add(corrections[list.keys[i]], {-learned.term(feature, list.values[i]), -weight});
            }
            return;
        }
        if (length == 0) return;
        TermChanges term_changes(learned, feature, learned.ranks(feature, value));
        for (std::int64_t first = 0; first < length; first += TOGETHER) {
            const std::int64_t n_here = std::min(TOGETHER, length - first);
            const std::int64_t* const changes = term_changes.changes(list.values + first, n_here);
            for (std::int64_t i = 0; i < n_here; ++i) add(corrections[list.keys[first + i]], {changes[i], -weight});
        }
    }

    // Correct the sums of nodes that have a category or a missing value in a feature of the row.
    static void correct_others(const Learned& learned, std::int32_t feature, double value, const PairRows<double>::Row& list, std::int64_t length,
        Parts* corrections) {
        const std::int64_t apart = learned.term(feature, learned.apart());
        Parts at_category, at_equal, at_missing;  // corrections, by the node's value
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
            add(corrections[list.keys[i]], is_missing(list.values[i]) ? at_missing : list.values[i] == value ? at_equal : at_category);
        }
    }

    // Corrections to `above` for a feature that row and node share: the term of the difference is added, and the terms
    // against zeros are subtracted. They are computed for many nodes at once by vectors, with the same integers as for
    // single nodes.
    class TermChanges {
    public:
        TermChanges(const Learned& learned, std::int32_t feature, std::int32_t rank) noexcept
            : learned_(learned), feature_(feature), rank_(rank), alone_(learned.term(feature, rank)) {}

        // Return the corrections for n nodes with the given ranks; valid until the next call.
        const std::int64_t* changes(const std::int32_t* ranks, std::int64_t n) noexcept {
            std::fill_n(changes_, n, -2 * alone_);
            std::int32_t differing = 0;
            for (std::int64_t i = 0; i < n; ++i) differing |= ranks[i] ^ rank_;
            if (differing == 0) return changes_;  // almost always the case if values are zeros and ones
            std::int64_t n_others = 0;  // most word counts are 1; only ranks that differ from the row's need kernels
            for (std::int64_t i = 0; i < n; ++i) {
                others_[n_others] = static_cast<std::int32_t>(i);
                n_others += ranks[i] != rank_;
            }
            double between[TOGETHER], from_zero[TOGETHER];
            for (std::int64_t k = 0; k < n_others; ++k) {
                between[k] = static_cast<double>(rank_ - ranks[others_[k]]);
                from_zero[k] = static_cast<double>(ranks[others_[k]]);
            }
            std::int64_t terms_between[TOGETHER], terms_from_zero[TOGETHER];
            learned_.terms(feature_, between, n_others, terms_between);
            learned_.terms(feature_, from_zero, n_others, terms_from_zero);
            for (std::int64_t k = 0; k < n_others; ++k) changes_[others_[k]] = terms_between[k] - (alone_ + terms_from_zero[k]);
            return changes_;
        }

    private:
        const Learned& learned_;
        std::int32_t feature_, rank_;
        std::int64_t alone_;
        std::int64_t changes_[TOGETHER];
        std::int32_t others_[TOGETHER];  // positions of ranks that differ from the row's
    };

    Array<std::int32_t> list_of_;     // per feature: its list; most features of wide rows have none
    std::int32_t n_lists_ = 0;
    PairRows<std::int32_t> numbers_;  // per list: nodes and their ranks
    PairRows<double> others_;         // per list: nodes and their categories or missing values
    Array<Parts> alone_;             // per node: its sums against zeros
    Array<std::uint8_t> is_listed_;
};

}  // namespace mlca::MLCA_LEVEL
