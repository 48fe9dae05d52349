// A long search asks now and then whether it should go on: the user may have pressed Ctrl-C, another thread may have failed.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "level.hpp"

namespace mlca::MLCA_LEVEL {

// Thrown where a search is given up. Searching changes nothing, so nothing has to be undone.
struct Stopped {};

class Stop {
public:
    using Clock = std::chrono::steady_clock;

    // `interrupted` is asked by the thread that made this object, at most every 10 ms. It runs Python's signal handlers,
    // so that thread must not hold the model's lock.
    explicit Stop(std::function<bool()> interrupted = {})
        : interrupted_(std::move(interrupted)), owner_(std::this_thread::get_id()), asked_(Clock::now()) {}

    void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

    // Throw if this work should end; any thread may ask.
    void check() {
        if (interrupted_ && std::this_thread::get_id() == owner_) look();
        if (requested()) throw Stopped();
    }

private:
    void look() {
        const auto now = Clock::now();
        if (now - asked_ < std::chrono::milliseconds(10)) return;
        asked_ = now;
        if (interrupted_()) request();
    }

    std::function<bool()> interrupted_;
    std::thread::id owner_;
    Clock::time_point asked_;
    std::atomic<bool> requested_{false};
};

}  // namespace mlca::MLCA_LEVEL
