// The model and its learning step.
//
// A step first searches for the nearest nodes and the voters, which only reads the model, and then changes the model.
// `prepare` reserves all memory that the change may need, and may fail; the change itself cannot fail. Sequential
// learning takes one step after another. Speculative learning searches for a block of rows before it commits them.
// Merging replays each node of another model in one step, weighted as all the rows that it represents. Learning the
// same point c times has a closed form: a winner with count a keeps the share (a - 1) / (a + c - 1) of its position
// under the published rule, and a / (a + c) under the released rule. With c = 1, this is the step of a single row.
//
// Correntropy always decides whether a row becomes a node. Voters are found by correntropy or by the learned similarity
// (similarity/rank_index.hpp). Votes become probabilities by Bayes' rule (decision/bayes.hpp) or by calibration
// (decision/calibrated.hpp). By default, a mixer (decision/mixer.hpp) combines calibrated votes with linear models
// (decision/linear_models.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "bandwidth/silverman.hpp"
#include "nodes/nodes_view.hpp"
#include "decision/calibrated.hpp"
#include "decision/linear_models.hpp"
#include "bandwidth/feature_groups.hpp"
#include "decision/bayes.hpp"
#include "base/memory.hpp"
#include "search/neighbour_index.hpp"
#include "learner/settings.hpp"

namespace mlca::MLCA_LEVEL {

template <NeighbourIndex NodesOf>
struct Model {
    using Nodes = NodesOf;
    using Row = typename Nodes::Row;
    using RankIndexOfNodes = typename Nodes::RankIndexOfNodes;

    // One row, or several identical rows.
    struct LabelledRow {
        Row x;
        LabelRow labels;
        std::int64_t count = 1;
        bool is_replayed = false;  // whether this is a node of another model; its decision is merged separately
    };

    // The voters of a row. Not used if Bayes' rule takes the votes of the nearest nodes by correntropy.
    struct Voting {
        explicit Voting(const Settings& settings) : neighbours(settings.n_neighbors) {}

        TopK neighbours;  // found by the learned similarity, for Bayes' rule
        Poll poll;             // for a calibrated decision
    };

    // Working memory of a search, one per thread.
    struct Space {
        typename Nodes::Space nodes;
        typename RankIndexOfNodes::Space learned;
        TopK stretch{1};
        Array<std::int64_t> sums;
    };

    // Working memory of a step.
    struct Work {
        explicit Work(const Settings& settings) : found(settings.n_listed()), voting(settings) {}

        Space space;
        TopK found;  // nearest nodes by correntropy
        Grouping grouping;
        Voting voting;
        Votes votes;
        Ballot ballot;
        Array<std::int32_t> slots;  // the slots of the row's labels
        LinearSpace linear;
        MixerSpace mixing;
    };

    explicit Model(const Settings& given)
        : settings(given),
          nodes(given),
          labels(given.vote, given.n_neighbors, given.smoothing),
          bandwidths(given.bandwidth_width()),
          bandwidth_sums(static_cast<std::size_t>(given.bandwidth_width()), 0.0) {
        if (given.calibrated) decision.emplace(given.recency, given.follows_drift, given.mixes);
        if (given.mixes) linear.emplace(given.n_features);
    }

    Settings settings;
    std::int64_t n_nodes = 0;
    Nodes nodes;
    LabelMemory labels;
    Rows<double> bandwidths;       // per node: one bandwidth, or one per feature
    Array<double> bandwidth_sums;  // summed over the nodes in order of creation
    RunningMedian median_bandwidth;
    Groups groups;
    std::optional<Groups> next_groups;  // result of a round of grouping that takes effect with the next row
    std::optional<RankIndexOfNodes> as_learned;  // if the similarity is learned and there is a node
    std::int64_t similarity_due = 1;    // the number of rows after which the similarity is recomputed
    // Used only if `counts_trusted`: the ids of the nodes from which the similarity was computed, and whether the set
    // of nodes that count has changed too much since then.
    Array<std::int64_t> similarity_node_ids;
    bool is_outdated = false;
    std::optional<Decision> decision;   // if the decision is calibrated
    std::optional<LinearModels> linear; // if linear models are mixed in
    // Upper bound on the number of entries of a node, 0 if unknown; used only if `counts_trusted`.
    std::int64_t n_longest = 0;
    // Used only if the number of nodes is bounded: replaced nodes keep their positions until the model is rebuilt
    // without them.
    NodeIds node_ids;
    Array<std::uint8_t> gone;
    std::int64_t n_gone = 0;
    std::int64_t n_candidates = 0;      // number of rows that became nodes, or would have without the bound

    std::int64_t n_kept() const noexcept { return n_nodes - n_gone; }
    // The node index reported to callers: the index among the kept nodes.
    std::int64_t number_of(std::int64_t node) const noexcept { return n_gone == 0 ? node : node - std::count(gone.data(), gone.data() + node, 1); }
    const std::uint8_t* gone_flags() const noexcept { return n_gone > 0 ? gone.data() : nullptr; }
    bool is_full() const noexcept { return settings.max_nodes > 0 && n_kept() >= settings.max_nodes; }

    // The node of a full model that the next candidate row replaces; -1 for none. This is reservoir sampling: each
    // candidate so far has the same probability of being a node. The draw depends only on the numbers of rows and
    // candidates.
    std::int64_t drawn() const noexcept {
        const auto number = static_cast<std::int64_t>(splitmix64(static_cast<std::uint64_t>(labels.n_learned)) % static_cast<std::uint64_t>(n_candidates + 1));
        return number < n_kept() ? kept_node(number) : -1;
    }

    // Build the query that compares a row to learn with the first `n` nodes, whose bandwidths add up to `sums`.
    Query<Row> query_to_learn(const Row& x, std::int64_t n, const double* sums, TopK& found, Grouping& grouping, Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n, .found = &found};
        if (settings.mode == Mode::common) query.r = SCALE / (sums[0] / static_cast<double>(n - n_gone));
        if (settings.mode == Mode::clustered) group(query, next_groups ? *next_groups : groups, sums, grouping, space);
        if (settings.lists_only_within_vigilance()) found.begin(2, settings.threshold(grouping));
        found.skip(gone_flags());
        return query;
    }

    // Build the query that compares a row to predict with all nodes; the common bandwidth is the median over the nodes.
    Query<Row> query_to_predict(const Row& x, TopK& found, Grouping& grouping, Space& space) const {
        Query<Row> query{.x = x, .n_nodes = n_nodes, .found = &found};
        if (settings.mode == Mode::common) query.r = SCALE / median_bandwidth.value();
        if (settings.mode == Mode::clustered) group(query, groups, bandwidth_sums.data(), grouping, space);
        found.skip(gone_flags());
        return query;
    }

    // SCALE divided by the common bandwidth that applies to the next row.
    double learning_r() const noexcept {
        return settings.mode == Mode::common && n_nodes > 0 ? SCALE / (bandwidth_sums[0] / static_cast<double>(n_kept())) : 1.0;
    }

    // Whether the nearest node absorbs the row.
    static bool joins(const TopK& found, std::int64_t threshold) noexcept { return found.size() > 0 && found.sums[0] <= threshold; }

    // Find the voters of rows by the learned similarity. The voters of row q are among the first n[q] nodes; n[q] must
    // not decrease. With `with_scores`, also fill in the background scores.
    void find_voters_by_rank(const Row* xs, const std::int64_t* n, std::int64_t n_rows, bool learning, bool with_scores,
        FunctionRef<Voting&(std::int64_t)> voting_of, Space& space, Stop& stop) const {
        if (!as_learned) return;
        const RowOfNode row{nodes.weights()};
        as_learned->compare(xs, n, n_rows, row, {gone_flags(), n_gone}, space.learned, stop,
            [&](std::int64_t q, NearestIn nearest_in, FunctionRef<void(std::int64_t*)> score) {
            Voting& voting = voting_of(q);
            if (with_scores && as_learned->learned().has_background) {
                grow_to(voting.poll.scores, as_learned->learned().background.n_slots());
                score(voting.poll.scores.data());
            }
            if (decision) {
                decision->find_voters(voting.poll, ruler_of(as_learned->learned()), labels.node_counts, n[q], node_ids, learning, nearest_in);
            } else {
                voting.neighbours = nearest_in(0, n[q], settings.n_neighbors, NO_LIMIT);
            }
        });
    }

    // Find the voters of a row by correntropy, after its nearest nodes were listed in `query.found`.
    void find_voters_by_correntropy(const Query<Row>& query, const Grouping& grouping, bool learning, Voting& voting, Space& space,
                                    Stop& stop) const {
        bool summed = false;
        const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n, std::int64_t) -> const TopK& {
            if (low == 0 && high == query.n_nodes && n > 1) return *query.found;
            if (!summed) {
                grow_to(space.sums, query.n_nodes);
                nodes.for_each_sum(query, space.nodes, stop, [&](std::int64_t k, std::int64_t sum) { space.sums[k] = sum; });
                summed = true;
            }
            space.stretch.begin(n);
            space.stretch.skip(gone_flags());
            for (std::int64_t k = low; k < high; ++k) space.stretch.offer(k, space.sums[k]);
            return space.stretch;
        };
        decision->find_voters(voting.poll, correntropy_ruler(grouping), labels.node_counts, query.n_nodes, node_ids, learning, nearest_in);
    }

    // Find the voters of the next row before it is learned; `query` is the query of its node search.
    void find_voters(const Query<Row>& query, const Grouping& grouping, Voting& voting, Space& space, Stop& stop) const {
        const std::int64_t n = query.n_nodes;
        if (n == 0) {
            if (decision) decision->clear_voters(voting.poll, labels.node_counts);
            voting.neighbours.clear();
        } else if (settings.learned) {
            const bool with_scores = decision && decision->learns_opinions();
            find_voters_by_rank(&query.x, &n, 1, true, with_scores, [&](std::int64_t) -> Voting& { return voting; }, space, stop);
        } else if (decision) {
            find_voters_by_correntropy(query, grouping, true, voting, space, stop);
        }
    }

    // Find the nearest nodes and the voters of the next row without changing the model; return the threshold of the vigilance test.
    std::int64_t find(const LabelledRow& row, Work& work, Stop& stop) const {
        work.found.clear();
        Query<Row> query{.x = row.x, .found = &work.found};
        if (n_nodes > 0) {
            query = query_to_learn(row.x, n_nodes, bandwidth_sums.data(), work.found, work.grouping, work.space);
            nodes.nearest(&query, 1, work.space.nodes, stop);
        }
        if (!decision || !row.is_replayed) find_voters(query, work.grouping, work.voting, work.space, stop);
        return settings.threshold(work.grouping);
    }

    // Reserve memory for a node, so that `create_node` cannot fail.
    void reserve_node(std::int64_t n, const Row& x) {
        nodes.reserve(n, x);
        if (as_learned) as_learned->reserve(n, x);
    }
    void create_node(std::int64_t node, const Row& x, const double* node_bandwidths) noexcept {
        nodes.enter(node, x, node_bandwidths);
        if (as_learned) as_learned->enter(node, x);
    }
    // Remove nodes that were created but did not become nodes of the model.
    void withdraw() noexcept {
        if (as_learned) as_learned->withdraw(n_nodes, RowOfNode{nodes.weights()});
        nodes.withdraw(n_nodes);
    }

    // Reserve memory for everything else that committing a row may need.
    void prepare(const LabelledRow& row, const TopK& found, bool joining, Work& work) {
        std::int64_t n_labels = labels.n_labels;
        for (std::int64_t place = 0; place < row.labels.n; ++place) n_labels = std::max(n_labels, row.labels.labels[place] + std::int64_t{1});
        labels.reserve_labels(n_labels);
        work.votes.reserve(n_labels);
        if (decision) prepare_decision(row.labels, n_labels, work);
        if (linear && !row.is_replayed) prepare_linear(row, found, joining, work);
        if (!joining) {
            labels.reserve_node(row.labels);
            bandwidths.reserve(n_nodes + 1);
            median_bandwidth.reserve();
            if (settings.max_nodes > 0 && gone.size() == gone.capacity()) {
                gone.reserve(gone.size() + gone.size() / 2 + 64);
                node_ids.numbers.reserve(gone.capacity());
            }
            return;
        }
        const std::int64_t winner = found.nodes[0];
        labels.reserve_join(winner, row.labels);
        nodes.reserve_move(winner, row.x);
        if (settings.rule != Rule::text && found.size() > 1) nodes.reserve_move(found.nodes[1], row.x);
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < n_moved(found); ++j) nodes.reserve_move(found.nodes[j], row.x, winner);
        }
    }

    // Finish the step of a row whose nearest nodes and voters are in `work`: the nearest node absorbs the row, the row
    // becomes a node or, in a full model, the row may only be counted. If an allocation fails, nothing is changed. The
    // model is locked.
    void commit(const LabelledRow& row, std::int64_t threshold, const double* node_bandwidths, Work& work) {
        const bool joining = joins(work.found, threshold);
        const bool replaces = !joining && is_full();
        const std::int64_t replaced = replaces ? drawn() : -1;
        prepare(row, work.found, joining, work);
        if (joining) {
            join_winner(row, threshold, work.found, work.voting, work);
        } else if (replaces && replaced < 0) {
            count_only(row, work.found, work.voting, work);
        } else {
            reserve_node(n_nodes + 1, row.x);
            create_node(n_nodes, row.x, node_bandwidths);
            become_node(row, node_bandwidths, work.found, work.voting, work, replaced);
        }
    }

    // Case I: the node already created for the row becomes part of the model, and is the row's own nearest neighbour. It may
    // replace another node.
    void become_node(const LabelledRow& row, const double* node_bandwidths, TopK& found, Voting& voting, Work& work,
                     std::int64_t replaced = -1) noexcept {
        const bool decides = decision && !row.is_replayed;
        if (decides) decide(row, voting, work);
        if (replaced >= 0) mark_replaced(replaced);
        std::copy_n(node_bandwidths, bandwidths.width(), bandwidths[n_nodes]);
        for (std::int64_t i = 0; i < bandwidths.width(); ++i) bandwidth_sums[i] += node_bandwidths[i];
        if (settings.mode == Mode::common) median_bandwidth.add(node_bandwidths[0]);
        labels.open_node(row.labels, row.count);
        if (settings.max_nodes > 0) {
            node_ids.numbers.push_back(node_ids.n_made++);
            gone.push_back(0);
        }
        ++n_nodes;
        ++n_candidates;
        if (decides)
            decision->place(node_ids[n_nodes - 1], true, node_ids.made(n_nodes), work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
        if (!decision && n_nodes > 1) {  // the very first row changes no counter
            TopK& neighbours = settings.learned ? voting.neighbours : found;
            neighbours.put_first(n_nodes - 1);
            count(row, neighbours, work.votes);
        }
        finish(row, work);
    }

    // The model is full and no node is replaced: only the counters are updated.
    void count_only(const LabelledRow& row, const TopK& found, Voting& voting, Work& work) noexcept {
        if (decision && !row.is_replayed) decide(row, voting, work);
        if (!decision) count(row, settings.learned ? voting.neighbours : found, work.votes);
        ++n_candidates;
        finish(row, work);
    }

    // Cases II and III: the nearest node absorbs the row.
    void join_winner(const LabelledRow& row, std::int64_t threshold, const TopK& found, Voting& voting, Work& work) noexcept {
        const bool decides = decision && !row.is_replayed;
        if (decides) decide(row, voting, work);
        labels.join_node(found.nodes[0], row.labels);
        move(row, found, found.size() > 1 && found.sums[1] <= threshold);
        if (decides)
            decision->place(node_ids[found.nodes[0]], false, node_ids.made(n_nodes), work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
        if (!decision) {
            count(row, settings.learned ? voting.neighbours : found, work.votes);
        }
        finish(row, work);
    }

    // Whether the learned similarity must be recomputed before the next row is learned or predicted.
    bool similarity_is_due() const noexcept { return settings.learned && n_nodes > 0 && (labels.n_learned >= similarity_due || is_outdated); }
    // Whether only nodes of trusted segments count, that is: vote, are rehearsed, and define the similarity.
    bool counts_trusted() const noexcept { return settings.mixes && settings.follows_drift; }
    // Call f(node) for each node that counts, oldest first. All nodes count if trusted segments have no nodes.
    template <class F>
    void for_each_counted(F f) const {
        bool any = false;
        const auto take = [&](Stretch stretch) {
            for (std::int64_t k = stretch.low; k < stretch.high; ++k) {
                if (n_gone > 0 && gone[k]) continue;
                any = true;
                f(k);
            }
        };
        if (counts_trusted())
            decision->segments.for_each_trusted(node_ids.made(n_nodes), [&](Stretch stretch) { take(node_ids.places(stretch, n_nodes)); });
        if (!any) take({0, n_nodes});
    }
    auto view(Stop* stop = nullptr) const noexcept { return NodesView(settings, n_nodes, nodes.weights(), labels, node_ids, stop); }
    RankIndexOfNodes weighed(Stop& stop, ParallelFor parallel_for = ON_ONE_THREAD) const {
        if (!counts_trusted()) return RankIndexOfNodes::of(view(&stop), settings.cells, stop, parallel_for);
        Array<std::int64_t> some;
        for_each_counted([&](std::int64_t k) { some.push_back(k); });
        return RankIndexOfNodes::of_some(NodesView(settings, n_nodes, nodes.weights(), labels, node_ids, &stop, &some), view(&stop));
    }
    void take_similarity(RankIndexOfNodes&& next) {
        Array<std::int64_t> counted;
        if (counts_trusted()) for_each_counted([&](std::int64_t k) { counted.push_back(node_ids[k]); });
        similarity_node_ids = std::move(counted);
        is_outdated = false;
        as_learned.emplace(std::move(next));
        similarity_due = due_after(labels.n_learned);
    }

    // Return the ruler that converts sums of correntropy to distances.
    Ruler correntropy_ruler(const Grouping& grouping) const noexcept {
        const std::int64_t parts = settings.mode == Mode::clustered ? grouping.n_groups : settings.n_features;
        return {static_cast<double>(parts) * PER_UNIT, parts << 40, settings.mode == Mode::common};
    }

private:
    void group(Query<Row>& query, const Groups& by, const double* sums, Grouping& grouping, Space& space) const {
        nodes.group(by, query.x, sums, query.n_nodes - n_gone, grouping, space.nodes);
        query.grouping = &grouping;
    }

    void mark_replaced(std::int64_t node) noexcept {
        gone[node] = 1;
        ++n_gone;
        if (as_learned) as_learned->give_up(node);
        if (settings.mode == Mode::common) median_bandwidth.remove(bandwidths[node][0]);
        // Sum in order of creation, as if only the remaining nodes had ever been created.
        std::fill(bandwidth_sums.begin(), bandwidth_sums.end(), 0.0);
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            if (gone[k]) continue;
            for (std::int64_t i = 0; i < bandwidths.width(); ++i) bandwidth_sums[i] += bandwidths[k][i];
        }
    }

    // Number of nearest nodes that move under the rule "text" (as printed in the paper).
    std::int64_t n_moved(const TopK& found) const noexcept { return std::min(found.size(), settings.n_neighbors); }

    void move(const LabelledRow& row, const TopK& found, bool second_fits) noexcept {
        const std::int64_t winner = found.nodes[0];
        auto& counts = labels.node_counts;
        const std::int64_t before = counts[winner];
        counts[winner] += row.count;
        move_node(winner, row.x, step(settings.rule == Rule::released ? before + 1 : before, row.count));
        if (!second_fits) return;
        if (settings.rule == Rule::text) {
            for (std::int64_t j = 1; j < n_moved(found); ++j) {
                const std::int64_t node = found.nodes[j];
                move_node(node, nodes.row(winner), step(settings.n_neighbors * counts[node], row.count));
            }
        } else {
            const std::int64_t second = found.nodes[1];
            move_node(second, row.x, step(settings.second_slowing() * counts[second], row.count));
        }
    }

    void move_node(std::int64_t node, const Row& target, double slowing) noexcept {
        if (nodes.move(node, target, slowing) && as_learned) as_learned->move(node, nodes.row(node));
    }

    void finish(const LabelledRow& row, Work& work) noexcept {
        labels.finish(row.labels, row.count);
        if (linear && !row.is_replayed) step_linear(row, work);
        if (counts_trusted() && !row.is_replayed) is_outdated = 4 * n_changed() >= static_cast<std::int64_t>(similarity_node_ids.size());
        if (!next_groups) return;
        groups = std::move(*next_groups);
        next_groups.reset();
    }

    // Return s such that a node that moves by 1 / s of its distance to a point moves as far as in `count` successive
    // moves by 1 / slowing, 1 / (slowing + 1), ... of the remaining distance.
    static double step(std::int64_t slowing, std::int64_t count) noexcept {
        return static_cast<double>(slowing + count - 1) / static_cast<double>(count);
    }

    void count(const LabelledRow& row, const TopK& found, Votes& votes) noexcept {
        labels.collect(found, votes);
        labels.count(row.labels, row.count, votes);
    }

    void prepare_decision(const LabelRow& label_row, std::int64_t n_labels, Work& work) {
        work.slots.clear();
        if (label_row.n == 0) work.slots.push_back(0);
        for (std::int64_t place = 0; place < label_row.n; ++place) work.slots.push_back(label_row.labels[place] + 1);
        std::sort(work.slots.begin(), work.slots.end());
        decision->reserve(n_labels + 1, static_cast<std::int64_t>(work.slots.size()));
        decision->reserve(work.ballot);
    }

    // Reserve memory for the steps of the linear models on the row and on the nodes to be rehearsed.
    void prepare_linear(const LabelledRow& row, const TopK& found, bool joining, Work& work) {
        const auto n_slots = decision->n_slots();
        const auto n_columns = static_cast<std::int64_t>(decision->frequencies.arrived.size() + work.slots.size()) + LinearModels::FIRST_LABEL;
        linear->reserve_columns(n_columns, n_slots);
        const bool brings_label =
            std::any_of(work.slots.begin(), work.slots.end(), [&](std::int32_t slot) { return decision->frequencies.totals[slot] == 0; });
        if (brings_label) linear->own_all();
        work.mixing.reserve(n_columns);
        if (labels.n_learned + 1 < LinearModels::FIRST_STEP) return;
        const Learned& learned = as_learned->learned();
        const bool cells = has_cells(learned, labels.n_learned + 1);
        std::int64_t n_entries = 0;
        const auto reserve = [&](const Row& x) {
            linear->reserve_features(learned, x, cells);
            n_entries += n_entries_of(learned, x);
        };
        if (counts_trusted()) return prepare_trusted(row.x, joining ? found.nodes[0] : -1, cells, work);
        reserve(row.x);
        if (joining) reserve(nodes.row(found.nodes[0]));
        const std::int64_t n_after = n_kept() + (joining || is_full() ? 0 : 1);
        for (std::int64_t q = 0; q < LinearModels::REHEARSED; ++q) {
            // Replacing a node lowers the index of each later node by one.
            const std::int64_t j = rehearsed(labels.n_learned + 1, q, n_after);
            if (j < n_kept()) reserve(nodes.row(kept_node(j)));
            if (!joining && is_full() && j + 1 < n_kept()) reserve(nodes.row(kept_node(j + 1)));
        }
        work.linear.reserve(learned, 2 * n_entries, linear->padded_columns());
    }

    // Variant of `prepare_linear` for models that rehearse only nodes of trusted segments. The row may change which
    // segments are trusted, so memory is reserved for the features of all nodes.
    void prepare_trusted(const Row& x, std::int64_t winner, bool cells, Work& work) {
        const Learned& learned = as_learned->learned();
        if (n_longest == 0) {
            for (std::int64_t k = 0; k < n_nodes; ++k) {
                linear->reserve_features(learned, nodes.row(k), cells);
                n_longest = std::max(n_longest, n_entries_of(learned, nodes.row(k)));
            }
        }
        linear->reserve_features(learned, x, cells);
        linear->own_all();
        // A node that has moved has at most its own entries, the entries of the row and the entries of the winner.
        const std::int64_t moved = 2 * n_longest + n_entries_of(learned, x);
        n_longest = std::max({n_longest, n_entries_of(learned, x),
                              winner < 0 ? 0 : std::min(moved, n_entries_of(learned, nodes.row(winner)) + n_entries_of(learned, x))});
        work.linear.reserve(learned, 2 * std::max(moved, n_longest), linear->padded_columns());
    }

    // Number of nodes that count now but did not when the similarity was computed, or the reverse.
    std::int64_t n_changed() const noexcept {
        const std::int64_t n = similarity_node_ids.size();
        std::int64_t place = 0, changed = 0;
        for_each_counted([&](std::int64_t k) {
            for (; place < n && similarity_node_ids[place] < node_ids[k]; ++place) ++changed;
            const bool same = place < n && similarity_node_ids[place] == node_ids[k];
            place += same;
            changed += !same;
        });
        return changed + n - place;
    }

    static std::int64_t rehearsed(std::int64_t n_learned, std::int64_t q, std::int64_t n) noexcept {
        return static_cast<std::int64_t>(splitmix64(8 * static_cast<std::uint64_t>(n_learned) + static_cast<std::uint64_t>(q)) % static_cast<std::uint64_t>(n));
    }
    // The q-th node to rehearse after `n_learned` rows, drawn from the nodes that count.
    std::int64_t rehearsed_node(std::int64_t n_learned, std::int64_t q) const noexcept {
        if (!counts_trusted()) return kept_node(rehearsed(n_learned, q, n_kept()));
        std::int64_t n_counted = 0, node = -1;
        for_each_counted([&](std::int64_t) { ++n_counted; });
        std::int64_t left = rehearsed(n_learned, q, n_counted);
        for_each_counted([&](std::int64_t k) {
            if (left-- == 0) node = k;
        });
        return node;
    }
    // The index of a node, given its index among the kept nodes. The loop counts up because GCC 12 miscompiles the
    // version that counts down (`number > 0 || gone[node]`), which then always returns 0.
    std::int64_t kept_node(std::int64_t number) const noexcept {
        if (n_gone == 0) return number;
        const std::uint8_t* is_gone = gone.data();
        std::int64_t node = 0;
        for (std::int64_t passed = 0; passed <= number; ++node) passed += is_gone[node] == 0;
        return node - 1;
    }

    // Find the features and scores of a row that is about to be learned.
    void list_linear_features(const LabelledRow& row, bool cells, Work& work) const noexcept {
        linear->list_features(as_learned->learned(), row.x, nullptr, cells, work.linear);
        linear->score(work.linear);
    }

    // Update the mixer from the prediction of a row whose votes `decide` has counted.
    void learn_to_mix(const LabelledRow& row, const Poll& poll, Work& work) noexcept {
        if (labels.n_learned + 1 < LinearModels::FIRST_STEP) return;
        list_linear_features(row, has_cells(as_learned->learned(), labels.n_learned), work);
        if (!decision->mixes(poll)) return;
        MixerSpace& space = work.mixing;
        decision->mix(poll, work.ballot, &as_learned->learned(), work.linear.scores.data() + LinearModels::NONE, space);
        const auto mark = [&](double truth) {
            for (const std::int32_t slot : work.slots) {
                if (slot == 0 || decision->frequencies.totals[slot] > 0) space.truth[linear->column(slot) - LinearModels::NONE] = truth;
            }
        };
        mark(1.0);
        decision->mixer->learn(space, work.slots[0] == 0 ? 0 : static_cast<std::int64_t>(work.slots.size()));
        mark(0.0);
    }

    // Train the linear models, after the rest of the model has learned the row. `prepare` must have reserved memory.
    void step_linear(const LabelledRow& row, Work& work) noexcept {
        const std::int64_t n = labels.n_learned, known = linear->n_columns();
        linear->admit(decision->frequencies.arrived);
        if (n < LinearModels::FIRST_STEP) return;
        const Learned& learned = as_learned->learned();
        const bool cells = has_cells(learned, n);
        if (cells != has_cells(learned, n - 1)) list_linear_features(row, cells, work);
        LinearSpace& space = work.linear;
        for (std::int64_t c = known; c < linear->n_columns(); ++c) LinearModels::copy_score(c, space);
        const auto decay = static_cast<float>(1.0 / static_cast<double>(n));
        const bool many = space.n * (linear->n_columns() - 1) > LinearModels::MANY;
        double* targets = space.targets.data();
        std::fill_n(targets, linear->padded_columns(), 0.0);
        for (const std::int32_t slot : work.slots) targets[linear->column(slot)] = 1.0;
        linear->step(decay, many, space);
        for (const std::int32_t slot : work.slots) targets[linear->column(slot)] = 0.0;
        for (std::int64_t q = 0; q < (many ? 1 : LinearModels::REHEARSED); ++q) {
            const std::int64_t node = rehearsed_node(n, q);
            const auto count = static_cast<double>(labels.node_counts[node]);
            labels.for_each_slot(node,
                [&](std::int64_t slot, std::int64_t rows) { targets[linear->column(slot)] = static_cast<double>(rows) / count; });
            const Row x = nodes.row(node);
            const std::int32_t* ranks = is_centred(learned) ? as_learned->node_ranks(node, x, space.features.ranks.data()) : nullptr;
            linear->list_features(learned, x, ranks, cells, space);
            linear->score_and_step(decay, many, space);
            labels.for_each_slot(node, [&](std::int64_t slot, std::int64_t) { targets[linear->column(slot)] = 0.0; });
        }
    }

    // Update the decision from the prediction of a row. `prepare` must have reserved memory.
    void decide(const LabelledRow& row, Voting& voting, Work& work) noexcept {
        const auto view = this->view();
        const Learned* learned = as_learned ? &as_learned->learned() : nullptr;
        decision->count_votes(voting.poll, work.ballot, view);
        if (linear) learn_to_mix(row, voting.poll, work);
        decision->learn(voting.poll, work.ballot, learned, view, work.slots.data(), static_cast<std::int64_t>(work.slots.size()));
    }
};

}  // namespace mlca::MLCA_LEVEL
