// What dense and sparse windows have in common: where a window lies in a buffer of the stream's latest instances.
//
// Of the `filled` rows in the buffer, those before `learned` are part of the model; the `size - 1` before the first that is
// not are always there. While fewer than `size` instances have come, none is learned: the first `size` instances share
// one window.
//
// `DenseWindow` and `SparseWindow` answer the same questions: take rows in, show one, estimate bandwidths. A walker goes
// with them: working space that moves along the stream, one for each thread, and remembers counts of the window it
// was asked about last.
#pragma once

#include <algorithm>
#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

struct Stretch {
    std::int64_t low, high;

    bool operator==(const Stretch&) const = default;
};

// Where the window of the instance at a position begins and ends. It ends with the instance itself; but the first
// instances of a stream share the window of the first `size` (or of all that have come). So its length is the smaller of
// `filled` and `size` everywhere.
inline Stretch window_around(std::int64_t position, std::int64_t filled, std::int64_t size) {
    return {std::max<std::int64_t>(0, position - size + 1), std::max(position + 1, std::min(size, filled))};
}

}  // namespace mlca::MLCA_LEVEL
