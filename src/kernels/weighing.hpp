// From nodes to the learned similarity: knots, weights of attributes, background. A pure function of the nodes.
//
// An attribute weighs the more the better it tells some label: by the largest squared correlation of its ranks with a label,
// over the rows that the nodes stand for. All sums are of whole numbers, exact and in any order; n <= 2^40 rows:
//
//   ranks, less the base of the attribute (ranks.hpp)      below 34 * 2^17 < 2^22.1
//   sums of count * rank; of label count * rank            below 2^62.1
//   sums of count * rank^2                                 below 2^84.2, 128 bits
//   variance * n^2 = n * (sum of squares) - sum^2          below 2^124.2, 128 bits
//   covariance * n^2 = n * (sum over the label) - sum * P  below 2^102.1, 128 bits
//   squared correlations in units of 2^-40                 at most 2^40 each, 2^62 in all
//
// The base is the rank of 0 wherever a node is 0, so sparse nodes contribute by their entries alone.
//
// Cost: the entries of all nodes once for the knots and once for each label that a node has. A label and an attribute that no
// node of the label has are not looked at one by one: there the covariance is -sum * P, and what follows from it
// grows with P and with the attribute's own numbers, so the first few of a sorted list decide.
//
// Nodes come through a view:
//   n_nodes(), n_attributes(), n_slots(), count(k)
//   GIVES_ALL                         whether all entries of a node are given, and row(k) are its values; else zeros may be left out
//   for_each_entry(k, low, high, f)   f(attribute, value) for attributes from low up to high
//   for_each_label(k, f)              f(slot, rows); slot 0 is "none", label i has slot i + 1
//   pause()                           called now and then: whoever wants to stop throws
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "deviations.hpp"
#include "learned.hpp"
#include "ranked_columns.hpp"
#include "ranked_nodes.hpp"
#include "strongest.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t WEIGH_FROM = 20;

template <class View>
class Weighing {
public:
    explicit Weighing(const View& view) : view_(view), d_(view.n_attributes()), n_nodes_(view.n_nodes()) {}

    // There must be at least one node and one attribute.
    Learned learned() {
        const bool binary = count_entries();
        Learned result(ranks_of_nodes(binary));
        result.sparse = 2 * (n_nodes_ * d_ - n_entries_) > n_nodes_ * d_;
        gather_labels();
        result.has_background = n_nodes_ >= WEIGH_FROM && sees_a_label_;
        result.weights.assign(static_cast<std::size_t>(d_), static_cast<std::int64_t>(rounded(WHOLE_WEIGHT, d_)));
        if (result.has_background) {
            sum_up(result.ranks);
            weigh(result);
        }
        result.background.restore_lists(d_);
        if (result.has_background) Deviations(view_, ranked_, n_, result.background).fill_in();
        result.restore_sums();
        return result;
    }

    // The ranks of dense nodes under what was just learned.
    RankedRows take_rows() noexcept { return ranked_.take_rows(); }

private:
    // Count each attribute's non-zeros; tell whether all are ones.
    bool count_entries() {
        lengths_.assign(static_cast<std::size_t>(d_), 0);
        std::int64_t others = 0;  // neither 0 nor 1
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            view_.for_each_entry(k, 0, d_, [lengths = lengths_.data(), &others](std::int64_t j, double value) {
                lengths[j] += value != 0.0;
                others += (value != 0.0) & (value != 1.0);
            });
        }
        n_entries_ = 0;
        for (const std::int64_t length : lengths_) n_entries_ += length;
        return others == 0;
    }

    // Find the ranks, and those of all nodes.
    Ranks ranks_of_nodes(bool binary) {
        if constexpr (View::GIVES_ALL) {
            if (2 * n_entries_ >= n_nodes_ * d_) {
                RankedColumns columns(view_, binary);
                ranked_ = RankedNodes(columns.ranks, std::move(columns.rows));
                sums_ = std::move(columns.sums);
                squares_ = std::move(columns.squares);
                return std::move(columns.ranks);
            }
        }
        Ranks ranks = binary ? Ranks::binary(d_) : with_knots();
        ranked_ = RankedNodes(view_, ranks, n_entries_);
        sums_.assign(static_cast<std::size_t>(d_), 0);
        squares_.assign(static_cast<std::size_t>(d_), 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            const std::int64_t count = view_.count(k);
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) {
                sums_.data()[j] += count * rank;
                squares_.data()[j] += static_cast<Int128>(rank * rank) * count;
            });
        }
        return ranks;
    }

    // Collect the values attribute by attribute, as many attributes at a time as an eighth of all entries allows.
    Ranks with_knots() const {
        Ranks ranks = Ranks::with_knots(d_, n_nodes_);
        const std::int64_t room = std::max(n_entries_ / 8, std::int64_t{1} << 20);
        Array<double> values;
        Array<std::int64_t> next;
        Ranks::Space space;
        for (std::int64_t low = 0, high; low < d_; low = high) {
            next.assign(1, 0);
            for (high = low; high < d_ && (high == low || next.back() + lengths_.data()[high] <= room); ++high) {
                next.push_back(next.back() + lengths_.data()[high]);
            }
            values.resize(static_cast<std::size_t>(next.back()));
            for (std::int64_t k = 0; k < n_nodes_; ++k) {
                view_.for_each_entry(k, low, high, [&](std::int64_t j, double value) {
                    if (value != 0.0) values.data()[next.data()[j - low]++] = value;
                });
            }
            for (std::int64_t j = low; j < high; ++j) {
                const std::int64_t n = lengths_.data()[j];
                if (n == 0) {
                    ranks.add_zeros();
                } else {
                    ranks.add(values.data() + next.data()[j - low] - n, n, n_nodes_, space);
                }
            }
        }
        ranks.lay_out(d_);
        return ranks;
    }

    // List the nodes of each slot, with the rows that have it.
    void gather_labels() {
        const std::int64_t n_slots = view_.n_slots();
        slot_starts_.assign(static_cast<std::size_t>(n_slots + 1), 0);
        slot_rows_.assign(static_cast<std::size_t>(n_slots), 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            n_ += view_.count(k);
            view_.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) {
                ++slot_starts_.data()[slot + 1];
                slot_rows_.data()[slot] += rows;
                sees_a_label_ = sees_a_label_ || slot > 0;
            });
        }
        for (std::int64_t slot = 0; slot < n_slots; ++slot) slot_starts_.data()[slot + 1] += slot_starts_.data()[slot];
        members_.resize(static_cast<std::size_t>(slot_starts_.back()));
        Array<std::int64_t> next(slot_starts_.begin(), slot_starts_.end());
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            view_.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) { members_.data()[next.data()[slot]++] = {k, rows}; });
        }
    }

    // How much each attribute varies.
    void sum_up(const Ranks& ranks) {
        const std::int64_t half = ranks.one() / 2;
        const Int128 least = static_cast<Int128>(3 * half * half) * n_;
        spreads_.assign(static_cast<std::size_t>(d_), static_cast<double>(least));
        deviations_.assign(static_cast<std::size_t>(d_), 0.0);
        for (std::int64_t j = 0; j < d_; ++j) {
            if (squares_.data()[j] == 0) continue;  // all ranks are 0
            const Int128 variance = n_ * squares_.data()[j] - static_cast<Int128>(sums_.data()[j]) * sums_.data()[j];
            spreads_.data()[j] = static_cast<double>(variance + least);
            deviations_.data()[j] = std::sqrt(static_cast<double>(variance));
        }
        // Where a label's covariance is -sum * P attributes follow each other in this order, but for rounding.
        by_size_.reserve(static_cast<std::size_t>(d_));
        for (std::int64_t j = 0; j < d_; ++j) {
            if (sums_.data()[j] == 0) continue;
            const double slope = std::fabs(static_cast<double>(sums_.data()[j])) / spreads_.data()[j];
            by_size_.push_back({slope * deviations_.data()[j], slope, static_cast<std::int32_t>(j)});
        }
        std::sort(by_size_.begin(), by_size_.end(), [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
    }

    // Go through the labels, those of most rows first: correlations, and the coefficients of the background.
    void weigh(Learned& result) {
        const std::int64_t n_slots = view_.n_slots();
        Array<std::int64_t> order(static_cast<std::size_t>(n_slots));
        for (std::int64_t slot = 0; slot < n_slots; ++slot) order.data()[slot] = slot;
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return std::pair(-slot_rows_.data()[a], a) < std::pair(-slot_rows_.data()[b], b);
        });
        correlations_.assign(static_cast<std::size_t>(d_), 0);
        label_sums_.assign(static_cast<std::size_t>(d_), 0);
        is_touched_.assign(static_cast<std::size_t>(d_), 0);
        touched_.reserve(static_cast<std::size_t>(d_));
        Array<std::int32_t> pending;  // had by all labels so far; where the sum is 0 not having it says nothing
        for (std::int64_t j = 0; j < d_; ++j) {
            if (sums_.data()[j] != 0) pending.push_back(static_cast<std::int32_t>(j));
        }
        Array<Array<Candidate>> chosen(static_cast<std::size_t>(n_slots));
        for (const std::int64_t slot : order) {
            view_.pause();
            const std::int64_t rows = slot_rows_.data()[slot];
            if (rows == 0) break;  // nor has any label after it
            add_up_label(slot);
            const double label_spread = static_cast<double>(static_cast<Int128>(rows) * (n_ - rows) + 3 * static_cast<Int128>(n_));
            candidates_.clear();
            for (const std::int32_t j : touched_) look_at(j, slot, rows, label_spread);
            if (slot > 0) {
                std::size_t left = 0;
                for (const std::int32_t j : pending) {
                    if (is_touched_.data()[j]) {
                        pending[left++] = j;
                    } else {
                        correlate(j, covariance(j, rows), label_spread);
                    }
                }
                pending.resize(left);
            }
            look_at_others(rows);
            keep_strongest(candidates_, d_, chosen.data()[slot]);
            for (const std::int32_t j : touched_) {
                label_sums_.data()[j] = 0;
                is_touched_.data()[j] = 0;
            }
            touched_.clear();
        }
        lay_out_background(chosen, n_, [this](std::int32_t j) { return Trait{sums_.data()[j], n_, ranked_.shift(j)}; }, result.background);
        set_weights(correlations_, result.weights);
    }

    void add_up_label(std::int64_t slot) {
        for (std::int64_t m = slot_starts_.data()[slot]; m < slot_starts_.data()[slot + 1]; ++m) {
            const std::int64_t k = members_.data()[m].first, rows = members_.data()[m].second;
            if (ranked_.is_dense()) {
                add_times(label_sums_.data(), ranked_.row(k), rows, d_);
                continue;
            }
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) {
                label_sums_.data()[j] += rows * rank;
                touch(j);
            });
        }
        for (std::int64_t j = 0; ranked_.is_dense() && j < d_; ++j) {
            label_sums_.data()[j] -= slot_rows_.data()[slot] * ranked_.base(j);
            touch(j);
        }
    }

    [[gnu::noinline]] static void add_times(std::int64_t* __restrict sums, const std::int32_t* __restrict ranks, std::int64_t rows,
                                            std::int64_t d) noexcept {
        if (rows == 1) {
            for (std::int64_t j = 0; j < d; ++j) sums[j] += ranks[j];
        } else {
            for (std::int64_t j = 0; j < d; ++j) sums[j] += rows * ranks[j];
        }
    }

    void touch(std::int64_t j) noexcept {
        if (is_touched_.data()[j]) return;
        is_touched_.data()[j] = 1;
        touched_.push_back(static_cast<std::int32_t>(j));
    }

    double covariance(std::int32_t j, std::int64_t rows) const noexcept {
        return static_cast<double>(static_cast<Int128>(n_) * label_sums_.data()[j] - static_cast<Int128>(sums_.data()[j]) * rows);
    }

    // A label's squared correlation with an attribute, less what chance makes of few rows.
    void correlate(std::int32_t j, double cov, double label_spread) noexcept {
        const double squared = cov / spreads_.data()[j] * (cov / label_spread);
        const auto units = static_cast<std::int64_t>(nearest_whole(squared * 0x1p40));
        correlations_.data()[j] = std::max(correlations_.data()[j], units);
    }

    void look_at(std::int32_t j, std::int64_t slot, std::int64_t rows, double label_spread) {
        const double cov = covariance(j, rows), slope = cov / spreads_.data()[j];
        if (slot > 0) correlate(j, cov, label_spread);
        if (slope != 0.0) candidates_.push_back({std::fabs(slope) * deviations_.data()[j], slope, j});
    }

    // Candidates among the attributes that no node of the label has: the strongest TOP of them, and all that may equal those.
    void look_at_others(std::int64_t rows) {
        std::int64_t n = 0;
        double least = 0.0;
        for (const Candidate& other : by_size_) {
            if (d_ > TOP && n >= TOP && other.size < least) break;
            const std::int32_t j = other.attribute;
            if (is_touched_.data()[j]) continue;
            const double slope = covariance(j, rows) / spreads_.data()[j];
            candidates_.push_back({std::fabs(slope) * deviations_.data()[j], slope, j});
            if (++n == TOP) least = other.size * (1.0 - 1e-9);  // rounding moves no size so far
        }
    }

    const View& view_;
    std::int64_t d_, n_nodes_, n_ = 0, n_entries_ = 0;
    bool sees_a_label_ = false;
    Array<std::int64_t> lengths_;                                // non-zeros of each attribute
    Array<std::int64_t> slot_starts_, slot_rows_;
    Array<std::pair<std::int64_t, std::int64_t>> members_;       // node and rows, slot by slot
    RankedNodes ranked_;
    Array<std::int64_t> sums_;       // of ranks less the base, over all rows
    Array<Int128> squares_;
    Array<double> spreads_, deviations_;
    Array<Candidate> by_size_, candidates_;
    Array<std::int64_t> correlations_, label_sums_;
    Array<std::uint8_t> is_touched_;
    Array<std::int32_t> touched_;
};

}  // namespace mlca::MLCA_LEVEL
