// Python bindings of the methods that mlca is compared with: arrays are validated, then the loops run without the
// interpreter lock.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "peers/clusters.hpp"
#include "peers/distances.hpp"
#include "peers/forest.hpp"
#include "peers/margins.hpp"
#include "peers/nearest.hpp"
#include "peers/ranking.hpp"
#include "peers/window.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

using namespace MLCA_ARITHMETIC;
using Unlocked = nb::gil_scoped_release;

template <class T>
peers::Vector<T> view(const Numbers<T>& array) {
    return {array.data(), length(array)};
}
template <class T>
peers::Matrix<T> view(const Table<T>& array) {
    return {array.data(), length(array), length(array, 1)};
}

template <class T>
void require_shape(const Table<T>& table, std::int64_t n_rows, std::int64_t width, const char* what) {
    require_equal(length(table), n_rows, what);
    require_equal(length(table, 1), width, what);
}

// --- ML-kNN

template <class Distance>
auto nearest_rows(const Table<const double>& rough, const Numbers<const double>& margin, const Distance& distance, std::int64_t k,
                  std::int64_t left_out) {
    require_equal(length(margin), length(rough), "margin of queries");
    require(1 <= k && k <= length(rough, 1),
            "k: expected 1 to " + std::to_string(length(rough, 1)) + ", got " + std::to_string(k));
    Result<std::int64_t, 2> nearest({length(rough), k});
    {
        Unlocked unlocked;
        peers::find_nearest(view(rough), view(margin), distance, left_out, {nearest.data(), length(rough), k});
    }
    return nearest.hand_over();
}

auto nearest_dense(const Table<const double>& rough, const Numbers<const double>& margin, const Table<const double>& queries,
    const Table<const double>& rows,
                   std::int64_t k, std::int64_t left_out) {
    require_shape(rough, length(queries), length(rows), "rough distances");
    require_equal(length(queries, 1), length(rows, 1), "columns of queries");
    return nearest_rows(rough, margin, peers::DenseDistance{view(queries), view(rows)}, k, left_out);
}

template <class Index>
auto nearest_sparse(const Table<const double>& rough, const Numbers<const double>& margin, const Numbers<const Index>& query_bounds,
                    const Numbers<const Index>& query_columns, const Numbers<const double>& query_values, const Numbers<const Index>& row_bounds,
                    const Numbers<const Index>& row_columns, const Numbers<const double>& row_values, std::int64_t k, std::int64_t left_out) {
    require_bounds(query_bounds, length(query_columns), "queries");
    require_bounds(row_bounds, length(row_columns), "rows");
    require_equal(length(query_values), length(query_columns), "values of queries");
    require_equal(length(row_values), length(row_columns), "values of rows");
    require_shape(rough, length(query_bounds) - 1, length(row_bounds) - 1, "rough distances");
    const peers::SparseDistance<Index> distance{{view(query_bounds), view(query_columns), view(query_values)},
                                                {view(row_bounds), view(row_columns), view(row_values)}};
    return nearest_rows(rough, margin, distance, k, left_out);
}

auto count_labels(const Table<const std::int64_t>& neighbours, const Numbers<const std::int64_t>& bounds, const Numbers<const std::int32_t>& labels,
                  std::int64_t n_labels) {
    require_bounds(bounds, length(labels), "labels of rows");
    require_below(neighbours, length(bounds) - 1, "neighbours");
    require_below(labels, n_labels, "labels");
    Result<std::int64_t, 2> counts({length(neighbours), n_labels});
    {
        Unlocked unlocked;
        peers::count_labels(view(neighbours), {view(bounds), view(labels), {}}, {counts.data(), length(neighbours), n_labels});
    }
    return counts.hand_over();
}

void bind_nearest(nb::module_& module) {
    module.def("nearest_dense", &nearest_dense, as_is("rough"), as_is("margin"), as_is("queries"), as_is("rows"), nb::arg("k"),
               nb::arg("left_out"));
    const auto bind_sparse = [&]<class Index>(Index) {
        module.def("nearest_sparse", &nearest_sparse<Index>, as_is("rough"), as_is("margin"), as_is("query_bounds"),
                   as_is("query_columns"), as_is("query_values"), as_is("row_bounds"), as_is("row_columns"), as_is("row_values"),
                   nb::arg("k"), nb::arg("left_out"));
    };
    bind_sparse(std::int32_t{});
    bind_sparse(std::int64_t{});
    module.def("count_labels", &count_labels, as_is("neighbours"), as_is("bounds"), as_is("labels"), nb::arg("n_labels"));
}

// --- MLSA-kNN

auto scaled_distances(const Numbers<const double>& x, const Table<const double>& rows, const Numbers<const std::int64_t>& slots,
    const Numbers<const double>& low,
                      const Numbers<const double>& high) {
    require_equal(length(x), length(rows, 1), "columns of x");
    require_equal(length(low), length(x), "lowest values");
    require_equal(length(high), length(x), "highest values");
    require_below(slots, length(rows), "slots");
    Result<double, 1> distances({length(slots)});
    {
        Unlocked unlocked;
        peers::scaled_distances(view(x), view(rows), view(slots), view(low), view(high), {distances.data(), length(slots)});
    }
    return distances.hand_over();
}

template <class Mask>
peers::WindowView<Mask> window_view(const Numbers<const std::int64_t>& k, const Numbers<const std::int64_t>& slots,
                                    const Numbers<const std::int64_t>& mask_slots, const Table<const std::uint8_t>& indicator,
                                    const Table<Mask>& masks) {
    require_equal(length(mask_slots), length(slots), "slots of masks");
    require_below(slots, length(indicator), "slots");
    require_below(mask_slots, length(masks), "slots of masks");
    require_equal(length(indicator, 1), length(k), "labels of the indicator");
    require_equal(length(masks, 1), length(k), "labels of the masks");
    require_below(k, peers::LARGEST_K + 1, "k");
    return {view(slots), view(mask_slots), view(indicator), view(masks)};
}

auto count_votes(const Numbers<const std::int64_t>& by_distance, const Numbers<const std::int64_t>& k, const Numbers<const std::int64_t>& slots,
                 const Numbers<const std::int64_t>& mask_slots, const Table<const std::uint8_t>& indicator, const Table<const std::uint8_t>& masks) {
    const auto window = window_view(k, slots, mask_slots, indicator, masks);
    require_below(by_distance, length(slots), "positions");
    Result<double, 1> votes({length(k)});
    {
        Unlocked unlocked;
        peers::count_votes(view(by_distance), view(k), window, {votes.data(), length(k)});
    }
    return votes.hand_over();
}

auto judge_voters(const Numbers<const std::int64_t>& by_distance, const Numbers<const std::int64_t>& k, const Numbers<const std::uint8_t>& truth,
                  const Numbers<std::int64_t>& errors, const Numbers<const std::int64_t>& slots, const Numbers<const std::int64_t>& mask_slots,
                  const Table<const std::uint8_t>& indicator, const Table<std::uint8_t>& masks) {
    const auto window = window_view(k, slots, mask_slots, indicator, masks);
    require_below(by_distance, length(slots), "positions");
    require_equal(length(truth), length(k), "labels of the truth");
    require_equal(length(errors), length(indicator), "errors of slots");
    Result<double, 1> votes({length(k)});
    Result<std::uint8_t, 2> was_right({length(k), peers::N_CHOICES});
    {
        Unlocked unlocked;
        peers::judge_voters(view(by_distance), view(k), view(truth), window, view(errors), {votes.data(), length(k)},
                            {was_right.data(), length(k), peers::N_CHOICES});
    }
    return std::pair(votes.hand_over(), was_right.hand_over());
}

auto test_rows(std::int64_t start, std::int64_t first, std::int64_t size, const Numbers<const std::int64_t>& k, bool from_scratch,
               const Table<const double>& distances, const Numbers<const std::int64_t>& slots, const Numbers<const std::int64_t>& mask_slots,
               const Table<const std::uint8_t>& indicator, const Table<const std::uint8_t>& masks) {
    const auto window = window_view(k, slots, mask_slots, indicator, masks);
    require_shape(distances, length(indicator), length(indicator), "distances of slots");
    require(0 <= start && 0 <= first && size <= length(slots), "start, first and size must be positions in the window");
    Result<std::int64_t, 1> n_right({std::max<std::int64_t>(0, size - first)});
    {
        Unlocked unlocked;
        peers::test_rows(start, first, view(k), from_scratch, view(distances), window, {n_right.data(), std::max<std::int64_t>(0, size - first)});
    }
    return n_right.hand_over();
}

void bind_window(nb::module_& module) {
    module.def("scaled_distances", &scaled_distances, as_is("x"), as_is("rows"), as_is("slots"), as_is("low"), as_is("high"));
    module.def("count_votes", &count_votes, as_is("by_distance"), as_is("k"), as_is("slots"), as_is("mask_slots"), as_is("indicator"),
               as_is("masks"));
    module.def("judge_voters", &judge_voters, as_is("by_distance"), as_is("k"), as_is("truth"), as_is("errors"), as_is("slots"),
               as_is("mask_slots"), as_is("indicator"), as_is("masks"));
    module.def("test_rows", &test_rows, nb::arg("start"), nb::arg("first"), nb::arg("size"), as_is("k"), nb::arg("from_scratch"),
               as_is("distances"), as_is("slots"), as_is("mask_slots"), as_is("indicator"), as_is("masks"));
}

// --- MCIC

auto distances_to_centers(const Numbers<const double>& x, const Numbers<const std::int64_t>& clusters, const Numbers<const double>& drift,
                          const Table<const double>& sums, const Numbers<const double>& weights) {
    require_equal(length(x), length(sums, 1), "columns of x");
    require_equal(length(drift), length(clusters), "drift of clusters");
    require_equal(length(weights), length(sums), "weights of clusters");
    require_below(clusters, length(sums), "clusters");
    Result<double, 1> distances({length(clusters)});
    {
        Unlocked unlocked;
        peers::distances_to_centers(view(x), view(clusters), view(drift), view(sums), view(weights),
                                    {distances.data(), length(clusters)});
    }
    return distances.hand_over();
}

double radius_with(const Numbers<const double>& x, double fading, const Numbers<const double>& sums, const Numbers<const double>& squares,
    double weight) {
    require_equal(length(sums), length(x), "sums of columns");
    require_equal(length(squares), length(x), "squares of columns");
    Unlocked unlocked;
    return peers::radius_with(view(x), fading, view(sums), view(squares), weight);
}

void bind_clusters(nb::module_& module) {
    module.def("distances_to_centers", &distances_to_centers, as_is("x"), as_is("clusters"), as_is("drift"), as_is("sums"),
               as_is("weights"));
    module.def("radius_with", &radius_with, as_is("x"), nb::arg("fading"), as_is("sums"), as_is("squares"), nb::arg("weight"));
}

// --- MuENL

void require_scores(std::int64_t label, const Table<const double>& scores, const Table<const double>& targets,
    const Numbers<const double>& importance) {
    require_shape(targets, length(scores), length(scores, 1), "targets");
    require_equal(length(importance), length(scores), "importance of rows");
    require(0 <= label && label < length(scores, 1), "label: " + std::to_string(label) + " is not among the columns");
}

double ranking_loss(std::int64_t label, const Numbers<const double>& label_scores, const Table<const double>& scores,
    const Table<const double>& targets,
                    const Numbers<const double>& importance, double lambda1) {
    require_scores(label, scores, targets, importance);
    require_equal(length(label_scores), length(scores), "scores of the label");
    Unlocked unlocked;
    return peers::ranking_loss(label, view(label_scores), view(scores), view(targets), view(importance), lambda1);
}

auto ranking_pull(std::int64_t label, const Table<const double>& scores, const Table<const double>& targets, const Numbers<const double>& importance,
                  double share) {
    require_scores(label, scores, targets, importance);
    Result<double, 1> pull({length(scores)});
    {
        Unlocked unlocked;
        peers::ranking_pull(label, view(scores), view(targets), view(importance), share, {pull.data(), length(scores)});
    }
    return pull.hand_over();
}

double farthest(const Table<const double>& points, const Numbers<const double>& centre) {
    require_equal(length(centre), length(points, 1), "columns of the centre");
    Unlocked unlocked;
    return peers::farthest(view(points), view(centre));
}

auto two_means(const Table<const double>& points, std::int64_t start, std::int64_t other_start) {
    const std::int64_t n = length(points), width = length(points, 1);
    require(0 <= start && start < n && 0 <= other_start && other_start < n,
            "start and other_start must be indices of points");
    Result<double, 2> means({2, width});
    Result<bool, 1> first({n});
    std::copy_n(view(points)[start], width, means.data());
    std::copy_n(view(points)[other_start], width, means.data() + width);
    bool settled = false;
    {
        Unlocked unlocked;
        settled = peers::two_means(view(points), {means.data(), 2, width}, {first.data(), n});
    }
    return std::tuple(means.hand_over(), first.hand_over(), settled);
}

void add_votes(const Table<const double>& rows, const Table<const double>& scores, const Numbers<const std::int64_t>& child,
               const Table<const std::int64_t>& columns, const Array3D<const double>& means, const Table<const double>& centres,
               const Numbers<const double>& radii, double ratio, const Numbers<double>& votes) {
    const std::int64_t n_nodes = length(child), width = length(columns, 1);
    require(n_nodes > 0, "the tree has no nodes");
    // Children must have higher indices than their parent, so that every walk down the tree ends.
    for (std::int64_t node = 0; node < n_nodes; ++node) {
        const std::int64_t at = child.data()[node];
        require(at == -1 || (at > node && at + 1 < n_nodes), "child: " + std::to_string(at) + " is not a child of node " + std::to_string(node));
    }
    require_equal(length(scores), length(rows), "rows of scores");
    require_equal(length(columns), n_nodes, "columns of nodes");
    require_below(columns, length(rows, 1) + length(scores, 1), "columns");
    require_equal(length(means), n_nodes, "means of nodes");
    require_equal(length(means, 1), 2, "means of a node");
    require_equal(length(means, 2), width, "columns of means");
    require_shape(centres, n_nodes, length(rows, 1), "centres");
    require_equal(length(radii), n_nodes, "radii of nodes");
    require_equal(length(votes), length(rows), "votes of rows");
    const peers::TreeView tree{view(child), view(columns), {means.data(), 2 * n_nodes, width}, view(centres), view(radii)};
    Unlocked unlocked;
    peers::add_votes(view(rows), view(scores), tree, ratio, view(votes));
}

void bind_muenl(nb::module_& module) {
    module.def("ranking_loss", &ranking_loss, nb::arg("label"), as_is("label_scores"), as_is("scores"), as_is("targets"), as_is("importance"),
               nb::arg("lambda1"));
    module.def("ranking_pull", &ranking_pull, nb::arg("label"), as_is("scores"), as_is("targets"), as_is("importance"), nb::arg("share"));
    module.def("farthest", &farthest, as_is("points"), as_is("centre"));
    module.def("two_means", &two_means, as_is("points"), nb::arg("start"), nb::arg("other_start"));
    module.def("add_votes", &add_votes, as_is("rows"), as_is("scores"), as_is("child"), as_is("columns"), as_is("means"),
               as_is("centres"), as_is("radii"), nb::arg("ratio"), as_is("votes"));
}

// --- mlODM

peers::Pairs pairs_view(const Table<const bool>& relevant, const Numbers<const double>& costs, const Numbers<const std::int64_t>& starts,
    double theta,
                        double mu, std::int64_t n_weights) {
    const std::int64_t n_rows = length(relevant), n_labels = length(relevant, 1);
    require_equal(length(costs), n_rows, "costs of rows");
    require_equal(length(starts), n_rows + 1, "starts of rows");
    require_bounds(starts, n_weights, "pairs");
    for (std::int64_t row = 0; row < n_rows; ++row) {
        const bool* first = view(relevant)[row];
        const std::int64_t n_relevant = std::count(first, first + n_labels, true);
        require_equal(starts.data()[row + 1] - starts.data()[row], n_relevant * (n_labels - n_relevant), "pairs of a row");
    }
    return {view(relevant), view(costs), view(starts), theta, mu};
}

double visit_rows(const Numbers<const std::int64_t>& order, const Table<const double>& kernel, const Table<const bool>& relevant,
                  const Numbers<const double>& costs, const Numbers<const std::int64_t>& starts, double theta, double mu, double tol,
                  const Numbers<double>& weights, const Table<double>& dual, const Table<double>& scores) {
    const peers::Pairs pairs = pairs_view(relevant, costs, starts, theta, mu, length(weights));
    const std::int64_t n_rows = length(relevant), n_labels = length(relevant, 1);
    require_below(order, n_rows, "order");
    require_shape(kernel, n_rows, n_rows, "kernel");
    require_shape(dual, n_rows, n_labels, "dual");
    require_shape(scores, n_rows, n_labels, "scores");
    Unlocked unlocked;
    return peers::visit_rows(view(order), view(kernel), pairs, tol, view(weights), view(dual), view(scores));
}

auto objectives(const Table<const bool>& relevant, const Numbers<const double>& costs, const Numbers<const std::int64_t>& starts, double theta,
    double mu,
                const Numbers<const double>& weights, const Table<const double>& dual, const Table<const double>& scores) {
    const peers::Pairs pairs = pairs_view(relevant, costs, starts, theta, mu, length(weights));
    require_shape(dual, length(relevant), length(relevant, 1), "dual");
    require_shape(scores, length(relevant), length(relevant, 1), "scores");
    Unlocked unlocked;
    const auto [primal, dual_value] = peers::objectives(pairs, view(weights), view(dual), view(scores));
    return std::pair(primal, dual_value);
}

void bind_margins(nb::module_& module) {
    module.def("visit_rows", &visit_rows, as_is("order"), as_is("kernel"), as_is("relevant"), as_is("costs"), as_is("starts"),
               nb::arg("theta"), nb::arg("mu"), nb::arg("tol"), as_is("weights"), as_is("dual"), as_is("scores"));
    module.def("objectives", &objectives, as_is("relevant"), as_is("costs"), as_is("starts"), nb::arg("theta"), nb::arg("mu"),
               as_is("weights"), as_is("dual"), as_is("scores"));
}

}  // namespace

void bind_peers(nb::module_& module) {
    bind_nearest(module);
    bind_window(module);
    bind_clusters(module);
    bind_muenl(module);
    bind_margins(module);
}

}  // namespace mlca::MLCA_LEVEL
