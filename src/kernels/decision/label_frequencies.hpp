// Label frequencies: among all rows, among recent rows, and among rows that follow a row with or without the label.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

// Number of rows with each label, and the order in which labels first appeared.
class Frequencies {
public:
    void reserve(std::int64_t n_slots) {
        arrived.reserve(n_slots);
        grow_to(totals, n_slots);
    }

    // Count a row, given the slots of its labels. Labels that are new in the same row are ordered by slot. All memory
    // must have been reserved beforehand.
    void learn(const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            if (totals[slots[i]]++ == 0 && slots[i] > 0) arrived.push_back(slots[i]);
        }
        ++rows;
    }

    double share(std::int64_t slot) const noexcept { return static_cast<double>(totals[slot]) / static_cast<double>(rows); }
    double prior(std::int64_t slot) const noexcept {
        return static_cast<double>(totals[slot] + 1) / static_cast<double>(rows + 2);
    }

    // Whether the counts are valid for this number of slots, so that using them is memory-safe.
    bool is_sound(std::int64_t n_slots) const {
        if (rows < 0 || static_cast<std::int64_t>(totals.size()) != n_slots || static_cast<std::int64_t>(arrived.size()) >= n_slots) return false;
        std::int64_t n_come = 0;
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            if (totals[slot] < 0 || totals[slot] > rows) return false;
            n_come += slot > 0 && totals[slot] > 0;
        }
        Array<std::uint8_t> has_come(n_slots, 0);
        for (const std::int32_t slot : arrived) {
            if (slot <= 0 || slot >= n_slots || totals[slot] == 0 || has_come[slot]) return false;
            has_come[slot] = 1;
        }
        return n_come == static_cast<std::int64_t>(arrived.size());
    }

    std::int64_t rows = 0;
    Array<std::int64_t> totals;     // rows per slot
    Array<std::int32_t> arrived;    // slots of the labels seen so far, in order of first appearance
};

// Recent label frequencies: counts that halve every 1, 4, 16 or 64 rows.
//
// Each half-life defines one expert, which multiplies the odds of a probability by the ratio of the label's recent odds
// to its odds among all rows.
class Recency {
public:
    static constexpr std::int64_t N_LIVES = 4;
    static constexpr double HALF_LIVES[N_LIVES] = {1.0, 4.0, 16.0, 64.0};
    static constexpr double MOST = 100.0;  // above 1 / (1 - 2^(-1/64)) = 92.8, the limit of each count

    Recency() {
        for (std::int64_t h = 0; h < N_LIVES; ++h) decay_[h] = power_of_half(1.0 / HALF_LIVES[h]);
    }

    void reserve(std::int64_t n_slots) { grow_to(counts, n_slots * N_LIVES); }

    // The share of recent rows that have the label, where rows fade with the h-th half-life; shrunk towards the label's
    // prior.
    double share(std::int64_t slot, std::int64_t h, double prior) const noexcept {
        return (counts[slot * N_LIVES + h] + 0.5 * prior) / (rows[h] + 0.5);
    }

    // Compute the probability that each expert, one per half-life, derives from the probability p.
    void opinions(std::int64_t slot, double p, double prior, double* of_experts) const noexcept {
        const double of_p = odds(p), of_prior = odds(prior);
        for (std::int64_t h = 0; h < N_LIVES; ++h) {
            const double o = of_p * odds(share(slot, h, prior)) / of_prior;
            of_experts[h] = o / (1.0 + o);
        }
    }

    // Count a row, given the slots of its labels. All memory must have been reserved beforehand.
    void learn(const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        for (std::int64_t h = 0; h < N_LIVES; ++h) rows[h] = rows[h] * decay_[h] + 1.0;
        const std::int64_t n = counts.size();
        for (std::int64_t first = 0; first < n; first += N_LIVES) {
            for (std::int64_t h = 0; h < N_LIVES; ++h) {
                const double faded = counts[first + h] * decay_[h];
                counts[first + h] = faded >= 1e-30 ? faded : 0.0;  // avoids slow subnormal numbers
            }
        }
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            for (std::int64_t h = 0; h < N_LIVES; ++h) counts[slots[i] * N_LIVES + h] += 1.0;
        }
    }

    // Whether the counts are valid for this number of slots, so that using them is memory-safe.
    bool is_sound(std::int64_t n_slots) const noexcept {
        if (static_cast<std::int64_t>(counts.size()) != n_slots * N_LIVES) return false;
        const auto possible = [](double count) { return count >= 0.0 && count <= MOST; };
        return std::all_of(rows, rows + N_LIVES, possible) && std::all_of(counts.begin(), counts.end(), possible);
    }

    double rows[N_LIVES] = {};  // faded number of rows, per half-life
    Array<double> counts;       // per slot and half-life: faded number of rows with the label

private:
    double decay_[N_LIVES];
};

// How often a label is present, given whether the previous row had it.
//
// Recent frequencies fade equally for all labels, but some labels persist much longer than others. These counts are
// kept per label and, after enough rows, predict better than recent frequencies.
class Persistence {
public:
    static constexpr std::int64_t N_COUNTS = 3;
    static constexpr std::int64_t FIRST_ROWS = 256;  // number of counted rows from which the counts are used

    void reserve(std::int64_t n_slots, std::int64_t n_in_row) {
        grow_to(counts, n_slots * N_COUNTS);
        last.reserve(n_in_row);
    }

    bool has_enough() const noexcept { return rows >= FIRST_ROWS; }

    // The estimated probability that the next row has the label: among rows whose predecessor has the label (or lacks
    // it, if the last row does), the share that has it, shrunk towards the prior.
    double share(std::int32_t slot, double prior) const noexcept {
        const std::int64_t* of_slot = counts.data() + slot * N_COUNTS;
        const bool was = std::binary_search(last.begin(), last.end(), slot);
        const std::int64_t all = was ? of_slot[0] : rows - of_slot[0];
        return (static_cast<double>(of_slot[was ? 1 : 2]) + prior) / (static_cast<double>(all) + 1.0);
    }

    // Count a row, given the ascending slots of its labels. All memory must have been reserved beforehand.
    void learn(const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        if (!last.empty()) {
            ++rows;
            for (const std::int32_t slot : last) ++counts[slot * N_COUNTS];
            for (std::int64_t i = 0; i < n_in_row; ++i) {
                ++counts[slots[i] * N_COUNTS + (std::binary_search(last.begin(), last.end(), slots[i]) ? 1 : 2)];
            }
        }
        last.assign(slots, slots + n_in_row);
    }

    // Whether the counts are valid for this number of slots and learned rows, so that using them is memory-safe.
    bool is_sound(std::int64_t n_slots, std::int64_t n_learned) const noexcept {
        if (rows < 0 || rows > n_learned || static_cast<std::int64_t>(counts.size()) != n_slots * N_COUNTS) return false;
        for (std::int64_t slot = 0; slot < n_slots; ++slot) {
            const std::int64_t after = counts[slot * N_COUNTS], stayed = counts[slot * N_COUNTS + 1], came = counts[slot * N_COUNTS + 2];
            if (stayed < 0 || stayed > after || came < 0 || came > rows - after) return false;  // so 0 <= after <= rows
        }
        for (std::size_t i = 0; i < last.size(); ++i) {
            if (last[i] < 0 || last[i] >= n_slots || (i > 0 && last[i] <= last[i - 1])) return false;
        }
        return true;
    }

    std::int64_t rows = 0;       // rows whose previous row is known
    // Per slot, three counts: rows after a row with the label; those of them that have the label; and rows with the
    // label after a row without it.
    Array<std::int64_t> counts;
    Array<std::int32_t> last;    // slots of the last row, ascending
};

}  // namespace mlca::MLCA_LEVEL
