// The model, and the one step by which it learns.
//
// A step has a part that only reads (`query_to_learn`, a search by the nodes) and a part that changes the model: `prepare` makes all
// room that may be needed and may fail, `commit` cannot. Learning takes steps one after the other; looking ahead searches
// for a block of instances before it commits them; merging replays the nodes of another model, each as all the instances
// it stands for, in one step. Where c presentations of one place have a closed form it is used: the winner of count a
// keeps the share (a - 1) / (a + c - 1) of its place under the published rule, and a / (a + c) under the released one. At
// c = 1 every step is that of a single instance.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "bandwidth.hpp"
#include "groups.hpp"
#include "labels.hpp"
#include "memory.hpp"
#include "query.hpp"
#include "settings.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode, class NodesOf>
struct Model {
    using Nodes = NodesOf;
    using Row = typename Nodes::Row;

    // An instance, or many at one place.
    struct Instance {
        Row x;
        LabelRow own;
        std::int64_t count = 1;
    };

    // Working space of a step: a search with its result, the groups it was asked by, and the vote.
    struct Work {
        explicit Work(const Settings& told) : found(told.n_neighbors) {}

        typename Nodes::Space space;
        Shortlist found;
        Grouping grouping;
        Votes votes;
    };

    explicit Model(const Settings& told)
        : settings(told),
          nodes(told.n_features, told.screen_from),
          labels(told.vote, told.n_neighbors, told.smoothing),
          bandwidths(told.bandwidth_width()),
          bandwidth_sums(static_cast<std::size_t>(told.bandwidth_width()), 0.0) {}

    Settings settings;
    std::int64_t n_nodes = 0;
    Nodes nodes;
    LabelMemory labels;
    Rows<double> bandwidths;       // one a node, or one an attribute
    Array<double> bandwidth_sums;  // over the nodes, in the order of their making
    RunningMedian median_bandwidth;
    Groups groups;
    std::optional<Groups> next_groups;  // of the round that the next instance is due for: they come into force with it

    // Say how an instance is to be compared with the first `n` nodes, whose bandwidths add up to `sums`, while learning.
    Query<Row> query_to_learn(const Row& x, std::int64_t n, const double* sums, Shortlist& found, Grouping& grouping, typename Nodes::Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n, .found = &found};
        if constexpr (mode == Mode::common) query.r = SCALE / (sums[0] / static_cast<double>(n));
        if constexpr (mode == Mode::clustered) group(query, next_groups ? *next_groups : groups, sums, grouping, space);
        return query;
    }

    // The same when predicting: the common bandwidth is the median then.
    Query<Row> query_to_predict(const Row& x, Shortlist& found, Grouping& grouping, typename Nodes::Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n_nodes, .found = &found};
        if constexpr (mode == Mode::common) query.r = SCALE / median_bandwidth.value();
        if constexpr (mode == Mode::clustered) group(query, groups, bandwidth_sums.data(), grouping, space);
        return query;
    }

    // The factor of the common bandwidth that the next instance will meet.
    double learning_r() const noexcept { return mode == Mode::common && n_nodes > 0 ? SCALE / (bandwidth_sums[0] / static_cast<double>(n_nodes)) : 1.0; }

    // Whether the nearest node takes an instance in.
    static bool joins(const Shortlist& found, std::int64_t threshold) noexcept { return found.size() > 0 && found.sums[0] <= threshold; }

    // Make room for a node; afterwards `nodes.create` cannot fail.
    void prepare_node(const Instance& instance) { nodes.reserve(n_nodes + 1, instance.x); }

    // Make room for all else that committing an instance may need.
    void prepare(const Instance& instance, const Shortlist& found, bool joining, Votes& votes) {
        std::int64_t n_labels = labels.n_labels;
        for (std::int64_t place = 0; place < instance.own.n; ++place) n_labels = std::max(n_labels, instance.own.labels[place] + std::int64_t{1});
        labels.reserve_labels(n_labels);
        votes.reserve(n_labels);
        if (!joining) {
            labels.reserve_node(instance.own);
            bandwidths.reserve(n_nodes + 1);
            median_bandwidth.reserve();
            return;
        }
        const std::int64_t winner = found.nodes[0];
        labels.reserve_join(winner, instance.own);
        nodes.reserve_move(winner, instance.x);
        if (settings.rule != Rule::text && found.size() > 1) nodes.reserve_move(found.nodes[1], instance.x);
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < found.size(); ++j) nodes.reserve_move(found.nodes[static_cast<std::size_t>(j)], instance.x, winner);
        }
    }

    // Case I: an instance that `nodes` has as a node already becomes one; it is its own nearest neighbour.
    void become_node(const Instance& instance, const double* own_bandwidths, Shortlist& found, Votes& votes) noexcept {
        std::copy_n(own_bandwidths, bandwidths.width(), bandwidths[n_nodes]);
        for (std::int64_t i = 0; i < bandwidths.width(); ++i) bandwidth_sums[static_cast<std::size_t>(i)] += own_bandwidths[i];
        if constexpr (mode == Mode::common) median_bandwidth.add(own_bandwidths[0]);
        labels.open_node(instance.own, instance.count);
        ++n_nodes;
        if (n_nodes > 1) {  // the very first instance changes no counter
            found.put_first(n_nodes - 1);
            count(instance, found, votes);
        }
        finish(instance);
    }

    // Cases II and III: the nearest node takes the instance in.
    void join_winner(const Instance& instance, std::int64_t threshold, const Shortlist& found, Votes& votes) noexcept {
        labels.join_node(found.nodes[0], instance.own);
        move(instance, found, found.size() > 1 && found.sums[1] <= threshold);
        count(instance, found, votes);
        finish(instance);
    }

private:
    void group(Query<Row>& query, const Groups& by, const double* sums, Grouping& grouping, typename Nodes::Space& space) const {
        by.group(nodes.unfolded(query.x, space), sums, settings.n_features, query.n_nodes, grouping);
        query.grouping = &grouping;
    }

    void move(const Instance& instance, const Shortlist& found, bool second_fits) noexcept {
        const std::int64_t winner = found.nodes[0];
        auto& counts = labels.node_counts;
        const std::int64_t before = counts[static_cast<std::size_t>(winner)];
        counts[static_cast<std::size_t>(winner)] += instance.count;
        nodes.move(winner, instance.x, step(settings.rule == Rule::released ? before + 1 : before, instance.count));
        if (!second_fits) return;
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < found.size(); ++j) {
                const std::int64_t node = found.nodes[static_cast<std::size_t>(j)];
                nodes.move(node, nodes.row(winner), step(settings.n_neighbors * counts[static_cast<std::size_t>(node)], instance.count));
            }
        } else {
            const std::int64_t second = found.nodes[1];
            nodes.move(second, instance.x, step(settings.second_slowing() * counts[static_cast<std::size_t>(second)], instance.count));
        }
    }

    void finish(const Instance& instance) noexcept {
        labels.finish(instance.own, instance.count);
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
        labels.count(instance.own, instance.count, votes);
    }
};

}  // namespace mlca::MLCA_LEVEL
