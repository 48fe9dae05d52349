// The window of a stream with gaps and nominal attributes: bandwidths from the values that are there (docs/mixed.md).
//
// The same two passes in the order of the stream as in bandwidth.hpp, one attribute after the other. An attribute that has
// only zeros in the window has the bandwidth of a constant, and is not looked at.
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
                const Column column = estimate(k, m);
                if (column.n > 0) squares_.push_back(rules_.data()[column.n].bandwidth(column.squares));
            }
            const double constant = rules_.data()[m].bandwidth(CONSTANT);
            return squares_.empty() && n_constants == 0 ? constant : median_with_constants(squares_, n_constants, constant);
        }

        void bandwidths(const MixedWindow& window, std::int64_t position, double* out) {
            const std::int64_t m = lay_out(window, position);
            std::fill_n(out, window.d_, rules_.data()[m].bandwidth(CONSTANT));
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                const Column column = estimate(k, m);
                const bool varies = !is_nominal(window.nominal_, columns_[k]);
                out[columns_[k]] = rules_.data()[std::max<std::int64_t>(column.n, 1)].bandwidth(varies ? column.squares : CONSTANT);
            }
        }

        // MISSING for attributes that are nominal or have no value.
        const Array<double>& means(const MixedWindow& window, std::int64_t position) {
            const std::int64_t m = lay_out(window, position);
            means_.assign(static_cast<std::size_t>(window.d_), 0.0);
            for (std::size_t k = 0; k < columns_.size(); ++k) {
                const Column column = estimate(k, m);
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

        // Lay the values of attributes that appear in the window one behind the other; return the window's length.
        std::int64_t lay_out(const MixedWindow& window, std::int64_t position) {
            const auto [low, high] = window_around(position, window.filled, window.size);
            const std::int64_t m = high - low;
            if (static_cast<std::int64_t>(rules_.size()) != m + 1) {
                rules_.clear();
                for (std::int64_t n = 0; n <= m; ++n) rules_.push_back(Silverman(std::max<std::int64_t>(n, 1), window.d_));
            }
            columns_.clear();
            laid_out_.clear();
            grow_to(column_of_, window.d_, std::int64_t{-1});
            for (std::int64_t j = low; j < high; ++j) {
                const SparseRow row = window.row(j);
                for (std::int64_t p = 0; p < row.n; ++p) {
                    std::int64_t& column = column_of_.data()[row.keys[p]];
                    if (column < 0) {
                        column = static_cast<std::int64_t>(columns_.size());
                        columns_.push_back(row.keys[p]);
                        laid_out_.resize(laid_out_.size() + static_cast<std::size_t>(m), 0.0);
                    }
                    laid_out_.data()[column * m + j - low] = row.values[p];
                }
            }
            for (const std::int32_t i : columns_) column_of_.data()[i] = -1;
            return m;
        }

        Column estimate(std::size_t k, std::int64_t m) const noexcept {
            const double* values = laid_out_.data() + static_cast<std::int64_t>(k) * m;
            Column column{0, 0.0, CONSTANT};
            double sum = 0.0, smallest = MISSING, largest = -MISSING;
            for (std::int64_t j = 0; j < m; ++j) {
                if (is_missing(values[j])) continue;
                ++column.n;
                sum += values[j];
                smallest = std::min(smallest, values[j]);
                largest = std::max(largest, values[j]);
            }
            if (column.n == 0) return column;
            column.mean = sum / static_cast<double>(column.n);
            if (column.n == 1 || !(largest > smallest)) return column;
            column.squares = 0.0;
            for (std::int64_t j = 0; j < m; ++j) {
                if (is_missing(values[j])) continue;
                const double deviation = values[j] - column.mean;
                column.squares += deviation * deviation;
            }
            return column;
        }

        Array<Silverman> rules_;  // for each number of values
        Array<std::int32_t> columns_;
        Array<std::int64_t> column_of_;
        Array<double> laid_out_, squares_, means_;
    };

private:
    Nominal nominal_;
    std::int64_t d_, n_numbers_;
};

}  // namespace mlca::MLCA_LEVEL
