// Memory allocation, and arrays that grow.
//
// The kernels allocate their arrays through `allocate_aligned`, for two reasons: arrays are aligned for the widest
// registers, and a test can make the n-th allocation fail. Learning reserves all memory that a row may need before it
// changes anything, so a failed allocation leaves the model as it was after the last complete row.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/level.hpp"

namespace mlca::MLCA_LEVEL {

#ifdef MLCA_PROBES
// Number of allocations that succeed before one fails; negative: no allocation fails. Set only by tests.
inline std::atomic<std::int64_t> allocations_left{-1};
#endif

// The half-open range of indices [low, high).
struct Stretch {
    std::int64_t low, high;

    bool operator==(const Stretch&) const = default;
};

inline constexpr std::align_val_t ALIGNMENT{64};

// Ask the system for huge pages, as NumPy does. A search in cells reads codes that lie far apart, and with pages of 4
// KiB most reads must also look up the address of their page. With a million nodes, learning a row takes 1.2 times as
// long without huge pages.
inline void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef __linux__
    constexpr std::size_t HUGE_PAGE = std::size_t{1} << 21;
    const auto low = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (low + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, last = (low + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

inline void* allocate_aligned(std::size_t bytes) {
#ifdef MLCA_PROBES
    if (allocations_left.load(std::memory_order_relaxed) >= 0 && allocations_left.fetch_sub(1) == 0) throw std::bad_alloc();
#endif
    void* memory = ::operator new(bytes, ALIGNMENT);
    ask_for_huge_pages(memory, bytes);
    return memory;
}

inline void release(void* memory) noexcept { ::operator delete(memory, ALIGNMENT); }

template <class T>
struct Allocator {
    using value_type = T;

    Allocator() = default;
    template <class U>
    Allocator(const Allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
        return static_cast<T*>(allocate_aligned(n * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t) noexcept { release(memory); }

    // Elements without an initial value are left uninitialised, because most arrays are filled immediately.
    template <class U>
    void construct(U* place) noexcept(std::is_nothrow_default_constructible_v<U>) {
        ::new (static_cast<void*>(place)) U;
    }
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }

    template <class U>
    bool operator==(const Allocator<U>&) const noexcept { return true; }
};

// A vector whose elements are left uninitialised unless a value is given.
template <class T>
using Array = std::vector<T, Allocator<T>>;

// Grow an array to at least n elements; new elements are set to `value`.
template <class T>
void grow_to(Array<T>& array, std::int64_t n, T value = T{}) {
    if (static_cast<std::int64_t>(array.size()) >= n) return;
    const auto wanted = static_cast<std::size_t>(n);
    if (array.capacity() < wanted) array.reserve(std::max(wanted, array.capacity() + array.capacity() / 2));
    array.resize(wanted, value);
}

// Prefetch the n elements of a row. This must be inlined, because GCC removes calls to a function that only prefetches.
template <class T>
[[gnu::always_inline]] inline void fetch_row(const T* row, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += std::int64_t{64 / sizeof(T)}) __builtin_prefetch(row + i);
}

// Passed as the expected number of rows if it is not known in advance.
inline constexpr std::int64_t UNKNOWN_NUMBER = INT64_MAX;

// Rows of equal width that never move in memory. They are stored in chunks, so growing copies nothing and takes
// constant time per chunk. `shared` returns a copy for readers that uses the same chunks. Before a row is changed,
// `reserve` or `own` must be called: they copy the row's chunk if it is shared.
template <class T>
class Rows {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    // If few rows are expected, chunks are not much larger than needed, because zeroing 256 KiB takes 10 microseconds
    // or more. If many rows are expected, a chunk holds up to an eighth of them, provided that this is enough for huge
    // pages.
    explicit Rows(std::int64_t width, std::int64_t n_expected = UNKNOWN_NUMBER) : width_(width) {
        while (shift_ < 10 && (std::int64_t{1} << shift_) < n_expected && (std::int64_t{2} << shift_) * width * std::int64_t{sizeof(T)} <= CHUNK_BYTES) ++shift_;
        if (n_expected == UNKNOWN_NUMBER || n_expected / 8 < LARGE_CHUNK_BYTES / (width * std::int64_t{sizeof(T)})) return;
        while ((std::int64_t{2} << shift_) <= n_expected / 8) ++shift_;
    }
    Rows(const Rows& other) : width_(other.width_), shift_(other.shift_) {
        for (const auto& chunk : other.chunks_) {
            chunks_.push_back(chunk_of_zeros());
            std::memcpy(chunks_.back().get(), chunk.get(), chunk_length() * sizeof(T));
        }
    }
    Rows(Rows&&) noexcept = default;
    Rows& operator=(Rows&&) noexcept = default;

    std::int64_t width() const noexcept { return width_; }
    std::int64_t room() const noexcept { return static_cast<std::int64_t>(chunks_.size()) << shift_; }

    // Return a copy of these rows that shares their chunks.
    Rows shared() const {
        Rows rows(width_);
        rows.shift_ = shift_;
        rows.chunks_ = chunks_;
        return rows;
    }

    // Reserve memory for n rows in total; new rows are zero, and row n - 1 may then be changed.
    void reserve(std::int64_t n) {
        while (room() < n) chunks_.push_back(chunk_of_zeros());
        if (n > 0) own(n - 1);
    }

    // Copy the chunk of a row if it is shared, so that readers of the other copies do not see changes.
    void own(std::int64_t row) {
        Chunk& chunk = chunks_[row >> shift_];
        if (chunk.use_count() == 1) {
            // Synchronise with reads by copies that have since released the chunk. ThreadSanitizer does not support
            // fences, so a copy of the pointer acquires the reference count instead.
#ifdef __SANITIZE_THREAD__
            const Chunk acquired(chunk);
#else
            std::atomic_thread_fence(std::memory_order_acquire);
#endif
            return;
        }
        Chunk twin = chunk_of_zeros();
        std::memcpy(twin.get(), chunk.get(), chunk_length() * sizeof(T));
        chunk = std::move(twin);
    }

    void own_all() {
        for (std::int64_t row = 0; row < room(); row += std::int64_t{1} << shift_) own(row);
    }

    T* operator[](std::int64_t row) noexcept { return place(row); }
    const T* operator[](std::int64_t row) const noexcept { return place(row); }

private:
    static constexpr std::int64_t CHUNK_BYTES = 1 << 18, LARGE_CHUNK_BYTES = 1 << 22;

    struct Release {
        void operator()(T* memory) const noexcept { release(memory); }
    };
    using Chunk = std::shared_ptr<T[]>;

    std::size_t chunk_length() const noexcept { return static_cast<std::size_t>(width_) << shift_; }
    Chunk chunk_of_zeros() const {
        Chunk chunk(static_cast<T*>(allocate_aligned(chunk_length() * sizeof(T))), Release(), Allocator<T>());
        std::memset(static_cast<void*>(chunk.get()), 0, chunk_length() * sizeof(T));
        return chunk;
    }
    T* place(std::int64_t row) const noexcept {
        const auto within = row & ((std::int64_t{1} << shift_) - 1);
        return chunks_[row >> shift_].get() + within * width_;
    }

    std::int64_t width_;
    int shift_ = 0;
    Array<Chunk> chunks_;
};

// A pool of working memory for reuse, because predicting one row takes less time than allocating its memory. It grows
// to the largest number of objects in use at once. Objects in use during a failure are not returned to the pool.
template <class T>
class ObjectPool {
public:
    template <class Make>
    std::unique_ptr<T> borrow(Make make) {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            if (!kept_.empty()) {
                std::unique_ptr<T> one = std::move(kept_.back());
                kept_.pop_back();
                return one;
            }
        }
        return make();
    }

    void give_back(std::unique_ptr<T> one) {
        const std::lock_guard<std::mutex> guard(mutex_);
        kept_.push_back(std::move(one));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace mlca::MLCA_LEVEL
