// Sliding window over a stream of dense rows, and bandwidths estimated from it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bandwidth/silverman.hpp"
#include "bandwidth/binary_window.hpp"
#include "learner/settings.hpp"

namespace mlca::MLCA_LEVEL {

class DenseWindow {
public:
    using Row = const double*;
    using Source = DenseRows;

    explicit DenseWindow(const Settings& settings) : DenseWindow(settings.window, settings.n_features) {}
    DenseWindow(std::int64_t window, std::int64_t d) : size(window), d_(d) {
        // Rows are appended in portions that fit in the cache.
        constexpr std::int64_t PORTION_BYTES = 1 << 20;
        portion_ = std::clamp<std::int64_t>(PORTION_BYTES / (8 * d), 16, 1024);
    }

    std::int64_t size, filled = 0, learned = 0;

    Row row(std::int64_t position) const noexcept { return rows_.data() + position * d_; }

    // Largest number of rows to pass to `take` now.
    std::int64_t portion() const noexcept { return filled < size ? size - filled : portion_; }

    // Append rows; return the number of positions by which the older rows have moved towards the start of the buffer.
    std::int64_t take(const Source& source, std::int64_t first, std::int64_t n) {
        const std::int64_t moved = filled + n > 2 * size + portion_ ? slide() : 0;
        grow_to(rows_, (filled + n) * d_);
        std::copy_n(source[first], n * d_, rows_.data() + filled * d_);
        filled += n;
        return moved;
    }

    // Drop the rows from this position on, which were appended but not learned.
    void drop_after(std::int64_t position) noexcept { filled = position; }

    // The rows still needed: the last `size` learned rows, and all rows not yet learned.
    Stretch latest() const noexcept { return {std::max<std::int64_t>(0, learned - size), filled}; }

    class Walker {
    public:
        // The median bandwidth of all features in the window of a position. Positions must not decrease between calls.
        double common_bandwidth(const DenseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const Silverman& silverman = rule(high - low, window.d_);
            if (count(window, low, high)) {
                return binary_(ones_, window.d_, high - low, low, silverman, [&](const std::int64_t* members, std::int64_t n, double* squares) {
                    add_up_members(window, low, high, members, n, squares);
                });
            }
            fill_in(window, low, high);
            return median_bandwidth(squares_.data(), window.d_, silverman);
        }

        // The bandwidth of each feature.
        void bandwidths(const DenseWindow& window, std::int64_t position, double* out) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            fill_in(window, low, high);
            turn_into_bandwidths(squares_.data(), window.d_, rule(high - low, window.d_));
            std::copy_n(squares_.data(), window.d_, out);
        }

        // The mean of each feature.
        const Array<double>& means(const DenseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            means_.resize(window.d_);
            add_up({window.row(low), high - low, window.d_}, 0, window.d_, means_.data());
            return means_;
        }

        // Adjust positions after the rows of the buffer have moved `by` positions towards its start.
        void shift(std::int64_t by) {
            for (auto& row : ones_.latest) row -= by;
            if (counted_.low >= by) {
                counted_ = {counted_.low - by, counted_.high - by};
            } else {  // some counted rows have left the buffer
                std::fill(ones_.counts.begin(), ones_.counts.end(), 0);
                counted_ = {0, 0};
            }
        }

    private:
        const Silverman& rule(std::int64_t m, std::int64_t d) {
            if (silverman_.m != m) silverman_ = Silverman(m, d);
            return silverman_;
        }

        void fill_in(const DenseWindow& window, std::int64_t low, std::int64_t high) {
            squares_.resize(window.d_);
            means_.resize(window.d_);
            squared_deviations({window.row(low), high - low, window.d_}, squares_.data(), means_.data());
        }

        // Move the counts forward to a window; return whether it contains only zeros and ones. If not, counting restarts after
        // the last row that contains other values.
        bool count(const DenseWindow& window, std::int64_t low, std::int64_t high) {
            if (high - low > LONGEST_COUNTED) return false;
            ones_.counts.resize(window.d_, 0);
            ones_.latest.resize(window.d_, 0);
            for (std::int64_t j = counted_.low; j < std::min(low, counted_.high); ++j) {
                const double* row = window.row(j);
                for (std::int64_t i = 0; i < window.d_; ++i) ones_.counts[i] -= row[i] == 1.0;
            }
            counted_ = {std::max(counted_.low, low), std::max(counted_.high, low)};
            for (std::int64_t j = counted_.high; j < high; ++j) {
                const double* row = window.row(j);
                if (is_binary(row, window.d_)) {
                    add_row(row, j, window.d_);
                } else {
                    std::fill(ones_.counts.begin(), ones_.counts.end(), 0);
                    counted_.low = j + 1;
                }
            }
            counted_.high = high;
            return counted_.low == low;
        }

        static bool is_binary(const double* row, std::int64_t d) {
            constexpr std::int64_t GLANCE = 64;  // number of features checked between branches
            for (std::int64_t low = 0; low < d; low += GLANCE) {
                std::int64_t others = 0;
                for (std::int64_t i = low; i < std::min(low + GLANCE, d); ++i) others += (row[i] != 0.0) & (row[i] != 1.0);
                if (others > 0) return false;
            }
            return true;
        }

        void add_row(const double* __restrict row, std::int64_t position, std::int64_t d) {
            std::int32_t* __restrict counts = ones_.counts.data();
            std::int64_t* __restrict latest = ones_.latest.data();
            for (std::int64_t i = 0; i < d; ++i) {
                counts[i] += row[i] == 1.0;
                latest[i] = row[i] == 1.0 ? position : latest[i];
            }
        }

        void add_up_members(const DenseWindow& window, std::int64_t low, std::int64_t high, const std::int64_t* members, std::int64_t n,
                            double* squares) {
            const auto m = static_cast<double>(high - low);
            means_.resize(n);
            for (std::int64_t k = 0; k < n; ++k) {
                means_[k] = static_cast<double>(ones_.counts[members[k]]) / m;
            }
            std::fill_n(squares, n, 0.0);
            for (std::int64_t j = low; j < high; ++j) {
                const double* row = window.row(j);
                for (std::int64_t k = 0; k < n; ++k) {
                    const double deviation = row[members[k]] - means_[k];
                    squares[k] += deviation * deviation;
                }
            }
        }

        Silverman silverman_;
        Stretch counted_{0, 0};
        Ones ones_;
        BinaryMedian binary_;
        Array<double> squares_, means_;
    };

private:
    // Discard rows that no window needs any more; return the number of positions by which the remaining rows have moved.
    std::int64_t slide() noexcept {
        const auto [low, high] = latest();
        std::copy(rows_.begin() + low * d_, rows_.begin() + high * d_, rows_.begin());
        filled -= low;
        learned -= low;
        return low;
    }

    std::int64_t d_, portion_;
    Array<double> rows_;
};

}  // namespace mlca::MLCA_LEVEL
