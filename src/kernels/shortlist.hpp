// The N nearest nodes: a short list in order, nearest first, the older of two equals first.
#pragma once

#include <cstdint>

#include "function_ref.hpp"
#include "memory.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t NO_LIMIT = std::int64_t{1} << 62;

class Shortlist {
public:
    explicit Shortlist(std::int64_t n_neighbors)
        : nodes(static_cast<std::size_t>(n_neighbors + 1)), sums(static_cast<std::size_t>(n_neighbors + 1)), most_(n_neighbors) {}

    std::int64_t size() const noexcept { return size_; }
    std::int64_t most() const noexcept { return most_; }
    void clear() noexcept { size_ = 0; }
    // Forget all nodes, and keep at most so many from now on, whose sums are within the cap.
    void begin(std::int64_t most, std::int64_t cap = NO_LIMIT) {
        grow_to(nodes, most + 1);
        grow_to(sums, most + 1);
        most_ = most;
        cap_ = cap;
        size_ = 0;
    }

    // The sum above which no node can enter the list any more. One that equals it can, if it is older.
    std::int64_t limit() const noexcept { return size_ == most_ ? sums[static_cast<std::size_t>(size_ - 1)] : cap_; }
    std::int64_t cap() const noexcept { return cap_; }

    // Nodes that are gone never enter: a flag for each node, or none.
    void skip(const std::uint8_t* gone) noexcept { gone_ = gone; }
    bool skips(std::int64_t node) const noexcept { return gone_ != nullptr && gone_[node]; }

    // Offer a node; nodes may come in any order.
    void offer(std::int64_t node, std::int64_t sum) noexcept {
        if (sum > cap_ || skips(node)) return;
        auto place = static_cast<std::size_t>(size_);
        if (size_ == most_) {
            if (!before(node, sum, place - 1)) return;
            --place;
        } else {
            ++size_;
        }
        for (; place > 0 && before(node, sum, place - 1); --place) {
            nodes[place] = nodes[place - 1];
            sums[place] = sums[place - 1];
        }
        nodes[place] = node;
        sums[place] = sum;
    }

    // Put a node that was just made in front of all others.
    void put_first(std::int64_t node) noexcept {
        if (size_ < most_) ++size_;
        for (auto place = static_cast<std::size_t>(size_ - 1); place > 0; --place) nodes[place] = nodes[place - 1];
        nodes[0] = node;
    }

    Array<std::int64_t> nodes, sums;

private:
    bool before(std::int64_t node, std::int64_t sum, std::size_t place) const noexcept {
        return sum < sums[place] || (sum == sums[place] && node < nodes[place]);
    }

    std::int64_t most_;
    std::int64_t cap_ = NO_LIMIT;
    const std::uint8_t* gone_ = nullptr;
    std::int64_t size_ = 0;
};

// nearest_in(low, high, n, limit) lists the n nearest of the nodes from `low` up to `high`.
using NearestIn = FunctionRef<const Shortlist&(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;

}  // namespace mlca::MLCA_LEVEL
