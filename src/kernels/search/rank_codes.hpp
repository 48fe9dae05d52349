// Four-bit codes under the learned similarity, derived from the ranks of dense nodes.
//
// Used for dense rows if most values of the nodes are non-zero; otherwise postings are used (search/rank_postings.hpp).
//
// The scheme is that of search/screening.hpp: bounds from four bits per feature, tighter bounds (`RankCodes16`), and
// exact sums of the nodes that may be among the nearest. Cells have equal width in ranks. So each cell holds about the
// same number of nodes, tables need no stored boundaries, and shifting a rank gives its cell.
//
// In this file, sums represent keys (see similarity/rank_distance.hpp): the sum for a key K is (K + 1) * 2^20. The 1 is
// added because rounding D to a key may lower it by half a key, and a lower bound on D, in the same units, must not
// exceed the sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/memory.hpp"
#include "search/codes16.hpp"
#include "search/codes4.hpp"
#include "search/lookup_tables.hpp"
#include "search/node_cells.hpp"
#include "search/scan_codes.hpp"
#include "search/screening.hpp"
#include "similarity/rank_distance.hpp"
#include "similarity/ranked_columns.hpp"

namespace mlca::MLCA_LEVEL {

// The ranks of dense nodes: sixteen bits per feature for tighter bounds, and eight more bits that determine the exact
// rank.
//
// The kernel is 2^-z^2 with z = difference * r. Codes are ranks scaled so that the difference of two codes is z in
// units of 2^-13; no other factor is needed, because r is the same for all features. The kernel is approximated as in
// search/codes16.hpp, the features' shares of the weight are rounded to integers, and 16 features are summed at once,
// which is three times as fast as float32.
//
// Why the sum minus its slack is a lower bound on D = sum of share * (1 - 2^-z^2). Codes are clamped to magnitudes
// below 2^14, which moves no two ranks further apart. Otherwise their errors are at most 1/2 plus three roundings in
// float32 (below 2^-8 here), so z is too large by at most 1.01 units, which adds at most 0.72 * 1.01 * 2^-13 < 9e-5 to
// a term. The approximate kernel is too small by at most POWER_ERROR. The slack also covers the weight that is lost by
// rounding shares down.
//
// A code represents at most 186 ranks, so a rank is the middle of its code's ranks plus a remainder that fits into a
// byte. For values far outside the knots, the remainder does not fit, and ranks are computed from the weights.
class RankCodes16 {
public:
    // Create codes without any nodes; `n_expected` nodes are expected.
    RankCodes16(const Learned& learned, std::int64_t n_expected)
        : d_(learned.n_features()),
          width_(rounded_up(d_, FINE_LANES)),
          middle_(static_cast<std::int32_t>(learned.ranks.one() / 2)),
          factor_(static_cast<float>(learned.r * 0x1p13)),
          per_code_(1.0f / factor_),
          codes_(width_, n_expected),
          rests_(d_, n_expected),
          shares_(static_cast<std::size_t>(width_), std::int16_t{0}) {
        share_out(learned);
    }

    // Reserve memory for n nodes in total; a failure changes nothing.
    void reserve(std::int64_t n) {
        codes_.reserve(n);
        rests_.reserve(n);
    }
    // Write a node, given its ranks counted from the lowest. The slot is the node's index, or its slot in a cell.
    void enter(std::int64_t slot, const std::int32_t* __restrict ranks) noexcept {
        encode(ranks, codes_[slot]);
        const std::int16_t* __restrict code = codes_[slot];
        std::int8_t* __restrict rests = rests_[slot];
        for (std::int64_t j = 0; j < d_; ++j) {
            const std::int32_t rest = ranks[j] - middle_of(code[j]);
            rests[j] = static_cast<std::int8_t>(rest < -LARGEST_REST || rest > LARGEST_REST ? NO_REST : rest);
        }
    }
    // Compute the ranks, counted from the lowest, of the node at a slot; weights() returns its weights.
    template <class Weights>
    void decode(const Learned& learned, std::int64_t slot, const Weights& weights, std::int32_t* __restrict ranks) const {
        const std::int16_t* __restrict code = codes_[slot];
        const std::int8_t* __restrict rests = rests_[slot];
        std::int32_t least = 0;
        for (std::int64_t j = 0; j < d_; ++j) {
            const std::int32_t rest = rests[j];
            ranks[j] = middle_of(code[j]) + rest;
            least = rest < least ? rest : least;
        }
        if (least > NO_REST) return;
        const double* values = weights();
        for (std::int64_t j = 0; j < d_; ++j) {
            if (rests[j] == NO_REST) ranks[j] = learned.ranks(j, values[j]) + learned.ranks.zeros.data()[j];
        }
    }
    // Number of codes per row, with padding.
    std::int64_t width() const noexcept { return width_; }
    void encode(const std::int32_t* __restrict ranks, std::int16_t* __restrict code) const noexcept {
        const float factor = factor_;
        const std::int32_t middle = middle_;
        for (std::int64_t j = 0; j < d_; ++j) {
            float place = static_cast<float>(ranks[j] - middle) * factor;
            place = place > -FARTHEST ? place : -FARTHEST;
            place = place < FARTHEST ? place : FARTHEST;
            code[j] = static_cast<std::int16_t>(static_cast<std::int32_t>(place + (FARTHEST + 1.5f)) - static_cast<std::int32_t>(FARTHEST + 1.0f));
        }
        std::fill(code + d_, code + width_, std::int16_t{0});
    }

    // A lower bound on D between a row, which has the given codes, and the node at a slot.
    double lower(const std::int16_t* code, std::int64_t slot) const noexcept { return most_ - unit_ * static_cast<double>(alike(code, codes_[slot])); }
    // Typical gap between this bound and D.
    double looseness() const noexcept { return looseness_; }
    const std::int16_t* code(std::int64_t slot) const noexcept { return codes_[slot]; }
    const std::int8_t* rests(std::int64_t slot) const noexcept { return rests_[slot]; }

private:
    static constexpr std::int32_t LARGEST_REST = 127, NO_REST = -128;
    static constexpr float FARTHEST = 16383.0f;
    static constexpr double CODE_ERROR = 9e-5;
    // Products are summed in eight 32-bit lanes; the shares of one lane may sum to at most MOST_SHARES.
    static constexpr double MOST_SHARES = 65535.0;
    // With more features, rounding alone might make the sum of shares exceed MOST_SHARES.
    static constexpr std::int64_t MOST_LOOKED_AT = std::int64_t{1} << 19;

    [[gnu::always_inline]] std::int32_t middle_of(std::int16_t code) const noexcept {
        return middle_ + static_cast<std::int32_t>(static_cast<float>(code) * per_code_);
    }

    // Turn weights into integer shares, as large as possible without overflow of the sums.
    void share_out(const Learned& learned) noexcept {
        if (width_ > MOST_LOOKED_AT) return;  // all bounds are then 0
        const auto share = [&](std::int64_t j) { return static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total); };
        double sums[FINE_LANES / 2] = {}, largest = 0.0;
        for (std::int64_t j = 0; j < d_; ++j) {
            sums[j % FINE_LANES / 2] += share(j);
            largest = std::max(largest, share(j));
        }
        const double in_a_sum = *std::max_element(sums, sums + FINE_LANES / 2);
        const double step = std::max(in_a_sum / (MOST_SHARES - static_cast<double>(width_ / FINE_LANES)), largest / 32766.0);
        double lost = 0.0, won = 0.0;
        for (std::int64_t j = 0; j < d_; ++j) {
            const auto rounded_share = static_cast<std::int32_t>(share(j) / step + 0.5);
            shares_.data()[j] = static_cast<std::int16_t>(rounded_share);
            const double more = static_cast<double>(rounded_share) * step - share(j);
            (more > 0.0 ? won : lost) += std::fabs(more);
        }
        const double slack = POWER_ERROR + CODE_ERROR + lost + 1e-8;  // 1e-8 covers rounding in float64
        most_ = 1.0 - slack;
        unit_ = step * 0x1p-15;
        // Approximate kernels of small z are too large by 5e-5 on average, so bounds are slightly looser than the
        // slack. Without the extra eighth, the guess of search/screening.hpp was too small in 43 of 100 searches for
        // the 51 nearest nodes on Yeast, and 40 % more nodes needed tighter bounds.
        looseness_ = 1.125 * slack + won;
    }

    [[gnu::noinline]] std::int64_t alike(const std::int16_t* x, const std::int16_t* y) const noexcept {
        return sum_of_likeness<false, 0, false>(x, y, nullptr, shares_.data(), width_);
    }

    std::int64_t d_, width_;
    std::int32_t middle_;
    float factor_, per_code_;
    Rows<std::int16_t> codes_;
    Rows<std::int8_t> rests_;
    Array<std::int16_t> shares_;
    double most_ = 0.0, unit_ = 0.0, looseness_ = 0.0;
};

class RankCodes {
public:
    static constexpr std::int64_t PER_KEY_UNIT = std::int64_t{1} << 20;

    // Working memory for up to SCAN_ROWS rows.
    struct Space {
        Array<std::int32_t> ranks[SCAN_ROWS];
        Array<std::int32_t> ranks_of_node;
        Array<std::int16_t> codes[SCAN_ROWS];
        std::vector<LookupTables> tables;
        Screening screening;
        std::int64_t step = 0;  // units per bound step
    };

    // Prepare for n_nodes nodes. If their ranks are known, `lay_out` encodes them; otherwise they are entered one by
    // one. All features must count in the similarity, that is, it must not be `sparse`.
    RankCodes(const Learned& learned, RankedRows known, std::int64_t n_nodes)
        : d_(learned.n_features()),
          width_(Learned::padded(d_)),
          is_coded_(known.is_coded),
          known_(std::move(known.ranks)),
          codes_(std::move(known.codes)),
          look_(learned, RankedRows::expected(n_nodes)),
          shares_(static_cast<std::size_t>(width_), 0.0f),
          entered_(static_cast<std::size_t>(d_)),
          cells_of_node_(static_cast<std::size_t>(d_)) {
        for (std::int64_t j = 0; j < d_; ++j) {
            shares_.data()[j] = static_cast<float>(static_cast<double>(learned.weights.data()[j]) / static_cast<double>(learned.total));
            largest_share_ = std::max(largest_share_, shares_.data()[j]);
        }
        r_ = static_cast<float>(learned.r);
    }

    // Reserve memory for the codes of n_slots slots; a failure changes nothing.
    void reserve(std::int64_t n_slots) {
        look_.reserve(n_slots);
        if (is_coded_) codes_.reserve(n_slots);
    }

    // Compute the ranks, counted from the lowest, of a node that will be entered next: a new one, one that has moved,
    // or one that replaces a withdrawn node.
    const std::int32_t* rank_node(const Learned& learned, const double* weights) noexcept {
        learned.ranks.rank_row(weights, d_, entered_.data());
        return entered_.data();
    }
    // Write the codes of the node last passed to `rank_node` into a slot: the node's index, or its slot in a cell.
    void enter(std::int64_t slot) noexcept {
        look_.enter(slot, entered_.data());
        if (!is_coded_) return;
        find_cells(entered_.data());
        codes_.enter(slot, cells_of_node_.data());
    }
    // The ranks of a known node; valid until `lay_out` is called.
    const std::int32_t* known_ranks(std::int64_t node) const noexcept { return known_[node]; }
    // Encode the first n nodes, whose four-bit codes are known.
    void lay_out(std::int64_t n) {
        look_.reserve(n);
        for (std::int64_t k = 0; k < n; ++k) look_.enter(k, known_[k]);
        known_ = Rows<std::int32_t>(width_);
    }
    // Encode the known nodes into the slots of their cells, one slot after another.
    void lay_out(const NodeCells& cells) {
        const std::int64_t n_slots = cells.n_slots();
        look_.reserve(n_slots);
        if (is_coded_) {
            codes_ = Codes4(d_, RankedRows::expected(n_slots));
            codes_.reserve(n_slots);
        }
        Array<std::uint8_t> columns(static_cast<std::size_t>(d_ * BLOCK), std::uint8_t{0});
        for (std::int64_t first = 0; first < n_slots; first += BLOCK) {
            for (std::int64_t i = 0; i < BLOCK; ++i) {
                const std::int64_t node = cells.node(first + i);
                if (node < 0) continue;
                look_.enter(first + i, known_[node]);
                find_cells(known_[node]);
                for (std::int64_t j = 0; j < d_; ++j) columns.data()[j * BLOCK + i] = cells_of_node_.data()[j];
            }
            for (std::int64_t j = 0; is_coded_ && j < d_; ++j) codes_.enter_block(first / BLOCK, j, columns.data() + j * BLOCK);
        }
        known_ = Rows<std::int32_t>(width_);
    }

    // Compute the ranks, codes and lookup tables of up to SCAN_ROWS rows.
    void lay_out(const Learned& learned, const double* const* rows, int n_rows, Space& space) const {
        grow_to(space.ranks_of_node, width_);
        for (int q = 0; q < n_rows; ++q) {
            grow_to(space.ranks[q], width_);
            std::int32_t* ranks = space.ranks[q].data();
            learned.ranks.rank_row(rows[q], d_, ranks);
            std::fill(ranks + d_, ranks + width_, 0);
            grow_to(space.codes[q], look_.width());
            look_.encode(ranks, space.codes[q].data());
        }
        if (!is_coded_) return;
        if (space.tables.empty() || space.tables[0].n_features() != d_) space.tables.assign(SCAN_ROWS, LookupTables(d_));
        const double largest_term = static_cast<double>(largest_share_) * PER_KEY * static_cast<double>(PER_KEY_UNIT) / PER_UNIT * (1.0 - 1e-6);
        for (int q = 0; q < n_rows; ++q) {
            space.tables[static_cast<std::size_t>(q)].fill_ranked(space.ranks[q].data(), shares_.data(), largest_share_, r_, RANK_STEP, largest_term);
        }
        space.step = Screening::bound_step(space.tables[0]);
    }
    // Compute the bounds on the sums of the rows passed to `lay_out` with each of the first n nodes.
    void begin(int n_rows, std::int64_t n_nodes, Space& space) const {
        if (!is_coded_) {
            space.step = 1;
            for (int q = 0; q < n_rows; ++q) std::fill_n(space.screening.bounds(q, n_nodes), n_nodes, std::uint16_t{0});
            return;
        }
        const LookupTables* tables[SCAN_ROWS];
        for (int q = 0; q < n_rows; ++q) tables[q] = &space.tables[static_cast<std::size_t>(q)];
        space.screening.bound_all(codes_, tables, n_rows, n_nodes);
    }
    // Compute the bounds on the sums of one row with the nodes of the visited cells. (Models with too many features for
    // four-bit codes have no cells.)
    void begin(const NodeCells::Space& visited, Space& space) const {
        space.screening.bound_blocks(codes_, space.tables[0], visited.blocks);
    }

    // List the nodes of a range that are nearest to row q, with their keys; nodes with keys above the limit may be
    // omitted. weights(node) returns the weights of a node.
    template <class Weights>
    void list(const Learned& learned, const Weights& weights, int q, Stretch nodes, std::int64_t n_wanted, std::int64_t limit,
              const std::uint8_t* gone, Space& space, TopK& found) const {
        const auto sums = sums_of(learned, weights, nullptr, q, space);
        space.screening.list_nearest_within(q, nodes, space.step, n_wanted, cap_of(limit), sums, gone, found);
        turn_into_keys(found);
    }
    // The variant of `list` for the nodes of visited cells.
    template <class Weights>
    void list(const Learned& learned, const Weights& weights, const NodeCells& cells, const NodeCells::Space& visited, std::int64_t n_wanted,
              std::int64_t limit, const std::uint8_t* gone, Space& space, TopK& found) const {
        const auto n_blocks = static_cast<std::int64_t>(visited.blocks.size());
        const auto sums = sums_of(learned, weights, &cells, 0, space);
        space.screening.list_nearest_in_blocks(n_blocks, cells.places(visited), space.step, n_wanted, cap_of(limit), sums, gone, found);
        turn_into_keys(found);
    }

    // Compute the ranks, counted from the lowest, of the node at a slot; weights() returns its weights.
    template <class Weights>
    void ranks(const Learned& learned, std::int64_t slot, const Weights& weights, std::int32_t* out) const {
        look_.decode(learned, slot, weights, out);
    }

    // The rank of row q in a feature minus the rank of 0, as the background requires it.
    std::int32_t rank(const Learned& learned, int q, std::int64_t feature, const Space& space) const noexcept {
        return space.ranks[q].data()[feature] - learned.ranks.zeros.data()[feature];
    }

private:
    void find_cells(const std::int32_t* __restrict ranks) noexcept {
        std::uint8_t* __restrict cells = cells_of_node_.data();
        for (std::int64_t j = 0; j < d_; ++j) cells[j] = rank_cell(ranks[j], RANK_STEP);
    }

    static std::int64_t cap_of(std::int64_t limit) noexcept { return limit < NO_LIMIT / PER_KEY_UNIT - 1 ? (limit + 1) * PER_KEY_UNIT : NO_LIMIT; }
    static void turn_into_keys(TopK& found) noexcept {
        for (std::int64_t i = 0; i < found.size(); ++i) {
            std::int64_t& sum = found.sums.data()[i];
            sum = sum / PER_KEY_UNIT - 1;
        }
    }

    template <class Weights>
    struct Sums {
        const RankCodes& screen;
        const Learned& learned;
        const Weights& weights;
        const NodeCells* cells;  // null if a node's slot is its index
        const std::int32_t* x;
        const std::int16_t* code;
        std::int32_t* ranks_of_node;  // working memory

        std::int64_t slot(std::int64_t node) const noexcept { return cells != nullptr ? cells->slot(node) : node; }
        std::int64_t exact(std::int64_t node) const {
            screen.ranks(learned, slot(node), [&] { return weights(node); }, ranks_of_node);
            return (learned.dense_key(x, ranks_of_node) + 1) * PER_KEY_UNIT;
        }
        [[gnu::always_inline]] void fetch(std::int64_t node) const { fetch_row(screen.look_.rests(slot(node)), screen.d_); }
        std::int64_t lower(std::int64_t slot) const {
            const double d = screen.look_.lower(code, slot);
            return d > 0.0 ? static_cast<std::int64_t>(d * (PER_KEY * static_cast<double>(PER_KEY_UNIT))) : 0;
        }
        [[gnu::always_inline]] void fetch_fine(std::int64_t slot) const { fetch_row(screen.look_.code(slot), screen.d_); }
        // Rounding adds an error of up to two keys.
        std::int64_t looseness() const {
            return static_cast<std::int64_t>((screen.look_.looseness() * PER_KEY + 2.0) * static_cast<double>(PER_KEY_UNIT));
        }
    };

    template <class Weights>
    Sums<Weights> sums_of(const Learned& learned, const Weights& weights, const NodeCells* cells, int q, Space& space) const noexcept {
        return {*this, learned, weights, cells, space.ranks[q].data(), space.codes[q].data(), space.ranks_of_node.data()};
    }

    std::int64_t d_, width_;
    bool is_coded_;
    Rows<std::int32_t> known_;      // ranks of the known nodes; none after `lay_out`
    Codes4 codes_;
    RankCodes16 look_;
    Array<float> shares_;           // each feature's share of the total weight
    Array<std::int32_t> entered_;   // ranks of the node last passed to `rank_node`
    Array<std::uint8_t> cells_of_node_;
    float largest_share_ = 0.0f, r_ = 0.0f;
};

}  // namespace mlca::MLCA_LEVEL
