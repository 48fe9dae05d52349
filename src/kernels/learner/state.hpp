// A learner's state in canonical form: plain arrays without spare capacity.
//
// mlca.learner.checking validates arrays before they are restored, because compiled code does not check indices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>

#include "nodes/nodes_view.hpp"
#include "decision/calibrated.hpp"
#include "decision/linear_models.hpp"
#include "search/node_cells.hpp"
#include "similarity/rank_distance.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

// Which arrays of the nodes a state includes. Linear models are included only with `all`; other arrays that do not grow
// with the number of nodes are always included.
enum class OfNodes { all, none, weights, counts, bandwidths, label_counts };

inline bool includes(OfNodes wanted, OfNodes one) noexcept { return wanted == OfNodes::all || wanted == one; }

// Rows of (key, value) pairs with ascending keys in each row.
template <class Value>
struct Csr {
    Array<std::int64_t> indptr{Array<std::int64_t>(1, 0)};
    Array<std::int32_t> indices;
    Array<Value> data;

    // Append a row of pairs, which may be in any order; most rows are already sorted.
    void append(const std::int32_t* keys, const Value* values, std::int64_t n) {
        const auto start = static_cast<std::ptrdiff_t>(indices.size());
        indices.insert(indices.end(), keys, keys + n);
        data.insert(data.end(), values, values + n);
        if (!std::is_sorted(indices.begin() + start, indices.end())) {
            Array<std::int64_t> order(n);
            std::iota(order.begin(), order.end(), 0);
            std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
            for (std::int64_t p = 0; p < n; ++p) {
                indices[start + p] = keys[order[p]];
                data[start + p] = values[order[p]];
            }
        }
        indptr.push_back(static_cast<std::int64_t>(indices.size()));
    }
};

// Conversion of dense rows to sparse ones without zeros, and back.
inline Csr<double> folded(const double* rows, std::int64_t n, std::int64_t d) {
    Csr<double> result;
    result.indptr.reserve(n + 1);
    for (std::int64_t j = 0; j < n; ++j, rows += d) {
        for (std::int64_t i = 0; i < d; ++i) {
            if (rows[i] == 0.0) continue;
            result.indices.push_back(static_cast<std::int32_t>(i));
            result.data.push_back(rows[i]);
        }
        result.indptr.push_back(static_cast<std::int64_t>(result.indices.size()));
    }
    return result;
}
inline Array<double> unfolded(const std::int64_t* indptr, const std::int32_t* indices, const double* data, std::int64_t n, std::int64_t d) {
    Array<double> result(n * d, 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t p = indptr[j]; p < indptr[j + 1]; ++p) result[j * d + indices[p]] = data[p];
    }
    return result;
}

// Rows of a state. Only one of `dense` and `sparse` is used: the form in which the learner's nodes are stored.
struct StateRows {
    Array<double> dense;
    Csr<double> sparse;

    void fold(std::int64_t d) {
        sparse = folded(dense.data(), static_cast<std::int64_t>(dense.size()) / d, d);
        dense = {};
    }
    void unfold(std::int64_t d) {
        dense = unfolded(sparse.indptr.data(), sparse.indices.data(), sparse.data.data(), static_cast<std::int64_t>(sparse.indptr.size()) - 1, d);
        sparse = {};
    }
};

struct State {
    std::int64_t n_labels = 0;
    Array<std::int64_t> tally;  // numbers of nodes, learned rows, counter updates with several voters, and with one
    Array<std::int64_t> counts;
    Array<double> bandwidths;
    Csr<std::int64_t> label_counts;
    Array<std::int64_t> with_label, without_label;  // full counts: stored plus implied
    Array<std::int64_t> waiting_indptr{Array<std::int64_t>(1, 0)};
    Array<std::int32_t> waiting_labels;
    Array<double> group_centres, group_bandwidths;
    Array<std::int64_t> group_counts;
    StateRows weights, recent;
    double vigilance = 0.0;  // as determined from the first window; negative until then
    // Optional parts beyond the paper.
    Array<std::int64_t> unlabelled;     // per node: number of rows without a label
    NodeIds node_ids;                      // only with max_nodes, like the next two members
    std::int64_t n_candidates = 0;
    Array<std::int64_t> label_totals;   // number of rows with each label, including rows that no node represents
    std::optional<Learned> learned;
    CellState cells;                    // empty if there are no cells
    std::int64_t similarity_due = 1;
    Array<std::int64_t> similarity_node_ids;  // used only if Model::counts_trusted()
    std::optional<Decision> decision;   // with one slot per label, and one for "none"
    std::optional<LinearState> linear;
};

}  // namespace mlca::MLCA_LEVEL
