// Threads that work on a task together, as long as the team lives.
//
// Nobody is given a share beforehand: whoever is there takes the next piece until none is left. So a thread that comes late, as
// it sleeps or its processor does, takes fewer, and one that has not come by the end is not waited for.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "function_ref.hpp"
#include "level.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

class Team {
public:
    using Task = FunctionRef<void(std::int64_t)>;

    // The caller's own thread is one of them.
    explicit Team(std::int64_t size) : size_(size) {
        try {
            for (std::int64_t member = 1; member < size; ++member) threads_.emplace_back([this, member] { serve(member); });
        } catch (...) {
            dismiss();
            throw;
        }
    }
    ~Team() { dismiss(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    std::int64_t size() const noexcept { return size_; }

    // Call task(member) on the caller's thread, member 0, and on all others that come before that call has returned; return when
    // all have. The first failure is thrown again; that others were stopped because of it is none.
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

    // Call work(member, low, high) for stretches of `first` to `end` that are cut at the multiples of `step`, in order.
    void share(std::int64_t first, std::int64_t end, std::int64_t step, FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> work) {
        std::atomic<std::int64_t> next{first / step};
        run([&](std::int64_t member) {
            for (std::int64_t low; (low = next.fetch_add(1, std::memory_order_relaxed) * step) < end;) work(member, std::max(low, first), std::min(low + step, end));
        });
    }

private:
    // Threads meet every few milliseconds: looking for a moment before going to sleep spares most of the waking up.
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
                if (task_ == nullptr) continue;  // too late
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

    std::int64_t size_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const Task* task_ = nullptr;  // while others may come
    std::exception_ptr failure_;
    bool stopped_ = false;
    std::atomic<std::int64_t> round_{0}, n_at_work_{0};  // without the caller
    std::atomic<bool> dismissed_{false};
};

}  // namespace mlca::MLCA_LEVEL
