// Sparse nodes by attribute: lower bounds at a shuffle for the owners of an attribute, or an addition each where they are few.
//
// With t(v) = 1 - 2^-(v r)^2, the sum of a row x and a node y is
//     sum over x's own of t(x_i)  +  sum over y's own of t(y_i)  -  sum over shared ones of t(x_i) + t(y_i) - t(x_i - y_i).
// The first part is the row's alone. The second, the node's alone, is kept for an r0 near the r of now; that serves any r:
//     t grows with r, so for r >= r0 the sum for r0 is a lower bound. For r < r0, t is a concave function of r^2 that is 0
//     at 0, so the sum for r is at least (r / r0)^2 times that for r0.
// The third is what sharing saves. A node's value is known by its cell, one of 15 that all attributes have in common (as
// they have r in common): with y in [low, high], the saving is at most t(x) + t(the larger of |low|, |high|) - t(distance of
// x from [low, high]), which a table gives for each of the row's attributes, rounded up to a byte. Cell 0 means that the
// node has nothing there and saves nothing. Where that is negative (signs differ) 0 is taken. Values outside of
// what the cells were made of would break the largest |y|, so the ends move with each node that is written.
//
// Nodes are written in tiles of 256 once a tile is full; younger ones, and those that have moved since, have the bound 0
// and are summed exactly. Where 8 or more nodes of a tile own an attribute it has four bits for each of the 256 (a run of
// 128 bytes), else an entry for each owner. No step takes time that grows with d.
//
// On rows of EURLex-4K's shape (236 of 5,000 attributes, of which 58 are shared on average) 2.4 % of 7,770 nodes pass, and a
// search takes a seventh of the time of exact sums at exp64's rate (a tenth with 15,500 nodes, two fifths with 2,000);
// the loop over all nodes took 2.5 times that time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "fixedpoint.hpp"
#include "level.hpp"
#include "memory.hpp"
#include "pairs.hpp"
#include "scan.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

class Postings {
public:
    static constexpr std::int64_t TILE_NODES = 256;

    // What one search needs.
    struct Space {
#if defined(MLCA_SHUFFLES)
        Array<OneAttribute::Sums> sums;
#endif
        Array<double> alone;
        Array<std::uint16_t> saved, few;
        Array<std::int64_t> totals;
    };

    // How many nodes are written; all younger ones are summed exactly.
    std::int64_t written() const noexcept { return static_cast<std::int64_t>(tiles_.size()) * TILE_NODES; }

    // Write all full tiles of the first n nodes, and bring up to date what depends on r, about that of the rows to come.
    // `nodes(node)` has the keys, the values and the number n of a node's non-zeros. A failure leaves bounds that hold.
    template <class Nodes>
    void prepare(std::int64_t n_nodes, double r, const Nodes& nodes) {
        if (n_nodes >= TILE_NODES && n_nodes >= 2 * built_from_) rebuild(n_nodes, nodes);
        while (written() + TILE_NODES <= n_nodes) write_tile(nodes);
        refresh(r, nodes);
    }

    // Whether `prepare` has something to do.
    bool due(std::int64_t n_nodes, double r) const noexcept {
        return n_nodes >= written() + TILE_NODES || (written() > 0 && is_stale(r));
    }

    // A node has moved: what is written of it is wrong.
    void forget(std::int64_t node) noexcept {
        if (node < written()) alone_[static_cast<std::size_t>(node)] = FORGOTTEN;
    }

    // The youngest nodes are withdrawn; so many are left.
    void withdraw(std::int64_t n_nodes) noexcept {
        while (written() > n_nodes) {
            const auto tile = static_cast<std::int32_t>(tiles_.size()) - 1;
            for (const std::int32_t i : tiles_.back()) {
                auto& runs = runs_[i];
                auto& few = few_[i];
                if (runs.length > 0 && runs.keys[runs.length - 1] == tile) --runs.length;
                while (few.length > 0 && few.keys[few.length - 1] >= tile * TILE_NODES) --few.length;
            }
            tiles_.pop_back();
        }
    }

    // Write the bounds of one row with the nodes that are written; return what 1 in them stands for, in units.
    template <class Row>
    std::int64_t bound_all(const Row& x, double r, std::uint16_t* bounds, Space& space) const {
        grow_to(space.alone, x.n);
        for (std::int64_t p = 0; p < x.n; ++p) space.alone[static_cast<std::size_t>(p)] = static_cast<double>(dissimilarity(x.values[p], r)) * UNIT;
        const double row_alone = std::accumulate(space.alone.begin(), space.alone.begin() + x.n, 0.0);
        // Entries are at most 2 a term, in 254 steps; fewer where the row is so long that their sum could exceed 16 bits.
        const double entries = std::min(126.9, 32767.0 / static_cast<double>(std::max<std::int64_t>(x.n, 1)) - 1.0);
        if (entries < 1.0) {
            std::fill_n(bounds, written(), std::uint16_t{0});
            return 1;
        }
        clear(space);
        const Edges edges(*this, r);
        for (std::int64_t p = 0; p < x.n; ++p) {
            if (x.keys[p] >= runs_.size()) continue;
            alignas(16) std::uint8_t table[TABLE];
            edges.fill(x.values[p], r, space.alone[static_cast<std::size_t>(p)], static_cast<float>(entries), table);
            if (p + 1 < x.n && x.keys[p + 1] < runs_.size()) {
                fetch_row(runs_[x.keys[p + 1]].values->bytes, std::min(runs_[x.keys[p + 1]].length, AHEAD) * RUN);
            }
            const auto& runs = runs_[x.keys[p]];
            for (std::int32_t k = 0; k < runs.length; ++k) {
                fetch_row(runs.values[k].bytes + AHEAD * RUN, RUN);
                add_up(table, runs.values[k], runs.keys[k], space);
            }
            const auto& few = few_[x.keys[p]];
            for (std::int32_t k = 0; k < few.length; ++k) {
                std::uint16_t& saved = space.few[static_cast<std::size_t>(few.keys[k])];
                saved = static_cast<std::uint16_t>(saved + table[few.values[k]]);
            }
        }
        return finish(row_alone, r, entries, bounds, space);
    }

private:
    static constexpr std::int64_t RUN = TILE_NODES / 2, FEWEST_FOR_RUN = 8;
    // Runs that are fetched ahead: there are more of them than caches hold.
    static constexpr std::int32_t AHEAD = 8;
    static constexpr std::int64_t N_CUTS = 14;
    static constexpr std::int64_t SAMPLE = 4096;
    static constexpr float FORGOTTEN = -1.0f;

    // The cells of a tile's nodes: node j in the low bits of byte j, node j + 128 in its high bits.
    struct Run {
        std::uint8_t bytes[RUN];
    };

    // The ends of the cells, and the largest term that a value in each can have by itself.
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

        // About 2^-((x - edge) r)^2 for each edge. In steps that the compiler turns into vectors.
        void powers(double x, double r, float* similar) const noexcept {
            float w[N];
            for (std::int64_t k = 0; k < N; ++k) {
                const double z = (x - at[k]) * r, square = z * z;
                w[k] = static_cast<float>(square < 14.0 ? square : 14.0);
            }
            for (std::int64_t k = 0; k < N; ++k) similar[k] = rough_power(w[k]);
        }

        // What sharing an attribute saves at most, cell by cell, rounded up. `alone` is the row's own term.
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

    // Whether sums for r0 have become loose bounds of those for r.
    bool is_stale(double r) const noexcept { return r < 0.995 * r0_ || r > 1.03 * r0_; }

    // 1 to 15; 0 is for nodes that have nothing.
    std::uint8_t cell(double value) const noexcept {
        int count = 1;
        for (const double cut : cuts_) count += cut <= value;
        return static_cast<std::uint8_t>(count);
    }

    // Place the cuts anew, at quantiles of some nodes' values, and drop all tiles.
    template <class Nodes>
    void rebuild(std::int64_t n_nodes, const Nodes& nodes) {
        Array<double> sample;
        sample.reserve(static_cast<std::size_t>(2 * SAMPLE));
        const std::int64_t each = std::max<std::int64_t>(1, SAMPLE / n_nodes), step = std::max<std::int64_t>(1, n_nodes / SAMPLE);
        for (std::int64_t k = 0; k < n_nodes; k += step) {
            const auto y = nodes(k);
            for (std::int64_t j = 0; j < std::min<std::int64_t>(each, y.n); ++j) sample.push_back(y.values[(k + j * 97) % y.n]);
        }
        std::sort(sample.begin(), sample.end());
        withdraw(0);
        least_ = most_ = largest_alone_ = 0.0;
        for (std::size_t j = 0; j < N_CUTS && !sample.empty(); ++j) cuts_[j] = sample[(j + 1) * sample.size() / (N_CUTS + 1)];
        built_from_ = n_nodes;
    }

    // Write the next tile. All that can fail comes first.
    template <class Nodes>
    void write_tile(const Nodes& nodes) {
        const std::int64_t first = written();
        std::int64_t n_keys = runs_.size(), n_pairs = 0;
        for (std::int64_t k = 0; k < TILE_NODES; ++k) {
            const auto y = nodes(first + k);
            for (std::int64_t j = 0; j < y.n; ++j) n_keys = std::max<std::int64_t>(n_keys, y.keys[j] + std::int64_t{1});
            n_pairs += y.n;
        }
        grow_to(owners_, n_keys, std::int32_t{0});
        runs_.resize(n_keys);
        few_.resize(n_keys);
        grow_to(alone_, first + TILE_NODES, 0.0f);
        if (tiles_.size() == tiles_.capacity()) tiles_.reserve(2 * tiles_.size() + 16);
        Array<std::int32_t> attributes;
        attributes.reserve(static_cast<std::size_t>(n_pairs));
        for (std::int64_t k = 0; k < TILE_NODES; ++k) {
            const auto y = nodes(first + k);
            for (std::int64_t j = 0; j < y.n; ++j) {
                if (owners_[static_cast<std::size_t>(y.keys[j])]++ == 0) attributes.push_back(y.keys[j]);
            }
        }
        try {
            for (const std::int32_t i : attributes) {
                const std::int32_t n = owners_[static_cast<std::size_t>(i)];
                if (n >= FEWEST_FOR_RUN) {
                    runs_.make_room(i, 1);
                } else {
                    few_.make_room(i, n);
                }
            }
        } catch (...) {
            for (const std::int32_t i : attributes) owners_[static_cast<std::size_t>(i)] = 0;
            throw;
        }
        for (const std::int32_t i : attributes) {
            if (owners_[static_cast<std::size_t>(i)] >= FEWEST_FOR_RUN) runs_.append(i, static_cast<std::int32_t>(tiles_.size()), Run{});
        }
        for (std::int64_t k = first; k < first + TILE_NODES; ++k) write_node(k, nodes(k));
        for (const std::int32_t i : attributes) owners_[static_cast<std::size_t>(i)] = 0;
        tiles_.push_back(std::move(attributes));
    }

    template <class Row>
    void write_node(std::int64_t node, const Row& y) noexcept {
        const std::int64_t place = node % TILE_NODES;
        for (std::int64_t j = 0; j < y.n; ++j) {
            const std::int32_t i = y.keys[j];
            const std::uint8_t code = cell(y.values[j]);
            least_ = std::min(least_, y.values[j]);
            most_ = std::max(most_, y.values[j]);
            if (owners_[static_cast<std::size_t>(i)] >= FEWEST_FOR_RUN) {
                auto& runs = runs_[i];
                std::uint8_t& byte = runs.values[runs.length - 1].bytes[place % RUN];
                byte = static_cast<std::uint8_t>(byte | (place < RUN ? code : code << 4));
            } else {
                few_.append(i, static_cast<std::int32_t>(node), code);
            }
        }
        alone_[static_cast<std::size_t>(node)] = alone(y);
    }

    // A node's sum against zeros for r0, a little less.
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
            float& sum = alone_[static_cast<std::size_t>(k)];
            if (sum >= 0.0f) sum = alone(nodes(k));
        }
    }

    void clear(Space& space) const {
        grow_to(space.saved, written());
        space.few.assign(static_cast<std::size_t>(written()), std::uint16_t{0});
#if defined(MLCA_SHUFFLES)
        space.sums.assign(static_cast<std::size_t>(written() / OneAttribute::WIDTH), OneAttribute::Sums{});
#else
        std::fill_n(space.saved.begin(), written(), std::uint16_t{0});
#endif
    }

    // Add what the nodes of a tile save.
    static void add_up(const std::uint8_t* table, const Run& run, std::int64_t tile, Space& space) noexcept {
#if defined(MLCA_SHUFFLES)
        constexpr std::int64_t HALF = RUN / OneAttribute::WIDTH;
        OneAttribute::Sums* sums = space.sums.data() + 2 * HALF * tile;
        const OneAttribute::Bytes entries = OneAttribute::table(table);
        for (std::int64_t k = 0; k < HALF; ++k) {
            const OneAttribute::Bytes both = OneAttribute::load(run.bytes + OneAttribute::WIDTH * k);
            sums[k].add(OneAttribute::look_up(entries, OneAttribute::low(both)));
            sums[HALF + k].add(OneAttribute::look_up(entries, OneAttribute::high(both)));
        }
#else
        std::uint16_t* saved = space.saved.data() + tile * TILE_NODES;
        for (std::int64_t k = 0; k < RUN; ++k) {
            saved[k] = static_cast<std::uint16_t>(saved[k] + table[run.bytes[k] & 15]);
            saved[RUN + k] = static_cast<std::uint16_t>(saved[RUN + k] + table[run.bytes[k] >> 4]);
        }
#endif
    }

    // Put the three parts together, rounded down.
    std::int64_t finish(double row_alone, double r, double entries, std::uint16_t* bounds, Space& space) const noexcept {
#if defined(MLCA_SHUFFLES)
        for (std::size_t k = 0; k < space.sums.size(); ++k) space.sums[k].write(0, false, space.saved.data() + OneAttribute::WIDTH * static_cast<std::int64_t>(k));
#endif
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
    // What the values that were written lie between, the largest sum against zeros, and the r that these are for.
    double least_ = 0.0, most_ = 0.0, largest_alone_ = 0.0, r0_ = 1.0;
    std::int64_t built_from_ = 0;
    PairRows<Run> runs_;           // of each attribute, by tile
    PairRows<std::uint8_t> few_;   // of each attribute, by node: cells where owners are few
    Array<Array<std::int32_t>> tiles_;  // the attributes of each tile
    Array<float> alone_;
    Array<std::int32_t> owners_;  // working space of write_tile, zero between uses
};

}  // namespace mlca::MLCA_LEVEL
