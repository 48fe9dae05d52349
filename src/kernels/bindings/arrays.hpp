// NumPy arrays at the Python boundary: arguments are validated here before any loop uses them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL::MLCA_ARITHMETIC {

// Argument arrays: exactly this element type and number of dimensions, in C order. Read-only arrays use const T.
template <class T>
using Numbers = nanobind::ndarray<T, nanobind::shape<-1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Table = nanobind::ndarray<T, nanobind::shape<-1, -1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Array3D = nanobind::ndarray<T, nanobind::shape<-1, -1, -1>, nanobind::c_contig, nanobind::device::cpu>;

// An argument that is never converted. A silent conversion would cost time, and a loop would modify the converted copy
// instead of the caller's array.
inline auto as_is(const char* name) { return nanobind::arg(name).noconvert(); }

template <class... Rules>
std::int64_t length(const nanobind::ndarray<Rules...>& array, std::size_t dimension = 0) {
    return static_cast<std::int64_t>(array.shape(dimension));
}

// A new array of zeros, to be filled and returned to Python.
template <class T, std::size_t dimensions>
class Result {
public:
    explicit Result(std::initializer_list<std::int64_t> shape) {
        std::size_t size = 1, dimension = 0;
        for (const std::int64_t side : shape) {
            if (side < 0)
                throw std::invalid_argument("an array must not have a negative dimension; got " + std::to_string(side));
            shape_[dimension] = static_cast<std::size_t>(side);
            size *= shape_[dimension++];
        }
        data_ = std::make_unique<T[]>(size);
    }

    T* data() { return data_.get(); }

    nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<dimensions>> hand_over() {
        T* data = data_.release();
        const nanobind::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
        return {data, dimensions, shape_, owner};
    }

private:
    std::unique_ptr<T[]> data_;
    std::size_t shape_[dimensions];
};

inline void require(bool holds, const std::string& otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

inline void require_equal(std::int64_t is, std::int64_t should_be, const char* what) {
    if (is != should_be) {
        throw std::invalid_argument(std::string(what) + ": expected " + std::to_string(should_be) +
                                    ", got " + std::to_string(is));
    }
}

// Check that all elements are valid indices below n.
template <class... Rules>
void require_below(const nanobind::ndarray<Rules...>& numbers, std::int64_t n, const char* what) {
    for (std::size_t at = 0; at < numbers.size(); ++at) {
        const std::int64_t number = numbers.data()[at];
        if (number < 0 || number >= n) {
            throw std::invalid_argument(std::string(what) + ": " + std::to_string(number) +
                                        " is not an index below " + std::to_string(n));
        }
    }
}

// Check that the row bounds of a CSR array ascend from 0 to n_entries.
template <class T>
void require_bounds(const Numbers<T>& bounds, std::int64_t n_entries, const char* what) {
    const std::size_t n = bounds.size();
    bool fits = n > 0 && bounds.data()[0] == 0 && bounds.data()[n - 1] == n_entries;
    for (std::size_t row = 1; fits && row < n; ++row) fits = bounds.data()[row - 1] <= bounds.data()[row];
    require(fits, std::string(what) + ": row bounds must ascend from 0 to the number of entries");
}

}  // namespace mlca::MLCA_LEVEL::MLCA_ARITHMETIC
