// The voters of a row: its nearest nodes, at least ten, and enough to represent at least fifty rows, plus all nodes
// tied with the last of them.
//
// Nodes are offered with integer keys (smaller is nearer; ties go to the older node), in any order and from any number
// of searches. The result is the same as from sorting all nodes: the voters, and the first node beyond them, whose
// distance scales the votes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "similarity/rank_distance.hpp"
#include "base/memory.hpp"
#include "search/neighbour_index.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t LEAST_VOTERS = 10;
inline constexpr std::int64_t LEAST_ROWS = 50;
inline constexpr std::int64_t MOST_VOTERS = 100;

// Converts keys to distances.
struct Ruler {
    double unit;         // the key of distance 1
    std::int64_t far;    // the key of a node that has nothing in common with the row
    bool squared;        // whether keys are squared distances

    double distance(std::int64_t key) const noexcept {
        const double part = static_cast<double>(key) / unit;
        return squared ? std::sqrt(part) : part;
    }
    // The largest key that counts as tied with this one: within a relative distance of 5e-7.
    std::int64_t tied(std::int64_t key) const noexcept { return key + key / (squared ? 1'000'000 : 2'000'000); }
};

inline Ruler ruler_of(const Learned& learned) noexcept { return {PER_KEY, learned.far, true}; }

struct Voter {
    std::int64_t key, node, rows;

    bool operator<(const Voter& other) const noexcept { return key < other.key || (key == other.key && node < other.node); }
};

class Voters {
public:
    // Forget all nodes. `counts` holds the number of rows per node; nodes beyond its end represent one row each.
    void begin(const Ruler& ruler, const Array<std::int64_t>& counts) noexcept {
        ruler_ = ruler;
        counts_ = counts.data();
        n_counts_ = static_cast<std::int64_t>(counts.size());
        size_ = n_voters_ = reach_ = rows_ = 0;
        reaches_ = false;
    }

    void offer(std::int64_t key, std::int64_t node) noexcept {
        const Voter voter{key, node, node < n_counts_ ? counts_[node] : 1};
        if (size_ > n_voters_ && !(voter < near_[size_ - 1])) return;
        const bool is_last = size_ == 0 || !(voter < near_[size_ - 1]);  // the usual case, because lists are sorted
        const std::int64_t place = is_last ? size_ : std::upper_bound(near_, near_ + size_, voter) - near_;
        std::copy_backward(near_ + place, near_ + size_, near_ + size_ + 1);
        near_[place] = voter;
        ++size_;
        if (place < reach_ || !reaches_) {
            ++reach_;
            rows_ += voter.rows;
            while (reach_ > LEAST_VOTERS && rows_ - near_[reach_ - 1].rows >= LEAST_ROWS) rows_ -= near_[--reach_].rows;
            reaches_ = reach_ >= LEAST_VOTERS && rows_ >= LEAST_ROWS;
        }
        const std::int64_t most = std::min(size_, MOST_VOTERS), last = ruler_.tied(near_[reach_ - 1].key);
        n_voters_ = reach_;
        while (n_voters_ < most && near_[n_voters_].key <= last) ++n_voters_;
        size_ = std::min(size_, n_voters_ + 1);
    }

    // Nodes with keys above this limit cannot become voters or the first node beyond them.
    std::int64_t limit() const noexcept { return size_ > n_voters_ ? near_[size_ - 1].key : NO_LIMIT; }

    void offer_all(const TopK& list) noexcept {
        for (std::int64_t i = 0; i < list.size(); ++i) offer(list.sums[i], list.nodes[i]);
    }

    // Compute the weights of the votes; call after all nodes have been offered.
    void weigh() noexcept {
        if (n_voters_ == 0) return;
        const bool beyond = size_ > n_voters_;
        const std::int64_t end = near_[size_ - 1].key, nearest = near_[0].key;
        const bool equal = end <= ruler_.tied(nearest);
        const double d1 = ruler_.distance(nearest), e = ruler_.distance(end);
        for (std::int64_t i = 0; i < n_voters_; ++i) {
            const double part = equal ? 1.0 : (e - ruler_.distance(near_[i].key)) / (e - d1);
            weights_[i] = equal ? 1.0 : part * part + (beyond ? 0.0 : 0.001);
        }
    }

    std::int64_t size() const noexcept { return n_voters_; }
    std::int64_t node(std::int64_t i) const noexcept { return near_[i].node; }
    std::int64_t key(std::int64_t i) const noexcept { return near_[i].key; }
    double weight(std::int64_t i) const noexcept { return weights_[i]; }
    double distance(std::int64_t i) const noexcept { return ruler_.distance(near_[i].key); }
    // Whether even the nearest node has nothing in common with the row.
    bool far() const noexcept { return size_ > 0 && near_[0].key >= ruler_.far; }

private:
    Ruler ruler_{};
    const std::int64_t* counts_ = nullptr;
    std::int64_t n_counts_ = 0;
    std::int64_t size_ = 0, n_voters_ = 0;
    // `reach_`: the number of voters, not counting ties. `rows_`: the number of rows that they represent. Each node
    // represents at least one row, so at most fifty nodes are needed.
    std::int64_t reach_ = 0, rows_ = 0;
    bool reaches_ = false;
    Voter near_[MOST_VOTERS + 2];
    double weights_[MOST_VOTERS];
};

// Each slot's share of the votes, and the list of slots with a share.
class Shares {
public:
    // Reserve memory for n_slots slots.
    void reserve(std::int64_t n_slots) {
        grow_to(shares_, n_slots);
        grow_to(is_listed_, n_slots);
        listed.reserve(n_slots);
    }

    double operator[](std::int64_t slot) const noexcept { return shares_[slot]; }
    bool lists(std::int64_t slot) const noexcept { return is_listed_[slot]; }

    void clear() noexcept {
        for (const std::int32_t slot : listed) {
            shares_[slot] = 0.0;
            is_listed_[slot] = 0;
        }
        listed.clear();
    }

    void add(std::int64_t slot, double share) noexcept {
        if (!is_listed_[slot]) {
            is_listed_[slot] = 1;
            listed.push_back(static_cast<std::int32_t>(slot));
        }
        shares_[slot] += share;
    }

    // Count the weighted votes in the voters' order. `count(node)` and for_each_label(node, f(slot, rows)) may use fading
    // counts.
    template <class Count, class ForEachLabel>
    void vote(const Voters& voters, Count count, ForEachLabel for_each_label) {
        clear();
        double together = 0.0;
        for (std::int64_t i = 0; i < voters.size(); ++i) {
            const double weight = voters.weight(i);
            const double rows_of_node = static_cast<double>(count(voters.node(i)));
            together += weight;
            for_each_label(voters.node(i), [&](std::int64_t slot, auto rows) { add(slot, weight * static_cast<double>(rows) / rows_of_node); });
        }
        for (const std::int32_t slot : listed) shares_[slot] = std::min(shares_[slot] / together, 1.0);
    }

    Array<std::int32_t> listed;

private:
    Array<double> shares_;
    Array<std::uint8_t> is_listed_;
};

}  // namespace mlca::MLCA_LEVEL
