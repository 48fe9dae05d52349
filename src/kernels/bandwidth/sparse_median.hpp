// Locate the median of a sparse window's bandwidths by approximate sums of squares, so that few exact sums are needed.
//
// A feature's squared deviations sum to A = Q - M^2 / m, where M is the sum of its values and Q the sum of their
// squares. Both are updated as rows enter and leave, so sliding the window processes only two rows. Exact sums, in
// stream order for bit-identical results, are computed only for the features near the median.
//
// Proof that features are ordered correctly. With u = 2^-53 and `top` the largest Q since the feature was last zero in
// the whole window: rounding in t steps changes Q by at most t u top and M by at most t u sqrt(m top), so M^2 / m by at
// most 2 t u top. The exact method has an error of at most (m + 5) u top. Sums are rebuilt after MOST_STEPS rows, so
// for windows up to LONGEST_COUNTED rows t is at most 2^13, and A is within 2^-37 top of the exact method's result. If
// `top` is at most 2^16 A, that is a relative 2^-21, so two features whose A differ by a relative 2^-18 are in the
// correct order. Other features are called vague: either they are certainly far from the median, or the approximate
// sums are not used. Features with A of TINY or less may count as constant, so the median is not searched among them.
//
// Features are counted in classes by the leading bits of A (exponent and five more), and the number of features below the
// median's class is updated together with these counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/level.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

class SparseMedian {
public:
    // `n`: number of listed features, which include the middle ones. `upper`: position of the upper middle feature
    // after the listed features are sorted by their exact sums of squares.
    struct Middle {
        std::int64_t n = 0, upper = 0;
    };

    bool runs() const noexcept { return n_steps_ > 0; }
    void stop() noexcept { n_steps_ = 0; }

    // Start with an empty window of m rows of d features, where only features with indices below n can be non-zero.
    void start(std::int64_t d, std::int64_t m, std::int64_t n) {
        share_ = 1.0 / static_cast<double>(m);
        tiny_ = TINY * static_cast<double>(m);
        moments_.clear();
        classes_.clear();
        vague_.clear();
        sizes_.assign(N_CLASSES, 0);
        sizes_[0] = d;
        middle_ = below_ = n_extreme_ = 0;
        make_room(n);
        n_steps_ = 1;
    }

    // Reserve memory for rows whose features have indices below n.
    void make_room(std::int64_t n) {
        vague_.reserve(n);
        grow_to(moments_, n, Moments{});
        grow_to(classes_, n, std::uint16_t{0});
    }

    // Add a row. `make_room` must have reserved memory for its features.
    template <class Row>
    void add(const Row& row) noexcept {
        for (std::int64_t p = 0; p < row.n; ++p) {
            const double value = counted(row.values[p], 1);
            Moments& moments = moments_[row.keys[p]];
            moments.sum += value;
            moments.squares += value * value;
            moments.top = moments.squares > moments.top ? moments.squares : moments.top;
            classify(row.keys[p], moments);
        }
        if (++n_steps_ > MOST_STEPS) stop();
    }

    // Remove a row; is_left(feature) returns whether a remaining row has the feature.
    template <class Row, class IsLeft>
    void remove(const Row& row, const IsLeft& is_left) noexcept {
        for (std::int64_t p = 0; p < row.n; ++p) {
            const double value = counted(row.values[p], -1);
            Moments& moments = moments_[row.keys[p]];
            if (is_left(row.keys[p])) {
                moments.sum -= value;
                moments.squares -= value * value;
            } else {
                moments = {};
            }
            classify(row.keys[p], moments);
        }
        if (++n_steps_ > MOST_STEPS) stop();
    }

    // List a few features that include the middle one of all d features, or the two middle ones. The list is empty if
    // approximate sums cannot decide.
    Middle narrow(std::int64_t d, Array<std::int64_t>& features) {
        const std::int64_t upper = d / 2, lower = (d - 1) / 2;
        features.clear();
        // Vague features are counted below the median, because nearly all of them are almost constant.
        const std::int64_t counted_lower = lower - static_cast<std::int64_t>(vague_.size());
        if (n_extreme_ > 0 || counted_lower < 0) return {};
        while (below_ > counted_lower) below_ -= sizes_[--middle_];
        while (below_ + sizes_[middle_] <= counted_lower) below_ += sizes_[middle_++];
        if (middle_ < 2) return {};
        const std::int64_t n_before = gather();
        const std::int64_t n = static_cast<std::int64_t>(near_.size()), first = lower - n_before, last = upper - n_before;
        if (first < 0 || last >= n) return {};
        std::sort(near_.begin(), near_.end(), [](const Near& a, const Near& b) { return a.squares < b.squares; });
        const auto squares = [this](std::int64_t k) { return near_[k].squares; };
        std::int64_t low = first, high = last;
        while (low > 0 && squares(low) <= squares(low - 1) * APART) --low;
        while (high + 1 < n && squares(high + 1) <= squares(high) * APART) ++high;
        if (low == 0 || high + 1 == n) return {};
        for (std::int64_t k = low; k <= high; ++k) features.push_back(near_[k].feature);
        return {high - low + 1, last - low};
    }

private:
    struct Moments {
        double sum = 0.0, squares = 0.0, top = 0.0;
    };
    struct Near {
        double squares;
        std::int64_t feature;
    };
    // Classes of A by the leading bits of a float; class 0 is for features that may count as constant.
    static constexpr int DROPPED_BITS = 18;
    static constexpr std::int64_t N_CLASSES = std::int64_t{1} << (31 - DROPPED_BITS);
    static constexpr std::int64_t MOST_STEPS = 4096, STRETCH = 64;
    static constexpr double TINY = 1e-11, APART = 1.0 + 0x1p-18, MOST_TOP = 0x1p16, ERROR = 0x1p-36;

    // The value to sum: 0 for a value whose square might overflow or underflow. Such values are counted, and
    // approximate sums are not used while the window contains any.
    double counted(double value, std::int64_t change) noexcept {
        const bool extreme = std::abs(value) > 1e15 || std::abs(value) < 1e-15;
        n_extreme_ += extreme ? change : 0;
        return extreme ? 0.0 : value;
    }

    double rough(const Moments& moments) const noexcept { return moments.squares - moments.sum * moments.sum * share_; }

    // Count a feature in the class of its sum A, or list it as vague.
    void classify(std::int32_t feature, const Moments& moments) noexcept {
        std::uint16_t& kept = classes_[feature];
        const double squares = rough(moments);
        std::uint16_t now = 0;
        if (moments.top > MOST_TOP * squares) {
            now = moments.top == 0.0 ? 0 : VAGUE;
        } else if (squares > tiny_) {
            now = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(squares)) >> DROPPED_BITS);
        }
        if (now == kept) return;
        if (kept == VAGUE) {
            vague_.erase(std::find(vague_.begin(), vague_.end(), feature));
        } else {
            --sizes_[kept];
            below_ -= kept < middle_;
        }
        if (now == VAGUE) {
            vague_.push_back(feature);
        } else {
            ++sizes_[now];
            below_ += now < middle_;
        }
        kept = now;
    }

    // List the features in the median's class and in the two adjacent classes. Return the number of features certainly
    // below them, or NOWHERE if a vague feature may be among them.
    std::int64_t gather() {
        const auto first = static_cast<std::uint16_t>(middle_ - 1), last = static_cast<std::uint16_t>(middle_ + 1);
        near_.clear();
        const std::uint16_t* classes = classes_.data();
        const auto is_near = [first](std::uint16_t here) { return static_cast<std::uint16_t>(here - first) <= 2; };
        const std::int64_t n = classes_.size();
        // Most stretches contain no such feature; a vectorised check skips them.
        for (std::int64_t start = 0; start < n; start += STRETCH) {
            const std::int64_t end = std::min(start + STRETCH, n);
            std::uint16_t any = 0;
            for (std::int64_t i = start; i < end; ++i) any = static_cast<std::uint16_t>(any | is_near(classes[i]));
            for (std::int64_t i = start; any != 0 && i < end; ++i) {
                if (is_near(classes[i])) near_.push_back({rough(moments_[i]), i});
            }
        }
        // Bounds on A in the three classes, with a margin.
        const double lowest = 0.99 * static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(first) << DROPPED_BITS));
        const double highest = 1.01 * static_cast<double>(std::bit_cast<float>((static_cast<std::uint32_t>(last) + 1) << DROPPED_BITS));
        std::int64_t n_before = below_ - sizes_[first];
        for (const std::int32_t i : vague_) {
            const Moments& moments = moments_[i];
            const double squares = rough(moments), error = ERROR * moments.top;
            if (squares + error < lowest) {
                ++n_before;
            } else if (squares - error < highest) {
                return NOWHERE;
            }
        }
        return n_before;
    }

    static constexpr std::uint16_t VAGUE = UINT16_MAX;
    static constexpr std::int64_t NOWHERE = std::int64_t{1} << 62;

    std::int64_t n_steps_ = 0;  // rows added or removed since the start
    double share_ = 0.0, tiny_ = 0.0;
    Array<Moments> moments_;        // per feature
    Array<std::uint16_t> classes_;
    Array<std::int32_t> vague_;
    Array<std::int64_t> sizes_;     // per class
    Array<Near> near_;
    std::int64_t middle_ = 0, below_ = 0, n_extreme_ = 0;  // median's class, features in lower classes, extreme values
};

}  // namespace mlca::MLCA_LEVEL
