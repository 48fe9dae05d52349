// Conversion of a learner's state to named NumPy arrays and back (see mlca.learner.checking).
//
// Only lengths that do not follow from others are checked here; `is_sound` checks whether the numbers are valid.
#pragma once

#include "bindings/bindings.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "learner/state.hpp"

namespace mlca::MLCA_LEVEL {

namespace nb = nanobind;

template <class T, int dimensions>
using In = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// A NumPy array that takes over the contents of a vector.
template <class T>
nb::object to_numpy(Array<T> values, std::initializer_list<std::size_t> shape) {
    auto* kept = new Array<T>(std::move(values));
    const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<Array<T>*>(memory); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.begin(), owner));
}
template <class T>
nb::object to_numpy(Array<T> values) {
    const std::size_t n = values.size();
    return to_numpy(std::move(values), {n});
}

template <class T>
Array<T> from_numpy(const nb::dict& arrays, const char* name) {
    const auto array = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(arrays[name]);
    std::optional<nb::gil_scoped_release> released;
    if (array.size() >> 16) released.emplace();
    return Array<T>(array.data(), array.data() + array.size());
}

// Copy an array of exactly n numbers.
template <class T>
void fill_from(const nb::dict& arrays, const char* name, T* out, std::int64_t n) {
    const Array<T> values = from_numpy<T>(arrays, name);
    if (static_cast<std::int64_t>(values.size()) != n) throw std::invalid_argument("array '" + std::string(name) + "' has another length");
    std::copy(values.begin(), values.end(), out);
}

// similarity.tally: due, number of knots, sparse, has_background, and whether there is a similarity at all.
inline void put_similarity(nb::dict& result, const State& state, bool mixes) {
    const Learned learned = state.learned.value_or(Learned());
    result["similarity.tally"] = to_numpy(Array<std::int64_t>{state.similarity_due, learned.ranks.n_knots, learned.sparse, learned.has_background,
                                                              state.learned.has_value()});
    result["similarity.weights"] = to_numpy(learned.weights);
    result["similarity.knots"] = to_numpy(learned.ranks.knots);
    result["similarity.knot_starts"] = to_numpy(learned.ranks.starts);
    result["similarity.knot_counts"] = to_numpy(learned.ranks.up_to);
    result["background.indptr"] = to_numpy(learned.background.starts);
    result["background.indices"] = to_numpy(learned.background.features);
    result["background.data"] = to_numpy(learned.background.coefficients);
    result["background.means"] = to_numpy(learned.background.means);
    result["similarity.trait_attributes"] = to_numpy(learned.traits.features);
    result["similarity.trait_values"] = to_numpy(learned.traits.values);
    result["background.centres"] = to_numpy(learned.background.centres);
    result["background.deviations"] = to_numpy(learned.background.deviations);
    if (mixes) result["similarity.middles"] = to_numpy(learned.middles);
}

inline void take_similarity(const nb::dict& arrays, State& state, bool mixes) {
    std::int64_t tally[5];
    fill_from(arrays, "similarity.tally", tally, 5);
    state.similarity_due = tally[0];
    if (tally[4] == 0) return;
    Learned learned;
    learned.ranks.n_knots = tally[1];
    learned.sparse = tally[2] != 0;
    learned.has_background = tally[3] != 0;
    learned.weights = from_numpy<std::int64_t>(arrays, "similarity.weights");
    learned.ranks.knots = from_numpy<double>(arrays, "similarity.knots");
    learned.ranks.starts = from_numpy<std::int64_t>(arrays, "similarity.knot_starts");
    learned.ranks.up_to = from_numpy<std::uint8_t>(arrays, "similarity.knot_counts");
    learned.background.starts = from_numpy<std::int64_t>(arrays, "background.indptr");
    learned.background.features = from_numpy<std::int32_t>(arrays, "background.indices");
    learned.background.coefficients = from_numpy<std::int32_t>(arrays, "background.data");
    learned.background.means = from_numpy<std::int64_t>(arrays, "background.means");
    learned.traits.features = from_numpy<std::int32_t>(arrays, "similarity.trait_attributes");
    learned.traits.values = from_numpy<double>(arrays, "similarity.trait_values");
    learned.background.centres = from_numpy<std::int64_t>(arrays, "background.centres");
    learned.background.deviations = from_numpy<double>(arrays, "background.deviations");
    if (mixes) learned.middles = from_numpy<double>(arrays, "similarity.middles");
    state.learned = std::move(learned);
}

inline void put_mixer(nb::dict& result, const Mixer& mixer) {
    const auto n = static_cast<std::size_t>(mixer.n_inputs);
    Array<double> curvature;
    for (std::size_t i = 0; i < n; ++i) curvature.insert(curvature.end(), mixer.curvature[i], mixer.curvature[i] + n);
    result["mixer.weights"] = to_numpy(Array<double>(mixer.weights, mixer.weights + n));
    result["mixer.curvature"] = to_numpy(std::move(curvature), {n, n});
    result["mixer.hits"] = to_numpy(Array<std::int64_t>(mixer.hits, mixer.hits + Mixer::N_MARGINS));
    result["mixer.f1"] = to_numpy(Array<std::int64_t>(mixer.f1, mixer.f1 + Mixer::N_THRESHOLDS));
}

inline void take_mixer(const nb::dict& arrays, Mixer& mixer) {
    const std::int64_t n = mixer.n_inputs;
    double curvature[Mixer::MOST_INPUTS * Mixer::MOST_INPUTS];
    fill_from(arrays, "mixer.curvature", curvature, n * n);
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(curvature + i * n, n, mixer.curvature[i]);
    fill_from(arrays, "mixer.weights", mixer.weights, n);
    fill_from(arrays, "mixer.hits", mixer.hits, Mixer::N_MARGINS);
    fill_from(arrays, "mixer.f1", mixer.f1, Mixer::N_THRESHOLDS);
}

// One row per feature: its key, and the weights and sums of squared gradients of "unseen", "none" and the labels seen so far.
inline void put_linear(nb::dict& result, LinearState state) {
    const std::size_t n = state.features.size(), n_columns = static_cast<std::size_t>(state.n_columns);
    result["linear.features"] = to_numpy(std::move(state.features));
    result["linear.kinds"] = to_numpy(std::move(state.kinds));
    result["linear.values"] = to_numpy(std::move(state.values));
    result["linear.weights"] = to_numpy(std::move(state.weights), {n, n_columns});
    result["linear.squares"] = to_numpy(std::move(state.squares), {n, n_columns});
}

inline LinearState linear_from(const nb::dict& arrays, std::int64_t n_columns) {
    LinearState state;
    state.n_columns = n_columns;
    state.features = from_numpy<std::int32_t>(arrays, "linear.features");
    state.kinds = from_numpy<std::uint8_t>(arrays, "linear.kinds");
    state.values = from_numpy<double>(arrays, "linear.values");
    state.weights = from_numpy<float>(arrays, "linear.weights");
    state.squares = from_numpy<float>(arrays, "linear.squares");
    return state;
}

inline void put_decision(nb::dict& result, const Decision& decision) {
    const auto n_slots = static_cast<std::size_t>(decision.n_slots()), n_electorates = static_cast<std::size_t>(decision.n_electorates);
    constexpr auto width = static_cast<std::size_t>(Calibration::WIDTH_OF_SLOT);
    Array<std::int64_t> total, present;
    for (std::size_t e = 0; e < n_electorates; ++e) {
        const Calibration& calibration = decision.calibrations[e];
        total.insert(total.end(), calibration.total.begin(), calibration.total.end());
        present.insert(present.end(), calibration.present.begin(), calibration.present.end());
    }
    result["decision.totals"] = to_numpy(decision.frequencies.totals);
    result["decision.arrived"] = to_numpy(decision.frequencies.arrived);
    result["decision.shares"] = to_numpy(std::move(total), {n_electorates, n_slots, width});
    result["decision.shares_with"] = to_numpy(std::move(present), {n_electorates, n_slots, width});
    result["decision.novelty"] = to_numpy(Array<std::int64_t>(decision.novelty.rows, decision.novelty.rows + Novelty::N_BINS));
    if (decision.pool)
        result["decision.experts"] = to_numpy(Array<double>(decision.pool->log_weights, decision.pool->log_weights + decision.pool->n_experts));
    if (decision.mixer) put_mixer(result, *decision.mixer);
    if (decision.recency) {
        result["recency.rows"] = to_numpy(Array<double>(decision.recency->rows, decision.recency->rows + Recency::N_LIVES));
        result["recency.counts"] = to_numpy(decision.recency->counts, {n_slots, static_cast<std::size_t>(Recency::N_LIVES)});
    }
    if (decision.persistence) {
        result["persistence.rows"] = to_numpy(Array<std::int64_t>{decision.persistence->rows});
        result["persistence.counts"] = to_numpy(decision.persistence->counts, {n_slots, static_cast<std::size_t>(Persistence::N_COUNTS)});
        result["persistence.last"] = to_numpy(decision.persistence->last);
    }
}

// The first of n_nodes nodes that has fading counts.
inline std::int64_t oldest_faded(const NodeIds& node_ids, std::int64_t n_nodes) {
    const std::int64_t n_made = node_ids.made(n_nodes);
    return node_ids.places({Fading::oldest(n_made), n_made}, n_nodes).low;
}

// Segments, and fading counts of the last of n_nodes nodes.
inline void put_drift(nb::dict& result, const Decision& decision, const NodeIds& node_ids, std::int64_t n_nodes) {
    if (!decision.follows) return;
    result["drift.first"] = to_numpy(decision.segments.first);
    result["drift.parts"] = to_numpy(decision.segments.parts);
    result["drift.trust"] = to_numpy(decision.segments.trust);
    if (decision.n_electorates == 1) return;
    Array<double> counts;
    Csr<double> rows;
    for (std::int64_t k = oldest_faded(node_ids, n_nodes); k < n_nodes; ++k) {
        counts.push_back(decision.fading.count(node_ids[k]));
        Array<std::int32_t> slots;
        Array<double> faded;
        decision.fading.for_each_label(node_ids[k], [&](std::int32_t slot, double row) {
            slots.push_back(slot);
            faded.push_back(row);
        });
        rows.append(slots.data(), faded.data(), static_cast<std::int64_t>(slots.size()));
    }
    result["fading.counts"] = to_numpy(std::move(counts));
    result["fading.indptr"] = to_numpy(std::move(rows.indptr));
    result["fading.indices"] = to_numpy(std::move(rows.indices));
    result["fading.data"] = to_numpy(std::move(rows.data));
}

inline void take_drift(const nb::dict& arrays, Decision& decision, const NodeIds& node_ids, std::int64_t n_nodes) {
    decision.segments.first = from_numpy<std::int64_t>(arrays, "drift.first");
    decision.segments.parts = from_numpy<std::int64_t>(arrays, "drift.parts");
    decision.segments.trust = from_numpy<double>(arrays, "drift.trust");
    if (decision.n_electorates == 1) return;
    const std::int64_t oldest = oldest_faded(node_ids, n_nodes), n_kept = n_nodes - oldest;
    Array<double> counts(static_cast<std::size_t>(n_kept));
    fill_from(arrays, "fading.counts", counts.data(), n_kept);
    Array<std::int64_t> bounds(static_cast<std::size_t>(n_kept + 1));
    fill_from(arrays, "fading.indptr", bounds.data(), n_kept + 1);
    const Array<std::int32_t> slots = from_numpy<std::int32_t>(arrays, "fading.indices");
    const Array<double> faded = from_numpy<double>(arrays, "fading.data");
    bool fits = bounds.front() == 0 && bounds.back() == static_cast<std::int64_t>(slots.size()) && slots.size() == faded.size();
    for (std::size_t k = 1; fits && k < bounds.size(); ++k) fits = bounds[k] >= bounds[k - 1];
    if (!fits) throw std::invalid_argument("array 'fading.indptr' has bounds that do not fit");
    if (n_kept > 0) decision.fading.reserve(0);
    for (std::int64_t k = 0; k < n_kept; ++k) {
        const std::int64_t start = bounds.data()[k];
        decision.fading.put(node_ids[oldest + k], counts.data()[k], slots.data() + start, faded.data() + start, bounds.data()[k + 1] - start);
    }
}

// Only if nodes are bounded. Node ids must ascend, because they are searched by bisection.
inline void put_reservoir(nb::dict& result, const State& state) {
    result["reservoir.tally"] = to_numpy(Array<std::int64_t>{state.n_candidates, state.node_ids.n_made});
    result["reservoir.births"] = to_numpy(state.node_ids.numbers);
    result["reservoir.totals"] = to_numpy(state.label_totals);
}

inline void take_reservoir(const nb::dict& arrays, State& state) {
    std::int64_t tally[2];
    fill_from(arrays, "reservoir.tally", tally, 2);
    state.n_candidates = tally[0];
    state.node_ids.n_made = tally[1];
    const auto n = static_cast<std::int64_t>(state.counts.size());
    state.node_ids.numbers.resize(static_cast<std::size_t>(n));
    fill_from(arrays, "reservoir.births", state.node_ids.numbers.data(), n);
    state.label_totals.resize(static_cast<std::size_t>(state.n_labels));
    fill_from(arrays, "reservoir.totals", state.label_totals.data(), state.n_labels);
    std::int64_t last = -1;
    for (const std::int64_t number : state.node_ids.numbers) {
        if (number <= last || number >= state.node_ids.n_made) throw std::invalid_argument("array 'reservoir.births' does not ascend");
        last = number;
    }
    if (state.node_ids.n_made > state.n_candidates) throw std::invalid_argument("array 'reservoir.tally' counts more nodes than rows for them");
}

inline Decision decision_from(const nb::dict& arrays, const Settings& settings, const NodeIds& node_ids, std::int64_t n_nodes) {
    Decision decision(settings.recency, settings.follows_drift, settings.mixes);
    decision.frequencies.totals = from_numpy<std::int64_t>(arrays, "decision.totals");
    decision.frequencies.arrived = from_numpy<std::int32_t>(arrays, "decision.arrived");
    decision.frequencies.rows = from_numpy<std::int64_t>(arrays, "tally").at(1);
    const std::int64_t n_slots = decision.n_slots(), length = n_slots * Calibration::WIDTH_OF_SLOT;
    const Array<std::int64_t> total = from_numpy<std::int64_t>(arrays, "decision.shares"),
        present = from_numpy<std::int64_t>(arrays, "decision.shares_with");
    if (static_cast<std::int64_t>(total.size()) != length * decision.n_electorates || present.size() != total.size()) {
        throw std::invalid_argument("array 'decision.shares' has another length");
    }
    for (std::int64_t e = 0; e < decision.n_electorates; ++e) {
        decision.calibrations[e].rows = decision.frequencies.rows;
        decision.calibrations[e].total.assign(total.begin() + e * length, total.begin() + (e + 1) * length);
        decision.calibrations[e].present.assign(present.begin() + e * length, present.begin() + (e + 1) * length);
    }
    fill_from(arrays, "decision.novelty", decision.novelty.rows, Novelty::N_BINS);
    if (decision.mixer) take_mixer(arrays, *decision.mixer);
    if (decision.pool) fill_from(arrays, "decision.experts", decision.pool->log_weights, decision.pool->n_experts);
    if (decision.recency) {
        fill_from(arrays, "recency.rows", decision.recency->rows, Recency::N_LIVES);
        decision.recency->counts = from_numpy<double>(arrays, "recency.counts");
    }
    if (decision.persistence) {
        fill_from(arrays, "persistence.rows", &decision.persistence->rows, 1);
        decision.persistence->counts = from_numpy<std::int64_t>(arrays, "persistence.counts");
        decision.persistence->last = from_numpy<std::int32_t>(arrays, "persistence.last");
    }
    if (settings.follows_drift) take_drift(arrays, decision, node_ids, n_nodes);
    return decision;
}

template <class Value>
void put(nb::dict& result, const std::string& name, Csr<Value> rows) {
    result[(name + ".indptr").c_str()] = to_numpy(std::move(rows.indptr));
    result[(name + ".indices").c_str()] = to_numpy(std::move(rows.indices));
    result[(name + ".data").c_str()] = to_numpy(std::move(rows.data));
}
inline void put(nb::dict& result, const std::string& name, StateRows rows, bool sparse, std::size_t d) {
    if (sparse) return put(result, name, std::move(rows.sparse));
    const std::size_t n = rows.dense.size() / d;
    result[name.c_str()] = to_numpy(std::move(rows.dense), {n, d});
}

// The state as a dict of arrays, with the requested arrays of the nodes.
inline nb::dict arrays_of(State state, const Settings& settings, bool sparse, OfNodes wanted) {
    const std::int64_t n = state.tally.front();
    const auto d = static_cast<std::size_t>(settings.n_features), q = static_cast<std::size_t>(state.n_labels);
    const auto width = static_cast<std::size_t>(settings.bandwidth_width()), bins = static_cast<std::size_t>(settings.n_bins());
    nb::dict result;
    result["tally"] = to_numpy(std::move(state.tally));
    if (includes(wanted, OfNodes::counts)) result["counts"] = to_numpy(std::move(state.counts));
    if (includes(wanted, OfNodes::bandwidths)) result["bandwidths"] = to_numpy(std::move(state.bandwidths), {static_cast<std::size_t>(n), width});
    if (includes(wanted, OfNodes::label_counts)) put(result, "label_counts", std::move(state.label_counts));
    if (settings.finds_vigilance()) result["vigilance"] = to_numpy(Array<double>{state.vigilance});
    if (!settings.calibrated) {
        result["with"] = to_numpy(std::move(state.with_label), {q, bins});
        result["without"] = to_numpy(std::move(state.without_label), {q, bins});
    }
    if (wanted == OfNodes::all && (settings.learned || settings.calibrated)) result["unlabelled"] = to_numpy(std::move(state.unlabelled));
    if (settings.max_nodes > 0) put_reservoir(result, state);
    if (settings.learned) put_similarity(result, state, settings.mixes);
    if (settings.cells.from > 0 && wanted == OfNodes::all) {
        const std::size_t n_cells = state.cells.centres.size() / d;
        result["cells.centres"] = to_numpy(std::move(state.cells.centres), {n_cells, d});
        result["cells.nodes"] = to_numpy(std::move(state.cells.cells));
    }
    if (settings.calibrated) {
        put_decision(result, *state.decision);
        put_drift(result, *state.decision, state.node_ids, n);
        if (settings.mixes && settings.follows_drift) result["drift.births"] = to_numpy(std::move(state.similarity_node_ids));
    }
    if (state.linear) put_linear(result, std::move(*state.linear));
    result["waiting.indptr"] = to_numpy(std::move(state.waiting_indptr));
    result["waiting.indices"] = to_numpy(std::move(state.waiting_labels));
    result["group_centres"] = to_numpy(std::move(state.group_centres));
    result["group_counts"] = to_numpy(std::move(state.group_counts));
    result["group_bandwidths"] = to_numpy(std::move(state.group_bandwidths));
    if (includes(wanted, OfNodes::weights)) put(result, "weights", std::move(state.weights), sparse, d);
    put(result, "recent", std::move(state.recent), sparse, d);
    return result;
}

template <class Value>
Csr<Value> csr_from(const nb::dict& arrays, const std::string& name) {
    Csr<Value> rows;
    rows.indptr = from_numpy<std::int64_t>(arrays, (name + ".indptr").c_str());
    rows.indices = from_numpy<std::int32_t>(arrays, (name + ".indices").c_str());
    rows.data = from_numpy<Value>(arrays, (name + ".data").c_str());
    return rows;
}

inline State state_from(const nb::dict& arrays, std::int64_t n_labels, bool sparse, const Settings& settings) {
    State state;
    state.n_labels = n_labels;
    state.vigilance = settings.vigilance;
    if (settings.finds_vigilance()) fill_from(arrays, "vigilance", &state.vigilance, 1);
    state.tally = from_numpy<std::int64_t>(arrays, "tally");
    state.counts = from_numpy<std::int64_t>(arrays, "counts");
    state.bandwidths = from_numpy<double>(arrays, "bandwidths");
    state.label_counts = csr_from<std::int64_t>(arrays, "label_counts");
    if (!settings.calibrated) {
        state.with_label = from_numpy<std::int64_t>(arrays, "with");
        state.without_label = from_numpy<std::int64_t>(arrays, "without");
    }
    if (settings.learned || settings.calibrated) state.unlabelled = from_numpy<std::int64_t>(arrays, "unlabelled");
    if (settings.learned) take_similarity(arrays, state, settings.mixes);
    if (settings.cells.from > 0) state.cells = {from_numpy<std::int16_t>(arrays, "cells.centres"), from_numpy<std::int32_t>(arrays, "cells.nodes")};
    if (settings.max_nodes > 0) take_reservoir(arrays, state);
    if (settings.calibrated) state.decision = decision_from(arrays, settings, state.node_ids, static_cast<std::int64_t>(state.counts.size()));
    if (settings.mixes && settings.follows_drift) state.similarity_node_ids = from_numpy<std::int64_t>(arrays, "drift.births");
    if (settings.mixes)
        state.linear = linear_from(arrays, static_cast<std::int64_t>(state.decision->frequencies.arrived.size()) + LinearModels::FIRST_LABEL);
    state.waiting_indptr = from_numpy<std::int64_t>(arrays, "waiting.indptr");
    state.waiting_labels = from_numpy<std::int32_t>(arrays, "waiting.indices");
    state.group_centres = from_numpy<double>(arrays, "group_centres");
    state.group_counts = from_numpy<std::int64_t>(arrays, "group_counts");
    state.group_bandwidths = from_numpy<double>(arrays, "group_bandwidths");
    if (sparse) {
        state.weights.sparse = csr_from<double>(arrays, "weights");
        state.recent.sparse = csr_from<double>(arrays, "recent");
    } else {
        state.weights.dense = from_numpy<double>(arrays, "weights");
        state.recent.dense = from_numpy<double>(arrays, "recent");
    }
    return state;
}

}  // namespace mlca::MLCA_LEVEL
