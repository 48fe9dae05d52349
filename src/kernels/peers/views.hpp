// Arrays of NumPy as the loops of the peers see them. The code that makes a view has checked its shape and target.
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

// What a row has in CSR fashion: columns[bounds[row]] to columns[bounds[row + 1]], with or without values.
template <class Bound, class Column>
struct CsrRows {
    Vector<const Bound> bounds;
    Vector<const Column> columns;
    Vector<const double> values;
};

}  // namespace mlca::MLCA_LEVEL::peers
