// How many nodes were made before each: its number in the order of making, which it keeps when others are given up.
//
// While no node is ever given up that is the node's own number, and nothing is stored.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory.hpp"
#include "window.hpp"

namespace mlca::MLCA_LEVEL {

class Births {
public:
    std::int64_t operator[](std::int64_t node) const noexcept { return numbers.empty() ? node : numbers.data()[node]; }

    // How many nodes were made when there are so many.
    std::int64_t made(std::int64_t n_nodes) const noexcept { return numbers.empty() ? n_nodes : n_made; }

    // Where the nodes of these numbers are, out of so many that there are.
    Stretch places(Stretch born, std::int64_t n_nodes) const noexcept {
        if (numbers.empty()) return {born.low, std::min(born.high, n_nodes)};
        const auto place = [&](std::int64_t number) { return std::lower_bound(numbers.begin(), numbers.begin() + n_nodes, number) - numbers.begin(); };
        return {place(born.low), place(born.high)};
    }

    Array<std::int64_t> numbers;  // ascending; empty: each node's own number
    std::int64_t n_made = 0;
};

}  // namespace mlca::MLCA_LEVEL
