// Concept drift: trust in segments of nodes, and label counts that fade.
//
// Here a node is identified by its id in order of creation, which does not change when other nodes are replaced. A
// segment is a run of consecutive nodes. Its trust measures how well the labels of its nearest node match those of
// recent rows. If votes are mixed with linear models, only nodes of trusted segments vote. Otherwise a second expert
// uses the votes of these nodes, and a third expert uses the votes of the last 512 nodes, with label counts that fade
// each time a row joins the node.
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
    // Maximum number of segments, and step size by which trust moves towards its new value, for decisions with experts
    // and without them.
    static constexpr std::int64_t MOST_OF_EXPERTS = 16, UNBOUNDED = INT64_MAX;
    static constexpr double SPEED_OF_EXPERTS = 0.1, SPEED = 0.03;

    Segments(std::int64_t most, double speed) : most_(most), speed_(speed) {}

    std::int64_t n() const noexcept { return first.size(); }

    // Reserve memory for one more segment.
    void reserve() {
        if (first.size() + 1 < trust.capacity()) return;
        const std::size_t wanted = first.size() + first.size() / 2 + 18;
        first.reserve(wanted);
        parts.reserve(wanted);
        trust.reserve(wanted);
    }

    // Enter a new node: every 64th starts a segment, with the trust of the previous one. If there are too many
    // segments, the two adjacent ones with the most similar trust are merged, but never the newest; ties go to the
    // oldest pair. All memory must have been reserved beforehand.
    void enter(std::int64_t node) noexcept {
        if (node % NODES == 0) append(node, 1, first.empty() ? 0.5 : trust.back());
    }

    // Start a segment at this node. All memory must have been reserved beforehand.
    void append(std::int64_t node, std::int64_t made_of, double trusted) noexcept {
        first.push_back(node);
        parts.push_back(made_of);
        trust.push_back(trusted);
        if (n() <= most_) return;
        std::int64_t pair = 0;
        for (std::int64_t i = 1; i + 2 < n(); ++i) {
            if (apart(i) < apart(pair)) pair = i;
        }
        const auto size = static_cast<double>(parts[pair]), other = static_cast<double>(parts[pair + 1]);
        trust[pair] = (size * trust[pair] + other * trust[pair + 1]) / (size + other);
        parts[pair] += parts[pair + 1];
        first.erase(first.begin() + pair + 1);
        parts.erase(parts.begin() + pair + 1);
        trust.erase(trust.begin() + pair + 1);
    }

    // The segment of a node.
    std::int64_t of(std::int64_t node) const noexcept { return std::upper_bound(first.begin(), first.end(), node) - first.begin() - 1; }

    // The least trust for which a segment counts as trusted.
    double least() const noexcept { return 0.7 * *std::max_element(trust.begin(), trust.end()); }

    // The nodes of a segment; `n_made` is the number of nodes ever created.
    Stretch nodes(std::int64_t segment, std::int64_t n_made) const noexcept {
        return {first[segment], segment + 1 < n() ? first[segment + 1] : n_made};
    }

    // Call f(stretch) for each stretch of consecutive nodes of trusted segments; `n_made` is the number of nodes ever
    // created.
    template <class F>
    void for_each_trusted(std::int64_t n_made, F f) const {
        if (first.empty()) return;
        const double needed = least();
        Stretch stretch{0, 0};
        for (std::int64_t i = 0; i < n(); ++i) {
            if (!(trust[i] >= needed)) continue;
            const Stretch next = nodes(i, n_made);
            if (next.low != stretch.high || stretch.low == stretch.high) {
                if (stretch.low < stretch.high) f(stretch);
                stretch.low = next.low;
            }
            stretch.high = next.high;
        }
        if (stretch.low < stretch.high) f(stretch);
    }

    // Update trust by the overlap (0 to 1) of a row's labels with those of the segment's nearest node.
    void learn(std::int64_t segment, double overlap) noexcept { trust[segment] += speed_ * (overlap - trust[segment]); }

    // Whether the segments are valid for these numbers of nodes and rows, so that using them is memory-safe.
    bool is_sound(std::int64_t n_nodes, std::int64_t n_rows) const noexcept {
        if (n() > most_ || parts.size() != first.size() || trust.size() != first.size()) return false;
        if (first.empty() != (n_nodes == 0) || (!first.empty() && first.front() != 0)) return false;
        std::int64_t left = n_rows;  // there are at most as many parts as rows, because each part began with a new node
        for (std::int64_t i = 0; i < n(); ++i) {
            if (parts[i] < 1 || parts[i] > left || first[i] >= n_nodes || (i > 0 && first[i] <= first[i - 1]))
                return false;
            if (!(trust[i] >= 0.0 && trust[i] <= 1.0)) return false;
            left -= parts[i];
        }
        return true;
    }

    Array<std::int64_t> first;  // id of the oldest node of each segment, ascending
    Array<std::int64_t> parts;  // how many original segments each one consists of
    Array<double> trust;

private:
    double apart(std::int64_t i) const noexcept { return std::fabs(trust[i] - trust[i + 1]); }

    std::int64_t most_;
    double speed_;
};

// Fading label counts of the latest nodes.
class Fading {
public:
    static constexpr std::int64_t LAST = 512;
    using Rows = Array<std::pair<std::int32_t, double>>;

    // The id of the oldest node whose fading counts are kept, if n_nodes nodes were created.
    static std::int64_t oldest(std::int64_t n_nodes) noexcept { return std::max<std::int64_t>(0, n_nodes - LAST); }

    // Reserve memory for a row with `n_in_row` labels, whichever node it joins.
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

    // Enter a new node in place of the node that has become too old.
    void enter(std::int64_t node) noexcept {
        counts[node % LAST] = 0.0;
        rows[node % LAST].clear();
    }

    // Count a row that joins one of n_nodes nodes, given the slots of its labels. All memory must have been reserved
    // beforehand.
    void learn(std::int64_t node, std::int64_t n_nodes, const std::int32_t* slots, std::int64_t n_in_row) noexcept {
        if (node < oldest(n_nodes)) return;
        counts[node % LAST] = 0.8 * counts[node % LAST] + 1.0;
        Rows& of_node = rows[node % LAST];
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
        counts[node % LAST] = count;
        Rows& of_node = rows[node % LAST];
        of_node.clear();
        for (std::int64_t i = 0; i < n; ++i) of_node.push_back({slots[i], faded[i]});
    }

    // Whether the counts of a node are valid for this number of slots, so that using them is memory-safe.
    bool is_sound(std::int64_t node, std::int64_t n_slots) const noexcept {
        if (counts.size() != LAST || rows.size() != LAST) return false;
        const double all = count(node);
        if (!(all >= 1.0 && all <= 5.01)) return false;
        for (const auto& [slot, faded] : rows[node % LAST]) {
            if (slot < 0 || slot >= n_slots || !(faded >= 0.0 && faded <= all)) return false;
        }
        return true;
    }

    double count(std::int64_t node) const noexcept { return counts[node % LAST]; }
    template <class F>
    void for_each_label(std::int64_t node, F f) const {
        for (const auto& [slot, faded] : rows[node % LAST]) f(slot, faded);
    }

    Array<double> counts;  // node k is at index k mod 512
    Array<Rows> rows;
};

}  // namespace mlca::MLCA_LEVEL
