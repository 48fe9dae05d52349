// NeighbourIndex: the interface of an index of a model's nodes, which finds the N nodes nearest to a row.
//
// An index is updated whenever a node is created, moved or removed (`enter`, `move`, `withdraw`), and is rebuilt from
// time to time. Distances are exact integers. Bounds are only used to exclude nodes that are too far away, so all
// indexes list the same nodes. README.md in this folder shows when each index is used.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "bandwidth/feature_groups.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t NO_LIMIT = std::int64_t{1} << 62;

// The N nearest nodes, nearest first; ties go to the older node.
class TopK {
public:
    explicit TopK(std::int64_t n_neighbors)
        : nodes(static_cast<std::size_t>(n_neighbors + 1)), sums(static_cast<std::size_t>(n_neighbors + 1)), most_(n_neighbors) {}

    std::int64_t size() const noexcept { return size_; }
    std::int64_t most() const noexcept { return most_; }
    void clear() noexcept { size_ = 0; }
    // Clear the list; from now on keep at most `most` nodes, with sums of at most `cap`.
    void begin(std::int64_t most, std::int64_t cap = NO_LIMIT) {
        grow_to(nodes, most + 1);
        grow_to(sums, most + 1);
        most_ = most;
        cap_ = cap;
        size_ = 0;
    }

    // Nodes with sums above this limit cannot enter the list. If the list is full, a node whose sum equals the limit
    // enters only if it is older than the last node in the list.
    std::int64_t limit() const noexcept { return size_ == most_ ? sums[size_ - 1] : cap_; }
    std::int64_t cap() const noexcept { return cap_; }

    // Skip replaced nodes from now on: `gone` has one flag per node, or is null if no node has been replaced.
    void skip(const std::uint8_t* gone) noexcept { gone_ = gone; }
    bool skips(std::int64_t node) const noexcept { return gone_ != nullptr && gone_[node]; }

    // Add a node to the list if it is near enough. Nodes may be offered in any order.
    void offer(std::int64_t node, std::int64_t sum) noexcept {
        if (sum > cap_ || skips(node)) return;
        auto place = static_cast<std::size_t>(size_);
        if (size_ == most_) {
            if (!before(node, sum, place - 1)) return;
            --place;
        } else {
            ++size_;
        }
        for (; place > 0 && before(node, sum, place - 1); --place) {
            nodes[place] = nodes[place - 1];
            sums[place] = sums[place - 1];
        }
        nodes[place] = node;
        sums[place] = sum;
    }

    // Put a node that was just created first in the list.
    void put_first(std::int64_t node) noexcept {
        if (size_ < most_) ++size_;
        for (auto place = static_cast<std::size_t>(size_ - 1); place > 0; --place) nodes[place] = nodes[place - 1];
        nodes[0] = node;
    }

    Array<std::int64_t> nodes, sums;

private:
    bool before(std::int64_t node, std::int64_t sum, std::size_t place) const noexcept {
        return sum < sums[place] || (sum == sums[place] && node < nodes[place]);
    }

    std::int64_t most_;
    std::int64_t cap_ = NO_LIMIT;
    const std::uint8_t* gone_ = nullptr;
    std::int64_t size_ = 0;
};

// When nodes are grouped into cells (search/node_cells.hpp), and how many nodes a search then visits: at least `least`,
// and at least `per_root` times the square root of the number of nodes.
struct CellLimits {
    std::int64_t from = 0;  // number of nodes above which cells are used; 0: never
    std::int64_t least = 0, per_root = 0;
};

// Replaced nodes: one flag per node (null if there are none), and their number.
struct Gone {
    const std::uint8_t* flags;
    std::int64_t n;
};

// nearest_in(low, high, n, limit) lists the n nearest of the nodes from `low` up to, but not including, `high`. It may
// omit nodes whose keys exceed the limit.
using NearestIn = FunctionRef<const TopK&(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;

// One bandwidth for all features (MLCA), one per feature and node (MLCA-I), or one per group of features (MLCA-C).
enum class Mode { common, individual, clustered };

// Number of rows compared with the nodes in one pass. A larger number would make speculative learning discard more
// work.
inline constexpr std::int64_t TOGETHER = 8;

template <class Row>
struct Query {
    Row x;
    std::int64_t n_nodes = 0;  // the row is compared with the oldest n_nodes nodes
    double r = 0.0;            // common: the factor SCALE / bandwidth
    const Grouping* grouping = nullptr;  // clustered: the row's groups
    TopK* found = nullptr;
};

// The requirements on a model's index by correntropy, which `DenseNodes` and `SparseNodes` satisfy. `RankIndex`, the
// index by rank distance, is updated with the same nodes, and is recomputed whenever the similarity is.
template <class Index>
concept NeighbourIndex =
    requires(Index& index, const Index& reader, std::int64_t node, const typename Index::Row& x, const double* bandwidths, double step,
                                  Query<typename Index::Row>* queries, typename Index::Space& space, Stop& stop) {
    index.reserve(node, x);                           // reserve memory for `node` nodes, so that `enter` cannot fail
    index.enter(node, x, bandwidths);                 // add the next node
    { index.move(node, x, step) } -> std::same_as<bool>;  // move a node towards x; return whether it changed
    index.withdraw(node);                             // remove all nodes from this one on
    index.take(std::move(*reader.renewed(node, step)));  // `renewed` rebuilds while others read; `take` installs it
    reader.nearest(queries, node, space, stop);       // fill the lists of `node` queries
};

}  // namespace mlca::MLCA_LEVEL
