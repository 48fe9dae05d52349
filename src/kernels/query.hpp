// A question to the nodes: which are nearest to this instance? And the words that say how it is asked.
#pragma once

#include <cstdint>

#include "groups.hpp"
#include "shortlist.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

// One bandwidth for all attributes (MLCA), each node its own (MLCA-I), one a group of attributes (MLCA-C).
enum class Mode { common, individual, clustered };

// Instances that are compared with the nodes together. More of them are more to throw away when threads look ahead.
inline constexpr std::int64_t TOGETHER = 8;

// In the place of something that never has to be made.
struct Nothing {};

template <class Row>
struct Query {
    Row x;
    std::int64_t n_nodes = 0;  // compare with so many, the oldest
    double r = 0.0;            // common: the factor SCALE / bandwidth
    const Grouping* grouping = nullptr;  // clustered: the instance's groups
    Shortlist* found = nullptr;
};

}  // namespace mlca::MLCA_LEVEL
