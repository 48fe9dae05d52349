// Calibrated decision: turns the votes of the nearest nodes into probabilities, and learns from the true labels.
//
// For each row: find the voters (the nearest nodes), count their votes, and let each expert compute probabilities from
// them. When the row is learned, calibration, expert weights and counts are updated. The experts use: votes among all
// nodes; these votes, adjusted by recency; votes among nodes of trusted segments; votes among the latest nodes. Usually
// there is only the first expert.
//
// `View` is a view of the nodes as in similarity/fit_similarity.hpp: count(k), node_id(k) and for_each_label(k, f).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "decision/drift.hpp"
#include "decision/label_frequencies.hpp"
#include "decision/mixer.hpp"
#include "decision/voters.hpp"
#include "learner/settings.hpp"
#include "nodes/nodes_view.hpp"
#include "similarity/rank_distance.hpp"

namespace mlca::MLCA_LEVEL {

// Turns shares of the votes into probabilities, by counting how often a label with a given share was present.
//
// For each slot, eleven cells from share 0 to share 1 count all rows, and the rows that had the label; a row is split
// between the two cells adjacent to its share. Counts are integers in units of 2^-20 rows, so they can be added when
// models are merged. In a row, nearly all labels have share 0. So cell 0 is stored as its difference from all rows: an
// absent label with share 0 needs no update, and a label that appears late has the correct counts without storage.
class Calibration {
public:
    static constexpr std::int64_t CELLS = 10;
    static constexpr std::int64_t WIDTH_OF_SLOT = CELLS + 1;
    static constexpr std::int64_t PER_COUNT = std::int64_t{1} << 20;
    static constexpr std::int64_t MOST_ROWS = std::int64_t{1} << 40;

    void reserve(std::int64_t n_slots) {
        grow_to(present, n_slots * WIDTH_OF_SLOT);
        grow_to(total, n_slots * WIDTH_OF_SLOT);
    }

    double probability(std::int64_t slot, double share) const noexcept { return 0.5 * share + 0.5 * fraction_at(slot, share); }

    // Among the rows in which the label had this share of the votes: the fraction that had the label, smoothed.
    double fraction_at(std::int64_t slot, double share) const noexcept {
        const Place place(share);
        const double low = fraction(slot, place.cell);
        if (place.f == 0.0) return low;  // the usual case: most labels have no votes
        return (1.0 - place.f) * low + place.f * fraction(slot, place.cell + 1);
    }

    // Count a row, given the sorted slots of its labels. All memory must have been reserved beforehand.
    void learn(const Shares& shares, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        ++rows;
        for (const std::int32_t slot : shares.listed) count(slot, shares[slot], std::binary_search(slots, slots + n_in_row, slot));
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            if (!shares.lists(slots[i])) count(slots[i], 0.0, true);
        }
    }

    // Whether the counts are valid for this number of slots, so that using them is memory-safe.
    bool is_sound(std::int64_t n_slots) const noexcept {
        const auto n = static_cast<std::size_t>(n_slots * WIDTH_OF_SLOT);
        if (rows < 0 || rows > MOST_ROWS || total.size() != n || present.size() != n) return false;
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            std::int64_t left = rows * PER_COUNT;  // rows not yet assigned to a cell, an upper bound on the next
            for (std::int64_t cell = 0; cell < WIDTH_OF_SLOT; ++cell) {
                const std::int64_t all = total[slot * WIDTH_OF_SLOT + cell], with_label = present[slot * WIDTH_OF_SLOT + cell];
                if (cell == 0 && (all > 0 || all < -left)) return false;
                const std::int64_t here = cell == 0 ? left + all : all;
                if (here < 0 || here > left || with_label < 0 || with_label > here) return false;
                left -= here;
            }
            if (left != 0) return false;
        }
        return true;
    }

    std::int64_t rows = 0;
    Array<std::int64_t> total;      // per slot: cell 0 minus all rows, then the other cells
    Array<std::int64_t> present;    // per slot and cell: counted rows that had the label

private:
    struct Place {
        explicit Place(double share) noexcept {
            const double x = share * static_cast<double>(CELLS);
            cell = std::min(static_cast<std::int64_t>(x), CELLS - 1);
            f = x - static_cast<double>(cell);
        }
        std::int64_t cell;
        double f;
    };

    double fraction(std::int64_t slot, std::int64_t cell) const noexcept {
        const std::int64_t all = total[slot * WIDTH_OF_SLOT + cell] + (cell == 0 ? rows * PER_COUNT : 0);
        const double with_label = static_cast<double>(present[slot * WIDTH_OF_SLOT + cell]) / static_cast<double>(PER_COUNT);
        return (with_label + 0.3 * static_cast<double>(cell)) / (static_cast<double>(all) / static_cast<double>(PER_COUNT) + 3.0);
    }

    void count(std::int64_t slot, double share, bool has_label) noexcept {
        const Place place(share);
        const auto upper = static_cast<std::int64_t>(nearest_whole(place.f * static_cast<double>(PER_COUNT)));
        std::int64_t* total_of_slot = total.data() + slot * WIDTH_OF_SLOT;
        std::int64_t* present_of_slot = present.data() + slot * WIDTH_OF_SLOT;
        total_of_slot[0] -= PER_COUNT;
        total_of_slot[place.cell] += PER_COUNT - upper;
        total_of_slot[place.cell + 1] += upper;
        if (!has_label) return;
        present_of_slot[place.cell] += PER_COUNT - upper;
        present_of_slot[place.cell + 1] += upper;
    }
};

// A mixture of experts weighted by their past losses; no weight reaches zero.
//
// Losses are summed over labels as integers in units of 2^-32, so the order of labels does not matter.
class Pool {
public:
    static constexpr std::int64_t MOST_EXPERTS = 8;

    explicit Pool(std::int64_t experts) : n_experts(experts) {
        log_weights[0] = ln(0.9);
        for (std::int64_t e = 1; e < n_experts; ++e) log_weights[e] = ln(0.1 / static_cast<double>(n_experts - 1));
        refresh();
    }

    double mix(const double* opinions) const noexcept {
        double total = 0.0;
        for (std::int64_t e = 0; e < n_experts; ++e) total += weights[e] * opinions[e];
        return total;
    }

    // For each row: call `begin`, then `add_losses` with the experts' opinions on each label, then `learn`.
    void begin() noexcept { std::fill_n(losses_, MOST_EXPERTS, 0); }
    void add_losses(const double* opinions, bool has_label) noexcept {
        for (std::int64_t e = 0; e < n_experts; ++e) {
            const double p = clipped(opinions[e], 1e-3);
            losses_[e] += static_cast<std::int64_t>(nearest_whole(ln(has_label ? p : 1.0 - p) * 0x1p32));
        }
    }
    void learn() noexcept {
        for (std::int64_t e = 0; e < n_experts; ++e) {
            log_weights[e] = ln(weights[e]) + 0.5 * (static_cast<double>(losses_[e]) / 0x1p32);
        }
        refresh();
    }

    // Compute the weights from their logarithms.
    void refresh() noexcept {
        double top = log_weights[0], together = 0.0;
        for (std::int64_t e = 1; e < n_experts; ++e) top = std::max(top, log_weights[e]);
        for (std::int64_t e = 0; e < n_experts; ++e) {
            weights[e] = exp_of_minus(top - log_weights[e]);
            together += weights[e];
        }
        for (std::int64_t e = 0; e < n_experts; ++e) {
            weights[e] = 0.999 * weights[e] / together + 0.001 / static_cast<double>(n_experts);
        }
    }

    // Whether the logarithms can result from learning, so that using them is safe.
    bool is_sound() const noexcept {
        return std::all_of(log_weights, log_weights + n_experts, [](double w) { return w <= 0.0 && w >= -1e15; });
    }

    std::int64_t n_experts;
    double log_weights[MOST_EXPERTS] = {};  // not normalised: the weights need not sum to 1
    double weights[MOST_EXPERTS] = {};

private:
    std::int64_t losses_[MOST_EXPERTS] = {};
};

// Novelty of a row: the share of learned rows that were closer to their nearest node than this row is.
//
// Each row's distance from its nearest node, measured before the row was learned, is counted in one of 64 bins.
class Novelty {
public:
    static constexpr std::int64_t N_BINS = 64;

    void learn(double distance) noexcept { ++rows[bin(distance)]; }

    // The novelty of a row at this distance from its nearest node. Rows are assumed to be spread evenly within a bin.
    // Before any row is counted, novelty is 0 at distance 0, and 1 at all other distances.
    double of(double distance) const noexcept {
        const std::int64_t place = bin(distance);
        std::int64_t nearer = 0, all = 0;
        for (std::int64_t i = 0; i < N_BINS; ++i) {
            nearer += i < place ? rows[i] : 0;
            all += rows[i];
        }
        if (all == 0) return distance > 0.0 ? 1.0 : 0.0;
        const double part = 64.0 * distance - static_cast<double>(place);
        return (static_cast<double>(nearer) + part * static_cast<double>(rows[place])) / static_cast<double>(all);
    }

    // Whether the counts are valid for this number of rows.
    bool is_sound(std::int64_t n_rows) const noexcept {
        std::int64_t left = n_rows;
        for (const std::int64_t count : rows) {
            if (count < 0 || count > left) return false;
            left -= count;
        }
        return true;
    }

    std::int64_t rows[N_BINS] = {};

private:
    static std::int64_t bin(double distance) noexcept { return std::min(static_cast<std::int64_t>(64.0 * distance), N_BINS - 1); }
};

inline constexpr std::int64_t MOST_ELECTORATES = 3;

// The voters of a row: among all nodes and, for experts that follow drift, among the nodes of trusted segments and
// among the latest nodes.
struct Poll {
    Voters voters[MOST_ELECTORATES];
    Array<Stretch> trusted;         // nodes of trusted segments, if the decision follows drift
    Array<Voter> of_segments;       // the nearest node of each segment; only when learning
    double nearest = -1.0;          // distance to the nearest of all nodes; negative if there are no nodes
    Array<std::int64_t> scores;     // background scores; only with the learned similarity
};

// The results of a vote, one object per thread.
struct Ballot {
    Shares shares[MOST_ELECTORATES];
};

class Decision {
public:
    Decision(bool with_recency, bool follows_drift, bool with_mixer)
        : n_electorates(follows_drift && !with_mixer ? MOST_ELECTORATES : 1), follows(follows_drift),
          segments(with_mixer ? Segments::UNBOUNDED : Segments::MOST_OF_EXPERTS, with_mixer ? Segments::SPEED : Segments::SPEED_OF_EXPERTS) {
        if (with_recency) recency.emplace();
        if (with_mixer) {
            mixer.emplace(with_recency);
            if (with_recency) persistence.emplace();
        } else if (with_recency || follows_drift) {
            pool.emplace(n_electorates + (with_recency ? Recency::N_LIVES : 0));
        }
        reserve(1, 0);  // slot 0, "none", always exists
    }

    // Reserve memory to learn a row with `n_in_row` labels, so that learning it cannot fail. Existing values do not
    // change.
    void reserve(std::int64_t n_slots, std::int64_t n_in_row) {
        for (std::int64_t e = 0; e < n_electorates; ++e) calibrations[e].reserve(n_slots);
        if (recency) recency->reserve(n_slots);
        if (persistence) persistence->reserve(n_slots, n_in_row);
        if (n_electorates > 1) fading.reserve(n_in_row);
        if (follows) segments.reserve();
        frequencies.reserve(n_slots);  // last, because its size defines the number of slots
    }

    // Resize all arrays to exactly these numbers of slots and nodes, as a state requires.
    void resize(std::int64_t n_slots, std::int64_t n_nodes) {
        reserve(n_slots, 0);
        const auto n = static_cast<std::size_t>(n_slots);
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            calibrations[e].total.resize(n * Calibration::WIDTH_OF_SLOT);
            calibrations[e].present.resize(n * Calibration::WIDTH_OF_SLOT);
        }
        if (recency) recency->counts.resize(n * Recency::N_LIVES);
        if (persistence) persistence->counts.resize(n * Persistence::N_COUNTS);
        frequencies.totals.resize(n);
        if (n_electorates > 1 && n_nodes == 0) fading = Fading();
    }

    // Number of slots with reserved memory.
    std::int64_t n_slots() const noexcept { return frequencies.totals.size(); }

    // Reserve memory for a vote, so that counting it cannot fail.
    void reserve(Ballot& ballot) const {
        for (std::int64_t e = 0; e < n_electorates; ++e) ballot.shares[e].reserve(n_slots());
    }

    // Whether learning a row requires its background scores: the losses of experts and the inputs of the mixer depend
    // on them.
    bool learns_opinions() const noexcept { return pool || mixer; }

    // Whether a row's votes are mixed with the linear models and other inputs.
    bool mixes(const Poll& poll) const noexcept { return mixer && frequencies.rows > Mixer::FIRST_ROWS && !poll.voters[0].far(); }

    // Mix the votes; `scores` are the linear models' scores, "none" first. `space` must be large enough.
    void mix(const Poll& poll, const Ballot& ballot, const Learned* learned, const double* scores, MixerSpace& space) const noexcept {
        const bool has_background = learned != nullptr && learned->has_background;
        space.n = static_cast<std::int64_t>(frequencies.arrived.size()) + 1;
        double *votes = space.votes.data(), *totals = space.totals.data(), *shifts = space.inputs[0].data();
        for (std::int64_t k = 0; k < space.n; ++k) {
            const std::int32_t slot = k == 0 ? 0 : frequencies.arrived[k - 1];
            votes[k] = calibrations[0].probability(slot, ballot.shares[0][slot]);
            totals[k] = static_cast<double>(frequencies.totals[slot]);
            if (has_background) shifts[k] = learned->background.shift(poll.scores.data(), slot);
            if (!recency) continue;
            const double prior = frequencies.prior(slot);
            for (std::int64_t h = 0; h < Recency::N_LIVES; ++h) space.inputs[4 + h][k] = ln(odds(recency->share(slot, h, prior)));
            if (persistence->has_enough()) space.inputs[4][k] = ln(odds(persistence->share(slot, prior)));
        }
        Mixer::find_shares(space, frequencies.rows);
        if (has_background) Background::blend(votes, space.priors.data(), shifts, space.n);
        std::copy_n(scores, space.n, space.scores.data());
        mixer->mix(space);
    }

    // Clear the voters; used while there are no nodes.
    void clear_voters(Poll& poll, const Array<std::int64_t>& counts) const noexcept {
        for (std::int64_t e = 0; e < n_electorates; ++e) poll.voters[e].begin({}, counts);
        poll.nearest = -1.0;
        poll.of_segments.clear();
    }

    // Find the voters among the first n_nodes nodes; `counts` are the nodes' row counts. nearest_in(low, high, n,
    // limit) lists the n nearest of the nodes from `low` up to, but not including, `high`; it may omit nodes with keys
    // above the limit. `node_ids` maps node indices to ids, and back.
    void find_voters(Poll& poll, const Ruler& ruler, const Array<std::int64_t>& counts, std::int64_t n_nodes, const NodeIds& node_ids, bool learning,
                     NearestIn nearest_in) const {
        const Stretch all{0, n_nodes};
        const auto find = [&](Voters& voters, const Stretch* parts, std::int64_t n_parts) {
            // The n nearest nodes of all parts are among the n nearest of each part, so all voters are listed once n
            // exceeds their number.
            for (std::int64_t n = likely_voters(n_nodes);; n = std::min(2 * n, MOST_LISTED)) {
                voters.begin(ruler, counts);
                for (std::int64_t i = 0; i < n_parts; ++i) {
                    if (parts[i].low < parts[i].high) voters.offer_all(nearest_in(parts[i].low, parts[i].high, n, voters.limit()));
                }
                if (voters.size() < n || n == MOST_LISTED) return;
            }
        };
        const auto nearest_of_all = [&] {
            const TopK& list = nearest_in(0, n_nodes, 1, NO_LIMIT);
            return list.size() > 0 ? ruler.distance(list.sums[0]) : -1.0;
        };
        const std::int64_t n_made = node_ids.made(n_nodes);
        Array<Stretch>& trusted = poll.trusted;
        trusted.clear();
        if (follows) {
            segments.for_each_trusted(n_made, [&](Stretch stretch) { trusted.push_back(node_ids.places(stretch, n_nodes)); });
        }
        const bool trusts_all = !follows || (trusted.size() == 1 && trusted.front() == all);
        if (mixer && !trusts_all) find(poll.voters[0], trusted.data(), static_cast<std::int64_t>(trusted.size()));
        if (!mixer || trusts_all || poll.voters[0].size() == 0) {
            find(poll.voters[0], &all, 1);
            poll.nearest = poll.voters[0].size() > 0 ? poll.voters[0].distance(0) : -1.0;
        } else {
            poll.nearest = nearest_of_all();
        }
        if (n_electorates == 1) {
            if (follows && learning) find_nearest_of_segments(poll, n_nodes, node_ids, nearest_in);
            return;
        }
        if (trusts_all) {
            poll.voters[1] = poll.voters[0];
        } else {
            find(poll.voters[1], trusted.data(), static_cast<std::int64_t>(trusted.size()));
        }
        const Stretch last = node_ids.places({Fading::oldest(n_made), n_made}, n_nodes);
        if (last == all) {
            poll.voters[2] = poll.voters[0];
        } else {
            find(poll.voters[2], &last, 1);
        }
        if (learning) find_nearest_of_segments(poll, n_nodes, node_ids, nearest_in);
    }

    // Count the votes. All memory must have been reserved beforehand.
    template <class View>
    void count_votes(Poll& poll, Ballot& ballot, const View& view) const noexcept {
        const auto count = [&](std::int64_t node) { return view.count(node); };
        const auto labels = [&](std::int64_t node, auto f) { view.for_each_label(node, f); };
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            Voters& voters = poll.voters[e];
            voters.weigh();
            if (voters.far()) {
                share_frequencies(ballot.shares[e]);
            } else if (e < 2) {
                ballot.shares[e].vote(voters, count, labels);
            } else {
                ballot.shares[e].vote(
                    voters, [&](std::int64_t node) { return fading.count(view.node_id(node)); },
                    [&](std::int64_t node, auto f) { fading.for_each_label(view.node_id(node), f); });
            }
        }
    }

    // Compute the probability of each slot; labels not seen yet get 0. `learned` may be null.
    void probabilities(const Poll& poll, const Ballot& ballot, const Learned* learned, double* p) const noexcept {
        std::fill_n(p, n_slots(), 0.0);
        double of_experts[Pool::MOST_EXPERTS];
        const auto put = [&](std::int32_t slot) {
            opinions(poll, ballot, learned, slot, of_experts);
            p[slot] = pool ? pool->mix(of_experts) : of_experts[0];
        };
        put(0);
        for (const std::int32_t slot : frequencies.arrived) put(slot);
    }

    // Compute the probability that each expert assigns to a slot.
    void opinions(const Poll& poll, const Ballot& ballot, const Learned* learned, std::int64_t slot, double* of_experts) const noexcept {
        const double prior = frequencies.prior(slot);
        double background = -1.0;
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            double p = ballot.shares[e][slot];
            if (!poll.voters[e].far()) {
                p = calibrations[e].probability(slot, p);
                if (learned != nullptr && learned->has_background) {
                    if (background < 0.0) background = learned->background.probability(poll.scores.data(), slot, prior);
                    p = Background::blended(p, background);
                }
            }
            *of_experts++ = p;
            if (e > 0 || !recency || mixer) continue;
            recency->opinions(slot, p, prior, of_experts);
            of_experts += Recency::N_LIVES;
        }
    }

    // Update from a row's prediction and the ascending slots of its labels ({0} if it has none). All memory must have
    // been reserved beforehand.
    template <class View>
    void learn(const Poll& poll, const Ballot& ballot, const Learned* learned, const View& view, const std::int32_t* slots,
        std::int64_t n_in_row) noexcept {
        if (pool) {
            pool->begin();
            add_losses(poll, ballot, learned, 0, slots[0] == 0);
            for (const std::int32_t slot : frequencies.arrived) {
                add_losses(poll, ballot, learned, slot, std::binary_search(slots, slots + n_in_row, slot));
            }
            for (std::int64_t i = 0; i < n_in_row; ++i) {  // labels that appear for the first time
                if (slots[i] > 0 && frequencies.totals[slots[i]] == 0) add_losses(poll, ballot, learned, slots[i], true);
            }
            pool->learn();
        }
        if (follows) trust_segments(poll, view, slots, n_in_row);
        for (std::int64_t e = 0; e < n_electorates; ++e) calibrations[e].learn(ballot.shares[e], slots, n_in_row);
        if (recency) recency->learn(slots, n_in_row);
        if (persistence) persistence->learn(slots, n_in_row);
        if (poll.nearest >= 0.0) novelty.learn(poll.nearest);
        frequencies.learn(slots, n_in_row);
    }

    // Record that a row became or joined a node, given the node's id. All memory must have been reserved beforehand.
    void place(std::int64_t node, bool is_new, std::int64_t n_made, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        if (follows && is_new) segments.enter(node);
        if (n_electorates == 1) return;
        if (is_new) fading.enter(node);
        fading.learn(node, n_made, slots, n_in_row);
    }

    // Whether the state is valid for this number of slots and nodes, so that using it is memory-safe.
    bool is_sound(std::int64_t slots, std::int64_t n_nodes, const NodeIds& node_ids) const {
        if (!frequencies.is_sound(slots) || !novelty.is_sound(frequencies.rows)) return false;
        for (std::int64_t e = 0; e < n_electorates; ++e) {
            if (!calibrations[e].is_sound(slots) || calibrations[e].rows != frequencies.rows) return false;
        }
        if ((recency && !recency->is_sound(slots)) || (pool && !pool->is_sound()) || (mixer && !mixer->is_sound(frequencies.rows))) return false;
        if (persistence && !persistence->is_sound(slots, frequencies.rows)) return false;
        const std::int64_t n_made = node_ids.made(n_nodes);
        if (follows && !segments.is_sound(n_made, frequencies.rows)) return false;
        if (n_electorates == 1) return true;
        for (std::int64_t node = node_ids.places({Fading::oldest(n_made), n_made}, n_nodes).low; node < n_nodes; ++node) {
            if (!fading.is_sound(node_ids[node], slots)) return false;
        }
        return true;
    }

    std::int64_t n_electorates;
    bool follows;  // whether the decision follows drift
    Frequencies frequencies;
    Calibration calibrations[MOST_ELECTORATES];
    Novelty novelty;
    std::optional<Recency> recency;
    std::optional<Persistence> persistence;  // replaces the shortest half-life if votes are mixed
    std::optional<Pool> pool;
    std::optional<Mixer> mixer;  // replaces the pool if linear models are mixed in
    Segments segments;
    Fading fading;

private:
    // Number of nodes to list at first: twice the number of nodes that represent fifty rows on average, limited to 10
    // to 50, plus one.
    std::int64_t likely_voters(std::int64_t n_nodes) const noexcept {
        return std::clamp<std::int64_t>(2 * LEAST_ROWS * n_nodes / std::max<std::int64_t>(frequencies.rows, 1), LEAST_VOTERS, LEAST_ROWS) + 1;
    }

    // Find the nearest node of each segment: its first node in the list of voters or, if it has none there, the result
    // of a search.
    void find_nearest_of_segments(Poll& poll, std::int64_t n_nodes, const NodeIds& node_ids, NearestIn nearest_in) const {
        poll.of_segments.assign(segments.n(), Voter{0, -1, 0});
        const Voters& near = poll.voters[0];
        for (std::int64_t v = 0; v < near.size(); ++v) {
            Voter& nearest = poll.of_segments[segments.of(node_ids[near.node(v)])];
            if (nearest.node < 0) nearest = {near.key(v), near.node(v), 0};
        }
        for (std::int64_t i = 0; i < segments.n(); ++i) {
            if (poll.of_segments[i].node >= 0) continue;
            const Stretch stretch = node_ids.places(segments.nodes(i, node_ids.made(n_nodes)), n_nodes);
            if (stretch.low == stretch.high) continue;
            const TopK& list = nearest_in(stretch.low, stretch.high, 1, NO_LIMIT);
            if (list.size() > 0) poll.of_segments[i] = {list.sums[0], list.nodes[0], 0};
        }
    }

    void share_frequencies(Shares& shares) const noexcept {
        shares.clear();
        if (frequencies.totals[0] > 0) shares.add(0, frequencies.share(0));
        for (const std::int32_t slot : frequencies.arrived) shares.add(slot, frequencies.share(slot));
    }

    void add_losses(const Poll& poll, const Ballot& ballot, const Learned* learned, std::int64_t slot, bool has_label) noexcept {
        double of_experts[Pool::MOST_EXPERTS];
        opinions(poll, ballot, learned, slot, of_experts);
        pool->add_losses(of_experts, has_label);
    }

    // Update the trust in each segment by the overlap of the row's labels with the label shares of the segment's nearest node.
    template <class View>
    void trust_segments(const Poll& poll, const View& view, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(poll.of_segments.size()); ++i) {
            const std::int64_t node = poll.of_segments[i].node;
            if (node < 0) continue;  // the segment has no nodes left
            std::int64_t both = 0, all = 0;
            view.for_each_label(node, [&](std::int64_t slot, std::int64_t rows) {
                all += rows;
                if (std::binary_search(slots, slots + n_in_row, static_cast<std::int32_t>(slot))) both += rows;
            });
            const auto count = static_cast<double>(view.count(node));
            const double shared = static_cast<double>(both) / count;
            segments.learn(i, shared / (static_cast<double>(all) / count + static_cast<double>(n_in_row) - shared));
        }
    }
};

}  // namespace mlca::MLCA_LEVEL
