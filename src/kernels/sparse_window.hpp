// The window of a sparse stream, at the cost of its non-zeros.
//
// An attribute that is zero in the whole window has the bandwidth of a constant; only the others are laid out
// side by side and estimated, by the operations of `bandwidth` on the same numbers in the same order: zeros add
// nothing to a sum but are part of each column. So the bits are those of the dense window.
//
// Where fewer than half of the attributes appear in the window, the common bandwidth, a median, is nearly always that of
// a constant. It is certain if each attribute that appears has a zero somewhere and only values of SURELY_VARIES or more:
// with a 0 and a v its squares add up to v^2 / 2 at least, a deviation of 1e-4 / sqrt(2 (m - 1)) > 1e-6 for
// m <= LONGEST_COUNTED. Then nothing is laid out at all: a slide of the window costs one row in and one row out. Otherwise
// rough sums of squares tell which attributes the median is among (see sparse_median.hpp), and only these are laid out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bandwidth.hpp"
#include "binary_window.hpp"
#include "settings.hpp"
#include "sparse_median.hpp"
#include "window.hpp"

namespace mlca::MLCA_LEVEL {

// The non-zeros of a row: attributes in ascending order, and their values.
struct SparseRow {
    const std::int32_t* keys;
    const double* values;
    std::int64_t n;
};

// Rows in CSR form, ascending and without explicit zeros.
struct SparseRows {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const double* data;

    SparseRow operator[](std::int64_t j) const noexcept { return {indices + indptr[j], data + indptr[j], indptr[j + 1] - indptr[j]}; }
};

class SparseWindow {
public:
    using Row = SparseRow;
    using Source = SparseRows;

    explicit SparseWindow(const Settings& told) : SparseWindow(told.window, told.n_features) {}
    SparseWindow(std::int64_t window, std::int64_t d) : size(window), d_(d), starts_(1, 0) {}

    std::int64_t size, filled = 0, learned = 0;

    Row row(std::int64_t position) const noexcept {
        const auto start = starts_[static_cast<std::size_t>(position)];
        return {keys_.data() + start, values_.data() + start, starts_[static_cast<std::size_t>(position + 1)] - start};
    }

    std::int64_t portion() const noexcept { return filled < size ? size - filled : PORTION; }

    // Take in rows behind the others; return by how much those have moved towards the beginning of the buffer.
    std::int64_t take(const Source& source, std::int64_t first, std::int64_t n) {
        const std::int64_t moved = filled + n > 2 * size + PORTION ? slide() : 0;
        const std::int64_t entries = source.indptr[first + n] - source.indptr[first];
        const std::int64_t used = starts_.back();
        starts_.reserve(starts_.size() + static_cast<std::size_t>(n));
        grow_to(keys_, used + entries);
        grow_to(values_, used + entries);
        std::copy_n(source[first].keys, entries, keys_.data() + used);
        std::copy_n(source[first].values, entries, values_.data() + used);
        for (std::int64_t j = first; j < first + n; ++j) starts_.push_back(used + source.indptr[j + 1] - source.indptr[first]);
        filled += n;
        return moved;
    }

    void drop_after(std::int64_t position) noexcept {
        filled = position;
        starts_.resize(static_cast<std::size_t>(position + 1));
    }

    Stretch latest() const noexcept { return {std::max<std::int64_t>(0, learned - size), filled}; }

    class Walker {
    public:
        double common_bandwidth(const SparseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const Silverman& silverman = count(window, low, high);
            const std::int64_t m = high - low, absent = window.d_ - present_;
            if (always_ == 0 && small_ == 0 && m <= LONGEST_COUNTED && window.d_ / 2 < absent) return silverman.bandwidth(CONSTANT);
            if (other_ == 0 && m <= LONGEST_COUNTED) {
                return binary_(ones_, window.d_, m, low, silverman, [&](const std::int64_t* members, std::int64_t n, double* squares) {
                    columns_.assign(members, members + n);
                    lay_out(window, low, high, false);
                    means_.resize(columns_.size());
                    squared_deviations({laid_out_.data(), m, n}, squares, means_.data());
                });
            }
            if (m <= LONGEST_COUNTED) {
                if (!median_.runs()) start_median(window, low, high);
                const SparseMedian::Middle middle = median_.narrow(window.d_, columns_);
                if (middle.n > 0) {
                    add_up(window, low, high);
                    return of_middle(middle, window.d_, silverman);
                }
            }
            estimate(window, low, high, silverman);
            return median_with_constants(squares_, absent, silverman.bandwidth(CONSTANT));
        }

        void bandwidths(const SparseWindow& window, std::int64_t position, double* out) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const Silverman& silverman = count(window, low, high);
            estimate(window, low, high, silverman);
            std::fill_n(out, window.d_, silverman.bandwidth(CONSTANT));
            for (std::size_t k = 0; k < columns_.size(); ++k) out[columns_[k]] = squares_[k];
        }

        const Array<double>& means(const SparseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            means_.assign(static_cast<std::size_t>(window.d_), 0.0);
            for (std::int64_t j = low; j < high; ++j) {
                const Row row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) means_[static_cast<std::size_t>(row.keys[p])] += row.values[p];
            }
            for (auto& mean : means_) mean /= static_cast<double>(high - low);
            return means_;
        }

        void shift(std::int64_t by) {
            for (auto& row : ones_.latest) row -= by;
            if (counted_.low >= by) {
                counted_ = {counted_.low - by, counted_.high - by};
            } else {
                forget();
            }
        }

    private:
        static constexpr double SURELY_VARIES = 1e-4;
        static constexpr std::int64_t FEW = 8;

        // Move the counts on to a window; return Silverman's rule for its length.
        const Silverman& count(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            if (silverman_.m != high - low) {
                silverman_ = Silverman(high - low, window.d_);
                forget();
            }
            if (other_ == 0) median_.stop();
            for (std::int64_t j = counted_.low; j < std::min(low, counted_.high); ++j) remove(window.row(j));
            counted_ = {std::max(counted_.low, low), std::max(counted_.high, low)};
            if (counted_.low > low) {  // asked about an earlier window: begin anew
                forget();
                counted_ = {low, low};
            }
            for (std::int64_t j = counted_.high; j < high; ++j) add(window.row(j), j);
            counted_.high = high;
            return silverman_;
        }

        void add(const Row& row, std::int64_t position) {
            if (row.n == 0) return;
            grow_to(ones_.counts, row.keys[row.n - 1] + std::int64_t{1});
            grow_to(ones_.latest, row.keys[row.n - 1] + std::int64_t{1});
            if (median_.runs()) median_.make_room(row.keys[row.n - 1] + std::int64_t{1});
            for (std::int64_t p = 0; p < row.n; ++p) {
                const auto i = static_cast<std::size_t>(row.keys[p]);
                present_ += ones_.counts[i] == 0;
                ++ones_.counts[i];
                always_ += ones_.counts[i] == silverman_.m;
                ones_.latest[i] = position;
                other_ += row.values[p] != 1.0;
                small_ += std::abs(row.values[p]) < SURELY_VARIES;
            }
            if (median_.runs()) median_.add(row);
        }

        void remove(const Row& row) noexcept {
            for (std::int64_t p = 0; p < row.n; ++p) {
                const auto i = static_cast<std::size_t>(row.keys[p]);
                always_ -= ones_.counts[i] == silverman_.m;
                --ones_.counts[i];
                present_ -= ones_.counts[i] == 0;
                other_ -= row.values[p] != 1.0;
                small_ -= std::abs(row.values[p]) < SURELY_VARIES;
            }
            if (median_.runs()) median_.remove(row, [this](std::int32_t i) { return ones_.counts[static_cast<std::size_t>(i)] > 0; });
        }

        void forget() noexcept {
            std::fill(ones_.counts.begin(), ones_.counts.end(), 0);
            counted_ = {0, 0};
            present_ = always_ = other_ = small_ = 0;
            median_.stop();
        }

        void start_median(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            median_.start(window.d_, high - low, static_cast<std::int64_t>(ones_.counts.size()));
            for (std::int64_t j = low; j < high; ++j) median_.add(window.row(j));
        }

        // The median bandwidth from the exact sums of squares of the attributes that the middle ones are among.
        double of_middle(const SparseMedian::Middle& middle, std::int64_t d, const Silverman& silverman) {
            partition(squares_.data(), middle.n, middle.upper);
            const double above = silverman.bandwidth(squares_[static_cast<std::size_t>(middle.upper)]);
            if (d % 2 == 1) return above;
            return (silverman.bandwidth(*std::max_element(squares_.begin(), squares_.begin() + middle.upper)) + above) / 2.0;
        }

        // Exact sums of squares of the attributes in `columns_`.
        void add_up(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            const auto n = static_cast<std::int64_t>(columns_.size());
            if (n <= FEW) {
                look_up(window, low, high);
            } else {
                lay_out(window, low, high, false);
            }
            squares_.resize(columns_.size());
            means_.resize(columns_.size());
            squared_deviations({laid_out_.data(), high - low, n}, squares_.data(), means_.data());
        }

        // Lay the values of a few attributes side by side, by looking for them in each row.
        void look_up(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            laid_out_.clear();
            for (std::int64_t j = low; j < high; ++j) {
                const Row row = window.row(j);
                for (const std::int64_t i : columns_) {
                    const std::int32_t* place = std::lower_bound(row.keys, row.keys + row.n, i);
                    laid_out_.push_back(place < row.keys + row.n && *place == i ? row.values[place - row.keys] : 0.0);
                }
            }
        }

        // Estimate the bandwidths of all attributes that appear in the window; `columns_` says which they are.
        void estimate(const SparseWindow& window, std::int64_t low, std::int64_t high, const Silverman& silverman) {
            columns_.clear();
            lay_out(window, low, high, true);
            const auto n = static_cast<std::int64_t>(columns_.size());
            squares_.resize(columns_.size());
            means_.resize(columns_.size());
            squared_deviations({laid_out_.data(), high - low, n}, squares_.data(), means_.data());
            turn_into_bandwidths(squares_.data(), n, silverman);
        }

        // Lay the window's values of some attributes, or of all that appear, side by side.
        void lay_out(const SparseWindow& window, std::int64_t low, std::int64_t high, bool all) {
            grow_to(column_of_, static_cast<std::int64_t>(ones_.counts.size()), std::int32_t{-1});
            for (std::size_t k = 0; k < columns_.size(); ++k) column_of_[static_cast<std::size_t>(columns_[k])] = static_cast<std::int32_t>(k);
            if (all) {
                for (std::int64_t j = low; j < high; ++j) {
                    const Row row = window.row(j);
                    for (std::int64_t p = 0; p < row.n; ++p) {
                        auto& column = column_of_[static_cast<std::size_t>(row.keys[p])];
                        if (column >= 0) continue;
                        column = static_cast<std::int32_t>(columns_.size());
                        columns_.push_back(row.keys[p]);
                    }
                }
            }
            const auto width = static_cast<std::int64_t>(columns_.size());
            laid_out_.assign(static_cast<std::size_t>((high - low) * width), 0.0);
            for (std::int64_t j = low; j < high; ++j) {
                const Row row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) {
                    const auto column = column_of_[static_cast<std::size_t>(row.keys[p])];
                    if (column >= 0) laid_out_[static_cast<std::size_t>((j - low) * width + column)] = row.values[p];
                }
            }
            for (const auto i : columns_) column_of_[static_cast<std::size_t>(i)] = -1;
        }

        Silverman silverman_;
        Stretch counted_{0, 0};
        Ones ones_;
        // Attributes that appear in the window, and in each of its rows; entries that are not 1, and that are small.
        std::int64_t present_ = 0, always_ = 0, other_ = 0, small_ = 0;
        BinaryMedian binary_;
        SparseMedian median_;
        Array<std::int64_t> columns_;
        Array<std::int32_t> column_of_;
        Array<double> laid_out_, squares_, means_;
    };

private:
    static constexpr std::int64_t PORTION = 256;

    std::int64_t slide() noexcept {
        const auto [low, high] = latest();
        const std::int64_t begin = starts_[static_cast<std::size_t>(low)], end = starts_[static_cast<std::size_t>(high)];
        std::copy(keys_.begin() + begin, keys_.begin() + end, keys_.begin());
        std::copy(values_.begin() + begin, values_.begin() + end, values_.begin());
        for (std::int64_t j = low; j <= high; ++j) starts_[static_cast<std::size_t>(j - low)] = starts_[static_cast<std::size_t>(j)] - begin;
        starts_.resize(static_cast<std::size_t>(high - low + 1));
        filled -= low;
        learned -= low;
        return low;
    }

    std::int64_t d_;
    Array<std::int64_t> starts_;
    Array<std::int32_t> keys_;
    Array<double> values_;
};

}  // namespace mlca::MLCA_LEVEL
