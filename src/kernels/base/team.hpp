// Multithreading: non-owning function references, cancellation, parallel-for, and a team of worker threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

// A reference to a function, for parameters that are called but never stored. If it is called once per row, it is as
// fast as a template parameter, and the calling code is compiled once instead of once per function.
template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class Function>
    FunctionRef(const Function& function) noexcept  // NOLINT: meant to be implicit
        : function_(&function),
        call_([](const void* called, Arguments... arguments) -> Result { return (*static_cast<const Function*>(called))(arguments...); }) {}

    Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

private:
    const void* function_;
    Result (*call_)(const void*, Arguments...);
};

// Thrown when a search is cancelled because the user pressed Ctrl-C or another thread failed. A search changes nothing,
// so nothing has to be undone.
struct Stopped {};

class Stop {
public:
    using Clock = std::chrono::steady_clock;

    // `interrupted` is called only by the thread that created this object, at most every 10 ms. It runs Python's signal
    // handlers, so that thread must not hold the model's lock.
    explicit Stop(std::function<bool()> interrupted = {})
        : interrupted_(std::move(interrupted)), owner_(std::this_thread::get_id()), asked_(Clock::now()) {}

    void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
    bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

    // Throw `Stopped` if the work should stop; any thread may call this.
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

// Callback that processes the indices from low to high; several ranges may be processed concurrently.
using WorkOnStretch = FunctionRef<void(std::int64_t low, std::int64_t high)>;

// A parallel-for: splits the range from 0 to n at multiples of `step`, and calls `work` for each part.
using ParallelFor = FunctionRef<void(std::int64_t n, std::int64_t step, WorkOnStretch work)>;

// A parallel-for that does all the work on the calling thread.
inline constexpr auto ON_ONE_THREAD = [](std::int64_t n, std::int64_t, WorkOnStretch work) { work(0, n); };

// Worker threads that execute tasks together. They run for the lifetime of the object.
//
// Work is not divided in advance: each thread takes the next piece until none is left. So a thread that starts late,
// because it or its processor was asleep, takes fewer pieces, and the team does not wait for a thread that has not
// started by the end.
class Team {
public:
    using Task = FunctionRef<void(std::int64_t)>;

    // Create a team of up to `size` threads, including the caller's. If the system cannot start all of them, those that
    // were started do all the work; results do not depend on their number.
    explicit Team(std::int64_t size) {
        try {
            threads_.reserve(size - 1);
            for (std::int64_t member = 1; member < size; ++member) threads_.emplace_back([this, member] { serve(member); });
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
        }
        size_ = static_cast<std::int64_t>(threads_.size()) + 1;
    }
    ~Team() { dismiss(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    std::int64_t size() const noexcept { return size_; }

    // Call task(member) on the caller's thread (member 0) and on every worker that joins before the caller's call
    // returns. Return when all of them are done. The first failure is rethrown; a `Stopped` that it causes in other
    // threads is ignored.
    void run(Task task) {
        if (size_ == 1) return task(0);
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            task_ = &task;
            failure_ = nullptr;
            stopped_ = false;
            round_.fetch_add(1, std::memory_order_release);
        }
        begin_.notify_all();
        attempt(task, 0);
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            task_ = nullptr;
        }
        wait_for([&] { return n_at_work_.load(std::memory_order_acquire) == 0; }, end_);
        if (failure_) std::rethrow_exception(failure_);
        if (stopped_) throw Stopped();
    }

    // Split the range from `first` to `end` at multiples of `step`, and call work(member, low, high) for each part.
    // Parts are handed out in ascending order.
    void share(std::int64_t first, std::int64_t end, std::int64_t step, FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> work) {
        std::atomic<std::int64_t> next{first / step};
        run([&](std::int64_t member) {
            for (std::int64_t low; (low = next.fetch_add(1, std::memory_order_relaxed) * step) < end;)
                work(member, std::max(low, first), std::min(low + step, end));
        });
    }

private:
    // Threads synchronise every few milliseconds, so polling briefly before sleeping avoids most wake-ups.
    static constexpr int LOOKS = 2000;

    template <class Condition>
    void wait_for(Condition condition, std::condition_variable& signal) {
        for (int look = 0; look < LOOKS; ++look) {
            if (condition()) return;
            std::this_thread::yield();
        }
        std::unique_lock<std::mutex> guard(mutex_);
        signal.wait(guard, condition);
    }

    void serve(std::int64_t member) {
        for (std::int64_t seen = 0;;) {
            wait_for([&] { return dismissed_.load(std::memory_order_acquire) || round_.load(std::memory_order_acquire) != seen; }, begin_);
            const Task* task;
            {
                const std::lock_guard<std::mutex> guard(mutex_);
                if (dismissed_) return;
                seen = round_;
                if (task_ == nullptr) continue;  // the task is already finished
                task = task_;
                ++n_at_work_;
            }
            attempt(*task, member);
            {
                const std::lock_guard<std::mutex> guard(mutex_);
                --n_at_work_;
            }
            end_.notify_one();
        }
    }

    void attempt(const Task& task, std::int64_t member) noexcept {
        try {
            task(member);
        } catch (const Stopped&) {
            const std::lock_guard<std::mutex> guard(mutex_);
            stopped_ = true;
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    void dismiss() noexcept {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            dismissed_.store(true, std::memory_order_release);
        }
        begin_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    std::int64_t size_ = 1;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const Task* task_ = nullptr;  // null once no more threads may join
    std::exception_ptr failure_;
    bool stopped_ = false;
    std::atomic<std::int64_t> round_{0}, n_at_work_{0};  // `n_at_work_` does not count the caller
    std::atomic<bool> dismissed_{false};
};

}  // namespace mlca::MLCA_LEVEL
