// The entries of all nodes as ranks.
//
// They are kept less a base that is the rank of 0 wherever a node is 0 (see Ranks::base): zeros add nothing to sums, and ranks are
// small. Where few entries are zero all are kept, node by node; else the others with their attributes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory.hpp"
#include "ranks.hpp"

namespace mlca::MLCA_LEVEL {

class RankedNodes {
public:
    RankedNodes() = default;

    // The nodes of a view (see weighing.hpp) with so many non-zeros.
    template <class View>
    RankedNodes(const View& view, const Ranks& ranks, std::int64_t n_entries)
        : d_(view.n_attributes()), is_dense_(2 * n_entries >= view.n_nodes() * d_) {
        shifts_.resize(static_cast<std::size_t>(d_));
        for (std::int64_t j = 0; j < d_; ++j) shifts_.data()[j] = ranks.zeros.data()[j] - ranks.base(j);
        if (is_dense_) {
            ranks_.assign(static_cast<std::size_t>(view.n_nodes() * d_), 0);
        } else {
            starts_.reserve(static_cast<std::size_t>(view.n_nodes() + 1));
            starts_.push_back(0);
            keys_.resize(static_cast<std::size_t>(n_entries));
            ranks_.resize(static_cast<std::size_t>(n_entries));
        }
        std::int64_t place = 0;
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            view.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                if (is_dense_) {
                    place = k * d_ + j;
                } else {
                    keys_.data()[place] = static_cast<std::int32_t>(j);
                }
                ranks_.data()[place++] = ranks(j, value) + shifts_.data()[j];
            });
            if (!is_dense_) starts_.push_back(place);
        }
    }

    bool is_dense() const noexcept { return is_dense_; }
    // A dense node's ranks less the base.
    const std::int32_t* row(std::int64_t k) const noexcept { return ranks_.data() + k * d_; }
    // An attribute's rank of 0 less its base.
    std::int32_t shift(std::int64_t attribute) const noexcept { return shifts_.data()[attribute]; }

    // f(attribute, rank less the base) for the entries of a node that are kept.
    template <class F>
    void for_each(std::int64_t k, F f) const {
        if (is_dense_) {
            const std::int32_t* __restrict own = row(k);
            for (std::int64_t j = 0; j < d_; ++j) f(j, std::int64_t{own[j]});
        } else {
            for (std::int64_t p = starts_.data()[k]; p < starts_.data()[k + 1]; ++p) f(keys_.data()[p], std::int64_t{ranks_.data()[p]});
        }
    }

    // A node's ranks, of all attributes.
    void unfold(std::int64_t k, std::int32_t* ranks) const noexcept {
        if (!is_dense_) std::fill_n(ranks, d_, 0);
        for_each(k, [&](std::int64_t j, std::int64_t rank) { ranks[j] = static_cast<std::int32_t>(rank) - shift(j); });
    }
    // A node's ranks, of these non-zeros, which are in the order of the view.
    void list(std::int64_t k, const std::int32_t* keys, std::int64_t n, std::int32_t* ranks) const noexcept {
        const std::int32_t* own = is_dense_ ? row(k) : ranks_.data() + starts_.data()[k];
        for (std::int64_t p = 0; p < n; ++p) ranks[p] = own[is_dense_ ? keys[p] : p] - shift(keys[p]);
    }

private:
    std::int64_t d_ = 0;
    bool is_dense_ = false;
    Array<std::int64_t> starts_;
    Array<std::int32_t> keys_, ranks_;
    Array<std::int32_t> shifts_;
};

}  // namespace mlca::MLCA_LEVEL
