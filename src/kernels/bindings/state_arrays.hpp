// Conversion of a learner's state to named NumPy arrays and back (see mlca.learner.checking).
//
// Only lengths that do not follow from others are checked here; `is_sound` checks the values.
#pragma once

#include <nanobind/ndarray.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "learner/state.hpp"

namespace mlca::MLCA_LEVEL {

namespace nb = nanobind;

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

// Copy the named array to `out`; it must have exactly n elements.
template <class T>
void fill_from(const nb::dict& arrays, const char* name, T* out, std::int64_t n) {
    const Array<T> values = from_numpy<T>(arrays, name);
    if (static_cast<std::int64_t>(values.size()) != n)
        throw std::invalid_argument("array '" + std::string(name) + "' has the wrong length");
    std::copy(values.begin(), values.end(), out);
}

// One function per part of a state serves both directions: it passes each array, with its name, to an archive that
// writes it into a dict or reads it from there. Arrays of fixed length are passed by pointer; `shape` is only used for
// writing.
class ArrayWriter {
public:
    static constexpr bool READS = false;

    explicit ArrayWriter(nb::dict& written) : arrays(written) {}

    template <class T>
    void operator()(const char* name, Array<T>& values) {
        arrays[name] = to_numpy(std::move(values));
    }
    template <class T>
    void operator()(const char* name, Array<T>& values, std::initializer_list<std::size_t> shape) {
        arrays[name] = to_numpy(std::move(values), shape);
    }
    template <class T>
    void operator()(const char* name, T* values, std::int64_t n) {
        arrays[name] = to_numpy(Array<T>(values, values + n));
    }

    nb::dict& arrays;
};

class ArrayReader {
public:
    static constexpr bool READS = true;

    explicit ArrayReader(const nb::dict& read) : arrays(read) {}

    template <class T>
    void operator()(const char* name, Array<T>& values, std::initializer_list<std::size_t> = {}) {
        values = from_numpy<T>(arrays, name);
    }
    template <class T>
    void operator()(const char* name, T* values, std::int64_t n) {
        fill_from(arrays, name, values, n);
    }

    const nb::dict& arrays;
};

// The learned similarity. "similarity.tally" holds the number of rows after which the similarity is due, the number of
// knots, `sparse`, `has_background`, and whether there is a similarity.
template <class Archive>
void archive_similarity(Archive archive, State& state, bool mixes) {
    Learned learned = std::move(state.learned).value_or(Learned());
    std::int64_t tally[] = {state.similarity_due, learned.ranks.n_knots, learned.sparse, learned.has_background, state.learned.has_value()};
    archive("similarity.tally", tally, 5);
    state.similarity_due = tally[0];
    if (Archive::READS && tally[4] == 0) return;
    learned.ranks.n_knots = tally[1];
    learned.sparse = tally[2] != 0;
    learned.has_background = tally[3] != 0;
    archive("similarity.weights", learned.weights);
    archive("similarity.knots", learned.ranks.knots);
    archive("similarity.knot_starts", learned.ranks.starts);
    archive("similarity.knot_counts", learned.ranks.up_to);
    archive("background.indptr", learned.background.starts);
    archive("background.indices", learned.background.features);
    archive("background.data", learned.background.coefficients);
    archive("background.means", learned.background.means);
    archive("similarity.trait_attributes", learned.traits.features);
    archive("similarity.trait_values", learned.traits.values);
    archive("background.centres", learned.background.centres);
    archive("background.deviations", learned.background.deviations);
    if (mixes) archive("similarity.middles", learned.middles);
    state.learned = std::move(learned);
}

template <class Archive>
void archive_mixer(Archive archive, Mixer& mixer) {
    const auto n = static_cast<std::size_t>(mixer.n_inputs);
    Array<double> curvature;
    for (std::size_t i = 0; i < n; ++i) curvature.insert(curvature.end(), mixer.curvature[i], mixer.curvature[i] + n);
    archive("mixer.weights", mixer.weights, mixer.n_inputs);
    if constexpr (Archive::READS) {
        archive("mixer.curvature", curvature.data(), mixer.n_inputs * mixer.n_inputs);
        for (std::size_t i = 0; i < n; ++i) std::copy_n(curvature.data() + i * n, n, mixer.curvature[i]);
    } else {
        archive("mixer.curvature", curvature, {n, n});
    }
    archive("mixer.hits", mixer.hits, Mixer::N_MARGINS);
    archive("mixer.f1", mixer.f1, Mixer::N_THRESHOLDS);
}

// The linear models, one row per feature: its key, and the weights and sums of squared gradients of "unseen", "none"
// and the labels seen so far.
template <class Archive>
void archive_linear(Archive archive, LinearState& state) {
    const std::size_t n = state.features.size(), n_columns = static_cast<std::size_t>(state.n_columns);
    archive("linear.features", state.features);
    archive("linear.kinds", state.kinds);
    archive("linear.values", state.values);
    archive("linear.weights", state.weights, {n, n_columns});
    archive("linear.squares", state.squares, {n, n_columns});
}

// Index of the first of n_nodes nodes that has fading counts.
inline std::int64_t oldest_faded(const NodeIds& node_ids, std::int64_t n_nodes) {
    const std::int64_t n_made = node_ids.made(n_nodes);
    return node_ids.places({Fading::oldest(n_made), n_made}, n_nodes).low;
}

// Segments, and fading counts of the last of n_nodes nodes.
template <class Archive>
void archive_drift(Archive archive, Decision& decision, const NodeIds& node_ids, std::int64_t n_nodes) {
    archive("drift.first", decision.segments.first);
    archive("drift.parts", decision.segments.parts);
    archive("drift.trust", decision.segments.trust);
    if (decision.n_electorates == 1) return;
    const std::int64_t oldest = oldest_faded(node_ids, n_nodes), n_kept = n_nodes - oldest;
    Array<double> counts(n_kept);
    Csr<double> rows;
    if constexpr (Archive::READS) rows.indptr.resize(n_kept + 1);
    for (std::int64_t k = 0; !Archive::READS && k < n_kept; ++k) {
        counts[k] = decision.fading.count(node_ids[oldest + k]);
        Array<std::int32_t> slots;
        Array<double> faded;
        decision.fading.for_each_label(node_ids[oldest + k], [&](std::int32_t slot, double row) {
            slots.push_back(slot);
            faded.push_back(row);
        });
        rows.append(slots.data(), faded.data(), slots.size());
    }
    archive("fading.counts", counts.data(), n_kept);
    archive("fading.indptr", rows.indptr.data(), n_kept + 1);
    archive("fading.indices", rows.indices);
    archive("fading.data", rows.data);
    if constexpr (Archive::READS) {
        const Array<std::int64_t>& bounds = rows.indptr;
        const auto n_pairs = static_cast<std::int64_t>(rows.indices.size());
        if (bounds.front() != 0 || bounds.back() != n_pairs || rows.data.size() != rows.indices.size() || !std::is_sorted(bounds.begin(), bounds.end()))
            throw std::invalid_argument("array 'fading.indptr' has invalid row bounds");
        if (n_kept > 0) decision.fading.reserve(0);
        for (std::int64_t k = 0; k < n_kept; ++k) {
            const std::int64_t start = bounds[k];
            decision.fading.put(node_ids[oldest + k], counts[k], rows.indices.data() + start, rows.data.data() + start, bounds[k + 1] - start);
        }
    }
}

// The ids of the nodes and the counts of candidate rows, for models with a bounded number of nodes. Ids must ascend,
// because they are searched by bisection.
template <class Archive>
void archive_reservoir(Archive archive, State& state) {
    std::int64_t tally[] = {state.n_candidates, state.node_ids.n_made};
    archive("reservoir.tally", tally, 2);
    Array<std::int64_t>& numbers = state.node_ids.numbers;
    if constexpr (Archive::READS) {
        state.n_candidates = tally[0];
        state.node_ids.n_made = tally[1];
        numbers.resize(state.counts.size());
        state.label_totals.resize(state.n_labels);
    }
    archive("reservoir.births", numbers.data(), std::ssize(numbers));
    archive("reservoir.totals", state.label_totals.data(), std::ssize(state.label_totals));
    if constexpr (Archive::READS) {
        std::int64_t last = -1;
        for (const std::int64_t number : numbers) {
            if (number <= last || number >= tally[1]) throw std::invalid_argument("array 'reservoir.births' does not ascend");
            last = number;
        }
        if (tally[1] > tally[0])
            throw std::invalid_argument("array 'reservoir.tally' counts more nodes than candidate rows");
    }
}

// The decision, except its segments and fading counts. `is_sound` checks the values later.
template <class Archive>
void archive_decision(Archive archive, Decision& decision) {
    constexpr auto WIDTH_OF_SLOT = static_cast<std::size_t>(Calibration::WIDTH_OF_SLOT);
    const auto n_electorates = static_cast<std::size_t>(decision.n_electorates);
    auto n_slots = static_cast<std::size_t>(decision.n_slots());
    archive("decision.totals", decision.frequencies.totals);
    archive("decision.arrived", decision.frequencies.arrived);
    if constexpr (Archive::READS) n_slots = static_cast<std::size_t>(decision.n_slots());
    Array<std::int64_t> total, present;
    for (std::size_t e = 0; !Archive::READS && e < n_electorates; ++e) {
        const Calibration& calibration = decision.calibrations[e];
        total.insert(total.end(), calibration.total.begin(), calibration.total.end());
        present.insert(present.end(), calibration.present.begin(), calibration.present.end());
    }
    archive("decision.shares", total, {n_electorates, n_slots, WIDTH_OF_SLOT});
    archive("decision.shares_with", present, {n_electorates, n_slots, WIDTH_OF_SLOT});
    if constexpr (Archive::READS) {
        const auto length = static_cast<std::ptrdiff_t>(n_slots * WIDTH_OF_SLOT);
        if (total.size() != n_electorates * n_slots * WIDTH_OF_SLOT || present.size() != total.size())
            throw std::invalid_argument("array 'decision.shares' has the wrong length");
        for (std::int64_t e = 0; e < decision.n_electorates; ++e) {
            decision.calibrations[e].rows = decision.frequencies.rows;
            decision.calibrations[e].total.assign(total.begin() + e * length, total.begin() + (e + 1) * length);
            decision.calibrations[e].present.assign(present.begin() + e * length, present.begin() + (e + 1) * length);
        }
    }
    archive("decision.novelty", decision.novelty.rows, Novelty::N_BINS);
    if (decision.pool) archive("decision.experts", decision.pool->log_weights, decision.pool->n_experts);
    if (decision.mixer) archive_mixer(archive, *decision.mixer);
    if (decision.recency) {
        archive("recency.rows", decision.recency->rows, Recency::N_LIVES);
        archive("recency.counts", decision.recency->counts, {n_slots, static_cast<std::size_t>(Recency::N_LIVES)});
    }
    if (decision.persistence) {
        archive("persistence.rows", &decision.persistence->rows, 1);
        archive("persistence.counts", decision.persistence->counts, {n_slots, static_cast<std::size_t>(Persistence::N_COUNTS)});
        archive("persistence.last", decision.persistence->last);
    }
}

template <class Archive, class Value>
void archive_csr(Archive archive, const std::string& name, Csr<Value>& rows) {
    archive((name + ".indptr").c_str(), rows.indptr);
    archive((name + ".indices").c_str(), rows.indices);
    archive((name + ".data").c_str(), rows.data);
}
template <class Archive>
void archive_rows(Archive archive, const std::string& name, StateRows& rows, bool sparse, std::size_t d) {
    if (sparse) return archive_csr(archive, name, rows.sparse);
    archive(name.c_str(), rows.dense, {rows.dense.size() / d, d});
}

// The whole state, with the requested arrays of the nodes.
template <class Archive>
void archive_state(Archive archive, State& state, const Settings& settings, bool sparse, OfNodes wanted = OfNodes::all) {
    const auto d = static_cast<std::size_t>(settings.n_features), q = static_cast<std::size_t>(state.n_labels);
    const auto width = static_cast<std::size_t>(settings.bandwidth_width()), bins = static_cast<std::size_t>(settings.n_bins());
    const bool all = wanted == OfNodes::all;
    Array<std::int64_t> tally = state.tally;
    archive("tally", tally);
    if constexpr (Archive::READS) state.tally = tally;
    if (includes(wanted, OfNodes::counts)) archive("counts", state.counts);
    if (includes(wanted, OfNodes::bandwidths)) archive("bandwidths", state.bandwidths, {state.bandwidths.size() / width, width});
    if (includes(wanted, OfNodes::label_counts)) archive_csr(archive, "label_counts", state.label_counts);
    if (settings.finds_vigilance()) archive("vigilance", &state.vigilance, 1);
    if (!settings.calibrated) {
        archive("with", state.with_label, {q, bins});
        archive("without", state.without_label, {q, bins});
    }
    if (all && (settings.learned || settings.calibrated)) archive("unlabelled", state.unlabelled);
    if (settings.max_nodes > 0) archive_reservoir(archive, state);
    if (settings.learned) archive_similarity(archive, state, settings.mixes);
    if (settings.cells.from > 0 && all) {
        archive("cells.centres", state.cells.centres, {state.cells.centres.size() / d, d});
        archive("cells.nodes", state.cells.cells);
    }
    if (settings.calibrated) {
        if constexpr (Archive::READS) {
            state.decision.emplace(settings.recency, settings.follows_drift, settings.mixes);
            state.decision->frequencies.rows = state.tally.at(1);
        }
        archive_decision(archive, *state.decision);
        const std::int64_t n_nodes = Archive::READS ? std::ssize(state.counts) : state.tally.front();
        if (settings.follows_drift) archive_drift(archive, *state.decision, state.node_ids, n_nodes);
    }
    if (Archive::READS && settings.mixes) {
        state.linear.emplace();
        state.linear->n_columns = static_cast<std::int64_t>(state.decision->frequencies.arrived.size()) + LinearModels::FIRST_LABEL;
    }
    if (settings.mixes && settings.follows_drift) archive("drift.births", state.similarity_node_ids);
    if (state.linear) archive_linear(archive, *state.linear);
    archive("waiting.indptr", state.waiting_indptr);
    archive("waiting.indices", state.waiting_labels);
    archive("group_centres", state.group_centres);
    archive("group_counts", state.group_counts);
    archive("group_bandwidths", state.group_bandwidths);
    if (includes(wanted, OfNodes::weights)) archive_rows(archive, "weights", state.weights, sparse, d);
    archive_rows(archive, "recent", state.recent, sparse, d);
}

}  // namespace mlca::MLCA_LEVEL
