// How many rows had each label, and which label came first.
#pragma once

#include <cstdint>

#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class Frequencies {
public:
    void reserve(std::int64_t n_slots) {
        arrived.reserve(static_cast<std::size_t>(n_slots));
        grow_to(totals, n_slots);
    }

    // Count a row of these slots; there must be room. Labels that come together come in the order of their slots.
    void learn(const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            if (totals.data()[slots[i]]++ == 0 && slots[i] > 0) arrived.push_back(slots[i]);
        }
        ++rows;
    }

    double share(std::int64_t slot) const noexcept { return static_cast<double>(totals.data()[slot]) / static_cast<double>(rows); }
    double prior(std::int64_t slot) const noexcept {
        return static_cast<double>(totals.data()[slot] + 1) / static_cast<double>(rows + 2);
    }

    // Whether the counts could be those of so many slots: whatever passes can be computed with.
    bool is_sound(std::int64_t n_slots) const {
        if (rows < 0 || static_cast<std::int64_t>(totals.size()) != n_slots || static_cast<std::int64_t>(arrived.size()) >= n_slots) return false;
        std::int64_t n_come = 0;
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            if (totals.data()[slot] < 0 || totals.data()[slot] > rows) return false;
            n_come += slot > 0 && totals.data()[slot] > 0;
        }
        Array<std::uint8_t> has_come(static_cast<std::size_t>(n_slots), 0);
        for (const std::int32_t slot : arrived) {
            if (slot <= 0 || slot >= n_slots || totals.data()[slot] == 0 || has_come.data()[slot]) return false;
            has_come.data()[slot] = 1;
        }
        return n_come == static_cast<std::int64_t>(arrived.size());
    }

    std::int64_t rows = 0;
    Array<std::int64_t> totals;     // of each slot
    Array<std::int32_t> arrived;    // the slots of labels that have come, in the order of their coming
};

// Choose labels by their probabilities, of all slots: the likely ones; if there is none, the best unless "none" is as likely.
// Of equals the label that came first. Writes slots to `chosen` and returns how many.
inline std::int64_t choose(const double* p, const Frequencies& frequencies, std::int32_t* chosen) noexcept {
    std::int64_t n = 0;
    std::int32_t best = 0;
    for (const std::int32_t slot : frequencies.arrived) {
        if (p[slot] > 0.5) chosen[n++] = slot;
        if (best == 0 || p[slot] > p[best]) best = slot;
    }
    if (n == 0 && best > 0 && p[best] > p[0]) chosen[n++] = best;
    return n;
}

}  // namespace mlca::MLCA_LEVEL
