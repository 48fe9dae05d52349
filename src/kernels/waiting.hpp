// The labels of the rows that wait for the first window to fill; the rows themselves are in the window.
#pragma once

#include <cstdint>

#include "interface.hpp"
#include "labels.hpp"
#include "level.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

struct WaitingLabels {
    // How many rows wait.
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(starts.size()) - 1; }
    InputLabels view() const noexcept { return {starts.data(), labels.data()}; }

    // Make room for one more row: `append` cannot fail then.
    void reserve(const LabelRow& row) {
        starts.reserve(starts.size() + 1);
        labels.reserve(labels.size() + static_cast<std::size_t>(row.n));
    }
    void append(const LabelRow& row) {
        labels.insert(labels.end(), row.labels, row.labels + row.n);
        starts.push_back(static_cast<std::int64_t>(labels.size()));
    }
    void clear() noexcept {
        starts.resize(1);
        labels.clear();
    }

    Array<std::int64_t> starts{Array<std::int64_t>(1, 0)};
    Array<std::int32_t> labels;
};

}  // namespace mlca::MLCA_LEVEL
