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
// Nodes are written in parts of 64 once a part is full; younger ones, and those that have moved since, have the bound 0
// and are summed exactly. Four parts are a tile. Where 3 or more nodes of a part own an attribute, or others of its tile do, it
// has four bits for each of the tile's nodes (a run of 128 bytes), else an entry for each owner. No step takes time that grows with d.
//
// Memory is what takes time: lists are asked for some attributes ahead, and four attributes that all tiles have are added up
// together, so that sums are loaded and stored once for the four. What passes gets a closer look (sparse_codes.hpp).
//
// On rows of EURLex-4K's shape (236 of 5,000 attributes, of which 58 are shared on average) 2.4 % of 7,770 nodes pass. A
// search takes 223 microseconds instead of 330, of which bounds are 90 (126); what is left are runs in memory, 700 kB a row.
// Tile by tile, with all sums in registers, was no faster: a tile's runs are scattered over memory.
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
#include "sparse_codes.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

class Postings {
public:
    static constexpr std::int64_t PART_NODES = SparseCodes::PART_NODES, TILE_NODES = 256;

    // What one search needs.
    struct Space {
        Array<double> alone;
#if defined(MLCA_SHUFFLES)
        Array<OneAttribute::Sums> sums;
#endif
        Array<std::uint16_t> saved, few;
        Array<std::int64_t> totals;
        Array<std::uint32_t> words;
    };

    // How many nodes are written; all younger ones are summed exactly.
    std::int64_t written() const noexcept { return n_written_; }

    // Attributes that written nodes may have are below this.
    std::int64_t n_keys() const noexcept { return runs_.size(); }

    // The codes of written nodes, and whether they are right: not if a node has moved since.
    const SparseCodes& codes() const noexcept { return codes_; }
    bool knows(std::int64_t node) const noexcept { return node < written() && alone_[static_cast<std::size_t>(node)] >= 0.0f; }

    // Write all full parts of the first n nodes, and bring up to date what depends on r, about that of the rows to come.
    // `nodes(node)` has the keys, the values and the number n of a node's non-zeros. A failure leaves bounds that hold.
    template <class Nodes>
    void prepare(std::int64_t n_nodes, double r, const Nodes& nodes) {
        if (n_nodes < TILE_NODES) return;
        if (n_nodes >= 2 * built_from_) rebuild(n_nodes, nodes);
        while (written() + PART_NODES <= n_nodes) write_part(nodes);
        refresh(r, nodes);
    }

    // Whether `prepare` has something to do.
    bool due(std::int64_t n_nodes, double r) const noexcept {
        return n_nodes >= std::max(TILE_NODES, written() + PART_NODES) || (written() > 0 && is_stale(r));
    }

    // A node has moved: what is written of it is wrong.
    void forget(std::int64_t node) noexcept {
        if (node < written()) alone_[static_cast<std::size_t>(node)] = FORGOTTEN;
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
        open(space);
        const Edges edges(*this, r);
        alignas(16) std::uint8_t tables[TOGETHER_ADDED * TABLE];
        const Run* runs_of[TOGETHER_ADDED];
        const auto n_tiles = static_cast<std::int32_t>(rounded_up(written(), TILE_NODES) / TILE_NODES);
        int n_open = 0;  // attributes of all tiles that wait for others
        for (std::int64_t p = 0; p < x.n; ++p) {
            fetch_lists(x, p);
            if (x.keys[p] >= runs_.size()) continue;
            std::uint8_t* table = tables + TABLE * n_open;
            edges.fill(x.values[p], r, space.alone[static_cast<std::size_t>(p)], static_cast<float>(entries), table);
            const auto& few = few_[x.keys[p]];
            for (std::int32_t k = 0; k < few.length; ++k) {
                std::uint16_t& saved = space.few[static_cast<std::size_t>(few.keys[k])];
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
    // Runs that are fetched ahead, as there are more of them than caches hold; attributes of all tiles that are added up together.
    static constexpr std::int32_t AHEAD = 8;
    static constexpr int TOGETHER_ADDED = 4;

    // The cells of a tile's nodes: node j in the low bits of byte j, node j + 128 in its high bits.
    struct Run {
        std::uint8_t bytes[RUN];
    };
    static constexpr std::int64_t N_CUTS = 14, SAMPLE = 4096;
    static constexpr float FORGOTTEN = -1.0f;

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

    // Place the cuts anew, at quantiles of some nodes' values, and drop all that is written.
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
        for (std::int64_t i = 0; i < runs_.size(); ++i) runs_[i].length = few_[i].length = 0;
        n_written_ = 0;
        least_ = most_ = largest_alone_ = 0.0;
        codes_.clear(sample.empty() ? 0.0 : std::max(std::abs(sample.front()), std::abs(sample.back())));
        for (std::size_t j = 0; j < N_CUTS && !sample.empty(); ++j) cuts_[j] = sample[(j + 1) * sample.size() / (N_CUTS + 1)];
        built_from_ = n_nodes;
    }

    bool has_run(std::int64_t attribute, std::int64_t tile) const noexcept {
        const auto& runs = runs_[attribute];
        return runs.length > 0 && runs.keys[runs.length - 1] == tile;
    }

    // Write the next part. All that can fail comes first.
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
        Array<std::int32_t> attributes;
        attributes.reserve(static_cast<std::size_t>(n_pairs));
        for (std::int64_t k = first; k < end; ++k) {
            const auto y = nodes(k);
            for (std::int64_t j = 0; j < y.n; ++j) {
                if (owners_[static_cast<std::size_t>(y.keys[j])]++ == 0) attributes.push_back(y.keys[j]);
            }
        }
        try {
            for (const std::int32_t i : attributes) {
                const std::int32_t n = owners_[static_cast<std::size_t>(i)];
                if (has_run(i, tile)) continue;
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
            if (!has_run(i, tile) && owners_[static_cast<std::size_t>(i)] >= FEWEST_FOR_RUN) runs_.append(i, static_cast<std::int32_t>(tile), Run{});
        }
        for (std::int64_t k = first; k < end; ++k) write_node(k, nodes(k));
        for (const std::int32_t i : attributes) owners_[static_cast<std::size_t>(i)] = 0;
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

    void open(Space& space) const {
        const std::int64_t room = rounded_up(written(), TILE_NODES);
        grow_to(space.saved, room);
        space.few.assign(static_cast<std::size_t>(room), std::uint16_t{0});
#if defined(MLCA_SHUFFLES)
        space.sums.assign(static_cast<std::size_t>(room / OneAttribute::WIDTH), OneAttribute::Sums{});
#else
        std::fill_n(space.saved.begin(), room, std::uint16_t{0});
#endif
    }

    // Ask for what attributes a few places ahead will need: where their lists are, then the lists' beginnings.
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
            fetch_row(runs.values->bytes, std::min(runs.length, AHEAD) * RUN);
            fetch_row(runs.keys, std::min(runs.length, AHEAD));
            fetch_row(few.keys, std::min(few.length, 64));
            fetch_row(few.values, std::min(few.length, 64));
        }
    }

    // Add what the nodes of a tile save by N attributes.
    template <int N>
    [[gnu::always_inline]] static void add_up(const std::uint8_t* tables, const Run* const* runs, std::int32_t k, std::int64_t tile, Space& space) noexcept {
        for (int j = 0; j < N; ++j) fetch_row(runs[j][k].bytes + AHEAD * RUN, RUN);
#if defined(MLCA_SHUFFLES)
        constexpr std::int64_t HALF = RUN / OneAttribute::WIDTH;
        OneAttribute::Sums* sums = space.sums.data() + 2 * HALF * tile;
        for (std::int64_t side = 0; side < HALF; ++side) {
            OneAttribute::Sums low = sums[side], high = sums[HALF + side];
#pragma GCC unroll 4
            for (int j = 0; j < N; ++j) {
                const OneAttribute::Bytes entries = OneAttribute::table(tables + TABLE * j);
                const OneAttribute::Bytes both = OneAttribute::load(runs[j][k].bytes + OneAttribute::WIDTH * side);
                low.add(OneAttribute::look_up(entries, OneAttribute::low(both)));
                high.add(OneAttribute::look_up(entries, OneAttribute::high(both)));
            }
            sums[side] = low;
            sums[HALF + side] = high;
        }
#else
        std::uint16_t* saved = space.saved.data() + tile * TILE_NODES;
        for (int j = 0; j < N; ++j) {
            const std::uint8_t *bytes = runs[j][k].bytes, *table = tables + TABLE * j;
            for (std::int64_t node = 0; node < RUN; ++node) {
                saved[node] = static_cast<std::uint16_t>(saved[node] + table[bytes[node] & 15]);
                saved[RUN + node] = static_cast<std::uint16_t>(saved[RUN + node] + table[bytes[node] >> 4]);
            }
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
    std::int64_t built_from_ = 0, n_written_ = 0;
    PairRows<Run> runs_;           // of each attribute, by tile
    PairRows<std::uint8_t> few_;   // of each attribute, by node: cells where owners are few
    SparseCodes codes_;
    Array<float> alone_;
    Array<std::int32_t> owners_;  // working space of write_part, zero between uses
};

}  // namespace mlca::MLCA_LEVEL
