// The Python module. This file is compiled for the oldest supported processor of the architecture. So it can query the
// processor's features, and reject a module that the processor cannot run, without using an instruction that the processor lacks.

#include "bindings/bindings.hpp"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "bindings/arrays.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

using namespace MLCA_ARITHMETIC;

// Whether all magnitudes are within a limit and no value is missing. Interpreted as integers, the bits of magnitudes
// are ordered like their values, followed by infinity and then NaN. A negative difference sets the sign bit of the
// result, so no branch is needed.
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
    if (rows.size() >> 16) unlocked.emplace();  // for few rows, reacquiring the lock may take longer than the check
    return are_within(rows.data(), rows.size(), limit);
}

// Compare two names without running Python code; return false if they differ or cannot be compared this way.
bool is_same_name(PyObject* a, PyObject* b) {
    if (a == b) return true;
    if (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b)) return PyUnicode_Compare(a, b) == 0;
    return PyLong_CheckExact(a) && PyLong_CheckExact(b) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Copy the values of a dict into a row. Return false unless its names equal those of another dict, in the same order, and all
// values are plain numbers within a limit.
bool fill_row(const nb::dict& x, const nb::dict& names, const nb::ndarray<double, nb::shape<1, -1>, nb::c_contig, nb::device::cpu>& row,
    double limit) {
    static const nb::handle float64 = nb::object(nb::module_::import_("numpy").attr("float64")).release();
    if (nb::len(x) != row.size() || nb::len(names) != row.size()) return false;
    PyObject *name, *value, *known, *column;
    Py_ssize_t place = 0, known_place = 0;
    for (std::size_t at = 0; at < row.size(); ++at) {
        if (!PyDict_Next(x.ptr(), &place, &name, &value) || !PyDict_Next(names.ptr(), &known_place, &known, &column) || !is_same_name(name, known))
            return false;
        if (PyFloat_CheckExact(value) || nb::handle(value).type().is(float64)) {
            row.data()[at] = PyFloat_AsDouble(value);
        } else if (PyLong_CheckExact(value) || PyBool_Check(value)) {
            row.data()[at] = PyLong_AsDouble(value);
            if (PyErr_Occurred() != nullptr) {
                PyErr_Clear();  // the integer is too large for a double
                return false;
            }
        } else {
            return false;
        }
    }
    return are_within(row.data(), row.size(), limit);
}

// The highest level of x86-64 that the processor and the operating system support. It is queried directly, because
// __builtin_cpu_supports needs a run-time library that some compilers (zig) do not provide.
#if defined(__x86_64__)
struct Registers {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers ask(unsigned leaf) {
    Registers r;
    __get_cpuid_count(leaf, 0, &r.a, &r.b, &r.c, &r.d);  // leaves zeros if the processor has no such leaf
    return r;
}

constexpr bool has_all(std::uint64_t word, std::initializer_list<unsigned> bits) {
    for (const unsigned bit : bits) {
        if (!(word >> bit & 1)) return false;
    }
    return true;
}

// The registers that the operating system saves when it switches threads; must only be called if OSXSAVE is set.
std::uint64_t saved_registers() {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

int x86_64_level() {
    const Registers basic = ask(1), more = ask(7), extended = ask(0x80000001);
    // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF
    if (!has_all(basic.c, {0, 9, 13, 19, 20, 23}) || !has_all(extended.c, {0})) return 1;
    // FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; SSE and AVX registers saved
    if (!has_all(basic.c, {12, 22, 27, 28, 29}) || !has_all(extended.c, {5}) || !has_all(more.b, {3, 5, 8})) return 2;
    const std::uint64_t saved = saved_registers();
    if (!has_all(saved, {1, 2})) return 2;
    // AVX-512 F, DQ, CD, BW, VL; opmask registers, upper halves of ZMM0-15 and ZMM16-31 saved
    if (!has_all(more.b, {16, 17, 28, 30, 31}) || !has_all(saved, {5, 6, 7})) return 3;
    return 4;
}

// Whether the processor can run code compiled for a level: "v2", "v3", "v4" of x86-64, or "plain".
bool processor_has(std::string_view level) {
    static const int highest = x86_64_level();
    if (level == "v2") return highest >= 2;
    if (level == "v3") return highest >= 3;
    if (level == "v4") return highest >= 4;
    return false;
}
#else
bool processor_has(std::string_view level) { return level == "plain"; }
#endif

}  // namespace

}  // namespace mlca::MLCA_LEVEL

NB_MODULE(MLCA_MODULE, module) {
    using namespace mlca::MLCA_LEVEL;
    const std::string level = MLCA_QUOTE(MLCA_LEVEL);
    if (!processor_has(level)) {
        throw nb::import_error(("this processor lacks instructions of x86-64-" + level).c_str());
    }
    nb::set_leak_warnings(false);  // a model that lives as long as the interpreter is not a leak
    module.def(
        "processor_has", [](const char* word) { return processor_has(word); }, nb::arg("level"),
        "Whether this processor can run modules of a level: \"v2\", \"v3\", \"v4\" or \"plain\".");
    module.def("all_within", &all_within, strict::as_is("rows"), nb::arg("limit"));
    module.def("fill_row", &fill_row, nb::arg("x"), nb::arg("names"), strict::as_is("row"), nb::arg("limit"));
    module.attr("sources") = MLCA_QUOTE(MLCA_SOURCES);
    bind_learner(module);
    bind_peers(module);
#ifdef MLCA_PROBES
    bind_probes(module);
#endif
}
