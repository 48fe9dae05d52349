// Bayes' rule applied to the nearest nodes: their votes, the bins of the votes, and how often each label fell in each
// bin.
//
// Only labels that have a vote or belong to the row are updated. All other labels fall in bin 0 (in bin N_y =
// n_neighbors while there is only one node). These implied counts are not stored: `without_` holds only deviations from
// them. So a label has the correct counters even if no row has had it yet (N is the number of voters):
//
//     without[i, 0]   = stored + number of counter updates with N > 1
//     without[i, N_y] = stored + number of counter updates with N = 1
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/memory.hpp"
#include "base/pair_rows.hpp"
#include "learner/settings.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

// The labels of one row, or of several identical rows. For several rows, `counts` holds the number of rows with each
// label, and `unlabelled` the number of rows without labels.
struct LabelRow {
    const std::int32_t* labels;
    std::int64_t n;
    const std::int64_t* counts = nullptr;
    std::int64_t unlabelled = -1;  // number of rows without labels; negative if this is a single row

    std::int64_t count(std::int64_t place) const noexcept { return counts == nullptr ? 1 : counts[place]; }
    std::int64_t count_none() const noexcept { return unlabelled < 0 ? n == 0 : unlabelled; }
};

// Working memory of a vote: the share of every label (zero between uses), and the labels whose share is not zero.
struct Votes {
    Array<double> share;
    Array<std::int32_t> voted;
    std::size_t n_voted = 0;
    double largest = 0.0;
    std::int64_t n_voters = 0;

    void reserve(std::int64_t n_labels) {
        grow_to(share, n_labels);
        grow_to(voted, n_labels);
    }

    void clear() noexcept {
        for (std::size_t j = 0; j < n_voted; ++j) share[voted[j]] = 0.0;
        n_voted = 0;
    }
};

class LabelMemory {
public:
    LabelMemory(Vote vote, std::int64_t n_neighbors, double smoothing) : vote_(vote), n_neighbors_(n_neighbors), smoothing_(smoothing) {}

    std::int64_t n_labels = 0;         // number of known labels
    std::int64_t n_learned = 0;        // number of rows learned
    std::int64_t n_voted = 0;          // counter updates with several voters
    std::int64_t n_voted_alone = 0;    // counter updates with one voter
    PairRows<std::int64_t> at_nodes;   // how often each label was learned at each node
    Array<std::int64_t> node_counts;   // number of rows that each node represents
    Array<std::int64_t> unlabelled;    // number of rows per node that have no label
    Array<std::int64_t> totals;        // number of rows with each label

    // Reserve memory for n labels.
    void reserve_labels(std::int64_t n) {
        grow_to(totals, n);
        grow_to(with_, n * n_bins());
        grow_to(without_, n * n_bins());
        grow_to(updates_with_, n);
    }

    void reserve_node(const LabelRow& labels) {
        at_nodes.reserve(labels.n);
        if (node_counts.size() == node_counts.capacity()) node_counts.reserve(node_counts.size() + node_counts.size() / 2 + 64);
        unlabelled.reserve(node_counts.capacity());
    }
    void reserve_join(std::int64_t winner, const LabelRow& labels) { at_nodes.make_room(winner, labels.n); }

    void open_node(const LabelRow& labels, std::int64_t count) noexcept {
        at_nodes.open(labels.n);
        for (std::int64_t place = 0; place < labels.n; ++place) at_nodes.append(at_nodes.size() - 1, labels.labels[place], labels.count(place));
        node_counts.push_back(count);
        unlabelled.push_back(labels.count_none());
    }

    void join_node(std::int64_t node, const LabelRow& labels) noexcept {
        for (std::int64_t place = 0; place < labels.n; ++place) at_nodes.add_to(node, labels.labels[place], labels.count(place));
        unlabelled[node] += labels.count_none();
    }

    // Call f(slot, rows) for the labels of a node's rows: slot 0 is "none", label i has slot i + 1.
    template <class F>
    void for_each_slot(std::int64_t node, F f) const {
        if (const std::int64_t none = unlabelled[node]; none > 0) f(std::int64_t{0}, none);
        const auto& row = at_nodes[node];
        for (std::int32_t place = 0; place < row.length; ++place) f(std::int64_t{row.keys[place]} + 1, row.values[place]);
    }

    // Add up the neighbours' votes, nearest first.
    void collect(const TopK& found, Votes& votes) const noexcept {
        votes.n_voters = found.size();
        for (std::int64_t j = 0; j < found.size(); ++j) {
            const std::int64_t node = found.nodes[j];
            const auto count = static_cast<double>(node_counts[node]);
            const auto& row = at_nodes[node];
            for (std::int32_t place = 0; place < row.length; ++place) {
                double& share = votes.share[row.keys[place]];
                if (share == 0.0) votes.voted[votes.n_voted++] = row.keys[place];
                const auto value = static_cast<double>(row.values[place]);
                share += vote_ == Vote::counts ? value : value / count;
            }
        }
        votes.largest = 0.0;
        for (std::size_t j = 0; j < votes.n_voted; ++j) votes.largest = std::max(votes.largest, votes.share[votes.voted[j]]);
    }

    // The bin of a label with this share of the votes.
    std::int64_t bin(double share, const Votes& votes) const noexcept {
        if (votes.n_voters == 1) return n_neighbors_;
        if (share == 0.0) return 0;
        const double scaled = vote_ == Vote::counts ? static_cast<double>(votes.n_voters) * share / votes.largest : share;
        return static_cast<std::int64_t>(std::floor(scaled + 0.5));
    }

    // Count every label in its bin for `count` identical rows, as present or absent, and clear the votes. The winner or
    // new node has the labels of these rows, so each of these labels has a vote.
    void count(const LabelRow& labels, std::int64_t count, Votes& votes) noexcept {
        if (votes.n_voters == 1) {
            n_voted_alone += count;
        } else {
            n_voted += count;
            for (std::size_t j = 0; j < votes.n_voted; ++j) {
                const std::int32_t label = votes.voted[j];
                without(label, 0) -= count;
                without(label, bin(votes.share[label], votes)) += count;
            }
        }
        for (std::int64_t place = 0; place < labels.n; ++place) {
            const std::int32_t label = labels.labels[place];
            const std::int64_t column = bin(votes.share[label], votes);
            without(label, column) -= labels.count(place);
            with(label, column) += labels.count(place);
            updates_with_[label] += labels.count(place);
        }
        votes.clear();
    }

    // The bin in which most rows with a label fell.
    std::int64_t usual_bin(std::int64_t label) const noexcept {
        std::int64_t usual = 0;
        for (std::int64_t bin = 1; bin < n_bins(); ++bin) {
            if (with_full(label, bin) > with_full(label, usual)) usual = bin;
        }
        return usual;
    }
    // Count, in the given bin, rows with a label that no node represents. The caller adds them to `n_voted`.
    void count_lost(std::int64_t label, std::int64_t bin, std::int64_t rows) noexcept {
        totals[label] += rows;
        with(label, bin) += rows;
        without(label, 0) -= rows;
        updates_with_[label] += rows;
    }

    // Add the rows of another label memory; `columns` maps its labels to labels of this one. Totals are added and, if
    // `counts_votes`, so are counters. The first row of the other memory found no node and was not counted there; it is
    // counted here in the usual bins of its labels.
    void add_rows(const LabelMemory& other, const std::int32_t* columns, bool counts_votes) noexcept {
        n_learned += other.n_learned;
        if (counts_votes) {
            n_voted += other.n_voted + 1;
            n_voted_alone += other.n_voted_alone;
        }
        for (std::int64_t i = 0; i < other.n_labels; ++i) {
            const std::int64_t here = columns[i], total = other.totals[i];
            if (!counts_votes) {
                totals[here] += total;
                continue;
            }
            const std::int64_t counted = other.updates_with_[i];
            for (std::int64_t bin = 0; bin < n_bins(); ++bin) {
                with(here, bin) += other.with_[place(i, bin)];
                without(here, bin) += other.without_[place(i, bin)];
            }
            updates_with_[here] += counted;
            totals[here] += counted;
            count_lost(here, other.usual_bin(i), total - counted);
        }
    }

    void finish(const LabelRow& labels, std::int64_t count) noexcept {
        for (std::int64_t place = 0; place < labels.n; ++place) {
            totals[labels.labels[place]] += labels.count(place);
            n_labels = std::max(n_labels, labels.labels[place] + std::int64_t{1});
        }
        n_learned += count;
    }

    struct Probability {
        double prior, likelihood_with, likelihood_without, posterior;
    };

    // Prior, likelihoods and posterior of a label in a bin; the posterior is clamped strictly between 0 and 1.
    Probability probability(std::int64_t label, std::int64_t bin, std::int64_t n_nodes) const noexcept {
        const std::int64_t n = std::min(n_neighbors_, n_nodes);
        const std::int64_t updates = n_voted + n_voted_alone, updates_with = updates_with_[label];
        Probability p{};
        p.prior = (smoothing_ + static_cast<double>(totals[label])) / (2.0 * smoothing_ + static_cast<double>(n_learned));
        if (bin <= n) {
            const double smoothed = smoothing_ * static_cast<double>(n + 1);
            p.likelihood_with = (smoothing_ + static_cast<double>(with_full(label, bin))) / (smoothed + static_cast<double>(updates_with));
            p.likelihood_without =
                (smoothing_ + static_cast<double>(without_full(label, bin))) / (smoothed + static_cast<double>(updates - updates_with));
        }
        const double yes = p.likelihood_with * p.prior, no = p.likelihood_without * (1.0 - p.prior);
        p.posterior = yes + no > 0.0 ? yes / (yes + no) : p.prior;
        p.posterior = std::min(std::max(p.posterior, 0x0.0000000000001p-1022), 0x1.fffffffffffffp-1);
        return p;
    }

    // The full counters: stored plus implied counts.
    std::int64_t with_full(std::int64_t label, std::int64_t bin) const noexcept { return with_[place(label, bin)]; }
    std::int64_t without_full(std::int64_t label, std::int64_t bin) const noexcept {
        return without_[place(label, bin)] + (bin == 0 ? n_voted : 0) + (bin == n_neighbors_ ? n_voted_alone : 0);
    }

    // Set counters from their full values, as stored in a state; tallies must be set first.
    void set_counters(std::int64_t label, std::int64_t bin, std::int64_t with_label, std::int64_t without_label) noexcept {
        with(label, bin) = with_label;
        without(label, bin) = without_label - (bin == 0 ? n_voted : 0) - (bin == n_neighbors_ ? n_voted_alone : 0);
        updates_with_[label] += with_label;
    }

private:
    std::int64_t n_bins() const noexcept { return n_neighbors_ + 1; }
    std::size_t place(std::int64_t label, std::int64_t bin) const noexcept { return static_cast<std::size_t>(label * n_bins() + bin); }
    std::int64_t& with(std::int64_t label, std::int64_t bin) noexcept { return with_[place(label, bin)]; }
    std::int64_t& without(std::int64_t label, std::int64_t bin) noexcept { return without_[place(label, bin)]; }

    Vote vote_;
    std::int64_t n_neighbors_;
    double smoothing_;
    Array<std::int64_t> with_, without_;  // n_bins counters per label
    Array<std::int64_t> updates_with_;    // per label: counter updates by rows with the label
};

}  // namespace mlca::MLCA_LEVEL
