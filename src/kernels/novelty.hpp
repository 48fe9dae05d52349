// How unlike everything seen a row is: the share of learned rows that were nearer to their nearest node than it is.
//
// Distances of rows from their nearest node, before they were learned, are counted in 64 bins.
#pragma once

#include <algorithm>
#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

class Novelty {
public:
    static constexpr std::int64_t N_BINS = 64;

    void learn(double distance) noexcept { ++rows[bin(distance)]; }

    // Rows of the same bin are spread evenly in it. While no row has been counted, whatever is no node is new.
    double of(double distance) const noexcept {
        const std::int64_t place = bin(distance);
        std::int64_t nearer = 0, all = 0;
        for (std::int64_t i = 0; i < N_BINS; ++i) {
            nearer += i < place ? rows[i] : 0;
            all += rows[i];
        }
        if (all == 0) return distance > 0.0 ? 1.0 : 0.0;
        const double part = 64.0 * distance - static_cast<double>(place);
        return (static_cast<double>(nearer) + part * static_cast<double>(rows[place])) / static_cast<double>(all);
    }

    // Whether the counts could be those of so many rows.
    bool is_sound(std::int64_t n_rows) const noexcept {
        std::int64_t left = n_rows;
        for (const std::int64_t count : rows) {
            if (count < 0 || count > left) return false;
            left -= count;
        }
        return true;
    }

    std::int64_t rows[N_BINS] = {};

private:
    static std::int64_t bin(double distance) noexcept { return std::min(static_cast<std::int64_t>(64.0 * distance), N_BINS - 1); }
};

}  // namespace mlca::MLCA_LEVEL
