// A readers-writer lock that starves neither side.
//
// A writer waits for the current readers, and later readers wait for the writer. When the writer releases the lock, all
// readers waiting at that time are admitted before the next writer. The learner holds the lock only during a commit,
// never while it searches, and a prediction of many rows releases it between slices. Only copying a model or its state
// may hold a read lock for longer, because not all memory can be shared (base/memory.hpp). During such a long read,
// other readers may pass a waiting writer, which has to wait anyway. A thread must not hold Python's interpreter lock
// while it waits.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

class Lock {
public:
    void lock() {
        std::unique_lock<std::mutex> guard(mutex_);
        ++waiting_writers_;
        writers_.wait(guard, [&] { return !writing_ && reading_ == 0 && admitted_ == 0; });
        --waiting_writers_;
        writing_ = true;
    }

    void unlock() {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            writing_ = false;
            admitted_ = waiting_readers_;
            if (admitted_ == 0 && waiting_writers_ == 0) return;
        }
        readers_.notify_all();
        writers_.notify_one();
    }

    void lock_shared() {
        std::unique_lock<std::mutex> guard(mutex_);
        if (is_busy()) {
            ++waiting_readers_;
            readers_.wait(guard, [&] { return admitted_ > 0 || !is_busy(); });
            --waiting_readers_;
            if (admitted_ > 0) --admitted_;
        }
        ++reading_;
    }

    void unlock_shared() {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            --reading_;
            if (reading_ > 0 || admitted_ > 0 || waiting_writers_ == 0) return;
        }
        writers_.notify_one();
    }

    // Lock for a long read, during which other readers need not wait behind a waiting writer.
    void lock_long() {
        lock_shared();
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            ++reading_long_;
        }
        readers_.notify_all();
    }
    void unlock_long() {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            --reading_long_;
        }
        unlock_shared();
    }

private:
    bool is_busy() const noexcept { return writing_ || (waiting_writers_ > 0 && reading_long_ == 0); }

    std::mutex mutex_;
    std::condition_variable readers_, writers_;
    int reading_ = 0, reading_long_ = 0, waiting_readers_ = 0, waiting_writers_ = 0;
    int admitted_ = 0;  // readers still to be admitted before the next writer
    bool writing_ = false;
};

// Locks for a long read on construction, and unlocks on destruction.
class LongRead {
public:
    explicit LongRead(Lock& lock) : lock_(lock) { lock_.lock_long(); }
    ~LongRead() { lock_.unlock_long(); }
    LongRead(const LongRead&) = delete;
    LongRead& operator=(const LongRead&) = delete;

private:
    Lock& lock_;
};

// Sets a flag that is guarded by a lock on construction, and clears it on destruction.
class ScopedFlag {
public:
    ScopedFlag(Lock& lock, bool& flag) : lock_(lock), flag_(flag) { set(true); }
    ~ScopedFlag() { set(false); }
    ScopedFlag(const ScopedFlag&) = delete;
    ScopedFlag& operator=(const ScopedFlag&) = delete;

private:
    void set(bool raised) {
        const std::lock_guard<Lock> guard(lock_);
        flag_ = raised;
    }

    Lock& lock_;
    bool& flag_;
};

}  // namespace mlca::MLCA_LEVEL
