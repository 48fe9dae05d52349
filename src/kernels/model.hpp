// The model, and the one step by which it learns.
//
// A step has a part that only reads (a search by the nodes, and who votes) and a part that changes the model: `prepare` makes
// all room that may be needed and may fail, the rest cannot. Learning takes steps one after the other; looking ahead searches
// for a block of instances before it commits them; merging replays the nodes of another model, each as all the instances
// it stands for, in one step. Where c presentations of one place have a closed form it is used: the winner of count a
// keeps the share (a - 1) / (a + c - 1) of its place under the published rule, and a / (a + c) under the released one. At
// c = 1 every step is that of a single instance.
//
// Nodes are made by correntropy in any case. Who votes is found by it too, or by the learned similarity (learned_nodes.hpp);
// votes become probabilities by Bayes' rule (labels.hpp) or by calibration (decision.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "bandwidth.hpp"
#include "births.hpp"
#include "decision.hpp"
#include "groups.hpp"
#include "labels.hpp"
#include "memory.hpp"
#include "nodes_view.hpp"
#include "query.hpp"
#include "settings.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode, class NodesOf>
struct Model {
    static constexpr Mode MODE = mode;
    using Nodes = NodesOf;
    using Row = typename Nodes::Row;
    using NodesAsLearned = typename Nodes::NodesAsLearned;

    // An instance, or many at one place.
    struct Instance {
        Row x;
        LabelRow labels;
        std::int64_t count = 1;
        bool is_replayed = false;  // a node of another model: what its decision learned is added as a whole
    };

    // Who votes on an instance, where it is not the nearest by correntropy under Bayes' rule.
    struct Voting {
        explicit Voting(const Settings& told) : neighbours(told.n_neighbors) {}

        Shortlist neighbours;  // by the learned similarity, for Bayes' rule
        Poll poll;             // for calibration
    };

    // Working space of a search, one for each thread.
    struct Space {
        typename Nodes::Space nodes;
        typename NodesAsLearned::Space learned;
        Shortlist stretch{1};
        Array<std::int64_t> sums;
    };

    // Working space of a step.
    struct Work {
        explicit Work(const Settings& told) : found(told.n_listed()), voting(told) {}

        Space space;
        Shortlist found;  // by correntropy
        Grouping grouping;
        Voting voting;
        Votes votes;
        Ballot ballot;
        Array<std::int32_t> slots;  // of the instance's labels
    };

    explicit Model(const Settings& told)
        : settings(told),
          nodes(told),
          labels(told.vote, told.n_neighbors, told.smoothing),
          bandwidths(told.bandwidth_width()),
          bandwidth_sums(static_cast<std::size_t>(told.bandwidth_width()), 0.0) {
        if (told.calibrated) decision.emplace(told.recency, told.follows_drift);
    }

    Settings settings;
    std::int64_t n_nodes = 0;
    Nodes nodes;
    LabelMemory labels;
    Rows<double> bandwidths;       // one a node, or one an attribute
    Array<double> bandwidth_sums;  // over the nodes, in the order of their making
    RunningMedian median_bandwidth;
    Groups groups;
    std::optional<Groups> next_groups;  // of the round that the next instance is due for: they come into force with it
    std::optional<NodesAsLearned> as_learned;  // once there is a node, where the similarity is learned
    std::int64_t similarity_due = 1;    // after so many instances it is computed anew
    std::optional<Decision> decision;   // where it is calibrated
    // Where nodes are bounded: those that were given up stay in their places until the model is made anew without them.
    Births births;
    Array<std::uint8_t> gone;
    std::int64_t n_gone = 0;
    std::int64_t n_candidates = 0;      // instances that became nodes, or would have

    std::int64_t n_kept() const noexcept { return n_nodes - n_gone; }
    // The number of a node among those that are kept, which is what others know it by.
    std::int64_t number_of(std::int64_t node) const noexcept { return n_gone == 0 ? node : node - std::count(gone.data(), gone.data() + node, 1); }
    const std::uint8_t* gone_flags() const noexcept { return n_gone > 0 ? gone.data() : nullptr; }
    bool is_full() const noexcept { return settings.max_nodes > 0 && n_kept() >= settings.max_nodes; }

    // Which node of a full model the next instance that would be one takes the place of; -1: of none. A reservoir: each of
    // the s instances so far is a node with the same probability, drawn by the number of rows alone.
    std::int64_t drawn() const noexcept {
        std::int64_t left = static_cast<std::int64_t>(splitmix64(static_cast<std::uint64_t>(labels.n_learned)) % static_cast<std::uint64_t>(n_candidates + 1));
        if (left >= n_kept()) return -1;
        std::int64_t node = 0;
        for (; left > 0 || (n_gone > 0 && gone.data()[node]); ++node) left -= n_gone == 0 || !gone.data()[node];
        return node;
    }

    // Say how an instance is to be compared with the first `n` nodes, whose bandwidths add up to `sums`, while learning.
    Query<Row> query_to_learn(const Row& x, std::int64_t n, const double* sums, Shortlist& found, Grouping& grouping, Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n, .found = &found};
        if constexpr (mode == Mode::common) query.r = SCALE / (sums[0] / static_cast<double>(n - n_gone));
        if constexpr (mode == Mode::clustered) group(query, next_groups ? *next_groups : groups, sums, grouping, space);
        if (settings.lists_takers()) found.begin(2, settings.threshold(grouping));
        found.skip(gone_flags());
        return query;
    }

    // The same when predicting: the common bandwidth is the median then.
    Query<Row> query_to_predict(const Row& x, Shortlist& found, Grouping& grouping, Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n_nodes, .found = &found};
        if constexpr (mode == Mode::common) query.r = SCALE / median_bandwidth.value();
        if constexpr (mode == Mode::clustered) group(query, groups, bandwidth_sums.data(), grouping, space);
        found.skip(gone_flags());
        return query;
    }

    // The factor of the common bandwidth that the next instance will meet.
    double learning_r() const noexcept { return mode == Mode::common && n_nodes > 0 ? SCALE / (bandwidth_sums[0] / static_cast<double>(n_kept())) : 1.0; }

    // Whether the nearest node takes an instance in.
    static bool joins(const Shortlist& found, std::int64_t threshold) noexcept { return found.size() > 0 && found.sums[0] <= threshold; }

    // Who votes on instances under the learned similarity: instance q among the first n[q] nodes, ascending numbers.
    // `with_scores`: fill in the background, too.
    void ask_learned(const Row* xs, const std::int64_t* n, std::int64_t n_rows, bool learning, bool with_scores, FunctionRef<Voting&(std::int64_t)> voting_of, Space& space,
                     Stop& stop) const {
        if (!as_learned) return;
        const RowOfNode row{nodes.weights()};
        as_learned->compare(xs, n, n_rows, row, gone_flags(), space.learned, stop, [&](std::int64_t q, NearestIn nearest_in, FunctionRef<void(std::int64_t*)> score) {
            Voting& voting = voting_of(q);
            if (with_scores && as_learned->learned().has_background) {
                grow_to(voting.poll.scores, as_learned->learned().background.n_slots());
                score(voting.poll.scores.data());
            }
            if (decision) {
                decision->find_voters(voting.poll, ruler_of(as_learned->learned()), labels.node_counts, n[q], births, learning, nearest_in);
            } else {
                voting.neighbours = nearest_in(0, n[q], settings.n_neighbors, NO_LIMIT);
            }
        });
    }

    // Who votes on an instance by correntropy, whose nearest nodes are listed already.
    void ask_listed(const Query<Row>& query, const Grouping& grouping, bool learning, Voting& voting, Space& space, Stop& stop) const {
        bool summed = false;
        const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n, std::int64_t) -> const Shortlist& {
            if (low == 0 && high == query.n_nodes && n > 1) return *query.found;
            if (!summed) {
                grow_to(space.sums, query.n_nodes);
                nodes.for_each_sum(query, space.nodes, stop, [&](std::int64_t k, std::int64_t sum) { space.sums.data()[k] = sum; });
                summed = true;
            }
            space.stretch.begin(n);
            space.stretch.skip(gone_flags());
            for (std::int64_t k = low; k < high; ++k) space.stretch.offer(k, space.sums.data()[k]);
            return space.stretch;
        };
        decision->find_voters(voting.poll, correntropy_ruler(grouping), labels.node_counts, query.n_nodes, births, learning, nearest_in);
    }

    // Who votes on the next instance, before it is learned; `query` is what it was searched by.
    void ask_to_learn(const Query<Row>& query, const Grouping& grouping, Voting& voting, Space& space, Stop& stop) const {
        const std::int64_t n = query.n_nodes;
        if (n == 0) {
            if (decision) decision->find_no_voters(voting.poll, labels.node_counts);
            voting.neighbours.clear();
        } else if (settings.learned) {
            ask_learned(&query.x, &n, 1, true, decision && decision->learns_opinions(), [&](std::int64_t) -> Voting& { return voting; }, space, stop);
        } else if (decision) {
            ask_listed(query, grouping, true, voting, space, stop);
        }
    }

    // Make room for a node; afterwards `create_node` cannot fail.
    void reserve_node(std::int64_t n, const Row& x) {
        nodes.reserve(n, x);
        if (as_learned) as_learned->reserve(n, x);
    }
    void create_node(std::int64_t node, const Row& x, const double* node_bandwidths) noexcept {
        nodes.create(node, x, node_bandwidths);
        if (as_learned) as_learned->enter(node, x);
    }
    // Unmake nodes that were created and have not become nodes of the model.
    void withdraw() noexcept {
        if (as_learned) as_learned->withdraw(n_nodes, RowOfNode{nodes.weights()});
        nodes.withdraw(n_nodes);
    }

    // Make room for all else that committing an instance may need.
    void prepare(const Instance& instance, const Shortlist& found, bool joining, Work& work) {
        std::int64_t n_labels = labels.n_labels;
        for (std::int64_t place = 0; place < instance.labels.n; ++place) n_labels = std::max(n_labels, instance.labels.labels[place] + std::int64_t{1});
        labels.reserve_labels(n_labels);
        work.votes.reserve(n_labels);
        if (decision) prepare_decision(instance.labels, n_labels, work);
        if (!joining) {
            labels.reserve_node(instance.labels);
            bandwidths.reserve(n_nodes + 1);
            median_bandwidth.reserve();
            if (settings.max_nodes > 0 && gone.size() == gone.capacity()) {
                gone.reserve(gone.size() + gone.size() / 2 + 64);
                births.numbers.reserve(gone.capacity());
            }
            return;
        }
        const std::int64_t winner = found.nodes[0];
        labels.reserve_join(winner, instance.labels);
        nodes.reserve_move(winner, instance.x);
        if (settings.rule != Rule::text && found.size() > 1) nodes.reserve_move(found.nodes[1], instance.x);
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < n_moved(found); ++j) nodes.reserve_move(found.nodes[static_cast<std::size_t>(j)], instance.x, winner);
        }
    }

    // Case I: an instance that was created as a node becomes one; it is its own nearest neighbour. A node may be given up
    // for it.
    void become_node(const Instance& instance, const double* node_bandwidths, Shortlist& found, Voting& voting, Work& work,
                     std::int64_t given_up = -1) noexcept {
        const bool decides = decision && !instance.is_replayed;
        if (decides) decide(voting, work);
        if (given_up >= 0) give_up(given_up);
        std::copy_n(node_bandwidths, bandwidths.width(), bandwidths[n_nodes]);
        for (std::int64_t i = 0; i < bandwidths.width(); ++i) bandwidth_sums[static_cast<std::size_t>(i)] += node_bandwidths[i];
        if constexpr (mode == Mode::common) median_bandwidth.add(node_bandwidths[0]);
        labels.open_node(instance.labels, instance.count);
        if (settings.max_nodes > 0) {
            births.numbers.push_back(births.n_made++);
            gone.push_back(0);
        }
        ++n_nodes;
        ++n_candidates;
        if (decides) decision->place(births[n_nodes - 1], true, births.made(n_nodes), work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
        if (!decision && n_nodes > 1) {  // the very first instance changes no counter
            Shortlist& neighbours = settings.learned ? voting.neighbours : found;
            neighbours.put_first(n_nodes - 1);
            count(instance, neighbours, work.votes);
        }
        finish(instance);
    }

    // The model is full, and no node is given up: only the counters learn.
    void pass_by(const Instance& instance, const Shortlist& found, Voting& voting, Work& work) noexcept {
        if (decision && !instance.is_replayed) decide(voting, work);
        if (!decision) count(instance, settings.learned ? voting.neighbours : found, work.votes);
        ++n_candidates;
        finish(instance);
    }

    // Cases II and III: the nearest node takes the instance in.
    void join_winner(const Instance& instance, std::int64_t threshold, const Shortlist& found, Voting& voting, Work& work) noexcept {
        const bool decides = decision && !instance.is_replayed;
        if (decides) decide(voting, work);
        labels.join_node(found.nodes[0], instance.labels);
        move(instance, found, found.size() > 1 && found.sums[1] <= threshold);
        if (decides) decision->place(births[found.nodes[0]], false, births.made(n_nodes), work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
        if (!decision) {
            count(instance, settings.learned ? voting.neighbours : found, work.votes);
        }
        finish(instance);
    }

    // Whether the learned similarity is to be computed anew before anything else is learned or asked.
    bool similarity_is_due() const noexcept { return settings.learned && n_nodes > 0 && labels.n_learned >= similarity_due; }
    auto view(Stop* stop = nullptr) const noexcept { return NodesView(settings, n_nodes, nodes.weights(), labels, births, stop); }
    NodesAsLearned weighed(Stop& stop) const { return NodesAsLearned::of(view(&stop)); }
    void take_similarity(NodesAsLearned&& next) noexcept {
        as_learned.emplace(std::move(next));
        similarity_due = due_after(labels.n_learned);
    }

    // How sums of correntropy become the distances that an explanation shows.
    Ruler correntropy_ruler(const Grouping& grouping) const noexcept {
        const std::int64_t parts = mode == Mode::clustered ? grouping.n_groups : settings.n_features;
        return {static_cast<double>(parts) * PER_UNIT, parts << 40, mode == Mode::common};
    }

private:
    void group(Query<Row>& query, const Groups& by, const double* sums, Grouping& grouping, Space& space) const {
        nodes.group(by, query.x, sums, query.n_nodes - n_gone, grouping, space.nodes);
        query.grouping = &grouping;
    }

    void give_up(std::int64_t node) noexcept {
        gone.data()[node] = 1;
        ++n_gone;
        if constexpr (mode == Mode::common) median_bandwidth.remove(bandwidths[node][0]);
        // In the order of their making, as if the others had been all.
        std::fill(bandwidth_sums.begin(), bandwidth_sums.end(), 0.0);
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            if (gone.data()[k]) continue;
            for (std::int64_t i = 0; i < bandwidths.width(); ++i) bandwidth_sums[static_cast<std::size_t>(i)] += bandwidths[k][i];
        }
    }

    // Under the rule as printed so many of the nearest move.
    std::int64_t n_moved(const Shortlist& found) const noexcept { return std::min(found.size(), settings.n_neighbors); }

    void move(const Instance& instance, const Shortlist& found, bool second_fits) noexcept {
        const std::int64_t winner = found.nodes[0];
        auto& counts = labels.node_counts;
        const std::int64_t before = counts[static_cast<std::size_t>(winner)];
        counts[static_cast<std::size_t>(winner)] += instance.count;
        move_node(winner, instance.x, step(settings.rule == Rule::released ? before + 1 : before, instance.count));
        if (!second_fits) return;
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < n_moved(found); ++j) {
                const std::int64_t node = found.nodes[static_cast<std::size_t>(j)];
                move_node(node, nodes.row(winner), step(settings.n_neighbors * counts[static_cast<std::size_t>(node)], instance.count));
            }
        } else {
            const std::int64_t second = found.nodes[1];
            move_node(second, instance.x, step(settings.second_slowing() * counts[static_cast<std::size_t>(second)], instance.count));
        }
    }

    void move_node(std::int64_t node, const Row& target, double slowing) noexcept {
        if (nodes.move(node, target, slowing) && as_learned) as_learned->move(node, nodes.row(node));
    }

    void finish(const Instance& instance) noexcept {
        labels.finish(instance.labels, instance.count);
        if (!next_groups) return;
        groups = std::move(*next_groups);
        next_groups.reset();
    }

    // The divisor of one move that stands for moves by 1 / slowing, 1 / (slowing + 1), ..., `count` in all.
    static double step(std::int64_t slowing, std::int64_t count) noexcept {
        return static_cast<double>(slowing + count - 1) / static_cast<double>(count);
    }

    void count(const Instance& instance, const Shortlist& found, Votes& votes) noexcept {
        labels.collect(found, votes);
        labels.count(instance.labels, instance.count, votes);
    }

    void prepare_decision(const LabelRow& label_row, std::int64_t n_labels, Work& work) {
        work.slots.clear();
        if (label_row.n == 0) work.slots.push_back(0);
        for (std::int64_t place = 0; place < label_row.n; ++place) work.slots.push_back(label_row.labels[place] + 1);
        std::sort(work.slots.begin(), work.slots.end());
        decision->reserve(n_labels + 1, static_cast<std::int64_t>(work.slots.size()));
        decision->reserve(work.ballot);
    }

    // Learn from what would have been said of an instance; `prepare` has made room.
    void decide(Voting& voting, Work& work) noexcept {
        const auto view = this->view();
        const Learned* learned = as_learned ? &as_learned->learned() : nullptr;
        decision->count_votes(voting.poll, work.ballot, view);
        decision->learn(voting.poll, work.ballot, learned, view, work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
    }
};

}  // namespace mlca::MLCA_LEVEL
