// How often a share of the votes came true: shares become probabilities by what happened before.
//
// Each slot counts, in eleven cells from share 0 to share 1, the rows that were given a share (divided between the two cells
// next to it) and those that had the label. Counts are whole numbers of 2^-20 rows, so parts of models add up. Nearly all
// labels of nearly all rows have share 0: cell 0 is kept as what is missing from all rows, and a label that had no share and
// was not there needs no change. A label that comes late has the counts that it would have had, without storage.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/memory.hpp"
#include "decision/voters.hpp"

namespace mlca::MLCA_LEVEL {

class Calibration {
public:
    static constexpr std::int64_t CELLS = 10;
    static constexpr std::int64_t WIDTH_OF_SLOT = CELLS + 1;
    static constexpr std::int64_t PER_COUNT = std::int64_t{1} << 20;
    static constexpr std::int64_t MOST_ROWS = std::int64_t{1} << 40;

    void reserve(std::int64_t n_slots) {
        grow_to(present, n_slots * WIDTH_OF_SLOT);
        grow_to(total, n_slots * WIDTH_OF_SLOT);
    }

    double probability(std::int64_t slot, double share) const noexcept { return 0.5 * share + 0.5 * come_true_at(slot, share); }

    // How often such a share came true.
    double come_true_at(std::int64_t slot, double share) const noexcept {
        const Place place(share);
        const double low = come_true(slot, place.cell);
        if (place.f == 0.0) return low;  // as of most labels, which have no share
        return (1.0 - place.f) * low + place.f * come_true(slot, place.cell + 1);
    }

    // Count a row of these slots, sorted; there must be room.
    void learn(const Shares& shares, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        ++rows;
        for (const std::int32_t slot : shares.listed) count(slot, shares[slot], std::binary_search(slots, slots + n_in_row, slot));
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            if (!shares.lists(slots[i])) count(slots[i], 0.0, true);
        }
    }

    // Whether the counts could be those of so many slots: whatever passes can be computed with.
    bool is_sound(std::int64_t n_slots) const noexcept {
        const auto n = static_cast<std::size_t>(n_slots * WIDTH_OF_SLOT);
        if (rows < 0 || rows > MOST_ROWS || total.size() != n || present.size() != n) return false;
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            std::int64_t left = rows * PER_COUNT;  // of all rows; each cell has at most what the others leave
            for (std::int64_t cell = 0; cell < WIDTH_OF_SLOT; ++cell) {
                const std::int64_t all = total.data()[slot * WIDTH_OF_SLOT + cell], with_label = present.data()[slot * WIDTH_OF_SLOT + cell];
                if (cell == 0 && (all > 0 || all < -left)) return false;
                const std::int64_t here = cell == 0 ? left + all : all;
                if (here < 0 || here > left || with_label < 0 || with_label > here) return false;
                left -= here;
            }
            if (left != 0) return false;
        }
        return true;
    }

    std::int64_t rows = 0;
    Array<std::int64_t> total;      // of each slot: cell 0 less all rows, then the others
    Array<std::int64_t> present;    // those of them that had the label

private:
    struct Place {
        explicit Place(double share) noexcept {
            const double x = share * static_cast<double>(CELLS);
            cell = std::min(static_cast<std::int64_t>(x), CELLS - 1);
            f = x - static_cast<double>(cell);
        }
        std::int64_t cell;
        double f;
    };

    double come_true(std::int64_t slot, std::int64_t cell) const noexcept {
        const std::int64_t all = total.data()[slot * WIDTH_OF_SLOT + cell] + (cell == 0 ? rows * PER_COUNT : 0);
        const double with_label = static_cast<double>(present.data()[slot * WIDTH_OF_SLOT + cell]) / static_cast<double>(PER_COUNT);
        return (with_label + 0.3 * static_cast<double>(cell)) / (static_cast<double>(all) / static_cast<double>(PER_COUNT) + 3.0);
    }

    void count(std::int64_t slot, double share, bool has_label) noexcept {
        const Place place(share);
        const auto upper = static_cast<std::int64_t>(nearest_whole(place.f * static_cast<double>(PER_COUNT)));
        std::int64_t* total_of_slot = total.data() + slot * WIDTH_OF_SLOT;
        std::int64_t* present_of_slot = present.data() + slot * WIDTH_OF_SLOT;
        total_of_slot[0] -= PER_COUNT;
        total_of_slot[place.cell] += PER_COUNT - upper;
        total_of_slot[place.cell + 1] += upper;
        if (!has_label) return;
        present_of_slot[place.cell] += PER_COUNT - upper;
        present_of_slot[place.cell + 1] += upper;
    }
};

}  // namespace mlca::MLCA_LEVEL
