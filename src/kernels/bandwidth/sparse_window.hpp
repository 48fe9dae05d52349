// Sliding window over a sparse stream, at a cost proportional to its non-zeros.
//
// A feature that is zero in the whole window has the bandwidth of a constant feature. All other features are copied
// into dense columns that include their zeros. Their bandwidths are estimated by the same operations as in the dense
// window, on the same values in the same order, so the results have the same bits.
//
// If fewer than half of the features occur in the window, the common bandwidth, a median, is nearly always that of a
// constant feature. This is certain if each feature that occurs has a zero somewhere and only values of at least
// SURELY_VARIES: with a zero and a value v, its squared deviations sum to at least v^2 / 2, so its standard deviation
// is at least 1e-4 / sqrt(2 (m - 1)) > 1e-6 for m <= LONGEST_COUNTED. Then no columns are built, and sliding the window
// only adds one row and removes one. Otherwise approximate sums of squares determine a few features that include the
// median (bandwidth/sparse_median.hpp), and only their columns are built.
//
// While values are missing in the window, or if features are nominal, bandwidths are estimated from the present values
// (docs/mixed.md): the same two passes in stream order over all features that occur, where a missing value adds 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bandwidth/silverman.hpp"
#include "bandwidth/binary_window.hpp"
#include "nodes/missing_and_nominal.hpp"
#include "learner/settings.hpp"
#include "bandwidth/sparse_median.hpp"
#include "base/pair_rows.hpp"

namespace mlca::MLCA_LEVEL {

class SparseWindow {
public:
    using Row = SparseRow;
    using Source = SparseRows;

    explicit SparseWindow(const Settings& settings) : SparseWindow(settings.window, settings.n_features, settings.nominal) {}
    SparseWindow(std::int64_t window, std::int64_t d, const Nominal& nominal = {})
        : size(window), d_(d), n_numbers_(d - std::count(nominal.begin(), nominal.end(), std::uint8_t{1})), nominal_(nominal), starts_(1, 0) {}

    std::int64_t size, filled = 0, learned = 0;

    Row row(std::int64_t position) const noexcept {
        const auto start = starts_[position];
        return {keys_.data() + start, values_.data() + start, starts_[position + 1] - start};
    }

    std::int64_t portion() const noexcept { return filled < size ? size - filled : PORTION; }

    // Append rows; return the number of positions by which the older rows have moved towards the start of the buffer.
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
        starts_.resize(position + 1);
    }

    Stretch latest() const noexcept { return {std::max<std::int64_t>(0, learned - size), filled}; }

    class Walker {
    public:
        double common_bandwidth(const SparseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const Silverman& silverman = count(window, low, high);
            if (is_incomplete(window)) {
                // If most features are zero in the whole window, the median is the bandwidth of a constant feature.
                if (window.n_numbers_ - present_ > present_) return silverman.bandwidth(CONSTANT);
                return common_of_present(window, low, high);
            }
            const std::int64_t m = high - low, absent = window.d_ - present_;
            if (always_ == 0 && small_ == 0 && m <= LONGEST_COUNTED && window.d_ / 2 < absent) return silverman.bandwidth(CONSTANT);
            if (other_ == 0 && m <= LONGEST_COUNTED) {
                return binary_(ones_, window.d_, m, low, silverman, [&](const std::int64_t* members, std::int64_t n, double* squares) {
                    columns_.assign(members, members + n);
                    add_up(window, low, high, false);
                    std::copy_n(squares_.data(), n, squares);
                });
            }
            if (m <= LONGEST_COUNTED) {
                if (!median_.runs()) start_median(window, low, high);
                const SparseMedian::Middle middle = median_.narrow(window.d_, columns_);
                if (middle.n > 0) {
                    add_up(window, low, high, false);
                    return middle_bandwidth(squares_.data(), middle.n, middle.upper, window.d_ % 2 == 1, silverman);
                }
            }
            estimate(window, low, high, silverman);
            return median_with_constants(squares_, absent, silverman.bandwidth(CONSTANT));
        }

        void bandwidths(const SparseWindow& window, std::int64_t position, double* out) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const Silverman& silverman = count(window, low, high);
            if (is_incomplete(window)) return fill_in_of_present(window, low, high, out);
            estimate(window, low, high, silverman);
            std::fill_n(out, window.d_, silverman.bandwidth(CONSTANT));
            for (std::size_t k = 0; k < columns_.size(); ++k) out[columns_[k]] = squares_[k];
        }

        // The mean of each feature; MISSING for features that are nominal or have no value.
        const Array<double>& means(const SparseWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            means_.assign(window.d_, 0.0);
            counts_.assign(window.d_, static_cast<double>(high - low));
            for (std::int64_t j = low; j < high; ++j) {
                const Row row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) {
                    const auto i = static_cast<std::size_t>(row.keys[p]);
                    means_[i] += is_missing(row.values[p]) ? 0.0 : row.values[p];
                    counts_[i] -= is_missing(row.values[p]) ? 1.0 : 0.0;
                }
            }
            for (std::int64_t i = 0; i < window.d_; ++i) {
                double& mean = means_[i];
                mean = counts_[i] == 0.0 || is_nominal(window.nominal_, i) ? MISSING : mean / counts_[i];
            }
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

        // Move the counts forward to a window; return Silverman's rule for its length.
        const Silverman& count(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            if (silverman_.m != high - low) {
                silverman_ = Silverman(high - low, window.d_);
                forget();
            }
            if (other_ == 0) median_.stop();
            for (std::int64_t j = counted_.low; j < std::min(low, counted_.high); ++j) remove(window.row(j));
            counted_ = {std::max(counted_.low, low), std::max(counted_.high, low)};
            if (counted_.low > low) {  // an earlier window is requested: start over
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
                missing_ += is_missing(row.values[p]);
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
                missing_ -= is_missing(row.values[p]);
            }
            if (median_.runs()) median_.remove(row, [this](std::int32_t i) { return ones_.counts[i] > 0; });
        }

        void forget() noexcept {
            std::fill(ones_.counts.begin(), ones_.counts.end(), 0);
            counted_ = {0, 0};
            present_ = always_ = other_ = small_ = missing_ = 0;
            median_.stop();
        }

        void start_median(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            median_.start(window.d_, high - low, static_cast<std::int64_t>(ones_.counts.size()));
            for (std::int64_t j = low; j < high; ++j) median_.add(window.row(j));
        }

        // Compute exact sums of squares of the features in `columns_`, or of all features that occur.
        void add_up(const SparseWindow& window, std::int64_t low, std::int64_t high, bool all) {
            lay_out(window, low, high, all);
            const std::int64_t n = columns_.size();
            squares_.resize(columns_.size());
            means_.resize(columns_.size());
            squared_deviations({laid_out_.data(), high - low, n}, squares_.data(), means_.data());
        }

        // Estimate the bandwidths of all features that occur in the window; `columns_` lists them.
        void estimate(const SparseWindow& window, std::int64_t low, std::int64_t high, const Silverman& silverman) {
            columns_.clear();
            add_up(window, low, high, true);
            turn_into_bandwidths(squares_.data(), static_cast<std::int64_t>(columns_.size()), silverman);
        }

        // Build dense columns of the window's values for some features, or for all that occur.
        void lay_out(const SparseWindow& window, std::int64_t low, std::int64_t high, bool all) {
            grow_to(column_of_, static_cast<std::int64_t>(ones_.counts.size()), std::int32_t{-1});
            for (std::size_t k = 0; k < columns_.size(); ++k) column_of_[columns_[k]] = static_cast<std::int32_t>(k);
            if (all) {
                for (std::int64_t j = low; j < high; ++j) {
                    const Row row = window.row(j);
                    for (std::int64_t p = 0; p < row.n; ++p) {
                        auto& column = column_of_[row.keys[p]];
                        if (column >= 0) continue;
                        column = static_cast<std::int32_t>(columns_.size());
                        columns_.push_back(row.keys[p]);
                    }
                }
            }
            const std::int64_t width = columns_.size();
            laid_out_.assign((high - low) * width, 0.0);
            for (std::int64_t j = low; j < high; ++j) {
                const Row row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) {
                    const auto column = column_of_[row.keys[p]];
                    if (column >= 0) laid_out_[(j - low) * width + column] = row.values[p];
                }
            }
            for (const auto i : columns_) column_of_[i] = -1;
        }

        bool is_incomplete(const SparseWindow& window) const noexcept { return missing_ > 0 || !window.nominal_.empty(); }

        // The median bandwidth of the numeric features, except those whose values are all missing.
        double common_of_present(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            add_up_present(window, low, high);
            squares_.clear();
            std::int64_t n_constants = window.n_numbers_;
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                if (is_nominal(window.nominal_, columns_[k])) continue;
                --n_constants;  // a feature with a column occurs, so it is not zero in the whole window
                if (counts_[k] > 0.0) squares_.push_back(bandwidth_of_present(k));
            }
            const double constant = rules_[high - low].bandwidth(CONSTANT);
            return squares_.empty() && n_constants == 0 ? constant : median_with_constants(squares_, n_constants, constant);
        }

        void fill_in_of_present(const SparseWindow& window, std::int64_t low, std::int64_t high, double* out) {
            add_up_present(window, low, high);
            std::fill_n(out, window.d_, rules_[high - low].bandwidth(CONSTANT));
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                if (is_nominal(window.nominal_, columns_[k])) totals_[k] = CONSTANT;
                out[columns_[k]] = bandwidth_of_present(k);
            }
        }

        double bandwidth_of_present(std::size_t k) const noexcept {
            return rules_[std::max<std::int64_t>(static_cast<std::int64_t>(counts_[k]), 1)].bandwidth(totals_[k]);
        }

        // Per feature that occurs: count its present values, and sum their squared deviations.
        void add_up_present(const SparseWindow& window, std::int64_t low, std::int64_t high) {
            columns_.clear();
            lay_out(window, low, high, true);
            const auto m = high - low, width = static_cast<std::int64_t>(columns_.size());
            if (static_cast<std::int64_t>(rules_.size()) != m + 1) {
                rules_.clear();
                for (std::int64_t n = 0; n <= m; ++n) rules_.push_back(Silverman(std::max<std::int64_t>(n, 1), window.d_));
            }
            for (Array<double>* numbers : {&counts_, &means_, &totals_, &smallest_, &largest_}) grow_to(*numbers, width);
            count_present(laid_out_.data(), m, width, counts_.data(), means_.data(), smallest_.data(), largest_.data());
            add_squares_of_present(laid_out_.data(), m, width, means_.data(), totals_.data());
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                if (!(counts_[k] > 1.0 && largest_[k] > smallest_[k])) totals_[k] = CONSTANT;
            }
        }

        // Per column: count the present values, and find their mean, minimum and maximum. MISSING exceeds all values,
        // so it is never the minimum.
        static void count_present(const double* __restrict rows, std::int64_t m, std::int64_t width, double* __restrict counts,
            double* __restrict means, double* __restrict smallest, double* __restrict largest) noexcept {
            std::fill_n(counts, width, 0.0);
            std::fill_n(means, width, 0.0);
            std::fill_n(smallest, width, MISSING);
            std::fill_n(largest, width, -MISSING);
            for (std::int64_t j = 0; j < m; ++j, rows += width) {
                for (std::int64_t k = 0; k < width; ++k) {
                    const double value = rows[k];
                    const bool present = !is_missing(value);
                    counts[k] += present ? 1.0 : 0.0;
                    means[k] += present ? value : 0.0;
                    smallest[k] = value < smallest[k] ? value : smallest[k];
                    const double low = present ? value : -MISSING;
                    largest[k] = low > largest[k] ? low : largest[k];
                }
            }
            for (std::int64_t k = 0; k < width; ++k) means[k] = counts[k] > 0.0 ? means[k] / counts[k] : 0.0;
        }
        static void add_squares_of_present(const double* __restrict rows, std::int64_t m, std::int64_t width, const double* __restrict means,
                                           double* __restrict squares) noexcept {
            std::fill_n(squares, width, 0.0);
            for (std::int64_t j = 0; j < m; ++j, rows += width) {
                for (std::int64_t k = 0; k < width; ++k) {
                    const double deviation = is_missing(rows[k]) ? 0.0 : rows[k] - means[k];
                    squares[k] += deviation * deviation;
                }
            }
        }

        Silverman silverman_;
        Stretch counted_{0, 0};
        Ones ones_;
        // Numbers of features that occur in the window, and that occur in all of its rows; numbers of entries that are
        // not 1, that are small, and that are missing.
        std::int64_t present_ = 0, always_ = 0, other_ = 0, small_ = 0, missing_ = 0;
        BinaryMedian binary_;
        SparseMedian median_;
        Array<std::int64_t> columns_;
        Array<std::int32_t> column_of_;
        Array<double> laid_out_, squares_, means_;
        // With missing values: Silverman's rule for each possible count of values; per column the count of values, the
        // sum of squared deviations, and the range.
        Array<Silverman> rules_;
        Array<double> counts_, totals_, smallest_, largest_;
    };

private:
    static constexpr std::int64_t PORTION = 256;

    std::int64_t slide() noexcept {
        const auto [low, high] = latest();
        const std::int64_t begin = starts_[low], end = starts_[high];
        std::copy(keys_.begin() + begin, keys_.begin() + end, keys_.begin());
        std::copy(values_.begin() + begin, values_.begin() + end, values_.begin());
        for (std::int64_t j = low; j <= high; ++j) starts_[j - low] = starts_[j] - begin;
        starts_.resize(high - low + 1);
        filled -= low;
        learned -= low;
        return low;
    }

    std::int64_t d_, n_numbers_;  // number of features, and number of features that are not nominal
    Nominal nominal_;
    Array<std::int64_t> starts_;
    Array<std::int32_t> keys_;
    Array<double> values_;
};

}  // namespace mlca::MLCA_LEVEL
