// Nodes with sparse weights, whose distances are computed at a cost proportional to their non-zeros.
//
// A feature in which row and node are equal adds nothing, so only features in which either is non-zero matter. Terms
// are integers, so parts of a sum can be added and subtracted exactly. The sum over the row's non-zeros, as if all the
// node's values were zero, is computed once; for each node, it is then corrected at the node's non-zeros.
//
// Binary data is processed even faster. If all non-zeros of row and node are ones, the sum is the number of features in
// which they differ, times the term for a difference of one. Shared features are counted for all nodes together
// (search/bitmap_counts.hpp). The sums of nodes that have moved are computed directly. For other rows, nodes are
// screened by lists per feature (search/postings.hpp). On Bibtex (1,836 features, 69 of them non-zero per row),
// learning is 27 times as fast as with dense rows.
//
// Rows may have missing values and nominal features (nodes/missing_and_nominal.hpp). If the model (`incomplete`) or the
// row has any, a sum is not corrected but computed from all its terms: first at the node's entries, then at the
// remaining entries of the row, gathered so that the kernel is vectorised. Unless features are in groups, nodes are
// first screened by float32 bounds (search/float_tiles.hpp). For long rows, `search_numbers` instead uses bounds in
// which missing and nominal values count as zeros. If nothing is missing, all methods give the same integers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/fixed_point.hpp"
#include "similarity/rank_index.hpp"
#include "base/memory.hpp"
#include "search/bitmap_counts.hpp"
#include "search/float_tiles.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "nodes/nodes_view.hpp"
#include "base/pair_rows.hpp"
#include "search/postings.hpp"
#include "search/neighbour_index.hpp"
#include "learner/settings.hpp"
#include "base/team.hpp"
#include "bandwidth/sparse_window.hpp"

namespace mlca::MLCA_LEVEL {

class SparseNodes {
public:
    using Window = SparseWindow;
    using Row = SparseRow;
    using RankIndexOfNodes = RankIndex<Row>;
    using SparseQuery = Query<Row>;

    struct Space {
        Array<double> x, unfolded, factors;
        Array<std::int64_t> alone, totals, bases, group_sums;
        Array<std::int32_t> places;
        SharedFeatures shared;
        Terms terms, own_terms;
        BitmapCounts::Space overlaps;
        Postings::Space postings;
        Screening screening;
        // Used with missing values: per feature, the number of the last comparison in which the node had an entry; and
        // the sizes of the groups.
        Array<std::int64_t> seen, sizes;
        std::int64_t n_compared = 0;
        Array<std::int32_t> number_keys;
        Array<double> numbers;
        FloatTiles::Space tiles;
    };

    explicit SparseNodes(const Settings& settings)
        : mode_(settings.mode), d_(settings.n_features), screen_from_(settings.screen_from), incomplete_(settings.incomplete),
        nominal_(settings.nominal), factors_(mode_ == Mode::individual ? d_ : 1) {
        if (has_tiles()) tiles_.emplace(no_tiles());
    }

    void reserve(std::int64_t n_nodes, const Row& x) {
        weights_.reserve(x.n);
        if (listed_.size() == listed_.capacity()) listed_.reserve(listed_.size() + listed_.size() / 2 + 64);
        if (mode_ == Mode::common) overlaps_.reserve(n_nodes - 1, x.keys, is_listed(x) ? x.n : 0);
        if (mode_ == Mode::individual) {
            factors_.reserve(n_nodes);
            grow_to(bases_, n_nodes);
        }
        if (tiles_) tiles_->reserve(n_nodes);
        tiles_on_demand_.drop();
        note_keys(x);
        if (incomplete_) grow_to(lacked_, n_keys_);
    }

    // Reserve memory to move a node towards x, or towards another node that was itself moved towards x.
    void reserve_move(std::int64_t node, const Row& x, std::int64_t towards = -1) {
        note_keys(x);
        grow_to(target_, n_keys_);
        grow_to(visited_, n_keys_);
        weights_.make_room(node, x.n + (towards < 0 ? 0 : weights_[towards].length));
    }

    static std::int64_t entered_together() noexcept { return 0; }
    void enter(std::int64_t node, const Row& x, const double* bandwidths) noexcept {
        weights_.open(x.keys, x.values, x.n);
        listed_.push_back(is_listed(x));
        account(node, 1);
        for (std::int64_t p = 0; incomplete_ && p < x.n; ++p) lacked_[x.keys[p]] |= is_missing(x.values[p]);
        if (mode_ == Mode::common) overlaps_.enter(node, x.keys, listed_.back() ? x.n : 0);
        if (mode_ == Mode::individual) {
            for (std::int64_t i = 0; i < d_; ++i) factors_[node][i] = SCALE / bandwidths[i];
        }
        refresh(node);
    }

    // Move a node towards a target: y += (target - y) / step, entry by entry as in a dense row. Return whether it
    // changed.
    bool move(std::int64_t node, const Row& target, double step) noexcept {
        auto& weights = weights_[node];
        account(node, -1);
        for (std::int64_t p = 0; p < target.n; ++p) target_[target.keys[p]] = target.values[p];
        std::int32_t kept = 0;
        bool same = true;
        for (std::int32_t place = 0; place < weights.length; ++place) {
            const std::int32_t i = weights.keys[place];
            const double before = weights.values[place], towards = target_[i];
            const double moved = moved_entry(before, towards, step, is_nominal(nominal_, i));
            visited_[i] = moved != 0.0 || towards != 0.0;
            same = same && moved == before;
            weights.keys[kept] = i;
            weights.values[kept] = moved;
            kept += moved != 0.0;
        }
        weights.length = kept;
        for (std::int64_t p = 0; p < target.n; ++p) {
            const std::int32_t i = target.keys[p];
            const double moved = moved_entry(0.0, target.values[p], step, is_nominal(nominal_, i));
            if (!visited_[i] && moved != 0.0) {
                weights_.append(node, i, moved);
                same = false;
            }
        }
        for (std::int32_t place = 0; place < weights.length; ++place) visited_[weights.keys[place]] = false;
        for (std::int64_t p = 0; p < target.n; ++p) {
            target_[target.keys[p]] = 0.0;
            visited_[target.keys[p]] = false;
        }
        // A move that changes nothing, which is frequent with binary rows, keeps the node in the bitmaps and postings.
        if (!same) {
            listed_[node] = false;
            postings_.forget(node);
        }
        account(node, 1);
        if (same) return false;
        refresh(node);
        return true;
    }

    // Remove the nodes from `first` on; no node may have moved since node `first` was created.
    void withdraw(std::int64_t first) noexcept {
        for (std::int64_t node = weights_.size() - 1; node >= first; --node) {
            const Row x = row(node);
            account(node, -1);
            if (mode_ == Mode::common) overlaps_.withdraw(node, x.keys, listed_.back() ? x.n : 0);
            listed_.pop_back();
            weights_.withdraw();
        }
    }

    const PairRows<double>& weights() const noexcept { return weights_; }
    Row row(std::int64_t node) const noexcept { return row_of(weights_, node); }

    // Assign a row's features to groups.
    void group(const Groups& by, const Row& x, const double* bandwidth_sums, std::int64_t n_nodes, Grouping& grouping, Space& space) const {
        space.unfolded.assign(d_, 0.0);
        for (std::int64_t p = 0; p < x.n; ++p) space.unfolded[x.keys[p]] = x.values[p];
        by.group(space.unfolded.data(), nominal_, bandwidth_sums, d_, n_nodes, grouping);
    }

    // Postings are written for complete parts of nodes, and for an r that is typical of the next rows. They are used
    // only for rows whose non-zeros are not all ones.
    struct Due {
        std::int64_t n_nodes;
        double r;
    };
    std::optional<Due> renewed(std::int64_t n_nodes, double r, ParallelFor = ON_ONE_THREAD) const noexcept {
        const bool pays = mode_ == Mode::common && !has_tiles() && n_nodes >= screen_from_ && 2 * n_pairs_listed_ <= n_pairs_;
        return pays && postings_.due(n_nodes, r) ? std::optional<Due>({n_nodes, r}) : std::nullopt;
    }
    void take(const Due& due) {
        if (incomplete_) {
            postings_.prepare(due.n_nodes, due.r, [this](std::int64_t node) { return NumbersOfRow(row(node), nominal_); });
        } else {
            postings_.prepare(due.n_nodes, due.r, [this](std::int64_t node) { return row(node); });
        }
    }

    std::int64_t n_entries(std::int64_t) const noexcept { return n_pairs_; }
    // Approximate number of feature comparisons in a search. Where bitmaps count overlaps, a search takes no longer
    // than the other steps of learning, so more threads would not help.
    std::int64_t pairs(std::int64_t) const noexcept { return n_pairs_listed_ / BITS_PER_PAIR + n_pairs_ - n_pairs_listed_; }

    void nearest(SparseQuery* queries, std::int64_t n, Space& space, Stop& stop) const {
        for (std::int64_t j = 0; j < n; ++j) {
            TopK& found = *queries[j].found;
            found.clear();
            const auto offer = [&](std::int64_t k, std::int64_t total) { found.offer(k, total); };
            if (is_incomplete(queries[j])) {
                if (!search_numbers(queries[j], space, stop) && !search_tiles(queries[j], space, stop))
                    sum_present(queries[j], space, stop, [&] { return found.limit(); }, offer);
            } else if (!search_screened(queries[j], space, stop)) {
                for_each_sum(queries[j], space, stop, offer);
            }
        }
    }

    // Call f(node, sum) for each of the query's n_nodes nodes, in order.
    template <class F>
    void for_each_sum(const SparseQuery& query, Space& space, Stop& stop, const F& f) const {
        if (is_incomplete(query)) return sum_present(query, space, stop, [] { return NO_LIMIT; }, f);
        const Scattered<double> scattered = scatter(query, space);
        if (mode_ == Mode::common) {
            sum_common(query, space, stop, f);
        } else if (mode_ == Mode::individual) {
            sum_individual(query, space, stop, f);
        } else {
            sum_clustered(query, space, stop, f);
        }
    }

private:
    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 256;
    static constexpr std::int64_t BITS_PER_PAIR = 512;
    static constexpr std::int64_t TOGETHER_SUMMED = 32;

    // A row with its missing and nominal values replaced by zeros.
    struct NumbersOfRow {
        NumbersOfRow(const Row& x, const Nominal& nominal) : keys(x.keys), values{x, nominal}, n(x.n) {}

        const std::int32_t* keys;
        struct {
            Row x;
            const Nominal& nominal;
            double operator[](std::int64_t p) const noexcept { return is_missing(x.values[p]) || is_nominal(nominal, x.keys[p]) ? 0.0 : x.values[p]; }
        } values;
        std::int64_t n;
    };

    // Whether nodes are written into tiles when they are entered.
    bool has_tiles() const noexcept { return incomplete_ && mode_ != Mode::clustered && d_ <= FloatTiles::MOST_FEATURES; }

    // Whether missing or nominal values take part in the comparison.
    bool is_incomplete(const SparseQuery& query) const noexcept { return incomplete_ || has_missing(query.x.values, query.x.n); }

    // Update the counts of non-zeros for a node that is entered (sign = 1) or removed (sign = -1).
    void account(std::int64_t node, std::int64_t sign) noexcept {
        const std::int64_t n = sign * weights_[node].length;
        n_pairs_ += n;
        if (mode_ == Mode::common && listed_[node]) n_pairs_listed_ += n;
    }

    static bool is_all_ones(const Row& x) noexcept {
        return std::all_of(x.values, x.values + x.n, [](double value) { return value == 1.0; });
    }
    bool is_listed(const Row& x) const noexcept { return !incomplete_ && is_all_ones(x); }

    void note_keys(const Row& x) noexcept {
        if (x.n > 0) n_keys_ = std::max(n_keys_, *std::max_element(x.keys, x.keys + x.n) + std::int64_t{1});
    }

    // Update the search data of a new or moved node: write it into its tile, or compute its sum with a row of zeros
    // under its own bandwidths.
    void refresh(std::int64_t node) noexcept {
        const Row y = row(node);
        tiles_on_demand_.drop();
        if (tiles_) enter_tiles(*tiles_, node);
        if (mode_ != Mode::individual || incomplete_) return;
        std::int64_t total = 0;
        for (std::int64_t p = 0; p < y.n; ++p) total += root_dissimilarity(y.values[p], factors_[node][y.keys[p]]);
        bases_[node] = total;
    }

    Scattered<double> scatter(const SparseQuery& query, Space& space) const {
        std::int64_t n_keys = n_keys_;
        if (query.x.n > 0) n_keys = std::max(n_keys, query.x.keys[query.x.n - 1] + std::int64_t{1});
        grow_to(space.x, n_keys);
        grow_to(space.alone, n_keys);
        return {space.x, query.x, [&](std::int64_t p) { return query.x.values[p]; }};
    }

    // Scatter the row's terms against zeros into an array over all features, and add them to `base`.
    Scattered<std::int64_t> scatter_alone(const SparseQuery& query, Space& space, std::int64_t& base) const {
        return {space.alone, query.x, [&](std::int64_t p) {
                    const std::int64_t term = dissimilarity(query.x.values[p], query.r);
                    base += term;
                    return term;
                }};
    }

    // List the nearest nodes by postings, if the row's non-zeros are not all ones and screening pays off; return
    // whether this was done.
    bool search_screened(const SparseQuery& query, Space& space, Stop& stop) const {
        if (mode_ != Mode::common || postings_.written() == 0 || is_all_ones(query.x)) return false;
        stop.check();
        const Scattered<double> scattered = scatter(query, space);
        std::int64_t base = 0;
        const Scattered<std::int64_t> alone = scatter_alone(query, space, base);
        const auto nodes = [this](std::int64_t node) { return row(node); };
        const auto exact = [&](std::int64_t k) { return base + gathered_correction(row(k), space.x.data(), space.alone.data(), query.r); };
        list_nearest_sparse(postings_, query.x, query.r, 0, query.n_nodes, query.found->most(), nodes, exact, space.screening, space.postings,
            *query.found);
        return true;
    }

    // List the nearest nodes by postings in which missing and nominal values count as zeros; return whether this was
    // done. Differing categories and the scaling of a sum only increase the sum. But a zero adds too much where one
    // side is missing and the other is a number: in total, at most the row's terms against zeros at features that are
    // missing in some node, plus 1 for each missing value of the row. This excess is subtracted from all bounds.
    bool search_numbers(const SparseQuery& query, Space& space, Stop& stop) const {
        if (mode_ != Mode::common || postings_.written() == 0) return false;
        stop.check();
        std::int64_t excess = 0;
        space.number_keys.clear();
        space.numbers.clear();
        for (std::int64_t p = 0; p < query.x.n; ++p) {
            const std::int32_t i = query.x.keys[p];
            const double value = query.x.values[p];
            if (is_nominal(nominal_, i)) continue;
            if (is_missing(value)) {
                excess += static_cast<std::int64_t>(PER_UNIT);
                continue;
            }
            if (i < std::ssize(lacked_) && lacked_[i]) excess += dissimilarity(value, query.r);
            space.number_keys.push_back(i);
            space.numbers.push_back(value);
        }
        const Row numbers{space.number_keys.data(), space.numbers.data(), std::ssize(space.numbers)};
        const Scattered<double> scattered = scatter(query, space);
        const auto nodes = [this](std::int64_t node) { return row(node); };
        const auto exact = [&](std::int64_t k) { return present_sum(query, k, query.found->limit(), space); };
        list_nearest_sparse(postings_, numbers, query.r, excess, query.n_nodes, query.found->most(), nodes, exact, space.screening, space.postings,
            *query.found);
        return true;
    }

    template <class F>
    void sum_common(const SparseQuery& query, Space& space, Stop& stop, const F& f) const {
        std::int64_t base = 0;
        const Scattered<std::int64_t> alone = scatter_alone(query, space, base);
        const bool binary = is_all_ones(query.x);
        space.totals.resize(query.n_nodes);
        if (binary) fill_in_overlaps(query, dissimilarity(1.0, query.r), space);
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (binary && listed_[k]) {
                f(k, space.totals[k]);
            } else {
                if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
                f(k, base + gathered_correction(row(k), space.x.data(), space.alone.data(), query.r));
            }
        }
    }

    // Compute the sums with nodes that are all ones: each feature that only one of row and node has contributes `one`.
    void fill_in_overlaps(const SparseQuery& query, std::int64_t one, Space& space) const {
        overlaps_.count(query.x.keys, query.x.n, query.n_nodes, space.overlaps);
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            const std::int64_t shared = space.overlaps.counts[k];
            space.totals[k] = one * (query.x.n + weights_[k].length - 2 * shared);
        }
    }

    template <class F>
    void sum_individual(const SparseQuery& query, Space& space, Stop& stop, const F& f) const {
        const Row& x = query.x;
        grow_to(space.places, std::ssize(space.x));
        const Scattered<std::int32_t> places(space.places, x, [](std::int64_t p) { return static_cast<std::int32_t>(p) + 1; });
        space.terms.reserve(x.n);
        space.own_terms.reserve(x.n);
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            const std::int64_t n_shared = space.shared.find(space.places.data(), row(k));
            f(k, bases_[k] + individual_correction(x, factors_[k], space.shared, n_shared, space.terms, space.own_terms));
        }
    }

    template <class F>
    void sum_clustered(const SparseQuery& query, Space& space, Stop& stop, const F& f) const {
        const Row& x = query.x;
        const Grouping& grouping = *query.grouping;
        const auto group_of = [&](std::int32_t i) { return static_cast<std::size_t>(grouping.members[i]); };
        grow_to(space.factors, d_);
        for (std::int32_t i = 0; i < d_; ++i) space.factors[i] = grouping.factors[group_of(i)];
        space.bases.assign(grouping.n_groups, 0);
        const Scattered<std::int64_t> alone(space.alone, x, [&](std::int64_t p) {
            const std::int64_t term = dissimilarity(x.values[p], space.factors[x.keys[p]]);
            space.bases[group_of(x.keys[p])] += term;
            return term;
        });
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            space.group_sums = space.bases;
            const Row y = row(k);
            space.terms.reserve(y.n);
            for (std::int64_t p = 0; p < y.n; ++p) {
                const auto i = static_cast<std::size_t>(y.keys[p]);
                space.terms.put(p, space.x[i] - y.values[p], space.factors[i]);
            }
            const std::int64_t* terms = space.terms.compute(y.n);
            for (std::int64_t p = 0; p < y.n; ++p) space.group_sums[group_of(y.keys[p])] += terms[p] - space.alone[y.keys[p]];
            std::int64_t total = 0;
            for (std::int64_t group = 0; group < grouping.n_groups; ++group) {
                total += group_root(space.group_sums[group], grouping.end(group) - grouping.start(group));
            }
            f(k, total);
        }
    }

    FloatTiles no_tiles() const { return {Array<float>(d_, 1.0f), nominal_, mode_ == Mode::individual}; }
    void enter_tiles(FloatTiles& tiles, std::int64_t node) const noexcept {
        const Row y = row(node);
        tiles.enter(node, y, [&](std::int64_t p) { return y.values[p]; }, mode_ == Mode::individual ? factors_[node] : nullptr);
    }

    // List the nearest nodes using bounds from tiles; return false if such bounds are not available.
    bool search_tiles(const SparseQuery& query, Space& space, Stop& stop) const {
        if (mode_ == Mode::clustered || d_ > FloatTiles::MOST_FEATURES || query.n_nodes < screen_from_
            || (mode_ == Mode::common && !is_in_range(query.r))) return false;
        std::shared_ptr<const FloatTiles> made;
        if (!tiles_) {
            made = tiles_on_demand_.get(query.n_nodes, [&] {
                FloatTiles tiles = no_tiles();
                tiles.reserve(query.n_nodes);
                for (std::int64_t k = 0; k < query.n_nodes; ++k) enter_tiles(tiles, k);
                return tiles;
            });
        }
        const FloatTiles* tiles = tiles_ ? &*tiles_ : made.get();
        const Scattered<double> scattered = scatter(query, space);
        TopK& found = *query.found;
        const auto kept = [&](std::int64_t p) { return query.x.values[p]; };
        const auto exact = [&](std::int64_t k) { return present_sum(query, k, found.limit(), space); };
        return tiles != nullptr && tiles->search(query.x, kept, query.n_nodes, query.r, space.tiles, stop, found, exact);
    }

    // Call f(node, scaled sum) for all nodes; sums include only the features that row and node both have. For a node
    // whose sum exceeds the current limit, the reported sum may be any value above the limit.
    template <class Limit, class F>
    void sum_present(const SparseQuery& query, Space& space, Stop& stop, const Limit& limit, const F& f) const {
        const Scattered<double> scattered = scatter(query, space);
        for (std::int64_t k = 0; k < query.n_nodes; ++k) {
            if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
            if (mode_ == Mode::clustered) {
                f(k, present_sum_of_groups(query, k, space));
            } else {
                f(k, present_sum(query, k, limit(), space));
            }
        }
    }

    // Call f(feature, the row's value, the node's value) wherever either is non-zero, until f returns false.
    template <class F>
    void for_each_pair(const Row& x, std::int64_t k, Space& space, F f) const {
        const Row y = row(k);
        const std::int64_t number = ++space.n_compared;
        grow_to(space.seen, std::ssize(space.x));
        for (std::int64_t p = 0; p < y.n; ++p) {
            space.seen[y.keys[p]] = number;
            if (!f(y.keys[p], space.x[y.keys[p]], y.values[p])) return;
        }
        for (std::int64_t p = 0; p < x.n; ++p) {
            if (space.seen[x.keys[p]] != number && !f(x.keys[p], x.values[p], 0.0)) return;
        }
    }

    // The scaled sum of the row with node k. Terms only increase it, so the computation stops once it exceeds the
    // limit.
    std::int64_t present_sum(const SparseQuery& query, std::int64_t k, std::int64_t limit, Space& space) const {
        double differences[TOGETHER_SUMMED] = {}, factors[TOGETHER_SUMMED] = {};
        std::int64_t total = 0, compared = d_, gathered = 0;
        for_each_pair(query.x, k, space, [&](std::int32_t i, double a, double b) {
            if (is_missing(a) || is_missing(b)) {
                --compared;
            } else if (is_nominal(nominal_, i)) {
                total += a == b ? 0 : static_cast<std::int64_t>(PER_UNIT);
            } else {
                differences[gathered] = a - b;
                if (mode_ == Mode::individual) factors[gathered] = factors_[k][i];
                if (++gathered < TOGETHER_SUMMED) return true;
                total += sum_of(differences, factors, gathered, query.r);
                gathered = 0;
            }
            return total <= limit;
        });
        if (total > limit) return total;
        return in_full(total + sum_of(differences, factors, gathered, query.r), compared, d_);
    }

    std::int64_t sum_of(const double* differences, const double* factors, std::int64_t n, double r) const noexcept {
        return mode_ == Mode::individual ? gathered_roots(differences, factors, n) : gathered_sum(differences, n, r);
    }

    std::int64_t present_sum_of_groups(const SparseQuery& query, std::int64_t k, Space& space) const {
        const Grouping& grouping = *query.grouping;
        space.group_sums.assign(grouping.n_groups, 0);
        space.sizes.resize(grouping.n_groups);
        for (std::int64_t g = 0; g < grouping.n_groups; ++g) space.sizes[g] = grouping.end(g) - grouping.start(g);
        for_each_pair(query.x, k, space, [&](std::int32_t i, double a, double b) {
            if (is_missing(a)) return true;
            const std::int64_t g = grouping.members[i];
            if (is_missing(b)) {
                --space.sizes[g];
            } else if (is_nominal(nominal_, i)) {
                space.group_sums[g] += a == b ? 0 : static_cast<std::int64_t>(PER_UNIT);
            } else {
                space.group_sums[g] += dissimilarity(a - b, grouping.factors[g]);
            }
            return true;
        });
        std::int64_t total = 0, compared = 0;
        for (std::int64_t g = 0; g < grouping.n_groups; ++g) {
            if (space.sizes[g] == 0) continue;
            total += group_root(space.group_sums[g], space.sizes[g]);
            ++compared;
        }
        return in_full(total, compared, grouping.n_groups);
    }

    Mode mode_;
    std::int64_t d_, screen_from_;
    bool incomplete_;
    Nominal nominal_;
    std::int64_t n_keys_ = 0;  // all features seen so far are below n_keys_
    std::int64_t n_pairs_ = 0, n_pairs_listed_ = 0;  // number of non-zeros of all nodes, and of the listed nodes
    PairRows<double> weights_;
    Array<std::uint8_t> listed_;  // whether a node is all ones and its overlaps are counted by bitmaps
    BitmapCounts overlaps_;
    Postings postings_;
    Rows<double> factors_;       // individual: each node's factors r
    Array<std::int64_t> bases_;  // individual: each node's sum with a row of zeros
    Array<std::uint8_t> lacked_;  // incomplete models: flags of features that were missing in some node
    std::optional<FloatTiles> tiles_;  // incomplete models, unless clustered or with long rows
    TilesOnDemand<FloatTiles> tiles_on_demand_;  // for rows with missing values, in other models
    // Working memory of `move`, zero between uses.
    Array<double> target_;
    Array<std::uint8_t> visited_;
};

}  // namespace mlca::MLCA_LEVEL
