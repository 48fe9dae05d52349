// Merge another model into this one. Each node of the other model is either learned in one step, weighted as all the
// rows that it represents (`replay`), or appended to the nodes of this model without a search (`append`, in time linear
// in the number of nodes). Counts that nodes do not store (those of the decision, and of rows that no node represents)
// are added.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "bandwidth/sparse_window.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"
#include "decision/calibrated.hpp"
#include "learner/restore.hpp"
#include "nodes/nodes_view.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

// Merge the decisions of two models, as if the second model's rows had followed the first one's.
//
// Counts are added. Recent counts first fade by the number of rows that follow. They are clamped to their bound,
// because sums of counts from forged files could exceed it. The experts' weights are those of the second model (if it
// has rows), and its segments follow those of the first. The nodes themselves have already been merged.

inline void absorb_calibration(Calibration& calibration, const Calibration& other, const Array<std::int64_t>& slots) noexcept {
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        for (std::int64_t cell = 0; cell < Calibration::WIDTH_OF_SLOT; ++cell) {
            const auto from = static_cast<std::int64_t>(slot) * Calibration::WIDTH_OF_SLOT + cell,
                to = slots[slot] * Calibration::WIDTH_OF_SLOT + cell;
            calibration.total[to] += other.total[from];
            calibration.present[to] += other.present[from];
        }
    }
    calibration.rows += other.rows;
}

inline void absorb_recency(Recency& recency, const Recency& other, std::int64_t rows_after, const Array<std::int64_t>& slots) noexcept {
    for (std::int64_t h = 0; h < Recency::N_LIVES; ++h) {
        const double faded = power_of_half(static_cast<double>(rows_after) / Recency::HALF_LIVES[h]);
        recency.rows[h] = std::min(recency.rows[h] * faded + other.rows[h], Recency::MOST);
        for (std::int64_t place = h; place < static_cast<std::int64_t>(recency.counts.size()); place += Recency::N_LIVES)
            recency.counts[place] *= faded;
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            double& count = recency.counts[slots[slot] * Recency::N_LIVES + h];
            count = std::min(count + other.counts[static_cast<std::int64_t>(slot) * Recency::N_LIVES + h], Recency::MOST);
        }
    }
}

inline void absorb_persistence(Persistence& persistence, const Persistence& other, const Array<std::int64_t>& slots) {
    persistence.rows += other.rows;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        for (std::int64_t i = 0; i < Persistence::N_COUNTS; ++i) {
            persistence.counts[slots[slot] * Persistence::N_COUNTS + i] +=
                other.counts[static_cast<std::int64_t>(slot) * Persistence::N_COUNTS + i];
        }
    }
    if (other.last.empty()) return;
    persistence.last.clear();
    for (const std::int32_t slot : other.last) persistence.last.push_back(static_cast<std::int32_t>(slots[slot]));
    std::sort(persistence.last.begin(), persistence.last.end());
}

// Append the segments of another model. `places` holds the id in this model of each node of the other model (if it was
// merged into an existing node, the id of the next new node), followed by the id of the next new node after the merge.
inline void absorb_segments(Segments& segments, const Segments& other, const Array<std::int64_t>& places, const NodeIds& node_ids) {
    const auto n_nodes = static_cast<std::int64_t>(places.size()) - 1;
    for (std::int64_t i = 0; i < other.n(); ++i) {
        const Stretch stretch = node_ids.places(other.nodes(i, node_ids.made(n_nodes)), n_nodes);
        const std::int64_t begin = places[stretch.low], end = places[stretch.high];
        if (begin == end && segments.n() > 0) continue;  // all of its nodes were merged into other nodes
        segments.reserve();
        segments.append(begin, other.parts[i], other.trust[i]);
    }
}

// Merge fading counts: new nodes from the other model keep their fading counts. A node that is too old to have any gets
// counts as if its labels had been spread evenly over its rows.
template <class View>
[[gnu::cold]] void absorb_fading(Fading& fading, const Fading& other, const Array<std::int64_t>& slots, const Array<std::int64_t>& places,
    const NodeIds& node_ids, const View& view) {
    const std::int64_t n = view.n_nodes();
    Array<std::int32_t> of_node;
    Array<double> faded;
    for (std::int64_t k = 0; k < n; ++k) {
        const bool is_new = places[k + 1] > places[k], is_known = view.node_id(k) >= Fading::oldest(node_ids.made(n));
        if (!is_new || places[k] < Fading::oldest(places.back())) continue;
        of_node.clear();
        faded.clear();
        double count = 5.0 * (1.0 - std::pow(0.8, static_cast<double>(view.count(k))));
        if (is_known) {
            count = other.count(view.node_id(k));
            other.for_each_label(view.node_id(k), [&](std::int32_t slot, double rows) {
                of_node.push_back(static_cast<std::int32_t>(slots[slot]));
                faded.push_back(rows);
            });
        } else {
            view.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) {
                of_node.push_back(static_cast<std::int32_t>(slots[slot]));
                faded.push_back(count * (static_cast<double>(rows) / static_cast<double>(view.count(k))));
            });
        }
        fading.put(places[k], count, of_node.data(), faded.data(), static_cast<std::int64_t>(of_node.size()));
    }
}

// Merge another model's decision. `slots` maps its slots to slots of this model, `n_slots` is the resulting number of
// slots, `places` is as in `absorb_segments`, and `view` is a view of the other model's nodes.
template <class View>
[[gnu::cold]] void absorb_decision(Decision& decision, const Decision& other, const Array<std::int64_t>& slots, std::int64_t n_slots,
    const Array<std::int64_t>& places, const NodeIds& node_ids, const View& view) {
    decision.reserve(n_slots, 0);
    for (std::int64_t e = 0; e < decision.n_electorates; ++e) absorb_calibration(decision.calibrations[e], other.calibrations[e], slots);
    if (decision.recency) absorb_recency(*decision.recency, *other.recency, other.frequencies.rows, slots);
    if (decision.persistence) absorb_persistence(*decision.persistence, *other.persistence, slots);
    if (decision.pool && other.frequencies.rows > 0) decision.pool = other.pool;
    if (decision.mixer) decision.mixer->absorb(*other.mixer, decision.frequencies.rows, other.frequencies.rows);
    if (decision.follows) absorb_segments(decision.segments, other.segments, places, node_ids);
    if (decision.n_electorates > 1) {
        absorb_fading(decision.fading, other.fading, slots, places, node_ids, view);
    }
    for (std::int64_t bin = 0; bin < Novelty::N_BINS; ++bin) decision.novelty.rows[bin] += other.novelty.rows[bin];
    Frequencies& frequencies = decision.frequencies;
    for (const std::int32_t slot : other.frequencies.arrived) {
        const std::int64_t here = slots[slot];
        if (frequencies.totals[here] == 0) frequencies.arrived.push_back(static_cast<std::int32_t>(here));
    }
    for (std::size_t slot = 0; slot < slots.size(); ++slot) frequencies.totals[slots[slot]] += other.frequencies.totals[slot];
    frequencies.rows += other.frequencies.rows;
}

// Add to this model's counts the rows of the other model that none of its nodes represents. Their vote bins are not
// known, so Bayes' rule counts a label of such rows in the most frequent bin of that label.
template <class ModelHere>
[[gnu::cold]] void absorb_lost(ModelHere& model, const ModelHere& other, const std::int32_t* columns) {
    Array<std::int64_t> lost(other.labels.totals);
    std::int64_t rows = other.labels.n_learned;
    for (std::int64_t k = 0; k < other.n_nodes; ++k) {
        rows -= other.labels.node_counts[k];
        const auto& label_counts = other.labels.at_nodes[k];
        for (std::int32_t place = 0; place < label_counts.length; ++place) lost[label_counts.keys[place]] -= label_counts.values[place];
    }
    for (std::int64_t i = 0; i < other.labels.n_labels; ++i) model.labels.count_lost(columns[i], other.labels.usual_bin(i), lost[i]);
    model.labels.n_learned += rows;
    if (!model.decision) model.labels.n_voted += rows;
    model.n_candidates += other.n_candidates - other.n_nodes;
}

// Learn a node of another model in one step, weighted as all the rows that it represents.
template <class ModelHere>
void replay(ModelHere& model, const ModelHere& other, std::int64_t node, const std::int32_t* columns, typename ModelHere::Work& work, Stop& stop) {
    const auto& label_counts = other.labels.at_nodes[node];
    Array<std::int32_t> labels(label_counts.length);
    for (std::size_t place = 0; place < labels.size(); ++place) labels[place] = columns[label_counts.keys[place]];
    if (auto successor = model.nodes.renewed(model.n_nodes, model.learning_r())) model.nodes.take(std::move(*successor));
    // Sparse rows must have ascending features, because searches size their buffers by the last feature. In a moved
    // node, features may be in any order.
    using RowsHere = RowsOfState<typename ModelHere::Row>;
    StateRows in_order;
    RowsHere::append(in_order, other.nodes.row(node), model.settings.n_features);
    const auto source = RowsHere::source(in_order, model.settings.n_features);
    const typename ModelHere::LabelledRow row{source[0],
                                                {labels.data(), label_counts.length, label_counts.values,
                                                    other.labels.unlabelled[node]},
                                                other.labels.node_counts[node], true};
    model.commit(row, model.find(row, work, stop), other.bandwidths[node], work);
}

// Determines which nodes of two bounded models are kept when one is appended to the other: a uniform sample of the rows
// that became nodes of either model, or would have without the bound. The sample depends only on the numbers of rows
// and nodes.
struct KeptNodes {
    Array<std::uint8_t> ours, theirs;

    template <class ModelHere>
    KeptNodes(const ModelHere& model, const ModelHere& other)
        : ours(static_cast<std::size_t>(model.n_nodes), 1), theirs(static_cast<std::size_t>(other.n_nodes), 1),
          seed_(splitmix64(static_cast<std::uint64_t>(model.labels.n_learned + other.labels.n_learned))) {
        const std::int64_t most = model.settings.max_nodes;
        if (most == 0 || model.n_nodes + other.n_nodes <= most) return;
        std::int64_t n_ours = 0, left = model.n_candidates, all = left + other.n_candidates;
        for (std::int64_t i = 0; i < most; ++i, --all) {
            if (drawn(all) >= left) continue;
            ++n_ours;
            --left;
        }
        n_ours = std::min(std::max(n_ours, most - other.n_nodes), model.n_nodes);
        choose(ours, n_ours);
        choose(theirs, most - n_ours);
    }

private:
    std::int64_t drawn(std::int64_t n) noexcept { return static_cast<std::int64_t>(splitmix64(seed_ + n_drawn_++) % static_cast<std::uint64_t>(n)); }
    void choose(Array<std::uint8_t>& flags, std::int64_t n) noexcept {
        std::int64_t left = flags.size();
        for (std::uint8_t& flag : flags) {
            flag = drawn(left--) < n;
            n -= flag;
        }
    }

    std::uint64_t seed_, n_drawn_ = 0;
};

// Append the nodes of another model and count its rows; fill `places` for `absorb_segments`.
template <class ModelHere>
void append_nodes(ModelHere& model, const ModelHere& other, const std::int32_t* columns, Array<std::int64_t>& places, Stop& stop) {
    // The similarity is recomputed for all nodes later, so appended nodes need not be indexed by ranks that will
    // change.
    model.as_learned.reset();
    model.similarity_due = 0;
    if (model.n_gone > 0) model = without_gone(model);
    const KeptNodes kept(model, other);
    for (std::int64_t k = 0; k < model.n_nodes; ++k) {
        if (kept.ours[k]) continue;
        model.gone[k] = 1;
        ++model.n_gone;
    }
    using RowsHere = RowsOfState<typename ModelHere::Row>;
    Array<std::int32_t> labels;
    for (std::int64_t k = 0; k < other.n_nodes; ++k) {
        stop.check();
        places.push_back(model.node_ids.made(model.n_nodes));
        if (!kept.theirs[k]) continue;
        const auto& label_counts = other.labels.at_nodes[k];
        labels.clear();
        for (std::int32_t place = 0; place < label_counts.length; ++place) labels.push_back(columns[label_counts.keys[place]]);
        StateRows in_order;  // the features of a moved sparse node may be in any order
        RowsHere::append(in_order, other.nodes.row(k), model.settings.n_features);
        add_node(model, RowsHere::source(in_order, model.settings.n_features)[0], other.bandwidths[k],
                 {labels.data(), label_counts.length, label_counts.values, other.labels.unlabelled[k]},
                 other.labels.node_counts[k], model.node_ids.n_made);
        if (model.settings.max_nodes > 0) ++model.node_ids.n_made;
    }
    model.n_candidates += other.n_candidates;
    model.labels.add_rows(other.labels, columns, !model.decision);
}

template <class ModelHere>
void replay_nodes(ModelHere& model, const ModelHere& other, const std::int32_t* columns, Array<std::int64_t>& places, typename ModelHere::Work& work,
    Stop& stop) {
    for (std::int64_t k = 0; k < other.n_nodes; ++k) {
        stop.check();
        places.push_back(model.node_ids.made(model.n_nodes));
        replay(model, other, k, columns, work, stop);
    }
    if (model.settings.max_nodes > 0) absorb_lost(model, other, columns);
}

// Merge another model into this one; both models are locked. `columns` maps its labels to labels of this model;
// `n_labels` is the resulting number of labels. When nodes are appended, the similarity is marked as due, so that it is
// computed only once after several models have been appended.
template <class ModelHere>
void absorb_model(ModelHere& model, const ModelHere& other, const std::int32_t* columns, std::int64_t n_labels, bool append,
    typename ModelHere::Work& work, Stop& stop) {
    model.labels.reserve_labels(n_labels);
    model.labels.n_labels = std::max(model.labels.n_labels, n_labels);
    Array<std::int64_t> places;  // see `absorb_segments`
    if (append) {
        append_nodes(model, other, columns, places, stop);
    } else {
        replay_nodes(model, other, columns, places, work, stop);
    }
    places.push_back(model.node_ids.made(model.n_nodes));
    if (model.settings.mode == Mode::clustered) model.groups.absorb(other.groups, model.settings.common_threshold(1));
    if (model.decision) {
        Array<std::int64_t> slots(other.decision->n_slots(), 0);
        for (std::size_t slot = 1; slot < slots.size(); ++slot) slots[slot] = columns[slot - 1] + std::int64_t{1};
        const Frequencies& frequencies = model.decision->frequencies;
        const std::int64_t rows_before = frequencies.rows;
        absorb_decision(*model.decision, *other.decision, slots, n_labels + 1, places, other.node_ids, other.view());
        if (model.linear) model.linear->absorb(*other.linear, rows_before, other.decision->frequencies.rows, frequencies.arrived, slots);
    }
    model.n_longest = 0;
    if (!append) {
        if (!model.settings.learned) return;
        if (model.n_gone > 0) {  // cells and ranks must equal those of a restored model, without replaced nodes
            model.as_learned.reset();
            model.similarity_due = 0;
            model = without_gone(model);
        }
        model.take_similarity(model.weighed(stop));
    } else if (model.n_gone > 0) {
        model = without_gone(model);
    } else if (auto successor = model.nodes.renewed(model.n_nodes, model.learning_r())) {
        model.nodes.take(std::move(*successor));
    }
}

}  // namespace mlca::MLCA_LEVEL
