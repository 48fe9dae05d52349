// Whether rows are learned faster by threads together or by one alone: what was faster lately.
//
// Whether threads pay depends on the rows, the nodes, the machine and on who else uses it; no count of operations tells. So
// both ways are timed, and neither is timed so often that it costs: a way that lost is tried again after ever longer
// pauses, and the one that wins is checked now and then against the other. Times decide who does the work, never what
// comes out. It is for workloads such as Bibtex and Delicious, where two threads took a tenth longer than one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

class Pace {
public:
    using Clock = std::chrono::steady_clock;

    // Whether the next rows should be learned together.
    bool together() const noexcept { return alone_ > 0.0 && pauses_left_ == 0 && rows_since_alone_ < LONGEST_TRUST; }
    // Whether that has been the faster way.
    bool proven() const noexcept { return proven_; }

    // Some rows were learned by one thread, in so many seconds; the more nodes, the longer a row takes.
    void alone(double seconds, std::int64_t n_rows, std::int64_t n_nodes) noexcept {
        alone_ = seconds / static_cast<double>(n_rows * std::max<std::int64_t>(n_nodes, 1));
        rows_since_alone_ = 0;
        pauses_left_ = std::max<std::int64_t>(0, pauses_left_ - 1);
    }
    void together(double seconds, std::int64_t n_rows, std::int64_t n_nodes) noexcept {
        rows_since_alone_ += n_rows;
        proven_ = seconds < alone_ * static_cast<double>(n_rows * n_nodes);
        if (!proven_) pauses_left_ = patience_;
        patience_ = proven_ ? SHORTEST_PAUSE : std::min(2 * patience_, LONGEST_PAUSE);
    }

    static double seconds_since(Clock::time_point begun) noexcept { return std::chrono::duration<double>(Clock::now() - begun).count(); }

private:
    // Rows that are learned together before one thread is timed again.
    static constexpr std::int64_t LONGEST_TRUST = 4096;
    // How many times some rows are learned alone after those learned together took longer.
    static constexpr std::int64_t SHORTEST_PAUSE = 2, LONGEST_PAUSE = 64;

    double alone_ = 0.0;  // seconds a row and node
    bool proven_ = false;
    std::int64_t rows_since_alone_ = 0, pauses_left_ = 0, patience_ = SHORTEST_PAUSE;
};

}  // namespace mlca::MLCA_LEVEL
