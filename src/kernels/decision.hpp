// From near nodes to probabilities, and what is learned from the truth afterwards.
//
// For each row a ballot: nodes are offered to it with their keys; then votes are counted and the experts say what they make
// of them; then, if the row is learned, calibration, the experts' weights and all counts follow. The experts are one pool:
// all nodes, what recency makes of them, nodes of trusted segments, the last nodes; most users have the first alone.
//
// `View` is a view of the nodes as in weighing.hpp: count(k) and for_each_label(k, f).
#pragma once

#include <cstdint>
#include <optional>

#include "calibration.hpp"
#include "drift.hpp"
#include "frequencies.hpp"
#include "learned.hpp"
#include "novelty.hpp"
#include "pool.hpp"
#include "recency.hpp"
#include "voters.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t MOST_ELECTORATES = 3;

// What is needed to decide about one row. Each thread has its own.
struct Ballot {
    Voters voters[MOST_ELECTORATES];
    Shares shares[MOST_ELECTORATES];
    Voter nearest[Segments::MOST];         // of each segment
    bool is_trusted[Segments::MOST];
    std::int64_t n_nodes = 0;
    Array<std::int64_t> scores;            // of the background; whoever has a learned similarity fills them in
};

class Decision {
public:
    Decision(bool with_recency, bool follows_drift) : n_electorates(follows_drift ? MOST_ELECTORATES : 1) {
        if (with_recency) recency.emplace();
        if (with_recency || follows_drift) pool.emplace(n_electorates + (with_recency ? Recency::N_LIVES : 0));
    }

    // Make room for a row of so many labels; learning it cannot fail then. Nothing that is known changes.
    void reserve(std::int64_t n_slots, std::int64_t n_own) {
        for (std::int64_t e = 0; e < n_electorates; ++e) calibrations[e].reserve(n_slots);
        if (recency) recency->reserve(n_slots);
        if (n_electorates > 1) fading.reserve(n_own);
        frequencies.reserve(n_slots);  // last: slots are known when all have room for them
    }

    // Slots that there is room for.
    std::int64_t n_slots() const noexcept { return static_cast<std::int64_t>(frequencies.totals.size()); }

    // Begin a row that so many nodes, the oldest, may vote on; `counts` are the rows of each node.
    void begin(Ballot& ballot, const Ruler& ruler, const std::int64_t* counts, std::int64_t n_nodes) const {
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            ballot.shares[e].reserve(n_slots());
            ballot.voters[e].begin(ruler, counts);
        }
        ballot.n_nodes = n_nodes;
        for (std::int64_t i = 0; i < segments.n && n_electorates > 1; ++i) {
            ballot.nearest[i] = {Voters::NO_LIMIT, Voters::NO_LIMIT, 0};
            ballot.is_trusted[i] = segments.is_trusted(i);
        }
    }

    // Offer a node; nodes may come in any order.
    void offer(Ballot& ballot, std::int64_t key, std::int64_t node) const noexcept {
        ballot.voters[0].offer(key, node);
        if (n_electorates == 1) return;
        const std::int64_t segment = segments.of(node);
        if (ballot.is_trusted[segment]) ballot.voters[1].offer(key, node);
        if (node >= Fading::oldest(ballot.n_nodes)) ballot.voters[2].offer(key, node);
        ballot.nearest[segment] = std::min(ballot.nearest[segment], Voter{key, node, 0});
    }

    // A node need not be offered if its key is beyond this.
    std::int64_t limit(const Ballot& ballot, std::int64_t node) const noexcept {
        std::int64_t limit = ballot.voters[0].limit();
        if (n_electorates == 1) return limit;
        const std::int64_t segment = segments.of(node);
        if (ballot.is_trusted[segment]) limit = std::max(limit, ballot.voters[1].limit());
        if (node >= Fading::oldest(ballot.n_nodes)) limit = std::max(limit, ballot.voters[2].limit());
        return std::max(limit, ballot.nearest[segment].key);
    }

    // Count the votes when all nodes were offered.
    template <class View>
    void count_votes(Ballot& ballot, const View& view) const {
        const auto count = [&](std::int64_t node) { return view.count(node); };
        const auto labels = [&](std::int64_t node, auto f) { view.for_each_label(node, f); };
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            Voters& voters = ballot.voters[e];
            voters.weigh();
            if (voters.far()) {
                share_frequencies(ballot.shares[e]);
            } else if (e < 2) {
                ballot.shares[e].vote(voters, count, labels);
            } else {
                ballot.shares[e].vote(
                    voters, [&](std::int64_t node) { return fading.count(node); },
                    [&](std::int64_t node, auto f) { fading.for_each_label(node, f); });
            }
        }
    }

    // The probability of each slot; that of a label that has not come is 0. `learned` may be missing.
    void probabilities(const Ballot& ballot, const Learned* learned, double* p) const noexcept {
        std::fill_n(p, n_slots(), 0.0);
        double said[Pool::MOST_EXPERTS];
        const auto put = [&](std::int32_t slot) {
            opinions(ballot, learned, slot, said);
            p[slot] = pool ? pool->mix(said) : said[0];
        };
        put(0);
        for (const std::int32_t slot : frequencies.arrived) put(slot);
    }

    // What each expert says of a slot.
    void opinions(const Ballot& ballot, const Learned* learned, std::int64_t slot, double* said) const noexcept {
        const double prior = frequencies.prior(slot);
        double background = -1.0;
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            double p = ballot.shares[e][slot];
            if (!ballot.voters[e].far()) {
                p = calibrations[e].probability(slot, p);
                if (learned != nullptr && learned->has_background) {
                    if (background < 0.0) background = learned->background.probability(ballot.scores.data(), slot, prior);
                    p = 0.9 * p + 0.1 * background;
                }
            }
            *said++ = p;
            if (e > 0 || !recency) continue;
            recency->opinions(slot, p, prior, said);
            said += Recency::N_LIVES;
        }
    }

    // Learn from a row of these slots, ascending, what was said of it; {0} if it has no label. There must be room.
    template <class View>
    void learn(const Ballot& ballot, const Learned* learned, const View& view, const std::int32_t* own, std::int64_t n_own) noexcept {
        if (pool) {
            pool->begin();
            hear(ballot, learned, 0, own[0] == 0);
            for (const std::int32_t slot : frequencies.arrived) hear(ballot, learned, slot, std::binary_search(own, own + n_own, slot));
            for (std::int64_t i = 0; i < n_own; ++i) {  // labels that come with this row
                if (own[i] > 0 && frequencies.totals.data()[own[i]] == 0) hear(ballot, learned, own[i], true);
            }
            pool->learn();
        }
        if (n_electorates > 1) trust_segments(ballot, view, own, n_own);
        for (std::int64_t e = 0; e < n_electorates; ++e) calibrations[e].learn(ballot.shares[e], own, n_own);
        if (recency) recency->learn(own, n_own);
        if (ballot.voters[0].size() > 0) novelty.learn(ballot.voters[0].distance(0));
        frequencies.learn(own, n_own);
    }

    // The row has become, or fallen on, this of so many nodes. There must be room.
    void place(std::int64_t node, bool is_new, std::int64_t n_nodes, const std::int32_t* own, std::int64_t n_own) noexcept {
        if (n_electorates == 1) return;
        if (is_new) {
            segments.enter(node);
            fading.enter(node);
        }
        fading.learn(node, n_nodes, own, n_own);
    }

    // Whether the state could be that of so many slots and nodes: whatever passes can be computed with.
    bool is_sound(std::int64_t slots, std::int64_t n_nodes) const noexcept {
        if (!frequencies.is_sound(slots) || !novelty.is_sound(frequencies.rows)) return false;
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            if (!calibrations[e].is_sound(slots) || calibrations[e].rows != frequencies.rows) return false;
        }
        if ((recency && !recency->is_sound(slots)) || (pool && !pool->is_sound())) return false;
        return n_electorates == 1 || (segments.is_sound(n_nodes) && fading.is_sound(n_nodes, slots));
    }

    std::int64_t n_electorates;
    Frequencies frequencies;
    Calibration calibrations[MOST_ELECTORATES];
    Novelty novelty;
    std::optional<Recency> recency;
    std::optional<Pool> pool;
    Segments segments;
    Fading fading;

private:
    void share_frequencies(Shares& shares) const noexcept {
        shares.clear();
        if (frequencies.totals.data()[0] > 0) shares.add(0, frequencies.share(0));
        for (const std::int32_t slot : frequencies.arrived) shares.add(slot, frequencies.share(slot));
    }

    void hear(const Ballot& ballot, const Learned* learned, std::int64_t slot, bool has_label) noexcept {
        double said[Pool::MOST_EXPERTS];
        opinions(ballot, learned, slot, said);
        pool->hear(said, has_label);
    }

    // Overlap of the row's labels with the label shares of each segment's nearest node.
    template <class View>
    void trust_segments(const Ballot& ballot, const View& view, const std::int32_t* own, std::int64_t n_own) noexcept {
        for (std::int64_t i = 0; i < segments.n; ++i) {
            std::int64_t both = 0, all = 0;
            view.for_each_label(ballot.nearest[i].node, [&](std::int64_t slot, std::int64_t rows) {
                all += rows;
                if (std::binary_search(own, own + n_own, static_cast<std::int32_t>(slot))) both += rows;
            });
            const auto count = static_cast<double>(view.count(ballot.nearest[i].node));
            const double shared = static_cast<double>(both) / count;
            segments.learn(i, shared / (static_cast<double>(all) / count + static_cast<double>(n_own) - shared));
        }
    }
};

}  // namespace mlca::MLCA_LEVEL
