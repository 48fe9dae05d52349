// Concept drift: which segments of the past may vote, and label counts that fade.
//
// Nodes are numbered here in order of creation, whatever became of others since. Who may vote is learned. Segments
// are runs of consecutive nodes. Each is trusted as far as the labels
// of its nearest node were those of recent rows. Where votes are mixed with linear models, only nodes of trusted segments count. Else
// they vote for a second expert, and a third asks the last 512 nodes by label counts that fade whenever a row falls on a node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class Segments {
public:
    static constexpr std::int64_t NODES = 64;
    // How many there may be, and how fast trust follows: of experts, and if trust decides which nodes count.
    static constexpr std::int64_t MOST_OF_EXPERTS = 16, UNBOUNDED = INT64_MAX;
    static constexpr double SPEED_OF_EXPERTS = 0.1, SPEED = 0.03;

    Segments(std::int64_t most, double speed) : most_(most), speed_(speed) {}

    std::int64_t n() const noexcept { return static_cast<std::int64_t>(first.size()); }

    // Reserve memory for one more.
    void reserve() {
        if (first.size() + 1 < trust.capacity()) return;
        const std::size_t wanted = first.size() + first.size() / 2 + 18;
        first.reserve(wanted);
        parts.reserve(wanted);
        trust.reserve(wanted);
    }

    // A node was made: every 64th begins a segment, with the trust of the one before. Of too many, the two neighbours
    // of closest trust become one; not the newest, and of equals the oldest pair. Memory must be reserved.
    void enter(std::int64_t node) noexcept {
        if (node % NODES == 0) append(node, 1, first.empty() ? 0.5 : trust.back());
    }

    // A segment begins with this node. Memory must be reserved.
    void append(std::int64_t node, std::int64_t made_of, double trusted) noexcept {
        first.push_back(node);
        parts.push_back(made_of);
        trust.push_back(trusted);
        if (n() <= most_) return;
        std::int64_t pair = 0;
        for (std::int64_t i = 1; i + 2 < n(); ++i) {
            if (apart(i) < apart(pair)) pair = i;
        }
        const auto size = static_cast<double>(parts.data()[pair]), other = static_cast<double>(parts.data()[pair + 1]);
        trust.data()[pair] = (size * trust.data()[pair] + other * trust.data()[pair + 1]) / (size + other);
        parts.data()[pair] += parts.data()[pair + 1];
        first.erase(first.begin() + pair + 1);
        parts.erase(parts.begin() + pair + 1);
        trust.erase(trust.begin() + pair + 1);
    }

    // The segment of a node.
    std::int64_t of(std::int64_t node) const noexcept { return std::upper_bound(first.begin(), first.end(), node) - first.begin() - 1; }

    // The trust that a segment needs.
    double least() const noexcept { return 0.7 * *std::max_element(trust.begin(), trust.end()); }

    // The nodes of a segment, out of that many that were made.
    Stretch nodes(std::int64_t segment, std::int64_t n_made) const noexcept {
        return {first.data()[segment], segment + 1 < n() ? first.data()[segment + 1] : n_made};
    }

    // f(stretch) for the stretches of consecutive nodes that are trusted, out of that many that were made.
    template <class F>
    void for_each_trusted(std::int64_t n_made, F f) const {
        if (first.empty()) return;
        const double needed = least();
        Stretch stretch{0, 0};
        for (std::int64_t i = 0; i < n(); ++i) {
            if (!(trust.data()[i] >= needed)) continue;
            const Stretch next = nodes(i, n_made);
            if (next.low != stretch.high || stretch.low == stretch.high) {
                if (stretch.low < stretch.high) f(stretch);
                stretch.low = next.low;
            }
            stretch.high = next.high;
        }
        if (stretch.low < stretch.high) f(stretch);
    }

    // How much the labels of a segment's nearest node were those of a row, 0 to 1.
    void learn(std::int64_t segment, double overlap) noexcept { trust.data()[segment] += speed_ * (overlap - trust.data()[segment]); }

    // Whether these could be the segments of that many nodes and rows: any that passes is safe to use.
    bool is_sound(std::int64_t n_nodes, std::int64_t n_rows) const noexcept {
        if (n() > most_ || parts.size() != first.size() || trust.size() != first.size()) return false;
        if (first.empty() != (n_nodes == 0) || (!first.empty() && first.front() != 0)) return false;
        std::int64_t left = n_rows;  // each part began with a node, and so with a row
        for (std::int64_t i = 0; i < n(); ++i) {
            if (parts.data()[i] < 1 || parts.data()[i] > left || first.data()[i] >= n_nodes || (i > 0 && first.data()[i] <= first.data()[i - 1]))
                return false;
            if (!(trust.data()[i] >= 0.0 && trust.data()[i] <= 1.0)) return false;
            left -= parts.data()[i];
        }
        return true;
    }

    Array<std::int64_t> first;  // the oldest node of each segment, ascending
    Array<std::int64_t> parts;  // how many segments have become one in it
    Array<double> trust;

private:
    double apart(std::int64_t i) const noexcept { return std::fabs(trust.data()[i] - trust.data()[i + 1]); }

    std::int64_t most_;
    double speed_;
};

// Counts of the last nodes that fade.
class Fading {
public:
    static constexpr std::int64_t LAST = 512;
    using Rows = Array<std::pair<std::int32_t, double>>;

    // The oldest of that many nodes whose counts are kept.
    static std::int64_t oldest(std::int64_t n_nodes) noexcept { return std::max<std::int64_t>(0, n_nodes - LAST); }

    // Reserve memory for a row of that many labels, whichever node it joins.
    void reserve(std::int64_t n_in_row) {
        if (rows.empty()) {
            counts.assign(LAST, 0.0);
            rows.resize(LAST);
        }
        for (Rows& of_node : rows) {
            const std::size_t needed = of_node.size() + static_cast<std::size_t>(n_in_row);
            if (of_node.capacity() < needed) of_node.reserve(needed + of_node.size());
        }
    }

    // A node was made; it takes the place of one that is too old.
    void enter(std::int64_t node) noexcept {
        counts.data()[node % LAST] = 0.0;
        rows.data()[node % LAST].clear();
    }

    // A row of these slots joins one of that many nodes; memory must be reserved.
    void learn(std::int64_t node, std::int64_t n_nodes, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        if (node < oldest(n_nodes)) return;
        counts.data()[node % LAST] = 0.8 * counts.data()[node % LAST] + 1.0;
        Rows& of_node = rows.data()[node % LAST];
        for (auto& [slot, faded] : of_node) faded = 0.8 * faded;
        for (std::int64_t i = 0; i < n_in_row; ++i) {
            const auto found = std::find_if(of_node.begin(), of_node.end(), [&](const auto& pair) { return pair.first == slots[i]; });
            if (found == of_node.end()) {
                of_node.push_back({slots[i], 1.0});
            } else {
                found->second += 1.0;
            }
        }
    }

    // Restore the counts of a node.
    void put(std::int64_t node, double count, const std::int32_t* slots, const double* faded, std::int64_t n) {
        counts.data()[node % LAST] = count;
        Rows& of_node = rows.data()[node % LAST];
        of_node.clear();
        for (std::int64_t i = 0; i < n; ++i) of_node.push_back({slots[i], faded[i]});
    }

    // Whether the counts of a node could be with that many slots: any that passes is safe to use.
    bool is_sound(std::int64_t node, std::int64_t n_slots) const noexcept {
        if (counts.size() != LAST || rows.size() != LAST) return false;
        const double all = count(node);
        if (!(all >= 1.0 && all <= 5.01)) return false;
        for (const auto& [slot, faded] : rows.data()[node % LAST]) {
            if (slot < 0 || slot >= n_slots || !(faded >= 0.0 && faded <= all)) return false;
        }
        return true;
    }

    double count(std::int64_t node) const noexcept { return counts.data()[node % LAST]; }
    template <class F>
    void for_each_label(std::int64_t node, F f) const {
        for (const auto& [slot, faded] : rows.data()[node % LAST]) f(slot, faded);
    }

    Array<double> counts;  // node k has place k mod 512
    Array<Rows> rows;
};

}  // namespace mlca::MLCA_LEVEL
