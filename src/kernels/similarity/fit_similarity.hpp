// Fitting of the learned similarity to the nodes: knots, feature weights and background. The result is a pure function
// of the nodes.
//
// A feature's weight grows with its largest squared correlation with a label, computed from ranks over the rows that
// the nodes represent. All sums are sums of integers, so they are exact in any order. For n <= 2^40 rows:
//
//   ranks minus the base (similarity/ranks.hpp)            below 34 * 2^17 < 2^22.1
//   sums of count * rank; of label count * rank            below 2^62.1
//   sums of count * rank^2                                 below 2^84.2, 128 bits
//   variance * n^2 = n * (sum of squares) - sum^2          below 2^124.2, 128 bits
//   covariance * n^2 = n * (sum over the label) - sum * P  below 2^102.1, 128 bits
//   squared correlations in units of 2^-40                 at most 2^40 each, 2^62 in total
//
// The base is the rank of 0 if any node is 0 in the feature, so sparse nodes contribute only through their entries.
//
// Cost: one pass over the entries of all nodes for the knots, and one pass per label over the nodes with that label. A
// label and a feature that share no node need no pass: their covariance is -sum * P, where P is the number of rows with
// the label. All quantities derived from it increase with P and with statistics that depend on the feature alone, so
// that only the first few features of a sorted list have to be considered.
//
// Labels are correlated with traits (nodes/missing_and_nominal.hpp). Trait j is feature j, with its ranks. The values
// of nominal features are additional traits, with the rank `one` in nodes that have the value. Sums over a trait
// include only the rows in which its feature is not missing. These are at most n rows, so the bounds above hold, and so
// does the rule for labels and traits that share no node.
//
// Nodes are read through a view:
//   n_nodes(), n_features(), n_slots(), count(k)
//   is_incomplete(), nominal()        whether values may be missing or features nominal, and which features are nominal
//   GIVES_ALL                         whether for_each_entry passes all values; otherwise zeros may be omitted
//   for_each_entry(k, low, high, f)   calls f(feature, value) for the features from low up to high
//   for_each_label(k, f)              calls f(slot, rows); slot 0 is "none", label i has slot i + 1
//   pause()                           called periodically; it throws to stop the computation
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "similarity/background.hpp"
#include "similarity/feature_weights.hpp"
#include "similarity/rank_distance.hpp"
#include "similarity/ranked_columns.hpp"

namespace mlca::MLCA_LEVEL {

// Standard deviations of the background's scores over the rows that the nodes represent.
//
// Ranks minus the base are below 2^22.1, so a score is below 2^53.1 here. Scores are squared in units of 2^22: each
// square is below 2^62.2, and they are summed in 128 bits. A missing value counts as the mean.
template <class View>
class Deviations {
public:
    Deviations(const View& view, const RankedNodes& ranked, std::int64_t n_rows, Background& background)
        : view_(view), ranked_(ranked), n_rows_(n_rows), background_(background) {}

    // Compute the deviations; the background's lists must already exist.
    void fill_in() {
        const auto n_slots = static_cast<std::size_t>(background_.n_slots());
        squares_.assign(n_slots, 0);
        bases_.resize(n_slots);
        for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
            // The score if all ranks equal their base (for dense nodes: the lowest rank).
            std::int64_t base = -background_.centres[slot];
            for (std::int64_t p = background_.starts[slot]; p < background_.starts[slot + 1]; ++p) {
                const std::int32_t j = background_.features[p];
                base -= static_cast<std::int64_t>(background_.coefficients[p]) *
                        (ranked_.shift(j) + (ranked_.is_dense() ? ranked_.base(j) : 0));
            }
            bases_[slot] = base;
        }
        if (ranked_.is_dense()) {
            add_squares_of_dense();
        } else {
            add_squares_of_sparse();
        }
        for (const Int128 square : squares_) {
            background_.deviations.push_back(std::sqrt(static_cast<double>(square) / static_cast<double>(n_rows_)) * 0x1p22);
        }
    }

private:
    void add_square(std::int64_t slot, std::int64_t score, std::int64_t count) noexcept {
        const std::int64_t coarse = score >> 22;
        squares_[slot] += static_cast<Int128>(coarse * coarse) * count;
    }

    // Add the squared scores of dense nodes: many nodes at a time, feature by feature.
    void add_squares_of_dense() {
        constexpr std::int64_t TOGETHER_SCORED = 64;
        Array<std::int32_t> columns(view_.n_features() * TOGETHER_SCORED, 0);
        std::int64_t scores[TOGETHER_SCORED];
        Array<std::int32_t> scored;  // features used by some label's score
        for (std::int64_t j = 0; j < view_.n_features(); ++j) {
            if (background_.list_starts[j] < background_.list_starts[j + 1]) scored.push_back(static_cast<std::int32_t>(j));
        }
        for (std::int64_t first = 0; first < view_.n_nodes(); first += TOGETHER_SCORED) {
            const std::int64_t n = std::min(TOGETHER_SCORED, view_.n_nodes() - first);
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int32_t* row = ranked_.row(first + i);
                for (const std::int32_t j : scored) columns[j * TOGETHER_SCORED + i] = row[j];
            }
            for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
                const std::int64_t start = background_.starts[slot], end = background_.starts[slot + 1];
                if (start == end) continue;
                std::fill_n(scores, TOGETHER_SCORED, bases_[slot]);
                for (std::int64_t p = start; p < end; ++p) {
                    const std::int32_t* __restrict column = columns.data() + background_.features[p] * TOGETHER_SCORED;
                    const std::int32_t coefficient = background_.coefficients[p];
                    for (std::int64_t i = 0; i < TOGETHER_SCORED; ++i) scores[i] += static_cast<std::int64_t>(column[i]) * coefficient;
                }
                for (std::int64_t i = 0; i < n; ++i) add_square(slot, scores[i], view_.count(first + i));
            }
        }
    }

    // Add the squared scores of sparse nodes, node by node; nodes that have none of a label's features all have the
    // same score.
    void add_squares_of_sparse() {
        const auto n_slots = static_cast<std::size_t>(background_.n_slots());
        Array<std::int64_t> scores(n_slots, 0), rows_with(n_slots, 0), found;
        Array<std::uint8_t> is_found(n_slots, 0);
        found.reserve(n_slots);
        for (std::int64_t k = 0; k < view_.n_nodes(); ++k) {
            const std::int64_t count = view_.count(k);
            // `with_means`: whether to add the mean contribution, because the value is missing.
            const auto add = [&](std::int64_t j, std::int64_t rank, bool with_means) {
                for (std::int64_t p = background_.list_starts[j]; p < background_.list_starts[j + 1]; ++p) {
                    const std::int32_t slot = background_.list_slots[p];
                    scores[slot] += rank * background_.list_coefficients[p] + (with_means ? background_.list_means[p] : 0);
                    if (is_found[slot]) continue;
                    is_found[slot] = 1;
                    found.push_back(slot);
                }
            };
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) { add(j, rank, false); });
            ranked_.for_each_missing(k, [&](std::int64_t t) { add(t, ranked_.shift(t), true); });  // cancels the shift contained in the base
            for (const std::int64_t slot : found) {
                add_square(slot, bases_[slot] + scores[slot], count);
                rows_with[slot] += count;
                scores[slot] = 0;
                is_found[slot] = 0;
            }
            found.clear();
        }
        for (std::int64_t slot = 0; slot < background_.n_slots(); ++slot) {
            if (background_.starts[slot] == background_.starts[slot + 1]) continue;
            add_square(slot, bases_[slot], n_rows_ - rows_with[slot]);
        }
    }

    const View& view_;
    const RankedNodes& ranked_;
    std::int64_t n_rows_;
    Background& background_;
    Array<std::int64_t> bases_;  // per slot: the score of a node without stored ranks
    Array<Int128> squares_;
};

inline constexpr std::int64_t WEIGH_FROM = 20;

template <class View>
class SimilarityFit {
public:
    explicit SimilarityFit(const View& view) : view_(view), d_(view.n_features()), n_nodes_(view.n_nodes()) {}

    // Compute the similarity. There must be at least one node and one feature.
    Learned learned() {
        const bool binary = count_entries();
        if (view_.is_incomplete()) list_traits();
        Learned result(ranks_of_nodes(binary));
        std::int64_t n_numbers = 0, n_zeros = 0;
        for (std::int64_t j = 0; j < d_; ++j) {
            if (is_nominal(view_.nominal(), j)) continue;
            n_numbers += n_present(j);
            n_zeros += n_present(j) - lengths_[j];
        }
        result.sparse = 2 * n_zeros > n_numbers;
        gather_labels();
        if (!binary && !result.sparse) fill_in_middles(result);
        result.has_background = n_nodes_ >= WEIGH_FROM && sees_a_label_;
        result.weights.assign(d_, static_cast<std::int64_t>(rounded(WHOLE_WEIGHT, d_)));
        if (result.has_background) {
            sum_up(result.ranks);
            weigh(result);
        }
        result.background.restore_lists(n_traits_);
        if (result.has_background) Deviations(view_, ranked_, n_, result.background).fill_in();
        result.nominal = view_.nominal();
        result.traits = std::move(traits_);
        result.restore_sums();
        return result;
    }

    // The ranks of dense nodes under the similarity that `learned` computed.
    RankedRows take_rows() noexcept { return ranked_.take_rows(); }

private:
    // Count the non-zero numbers of each feature; return whether all of them are ones.
    bool count_entries() {
        lengths_.assign(d_, 0);
        std::int64_t others = 0;  // values that are neither 0 nor 1
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            if (view_.is_incomplete()) {
                for_each_number(k, 0, d_, [&](std::int64_t j, double value) {
                    ++lengths_[j];
                    others += value != 1.0;
                });
                continue;
            }
            view_.for_each_entry(k, 0, d_, [lengths = lengths_.data(), &others](std::int64_t j, double value) {
                lengths[j] += value != 0.0;
                others += (value != 0.0) & (value != 1.0);
            });
        }
        n_entries_ = 0;
        for (const std::int64_t length : lengths_) n_entries_ += length;
        return others == 0;
    }

    // Call f(feature, value) for the non-zero numbers of a node.
    template <class F>
    void for_each_number(std::int64_t k, std::int64_t low, std::int64_t high, F f) const {
        view_.for_each_entry(k, low, high, [&](std::int64_t j, double value) {
            if (value != 0.0 && !is_missing(value) && !is_nominal(view_.nominal(), j)) f(j, value);
        });
    }

    // Number of nodes that have a value for a feature.
    std::int64_t n_present(std::int64_t feature) const noexcept { return missing_.empty() ? n_nodes_ : n_nodes_ - missing_[feature]; }

    // Count the missing values of each feature, and list all values of nominal features, including 0.
    void list_traits() {
        const Nominal& nominal = view_.nominal();
        Array<std::pair<std::int32_t, double>> found;
        Array<std::int64_t> n_other(d_, 0);
        missing_.assign(d_, 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            view_.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
                if (is_missing(value)) {
                    ++missing_[j];
                } else if (is_nominal(nominal, j)) {
                    found.push_back({static_cast<std::int32_t>(j), value});
                    n_other[j] += value != 0.0;
                }
            });
        }
        for (std::int64_t j = 0; j < d_; ++j) {
            if (is_nominal(nominal, j) && n_present(j) > n_other[j]) found.push_back({static_cast<std::int32_t>(j), 0.0});
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        for (const auto& [feature, value] : found) {
            traits_.features.push_back(feature);
            traits_.values.push_back(value);
        }
        n_traits_ = d_ + traits_.size();
        n_compared_ = n_traits_ - std::count(nominal.begin(), nominal.end(), std::uint8_t{1});
    }

    // Compute the knots, and the ranks of all nodes.
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
        ranked_ = view_.is_incomplete() ? RankedNodes(view_, ranks, traits_) : RankedNodes(view_, ranks, n_entries_);
        sums_.assign(n_traits_, 0);
        squares_.assign(n_traits_, 0);
        if (view_.is_incomplete()) missing_rows_.assign(n_traits_, 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            const std::int64_t count = view_.count(k);
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) {
                sums_[j] += count * rank;
                squares_[j] += static_cast<Int128>(rank * rank) * count;
            });
            ranked_.for_each_missing(k, [&](std::int64_t t) { missing_rows_[t] += count; });
        }
        return ranks;
    }

    // Collect values by feature and compute the knots. Features are processed in runs that hold about an eighth of all
    // entries.
    Ranks with_knots() const {
        Ranks ranks = Ranks::with_knots(d_, n_nodes_);
        const std::int64_t room = std::max(n_entries_ / 8, std::int64_t{1} << 20);
        Array<double> values;
        Array<std::int64_t> next;
        Ranks::Space space;
        for (std::int64_t low = 0, high; low < d_; low = high) {
            next.assign(1, 0);
            for (high = low; high < d_ && (high == low || next.back() + lengths_[high] <= room); ++high) {
                next.push_back(next.back() + lengths_[high]);
            }
            values.resize(next.back());
            for (std::int64_t k = 0; k < n_nodes_; ++k) {
                for_each_number(k, low, high, [&](std::int64_t j, double value) { values[next[j - low]++] = value; });
            }
            for (std::int64_t j = low; j < high; ++j) {
                const std::int64_t n = lengths_[j];
                if (n == 0) {
                    ranks.add_zeros();
                } else {
                    ranks.add(values.data() + next[j - low] - n, n, n_present(j), space);
                }
            }
        }
        ranks.lay_out(d_);
        return ranks;
    }

    // Compute the mean rank of each feature over the rows that have a value.
    void fill_in_middles(Learned& result) const {
        result.middles.assign(d_, static_cast<double>(result.ranks.one() / 2));
        for (std::int64_t j = 0; j < d_; ++j) {
            const std::int64_t rows = missing_rows_.empty() ? n_ : n_ - missing_rows_[j];
            if (rows == 0 || is_nominal(view_.nominal(), j)) continue;
            result.middles[j] = static_cast<double>(sums_[j] + rows * result.ranks.base(j)) / static_cast<double>(rows);
        }
    }

    // List the nodes of each slot, each with the number of its rows that have the label.
    void gather_labels() {
        const std::int64_t n_slots = view_.n_slots();
        slot_starts_.assign(n_slots + 1, 0);
        slot_rows_.assign(n_slots, 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            n_ += view_.count(k);
            view_.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) {
                ++slot_starts_[slot + 1];
                slot_rows_[slot] += rows;
                sees_a_label_ = sees_a_label_ || slot > 0;
            });
        }
        for (std::int64_t slot = 0; slot < n_slots; ++slot) slot_starts_[slot + 1] += slot_starts_[slot];
        members_.resize(slot_starts_.back());
        Array<std::int64_t> next(slot_starts_.begin(), slot_starts_.end());
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            view_.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) { members_[next[slot]++] = {k, rows}; });
        }
    }

    // Number of rows that have a value for a trait.
    std::int64_t rows_of(std::int64_t t) const noexcept { return missing_rows_.empty() ? n_ : n_ - missing_rows_[t]; }

    // Compute the variances of traits, and sort traits for `add_absent_candidates`.
    void sum_up(const Ranks& ranks) {
        const std::int64_t half = ranks.one() / 2;
        spreads_.resize(n_traits_);
        deviations_.assign(n_traits_, 0.0);
        for (std::int64_t j = 0; j < n_traits_; ++j) {
            const std::int64_t n = rows_of(j);
            const Int128 least = static_cast<Int128>(3 * half * half) * n;
            spreads_[j] = static_cast<double>(least);
            if (squares_[j] == 0) continue;  // all ranks are 0
            const Int128 variance = n * squares_[j] - static_cast<Int128>(sums_[j]) * sums_[j];
            spreads_[j] = static_cast<double>(variance + least);
            deviations_[j] = std::sqrt(static_cast<double>(variance));
            // Scale up as if all n_ rows had a value, so that traits with and without missing values are comparable.
            if (n < n_) deviations_[j] *= static_cast<double>(n_) / static_cast<double>(n);
        }
        // For every label, the traits that share no node with it have this order of strength, up to rounding.
        by_size_.reserve(n_traits_);
        for (std::int64_t j = 0; j < n_traits_; ++j) {
            if (sums_[j] == 0) continue;
            const double slope = std::fabs(static_cast<double>(sums_[j])) / spreads_[j];
            by_size_.push_back({slope * deviations_[j], slope, static_cast<std::int32_t>(j)});
        }
        std::sort(by_size_.begin(), by_size_.end(), [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
    }

    // For each label, most frequent first, compute correlations and the coefficients of the background.
    void weigh(Learned& result) {
        const std::int64_t n_slots = view_.n_slots();
        Array<std::int64_t> order(n_slots);
        for (std::int64_t slot = 0; slot < n_slots; ++slot) order[slot] = slot;
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return std::pair(-slot_rows_[a], a) < std::pair(-slot_rows_[b], b);
        });
        correlations_.assign(d_, 0);
        label_sums_.assign(n_traits_, 0);
        label_missing_.assign(missing_rows_.size(), 0);
        is_touched_.assign(n_traits_, 0);
        touched_.reserve(n_traits_);
        Array<std::int32_t> pending;  // traits with a non-zero sum that share nodes with all labels so far
        for (std::int64_t j = 0; j < n_traits_; ++j) {
            if (sums_[j] != 0) pending.push_back(static_cast<std::int32_t>(j));
        }
        Array<Array<Candidate>> chosen(n_slots);
        for (const std::int64_t slot : order) {
            view_.pause();
            const std::int64_t rows = slot_rows_[slot];
            if (rows == 0) break;  // all remaining labels have no rows either
            add_up_label(slot);
            candidates_.clear();
            for (const std::int32_t j : touched_) add_candidate(j, slot, missing_rows_.empty() ? rows : rows - label_missing_[j]);
            if (slot > 0) {
                std::size_t left = 0;
                for (const std::int32_t j : pending) {
                    if (is_touched_[j]) {
                        pending[left++] = j;
                    } else {
                        correlate(j, covariance(j, rows), rows);
                    }
                }
                pending.resize(left);
            }
            add_absent_candidates(rows);
            keep_strongest(candidates_, n_compared_, chosen[slot]);
            for (const std::int32_t j : touched_) {
                label_sums_[j] = 0;
                is_touched_[j] = 0;
                if (!label_missing_.empty()) label_missing_[j] = 0;
            }
            touched_.clear();
        }
        lay_out_background(chosen, n_, [this](std::int32_t j) { return Trait{sums_[j], rows_of(j), ranked_.shift(j)}; }, result.background);
        set_weights(correlations_, result.weights);
    }

    void add_up_label(std::int64_t slot) {
        for (std::int64_t m = slot_starts_[slot]; m < slot_starts_[slot + 1]; ++m) {
            const std::int64_t k = members_[m].first, rows = members_[m].second;
            if (ranked_.is_dense()) {
                add_times(label_sums_.data(), ranked_.row(k), rows, d_);
                continue;
            }
            ranked_.for_each(k, [&](std::int64_t j, std::int64_t rank) {
                label_sums_[j] += rows * rank;
                touch(j);
            });
            ranked_.for_each_missing(k, [&](std::int64_t t) {
                label_missing_[t] += rows;
                touch(t);
            });
        }
        for (std::int64_t j = 0; ranked_.is_dense() && j < d_; ++j) {
            label_sums_[j] -= slot_rows_[slot] * ranked_.base(j);
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
        if (is_touched_[j]) return;
        is_touched_[j] = 1;
        touched_.push_back(static_cast<std::int32_t>(j));
    }

    // The covariance of the label and a trait, times the square of the number of rows in which the trait is not
    // missing. `rows` is the number of these rows that have the label.
    double covariance(std::int32_t j, std::int64_t rows) const noexcept {
        return static_cast<double>(static_cast<Int128>(rows_of(j)) * label_sums_[j] - static_cast<Int128>(sums_[j]) * rows);
    }

    // Compute a label's squared correlation with a trait, shrunk to account for chance in few rows, and keep the
    // largest one per feature.
    void correlate(std::int32_t j, double cov, std::int64_t rows) noexcept {
        const std::int64_t n = rows_of(j);
        const auto label_spread = static_cast<double>(static_cast<Int128>(rows) * (n - rows) + 3 * static_cast<Int128>(n));
        const double squared = cov / spreads_[j] * (cov / label_spread);
        const auto units = static_cast<std::int64_t>(nearest_whole(squared * 0x1p40));
        std::int64_t& best = correlations_[j < d_ ? j : traits_.features[j - d_]];
        best = std::max(best, units);
    }

    void add_candidate(std::int32_t j, std::int64_t slot, std::int64_t rows) {
        if (rows_of(j) == 0) return;
        const double cov = covariance(j, rows), slope = cov / spreads_[j];
        if (slot > 0) correlate(j, cov, rows);
        if (slope != 0.0) candidates_.push_back({std::fabs(slope) * deviations_[j], slope, j});
    }

    // Add the candidates among the features that no node of the label has: the TOP strongest, and all that may tie with
    // the last of them.
    void add_absent_candidates(std::int64_t rows) {
        std::int64_t n = 0;
        double least = 0.0;
        for (const Candidate& other : by_size_) {
            if (n_compared_ > TOP && n >= TOP && other.size < least) break;
            const std::int32_t j = other.feature;
            if (is_touched_[j]) continue;
            const double slope = covariance(j, rows) / spreads_[j];
            candidates_.push_back({std::fabs(slope) * deviations_[j], slope, j});
            if (++n == TOP) least = other.size * (1.0 - 1e-9);  // the margin exceeds any rounding error of a size
        }
    }

    const View& view_;
    std::int64_t d_, n_nodes_, n_ = 0, n_entries_ = 0;
    std::int64_t n_traits_ = d_, n_compared_ = d_;               // number of traits; the same without nominal features
    bool sees_a_label_ = false;
    Array<std::int64_t> lengths_;                                // per feature: number of non-zero values
    NominalValues traits_;
    Array<std::int64_t> missing_, missing_rows_;                 // nodes (per feature), rows (per trait) without a value
    Array<std::int64_t> slot_starts_, slot_rows_;
    Array<std::pair<std::int64_t, std::int64_t>> members_;       // (node, rows), slot by slot
    RankedNodes ranked_;
    Array<std::int64_t> sums_;       // per trait: sum of ranks minus the base over all rows
    Array<Int128> squares_;
    Array<double> spreads_, deviations_;
    Array<Candidate> by_size_, candidates_;
    Array<std::int64_t> correlations_, label_sums_, label_missing_;
    Array<std::uint8_t> is_touched_;
    Array<std::int32_t> touched_;
};

}  // namespace mlca::MLCA_LEVEL
