// The learned similarity from nodes with gaps and nominal attributes: docs/mixed.md. A pure function of the nodes.
//
// What correlates with labels are traits: attribute j is trait j, by its ranks; the values of nominal attributes are the traits
// behind them (traits.hpp), with the rank `one` in nodes that have the value. The sums of a trait are over the nodes that have a value
// at all; else this is Weighing (weighing.hpp), whose bounds hold as a trait has no more rows than there are. It looks at every trait and label,
// and has none of its shortcuts.
//
// Nodes come through Weighing's view, which has gaps as MISSING and leaves out zeros, or not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "learned.hpp"
#include "mixed.hpp"
#include "strongest.hpp"

namespace mlca::MLCA_LEVEL {

template <class View>
class MixedWeighing {
public:
    MixedWeighing(const View& view, const Nominal& nominal) : view_(view), nominal_(nominal), d_(view.n_attributes()), n_nodes_(view.n_nodes()) {}

    // There must be at least one node and one attribute.
    Learned learned() {
        const bool binary = count_entries();
        Learned result(binary ? Ranks::binary(d_) : with_knots());
        result.nominal = nominal_;
        result.sparse = 2 * n_zeros_ > n_numbers_;
        result.traits = traits();
        n_traits_ = d_ + result.traits.size();
        result.weights.assign(static_cast<std::size_t>(d_), static_cast<std::int64_t>(rounded(WHOLE_WEIGHT, d_)));
        const bool sees_a_label = gather_labels();
        result.has_background = n_nodes_ >= WEIGHED_FROM && sees_a_label;
        if (result.has_background) {
            rank(result);
            sum_up(result.ranks.one());
            weigh(result);
            result.background.restore_lists(n_traits_);
            fill_in_deviations(result.background);
        }
        result.restore();
        return result;
    }

private:
    static constexpr std::int64_t WEIGHED_FROM = 20;

    template <class F>
    void for_each(std::int64_t k, F f) const {
        view_.for_each_entry(k, 0, d_, [&](std::int64_t j, double value) {
            if (value != 0.0) f(j, value);
        });
    }

    // Count each attribute's non-zeros and gaps; tell whether all numbers are 0 or 1.
    bool count_entries() {
        lengths_.assign(static_cast<std::size_t>(d_), 0);
        gaps_.assign(static_cast<std::size_t>(d_), 0);
        bool binary = true;
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            for_each(k, [&](std::int64_t j, double value) {
                ++(is_missing(value) ? gaps_ : lengths_).data()[j];
                binary = binary && (is_missing(value) || value == 1.0 || is_nominal(nominal_, j));
            });
        }
        n_numbers_ = n_zeros_ = 0;
        for (std::int64_t j = 0; j < d_; ++j) {
            if (is_nominal(nominal_, j)) continue;
            n_numbers_ += n_nodes_ - gaps_.data()[j];
            n_zeros_ += n_nodes_ - gaps_.data()[j] - lengths_.data()[j];
        }
        return binary;
    }

    // Collect the numbers, attribute by attribute. Nominal attributes have no knots.
    Ranks with_knots() const {
        Ranks ranks = Ranks::with_knots(d_, n_nodes_);
        Array<std::int64_t> starts(static_cast<std::size_t>(d_ + 1), 0);
        for (std::int64_t j = 0; j < d_; ++j) starts.data()[j + 1] = starts.data()[j] + (is_nominal(nominal_, j) ? 0 : lengths_.data()[j]);
        Array<std::int64_t> next(starts.begin(), starts.end());
        Array<double> values(static_cast<std::size_t>(starts.back()));
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            for_each(k, [&](std::int64_t j, double value) {
                if (!is_missing(value) && !is_nominal(nominal_, j)) values.data()[next.data()[j]++] = value;
            });
        }
        Ranks::Space space;
        for (std::int64_t j = 0; j < d_; ++j) {
            const bool nominal = is_nominal(nominal_, j);
            ranks.add(values.data() + starts.data()[j], nominal ? 0 : lengths_.data()[j], nominal ? n_nodes_ : n_nodes_ - gaps_.data()[j], space);
        }
        return ranks;
    }

    // The values that nodes have in nominal attributes, 0 among them.
    Traits traits() const {
        Array<std::pair<std::int32_t, double>> found;
        for (std::int64_t j = 0; j < d_; ++j) {
            if (is_nominal(nominal_, j) && n_nodes_ > gaps_.data()[j] + lengths_.data()[j]) found.push_back({static_cast<std::int32_t>(j), 0.0});
        }
        for (std::int64_t k = 0; k < n_nodes_ && !nominal_.empty(); ++k) {
            for_each(k, [&](std::int64_t j, double value) {
                if (is_nominal(nominal_, j) && !is_missing(value)) found.push_back({static_cast<std::int32_t>(j), value});
            });
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        Traits result;
        for (const auto& [attribute, value] : found) {
            result.attributes.push_back(attribute);
            result.values.push_back(value);
        }
        return result;
    }

    // List the nodes of each slot, with the rows that have it; tell whether there is a label.
    bool gather_labels() {
        members_.resize(static_cast<std::size_t>(view_.n_slots()));
        bool sees_a_label = false;
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            n_ += view_.count(k);
            view_.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) {
                members_[static_cast<std::size_t>(slot)].push_back({k, rows});
                sees_a_label = sees_a_label || slot > 0;
            });
        }
        return sees_a_label;
    }

    // Lay out each node as its traits' ranks, less a base that is the rank of 0 wherever a node is 0, and the traits it says nothing of.
    void rank(const Learned& learned) {
        shifts_.assign(static_cast<std::size_t>(n_traits_), 0);
        for (std::int64_t j = 0; j < d_; ++j) shifts_.data()[j] = learned.ranks.zeros.data()[j] - learned.ranks.base(j);
        nodes_.resize(static_cast<std::size_t>(n_nodes_));
        struct Zero {
            std::int64_t attribute, trait;
        };
        Array<Zero> zeros;  // nominal attributes in which a node has the value 0
        for (std::int64_t j = 0; j < d_; ++j) {
            const std::int64_t t = is_nominal(nominal_, j) ? learned.traits.find(j, 0.0) : -1;
            if (t >= 0) zeros.push_back({j, d_ + t});
        }
        Array<std::int64_t> latest(static_cast<std::size_t>(d_), -1);  // the last node that had an entry there
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            Node& node = nodes_[static_cast<std::size_t>(k)];
            const auto one = static_cast<std::int32_t>(learned.ranks.one());
            for_each(k, [&](std::int64_t j, double value) {
                latest.data()[j] = k;
                if (is_missing(value)) {
                    const auto [first, end] = learned.traits.of(j);
                    node.absent.push_back(static_cast<std::int32_t>(j));
                    for (std::int64_t t = first; t < end; ++t) node.absent.push_back(static_cast<std::int32_t>(d_ + t));
                } else if (is_nominal(nominal_, j)) {
                    node.ranks.push_back({static_cast<std::int32_t>(d_ + learned.traits.find(j, value)), one});
                } else {
                    node.ranks.push_back({static_cast<std::int32_t>(j), learned.ranks(j, value) + shifts_.data()[j]});
                }
            });
            for (const Zero& zero : zeros) {
                if (latest.data()[zero.attribute] != k) node.ranks.push_back({static_cast<std::int32_t>(zero.trait), one});
            }
        }
    }

    void sum_up(std::int64_t one) {
        sums_.assign(static_cast<std::size_t>(n_traits_), 0);
        rows_.assign(static_cast<std::size_t>(n_traits_), n_);
        Array<Int128> squares(static_cast<std::size_t>(n_traits_), 0);
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            const std::int64_t count = view_.count(k);
            for (const auto& [trait, rank] : nodes_[static_cast<std::size_t>(k)].ranks) {
                sums_.data()[trait] += count * rank;
                squares.data()[trait] += static_cast<Int128>(std::int64_t{rank} * rank) * count;
            }
            for (const std::int32_t trait : nodes_[static_cast<std::size_t>(k)].absent) rows_.data()[trait] -= count;
        }
        spreads_.resize(static_cast<std::size_t>(n_traits_));
        deviations_.resize(static_cast<std::size_t>(n_traits_));
        for (std::int64_t t = 0; t < n_traits_; ++t) {
            const std::int64_t n = rows_.data()[t];
            const Int128 variance = n * squares.data()[t] - static_cast<Int128>(sums_.data()[t]) * sums_.data()[t];
            spreads_.data()[t] = static_cast<double>(variance + static_cast<Int128>(3 * (one / 2) * (one / 2)) * n);
            // Traits of which fewer rows have a value are measured on the same scale.
            deviations_.data()[t] = n == 0 ? 0.0 : std::sqrt(static_cast<double>(variance)) * (static_cast<double>(n_) / static_cast<double>(n));
        }
    }

    void weigh(Learned& result) {
        Array<std::int64_t> correlations(static_cast<std::size_t>(d_), 0), label_sums, label_rows;
        Array<Array<Candidate>> chosen(members_.size());
        Array<Candidate> candidates;
        for (std::size_t slot = 0; slot < members_.size(); ++slot) {
            if (members_[slot].empty()) continue;
            std::int64_t all = 0;
            for (const auto& member : members_[slot]) all += member.second;
            label_sums.assign(static_cast<std::size_t>(n_traits_), 0);
            label_rows.assign(static_cast<std::size_t>(n_traits_), all);
            for (const auto& [k, rows] : members_[slot]) {
                for (const auto& [trait, rank] : nodes_[static_cast<std::size_t>(k)].ranks) label_sums.data()[trait] += rows * rank;
                for (const std::int32_t trait : nodes_[static_cast<std::size_t>(k)].absent) label_rows.data()[trait] -= rows;
            }
            candidates.clear();
            for (std::int64_t t = 0; t < n_traits_; ++t) {
                const Int128 n = rows_.data()[t], rows = label_rows.data()[t];
                if (n == 0) continue;
                const auto cov = static_cast<double>(n * label_sums.data()[t] - static_cast<Int128>(sums_.data()[t]) * rows);
                const double slope = cov / spreads_.data()[t];
                if (slope != 0.0) candidates.push_back({std::fabs(slope) * deviations_.data()[t], slope, static_cast<std::int32_t>(t)});
                if (slot == 0) continue;
                const double squared = slope * (cov / static_cast<double>(rows * (n - rows) + 3 * n));
                std::int64_t& best = correlations.data()[t < d_ ? t : result.traits.attributes.data()[t - d_]];
                best = std::max(best, static_cast<std::int64_t>(nearest_whole(squared * 0x1p40)));
            }
            // The columns of nominal attributes are no traits.
            keep_strongest(candidates, n_traits_ - std::count(nominal_.begin(), nominal_.end(), std::uint8_t{1}), chosen.data()[slot]);
        }
        const auto trait_of = [this](std::int32_t t) { return Trait{sums_.data()[t], rows_.data()[t], shifts_.data()[t]}; };
        lay_out_background(chosen, n_, trait_of, result.background);
        set_weights(correlations, result.weights);
    }

    // How much each score varies over the nodes, as in deviations.hpp. A gap counts as the mean.
    void fill_in_deviations(Background& background) const {
        const std::int64_t n_slots = background.n_slots();
        Array<std::int64_t> bases(static_cast<std::size_t>(n_slots)), scores;
        Array<Int128> squares(static_cast<std::size_t>(n_slots), 0);
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            bases.data()[slot] = -background.centres.data()[slot];
            for (std::int64_t p = background.starts.data()[slot]; p < background.starts.data()[slot + 1]; ++p) {
                bases.data()[slot] -= static_cast<std::int64_t>(background.coefficients.data()[p]) * shifts_.data()[background.attributes.data()[p]];
            }
        }
        for (std::int64_t k = 0; k < n_nodes_; ++k) {
            scores = bases;
            for (const auto& [trait, rank] : nodes_[static_cast<std::size_t>(k)].ranks) background.add(scores.data(), trait, rank);
            for (const std::int32_t trait : nodes_[static_cast<std::size_t>(k)].absent) {
                background.add_missing(scores.data(), trait);
                background.add(scores.data(), trait, shifts_.data()[trait]);  // which the base has taken away
            }
            for (std::int64_t slot = 0; slot < n_slots; ++slot) {
                const std::int64_t coarse = scores.data()[slot] >> 22;
                squares.data()[slot] += static_cast<Int128>(coarse * coarse) * view_.count(k);
            }
        }
        for (const Int128 square : squares) {
            background.deviations.push_back(std::sqrt(static_cast<double>(square) / static_cast<double>(n_)) * 0x1p22);
        }
    }

    struct Node {
        Array<std::pair<std::int32_t, std::int32_t>> ranks;  // trait and rank
        Array<std::int32_t> absent;
    };

    const View& view_;
    const Nominal& nominal_;
    std::int64_t d_, n_nodes_, n_traits_ = 0, n_ = 0, n_numbers_ = 0, n_zeros_ = 0;
    Array<std::int64_t> lengths_, gaps_;                               // of each attribute: values other than zero, and gaps
    Array<Array<std::pair<std::int64_t, std::int64_t>>> members_;      // of each slot: nodes and rows
    Array<Node> nodes_;
    Array<std::int32_t> shifts_;
    Array<std::int64_t> sums_, rows_;                                  // of each trait
    Array<double> spreads_, deviations_;
};

}  // namespace mlca::MLCA_LEVEL
