// The entries of all nodes as ranks.
//
// They are given less a base that is the rank of 0 wherever a node is 0 (see Ranks::base): zeros add nothing to sums, and ranks are
// small. Where few entries are zero all are kept, node by node, from the lowest rank; else the others with their attributes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "memory.hpp"
#include "ranked_columns.hpp"
#include "ranks.hpp"

namespace mlca::MLCA_LEVEL {

class RankedNodes {
public:
    RankedNodes() = default;

    // Dense nodes whose ranks are known.
    RankedNodes(const Ranks& ranks, RankedRows rows) : RankedNodes(ranks) { rows_.emplace(std::move(rows)); }

    // The nodes of a view (see weighing.hpp) with so many non-zeros.
    template <class View>
    RankedNodes(const View& view, const Ranks& ranks, std::int64_t n_entries) : RankedNodes(ranks) {
        if (2 * n_entries >= view.n_nodes() * d_) {
            rows_.emplace(d_);
            rows_->ranks.reserve(view.n_nodes());
        } else {
            starts_.reserve(static_cast<std::size_t>(view.n_nodes() + 1));
            starts_.push_back(0);
            keys_.resize(static_cast<std::size_t>(n_entries));
            ranks_.resize(static_cast<std::size_t>(n_entries));
        }
        std::int64_t place = 0;
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            std::int32_t* node_ranks = rows_ ? rows_->ranks[k] : nullptr;
            if (rows_) std::copy_n(ranks.zeros.data(), d_, node_ranks);
            view.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
                if (value == 0.0) return;
                if (rows_) {
                    node_ranks[j] += ranks(j, value);
                } else {
                    keys_.data()[place] = static_cast<std::int32_t>(j);
                    ranks_.data()[place++] = ranks(j, value) + shifts_.data()[j];
                }
            });
            if (!rows_) starts_.push_back(place);
        }
    }

    bool is_dense() const noexcept { return rows_.has_value(); }
    // A dense node's ranks, from the lowest, and what they are more than given.
    const std::int32_t* row(std::int64_t k) const noexcept { return rows_->ranks[k]; }
    std::int32_t base(std::int64_t attribute) const noexcept { return bases_.data()[attribute]; }
    // Give the dense nodes away.
    RankedRows take_rows() noexcept { return std::move(*rows_); }
    // An attribute's rank of 0 less its base.
    std::int32_t shift(std::int64_t attribute) const noexcept { return shifts_.data()[attribute]; }

    // f(attribute, rank less the base) for the entries of a node that are kept.
    template <class F>
    void for_each(std::int64_t k, F f) const {
        if (is_dense()) {
            const std::int32_t* __restrict node_ranks = row(k);
            for (std::int64_t j = 0; j < d_; ++j) f(j, std::int64_t{node_ranks[j] - base(j)});
        } else {
            for (std::int64_t p = starts_.data()[k]; p < starts_.data()[k + 1]; ++p) f(keys_.data()[p], std::int64_t{ranks_.data()[p]});
        }
    }

private:
    explicit RankedNodes(const Ranks& ranks) : d_(static_cast<std::int64_t>(ranks.zeros.size())) {
        shifts_.resize(ranks.zeros.size());
        bases_.resize(ranks.zeros.size());
        for (std::int64_t j = 0; j < d_; ++j) {
            bases_.data()[j] = ranks.base(j);
            shifts_.data()[j] = ranks.zeros.data()[j] - bases_.data()[j];
        }
    }

    std::int64_t d_ = 0;
    std::optional<RankedRows> rows_;
    Array<std::int64_t> starts_;
    Array<std::int32_t> keys_, ranks_;
    Array<std::int32_t> bases_, shifts_;
};

}  // namespace mlca::MLCA_LEVEL
