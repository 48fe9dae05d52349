// Exposes internal parts of the learner in the submodule `probes`, which only tests use.

#include "bindings/bindings.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bandwidth/dense_window.hpp"
#include "search/float_tiles.hpp"
#include "base/memory.hpp"
#include "search/bitmap_counts.hpp"
#include "bandwidth/sparse_window.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

using namespace MLCA_ARITHMETIC;

namespace {

using NewDoubles = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// Return the common bandwidth at each of the given positions of a stream, all of whose rows are in the buffer.
template <class Window>
NewDoubles common_bandwidths(Window& window, std::int64_t n, const typename Window::Source& rows, const Numbers<const std::int64_t>& positions) {
    require_below(positions, n, "positions");
    window.take(rows, 0, n);
    typename Window::Walker walker;
    Result<double, 1> result({length(positions)});
    for (std::int64_t k = 0; k < length(positions); ++k) result.data()[k] = walker.common_bandwidth(window, positions.data()[k]);
    return result.hand_over();
}

// Return the bandwidths of all features at a position of a stream.
template <class Window>
NewDoubles bandwidths(Window& window, std::int64_t n, std::int64_t d, const typename Window::Source& rows, std::int64_t position) {
    require(position >= 0 && position < n, "position: not the index of a row");
    window.take(rows, 0, n);
    typename Window::Walker walker;
    Result<double, 1> result({d});
    walker.bandwidths(window, position, result.data());
    return result.hand_over();
}

// Validate arrays in CSR form and return them as rows.
SparseRows csr(const Numbers<const std::int64_t>& indptr, const Numbers<const std::int32_t>& indices, const Numbers<const double>& data,
    std::int64_t d) {
    require_bounds(indptr, length(indices), "indptr");
    require_below(indices, d, "indices");
    require_equal(length(data), length(indices), "data");
    return {indptr.data(), indices.data(), data.data()};
}

void require_tile(const Table<const float>& tile, std::int64_t d) {
    require_equal(length(tile, 0), d, "tile");
    require_equal(length(tile, 1), TILE, "nodes of a tile");
}

// BitmapCounts for Python, as a list of nodes: nodes are added and removed at the end.
class BoundBitmapCounts {
public:
    void enter(const Numbers<const std::int32_t>& features) {
        require_below(features, INT32_MAX, "features");
        overlaps_.reserve(n_nodes_, features.data(), length(features));
        overlaps_.enter(n_nodes_++, features.data(), length(features));
        entered_.emplace_back(features.data(), features.data() + length(features));
    }
    void withdraw() {
        require(n_nodes_ > 0, "there is no node to withdraw");
        overlaps_.withdraw(--n_nodes_, entered_.back().data(), static_cast<std::int64_t>(entered_.back().size()));
        entered_.pop_back();
    }
    nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>> count(const Numbers<const std::int32_t>& features, std::int64_t n_nodes) const {
        require_below(features, INT32_MAX, "features");
        require(n_nodes >= 0 && n_nodes <= n_nodes_, "n_nodes: must be 0 to the number of nodes");
        BitmapCounts::Space space;
        overlaps_.count(features.data(), length(features), n_nodes, space);
        Result<std::int32_t, 1> result({n_nodes});
        std::copy_n(space.counts.data(), n_nodes, result.data());
        return result.hand_over();
    }

private:
    BitmapCounts overlaps_;
    std::int64_t n_nodes_ = 0;
    std::vector<Array<std::int32_t>> entered_;
};

void bind_sums(nb::module_& module) {
    module.attr("UNIT") = UNIT;
    module.attr("SCALE") = SCALE;
    module.attr("POWER_COEFFICIENTS") = nb::cast(std::vector<double>(std::begin(POWER_COEFFICIENTS), std::end(POWER_COEFFICIENTS)));
    module.attr("NEAR_COEFFICIENTS") = nb::cast(std::vector<double>(std::begin(NEAR_COEFFICIENTS), std::end(NEAR_COEFFICIENTS)));
    module.attr("NEAR_ERROR") = NEAR_ERROR;
    module.def("power_of_half", &power_of_half, nb::arg("w"));
    module.def("kernel", &kernel, nb::arg("difference"), nb::arg("r"));
    module.def("dissimilarity", &dissimilarity, nb::arg("difference"), nb::arg("r"));
    module.def("group_root", &group_root, nb::arg("total"), nb::arg("size"));
    module.def(
        "common_sum",
        [](const Numbers<const double>& x, const Numbers<const double>& y, double r) {
            require_equal(length(y), length(x), "y");
            return common_sum(x.data(), y.data(), length(x), r);
        },
        as_is("x"), as_is("y"), nb::arg("r"));
    module.def(
        "individual_sum",
        [](const Numbers<const double>& x, const Numbers<const double>& y, const Numbers<const double>& r) {
            require_equal(length(y), length(x), "y");
            require_equal(length(r), length(x), "r");
            return individual_sum(x.data(), y.data(), r.data(), length(x));
        },
        as_is("x"), as_is("y"), as_is("r"));
}

void bind_medians(nb::module_& module) {
    module.def(
        "median",
        [](const Numbers<const double>& values) {
            require(length(values) > 0, "values: must not be empty");
            Array<double> copy(values.data(), values.data() + length(values));
            return median(copy.data(), length(values));
        },
        as_is("values"));
    module.def(
        "partition",
        [](const Numbers<double>& values, std::int64_t target) {
            require(target >= 0 && target < length(values), "target: not an index of values");
            partition(values.data(), length(values), target);
        },
        as_is("values"), nb::arg("target"));
    module.def(
        "running_medians",
        [](const Numbers<const double>& values) {
            Result<double, 1> result({length(values)});
            RunningMedian median;
            for (std::int64_t k = 0; k < length(values); ++k) {
                median.reserve();
                median.add(values.data()[k]);
                result.data()[k] = median.value();
            }
            return result.hand_over();
        },
        as_is("values"));
}

void bind_windows(nb::module_& module) {
    module.attr("LONGEST_COUNTED") = LONGEST_COUNTED;
    module.def(
        "window_around",
        [](std::int64_t position, std::int64_t filled, std::int64_t size) {
            const auto [low, high] = window_around(position, filled, size);
            return std::pair(low, high);
        },
        nb::arg("position"), nb::arg("filled"), nb::arg("size"));
    module.def(
        "common_bandwidths_dense",
        [](const Table<const double>& rows, std::int64_t size, const Numbers<const std::int64_t>& positions) {
            DenseWindow window(size, length(rows, 1));
            return common_bandwidths(window, length(rows), {rows.data(), length(rows), length(rows, 1)}, positions);
        },
        as_is("rows"), nb::arg("size"), as_is("positions"));
    module.def(
        "common_bandwidths_sparse",
        [](const Numbers<const std::int64_t>& indptr, const Numbers<const std::int32_t>& indices, const Numbers<const double>& data, std::int64_t d,
           std::int64_t size, const Numbers<const std::int64_t>& positions) {
            SparseWindow window(size, d);
            return common_bandwidths(window, length(indptr) - 1, csr(indptr, indices, data, d), positions);
        },
        as_is("indptr"), as_is("indices"), as_is("data"), nb::arg("d"), nb::arg("size"), as_is("positions"));
    module.def(
        "bandwidths_dense",
        [](const Table<const double>& rows, std::int64_t size, std::int64_t position) {
            DenseWindow window(size, length(rows, 1));
            return bandwidths(window, length(rows), length(rows, 1), {rows.data(), length(rows), length(rows, 1)}, position);
        },
        as_is("rows"), nb::arg("size"), nb::arg("position"));
    module.def(
        "bandwidths_sparse",
        [](const Numbers<const std::int64_t>& indptr, const Numbers<const std::int32_t>& indices, const Numbers<const double>& data, std::int64_t d,
           std::int64_t size, std::int64_t position) {
            SparseWindow window(size, d);
            return bandwidths(window, length(indptr) - 1, d, csr(indptr, indices, data, d), position);
        },
        as_is("indptr"), as_is("indices"), as_is("data"), nb::arg("d"), nb::arg("size"), nb::arg("position"));
}

void bind_rough_sums(nb::module_& module) {
    module.attr("TILE") = TILE;
    module.attr("FIT_ERROR") = FIT_ERROR;
    module.attr("ROOT_FIT_ERROR") = ROOT_FIT_ERROR;
    module.def("rough_kernel_at", &rough_kernel_at, nb::arg("difference"), nb::arg("r"));
    module.def("rough_root_kernel_at", &rough_root_kernel_at, nb::arg("difference"), nb::arg("r"));
    module.def("rough_error", &rough_error, nb::arg("fit_error"), nb::arg("largest_scaled"), nb::arg("n_added"));
    module.def(
        "rough_root_sums",
        [](const Numbers<const float>& x, const Table<const float>& tile, const Table<const float>& factors) {
            require_tile(tile, length(x));
            require_tile(factors, length(x));
            Result<float, 1> sums({TILE});
            rough_root_sums(x.data(), tile.data(), factors.data(), length(x), sums.data());
            return sums.hand_over();
        },
        as_is("x"), as_is("tile"), as_is("factors"));
}

}  // namespace

void bind_probes(nb::module_& module) {
    nb::module_ probes = module.def_submodule("probes", "Internal parts of the learner, exposed to tests.");
    probes.def("fail_allocation", [](std::int64_t after) { allocations_left = after; }, nb::arg("after"),
        "Make one allocation fail, after that many have succeeded.");
    bind_sums(probes);
    bind_medians(probes);
    bind_windows(probes);
    bind_rough_sums(probes);
    nb::class_<BoundBitmapCounts>(probes, "BitmapCounts")
        .def(nb::init<>())
        .def("enter", &BoundBitmapCounts::enter, as_is("features"))
        .def("withdraw", &BoundBitmapCounts::withdraw)
        .def("count", &BoundBitmapCounts::count, as_is("features"), nb::arg("n_nodes"));
}

}  // namespace mlca::MLCA_LEVEL
