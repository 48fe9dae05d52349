// The Python module. This file and cpu.cpp are compiled for any processor of the architecture, so that asking what
// the processor has, and refusing a module that it cannot run, never needs an instruction that it lacks.

#include "bindings.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "cpu.hpp"
#include "probes.hpp"
#include "rough.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

using namespace MLCA_ARITHMETIC;

// Whether no number's magnitude is beyond a limit, and none is missing. As whole numbers the bits of magnitudes are in the order
// of the numbers, infinity follows, and NaN comes last; a difference below 0 leaves its sign, so nothing branches.
bool are_within(const double* values, std::size_t n, double limit) {
    const std::int64_t most = std::bit_cast<std::int64_t>(limit);
    std::int64_t beyond = 0;
    for (std::size_t at = 0; at < n; ++at) {
        beyond |= most - (std::bit_cast<std::int64_t>(values[at]) & std::numeric_limits<std::int64_t>::max());
    }
    return beyond >= 0;
}

bool all_within(const Table<const double>& rows, double limit) {
    std::optional<nb::gil_scoped_release> unlocked;
    if (rows.size() >> 16) unlocked.emplace();  // of a few rows, to take the lock again may cost more
    return are_within(rows.data(), rows.size(), limit);
}

// Whether two names are equal that are told so without running any of Python's code.
bool is_same_name(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b)) return PyUnicode_Compare(a, b) == 0;
    return PyLong_CheckExact(a) && PyLong_CheckExact(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Write the values of a dict into a row: if its names are those of another dict, in their order, and all values are plain
// numbers within a limit. False tells that something is not so, whatever it is.
bool fill_row(const nb::dict& x, const nb::dict& names, const nb::ndarray<double, nb::shape<1, -1>, nb::c_contig, nb::device::cpu>& row, double limit) {
    static const nb::handle float64 = nb::object(nb::module_::import_("numpy").attr("float64")).release();
    if (nb::len(x) != row.size() || nb::len(names) != row.size()) return false;
    PyObject *name, *value, *known, *column;
    Py_ssize_t place = 0, known_place = 0;
    for (std::size_t at = 0; at < row.size(); ++at) {
        if (!PyDict_Next(x.ptr(), &place, &name, &value) || !PyDict_Next(names.ptr(), &known_place, &known, &column) || !is_same_name(name, known)) return false;
        if (PyFloat_CheckExact(value) || nb::handle(value).type().is(float64)) {
            row.data()[at] = PyFloat_AsDouble(value);
        } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
            row.data()[at] = PyLong_AsDouble(value);
            if (PyErr_Occurred() != nullptr) {
                PyErr_Clear();  // too large for any row
                return false;
            }
        } else {
            return false;
        }
    }
    return are_within(row.data(), row.size(), limit);
}

// The bare sums, for the benchmark: what this machine can do at the most.
void bind_limits(nb::module_& module) {
    module.def(
        "sum_exactly",
        [](const Numbers<const double>& x, const Table<const double>& nodes, double r, std::int64_t repeats) {
            require_equal(length(nodes, 1), length(x), "columns of nodes");
            nb::gil_scoped_release unlocked;
            return sum_exactly(x.data(), nodes.data(), length(nodes), length(x), r, repeats);
        },
        as_is("x"), as_is("nodes"), nb::arg("r"), nb::arg("repeats"));
    module.def(
        "sum_roughly",
        [](const Numbers<const float>& x, const Table<const float>& tile, double r, std::int64_t repeats) {
            require_equal(length(tile), length(x), "rows of the tile");
            require_equal(length(tile, 1), TILE, "nodes of the tile");
            Result<float, 1> sums({TILE});
            {
                nb::gil_scoped_release unlocked;
                sum_roughly(x.data(), tile.data(), length(x), r, sums.data(), repeats);
            }
            return sums.hand_over();
        },
        as_is("x"), as_is("tile"), nb::arg("r"), nb::arg("repeats"));
}

}  // namespace

}  // namespace mlca::MLCA_LEVEL

NB_MODULE(MLCA_MODULE, module) {
    using namespace mlca::MLCA_LEVEL;
    const std::string level = MLCA_QUOTE(MLCA_LEVEL);
    if (!processor_has(level)) {
        throw nb::import_error(("this processor lacks instructions of x86-64-" + level).c_str());
    }
    nb::set_leak_warnings(false);  // a model that lives as long as the interpreter is no leak, and nobody's business at exit
    module.def(
        "processor_has", [](const char* word) { return processor_has(word); }, nb::arg("level"),
        "Whether this processor runs modules of a level: \"v2\", \"v3\", \"v4\" or \"plain\".");
    module.def("all_within", &all_within, strict::as_is("rows"), nb::arg("limit"));
    module.def("fill_row", &fill_row, nb::arg("x"), nb::arg("names"), strict::as_is("row"), nb::arg("limit"));
    module.attr("sources") = MLCA_QUOTE(MLCA_SOURCES);
    bind_learner(module);
    bind_peers(module);
    bind_limits(module);
#ifdef MLCA_PROBES
    bind_probes(module);
#endif
}
