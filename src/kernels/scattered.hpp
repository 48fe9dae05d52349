// A sparse row laid out over all attributes, for as long as it is needed.
#pragma once

#include <cstdint>

#include "memory.hpp"
#include "sparse_window.hpp"

namespace mlca::MLCA_LEVEL {

// Marks the non-zeros of a row in an array of zeros for as long as it lives.
template <class T>
class Scattered {
public:
    template <class ValueAt>
    Scattered(Array<T>& target, const SparseRow& row, ValueAt value_at) : target_(target), row_(row) {
        for (std::int64_t p = 0; p < row.n; ++p) target_[static_cast<std::size_t>(row.keys[p])] = value_at(p);
    }
    ~Scattered() {
        for (std::int64_t p = 0; p < row_.n; ++p) target_[static_cast<std::size_t>(row_.keys[p])] = T{};
    }
    Scattered(const Scattered&) = delete;
    Scattered& operator=(const Scattered&) = delete;

private:
    Array<T>& target_;
    SparseRow row_;
};

}  // namespace mlca::MLCA_LEVEL
