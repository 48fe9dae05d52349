// Cells of nodes: groups around centres, so that a search visits thousands of nodes instead of all of them.
//
// Every node belongs to one cell, and each cell has a centre. Centres are recomputed with the similarity: of K nodes,
// about sqrt(K) are drawn pseudo-randomly as initial centres, which a few rounds of k-means on a sample improve. A
// later node joins the cell of the nearest centre and stays there when it moves. A search visits cells in the order of
// their centres' distances, until the visited cells hold enough nodes.
//
// Every node has a slot, at which its codes are stored. When centres are recomputed, the slots of a cell are
// consecutive, so that a visit reads consecutive memory. Later nodes get slots in additional blocks.
//
// Why a model with cells is a deterministic function of its rows. The position x of a row is a vector of integers: for
// each feature, its rank minus the middle rank, multiplied by the square root of the feature's share of the weight and
// rounded. Centres c are ordered by |c|^2 - 2 x c, which gives the same order as their distances from x. Positions are
// so small that all partial sums of this expression are below 2^24, so float32 holds them exactly, and the order of
// summation, vector width and fused operations do not change any bit. (The vector of the square roots of all shares has
// length 1, so a position, including rounding, is shorter than REACH + 1.5 sqrt(d), at most 2,240, and 3 * 2,240^2 <
// 2^24.) Means are rounded quotients of integer sums. Ties between centres go to the first one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "search/codes4.hpp"
#include "search/neighbour_index.hpp"
#include "similarity/rank_distance.hpp"

namespace mlca::MLCA_LEVEL {

// The saved state of cells.
struct CellState {
    Array<std::int16_t> centres;  // one row per cell
    Array<std::int32_t> cells;    // the cell of each node
};

// The largest integer whose square is at most n.
inline std::int64_t whole_root(std::int64_t n) noexcept {
    auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
    while (root * root > n) --root;
    while ((root + 1) * (root + 1) <= n) ++root;
    return root;
}

class NodeCells {
public:
    // With more features than this, positions would be too coarse.
    static constexpr std::int64_t MOST_FEATURES = 1 << 14;

    struct Block {
        std::int64_t number, n;  // index of the block, and how many of its first nodes to search
    };

    // Working memory of a search.
    struct Space {
        Array<float> place, scores;
        Array<std::int64_t> order;
        Array<Block> blocks;  // blocks visited
    };

    // Maps places (positions in the list of bounds) to slots: the i-th visited block has the BLOCK places from i *
    // BLOCK on. Places beyond the block's nodes are empty.
    struct Places {
        const Block* blocks;
        const std::int32_t* nodes;

        std::int64_t block(std::int64_t i) const noexcept { return blocks[i].number; }
        std::int64_t slot(std::int64_t place) const noexcept { return blocks[place / BLOCK].number * BLOCK + place % BLOCK; }
        bool holds(std::int64_t place) const noexcept { return place % BLOCK < blocks[place / BLOCK].n; }
        std::int64_t node(std::int64_t place) const noexcept { return nodes[slot(place)]; }
    };

    NodeCells(const Learned& learned, const CellLimits& limits)
        : limits_(limits), d_(learned.n_features()), one_(static_cast<double>(learned.ranks.one())), factors_(static_cast<std::size_t>(d_)),
        of_zero_(static_cast<std::size_t>(d_)) {
        for (std::int64_t j = 0; j < d_; ++j) {
            const double share = static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total);
            factors_.data()[j] = is_nominal(learned.nominal, j) ? 0.0 : std::sqrt(share) * (REACH / one_);
            of_zero_.data()[j] = coordinate(j, learned.ranks.zeros.data()[j]);
        }
    }

    // Compute a row's position from its ranks (counted from the lowest).
    void place(const std::int32_t* ranks, float* out) const noexcept {
        for (std::int64_t j = 0; j < d_; ++j) out[j] = coordinate(j, ranks[j]);
    }
    // Compute a row's position from its entries: for_each_entry(f) calls f(feature, value) for each of them. Missing
    // values count as middle ranks.
    template <class ForEachEntry>
    void place_of_entries(const Learned& learned, ForEachEntry for_each_entry, float* out) const {
        std::copy(of_zero_.begin(), of_zero_.end(), out);
        for_each_entry([&](std::int64_t j, double value) {
            out[j] = is_missing(value) ? 0.0f : coordinate(j, learned.ranks(j, value) + learned.ranks.zeros.data()[j]);
        });
    }

    // Compute the centres for n nodes, and assign each node to a cell; place_of(node, out) writes a node's position.
    template <class PlaceOf>
    void build(std::int64_t n, const PlaceOf& place_of, Stop& stop, ParallelFor parallel_for) {
        open(whole_root(n));
        Array<float> place(static_cast<std::size_t>(d_));
        for (std::int64_t c = 0; c < n_cells_; ++c) {
            place_of(drawn(c, n_cells_, n), place.data());
            std::copy(place.begin(), place.end(), centre(c));
        }
        lay_out();
        const std::int64_t n_sampled = std::min(n, PER_CENTRE * n_cells_);
        Array<float> sample(static_cast<std::size_t>(n_sampled * d_));
        for (std::int64_t s = 0; s < n_sampled; ++s) place_of(drawn(s, n_sampled, n), sample.data() + s * d_);
        for (int round = 0; round < ROUNDS; ++round) improve(sample, n_sampled, stop, parallel_for);
        Array<std::int32_t> cells(static_cast<std::size_t>(n));
        parallel_for(n, SHARED_NODES, [&](std::int64_t low, std::int64_t high) {
            Array<float> places(static_cast<std::size_t>(NODES_BETWEEN_CHECKS * d_));
            for (std::int64_t first = low; first < high; first += NODES_BETWEEN_CHECKS) {
                stop.check();
                const std::int64_t n_together = std::min(high - first, NODES_BETWEEN_CHECKS);
                for (std::int64_t i = 0; i < n_together; ++i) place_of(first + i, places.data() + i * d_);
                find_nearest(places.data(), n_together, cells.data() + first);
            }
        });
        store(cells);
    }

    // Restore a state that `is_sound` accepts, with all its nodes.
    void restore(const CellState& state) {
        open(static_cast<std::int64_t>(state.centres.size()) / d_);
        std::copy(state.centres.begin(), state.centres.end(), centres_.begin());
        lay_out();
        store(state.cells);
    }
    // Whether a state is valid for n nodes.
    bool is_sound(const CellState& state, std::int64_t n) const noexcept {
        const auto n_cells = static_cast<std::int64_t>(state.centres.size()) / d_;
        if (n_cells < 1 || n_cells * d_ != static_cast<std::int64_t>(state.centres.size()) || static_cast<std::int64_t>(state.cells.size()) != n)
            return false;
        for (std::size_t i = 0; i < state.centres.size(); ++i) {
            const auto j = static_cast<std::int64_t>(i) % d_;
            // The margin is needed because adding features to a model changes the shares slightly.
            if (std::abs(static_cast<float>(state.centres[i])) > coordinate(j, static_cast<std::int64_t>(2.0 * one_)) + 1.0f) return false;
        }
        return std::all_of(state.cells.begin(), state.cells.end(), [&](std::int32_t cell) { return cell >= 0 && cell < n_cells; });
    }
    template <class IsKept>
    CellState state(std::int64_t n, IsKept is_kept) const {
        CellState result{Array<std::int16_t>(centres_.size()), {}};
        std::transform(centres_.begin(), centres_.end(), result.centres.begin(), [](float value) { return static_cast<std::int16_t>(value); });
        for (std::int64_t k = 0; k < n; ++k) {
            if (is_kept(k)) result.cells.push_back(cell(k));
        }
        return result;
    }

    // Reserve memory for n_nodes nodes in total, so that `enter` cannot fail.
    void reserve(std::int64_t n_nodes) {
        const auto make_room = [](auto& array, std::size_t n) {
            if (array.capacity() < n) array.reserve(n + n / 2 + BLOCK);
        };
        make_room(slots_, static_cast<std::size_t>(n_nodes));
        make_room(nodes_, nodes_.size() + BLOCK);
        make_room(owners_, owners_.size() + 1);
        make_room(before_, before_.size() + 1);
    }
    // Number of slots, and an upper bound on the number of slots after the next node is entered.
    std::int64_t n_slots() const noexcept { return static_cast<std::int64_t>(nodes_.size()); }
    std::int64_t n_slots_after() const noexcept { return n_slots() + BLOCK; }

    // Whether a node has a slot.
    bool holds(std::int64_t node) const noexcept { return node < static_cast<std::int64_t>(slots_.size()); }
    // Add a node, which must follow the last one added, to the cell with the nearest centre.
    void enter(std::int64_t node, const float* place) noexcept { enter_cell(node, nearest(place)); }
    // Remove the nodes from `first` on, which are the last nodes of their cells.
    void withdraw(std::int64_t first) noexcept {
        while (static_cast<std::int64_t>(slots_.size()) > first) {
            const std::int32_t block = slots_.back() / static_cast<std::int32_t>(BLOCK), cell = owners_.data()[block];
            slots_.pop_back();
            if (--sizes_.data()[cell] % BLOCK > 0) continue;
            last_.data()[cell] = before_.data()[block];
            before_.data()[block] = free_;
            free_ = block;
        }
    }
    void give_up(std::int64_t node) noexcept { ++n_gone_.data()[cell(node)]; }

    std::int64_t slot(std::int64_t node) const noexcept { return slots_.data()[node]; }
    // The node at a slot; negative if there is none.
    std::int64_t node(std::int64_t slot) const noexcept { return nodes_.data()[slot]; }

    // Visit the cells nearest to the position `space.place`, until they hold enough of the first n nodes, of which
    // `n_gone` have been replaced.
    void visit(std::int64_t n_nodes, std::int64_t n_gone, Space& space) const {
        grow_to(space.scores, padded_cells());
        score(space.place.data(), space.scores.data());
        space.order.clear();
        // Scores are integers, so that a score and its cell can be packed into one integer for sorting.
        for (std::int64_t c = 0; c < n_cells_; ++c) space.order.push_back((static_cast<std::int64_t>(space.scores.data()[c]) << 32) + c);
        std::make_heap(space.order.begin(), space.order.end(), std::greater<>());
        space.blocks.clear();
        const std::int64_t n_kept = n_nodes - n_gone;
        std::int64_t wanted = std::max(limits_.least, whole_root(limits_.per_root * limits_.per_root * n_kept));
        while (wanted > 0 && !space.order.empty()) {
            std::pop_heap(space.order.begin(), space.order.end(), std::greater<>());
            wanted -= take(space.order.back() & INT32_MAX, n_nodes, space);
            space.order.pop_back();
        }
    }

    Places places(const Space& space) const noexcept { return {space.blocks.data(), nodes_.data()}; }
    static std::int64_t n_places(const Space& space) noexcept { return static_cast<std::int64_t>(space.blocks.size()) * BLOCK; }
    // Call f(node) for the nodes of the visited cells.
    template <class F>
    void for_each_visited(const Space& space, const F& f) const {
        for (const Block& block : space.blocks) {
            for (std::int64_t i = 0; i < block.n; ++i) f(node(block.number * BLOCK + i));
        }
    }

private:
    static constexpr int ROUNDS = 4;
    static constexpr double REACH = 2048.0;
    static constexpr std::int64_t PER_CENTRE = 32, NODES_BETWEEN_CHECKS = 256, SHARED_NODES = 1024;
    // Number of centres whose features are interleaved, and number of positions that are compared with them together,
    // so that all sums stay in registers.
    static constexpr std::int64_t LANES = 32, TOGETHER = 8;

    float coordinate(std::int64_t j, std::int64_t rank) const noexcept {
        const double from_middle = static_cast<double>(rank) - 0.5 * one_;
        return static_cast<float>(nearest_whole(std::clamp(from_middle, -one_, one_) * factors_.data()[j]));
    }

    // A pseudo-random index from the i-th of n_parts equal parts of 0..n-1.
    static std::int64_t drawn(std::int64_t i, std::int64_t n_parts, std::int64_t n) noexcept {
        const std::int64_t low = i * n / n_parts, high = (i + 1) * n / n_parts;
        return low + static_cast<std::int64_t>(splitmix64(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(high - low));
    }

    std::int64_t padded_cells() const noexcept { return rounded_up(n_cells_, LANES); }
    float* centre(std::int64_t c) noexcept { return centres_.data() + c * d_; }

    void open(std::int64_t n_cells) {
        n_cells_ = n_cells;
        const auto n = static_cast<std::size_t>(n_cells);
        centres_.assign(n * static_cast<std::size_t>(d_), 0.0f);
        sizes_.assign(n, 0);
        n_gone_.assign(n, 0);
        last_.assign(n, -1);
    }

    // Interleave the centres' features, multiplied by -2, for `score`.
    void lay_out() {
        columns_.assign(static_cast<std::size_t>(padded_cells() * d_), 0.0f);
        squares_.assign(static_cast<std::size_t>(padded_cells()), 0x1p25f);
        for (std::int64_t c = 0; c < n_cells_; ++c) {
            float square = 0.0f;
            for (std::int64_t j = 0; j < d_; ++j) {
                columns_.data()[(c / LANES * d_ + j) * LANES + c % LANES] = -2.0f * centre(c)[j];
                square += centre(c)[j] * centre(c)[j];
            }
            squares_.data()[c] = square;
        }
    }

    // Add the products of a factor and one feature of LANES centres to the centres' sums.
    static void add_products(float factor, const float* __restrict column, float* __restrict sums) noexcept {
        for (std::int64_t lane = 0; lane < LANES; ++lane) {
#if defined(__FMA__)
            sums[lane] = std::fma(factor, column[lane], sums[lane]);
#else
            sums[lane] += factor * column[lane];
#endif
        }
    }

    // Compute |c|^2 - 2 x c for every centre c; padding entries get larger scores than any centre.
    [[gnu::noinline]] void score(const float* __restrict x, float* __restrict scores) const noexcept {
        for (std::int64_t first = 0; first < padded_cells(); first += LANES) {
            const float* __restrict column = columns_.data() + first * d_;
            float sums[LANES];
            std::copy_n(squares_.data() + first, LANES, sums);
            for (std::int64_t j = 0; j < d_; ++j, column += LANES) add_products(x[j], column, sums);
            std::copy_n(sums, LANES, scores + first);
        }
    }

    // Find the centre nearest to each of n positions; ties go to the first centre.
    void find_nearest(const float* places, std::int64_t n, std::int32_t* cells) const noexcept {
        std::int64_t i = 0;
        for (; i + TOGETHER <= n; i += TOGETHER) find_nearest_of<TOGETHER>(places + i * d_, cells + i);
        for (; i < n; ++i) find_nearest_of<1>(places + i * d_, cells + i);
    }
    // Find the centre nearest to each of N positions, which share each load of the centres. Each lane keeps the first
    // of its smallest scores.
    template <std::int64_t N>
    [[gnu::noinline]] void find_nearest_of(const float* __restrict places, std::int32_t* __restrict cells) const noexcept {
        float least[N][LANES];
        std::int32_t where[N][LANES];
        for (std::int64_t i = 0; i < N; ++i) {
            std::fill_n(least[i], LANES, 0x1p26f);
            std::fill_n(where[i], LANES, 0);
        }
        for (std::int64_t first = 0; first < padded_cells(); first += LANES) {
            const float* __restrict column = columns_.data() + first * d_;
            float sums[N][LANES];
            for (std::int64_t i = 0; i < N; ++i) std::copy_n(squares_.data() + first, LANES, sums[i]);
            for (std::int64_t j = 0; j < d_; ++j, column += LANES) {
                for (std::int64_t i = 0; i < N; ++i) add_products(places[i * d_ + j], column, sums[i]);
            }
            for (std::int64_t i = 0; i < N; ++i) {
                for (std::int64_t lane = 0; lane < LANES; ++lane) {
                    const bool is_less = sums[i][lane] < least[i][lane];
                    least[i][lane] = is_less ? sums[i][lane] : least[i][lane];
                    where[i][lane] = is_less ? static_cast<std::int32_t>(first + lane) : where[i][lane];
                }
            }
        }
        for (std::int64_t i = 0; i < N; ++i) {
            const float score = *std::min_element(least[i], least[i] + LANES);
            cells[i] = INT32_MAX;
            for (std::int64_t lane = 0; lane < LANES; ++lane) cells[i] = least[i][lane] == score ? std::min(cells[i], where[i][lane]) : cells[i];
        }
    }
    std::int32_t nearest(const float* place) const noexcept {
        std::int32_t cell;
        find_nearest_of<1>(place, &cell);
        return cell;
    }

    // One round of k-means: each centre becomes the mean of the positions nearest to it, if there are any.
    void improve(const Array<float>& sample, std::int64_t n_sampled, Stop& stop, ParallelFor parallel_for) {
        Array<std::int64_t> sums(centres_.size(), 0), counts(static_cast<std::size_t>(n_cells_), 0);
        Array<std::int32_t> cells(static_cast<std::size_t>(n_sampled));
        parallel_for(n_sampled, NODES_BETWEEN_CHECKS, [&](std::int64_t low, std::int64_t high) {
            for (std::int64_t first = low; first < high; first += NODES_BETWEEN_CHECKS) {
                stop.check();
                find_nearest(sample.data() + first * d_, std::min(high - first, NODES_BETWEEN_CHECKS), cells.data() + first);
            }
        });
        for (std::int64_t s = 0; s < n_sampled; ++s) {
            const float* place = sample.data() + s * d_;
            const std::int64_t c = cells.data()[s];
            ++counts.data()[c];
            for (std::int64_t j = 0; j < d_; ++j) sums.data()[c * d_ + j] += static_cast<std::int64_t>(place[j]);
        }
        for (std::int64_t c = 0; c < n_cells_; ++c) {
            const std::int64_t n = counts.data()[c];
            for (std::int64_t j = 0; n > 0 && j < d_; ++j) centre(c)[j] = static_cast<float>(rounded(sums.data()[c * d_ + j], n));
        }
        lay_out();
    }

    std::int32_t cell(std::int64_t node) const noexcept { return owners_.data()[slots_.data()[node] / static_cast<std::int32_t>(BLOCK)]; }

    // Assign consecutive slots to the nodes of each cell, from the first cell to the last.
    void store(const Array<std::int32_t>& cells) {
        for (const std::int32_t cell : cells) ++sizes_.data()[cell];
        Array<std::int32_t> next(static_cast<std::size_t>(n_cells_));
        for (std::int64_t c = 0; c < n_cells_; ++c) {
            next.data()[c] = static_cast<std::int32_t>(owners_.size()) * static_cast<std::int32_t>(BLOCK);
            for (std::int64_t left = sizes_.data()[c]; left > 0; left -= BLOCK) {
                before_.push_back(last_.data()[c]);
                last_.data()[c] = static_cast<std::int32_t>(owners_.size());
                owners_.push_back(static_cast<std::int32_t>(c));
            }
        }
        slots_.resize(cells.size());
        nodes_.assign(owners_.size() * BLOCK, -1);
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const std::int32_t slot = next.data()[cells[k]]++;
            slots_[k] = slot;
            nodes_.data()[slot] = static_cast<std::int32_t>(k);
        }
    }

    void enter_cell(std::int64_t node, std::int32_t cell) noexcept {
        std::int64_t& size = sizes_.data()[cell];
        if (size % BLOCK == 0) {
            std::int32_t block = free_;
            if (block >= 0) {
                free_ = before_.data()[block];
            } else {
                block = static_cast<std::int32_t>(owners_.size());
                owners_.push_back(0);
                before_.push_back(0);
                nodes_.resize(nodes_.size() + BLOCK, -1);
            }
            owners_.data()[block] = cell;
            before_.data()[block] = last_.data()[cell];
            last_.data()[cell] = block;
        }
        const std::int64_t slot = last_.data()[cell] * BLOCK + size % BLOCK;
        nodes_.data()[slot] = static_cast<std::int32_t>(node);
        slots_.push_back(static_cast<std::int32_t>(slot));
        ++size;
    }

    // Add the blocks of a cell to the visited ones; return how many of their nodes have not been replaced.
    std::int64_t take(std::int64_t cell, std::int64_t n_nodes, Space& space) const {
        std::int64_t taken = 0, n = (sizes_.data()[cell] - 1) % BLOCK + 1;
        for (std::int64_t block = last_.data()[cell]; block >= 0; block = before_.data()[block], n = BLOCK) {
            // Skip nodes that were entered by speculative learning; they come last.
            while (n > 0 && node(block * BLOCK + n - 1) >= n_nodes) --n;
            if (n == 0) continue;
            space.blocks.push_back({block, n});
            taken += n;
        }
        return taken - n_gone_.data()[cell];
    }

    CellLimits limits_;
    std::int64_t d_, n_cells_ = 0;
    double one_;
    Array<double> factors_;       // scale from ranks to positions
    Array<float> of_zero_;        // the position of a row of zeros
    Array<float> centres_, columns_, squares_;
    // Nodes are stored in blocks of BLOCK slots. A cell is a chain of blocks, all full but the last.
    Array<std::int32_t> slots_;   // per node: its slot
    Array<std::int32_t> nodes_;   // per slot: its node; invalid beyond the nodes of a block
    Array<std::int32_t> owners_, before_;  // per block: its cell, and the previous block of the chain
    Array<std::int32_t> last_;    // per cell: its last block
    Array<std::int64_t> sizes_, n_gone_;
    std::int32_t free_ = -1;      // first block of the chain of unused blocks
};

}  // namespace mlca::MLCA_LEVEL
