// Selection of a few order statistics without sorting, for the knots of similarity/ranks.hpp.
//
// Values are first distributed into parts of equal width, without data-dependent branches. Only the parts that contain
// wanted positions are then processed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/level.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class Selection {
public:
    static constexpr std::int64_t MOST_WANTED = 17;

    // Working memory, which grows to the number of values.
    struct Space {
        Array<double> dealt;
        Array<std::uint16_t> places;
    };

    // Write to `found` the values that would be at the positions in `wanted` (ascending) after sorting. The range
    // between the smallest and the largest value is divided evenly into parts. Parts that contain wanted positions are
    // divided again, until they have few values. Every step is monotonic in the value, including rounding, so the
    // result is exact.
    static void select(const double* values, std::int64_t n, const std::int64_t* wanted, std::int64_t n_wanted, double* found, Space& space) {
        grow_to(space.dealt, 2 * n + 64);
        grow_to(space.places, n);
        if (n < FEWEST_PARTED) {
            std::copy_n(values, n, space.dealt.data());
            select_here(space.dealt.data(), n, wanted, n_wanted, 0, found);
        } else {
            select_parts(values, n, wanted, n_wanted, 0, found, space.dealt.data(), space.places.data());
        }
    }

private:
    static constexpr std::int64_t N_PARTS = 512;
    static constexpr std::int64_t FEWEST_PARTED = 65;
    static constexpr std::int64_t MOST_COUNTED = 64;  // one bit per value in a mask
    static constexpr std::int64_t EIGHT = 8;
    using Eight [[gnu::vector_size(EIGHT * sizeof(double))]] = double;
    using EightPlaces [[gnu::vector_size(EIGHT * sizeof(double))]] = std::int64_t;

    // Select from values that may be reordered; the smallest of them has position `before` among all values.
    static void select_here(double* values, std::int64_t n, const std::int64_t* wanted, std::int64_t n_wanted, std::int64_t before, double* found) {
        std::int64_t places[MOST_WANTED] = {};
        for (std::int64_t i = 0; i < n_wanted; ++i) places[i] = wanted[i] - before;
        if (n <= MOST_COUNTED) {
            double at_place[MOST_COUNTED];
            const std::uint64_t taken = sort_few(values, n, at_place);
            for (std::int64_t i = 0; i < n_wanted; ++i) found[i] = at_place[std::bit_width(taken & ((std::uint64_t{2} << places[i]) - 1)) - 1];
            return;
        }
        select_within(values, 0, n, places, places + n_wanted);
        for (std::int64_t i = 0; i < n_wanted; ++i) found[i] = values[places[i]];
    }

    // Put each value at the position given by the number of smaller values, counted for eight values at once. Equal
    // values share one position and leave the following ones empty; an empty position stands for the value at the last
    // filled position before it. Return a bit mask of the filled positions. (Separate positions for equal values would
    // need loops of variable length and take twice the time: 3.7 instead of 1.6 microseconds per row when Scene is
    // learned.)
    static std::uint64_t sort_few(const double* values, std::int64_t n, double* at_place) noexcept {
        double some[MOST_COUNTED];
        std::copy_n(values, n, some);
        std::fill(some + n, some + MOST_COUNTED, std::numeric_limits<double>::max());
        std::uint64_t taken = 0;
        for (std::int64_t first = 0; first < n; first += EIGHT) {
            Eight eight;
            std::memcpy(&eight, some + first, sizeof eight);
            EightPlaces places{};
            for (std::int64_t j = 0; j < n; ++j) places -= some[j] < eight;  // a vector comparison yields -1 for true
            for (std::int64_t i = 0; i < std::min(EIGHT, n - first); ++i) {
                at_place[places[i]] = eight[i];
                taken |= std::uint64_t{1} << places[i];
            }
        }
        return taken;
    }

    // Select by dividing the values into parts. `room` has space for slightly more than 2 n values; `places` receives
    // the part of each value.
    static void select_parts(const double* __restrict values, std::int64_t n, const std::int64_t* wanted, std::int64_t n_wanted,
                             std::int64_t before, double* found, double* __restrict room, std::uint16_t* __restrict places) {
        if (n_wanted == 0) return;
        double least = values[0], largest = values[0];
        for (std::int64_t i = 1; i < n; ++i) {
            least = values[i] < least ? values[i] : least;
            largest = values[i] > largest ? values[i] : largest;
        }
        if (least == largest) {
            std::fill_n(found, n_wanted, least);
            return;
        }
        // Parts cannot be computed if a difference or its inverse could overflow.
        if (least < -0x1p999 || largest > 0x1p999 || largest - least < 0x1p-999) {
            std::copy_n(values, n, room);
            select_here(room, n, wanted, n_wanted, before, found);
            return;
        }
        const std::int64_t n_divided = n < N_PARTS ? N_PARTS / 4 : N_PARTS;  // with few values, the loop over parts dominates
        const double parts_per_unit = static_cast<double>(n_divided - 1) / (largest - least);
        std::int32_t next[N_PARTS + 1] = {}, step[N_PARTS] = {};
        for (std::int64_t i = 0; i < n; ++i) places[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>((values[i] - least) * parts_per_unit));
        for (std::int64_t i = 0; i < n; ++i) ++next[places[i] + 1];
        struct Part {
            std::int64_t start, length, before, first, n_wanted;
        };
        Part parts[MOST_WANTED];
        std::int64_t n_parts = 0, n_dealt = 0, first = 0, sum = 0;
        for (std::int64_t part = 0; part < n_divided; ++part) {
            const std::int64_t length = next[part + 1];
            sum += length;
            next[part] = -1;
            if (first == n_wanted || wanted[first] - before >= sum) continue;
            std::int64_t end = first;
            while (end < n_wanted && wanted[end] - before < sum) ++end;
            parts[n_parts++] = {n_dealt, length, before + sum - length, first, end - first};
            next[part] = static_cast<std::int32_t>(n_dealt);
            step[part] = 1;
            n_dealt += length;
            first = end;
        }
        // Copy the values of each wanted part to consecutive positions. All other values are written to the one
        // position after these, where they overwrite each other.
        for (std::int64_t part = 0; part < n_divided; ++part) next[part] = next[part] < 0 ? static_cast<std::int32_t>(n_dealt) : next[part];
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t part = places[i];
            room[next[part]] = values[i];
            next[part] += step[part];
        }
        for (std::int64_t i = 0; i < n_parts; ++i) {
            const Part& part = parts[i];
            if (part.length < FEWEST_PARTED || 2 * part.length > n) {
                select_here(room + part.start, part.length, wanted + part.first, part.n_wanted, part.before, found + part.first);
            } else {
                select_parts(room + part.start, part.length, wanted + part.first, part.n_wanted, part.before, found + part.first, room + n_dealt,
                    places);
            }
        }
    }

    static void select_within(double* values, std::int64_t low, std::int64_t high, const std::int64_t* first, const std::int64_t* end) {
        if (first == end) return;
        const std::int64_t* middle = first + (end - first) / 2;
        std::nth_element(values + low, values + *middle, values + high);
        select_within(values, low, *middle, first, middle);
        select_within(values, *middle + 1, high, middle + 1, end);
    }
};

}  // namespace mlca::MLCA_LEVEL
