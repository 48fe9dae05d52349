// Postings: lower bounds on a row's sums with all sparse nodes, computed from lists of the nodes that have each
// feature. For each of the row's features, this takes one byte shuffle per group of nodes, or one addition per node if
// few nodes have the feature.
//
// Used in MLCA for sparse rows that are not all ones, with `screen_from` nodes or more. For rows of ones, bitmaps are
// used (search/bitmap_counts.hpp); MLCA-I and MLCA-C compute the exact sums of all sparse nodes.
//
// With t(v) = 1 - 2^-(v r)^2, the sum of a row x and a node y is
//     sum over x's non-zeros of t(x_i)  +  sum over y's non-zeros of t(y_i)
//     -  sum over shared non-zeros of t(x_i) + t(y_i) - t(x_i - y_i).
// The first part depends on the row alone. The second depends on the node alone. It is stored for an r0 near the
// current r, and gives a lower bound for any r:
//     t grows with r, so for r >= r0 the sum for r0 is a lower bound. For r < r0, t is a concave function of r^2 that
//       is 0 at 0, so the sum for r is at least (r / r0)^2 times that for r0.
// The third is the *saving* by shared features. Only the cell of a node's value is known; the 15 cells are the same for
// all features, as is r. If y is in [low, high], the saving is at most t(x) + t(the larger of |low|, |high|) -
// t(distance of x from [low, high]). For each of the row's features, a table gives this value, rounded up to a byte.
// Cell 0 means that the node's value is zero, so nothing is saved. Negative savings, of values with opposite signs, are
// replaced by 0. For values outside all cells, the largest |y| would be wrong, so the outer cells are extended with
// each node that is written.
//
// Nodes are written in parts of 64, when a part is full. Exact sums are computed for newer nodes; nodes that have moved
// since they were written have the bound 0. Four parts form a tile. If at least 3 nodes of a part have a feature, their
// cells are stored in a *run*: 128 bytes with four bits for each node of the tile. Later parts of the tile use the same
// run. Otherwise, the feature has one entry per node. No step takes time proportional to d.
//
// Most of the time is spent on memory access. So lists are prefetched a few features ahead, and features with runs in
// all tiles are added four at a time, so that sums are loaded and stored only once for all four. For nodes that pass,
// tighter bounds are computed (`SparseCodes`).
//
// With rows like those of EURLex-4K (236 of 5,000 features are non-zero, 58 of them also in a node on average), 2.4 %
// of 7,770 nodes pass. A search takes 223 microseconds: 90 to compute bounds, the rest to read runs from memory, 700 kB
// per row. Processing tile by tile with all sums in registers is not faster, because a tile's runs are scattered in
// memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/fixed_point.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"
#include "base/pair_rows.hpp"
#include "search/lookup_tables.hpp"
#include "search/neighbour_index.hpp"
#include "search/scan_codes.hpp"
#include "search/screening.hpp"

namespace mlca::MLCA_LEVEL {

// The terms of some features, each with its own factor: differences are first gathered, then terms are computed by
// vectors.
//
// In sparse rows, features are found by lookups, which prevent a loop from being vectorised. Terms of MLCA-I take a
// fifth of the time if differences are gathered first.
class Terms {
public:
    // Reserve memory for the terms of n features.
    void reserve(std::int64_t n) {
        grow_to(differences_, n);
        grow_to(factors_, n);
        grow_to(values_, n);
    }

    // Set the difference and the factor of one term. `__restrict` is omitted, because with it lookups of features would
    // be vectorised, which is half as fast.
    void put(std::int64_t place, double difference, double factor) noexcept {
        differences_[place] = difference;
        factors_[place] = factor;
    }

    // Compute the first n terms of MLCA-C; the caller then takes means per group and their roots.
    [[gnu::noinline]] const std::int64_t* compute(std::int64_t n) noexcept {
        const double* __restrict t = differences_.data();
        const double* __restrict r = factors_.data();
        std::int64_t* __restrict values = values_.data();
        for (std::int64_t p = 0; p < n; ++p) values[p] = dissimilarity(t[p], r[p]);
        return values;
    }

    // The sum of the first n terms of MLCA-I.
    std::int64_t sum_of_roots(std::int64_t n) const noexcept { return gathered_roots(differences_.data(), factors_.data(), n); }

private:
    Array<double> differences_, factors_;
    Array<std::int64_t> values_;
};

// Tighter bounds for sparse nodes: lower bounds that are close to the sums, computed from sixteen-bit codes of the
// nodes' values.
//
// The code of a value v is v g, rounded to the nearest integer and clamped to [-32,767, 32,767]; the factor g is the
// same for all features. Rounding changes v g by at most 1/2, and clamping only moves two values closer together, so |x
// - y| g is at least |code of x - code of y| - 1. From this, the polynomial of search/lookup_tables.hpp computes a
// term, from which SLACK is subtracted and which is rounded down to a multiple of 2^-15. The row's terms against zero
// at the node's features are rounded up and subtracted. For each feature, the row's code and term are packed into one
// word, so that each entry of a node takes one lookup in a table that fits into the first-level cache. The result is a
// lower bound for any g.
//
// With rows like those of EURLex-4K, nearly 200 nodes pass the first bounds; after these tighter ones, only a few need
// exact sums.
class SparseCodes {
public:
    static constexpr std::int64_t PART_NODES = 64;

    // Remove all codes; new ones will be scaled for values with magnitudes of up to about `largest`.
    void clear(double largest) noexcept {
        parts_.clear();
        per_value_ = largest > 1e-290 ? MOST / largest : 1.0;
    }

    // Return memory for the n_pairs codes of the next part, to be passed to `write`.
    Array<std::int16_t> make_room(std::int64_t n_pairs) {
        if (parts_.size() == parts_.capacity()) parts_.reserve(2 * parts_.size() + 16);
        Array<std::int16_t> codes;
        codes.reserve(n_pairs);
        return codes;
    }

    // Write the codes of the next part, whose first node is `first`. This cannot fail.
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

    // The codes of a node, one per non-zero at the time of writing.
    const std::int16_t* operator[](std::int64_t node) const noexcept {
        const Part& part = parts_[node / PART_NODES];
        return part.codes.data() + part.starts[node % PART_NODES];
    }

    // The code and the term of one of the row's features, packed into a word; `alone` is the term against zero.
    std::uint32_t word(double x, double alone) const noexcept {
        const auto term = static_cast<std::uint32_t>(std::ceil(alone * A_TERM));
        return term << 16 | static_cast<std::uint16_t>(code(x));
    }

    // The factor that turns differences of codes into z, the square root of the exponent; rounded down slightly.
    float shrinking(double r) const noexcept { return static_cast<float>(std::min(r / per_value_ * (1.0 - 1e-6), 4.0)); }

    // A lower bound, in units, on the row's sum with a node minus its sum with a node of zeros. `words` holds one
    // packed word per feature, 0 for features that the row does not have.
    static std::int64_t lower(const std::int32_t* keys, const std::int16_t* codes, std::int64_t n, const std::uint32_t* words,
        float shrinking) noexcept {
        std::int64_t total = 0;
        for (std::int64_t first = 0; first < n; first += STRETCH)
            total += lower_part(keys + first, codes + first, std::min(STRETCH, n - first), words, shrinking);
        return total * static_cast<std::int64_t>(PER_UNIT / A_TERM);
    }

    // Typical gap between the bound and the sum, for a row of n non-zeros. Coarser codes widen the gap only up to a
    // limit, because few codes are equal.
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
            total += static_cast<std::int32_t>((term > 0.0f ? term : 0.0f) * static_cast<float>(A_TERM)) -
                     static_cast<std::int32_t>(gathered[p] >> 16);
        }
        return total;
    }

    Array<Part> parts_;
    double per_value_ = 1.0;
};

class Postings {
public:
    static constexpr std::int64_t PART_NODES = SparseCodes::PART_NODES, TILE_NODES = 256;

    // Working memory of a search.
    struct Space {
        Array<double> alone;
        Array<OneFeature::Sums> sums;
        Array<std::uint16_t> saved, few;
        Array<std::int64_t> totals;
        Array<std::uint32_t> words;
    };

    // Number of nodes written; exact sums are computed for newer nodes.
    std::int64_t written() const noexcept { return n_written_; }

    // All features of written nodes are below this.
    std::int64_t n_keys() const noexcept { return runs_.size(); }

    // The codes of written nodes.
    const SparseCodes& codes() const noexcept { return codes_; }
    // Whether a node's code is valid: the node has been written, and has not moved since.
    bool knows(std::int64_t node) const noexcept { return node < written() && alone_[node] >= 0.0f; }

    // Write all full parts of the first n nodes, and update the stored sums to r, a value typical of the next rows.
    // nodes(node) returns the keys, the values and the number n of a node's non-zeros. If this fails, bounds remain
    // valid.
    template <class Nodes>
    void prepare(std::int64_t n_nodes, double r, const Nodes& nodes) {
        if (n_nodes < TILE_NODES) return;
        if (n_nodes >= 2 * built_from_) rebuild(n_nodes, nodes);
        while (written() + PART_NODES <= n_nodes) write_part(nodes);
        refresh(r, nodes);
    }

    // Whether `prepare` has work to do.
    bool due(std::int64_t n_nodes, double r) const noexcept {
        return n_nodes >= std::max(TILE_NODES, written() + PART_NODES) || (written() > 0 && is_stale(r));
    }

    // Invalidate the written data of a node that has moved.
    void forget(std::int64_t node) noexcept {
        if (node < written()) alone_[node] = FORGOTTEN;
    }

    // Compute the bounds on the sums of one row with all written nodes; return the number of units per bound step.
    template <class Row>
    std::int64_t bound_all(const Row& x, double r, std::uint16_t* bounds, Space& space) const {
        grow_to(space.alone, x.n);
        for (std::int64_t p = 0; p < x.n; ++p) space.alone[p] = static_cast<double>(dissimilarity(x.values[p], r)) * UNIT;
        const double row_alone = std::accumulate(space.alone.begin(), space.alone.begin() + x.n, 0.0);
        // The saving by a feature is at most two terms. It is quantised in 254 steps, or fewer if the row is so long
        // that the sum of its savings could exceed 16 bits.
        const double entries = std::min(126.9, 32767.0 / static_cast<double>(std::max<std::int64_t>(x.n, 1)) - 1.0);
        if (entries < 1.0) {
            std::fill_n(bounds, written(), std::uint16_t{0});
            return 1;
        }
        open(space);
        const Edges edges(*this, r);
        alignas(16) std::uint8_t tables[TOGETHER_ADDED * TABLE];
        const Run* runs_of[TOGETHER_ADDED];
        const auto n_tiles = static_cast<std::int32_t>(rounded_up(written(), TILE_NODES) / TILE_NODES);
        int n_open = 0;  // number of features with runs in all tiles that wait to be added together
        for (std::int64_t p = 0; p < x.n; ++p) {
            fetch_lists(x, p);
            if (x.keys[p] >= runs_.size()) continue;
            std::uint8_t* table = tables + TABLE * n_open;
            edges.fill(x.values[p], r, space.alone[p], static_cast<float>(entries), table);
            const auto& few = few_[x.keys[p]];
            for (std::int32_t k = 0; k < few.length; ++k) {
                std::uint16_t& saved = space.few[few.keys[k]];
                saved = static_cast<std::uint16_t>(saved + table[few.values[k]]);
            }
            const auto& runs = runs_[x.keys[p]];
            runs_of[n_open] = runs.values;
            if (runs.length < n_tiles) {
                for (std::int32_t k = 0; k < runs.length; ++k) add_up<1>(table, runs_of + n_open, k, runs.keys[k], space);
            } else if (++n_open == TOGETHER_ADDED) {
                for (std::int32_t k = 0; k < n_tiles; ++k) add_up<TOGETHER_ADDED>(tables, runs_of, k, k, space);
                n_open = 0;
            }
        }
        for (int left = 0; left < n_open; ++left) {
            for (std::int32_t k = 0; k < n_tiles; ++k) add_up<1>(tables + TABLE * left, runs_of + left, k, k, space);
        }
        return finish(row_alone, r, entries, bounds, space);
    }

private:
    static constexpr std::int64_t RUN = TILE_NODES / 2, FEWEST_FOR_RUN = 3;
    // Number of runs to prefetch, because all runs together do not fit into the caches; and number of features with
    // runs in all tiles whose savings are added together.
    static constexpr std::int32_t AHEAD = 8;
    static constexpr int TOGETHER_ADDED = 4;

    // The cells of a tile's nodes in one feature: node j in the low bits of byte j, node j + 128 in its high bits.
    struct Run {
        std::uint8_t bytes[RUN];
    };
    static constexpr std::int64_t N_CUTS = 14, SAMPLE = 4096;
    static constexpr float FORGOTTEN = -1.0f;

    // The boundaries of the cells, and for each cell the largest term of its values against zero.
    struct Edges {
        static constexpr std::int64_t N = N_CUTS + 2;
        double at[N];
        float largest[TABLE];

        Edges(const Postings& postings, double r) {
            at[0] = postings.least_;
            std::copy_n(postings.cuts_, N_CUTS, at + 1);
            at[N_CUTS + 1] = postings.most_;
            float similar[N];
            powers(0.0, r, similar);
            largest[0] = 0.0f;
            for (std::int64_t c = 1; c < TABLE; ++c) largest[c] = 1.0f - std::min(similar[c - 1], similar[c]);
        }

        // Approximates 2^-((x - edge) r)^2 for each edge, in loops that the compiler vectorises.
        void powers(double x, double r, float* similar) const noexcept {
            float w[N];
            for (std::int64_t k = 0; k < N; ++k) {
                const double z = (x - at[k]) * r, square = z * z;
                w[k] = static_cast<float>(square < 14.0 ? square : 14.0);
            }
            for (std::int64_t k = 0; k < N; ++k) similar[k] = rough_power(w[k]);
        }

        // Write the largest possible saving by a shared feature, for each cell of the node's value, rounded up. `alone`
        // is the term of x against zero.
        void fill(double x, double r, double alone, float entries, std::uint8_t* table) const noexcept {
            float similar[N], nearest[TABLE];
            powers(x, r, similar);
            std::int64_t cell = 0;
            for (std::int64_t k = 0; k < N; ++k) cell += at[k] <= x;
            nearest[0] = 0.0f;
            for (std::int64_t c = 1; c < TABLE; ++c) nearest[c] = similar[c - 1] > similar[c] ? similar[c - 1] : similar[c];
            if (cell < TABLE) nearest[cell] = 1.0f;
            const auto base = static_cast<float>(alone - 1.0) + 4.0f * SLACK;
            std::int32_t steps[TABLE];
            for (std::int64_t c = 0; c < TABLE; ++c) {
                const float saving = base + largest[c] + nearest[c];
                steps[c] = static_cast<std::int32_t>((saving > 0.0f ? saving : 0.0f) * entries) + 1;
            }
            for (std::int64_t c = 1; c < TABLE; ++c) table[c] = static_cast<std::uint8_t>(steps[c]);
            table[0] = 0;
        }
    };

    // Whether the stored sums, which are for r0, give loose bounds for r.
    bool is_stale(double r) const noexcept { return r < 0.995 * r0_ || r > 1.03 * r0_; }

    // The cell of a value, 1 to 15. Cell 0 is for nodes without the feature.
    std::uint8_t cell(double value) const noexcept {
        int count = 1;
        for (const double cut : cuts_) count += cut <= value;
        return static_cast<std::uint8_t>(count);
    }

    // Set the boundaries of the cells to quantiles of a sample of the nodes' values, and discard all nodes written so
    // far.
    template <class Nodes>
    void rebuild(std::int64_t n_nodes, const Nodes& nodes) {
        Array<double> sample;
        sample.reserve(2 * SAMPLE);
        const std::int64_t each = std::max<std::int64_t>(1, SAMPLE / n_nodes), step = std::max<std::int64_t>(1, n_nodes / SAMPLE);
        for (std::int64_t k = 0; k < n_nodes; k += step) {
            const auto y = nodes(k);
            for (std::int64_t j = 0; j < std::min<std::int64_t>(each, y.n); ++j) sample.push_back(y.values[(k + j * 97) % y.n]);
        }
        std::sort(sample.begin(), sample.end());
        for (std::int64_t i = 0; i < runs_.size(); ++i) runs_[i].length = few_[i].length = 0;
        n_written_ = 0;
        least_ = most_ = largest_alone_ = 0.0;
        codes_.clear(sample.empty() ? 0.0 : std::max(std::abs(sample.front()), std::abs(sample.back())));
        for (std::size_t j = 0; j < N_CUTS && !sample.empty(); ++j) cuts_[j] = sample[(j + 1) * sample.size() / (N_CUTS + 1)];
        built_from_ = n_nodes;
    }

    bool has_run(std::int64_t feature, std::int64_t tile) const noexcept {
        const auto& runs = runs_[feature];
        return runs.length > 0 && runs.keys[runs.length - 1] == tile;
    }

    // Write the next part. All steps that can fail come first.
    template <class Nodes>
    void write_part(const Nodes& nodes) {
        const std::int64_t first = written(), end = first + PART_NODES, tile = first / TILE_NODES;
        std::int64_t n_keys = runs_.size(), n_pairs = 0;
        for (std::int64_t k = first; k < end; ++k) {
            const auto y = nodes(k);
            for (std::int64_t j = 0; j < y.n; ++j) n_keys = std::max<std::int64_t>(n_keys, y.keys[j] + std::int64_t{1});
            n_pairs += y.n;
        }
        grow_to(owners_, n_keys, std::int32_t{0});
        runs_.resize(n_keys);
        few_.resize(n_keys);
        grow_to(alone_, end, 0.0f);
        Array<std::int16_t> codes = codes_.make_room(n_pairs);
        Array<std::int32_t> features;
        features.reserve(n_pairs);
        for (std::int64_t k = first; k < end; ++k) {
            const auto y = nodes(k);
            for (std::int64_t j = 0; j < y.n; ++j) {
                if (owners_[y.keys[j]]++ == 0) features.push_back(y.keys[j]);
            }
        }
        try {
            for (const std::int32_t i : features) {
                const std::int32_t n = owners_[i];
                if (has_run(i, tile)) continue;
                if (n >= FEWEST_FOR_RUN) {
                    runs_.make_room(i, 1);
                } else {
                    few_.make_room(i, n);
                }
            }
        } catch (...) {
            for (const std::int32_t i : features) owners_[i] = 0;
            throw;
        }
        for (const std::int32_t i : features) {
            if (!has_run(i, tile) && owners_[i] >= FEWEST_FOR_RUN) runs_.append(i, static_cast<std::int32_t>(tile), Run{});
        }
        for (std::int64_t k = first; k < end; ++k) write_node(k, nodes(k));
        for (const std::int32_t i : features) owners_[i] = 0;
        codes_.write(first, nodes, std::move(codes));
        n_written_ = end;
    }

    template <class Row>
    void write_node(std::int64_t node, const Row& y) noexcept {
        const std::int64_t tile = node / TILE_NODES, place = node % TILE_NODES;
        for (std::int64_t j = 0; j < y.n; ++j) {
            const std::int32_t i = y.keys[j];
            const std::uint8_t code = cell(y.values[j]);
            least_ = std::min(least_, y.values[j]);
            most_ = std::max(most_, y.values[j]);
            if (has_run(i, tile)) {
                auto& runs = runs_[i];
                std::uint8_t& byte = runs.values[runs.length - 1].bytes[place % RUN];
                byte = static_cast<std::uint8_t>(byte | (place < RUN ? code : code << 4));
            } else {
                few_.append(i, static_cast<std::int32_t>(node), code);
            }
        }
        alone_[node] = alone(y);
    }

    // A node's sum with a row of zeros for r0, rounded down slightly.
    template <class Row>
    float alone(const Row& y) noexcept {
        std::int64_t total = 0;
        for (std::int64_t j = 0; j < y.n; ++j) total += dissimilarity(y.values[j], r0_);
        const double sum = static_cast<double>(total) * UNIT;
        largest_alone_ = std::max(largest_alone_, sum);
        return static_cast<float>(sum * (1.0 - 1e-6));
    }

    template <class Nodes>
    void refresh(double r, const Nodes& nodes) noexcept {
        if (!is_stale(r)) return;
        r0_ = 0.995 * r;
        for (std::int64_t k = 0; k < written(); ++k) {
            float& sum = alone_[k];
            if (sum >= 0.0f) sum = alone(nodes(k));
        }
    }

    void open(Space& space) const {
        const std::int64_t room = rounded_up(written(), TILE_NODES);
        grow_to(space.saved, room);
        space.few.assign(room, std::uint16_t{0});
        space.sums.assign(room / OneFeature::WIDTH, OneFeature::Sums{});
    }

    // Prefetch lists of the row's next features: the headers of lists that are needed a little later, and the
    // beginnings of lists that are needed soon.
    template <class Row>
    [[gnu::always_inline]] void fetch_lists(const Row& x, std::int64_t p) const noexcept {
        constexpr std::int64_t FAR = 16, NEAR = 8;
        if (p + FAR < x.n && x.keys[p + FAR] < runs_.size()) {
            __builtin_prefetch(&runs_[x.keys[p + FAR]]);
            __builtin_prefetch(&few_[x.keys[p + FAR]]);
        }
        if (p + NEAR < x.n && x.keys[p + NEAR] < runs_.size()) {
            const auto& runs = runs_[x.keys[p + NEAR]];
            const auto& few = few_[x.keys[p + NEAR]];
            fetch_row(reinterpret_cast<const std::uint8_t*>(runs.values), std::min(runs.length, AHEAD) * RUN);  // may be empty
            fetch_row(runs.keys, std::min(runs.length, AHEAD));
            fetch_row(few.keys, std::min(few.length, 64));
            fetch_row(few.values, std::min(few.length, 64));
        }
    }

    // Add the savings by N features to the sums of a tile's nodes.
    template <int N>
    [[gnu::always_inline]] static void add_up(const std::uint8_t* tables, const Run* const* runs, std::int32_t k, std::int64_t tile,
        Space& space) noexcept {
        for (int j = 0; j < N; ++j) fetch_row(runs[j][k].bytes + AHEAD * RUN, RUN);
        constexpr std::int64_t HALF = RUN / OneFeature::WIDTH;
        OneFeature::Sums* sums = space.sums.data() + 2 * HALF * tile;
        for (std::int64_t side = 0; side < HALF; ++side) {
            OneFeature::Sums low = sums[side], high = sums[HALF + side];
#pragma GCC unroll 4
            for (int j = 0; j < N; ++j) {
                const OneFeature::Bytes entries = OneFeature::table(tables + TABLE * j);
                const OneFeature::Bytes both = OneFeature::load(runs[j][k].bytes + OneFeature::WIDTH * side);
                low.add(OneFeature::look_up(entries, OneFeature::low(both)));
                high.add(OneFeature::look_up(entries, OneFeature::high(both)));
            }
            sums[side] = low;
            sums[HALF + side] = high;
        }
    }

    // Combine the three parts of the bounds (see the top of this file), rounded down.
    std::int64_t finish(double row_alone, double r, double entries, std::uint16_t* bounds, Space& space) const noexcept {
        for (std::size_t k = 0; k < space.sums.size(); ++k)
            space.sums[k].write(0, false, space.saved.data() + OneFeature::WIDTH * static_cast<std::int64_t>(k));
        const double share = r < r0_ ? (r / r0_) * (r / r0_) * (1.0 - 1e-6) : 1.0;
        const double largest = row_alone + largest_alone_ + 1e-3;
        const double steps = 65000.0 / largest;
        const auto base = static_cast<float>((row_alone - 1e-6 * largest) * steps), factor = static_cast<float>(share * steps);
        const auto back = static_cast<float>(steps / entries * (1.0 + 1e-6));
        const std::uint16_t* __restrict saved = space.saved.data();
        const std::uint16_t* __restrict few = space.few.data();
        const float* __restrict alone = alone_.data();
        for (std::int64_t k = 0; k < written(); ++k) {
            const float left = base + factor * alone[k] - back * static_cast<float>(saved[k] + few[k]) - 0.05f;
            const bool known = alone[k] >= 0.0f && left > 0.0f;
            bounds[k] = static_cast<std::uint16_t>(static_cast<std::int32_t>(known ? left : 0.0f));
        }
        return static_cast<std::int64_t>(PER_UNIT / steps);
    }

    double cuts_[N_CUTS] = {};
    // The range of all values written, the largest sum of a node with zeros, and the r0 of these sums.
    double least_ = 0.0, most_ = 0.0, largest_alone_ = 0.0, r0_ = 1.0;
    std::int64_t built_from_ = 0, n_written_ = 0;
    PairRows<Run> runs_;           // per feature: cells by tile
    PairRows<std::uint8_t> few_;   // per feature: cells by node, where few nodes have the feature
    SparseCodes codes_;
    Array<float> alone_;
    Array<std::int32_t> owners_;  // working memory of write_part, zero between uses
};

// The row's sum with a node, which has the non-zeros y, minus the row's sum with a node of zeros. x[key] and alone[key]
// hold the row's values and its terms against zero, scattered over all features. Differences are gathered first, so
// that terms are computed by vectors, which is three times as fast as a single loop.
template <class Row>
[[gnu::noinline]] std::int64_t gathered_correction(const Row& y, const double* __restrict x, const std::int64_t* __restrict alone, double r) {
    constexpr std::int64_t STRETCH = 256;
    double differences[STRETCH];
    std::int64_t total = 0;
    for (std::int64_t first = 0; first < y.n; first += STRETCH) {
        const std::int64_t n = std::min(STRETCH, static_cast<std::int64_t>(y.n) - first);
        const std::int32_t* __restrict keys = y.keys + first;
        const double* __restrict values = y.values + first;
        for (std::int64_t p = 0; p < n; ++p) {
            differences[p] = x[keys[p]] - values[p];
            total -= alone[keys[p]];
        }
        for (std::int64_t p = 0; p < n; ++p) total += dissimilarity(differences[p], r);
    }
    return total;
}

// The features in which two sparse rows are both non-zero: their positions in one row, and their values in the other.
struct SharedFeatures {
    Array<std::int32_t> places;
    Array<double> values;

    // Find the shared features and return their number; places_of[key] is 1 + the position of a feature in one row, or
    // 0 if that row does not have it. Every non-zero of the other row is written, and those that are not shared are
    // overwritten by the next one, because an unpredictable branch would be slower.
    template <class Row>
    std::int64_t find(const std::int32_t* places_of, const Row& other) {
        grow_to(places, other.n);
        grow_to(values, other.n);
        std::int64_t n = 0;
        for (std::int64_t p = 0; p < other.n; ++p) {
            const std::int32_t place = places_of[other.keys[p]];
            places[n] = place - 1;
            values[n] = other.values[p];
            n += place != 0;
        }
        return n;
    }
};

// A node's sum with row x minus its sum with a row of zeros, under the node's own factors. It depends only on the row's
// non-zeros and on the features that both have.
template <class Row>
[[gnu::noinline]] std::int64_t individual_correction(const Row& x, const double* factors, const SharedFeatures& shared, std::int64_t n_shared,
    Terms& both, Terms& own) {
    for (std::int64_t p = 0; p < x.n; ++p) both.put(p, x.values[p], factors[x.keys[p]]);
    for (std::int64_t p = 0; p < n_shared; ++p) {
        const std::int32_t place = shared.places[p];
        const double value = shared.values[p];
        both.put(place, x.values[place] - value, factors[x.keys[place]]);
        own.put(p, value, factors[x.keys[place]]);
    }
    return both.sum_of_roots(x.n) - own.sum_of_roots(n_shared);
}

// The distance sums between one row and the sparse nodes, as search/screening.hpp requests them. For nodes that are not
// in the postings yet, the exact sums are computed beforehand.
template <class Nodes, class Exact>
struct SparseSums {
    const Postings& postings;
    const Nodes& nodes;
    const Exact& sum;
    std::int64_t n_features, base, written;  // number of non-zeros, sum with zeros, written nodes
    float shrinking;
    const std::uint32_t* words;
    const std::int64_t* totals;  // sums of nodes not yet written

    std::int64_t exact(std::int64_t node) const { return node < written ? sum(node) : totals[node - written]; }
    [[gnu::always_inline]] void fetch(std::int64_t node) const {
        const auto y = nodes(node);
        fetch_row(y.keys, y.n);
        fetch_row(y.values, y.n);
    }
    std::int64_t lower(std::int64_t node) const {
        if (node >= written || !postings.knows(node)) return exact(node);
        const auto y = nodes(node);
        return base + SparseCodes::lower(y.keys, postings.codes()[node], y.n, words, shrinking);
    }
    [[gnu::always_inline]] void fetch_fine(std::int64_t node) const {
        if (node >= written) return;
        const auto y = nodes(node);
        fetch_row(y.keys, y.n);
        fetch_row(postings.codes()[node], y.n);
    }
    std::int64_t looseness() const { return SparseCodes::looseness(n_features, shrinking); }
};

// List the nearest of the first n nodes; nodes(node) returns a node's non-zeros, and exact(node) its exact sum. The
// exact sum may be smaller by up to `excess` than the sum of the values that were written, so `excess` is subtracted
// from all bounds.
template <class Row, class Nodes, class Exact>
void list_nearest_sparse(const Postings& postings, const Row& x, double r, std::int64_t excess, std::int64_t n_nodes, std::int64_t n_wanted,
    const Nodes& nodes,
                         const Exact& exact, Screening& screening, Postings::Space& space, TopK& nearest) {
    std::uint16_t* bounds = screening.bounds(0, std::max(n_nodes, postings.written()));
    const std::int64_t step = postings.bound_all(x, r, bounds, space);
    const std::int64_t written = std::min(postings.written(), n_nodes);
    if (excess > 0) {
        const auto steps = static_cast<std::uint16_t>(std::min<std::int64_t>(excess / step + 1, UINT16_MAX));
        for (std::int64_t k = 0; k < written; ++k) bounds[k] = static_cast<std::uint16_t>(bounds[k] > steps ? bounds[k] - steps : 0);
    }
    grow_to(space.totals, n_nodes - written);
    for (std::int64_t k = written; k < n_nodes; ++k) {
        const std::int64_t total = exact(k);
        space.totals[k - written] = total;
        bounds[k] = static_cast<std::uint16_t>(std::min<std::int64_t>(total / step, UINT16_MAX));
    }
    grow_to(space.words, std::max<std::int64_t>(postings.n_keys(), x.n > 0 ? x.keys[x.n - 1] + std::int64_t{1} : 0));
    std::int64_t base = -excess;
    const Scattered<std::uint32_t> scattered(space.words, {x.keys, x.values, x.n}, [&](std::int64_t p) {
        const double alone = space.alone[p];
        base += static_cast<std::int64_t>(alone * PER_UNIT);
        return postings.codes().word(x.values[p], alone);
    });
    const SparseSums<Nodes, Exact> sums{
        postings, nodes, exact, x.n, base, written, postings.codes().shrinking(r), space.words.data(), space.totals.data()};
    screening.list_nearest(0, n_nodes, step, n_wanted, sums, nearest);
}

}  // namespace mlca::MLCA_LEVEL
