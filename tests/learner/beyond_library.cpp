// The headers of the learned similarity and the calibrated decision behind plain C functions, for the tests alone: nodes are
// what Python says, every node is compared with every row.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decision.hpp"
#include "learned_lists.hpp"
#include "weighing.hpp"

using namespace mlca::MLCA_LEVEL;

namespace {

struct Nodes {
    std::int64_t d = 0, slots = 1;
    bool is_sparse = false;
    std::vector<std::vector<std::int32_t>> keys;
    std::vector<std::vector<double>> values;  // of the keys, or of all attributes
    std::vector<std::int64_t> counts;
    std::vector<std::map<std::int32_t, std::int64_t>> labels;

    std::int64_t n_nodes() const { return static_cast<std::int64_t>(counts.size()); }
    std::int64_t n_attributes() const { return d; }
    std::int64_t n_slots() const { return slots; }
    std::int64_t count(std::int64_t k) const { return counts[k]; }
    template <class F>
    void for_each_entry(std::int64_t k, std::int64_t low, std::int64_t high, F f) const {
        if (!is_sparse) {
            for (std::int64_t j = low; j < high; ++j) f(j, values[k][j]);
            return;
        }
        for (std::size_t p = 0; p < keys[k].size(); ++p) {
            if (keys[k][p] >= low && keys[k][p] < high) f(keys[k][p], values[k][p]);
        }
    }
    template <class F>
    void for_each_label(std::int64_t k, F f) const {
        for (const auto& [slot, rows] : labels[k]) f(slot, rows);
    }

    // Entries of a sparse node come in no particular order.
    void set(std::int64_t k, const double* weights) {
        values[k].clear();
        keys[k].clear();
        for (std::int64_t i = 0; i < d; ++i) {
            const std::int64_t j = k % 2 ? i : d - 1 - i;
            if (!is_sparse) {
                values[k].push_back(weights[i]);
            } else if (weights[j] != 0.0) {
                keys[k].push_back(static_cast<std::int32_t>(j));
                values[k].push_back(weights[j]);
            }
        }
    }
};

struct Whole {
    Nodes nodes;
    Decision decision;
    std::unique_ptr<Learned> learned;
    Ballot ballot;
    SparseProbe::Space space;
    std::unique_ptr<LearnedLists> lists;
    LearnedLists::Space corrections;

    Whole(std::int64_t d, bool is_sparse, bool recency, bool drift) : decision(recency, drift) {
        nodes.d = d;
        nodes.is_sparse = is_sparse;
    }

    std::vector<std::int32_t> ranks_of(const std::vector<std::int32_t>& keys, const std::vector<double>& values) const {
        std::vector<std::int32_t> ranks;
        for (std::size_t p = 0; p < values.size(); ++p) ranks.push_back(learned->ranks(nodes.is_sparse ? keys[p] : static_cast<std::int64_t>(p), values[p]));
        return ranks;
    }

    void keys_of(const double* x, std::int64_t* result) {
        std::vector<std::int32_t> own_keys;
        std::vector<double> own;
        for (std::int64_t j = 0; j < nodes.d; ++j) {
            if (nodes.is_sparse && x[j] == 0.0) continue;
            own_keys.push_back(static_cast<std::int32_t>(j));
            own.push_back(x[j]);
        }
        ballot.scores.resize(static_cast<std::size_t>(learned->background.n_slots()));
        learned->background.begin(ballot.scores.data());
        const auto ranks = ranks_of(own_keys, own);
        for (std::size_t p = 0; p < own.size(); ++p) learned->background.add(ballot.scores.data(), own_keys[p], ranks[p]);
        space.reserve(nodes.d);
        const SparseProbe probe(*learned, own_keys.data(), own.data(), nodes.is_sparse ? static_cast<std::int64_t>(own.size()) : 0, space);
        if (nodes.is_sparse) lists->correct(*learned, own_keys.data(), own.data(), static_cast<std::int64_t>(own.size()), nodes.n_nodes(), corrections);
        for (std::int64_t k = 0; k < nodes.n_nodes(); ++k) {
            const auto node = ranks_of(nodes.keys[k], nodes.values[k]);
            const Parts parts = nodes.is_sparse ? probe.parts(nodes.keys[k].data(), node.data(), static_cast<std::int64_t>(node.size()))
                                        : learned->dense_parts(x, ranks.data(), nodes.values[k].data(), node.data());
            result[k] = parts.key();
            if (nodes.is_sparse && lists->lists(k)) {
                const Parts listed = lists->parts(*learned, probe.alone(), k, corrections);
                if (listed.above != parts.above || listed.below != parts.below) result[k] = -1;
            }
            if (static_cast<double>(parts.above) > Parts::most_above(result[k], parts.below)) result[k] = -1;
        }
    }

    // Offer the nodes in an order that has nothing to do with their age, and only those within the limit.
    void ask(const std::int64_t* keys, const Ruler& ruler, std::int64_t n_slots) {
        const std::int64_t n = nodes.n_nodes();  // less than the prime below
        decision.reserve(n_slots, n_slots);
        nodes.slots = std::max(nodes.slots, n_slots);
        decision.begin(ballot, ruler, nodes.counts.data(), n);
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t k = i * 7919 % n;
            if (keys[k] <= decision.limit(ballot, k)) decision.offer(ballot, keys[k], k);
        }
        decision.count_votes(ballot, nodes);
    }
};

template <class T>
std::int64_t copy_out(const T* from, std::size_t n, void* to) {
    if (to != nullptr) std::memcpy(to, from, n * sizeof(T));
    return static_cast<std::int64_t>(n);
}

}  // namespace

extern "C" {

double power_of_half_of(double w) { return power_of_half(w); }
double ln_of(double x) { return ln(x); }
double shifted_of(double o, double z) { return shifted(o, z); }

Whole* create(std::int64_t d, int is_sparse, int recency, int drift) { return new Whole(d, is_sparse, recency, drift); }
void destroy(Whole* whole) { delete whole; }

void set_node(Whole* whole, std::int64_t k, const double* weights) {
    Nodes& nodes = whole->nodes;
    if (k == nodes.n_nodes()) {
        nodes.keys.emplace_back();
        nodes.values.emplace_back();
        nodes.counts.push_back(0);
        nodes.labels.emplace_back();
    }
    const bool is_new = nodes.counts[k] == 0;
    nodes.set(k, weights);
    if (!nodes.is_sparse || !whole->lists) return;
    if (!is_new) return whole->lists->leave(k);
    const auto n = static_cast<std::int64_t>(nodes.keys[k].size());
    whole->lists->reserve(nodes.keys[k].data(), n);
    whole->lists->enter(*whole->learned, nodes.keys[k].data(), nodes.values[k].data(), n);
}

// A row has fallen on a node, which is new if no row had.
void place(Whole* whole, std::int64_t k, const std::int32_t* own, std::int64_t n_own) {
    Nodes& nodes = whole->nodes;
    whole->decision.place(k, nodes.counts[k] == 0, nodes.n_nodes(), own, n_own);
    ++nodes.counts[k];
    for (std::int64_t i = 0; i < n_own; ++i) ++nodes.labels[k][own[i]];
}

std::int64_t far_of(const Whole* whole) { return whole->learned->far; }

// Returns whether the ranks that come with the similarity are its own.
int recompute(Whole* whole) {
    Weighing weighing(whole->nodes);
    whole->learned = std::make_unique<Learned>(weighing.learned());
    whole->lists = std::make_unique<LearnedLists>(whole->nodes, *whole->learned);
    const Nodes& nodes = whole->nodes;
    for (std::int64_t k = 0; k < nodes.n_nodes(); ++k) {
        const auto expected = whole->ranks_of(nodes.keys[k], nodes.values[k]);
        std::vector<std::int32_t> ranks(expected.size());
        if (nodes.is_sparse) {
            weighing.ranked().list(k, nodes.keys[k].data(), static_cast<std::int64_t>(ranks.size()), ranks.data());
        } else {
            weighing.ranked().unfold(k, ranks.data());
        }
        if (ranks != expected) return 0;
    }
    return 1;
}

// Go on with a similarity and a decision that were put together from the state of others; tell whether they are sound.
int restore(Whole* whole) {
    const Learned& old = *whole->learned;
    auto learned = std::make_unique<Learned>();
    learned->ranks.n_knots = old.ranks.n_knots;
    learned->ranks.starts = old.ranks.starts;
    learned->ranks.knots = old.ranks.knots;
    learned->ranks.up_to = old.ranks.up_to;
    learned->sparse = old.sparse;
    learned->has_background = old.has_background;
    learned->weights = old.weights;
    learned->background.starts = old.background.starts;
    learned->background.attributes = old.background.attributes;
    learned->background.coefficients = old.background.coefficients;
    learned->background.centres = old.background.centres;
    learned->background.deviations = old.background.deviations;
    if (!learned->is_sound(whole->nodes.d)) return 0;
    learned->restore();
    whole->learned = std::move(learned);
    const Decision& was = whole->decision;
    Decision decision(was.recency.has_value(), was.n_electorates > 1);
    decision.reserve(was.n_slots(), 0);
    decision.frequencies.rows = was.frequencies.rows;
    decision.frequencies.totals = was.frequencies.totals;
    decision.frequencies.arrived = was.frequencies.arrived;
    std::copy_n(was.novelty.rows, Novelty::N_BINS, decision.novelty.rows);
    for (std::int64_t e = 0; e < was.n_electorates; ++e) {
        decision.calibrations[e].rows = was.calibrations[e].rows;
        decision.calibrations[e].total = was.calibrations[e].total;
        decision.calibrations[e].present = was.calibrations[e].present;
    }
    if (was.recency) {
        std::copy_n(was.recency->rows, Recency::N_LIVES, decision.recency->rows);
        decision.recency->counts = was.recency->counts;
    }
    if (was.pool) {
        std::copy_n(was.pool->log_weights, was.pool->n_experts, decision.pool->log_weights);
        decision.pool->refresh();
    }
    if (was.n_electorates > 1) {
        decision.segments.n = was.segments.n;
        std::copy_n(was.segments.first, was.segments.n, decision.segments.first);
        std::copy_n(was.segments.parts, was.segments.n, decision.segments.parts);
        std::copy_n(was.segments.trust, was.segments.n, decision.segments.trust);
        for (std::int64_t k = Fading::oldest(whole->nodes.n_nodes()); k < whole->nodes.n_nodes(); ++k) {
            std::vector<std::int32_t> slots;
            std::vector<double> faded;
            was.fading.for_each_label(k, [&](std::int32_t slot, double rows) {
                slots.push_back(slot);
                faded.push_back(rows);
            });
            decision.fading.put(k, was.fading.count(k), slots.data(), faded.data(), static_cast<std::int64_t>(slots.size()));
        }
    }
    if (!decision.is_sound(was.n_slots(), whole->nodes.n_nodes())) return 0;
    whole->decision = std::move(decision);
    return 1;
}

void keys_of(Whole* whole, const double* x, std::int64_t* keys) {
    if (whole->nodes.n_nodes() > 0) whole->keys_of(x, keys);
}

// What nodes stand for, whatever rows there were.
void set_counts(Whole* whole, std::int64_t k, std::int64_t count, const std::int32_t* slots, const std::int64_t* rows, std::int64_t n) {
    whole->nodes.counts[k] = count;
    for (std::int64_t i = 0; i < n; ++i) whole->nodes.labels[k][slots[i]] = rows[i];
}

// Ask the nodes about a row, and make room to learn it. Returns whether there was memory.
int ask(std::int64_t granted, Whole* whole, const std::int64_t* keys, double unit, std::int64_t far, int squared, std::int64_t n_slots) {
    allocations_left = granted;
    try {
        whole->ask(keys, {unit, far, squared != 0}, n_slots);
    } catch (const std::bad_alloc&) {
        return 0;
    }
    allocations_left = -1;
    return 1;
}

double probabilities(Whole* whole, double* p) {
    whole->decision.probabilities(whole->ballot, whole->learned.get(), p);
    return whole->ballot.voters[0].size() > 0 ? whole->decision.novelty.of(whole->ballot.voters[0].distance(0)) : -1.0;
}

std::int64_t choose_of(Whole* whole, const double* p, std::int32_t* chosen) { return choose(p, whole->decision.frequencies, chosen); }

void learn(Whole* whole, const std::int32_t* own, std::int64_t n_own) {
    whole->decision.learn(whole->ballot, whole->learned.get(), whole->nodes, own, n_own);
}

// Copy out an array of the state; return its length.
std::int64_t array_of(const Whole* whole, const char* name, void* to) {
    const Decision& decision = whole->decision;
    const std::string wanted(name);
    const auto vector = [&](const auto& array) { return copy_out(array.data(), array.size(), to); };
    if (wanted == "totals") return vector(decision.frequencies.totals);
    if (wanted == "arrived") return vector(decision.frequencies.arrived);
    if (wanted == "novelty") return copy_out(decision.novelty.rows, Novelty::N_BINS, to);
    for (std::int64_t e = 0; e < decision.n_electorates; ++e) {
        if (wanted == "total" + std::to_string(e)) return vector(decision.calibrations[e].total);
        if (wanted == "present" + std::to_string(e)) return vector(decision.calibrations[e].present);
    }
    if (wanted == "log_weights" && decision.pool) return copy_out(decision.pool->log_weights, decision.pool->n_experts, to);
    if (wanted == "recent" && decision.recency) return vector(decision.recency->counts);
    if (wanted == "trust") return copy_out(decision.segments.trust, decision.segments.n, to);
    if (!whole->learned) return 0;
    const Learned& learned = *whole->learned;
    if (wanted == "weights") return vector(learned.weights);
    if (wanted == "starts") return vector(learned.background.starts);
    if (wanted == "attributes") return vector(learned.background.attributes);
    if (wanted == "coefficients") return vector(learned.background.coefficients);
    if (wanted == "centres") return vector(learned.background.centres);
    if (wanted == "deviations") return vector(learned.background.deviations);
    return 0;
}
}
