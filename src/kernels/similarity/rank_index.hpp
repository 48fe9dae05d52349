// Nearest-node search under the learned similarity.
//
// If most entries are zero, or rows are sparse, nodes are listed by feature (search/rank_postings.hpp). Otherwise they
// are screened by their ranks (search/rank_codes.hpp). In models with missing values or nominal features, short and
// mostly non-zero rows are stored as lists of ranks (`RankedEntries`) and screened by float32 tiles
// (search/float_tiles.hpp). Such tiles are also built on demand when rows with missing values are compared with dense
// nodes. All structures are derived from the nodes and the similarity, are updated when a node is added or moves, and
// are rebuilt when the similarity is recomputed.
//
// Above a given number of nodes, the nodes may also be grouped into cells (search/node_cells.hpp), unless most entries
// are zero. Then a row is compared only with the nodes of visited cells.
//
// `compare` does the work that is needed once per row; its callback can then list the nearest of all nodes, or of a
// range of nodes, any number of times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "similarity/rank_distance.hpp"
#include "search/rank_postings.hpp"
#include "search/float_tiles.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "base/memory.hpp"
#include "base/pair_rows.hpp"
#include "search/rank_codes.hpp"
#include "search/neighbour_index.hpp"
#include "search/node_cells.hpp"
#include "bandwidth/sparse_window.hpp"
#include "base/team.hpp"
#include "similarity/fit_similarity.hpp"

namespace mlca::MLCA_LEVEL {

// The ranks of nodes with missing values or nominal features, entry by entry, and their tiles.
class RankedEntries {
public:
    explicit RankedEntries(const Learned& learned) : starts_(1, 0), tiles_(no_tiles(learned)) {}

    static FloatTiles no_tiles(const Learned& learned) {
        Array<float> weights;
        for (std::int64_t j = 0; j < learned.n_features(); ++j) weights.push_back(static_cast<float>(learned.factors.data()[j]));
        return {std::move(weights), learned.nominal};
    }

    // Reserve memory for the next node x, so that there is room for n_nodes nodes and n_slots slots in total.
    template <class Row>
    void reserve(std::int64_t n_nodes, std::int64_t n_slots, const Row& x) {
        const auto n = static_cast<std::size_t>(n_nodes);
        if (starts_.capacity() < n + 1) starts_.reserve(n + n / 2 + 64);
        if (has_moved_.capacity() < n) has_moved_.reserve(n + n / 2 + 64);
        const std::size_t entries = ranks_.size() + static_cast<std::size_t>(x.n);
        if (ranks_.capacity() < entries) ranks_.reserve(entries + entries / 2);
        tiles_.reserve(n_slots);
    }
    // Enter the next node; its slot determines its tile.
    template <class Row>
    void enter(const Learned& learned, std::int64_t node, std::int64_t slot, const Row& x) noexcept {
        for (std::int64_t p = 0; p < x.n; ++p) ranks_.push_back(rank(learned, x.keys[p], x.values[p]));
        starts_.push_back(static_cast<std::int64_t>(ranks_.size()));
        has_moved_.push_back(0);
        const std::int32_t* node_ranks = ranks_.data() + starts_.data()[node];
        tiles_.enter(slot, x, [&](std::int64_t p) { return kept(learned, x.keys[p], x.values[p], node_ranks[p]); });
    }
    // Update the tile of a moved node; its ranks are computed on demand until the similarity is recomputed.
    void move(const Learned& learned, std::int64_t node, std::int64_t slot, const SparseRow& x) noexcept {
        has_moved_.data()[node] = 1;
        tiles_.enter(slot, x, [&](std::int64_t p) { return kept(learned, x.keys[p], x.values[p], rank(learned, x.keys[p], x.values[p])); });
    }
    void withdraw(std::int64_t first) noexcept {
        if (static_cast<std::int64_t>(has_moved_.size()) <= first) return;
        has_moved_.resize(static_cast<std::size_t>(first));
        starts_.resize(static_cast<std::size_t>(first + 1));
        ranks_.resize(static_cast<std::size_t>(starts_.back()));
    }

    // The ranks of a node's entries; null if it has moved.
    const std::int32_t* ranks(std::int64_t node) const noexcept { return has_moved_.data()[node] ? nullptr : ranks_.data() + starts_.data()[node]; }

    // The rank of a number. Missing and nominal values have no rank and get 0.
    static std::int32_t rank(const Learned& learned, std::int64_t feature, double value) noexcept {
        return is_missing(value) || is_nominal(learned.nominal, feature) ? 0 : learned.ranks(feature, value);
    }

    // Compute lower bounds on the keys of a row with the nodes at the first n_places places; `ranks_of_x` holds the
    // row's rank in each feature. Return whether this is possible.
    template <class Row, class Places>
    bool bound(const Learned& learned, const Row& x, const std::int32_t* ranks_of_x, const Places& places, std::int64_t n_places,
        FloatTiles::Space& space, Stop& stop) const {
        const auto kept_of_x = [&](std::int64_t p) { return kept(learned, x.keys[p], x.values[p], ranks_of_x[x.keys[p]]); };
        return bound(tiles_, learned, x, kept_of_x, places, n_places, space, stop);
    }
    // The variant of the function above for any tiles; kept(p) is the value that tiles would store for the row's entry
    // p.
    template <class Row, class Kept, class Places>
    static bool bound(const FloatTiles& tiles, const Learned& learned, const Row& x, const Kept& kept, const Places& places,
        std::int64_t n_places, FloatTiles::Space& space, Stop& stop) {
        if (!tiles.can() || !tiles.lay_out(x, kept, space)) return false;
        tiles.bound(places, n_places, learned.r, 1.0 - kernel(learned.apart(), learned.r), !learned.sparse, PER_KEY, space, stop);
        return true;
    }

private:
    // The value stored in tiles: the code of a category, or the rank of a number, which is made non-zero unless the
    // number is 0.
    static double kept(const Learned& learned, std::int64_t feature, double value, std::int32_t rank) noexcept {
        if (is_missing(value) || value == 0.0 || is_nominal(learned.nominal, feature)) return value;
        return rank == 0 ? 0.25 : static_cast<double>(rank);
    }

    Array<std::int64_t> starts_;
    Array<std::int32_t> ranks_;
    Array<std::uint8_t> has_moved_;
    FloatTiles tiles_;
};

template <class Row>
class RankIndex {
    static_assert(TILE == BLOCK, "a tile holds the nodes of a block of slots");

public:
    static constexpr bool SPARSE_ROWS = std::is_same_v<Row, SparseRow>;
    using RowOf = FunctionRef<Row(std::int64_t)>;
    using Compared = FunctionRef<void(std::int64_t, NearestIn, FunctionRef<void(std::int64_t*)>)>;

    // Working memory of a thread.
    struct Space {
        RankCodes::Space ranked;
        Probe::Space probe;
        RankPostings::Space lists;
        FloatTiles::Space tiles;
        Array<std::int32_t> keys, other_keys, other_ranks;
        Array<double> values, other_values, present;
        TopK found{1};
        NodeCells::Space cells;
    };

    // Compute the similarity from all nodes, and group them into cells if there are enough of them.
    template <class View>
    static RankIndex of(const View& view, const CellLimits& limits, Stop& stop, ParallelFor parallel_for) {
        RankIndex made = of(view);
        if (view.n_nodes() > limits.from && made.can_have_cells(limits)) {
            made.cells_.emplace(made.learned_, limits);
            const auto place_known = [&](std::int64_t k, float* place) {
                if (made.screen_) return made.cells_->place(made.screen_->known_ranks(k), place);
                made.place_row(view.row(k), place);
            };
            made.cells_->build(view.n_nodes(), place_known, stop, parallel_for);
            if (made.screen_) made.screen_->lay_out(*made.cells_);
        } else if (made.screen_) {
            made.screen_->lay_out(view.n_nodes());
        }
        if constexpr (SPARSE_ROWS) {
            for (std::int64_t k = 0; made.entries_ && k < view.n_nodes(); ++k) {
                made.reserve(k + 1, view.row(k));
                made.enter(k, view.row(k));
            }
        }
        return made;
    }
    // Compute the similarity from some of the nodes, and enter all nodes.
    template <class View>
    static RankIndex of_some(const View& some, const View& all) {
        RankIndex made(SimilarityFit<View>(some).learned(), all.is_incomplete(), all.n_nodes());
        for (std::int64_t k = 0; k < all.n_nodes(); ++k) {
            made.reserve(k + 1, all.row(k));
            made.enter(k, all.row(k));
        }
        return made;
    }

    // Start from a known similarity; n_nodes nodes will be entered next.
    RankIndex(Learned learned, bool incomplete, std::int64_t n_nodes) : learned_(std::move(learned)) {
        if (SPARSE_ROWS && incomplete && !learned_.sparse && learned_.n_features() <= FloatTiles::MOST_FEATURES) {
            entries_.emplace(learned_);
        } else if (SPARSE_ROWS || learned_.sparse) {
            lists_.emplace(learned_.n_features());
        } else {
            screen_.emplace(learned_, RankedRows(learned_.n_features(), RankedRows::expected(n_nodes)), n_nodes);
        }
    }
    // Restore the cells of a saved state, before any node is entered. Return whether the state is valid.
    bool take_cells(const CellState& state, const CellLimits& limits, std::int64_t n_nodes) {
        if (!can_have_cells(limits)) return false;
        cells_.emplace(learned_, limits);
        if (!cells_->is_sound(state, n_nodes)) return false;
        cells_->restore(state);
        return true;
    }
    const std::optional<NodeCells>& cells() const noexcept { return cells_; }
    void give_up(std::int64_t node) noexcept {
        if (cells_) cells_->give_up(node);
    }

    const Learned& learned() const noexcept { return learned_; }
    // Compute the ranks, counted from the lowest, of a node with features x. Return `ranks`, or null if no node ranks
    // are stored.
    const std::int32_t* node_ranks(std::int64_t node, const Row& x, std::int32_t* ranks) const noexcept {
        if constexpr (SPARSE_ROWS) {
            return nullptr;
        } else {
            if (!screen_) return nullptr;
            screen_->ranks(learned_, slot(node), [&] { return x; }, ranks);
            return ranks;
        }
    }

    // Reserve memory for a node, so that `enter` cannot fail.
    void reserve(std::int64_t n_nodes, const Row& x) {
        if (cells_) {
            cells_->reserve(n_nodes);
            grow_to(entered_place_, learned_.n_features());
        }
        if constexpr (SPARSE_ROWS) {
            if (entries_) return entries_->reserve(n_nodes, cells_ ? cells_->n_slots_after() : n_nodes, x);
        }
        made_tiles_.drop();
        if (screen_) {
            screen_->reserve(cells_ ? cells_->n_slots_after() : n_nodes);
        } else {
            const Entries of_x = entries(x, entered_keys_, entered_values_);
            lists_->reserve(learned_, of_x.keys, of_x.values, of_x.n);
        }
    }
    // Enter the next node. For a dense node, `reserve` must have been called.
    void enter(std::int64_t node, const Row& x) noexcept {
        const std::int32_t* ranks = nullptr;
        if constexpr (!SPARSE_ROWS) {
            if (screen_) ranks = screen_->rank_node(learned_, x);
        }
        if (cells_ && !cells_->holds(node)) {
            float* place = entered_place_.data();
            ranks != nullptr ? cells_->place(ranks, place) : place_row(x, place);
            cells_->enter(node, place);
        }
        if (screen_) return screen_->enter(slot(node));
        if constexpr (SPARSE_ROWS) {
            if (entries_) return entries_->enter(learned_, node, slot(node), x);
        }
        const Entries of_x = known_entries(x);
        lists_->enter(learned_, of_x.keys, of_x.values, of_x.n);
    }
    void move(std::int64_t node, const Row& x) noexcept {
        made_tiles_.drop();
        if constexpr (SPARSE_ROWS) {
            if (entries_) return entries_->move(learned_, node, slot(node), x);
        } else if (screen_) {
            screen_->rank_node(learned_, x);
            return screen_->enter(slot(node));
        }
        lists_->leave(node);
    }
    // Remove the nodes from `first` on; row(node) returns the features of a node.
    void withdraw(std::int64_t first, RowOf row) noexcept {
        if (cells_) cells_->withdraw(first);
        if (entries_) entries_->withdraw(first);
        while (lists_ && lists_->n_nodes() > first) {
            if constexpr (SPARSE_ROWS) {
                const Row x = row(lists_->n_nodes() - 1);
                lists_->withdraw(learned_, x.keys, x.values, x.n);
            } else {
                lists_->withdraw_dense(row(lists_->n_nodes() - 1), learned_.n_features());
            }
        }
    }

    // Compare each row q with the first n_nodes[q] nodes, except those flagged in `gone`; `n_nodes` must be ascending.
    // For each row, f(q, nearest_in, score) is called, where nearest_in(low, high, n, limit) lists nodes with their
    // keys, and score(scores) computes the row's background scores. With cells, nodes of the visited blocks
    // (`space.cells.blocks`) are listed, regardless of `low` and `high`.
    void compare(const Row* rows, const std::int64_t* n_nodes, std::int64_t n_rows, RowOf row, Gone gone, Space& space, Stop& stop,
        Compared f) const {
        if constexpr (!SPARSE_ROWS) {
            if (screen_) return compare_screened(rows, n_nodes, n_rows, row, gone, space, stop, f);
        }
        for (std::int64_t q = 0; q < n_rows; ++q) {
            stop.check();
            if (cells_) visit(rows[q], n_nodes[q], gone, space);
            compare_listed(rows[q], n_nodes[q], q, row, gone.flags, space, stop, f);
        }
    }

    // Call f(feature, contribution to D, largest possible contribution) for each feature that counts in the comparison
    // of a row with a node.
    template <class F>
    void for_each_term(const Row& x, const Row& y, F f) const {
        Array<double> values(static_cast<std::size_t>(2 * learned_.n_features()), 0.0);
        double *a = values.data(), *b = a + learned_.n_features();
        for_each_entry(x, [&](std::int64_t j, double value) { a[j] = value; });
        for_each_entry(y, [&](std::int64_t j, double value) { b[j] = value; });
        for (std::int64_t j = 0; j < learned_.n_features(); ++j) {
            const bool nominal = is_nominal(learned_.nominal, j);
            if (is_missing(a[j]) || is_missing(b[j]) || (learned_.sparse && !nominal && a[j] == 0.0 && b[j] == 0.0)) continue;
            // If there are millions of features, most are zero in both row and node, and their ranks are not needed.
            const std::int32_t difference = a[j] == b[j] ? 0 : nominal ? learned_.apart() : learned_.ranks(j, a[j]) - learned_.ranks(j, b[j]);
            f(j, learned_.term(j, difference), learned_.weights.data()[j]);
        }
    }

private:
    // Start with dense nodes whose ranks are known, but not yet encoded.
    RankIndex(Learned learned, RankedRows rows, std::int64_t n_nodes) : learned_(std::move(learned)) {
        screen_.emplace(learned_, std::move(rows), n_nodes);
    }

    // The first step of the public `of`: compute the similarity, without cells, codes and tiles.
    template <class View>
    static RankIndex of(const View& view) {
        SimilarityFit weighing(view);
        Learned learned = weighing.learned();
        if (!SPARSE_ROWS && !learned.sparse) return RankIndex(std::move(learned), weighing.take_rows(), view.n_nodes());
        RankIndex made(std::move(learned), view.is_incomplete(), view.n_nodes());
        if (!made.entries_) made.lists_.emplace(view, made.learned_);
        return made;
    }

    bool can_have_cells(const CellLimits& limits) const noexcept {
        return limits.from > 0 && !learned_.sparse && learned_.n_features() <= NodeCells::MOST_FEATURES;
    }
    // The slot at which the codes of a node are stored.
    std::int64_t slot(std::int64_t node) const noexcept { return cells_ ? cells_->slot(node) : node; }
    void place_row(const Row& x, float* place) const noexcept {
        cells_->place_of_entries(learned_, [&](auto f) { for_each_entry(x, f); }, place);
    }
    // Visit the cells near a row; the blocks visited are written to `space.cells`.
    void visit(const Row& x, std::int64_t n_nodes, Gone gone, Space& space) const {
        place_row(x, place_in(space));
        cells_->visit(n_nodes, gone.n, space.cells);
    }
    float* place_in(Space& space) const {
        grow_to(space.cells.place, learned_.n_features());
        return space.cells.place.data();
    }

    struct Entries {
        const std::int32_t* keys;
        const double* values;
        std::int64_t n;
    };

    template <class F>
    void for_each_entry(const Row& x, F f) const {
        if constexpr (SPARSE_ROWS) {
            for (std::int64_t p = 0; p < x.n; ++p) f(x.keys[p], x.values[p]);
        } else {
            for (std::int64_t j = 0; j < learned_.n_features(); ++j) f(j, x[j]);
        }
    }

    // The non-zeros of a row; those of a dense row are gathered into two arrays.
    Entries entries(const Row& x, Array<std::int32_t>& keys, Array<double>& values) const {
        if constexpr (SPARSE_ROWS) {
            return {x.keys, x.values, x.n};
        } else {
            grow_to(keys, learned_.n_features());
            grow_to(values, learned_.n_features());
            return gathered(x, keys.data(), values.data());
        }
    }
    // The non-zeros of a row that is being entered; the working arrays are known to be long enough.
    Entries known_entries(const Row& x) noexcept {
        if constexpr (SPARSE_ROWS) {
            return {x.keys, x.values, x.n};
        } else {
            return gathered(x, entered_keys_.data(), entered_values_.data());
        }
    }
    Entries gathered(const double* x, std::int32_t* keys, double* values) const noexcept {
        std::int64_t n = 0;
        for (std::int64_t j = 0; j < learned_.n_features(); ++j) {
            keys[n] = static_cast<std::int32_t>(j);
            values[n] = x[j];
            n += x[j] != 0.0;
        }
        return {keys, values, n};
    }

    void compare_screened(const Row* rows, const std::int64_t* n_nodes, std::int64_t n_rows, RowOf row, Gone gone, Space& space, Stop& stop,
        Compared f) const {
        const auto is_complete = [&](std::int64_t q) { return !has_missing(rows[q], learned_.n_features()); };
        for (std::int64_t first = 0; first < n_rows;) {
            stop.check();
            if (!is_complete(first)) {
                if (cells_) visit(rows[first], n_nodes[first], gone, space);
                compare_present(rows[first], n_nodes[first], first, row, gone.flags, space, stop, f);
                ++first;
                continue;
            }
            int n = 1;
            while (!cells_ && n < SCAN_ROWS && first + n < n_rows && is_complete(first + n)) ++n;
            screen_->lay_out(learned_, rows + first, n, space.ranked);
            if (cells_) {
                cells_->place(space.ranked.ranks[0].data(), place_in(space));
                cells_->visit(n_nodes[first], gone.n, space.cells);
                screen_->begin(space.cells, space.ranked);
            } else {
                screen_->begin(n, n_nodes[first + n - 1], space.ranked);
            }
            for (int q = 0; q < n; ++q) {
                const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const TopK& {
                    if (cells_) {
                        screen_->list(learned_, row, *cells_, space.cells, n_wanted, limit, gone.flags, space.ranked, space.found);
                    } else {
                        screen_->list(learned_, row, q, {low, high}, n_wanted, limit, gone.flags, space.ranked, space.found);
                    }
                    return space.found;
                };
                const auto score = [&](std::int64_t* scores) {
                    learned_.background.begin(scores);
                    for (std::int64_t j = 0; j < learned_.n_features(); ++j)
                        learned_.background.add(scores, j, screen_->rank(learned_, q, j, space.ranked));
                };
                f(first + q, nearest_in, score);
            }
            first += n;
        }
    }

    // Compare a dense row that has missing values with dense nodes; missing features get weight 0.
    void compare_present(const Row& x, std::int64_t n_nodes, std::int64_t q, RowOf row, const std::uint8_t* gone, Space& space, Stop& stop,
        Compared f) const {
        const std::int64_t d = learned_.n_features();
        space.present.assign(learned_.factors.begin(), learned_.factors.end());
        std::int64_t below = learned_.total;
        for (std::int64_t j = 0; j < d; ++j) {
            if (!is_missing(x[j])) continue;
            space.present.data()[j] = 0.0;
            below -= learned_.weights.data()[j];
        }
        space.other_ranks.assign(static_cast<std::size_t>(Learned::padded(d)), 0);
        learned_.ranks.rank_row(x, d, space.other_ranks.data());
        grow_to(space.ranked.ranks_of_node, Learned::padded(d));
        const auto ranks_of = [&](std::int64_t k) {
            screen_->ranks(learned_, slot(k), [&] { return row(k); }, space.ranked.ranks_of_node.data());
            return space.ranked.ranks_of_node.data();
        };
        const auto key = [&](std::int64_t k) {
            return learned_.dense_key_of_present(space.other_ranks.data(), ranks_of(k), space.present.data(), below);
        };
        // All features count here, so values with the same rank as 0 need not be distinguished from 0.
        const auto kept = [&](const std::int32_t* node_ranks, std::int64_t j) {
            return static_cast<double>(node_ranks[j] - learned_.ranks.zeros.data()[j]);
        };
        const AllEntries all{{}, d};
        std::shared_ptr<const FloatTiles> tiles;
        if (!cells_ && d <= FloatTiles::MOST_FEATURES) {
            tiles = made_tiles_.get(n_nodes, [&] {
                FloatTiles made = RankedEntries::no_tiles(learned_);
                made.reserve(n_nodes);
                for (std::int64_t k = 0; k < n_nodes; ++k)
                    made.enter(k, all, [&, ranks = ranks_of(k)](std::int64_t j) { return kept(ranks, j); });
                return made;
            });
        }
        const auto kept_of_x = [&](std::int64_t j) { return is_missing(x[j]) ? MISSING : kept(space.other_ranks.data(), j); };
        const bool by_tiles = tiles && RankedEntries::bound(*tiles, learned_, all, kept_of_x, PlacesOfAll{}, n_nodes, space.tiles, stop);
        const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const TopK& {
            return by_tiles ? list_by_tiles(PlacesOfAll{}, low, high, n_wanted, limit, gone, key, space)
                : offer_all(low, high, n_wanted, limit, gone, key, space, stop);
        };
        const auto score = [&](std::int64_t* scores) {
            learned_.background.begin(scores);
            for (std::int64_t j = 0; j < d; ++j) add_to_scores(scores, j, x[j], space.other_ranks.data()[j] - learned_.ranks.zeros.data()[j]);
        };
        f(q, nearest_in, score);
    }

    void compare_listed(const Row& x, std::int64_t n_nodes, std::int64_t q, RowOf row, const std::uint8_t* gone, Space& space, Stop& stop,
        Compared f) const {
        const Entries of_x = entries(x, space.keys, space.values);
        space.probe.reserve(learned_.n_features());
        const Probe probe(learned_, of_x.keys, of_x.values, of_x.n, space.probe);
        if (lists_) lists_->correct(learned_, of_x.keys, of_x.values, of_x.n, n_nodes, space.lists);
        const auto key = [&](std::int64_t k) {
            const Entries y = entries(row(k), space.other_keys, space.other_values);
            return probe.key(y.keys, y.values, ranks(k, y, space), y.n);
        };
        const auto bound = [&](const auto& places, std::int64_t n_places) {
            return entries_->bound(learned_, of_x, space.probe.ranks.data(), places, n_places, space.tiles, stop);
        };
        const bool by_tiles =
            entries_ && (cells_ ? bound(cells_->places(space.cells), NodeCells::n_places(space.cells)) : bound(PlacesOfAll{}, n_nodes));
        const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const TopK& {
            if (by_tiles && cells_) {
                return list_by_tiles(cells_->places(space.cells), 0, NodeCells::n_places(space.cells), n_wanted, limit, gone, key, space);
            }
            if (by_tiles) return list_by_tiles(PlacesOfAll{}, low, high, n_wanted, limit, gone, key, space);
            if (!lists_) return offer_all(low, high, n_wanted, limit, gone, key, space, stop);
            space.found.begin(n_wanted, limit);
            space.found.skip(gone);
            double most = Parts::most_above(space.found.limit(), 1);
            const auto look_at = [&](std::int64_t k) {
                if (!lists_->lists(k)) {
                    space.found.offer(k, key(k));
                } else {
                    const Parts parts = lists_->parts(probe.alone(), k, space.lists);
                    if (static_cast<double>(parts.above) > most * static_cast<double>(parts.below)) return;
                    // The lists do not record whether any feature was compared, so `key` is called if the weights sum
                    // to 0.
                    space.found.offer(k, parts.below == 0 ? key(k) : parts.key());
                }
                most = Parts::most_above(space.found.limit(), 1);
            };
            for_each_visited(low, high, space, look_at);
            return space.found;
        };
        const auto score = [&](std::int64_t* scores) {
            learned_.background.begin(scores);
            for (std::int64_t p = 0; p < of_x.n; ++p) add_to_scores(scores, of_x.keys[p], of_x.values[p], space.probe.ranks.data()[of_x.keys[p]]);
            for (const std::int32_t j : learned_.nominal_features) {
                if (space.probe.values.data()[j] == 0.0) add_to_scores(scores, j, 0.0, 0);
            }
        };
        f(q, nearest_in, score);
    }

    // List the nearest of a range of nodes by computing the keys of all of them.
    template <class Key>
    const TopK& offer_all(std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit, const std::uint8_t* gone, const Key& key,
        Space& space, Stop& stop) const {
        space.found.begin(n_wanted, limit);
        space.found.skip(gone);
        for_each_visited(low, high, space, [&](std::int64_t k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            space.found.offer(k, key(k));
        });
        return space.found;
    }

    // Call f(node) for the nodes of a range; with cells, for the nodes of visited cells instead.
    template <class F>
    void for_each_visited(std::int64_t low, std::int64_t high, const Space& space, const F& f) const {
        if (cells_) {
            cells_->for_each_visited(space.cells, f);
        } else {
            for (std::int64_t k = low; k < high; ++k) f(k);
        }
    }

    // List the nearest of a range of places, skipping the nodes that bounds from tiles exclude.
    template <class Places, class Key>
    static const TopK& list_by_tiles(const Places& places, std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit, const std::uint8_t* gone,
        const Key& key, Space& space) {
        space.found.begin(n_wanted, limit);
        space.found.skip(gone);
        FloatTiles::list_nearest(places, low, high, space.tiles, space.found, key);
        return space.found;
    }

    const std::int32_t* ranks(std::int64_t node, const Entries& y, Space& space) const {
        if (const std::int32_t* known = entries_ ? entries_->ranks(node) : nullptr) return known;
        grow_to(space.other_ranks, y.n);
        for (std::int64_t p = 0; p < y.n; ++p) space.other_ranks.data()[p] = RankedEntries::rank(learned_, y.keys[p], y.values[p]);
        return space.other_ranks.data();
    }

    // Add the contribution of a value to the background's scores; `rank` is the value's rank if it is a number.
    void add_to_scores(std::int64_t* scores, std::int64_t feature, double value, std::int32_t rank) const noexcept {
        const Background& background = learned_.background;
        if (!is_nominal(learned_.nominal, feature))
            return is_missing(value) ? background.add_missing(scores, feature) : background.add(scores, feature, rank);
        const std::int64_t d = learned_.n_features();
        if (is_missing(value)) {
            const auto [first, end] = learned_.traits.of(feature);
            for (std::int64_t t = first; t < end; ++t) background.add_missing(scores, d + t);
        } else if (const std::int64_t t = learned_.traits.find(feature, value); t >= 0) {
            background.add(scores, d + t, static_cast<std::int32_t>(learned_.ranks.one()));
        }
    }

    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 256;

    Learned learned_;
    std::optional<RankCodes> screen_;
    std::optional<RankPostings> lists_;
    std::optional<RankedEntries> entries_;
    std::optional<NodeCells> cells_;
    TilesOnDemand<FloatTiles> made_tiles_;  // for rows with missing values, if there is a `screen_`
    Array<std::int32_t> entered_keys_;  // working memory of `enter`
    Array<double> entered_values_;
    Array<float> entered_place_;
};

}  // namespace mlca::MLCA_LEVEL
