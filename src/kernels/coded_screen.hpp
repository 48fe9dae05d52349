// Screening by four-bit codes: the nearest nodes out of all at a fiftieth of the cost of exact sums.
//
// Bounds for all nodes come from byte shuffles (scan.hpp), a closer look from sixteen-bit codes (fine.hpp), and only what
// could still be among the nearest is summed exactly (screening.hpp has the scheme and why it is exact). The node's
// bandwidths do not enter the codes, so a bandwidth that changes with every node costs nothing but the row's table.
//
// Attributes with a bandwidth a node (MLCA-I) need another table for every node: there float32 screens (float_screen.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "coded_nodes.hpp"
#include "memory.hpp"
#include "query.hpp"
#include "screening.hpp"
#include "sharing.hpp"
#include "tables.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode>
class CodedScreen {
    static_assert(mode != Mode::individual);

public:
    using DenseQuery = Query<const double*>;

    struct Space {
        std::vector<Tables> tables;
        std::vector<FineRow> fine;
        Screening screening;
    };

    CodedScreen(std::int64_t d, std::int64_t from) : d_(d), from_(std::max(from, std::int64_t{1})), coded_(d) {}

    void reserve(std::int64_t n_nodes) { coded_.reserve(n_nodes); }
    static constexpr std::int64_t ENTERED_TOGETHER = CodedNodes::ENTERED_TOGETHER;
    void enter(std::int64_t node, const double* weights, const double*) noexcept { coded_.enter(node, weights); }

    bool can(const DenseQuery*, std::int64_t) const noexcept { return coded_.ready(); }

    // A successor with cells that fit the nodes as they are now, if it is time for one.
    template <class Weights>
    std::optional<CodedNodes> successor(std::int64_t n_nodes, const Weights& weights, Sharing sharing) const {
        if (d_ > CodedNodes::MOST_ATTRIBUTES || !coded_.due(n_nodes, from_)) return std::nullopt;
        return coded_.renewed(n_nodes, weights, sharing);
    }
    void take(CodedNodes&& successor) noexcept { coded_ = std::move(successor); }

    // List the nearest nodes of each query; `exact(query, node)` is a sum, `weights(node)` are a node's attributes.
    template <class Exact, class Weights>
    void search(const DenseQuery* queries, std::int64_t n, Space& space, Stop& stop, const Exact& exact, const Weights& weights) const {
        if (space.tables.empty()) {
            space.fine.resize(SCAN_ROWS, FineRow(d_));
            space.tables.resize(SCAN_ROWS, Tables(d_));
        }
        for (std::int64_t first = 0; first < n; first += SCAN_ROWS) {
            stop.check();
            const auto n_rows = static_cast<int>(std::min<std::int64_t>(SCAN_ROWS, n - first));
            const DenseQuery* some = queries + first;
            const Tables* tables[SCAN_ROWS];
            for (int q = 0; q < n_rows; ++q) {
                fill(some[q], space.fine[static_cast<std::size_t>(q)], space.tables[static_cast<std::size_t>(q)]);
                tables[q] = &space.tables[static_cast<std::size_t>(q)];
            }
            std::int64_t most = 0;
            for (int q = 0; q < n_rows; ++q) most = std::max(most, some[q].found->cap() / Screening::bound_step(*tables[q]));
            space.screening.bound_all(coded_.codes(), tables, n_rows, some[n_rows - 1].n_nodes, most);
            for (int q = 0; q < n_rows; ++q) list_nearest(some[q], q, Screening::bound_step(*tables[q]), space, exact, weights);
        }
    }

private:
    // Up to so many attributes, exact sums cost hardly more than a closer look.
    static constexpr std::int64_t FEW = 8;

    struct Group {
        double r;
        std::int64_t size;
    };
    static auto groups_of(const DenseQuery& query) noexcept {
        return [&grouping = *query.grouping](std::int64_t i) {
            const std::int64_t group = grouping.members[static_cast<std::size_t>(i)];
            return Group{grouping.factors[static_cast<std::size_t>(group)], grouping.end(group) - grouping.start(group)};
        };
    }

    void fill(const DenseQuery& query, FineRow& fine, Tables& tables) const noexcept {
        if constexpr (mode == Mode::common) {
            if (d_ <= FEW) return tables.fill_common(query.x, query.r, coded_.cells());
            fine.fill_common(query.x, query.r, coded_.widths());
            tables.fill_common(query.x, query.r, fine, coded_.cells(), coded_.fine_cells(), coded_.widths());
        } else {
            fine.fill_grouped(query.x, groups_of(query), coded_.widths());
            tables.fill_grouped(query.x, groups_of(query), fine, coded_.cells(), coded_.fine_cells(), coded_.widths());
        }
    }

    template <class Exact, class Weights>
    void list_nearest(const DenseQuery& query, int row, std::int64_t step, Space& space, const Exact& exact, const Weights& weights) const {
        const FineRow& fine = space.fine[static_cast<std::size_t>(row)];
        if constexpr (mode == Mode::common) {
            if (d_ <= FEW) {
                const FewAttributes<Weights> sums{query.x, d_, query.r, weights};
                space.screening.list_nearest_directly(row, query.n_nodes, step, query.found->most(), sums, *query.found);
                return;
            }
            const CommonSums<Weights> sums{query.x, d_, query.r, fine, coded_, weights};
            space.screening.list_nearest(row, query.n_nodes, step, query.found->most(), sums, *query.found);
        } else {
            const auto sum = [&](std::int64_t node) { return exact(query, node); };
            const GroupedSums<decltype(sum)> sums{d_, fine, coded_, sum};
            space.screening.list_nearest(row, query.n_nodes, step, query.found->most(), sums, *query.found);
        }
    }

    std::int64_t d_, from_;
    CodedNodes coded_;
};

}  // namespace mlca::MLCA_LEVEL
