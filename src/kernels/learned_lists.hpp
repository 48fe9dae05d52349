// The learned similarity of a sparse row to all nodes at once, by lists of the nodes that have an attribute.
//
// Where only one of row and node has an attribute, what it adds is known beforehand: it is part of the row's sums against
// zeros, or of the node's. Lists are gone through for the row's own attributes, and correct the sums of the nodes that share
// them. All are whole numbers, so these are the sums that a comparison one by one would make.
//
// Lists follow the similarity: when it is computed anew, so are they. A node that moves leaves them until then, and is
// compared by itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "learned.hpp"
#include "memory.hpp"
#include "pairs.hpp"

namespace mlca::MLCA_LEVEL {

class LearnedLists {
public:
    // Corrections of every node for one row.
    struct Space {
        Array<Parts> corrections;
    };

    explicit LearnedLists(std::int64_t d) { lists_.resize(d); }

    // All nodes of a view (see weighing.hpp), under a similarity.
    template <class View>
    LearnedLists(const View& view, const Learned& learned) : LearnedLists(view.n_attributes()) {
        Array<std::int32_t> keys;
        Array<double> values;
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            keys.clear();
            values.clear();
            view.for_each_entry(k, 0, view.n_attributes(), [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                keys.push_back(static_cast<std::int32_t>(j));
                values.push_back(value);
            });
            const auto n = static_cast<std::int64_t>(keys.size());
            reserve(keys.data(), n);
            enter(learned, keys.data(), values.data(), n);
        }
    }

    // Make room for a node of these attributes, so that `enter` cannot fail.
    void reserve(const std::int32_t* keys, std::int64_t n) {
        if (alone_.size() == alone_.capacity()) {
            const std::size_t room = alone_.size() + alone_.size() / 2 + 64;
            is_listed_.reserve(room);
            alone_.reserve(room);
        }
        for (std::int64_t p = 0; p < n; ++p) lists_.make_room(keys[p], 1);
    }

    // Put in the next node.
    void enter(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n) noexcept {
        const auto node = static_cast<std::int32_t>(alone_.size());
        Parts sums;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t rank = learned.ranks(keys[p], values[p]);
            sums.above += learned.term(keys[p], rank);
            sums.below += learned.weights.data()[keys[p]];
            lists_.append(keys[p], node, rank);
        }
        alone_.push_back(sums);
        is_listed_.push_back(1);
    }

    // Unmake the youngest node, of these attributes.
    void withdraw(const std::int32_t* keys, std::int64_t n) noexcept {
        for (std::int64_t p = 0; p < n; ++p) --lists_[keys[p]].length;
        alone_.pop_back();
        is_listed_.pop_back();
    }
    void withdraw_dense(const double* weights, std::int64_t d) noexcept {
        for (std::int64_t j = 0; j < d; ++j) lists_[j].length -= weights[j] != 0.0;
        alone_.pop_back();
        is_listed_.pop_back();
    }
    std::int64_t n_nodes() const noexcept { return static_cast<std::int64_t>(alone_.size()); }

    // The node has moved.
    void leave(std::int64_t node) noexcept { is_listed_.data()[node] = 0; }
    bool lists(std::int64_t node) const noexcept { return is_listed_.data()[node]; }

    // Go through the lists of a row's attributes, for the first so many nodes.
    void correct(const Learned& learned, const std::int32_t* keys, const double* values, std::int64_t n, std::int64_t n_nodes, Space& space) const {
        space.corrections.assign(static_cast<std::size_t>(n_nodes), Parts{});
        for (std::int64_t p = 0; p < n; ++p) {
            const auto& list = lists_[keys[p]];
            const std::int64_t length = std::lower_bound(list.keys, list.keys + list.length, n_nodes) - list.keys;
            const std::int64_t weight = learned.weights.data()[keys[p]];
            Sharing sharing(learned, keys[p], learned.ranks(keys[p], values[p]));
            for (std::int64_t first = 0; first < length; first += TOGETHER) {
                const std::int64_t n_here = std::min(TOGETHER, length - first);
                const std::int64_t* const changes = sharing.changes(list.values + first, n_here);
                for (std::int64_t i = 0; i < n_here; ++i) {
                    Parts& correction = space.corrections.data()[list.keys[first + i]];
                    correction.above += changes[i];
                    correction.below -= weight;
                }
            }
        }
    }

    // The sums of a node that is listed with a row of these sums against zeros.
    Parts parts(const Learned& learned, const Parts& alone, std::int64_t node, const Space& space) const noexcept {
        const Parts &node_alone = alone_.data()[node], &correction = space.corrections.data()[node];
        return {alone.above + node_alone.above + correction.above, learned.sparse ? alone.below + node_alone.below + correction.below : learned.total};
    }

private:
    static constexpr std::int64_t TOGETHER = 64;

    // What sharing an attribute with a row changes in the sums above: the term of the difference comes, those against zeros go.
    // They are computed for many nodes at once, with vectors, and are the integers that one by one would give.
    class Sharing {
    public:
        Sharing(const Learned& learned, std::int32_t attribute, std::int32_t rank) noexcept
            : learned_(learned), attribute_(attribute), rank_(rank), alone_(learned.term(attribute, rank)) {}

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
            learned_.terms(attribute_, between, n, changes_);
            learned_.terms(attribute_, from_zero, n, terms_from_zero);
            for (std::int64_t i = 0; i < n; ++i) changes_[i] -= alone_ + terms_from_zero[i];
            return changes_;
        }

    private:
        const Learned& learned_;
        std::int32_t attribute_, rank_;
        std::int64_t alone_;
        std::int64_t changes_[TOGETHER];
    };

    PairRows<std::int32_t> lists_;   // of each attribute: nodes and their ranks
    Array<Parts> alone_;             // of each node: its sums against zeros
    Array<std::uint8_t> is_listed_;
};

}  // namespace mlca::MLCA_LEVEL
