// Views of NumPy arrays for the peers' loops. The code that creates a view has validated its shape and indices.
#pragma once

#include <cstdint>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL::peers {

template <class T>
struct Vector {
    T* data;
    std::int64_t size;

    T& operator[](std::int64_t i) const { return data[i]; }
};

template <class T>
struct Matrix {
    T* data;
    std::int64_t n_rows;
    std::int64_t width;

    T* operator[](std::int64_t row) const { return data + row * width; }
};

// CSR rows: row i has columns[bounds[i]] up to, but not including, columns[bounds[i + 1]], with or without values.
template <class Bound, class Column>
struct CsrRows {
    Vector<const Bound> bounds;
    Vector<const Column> columns;
    Vector<const double> values;
};

}  // namespace mlca::MLCA_LEVEL::peers
