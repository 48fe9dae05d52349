// What two models learned of decisions, put together: the second one's rows follow the first one's.
//
// Counts add up. Recent counts fade by as many rows as follow, the experts' weights are those that the later rows left, and
// segments of the past follow each other; the nodes themselves have been replayed already.
#pragma once

#include <cmath>
#include <cstdint>

#include "births.hpp"
#include "decision.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

inline void absorb_calibration(Calibration& calibration, const Calibration& other, const Array<std::int64_t>& slots) noexcept {
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        for (std::int64_t cell = 0; cell < Calibration::WIDTH_OF_SLOT; ++cell) {
            const auto from = static_cast<std::int64_t>(slot) * Calibration::WIDTH_OF_SLOT + cell, to = slots[slot] * Calibration::WIDTH_OF_SLOT + cell;
            calibration.total.data()[to] += other.total.data()[from];
            calibration.present.data()[to] += other.present.data()[from];
        }
    }
    calibration.rows += other.rows;
}

inline void absorb_recency(Recency& recency, const Recency& other, std::int64_t rows_after, const Array<std::int64_t>& slots) noexcept {
    for (std::int64_t h = 0; h < Recency::N_LIVES; ++h) {
        const double faded = power_of_half(static_cast<double>(rows_after) / Recency::HALF_LIVES[h]);
        recency.rows[h] = recency.rows[h] * faded + other.rows[h];
        for (std::int64_t place = h; place < static_cast<std::int64_t>(recency.counts.size()); place += Recency::N_LIVES) recency.counts.data()[place] *= faded;
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            recency.counts.data()[slots[slot] * Recency::N_LIVES + h] += other.counts.data()[static_cast<std::int64_t>(slot) * Recency::N_LIVES + h];
        }
    }
}

// `places`: the number that each of the other's nodes would have here in the order of making, and that of the next node.
inline void absorb_segments(Segments& segments, const Segments& other, const Array<std::int64_t>& places, const Births& births) noexcept {
    const auto n_nodes = static_cast<std::int64_t>(places.size()) - 1;
    for (std::int64_t i = 0; i < other.n; ++i) {
        const Stretch stretch = births.places(other.nodes(i, births.made(n_nodes)), n_nodes);
        const std::int64_t begin = places.data()[stretch.low], end = places.data()[stretch.high];
        if (begin == end && segments.n > 0) continue;  // all of its nodes were taken in by others
        segments.append(begin, other.parts[i], other.trust[i]);
    }
}

// Nodes that came from the other model keep their fading counts; of those that were too old for any, counts are as if the
// node's rows had come in equal shares.
template <class View>
[[gnu::cold]] void absorb_fading(Fading& fading, const Fading& other, const Array<std::int64_t>& slots, const Array<std::int64_t>& places, const Births& births,
                   const View& view) {
    const std::int64_t n = view.n_nodes();
    Array<std::int32_t> of_node;
    Array<double> faded;
    for (std::int64_t k = 0; k < n; ++k) {
        const bool is_new = places.data()[k + 1] > places.data()[k], is_known = view.birth(k) >= Fading::oldest(births.made(n));
        if (!is_new || places.data()[k] < Fading::oldest(places.back())) continue;
        of_node.clear();
        faded.clear();
        double count = 5.0 * (1.0 - std::pow(0.8, static_cast<double>(view.count(k))));
        if (is_known) {
            count = other.count(view.birth(k));
            other.for_each_label(view.birth(k), [&](std::int32_t slot, double rows) {
                of_node.push_back(static_cast<std::int32_t>(slots[static_cast<std::size_t>(slot)]));
                faded.push_back(rows);
            });
        } else {
            view.for_each_label(k, [&](std::int64_t slot, std::int64_t rows) {
                of_node.push_back(static_cast<std::int32_t>(slots[static_cast<std::size_t>(slot)]));
                faded.push_back(count * (static_cast<double>(rows) / static_cast<double>(view.count(k))));
            });
        }
        fading.put(places.data()[k], count, of_node.data(), faded.data(), static_cast<std::int64_t>(of_node.size()));
    }
}

// `columns` gives the numbers of the other's labels here, `n_slots` is how many slots there are then; `view` shows the
// other's nodes.
template <class View>
[[gnu::cold]] void absorb_decision(Decision& decision, const Decision& other, const std::int32_t* columns, std::int64_t n_slots, const Array<std::int64_t>& places,
                     const Births& births, const View& view) {
    decision.reserve(n_slots, 0);
    Array<std::int64_t> slots(static_cast<std::size_t>(other.n_slots()), 0);
    for (std::size_t slot = 1; slot < slots.size(); ++slot) slots[slot] = columns[slot - 1] + std::int64_t{1};
    for (std::int64_t e = 0; e < decision.n_electorates; ++e) absorb_calibration(decision.calibrations[e], other.calibrations[e], slots);
    if (decision.recency) absorb_recency(*decision.recency, *other.recency, other.frequencies.rows, slots);
    if (decision.pool && other.frequencies.rows > 0) decision.pool = other.pool;
    if (decision.n_electorates > 1) {
        absorb_segments(decision.segments, other.segments, places, births);
        absorb_fading(decision.fading, other.fading, slots, places, births, view);
    }
    for (std::int64_t bin = 0; bin < Novelty::N_BINS; ++bin) decision.novelty.rows[bin] += other.novelty.rows[bin];
    Frequencies& frequencies = decision.frequencies;
    for (const std::int32_t slot : other.frequencies.arrived) {
        const std::int64_t here = slots[static_cast<std::size_t>(slot)];
        if (frequencies.totals.data()[here] == 0) frequencies.arrived.push_back(static_cast<std::int32_t>(here));
    }
    for (std::size_t slot = 0; slot < slots.size(); ++slot) frequencies.totals.data()[slots[slot]] += other.frequencies.totals.data()[slot];
    frequencies.rows += other.frequencies.rows;
}

}  // namespace mlca::MLCA_LEVEL
