// Nodes with gaps and nominal attributes under the learned similarity, screened (mixed_tiles.hpp) unless rows are long.
//
// What LearnedNodes is to other nodes; see there what is asked of it.
#pragma once

#include <cstdint>
#include <utility>

#include "learned.hpp"
#include "memory.hpp"
#include "mixed.hpp"
#include "mixed_probe.hpp"
#include "mixed_tiles.hpp"
#include "mixed_weighing.hpp"
#include "nodes_view.hpp"
#include "shortlist.hpp"
#include "sparse_window.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

class MixedLearnedNodes {
public:
    using Row = SparseRow;
    static constexpr bool SPARSE_ROWS = true;
    using RowOf = RowOfNode<PairRows<double>>;
    using Compared = FunctionRef<void(std::int64_t, NearestIn, FunctionRef<void(std::int64_t*)>)>;

    struct Space {
        MixedProbe::Space probe;
        Array<std::int32_t> ranks;
        MixedTiles::Space tiles;
        Shortlist found{1};
    };

    template <class View>
    static MixedLearnedNodes of(const View& view) {
        MixedLearnedNodes made(MixedWeighing(view, view.nominal()).learned());
        for (std::int64_t k = 0; k < view.n_nodes(); ++k) {
            view.for_each_entry(k, 0, view.n_attributes(), [&](std::int64_t j, double value) { made.ranks_.push_back(made.rank(j, value)); });
            made.starts_.push_back(static_cast<std::int64_t>(made.ranks_.size()));
            made.has_moved_.push_back(0);
            made.tiles_.reserve(k + 1);
            made.keep(k, view.row(k));
        }
        return made;
    }

    explicit MixedLearnedNodes(Learned learned) : learned_(std::move(learned)), starts_(1, 0), tiles_(learned_.n_attributes(), learned_.nominal) {
        for (const double factor : learned_.factors) factors_.push_back(static_cast<float>(factor));
        for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) {
            if (!is_nominal(learned_.nominal, j)) continue;
            nominal_attributes_.push_back(j);
            nominal_weight_ += learned_.weights.data()[j];
        }
    }

    const Learned& learned() const noexcept { return learned_; }

    void reserve(std::int64_t n_nodes, const Row& x) {
        const auto n = static_cast<std::size_t>(n_nodes);
        if (starts_.capacity() < n + 1) starts_.reserve(n + n / 2 + 64);
        if (has_moved_.capacity() < n) has_moved_.reserve(n + n / 2 + 64);
        const std::size_t entries = ranks_.size() + static_cast<std::size_t>(x.n);
        if (ranks_.capacity() < entries) ranks_.reserve(entries + entries / 2);
        tiles_.reserve(n_nodes);
    }
    void enter(std::int64_t node, const Row& x) noexcept {
        for (std::int64_t p = 0; p < x.n; ++p) ranks_.push_back(rank(x.keys[p], x.values[p]));
        starts_.push_back(static_cast<std::int64_t>(ranks_.size()));
        has_moved_.push_back(0);
        keep(node, x);
    }
    // Ranks of a node that has moved are computed when they are needed, until the similarity is computed anew.
    void move(std::int64_t node, const Row& x) noexcept {
        has_moved_.data()[node] = 1;
        tiles_.enter(node, x, [&](std::int64_t p) { return kept(x.keys[p], x.values[p], rank(x.keys[p], x.values[p])); });
    }
    void withdraw(std::int64_t first, const RowOf&) noexcept {
        if (static_cast<std::int64_t>(has_moved_.size()) <= first) return;
        has_moved_.resize(static_cast<std::size_t>(first));
        starts_.resize(static_cast<std::size_t>(first + 1));
        ranks_.resize(static_cast<std::size_t>(starts_.back()));
    }

    void compare(const Row* rows, const std::int64_t* n_nodes, std::int64_t n_rows, const RowOf& row, const std::uint8_t* gone, Space& space, Stop& stop,
                 Compared f) const {
        space.probe.reserve(learned_.n_attributes());
        for (std::int64_t q = 0; q < n_rows; ++q) {
            stop.check();
            const Row& x = rows[q];
            const MixedProbe probe(learned_, nominal_weight_, x.keys, x.values, x.n, space.probe);
            const auto key = [&](std::int64_t k) {
                const Row y = row(k);
                return probe.key(y.keys, y.values, ranks(k, y, space), y.n);
            };
            const auto kept_of_x = [&](std::int64_t p) { return kept(x.keys[p], x.values[p], space.probe.ranks.data()[x.keys[p]]); };
            const bool screens = tiles_.can() && tiles_.lay_out(x, kept_of_x, space.tiles);
            if (screens) tiles_.bound(n_nodes[q], learned_.r, factors_.data(), 1.0 - kernel(learned_.apart(), learned_.r), !learned_.sparse, PER_KEY, space.tiles, stop);
            const auto nearest_in = [&](std::int64_t low, std::int64_t high, std::int64_t n_wanted, std::int64_t limit) -> const Shortlist& {
                space.found.begin(n_wanted, limit);
                space.found.skip(gone);
                if (screens) {
                    MixedTiles::list_nearest(low, high, space.tiles, space.found, key);
                    return space.found;
                }
                for (std::int64_t k = low; k < high; ++k) {
                    if (k % NODES_BETWEEN_CHECKS == NODES_BETWEEN_CHECKS - 1) stop.check();
                    space.found.offer(k, key(k));
                }
                return space.found;
            };
            f(q, nearest_in, [&](std::int64_t* scores) { score(x, space, scores); });
        }
    }

    template <class F>
    void for_each_term(const Row& x, const Row& y, F f) const {
        Array<double> values(static_cast<std::size_t>(2 * learned_.n_attributes()), 0.0);
        double *a = values.data(), *b = a + learned_.n_attributes();
        for (std::int64_t p = 0; p < x.n; ++p) a[x.keys[p]] = x.values[p];
        for (std::int64_t p = 0; p < y.n; ++p) b[y.keys[p]] = y.values[p];
        for (std::int64_t j = 0; j < learned_.n_attributes(); ++j) {
            const bool nominal = is_nominal(learned_.nominal, j);
            if (is_missing(a[j]) || is_missing(b[j]) || (learned_.sparse && !nominal && a[j] == 0.0 && b[j] == 0.0)) continue;
            const std::int32_t difference = nominal ? (a[j] == b[j] ? 0 : learned_.apart()) : learned_.ranks(j, a[j]) - learned_.ranks(j, b[j]);
            f(j, learned_.term(j, difference), learned_.weights.data()[j]);
        }
    }

private:
    static constexpr std::int64_t NODES_BETWEEN_CHECKS = 256;

    // What tiles keep of a value: its rank, other than zero unless the value is; the code of a category.
    double kept(std::int64_t attribute, double value, std::int32_t rank) const noexcept {
        if (is_missing(value) || value == 0.0 || is_nominal(learned_.nominal, attribute)) return value;
        return rank == 0 ? 0.25 : static_cast<double>(rank);
    }
    // Put a node whose ranks are known in its tile.
    void keep(std::int64_t node, const Row& y) noexcept {
        const std::int32_t* node_ranks = ranks_.data() + starts_.data()[node];
        tiles_.enter(node, y, [&](std::int64_t p) { return kept(y.keys[p], y.values[p], node_ranks[p]); });
    }

    // Only ranks of numbers are ever looked at.
    std::int32_t rank(std::int64_t attribute, double value) const noexcept {
        return is_missing(value) || is_nominal(learned_.nominal, attribute) ? 0 : learned_.ranks(attribute, value);
    }

    const std::int32_t* ranks(std::int64_t node, const Row& y, Space& space) const {
        if (!has_moved_.data()[node]) return ranks_.data() + starts_.data()[node];
        grow_to(space.ranks, y.n);
        for (std::int64_t p = 0; p < y.n; ++p) space.ranks.data()[p] = rank(y.keys[p], y.values[p]);
        return space.ranks.data();
    }

    void score(const Row& x, const Space& space, std::int64_t* scores) const noexcept {
        learned_.background.begin(scores);
        for (std::int64_t p = 0; p < x.n; ++p) add_to_scores(learned_, x.keys[p], x.values[p], scores);
        for (const std::int64_t j : nominal_attributes_) {
            if (space.probe.values.data()[j] == 0.0) add_to_scores(learned_, j, 0.0, scores);
        }
    }

    Learned learned_;
    Array<std::int64_t> nominal_attributes_;
    std::int64_t nominal_weight_ = 0;
    Array<std::int64_t> starts_;
    Array<std::int32_t> ranks_;
    Array<std::uint8_t> has_moved_;
    MixedTiles tiles_;
    Array<float> factors_;  // what each attribute weighs
};

}  // namespace mlca::MLCA_LEVEL
