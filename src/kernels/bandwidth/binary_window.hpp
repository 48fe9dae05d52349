// Common bandwidth of a window of zeros and ones: ones are counted, and squares are summed only near the median.
//
// In a window of m rows, a feature with c ones has squared deviations that sum to c (m - c) / m, up to rounding: the
// number of ones determines the value, and their order affects only the last bits. So features fall into classes e =
// min(c, m - c). Counting the features per class finds the class that contains the median (or the two classes, if the
// number of features is even). Only the features in these classes are summed, in stream order and by the same
// operations as in other windows, and the median is selected among them. The result has the same bits as the general
// method.
//
// Proof that the classes are ordered correctly. With u = 2^-53: the sum of the ones is exact, the mean is c / m within
// a relative u, its square within 4 u, and (1 - mean)^2 within 2 m u + 4 u, as 1 - mean is at least 1 / m. Adding m
// such non-negative terms adds another relative error of m u. So the computed sum of squares is within a relative 4 (m
// + 2) u of c (m - c) / m in any order. From one class to the next, e (m - e) grows by m - 2 e - 1 >= 1, and it is at
// most m^2 / 4, so it grows by at least a relative 4 / m^2. For m up to LONGEST_COUNTED = 2^12 that is 2^-22, and twice
// the error is below 2^-37. Constant features, e = 0, have the smallest deviation, because any other deviation is at
// least about m^-1/2 >= 2^-6. The steps from a sum of squares to a bandwidth (a division, a root, two products) are
// monotonic including rounding, so the median can be selected among sums. A zero may be -0.0: adding it, or subtracting
// a mean and squaring, gives the same as 0.0.
//
// If a feature has a single one in the window, its sum depends only on the position of that one. The sum is cached for
// other features whose single one is at the same position.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bandwidth/silverman.hpp"

namespace mlca::MLCA_LEVEL {

// Longest window for which the order of classes is proven.
inline constexpr std::int64_t LONGEST_COUNTED = 4096;

// For each feature: the number of ones in the window, and the buffer position of the latest row in which it is 1.
struct Ones {
    Array<std::int32_t> counts;
    Array<std::int64_t> latest;
};

class BinaryMedian {
public:
    // The median bandwidth of d features over the m rows from `low` on. Features beyond those in `ones` are zero in all
    // m rows. add_up(members, n, squares) computes the sums of squares of features with several ones.
    template <class AddUp>
    double operator()(const Ones& ones, std::int64_t d, std::int64_t m, std::int64_t low, const Silverman& silverman, AddUp add_up) {
        if (static_cast<std::int64_t>(lone_.size()) != m) lone_.assign(m, UNKNOWN);
        const auto [first, last, n_before] = middle_classes(ones.counts, d, m);
        const std::int64_t upper = d / 2 - n_before;
        if (last == 0) return silverman.bandwidth(CONSTANT);
        list_members(ones.counts, d, m, first, last);
        sum_squares(ones, m, low, add_up);
        return middle_bandwidth(squares_.data(), static_cast<std::int64_t>(squares_.size()), upper, d % 2 == 1, silverman);
    }

private:
    static constexpr double UNKNOWN = -1.0;
    struct Middle {
        std::int64_t first, last, n_before;
    };

    static std::int64_t class_of(std::int64_t count, std::int64_t m) noexcept { return std::min(count, m - count); }

    // The classes of the one or two middle features, and the number of features in the classes before them.
    Middle middle_classes(const Array<std::int32_t>& counts, std::int64_t d, std::int64_t m) {
        sizes_.assign(m / 2 + 1, 0);
        for (const std::int64_t count : counts) ++sizes_[class_of(count, m)];
        sizes_[0] += d - static_cast<std::int64_t>(counts.size());
        const std::int64_t upper = d / 2, lower = upper - 1 + d % 2;
        std::size_t first = 0;
        std::int64_t n_before = 0;
        while (n_before + sizes_[first] <= lower) n_before += sizes_[first++];
        std::size_t last = first;
        std::int64_t n_up_to = n_before + sizes_[first];
        while (n_up_to <= upper) n_up_to += sizes_[++last];
        return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last), n_before};
    }

    void list_members(const Array<std::int32_t>& counts, std::int64_t d, std::int64_t m, std::int64_t first, std::int64_t last) {
        const std::int64_t known = counts.size();
        members_.resize(static_cast<std::size_t>(known) + 1);
        std::size_t n = 0;
        for (std::int64_t i = 0; i < known; ++i) {
            const std::int64_t e = class_of(counts[i], m);
            members_[n] = i;  // overwritten by the next feature if i is not a member: cheaper than a branch
            n += static_cast<std::size_t>((first <= e) & (e <= last));
        }
        members_.resize(n);
        squares_.clear();
        if (first == 0) squares_.assign(d - known, CONSTANT);
    }

    template <class AddUp>
    void sum_squares(const Ones& ones, std::int64_t m, std::int64_t low, AddUp add_up) {
        std::size_t several = 0;
        for (const std::int64_t i : members_) {
            const std::int64_t c = ones.counts[i];
            if (c == 0 || c == m) {
                squares_.push_back(CONSTANT);
            } else if (c == 1) {
                squares_.push_back(lone_squares(m, ones.latest[i] - low));
            } else {
                members_[several++] = i;
            }
        }
        const std::size_t known = squares_.size();
        squares_.resize(known + several);
        if (several > 0) add_up(members_.data(), static_cast<std::int64_t>(several), squares_.data() + known);
    }

    // The sum of squared deviations of a feature whose single one is at this position of the window.
    double lone_squares(std::int64_t m, std::int64_t place) {
        double& kept = lone_[place];
        if (kept != UNKNOWN) return kept;
        const double mean = 1.0 / static_cast<double>(m);
        double squares = 0.0;
        for (std::int64_t j = 0; j < m; ++j) {
            const double deviation = (j == place ? 1.0 : 0.0) - mean;
            squares += deviation * deviation;
        }
        return kept = squares;
    }

    Array<std::int64_t> sizes_, members_;
    Array<double> squares_, lone_;
};

}  // namespace mlca::MLCA_LEVEL
