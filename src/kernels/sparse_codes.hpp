// A closer look at a sparse node: a lower bound that is nearly the sum, from the node's values in sixteen bits.
//
// A value v is kept as the whole number nearest to v g, at most 32,767 to either side, with one factor g for all attributes. Rounding moves
// it by 1/2, and what is cut off brings two values nearer to each other, never farther: so |x - y| g is at least |code of x - code of y| - 1.
// From that comes a term by the polynomial of the tables (tables.hpp), less SLACK, rounded down to multiples of 2^-15. What the
// row has by itself at the node's attributes is taken off, rounded up; both halves of it, code and term, lie in one word for each attribute,
// so that a node costs one look-up an entry, in a table that fits the first cache. All is a lower bound whatever g is.
//
// On rows of EURLex-4K's shape it leaves few of the nearly 200 nodes that pass the bounds to exact sums, whose doubles come from
// memory: together with 64 nodes a part a search takes six tenths of the time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

class SparseCodes {
public:
    static constexpr std::int64_t PART_NODES = 64;

    // Drop all codes; those to come are for values of about this size.
    void clear(double largest) noexcept {
        parts_.clear();
        per_value_ = largest > 1e-290 ? MOST / largest : 1.0;
    }

    // Room for the next part's codes, so many in all; `write` takes it over.
    Array<std::int16_t> make_room(std::int64_t n_pairs) {
        if (parts_.size() == parts_.capacity()) parts_.reserve(2 * parts_.size() + 16);
        Array<std::int16_t> codes;
        codes.reserve(static_cast<std::size_t>(n_pairs));
        return codes;
    }

    // Write the next part: nodes from `first` on. It cannot fail.
    template <class Nodes>
    void write(std::int64_t first, const Nodes& nodes, Array<std::int16_t> codes) noexcept {
        Part part;
        for (std::int64_t k = 0; k < PART_NODES; ++k) {
            const auto y = nodes(first + k);
            part.starts[k] = static_cast<std::int32_t>(codes.size());
            for (std::int64_t j = 0; j < y.n; ++j) codes.push_back(code(y.values[j]));
        }
        part.codes = std::move(codes);
        parts_.push_back(std::move(part));
    }

    // The codes of a node, as many as it had non-zeros when it was written.
    const std::int16_t* operator[](std::int64_t node) const noexcept {
        const Part& part = parts_[static_cast<std::size_t>(node / PART_NODES)];
        return part.codes.data() + part.starts[node % PART_NODES];
    }

    // What a look has to know of one of the row's attributes; `alone` is its term against zero.
    std::uint32_t word(double x, double alone) const noexcept {
        const auto term = static_cast<std::uint32_t>(std::ceil(alone * A_TERM));
        return term << 16 | static_cast<std::uint16_t>(code(x));
    }

    // How far apart two codes have to be for a difference of 1 in z, the root of the exponent; the inverse, a little less.
    float shrinking(double r) const noexcept { return static_cast<float>(std::min(r / per_value_ * (1.0 - 1e-6), 4.0)); }

    // A lower bound of what a node changes in the sum of a row against zeros, in units: `words` are the row's by attribute, 0 for others.
    static std::int64_t lower(const std::int32_t* keys, const std::int16_t* codes, std::int64_t n, const std::uint32_t* words, float shrinking) noexcept {
        std::int64_t total = 0;
        for (std::int64_t first = 0; first < n; first += STRETCH) total += lower_part(keys + first, codes + first, std::min(STRETCH, n - first), words, shrinking);
        return total * static_cast<std::int64_t>(PER_UNIT / A_TERM);
    }

    // About how much more than the bound the sum of a row of n non-zeros is. However coarse the codes, few of them are equal.
    static std::int64_t looseness(std::int64_t n, float shrinking) noexcept {
        return static_cast<std::int64_t>(static_cast<double>(n) * (2e-4 + std::min(0.25 * static_cast<double>(shrinking), 1e-3)) * PER_UNIT);
    }

private:
    static constexpr double MOST = 32767.0, A_TERM = 0x1p15;
    static constexpr std::int64_t STRETCH = 256;

    struct Part {
        Array<std::int16_t> codes;
        std::int32_t starts[PART_NODES];
    };

    std::int16_t code(double value) const noexcept {
        return static_cast<std::int16_t>(std::nearbyint(std::clamp(value * per_value_, -MOST, MOST)));
    }

    [[gnu::noinline]] static std::int64_t lower_part(const std::int32_t* __restrict keys, const std::int16_t* __restrict codes, std::int64_t n,
                                                     const std::uint32_t* __restrict words, float shrinking) noexcept {
        std::uint32_t gathered[STRETCH];
        for (std::int64_t p = 0; p < n; ++p) gathered[p] = words[keys[p]];
        std::int32_t total = 0;
        for (std::int64_t p = 0; p < n; ++p) {
            const std::int32_t apart = std::abs(static_cast<std::int16_t>(gathered[p]) - codes[p]) - 1;
            const float far = static_cast<float>(apart > 0 ? apart : 0) * shrinking;
            const float z = far < 3.7416f ? far : 3.7416f;
            const float term = 1.0f - SLACK - rough_power(z * z);
            total += static_cast<std::int32_t>((term > 0.0f ? term : 0.0f) * static_cast<float>(A_TERM)) - static_cast<std::int32_t>(gathered[p] >> 16);
        }
        return total;
    }

    Array<Part> parts_;
    double per_value_ = 1.0;
};

}  // namespace mlca::MLCA_LEVEL
