// Threads that work on parts of a task together, as long as the team lives.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "level.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

class Team {
public:
    // The caller's own thread is one of them.
    explicit Team(std::int64_t size) : size_(size) {
        try {
            for (std::int64_t part = 1; part < size; ++part) threads_.emplace_back([this, part] { serve(part); });
        } catch (...) {
            dismiss();
            throw;
        }
    }
    ~Team() { dismiss(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    std::int64_t size() const noexcept { return size_; }

    // Call task(part) for every part, one thread each, and wait for all of them. The first failure is thrown again; that
    // others were stopped because of it is none.
    void run(const std::function<void(std::int64_t)>& task) {
        if (size_ == 1) return task(0);
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            task_ = &task;
            failure_ = nullptr;
            stopped_ = false;
            unfinished_ = size_ - 1;
            round_.fetch_add(1, std::memory_order_release);
        }
        begin_.notify_all();
        attempt(task, 0);
        wait_for([&] { return unfinished_.load(std::memory_order_acquire) == 0; }, end_);
        if (failure_) std::rethrow_exception(failure_);
        if (stopped_) throw Stopped();
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

    void serve(std::int64_t part) {
        for (std::int64_t seen = 0;;) {
            wait_for([&] { return dismissed_.load(std::memory_order_acquire) || round_.load(std::memory_order_acquire) != seen; }, begin_);
            if (dismissed_.load(std::memory_order_acquire)) return;
            seen = round_.load(std::memory_order_acquire);
            attempt(*task_, part);
            {
                const std::lock_guard<std::mutex> guard(mutex_);
                unfinished_.fetch_sub(1, std::memory_order_release);
            }
            end_.notify_one();
        }
    }

    void attempt(const std::function<void(std::int64_t)>& task, std::int64_t part) noexcept {
        try {
            task(part);
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
    const std::function<void(std::int64_t)>* task_ = nullptr;
    std::exception_ptr failure_;
    bool stopped_ = false;
    std::atomic<std::int64_t> round_{0}, unfinished_{0};
    std::atomic<bool> dismissed_{false};
};

}  // namespace mlca::MLCA_LEVEL
