// The window of a stream with gaps and nominal attributes: bandwidths from the values that are there (docs/mixed.md).
//
// The same two passes in the order of the stream as in bandwidth.hpp, over all attributes together that are not only zeros in the window; these
// have the bandwidth of a constant, and are not looked at. Where a value is missing 0 is added, which changes nothing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bandwidth.hpp"
#include "mixed.hpp"
#include "settings.hpp"
#include "sparse_window.hpp"
#include "window.hpp"

namespace mlca::MLCA_LEVEL {

class MixedWindow : public SparseWindow {
public:
    explicit MixedWindow(const Settings& told)
        : SparseWindow(told), nominal_(told.nominal), d_(told.n_features), n_numbers_(told.n_features) {
        for (const std::uint8_t flag : nominal_) n_numbers_ -= flag;
    }

    class Walker {
    public:
        double common_bandwidth(const MixedWindow& window, std::int64_t position) {
            const std::int64_t m = lay_out(window, position);
            squares_.clear();
            std::int64_t n_constants = window.n_numbers_;  // attributes that are numbers and not laid out
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                if (is_nominal(window.nominal_, columns_[k])) continue;
                --n_constants;
                const Column column = estimate(k);
                if (column.n > 0) squares_.push_back(rules_.data()[column.n].bandwidth(column.squares));
            }
            const double constant = rules_.data()[m].bandwidth(CONSTANT);
            return squares_.empty() && n_constants == 0 ? constant : median_with_constants(squares_, n_constants, constant);
        }

        void bandwidths(const MixedWindow& window, std::int64_t position, double* out) {
            const std::int64_t m = lay_out(window, position);
            std::fill_n(out, window.d_, rules_.data()[m].bandwidth(CONSTANT));
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                const Column column = estimate(k);
                const bool varies = !is_nominal(window.nominal_, columns_[k]);
                out[columns_[k]] = rules_.data()[std::max<std::int64_t>(column.n, 1)].bandwidth(varies ? column.squares : CONSTANT);
            }
        }

        // MISSING for attributes that are nominal or have no value.
        const Array<double>& means(const MixedWindow& window, std::int64_t position) {
            lay_out(window, position);
            means_.assign(static_cast<std::size_t>(window.d_), 0.0);
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                const Column column = estimate(k);
                means_.data()[columns_[k]] = column.n > 0 ? column.mean : MISSING;
            }
            for (std::int64_t i = 0; i < window.d_; ++i) {
                if (is_nominal(window.nominal_, i)) means_.data()[i] = MISSING;
            }
            return means_;
        }

        void shift(std::int64_t) noexcept {}

    private:
        struct Column {
            std::int64_t n;
            double mean, squares;
        };

        // Lay out the attributes that appear in the window, row by row, and add them up; return the window's length.
        std::int64_t lay_out(const MixedWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const std::int64_t m = high - low;
            if (static_cast<std::int64_t>(rules_.size()) != m + 1) {
                rules_.clear();
                for (std::int64_t n = 0; n <= m; ++n) rules_.push_back(Silverman(std::max<std::int64_t>(n, 1), window.d_));
            }
            columns_.clear();
            grow_to(column_of_, window.d_, std::int64_t{-1});
            for (std::int64_t j = low; j < high; ++j) {
                const SparseRow row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) {
                    std::int64_t& column = column_of_.data()[row.keys[p]];
                    if (column >= 0) continue;
                    column = static_cast<std::int64_t>(columns_.size());
                    columns_.push_back(row.keys[p]);
                }
            }
            const auto width = static_cast<std::int64_t>(columns_.size());
            laid_out_.assign(static_cast<std::size_t>(m * width), 0.0);
            for (std::int64_t j = low; j < high; ++j) {
                const SparseRow row = window.row(j);
                double* values = laid_out_.data() + (j - low) * width;
                for (std::int64_t p = 0; p < row.n; ++p) values[column_of_.data()[row.keys[p]]] = row.values[p];
            }
            for (const std::int32_t i : columns_) column_of_.data()[i] = -1;
            for (Array<double>* sums : {&counts_, &sums_, &totals_, &smallest_, &largest_}) grow_to(*sums, width);
            add_up(laid_out_.data(), m, width, counts_.data(), sums_.data(), smallest_.data(), largest_.data());
            add_up_squares(laid_out_.data(), m, width, sums_.data(), totals_.data());
            return m;
        }

        // What is missing is larger than all else, and never the smallest; `means` are sums first.
        static void add_up(const double* __restrict rows, std::int64_t m, std::int64_t width, double* __restrict counts, double* __restrict means,
                           double* __restrict smallest, double* __restrict largest) noexcept {
            std::fill_n(counts, width, 0.0);
            std::fill_n(means, width, 0.0);
            std::fill_n(smallest, width, MISSING);
            std::fill_n(largest, width, -MISSING);
            for (std::int64_t j = 0; j < m; ++j, rows += width) {
                for (std::int64_t k = 0; k < width; ++k) {
                    const double value = rows[k];
                    const bool there = !is_missing(value);
                    counts[k] += there ? 1.0 : 0.0;
                    means[k] += there ? value : 0.0;
                    smallest[k] = value < smallest[k] ? value : smallest[k];
                    const double low = there ? value : -MISSING;
                    largest[k] = low > largest[k] ? low : largest[k];
                }
            }
            for (std::int64_t k = 0; k < width; ++k) means[k] = counts[k] > 0.0 ? means[k] / counts[k] : 0.0;
        }
        static void add_up_squares(const double* __restrict rows, std::int64_t m, std::int64_t width, const double* __restrict means,
                                   double* __restrict squares) noexcept {
            std::fill_n(squares, width, 0.0);
            for (std::int64_t j = 0; j < m; ++j, rows += width) {
                for (std::int64_t k = 0; k < width; ++k) {
                    const double deviation = is_missing(rows[k]) ? 0.0 : rows[k] - means[k];
                    squares[k] += deviation * deviation;
                }
            }
        }

        Column estimate(std::size_t k) const noexcept {
            const bool varies = counts_[k] > 1.0 && largest_[k] > smallest_[k];
            return {static_cast<std::int64_t>(counts_[k]), sums_[k], varies ? totals_[k] : CONSTANT};
        }

        Array<Silverman> rules_;  // for each number of values
        Array<std::int32_t> columns_;
        Array<std::int64_t> column_of_;
        Array<double> laid_out_, squares_, means_;
        Array<double> counts_, sums_, totals_, smallest_, largest_;  // of each column; sums are means in the end
    };

private:
    Nominal nominal_;
    std::int64_t d_, n_numbers_;
};

}  // namespace mlca::MLCA_LEVEL
