// Prediction with a model: probabilities of many rows, and the explanation of one row.
//
// Nothing here changes the model; the caller holds its lock for reading. Rows are compared with the nodes a few at a
// time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/lock.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"
#include "learner/interface.hpp"
#include "learner/model.hpp"
#include "learner/restore.hpp"
#include "learner/settings.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

template <class ModelOf>
class Prediction {
public:
    using Row = typename ModelOf::Row;
    using Voting = typename ModelOf::Voting;

    explicit Prediction(const Settings& settings) : work_(settings), found_(TOGETHER, TopK(settings.n_listed())) {
        for (std::int64_t j = 0; j < TOGETHER; ++j) votings_.emplace_back(settings);
    }

    // Reserve memory, and compute what all rows share. The model must not change until the last row is predicted.
    void begin(const ModelOf& model, std::int64_t n_labels) {
        const LabelMemory& labels = model.labels;
        work_.votes.reserve(labels.n_labels);
        usual_.resize(n_labels);
        if (model.decision) {
            model.decision->reserve(work_.ballot);
            grow_to(slots_, std::max(model.decision->n_slots(), labels.n_labels + 1));
            return;
        }
        const std::int64_t bin = std::min(model.settings.n_neighbors, model.n_kept()) == 1 ? model.settings.n_neighbors : 0;
        for (std::int64_t i = 0; i < n_labels; ++i) usual_[i] = labels.probability(i, bin, model.n_kept()).posterior;
    }

    // Predict up to TOGETHER rows.
    template <class Source>
    void answer(const ModelOf& model, const Source& source, std::int64_t first, std::int64_t n, std::int64_t n_labels, const Answers& answers, Stop& stop) {
        Row rows[TOGETHER];
        for (std::int64_t j = 0; j < n; ++j) rows[j] = source[first + j];
        find_voters(model, rows, n, stop);
        for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t row = first + j;
            if (model.decision) {
                decide(model, rows[j], j, row, n_labels, answers);
            } else if (answers.probabilities != nullptr) {
                apply_bayes(model, j, n_labels, answers.probabilities + row * n_labels);
            }
        }
    }

    [[gnu::cold]] Explained explain(const ModelOf& model, const Row& x) {
        Explained result;
        Stop never;
        begin(model, model.labels.n_labels);
        find_voters(model, &x, 1, never);
        if (model.decision) {
            explain_calibration(model, x, result);
        } else {
            explain_bayes(model, result);
        }
        if (model.as_learned) explain_similarity(model, x, result);
        result.n_compared = n_compared(model);
        show_nodes(model, result);
        return result;
    }

private:
    // Largest number of features listed in an explanation, and approximate number of node entries sampled as its
    // baseline. These 8 MiB are copied in a few milliseconds.
    static constexpr std::int64_t MOST_NAMED = 32, ORDINARY_ENTRIES = 1 << 20;

    // Number of nodes that the last row was compared with.
    std::int64_t n_compared(const ModelOf& model) const noexcept {
        if (!model.as_learned || !model.as_learned->cells()) return model.n_kept();
        std::int64_t n = 0;
        model.as_learned->cells()->for_each_visited(work_.space.learned.cells, [&](std::int64_t k) { n += model.n_gone == 0 || !model.gone[k]; });
        return n;
    }

    void find_voters(const ModelOf& model, const Row* rows, std::int64_t n, Stop& stop) {
        if (model.n_nodes == 0) {
            for (std::int64_t j = 0; j < n; ++j) {
                found(j).clear();
                voting(j).neighbours.clear();
                if (model.decision) model.decision->clear_voters(voting(j).poll, model.labels.node_counts);
            }
        } else if (model.settings.learned) {
            std::int64_t n_nodes[TOGETHER];
            std::fill_n(n_nodes, TOGETHER, model.n_nodes);
            model.find_voters_by_rank(rows, n_nodes, n, false, true, [&](std::int64_t q) -> Voting& { return voting(q); }, work_.space, stop);
        } else {
            // With grouped features, each row has its own groups, so rows are searched one at a time.
            const std::int64_t together = model.settings.mode == Mode::clustered ? 1 : n;
            for (std::int64_t first = 0; first < n; first += together) {
                Query<Row> queries[TOGETHER];
                for (std::int64_t j = 0; j < together; ++j) queries[j] = model.query_to_predict(rows[first + j], found(first + j), work_.grouping, work_.space);
                model.nodes.nearest(queries, together, work_.space.nodes, stop);
                for (std::int64_t j = 0; model.decision && j < together; ++j) {
                    model.find_voters_by_correntropy(queries[j], work_.grouping, false, voting(first + j), work_.space, stop);
                }
            }
        }
    }

    TopK& found(std::int64_t j) { return found_[j]; }
    Voting& voting(std::int64_t j) { return votings_[j]; }
    static const Learned* learned_of(const ModelOf& model) noexcept { return model.as_learned ? &model.as_learned->learned() : nullptr; }
    static bool has_background(const ModelOf& model) noexcept { return model.as_learned && model.as_learned->learned().has_background; }
    // Clamp a probability: `predict_proba` returns values strictly between 0 and 1.
    static double between(double p) noexcept { return std::min(std::max(p, 0x0.0000000000001p-1022), 0x1.fffffffffffffp-1); }

    // Write the probability of each slot to p, which must have room for all slots.
    void find_probabilities(const ModelOf& model, const Row& x, Poll& poll, double* p) {
        const Decision& decision = *model.decision;
        decision.count_votes(poll, work_.ballot, model.view());
        if (!decision.mixes(poll)) return decision.probabilities(poll, work_.ballot, learned_of(model), p);
        const Learned& learned = model.as_learned->learned();
        work_.linear.reserve(learned, 2 * n_entries_of(learned, x), model.linear->padded_columns());
        work_.mixing.reserve(model.linear->n_columns());
        model.linear->list_features(learned, x, nullptr, has_cells(learned, model.labels.n_learned), work_.linear);
        model.linear->score(work_.linear);
        decision.mix(poll, work_.ballot, &learned, work_.linear.scores.data() + LinearModels::NONE, work_.mixing);
        std::fill_n(p, decision.n_slots(), 0.0);
        const double* mixed = work_.mixing.probabilities.data();
        p[0] = *mixed++;
        for (const std::int32_t slot : decision.frequencies.arrived) p[slot] = *mixed++;
    }

    void decide(const ModelOf& model, const Row& x, std::int64_t j, std::int64_t row, std::int64_t n_labels, const Answers& answers) {
        const Decision& decision = *model.decision;
        Poll& poll = voting(j).poll;
        if (answers.novelty != nullptr) answers.novelty[row] = novelty_of(decision, poll);
        if (answers.none == nullptr) return;  // only the novelty was requested
        find_probabilities(model, x, poll, slots_.data());
        const std::int64_t n_known = decision.n_slots() - 1;
        double* out = answers.probabilities + row * n_labels;
        for (std::int64_t i = 0; i < n_labels; ++i) out[i] = between(i < n_known ? slots_[i + 1] : 0.0);
        const double none = n_known >= 0 ? slots_[0] : 0.0;
        answers.none[row] = none;
        answers.fallback[row] = fallback(decision, n_labels, out, none);
        answers.threshold[row] = threshold_of(decision);
    }

    static double threshold_of(const Decision& decision) noexcept { return decision.mixer ? decision.mixer->best_threshold() : 0.5; }

    // The fallback label of a row without a likely label: the most probable label seen so far; ties go to the first. -1
    // if its probability does not exceed that of having no label by the mixer's margin (a factor; 1 without a mixer).
    static std::int32_t fallback(const Decision& decision, std::int64_t n_labels, const double* p, double none) noexcept {
        std::int32_t best = -1;
        for (const std::int32_t slot : decision.frequencies.arrived) {
            if (slot <= n_labels && (best < 0 || p[slot - 1] > p[best])) best = slot - 1;
        }
        if (best < 0) return -1;
        return (decision.mixer ? Mixer::takes(p[best], none, decision.mixer->margin()) : p[best] > none) ? best : -1;
    }

    static double novelty_of(const Decision& decision, const Poll& poll) noexcept {
        return poll.nearest >= 0.0 ? decision.novelty.of(poll.nearest) : 1.0;
    }

    void apply_bayes(const ModelOf& model, std::int64_t j, std::int64_t n_labels, double* out) {
        const LabelMemory& labels = model.labels;
        Votes& votes = work_.votes;
        std::copy(usual_.begin(), usual_.end(), out);
        labels.collect(neighbours(model, j), votes);
        for (std::size_t v = 0; v < votes.n_voted; ++v) {
            const std::int32_t label = votes.voted[v];
            if (label >= n_labels) continue;
            const std::int64_t bin = labels.bin(votes.share[label], votes);
            out[label] = labels.probability(label, bin, model.n_kept()).posterior;
        }
        votes.clear();
        if (!has_background(model)) return;
        for (std::int64_t i = 0; i < n_labels; ++i) out[i] = blended(out[i], background(model, j, i + 1));
    }

    const TopK& neighbours(const ModelOf& model, std::int64_t j) { return model.settings.learned ? voting(j).neighbours : found(j); }

    // The background's probability of a slot, for models with Bayes' rule, which keep label totals in the label memory.
    double background(const ModelOf& model, std::int64_t j, std::int64_t slot) {
        const auto rows = static_cast<double>(model.labels.n_learned);
        const double prior = static_cast<double>(model.labels.totals[slot - 1] + 1) / (rows + 2.0);
        return model.as_learned->learned().background.probability(voting(j).poll.scores.data(), slot, prior);
    }
    static double blended(double p, double background) noexcept { return between(0.9 * p + 0.1 * background); }

    [[gnu::cold]] void name_node(const ModelOf& model, std::int64_t node, double distance, Explained& result) {
        const LabelMemory& labels = model.labels;
        const std::size_t start = result.label_counts.size();
        explained_.push_back(node);
        result.nodes.push_back(model.number_of(node));
        result.distances.push_back(distance);
        result.node_counts.push_back(labels.node_counts[node]);
        result.unlabelled.push_back(labels.unlabelled[node]);
        result.label_counts.resize(start + static_cast<std::size_t>(labels.n_labels), 0);
        const auto& label_counts = labels.at_nodes[node];
        for (std::int32_t place = 0; place < label_counts.length; ++place) result.label_counts[start + static_cast<std::size_t>(label_counts.keys[place])] = label_counts.values[place];
    }

    [[gnu::cold]] void explain_bayes(const ModelOf& model, Explained& result) {
        const LabelMemory& labels = model.labels;
        const TopK& near = neighbours(model, 0);
        const Ruler ruler = model.as_learned ? ruler_of(model.as_learned->learned()) : model.correntropy_ruler(work_.grouping);
        for (std::int64_t j = 0; j < near.size(); ++j) name_node(model, near.nodes[j], ruler.distance(near.sums[j]), result);
        labels.collect(near, work_.votes);
        for (std::int64_t i = 0; i < labels.n_labels; ++i) {
            const double share = work_.votes.share[i];
            const std::int64_t bin = labels.bin(share, work_.votes);
            const auto p = labels.probability(i, bin, model.n_kept());
            result.votes.push_back(share);
            result.bins.push_back(bin);
            result.prior.push_back(p.prior);
            result.likelihood_with.push_back(p.likelihood_with);
            result.likelihood_without.push_back(p.likelihood_without);
            result.posterior.push_back(has_background(model) ? blended(p.posterior, background(model, 0, i + 1)) : p.posterior);
            if (has_background(model)) result.background.push_back(background(model, 0, i + 1));
        }
        work_.votes.clear();
    }

    [[gnu::cold]] void explain_calibration(const ModelOf& model, const Row& x, Explained& result) {
        const Decision& decision = *model.decision;
        Poll& poll = voting(0).poll;
        // Labels that no row has had keep a probability of 0.
        const auto n_slots = static_cast<std::size_t>(model.labels.n_labels) + 1;
        result.probabilities.assign(std::max(n_slots, static_cast<std::size_t>(decision.n_slots())), 0.0);
        find_probabilities(model, x, poll, result.probabilities.data());
        result.probabilities.resize(n_slots);
        const Voters& voters = poll.voters[0];
        for (std::int64_t j = 0; j < voters.size(); ++j) {
            name_node(model, voters.node(j), voters.distance(j), result);
            result.weights.push_back(voters.weight(j));
        }
        result.far = voters.far();
        result.novelty = novelty_of(decision, poll);
        Array<double> p;
        for (std::size_t slot = 1; slot < n_slots; ++slot) p.push_back(between(result.probabilities[slot]));
        result.fallback = fallback(decision, model.labels.n_labels, p.data(), result.probabilities[0]);
        result.threshold = threshold_of(decision);
        const std::int64_t n_experts = decision.pool ? decision.pool->n_experts : 1;
        for (auto* numbers : {&result.shares, &result.calibrated, &result.frequencies}) numbers->assign(n_slots, 0.0);
        if (has_background(model)) result.background.assign(n_slots, 0.0);
        result.opinions.assign(n_slots * static_cast<std::size_t>(n_experts), 0.0);
        explain_slot(model, 0, n_experts, result);
        for (const std::int32_t slot : decision.frequencies.arrived) explain_slot(model, static_cast<std::size_t>(slot), n_experts, result);
        if (decision.mixes(poll)) explain_mixing(model, n_slots, result);
        if (decision.pool) result.expert_weights.assign(decision.pool->weights, decision.pool->weights + n_experts);
        result.trust = decision.segments.trust;
    }

    // Add the contributions of the mixer and the linear models to an explanation; call after `find_probabilities`.
    [[gnu::cold]] void explain_mixing(const ModelOf& model, std::size_t n_slots, Explained& result) const {
        const Mixer& mixer = *model.decision->mixer;
        const LinearSpace& space = work_.linear;
        const auto n_inputs = static_cast<std::size_t>(mixer.n_inputs), n_terms = static_cast<std::size_t>(space.n) + 1;
        result.mixer_weights.assign(mixer.weights, mixer.weights + n_inputs);
        result.inputs.assign(n_slots * n_inputs, 0.0);
        result.terms.assign(n_terms * n_slots, 0.0);
        for (std::size_t t = 0; t < n_terms; ++t) {
            const FeatureKey key = t == 0 ? FeatureKey{} : model.linear->key(space.rows[t - 1]);
            result.term_features.push_back(key.feature);
            result.term_kinds.push_back(key.kind);
        }
        const auto explain = [&](std::size_t slot, std::size_t k) {
            for (std::size_t i = 0; i < n_inputs; ++i) result.inputs[slot * n_inputs + i] = work_.mixing.inputs[i][k];
            for (std::size_t t = 0; t < n_terms; ++t) {
                const std::int64_t row = t == 0 ? 0 : space.rows[t - 1];
                result.terms[t * n_slots + slot] = LinearModels::term(t == 0 ? 1.0 : space.values[t - 1], model.linear->weight(row, model.linear->column(static_cast<std::int64_t>(slot))));
            }
        };
        explain(0, 0);
        for (std::size_t k = 1; k < static_cast<std::size_t>(work_.mixing.n); ++k) explain(static_cast<std::size_t>(model.decision->frequencies.arrived[k - 1]), k);
    }

    [[gnu::cold]] void explain_slot(const ModelOf& model, std::size_t place, std::int64_t n_experts, Explained& result) {
        const Decision& decision = *model.decision;
        const Poll& poll = voting(0).poll;
        const auto slot = static_cast<std::int64_t>(place);
        double of_experts[Pool::MOST_EXPERTS];
        result.shares[place] = work_.ballot.shares[0][slot];
        result.calibrated[place] = decision.calibrations[0].fraction_at(slot, result.shares[place]);
        result.frequencies[place] = decision.frequencies.rows > 0 ? decision.frequencies.share(slot) : 0.0;
        if (has_background(model)) {
            result.background[place] = learned_of(model)->background.probability(poll.scores.data(), slot, decision.frequencies.prior(slot));
        }
        decision.opinions(poll, work_.ballot, learned_of(model), slot, of_experts);
        std::copy_n(of_experts, n_experts, result.opinions.begin() + slot * n_experts);
    }

    // Add the features in which the voters and the row agree most. A feature's agreement with a node is its weight
    // minus its term, as a share of the total weight; it is averaged over the voters, weighted by their votes.
    [[gnu::cold]] void explain_similarity(const ModelOf& model, const Row& x, Explained& result) const {
        const Learned& learned = model.as_learned->learned();
        Array<double> agreement(learned.n_features(), 0.0);
        struct Part {
            std::int64_t feature;
            double alike;
        };
        Array<Part> parts;
        double together = 0.0;
        for (std::size_t v = 0; v < explained_.size(); ++v) {
            const double weight = result.weights.empty() ? 1.0 : result.weights[v];
            double below = 0.0;
            parts.clear();
            model.as_learned->for_each_term(x, model.nodes.row(explained_[v]), [&](std::int64_t j, std::int64_t term, std::int64_t most) {
                below += static_cast<double>(most);
                parts.push_back({j, static_cast<double>(most - term)});
            });
            for (const Part& part : parts) agreement[part.feature] += weight * part.alike / below;
            together += weight;
        }
        Array<std::int64_t> order;
        for (std::int64_t j = 0; j < learned.n_features(); ++j) {
            if (agreement[j] > 0.0) order.push_back(j);
        }
        const auto n = std::min<std::ptrdiff_t>(MOST_NAMED, static_cast<std::ptrdiff_t>(order.size()));
        std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](std::int64_t a, std::int64_t b) {
            return agreement[a] > agreement[b] || (agreement[a] == agreement[b] && a < b);
        });
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            result.agreeing.push_back(order[i]);
            result.agreement.push_back(agreement[order[i]] / together);
        }
    }

    [[gnu::cold]] void show_nodes(const ModelOf& model, Explained& result) const {
        const auto append = [&](StateRows& rows, std::int64_t node) { RowsOfState<Row>::append(rows, model.nodes.row(node), model.settings.n_features); };
        for (const std::int64_t node : explained_) append(result.voters, node);
        const std::int64_t step = model.nodes.n_entries(model.n_nodes) / ORDINARY_ENTRIES + 1;
        for (std::int64_t node = 0; node < model.n_nodes; node += step) {
            if (model.n_gone == 0 || !model.gone[node]) append(result.ordinary, node);
        }
    }

    typename ModelOf::Work work_;
    Array<std::int64_t> explained_;  // the voters of the explained row
    std::vector<TopK> found_;
    std::vector<Voting> votings_;
    Array<double> usual_;  // with Bayes' rule: the probabilities of labels without votes
    Array<double> slots_;  // with calibration: the probabilities of all slots for one row
};

// Predicts many rows, with as many threads as pay off. Threads work in time slices, between which the learner may
// change the model. The constructor's arguments must outlive the object.
template <class ModelHere>
class BatchPredictor {
public:
    using Source = typename ModelHere::Nodes::Window::Source;

    BatchPredictor(const ModelHere& model, const Settings& settings, Lock& lock) : model_(model), settings_(settings), lock_(lock) {}

    // Predict the first n rows.
    void answer(const Source& source, std::int64_t n, std::int64_t n_labels, std::int64_t n_jobs, Stop& stop, const Answers& answers) {
        // The time taken by the first rows determines how many threads to use for the rest.
        const std::int64_t alone = n_jobs > 1 ? std::min(TOGETHER, n) : 0;
        const auto begun = Stop::Clock::now();
        std::atomic<std::int64_t> first{0}, next{alone};
        if (alone > 0) answer_some(source, first, alone, n_labels, stop, answers);
        const auto worth = alone > 0 ? (Stop::Clock::now() - begun) * (n - alone) / alone / WORTH_A_THREAD : 1;
        Team team(std::clamp<std::int64_t>(worth, 1, std::max<std::int64_t>(n_jobs, 1)));
        team.run([&](std::int64_t) {
            try {
                answer_some(source, next, n, n_labels, stop, answers);
            } catch (...) {
                stop.request();
                throw;
            }
        });
    }

private:
    // How long one slice of a prediction may delay the learner and the readers that wait behind it.
    static constexpr std::chrono::milliseconds SLICE{10};
    // Least time of work for which starting a thread pays off.
    static constexpr std::chrono::microseconds WORTH_A_THREAD{200};

    // Predict the next rows up to `end`, sharing them with other threads.
    void answer_some(const Source& source, std::atomic<std::int64_t>& next, std::int64_t end, std::int64_t n_labels, Stop& stop, const Answers& answers) {
        auto prediction = idle_.borrow([this] { return std::make_unique<Prediction<ModelHere>>(settings_); });
        Stop never;  // interrupts are checked only between slices, when nothing is locked
        std::int64_t first = next.fetch_add(TOGETHER, std::memory_order_relaxed);
        while (first < end) {
            stop.check();
            const std::shared_lock<Lock> guard(lock_);
            prediction->begin(model_, n_labels);
            const auto begun = Stop::Clock::now();
            do {
                prediction->answer(model_, source, first, std::min(TOGETHER, end - first), n_labels, answers, never);
                first = next.fetch_add(TOGETHER, std::memory_order_relaxed);
            } while (first < end && Stop::Clock::now() - begun < SLICE);
        }
        idle_.give_back(std::move(prediction));
    }

    const ModelHere& model_;
    const Settings& settings_;
    Lock& lock_;
    ObjectPool<Prediction<ModelHere>> idle_;
};

}  // namespace mlca::MLCA_LEVEL
