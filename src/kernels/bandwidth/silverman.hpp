// Bandwidths from a window of rows: Silverman's rule for each feature.
//
// A window is read in stream order in two passes, because other formulas would change the last bits, and results must
// be bit-identical. The inner loops run over features, so that each feature is summed in the same order, while vector
// instructions process several features at once. The sums of 32 features stay in registers for a whole pass, and these
// features of a window stay in the first-level cache for the second pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

// A window is part of a buffer of the stream's latest rows. Of the `filled` rows in the buffer, those before `learned`
// are part of the model; the `size - 1` rows before the first unlearned one are always available. Until `size` rows
// have arrived, no row is learned: the first `size` rows share one window. `DenseWindow` and `SparseWindow` have the
// same interface: append rows, return a row, estimate bandwidths. A `Walker` is the working memory of one thread that
// moves along the stream; it keeps the counts of the last window.

// The start and end of the window of the row at a position. It ends with the row itself, except that the first rows of a stream
// share the window of the first `size` rows (or of all available ones). So its length is always the smaller of `filled` and
// `size`.
inline Stretch window_around(std::int64_t position, std::int64_t filled, std::int64_t size) {
    return {std::max<std::int64_t>(0, position - size + 1), std::max(position + 1, std::min(size, filled))};
}

// The deviation assigned to a feature that is constant in the window.
inline constexpr double SMALLEST_DEVIATION = 1e-6;

// Consecutive rows of a window.
struct DenseRows {
    const double* rows;
    std::int64_t n_rows;
    std::int64_t width;

    const double* operator[](std::int64_t j) const noexcept { return rows + j * width; }
};

// Turns sums of squared deviations over m rows of d features into bandwidths
// S = (4 / (2 + d))^(1 / (4 + d)) G m^(-1 / (4 + d)), where G is the standard deviation of the feature.
struct Silverman {
    Silverman() = default;
    Silverman(std::int64_t n_rows, std::int64_t d)
        : m(n_rows),
          factor(std::pow(4.0 / (2.0 + static_cast<double>(d)), 1.0 / (4.0 + static_cast<double>(d)))),
          shrinking(std::pow(static_cast<double>(n_rows), -1.0 / (4.0 + static_cast<double>(d)))) {}

    // The bandwidth of a feature from its sum of squared deviations. A negative sum marks a constant feature. A feature
    // whose variance underflows to 0 counts as constant, because no bandwidth may be 0.
    double bandwidth(double squares) const {
        const double variance = squares > 0.0 ? squares / static_cast<double>(m - 1) : 0.0;
        return factor * (variance > 0.0 ? std::sqrt(variance) : SMALLEST_DEVIATION) * shrinking;
    }

    std::int64_t m = 0;
    double factor = 0.0, shrinking = 0.0;
};

inline constexpr double CONSTANT = -1.0;  // marks a constant feature, instead of its sum of squares

inline void add_up(const DenseRows& window, std::int64_t low, std::int64_t high, double* __restrict means) {
    std::fill(means + low, means + high, 0.0);
    for (std::int64_t j = 0; j < window.n_rows; ++j) {
        const double* row = window[j];
        for (std::int64_t i = low; i < high; ++i) means[i] += row[i];
    }
    const auto m = static_cast<double>(window.n_rows);
    for (std::int64_t i = low; i < high; ++i) means[i] /= m;
}

inline void add_up_squares(const DenseRows& window, std::int64_t low, std::int64_t high, const double* __restrict means,
                           double* __restrict squares) {
    std::fill(squares + low, squares + high, 0.0);
    for (std::int64_t j = 0; j < window.n_rows; ++j) {
        const double* row = window[j];
        for (std::int64_t i = low; i < high; ++i) {
            const double deviation = row[i] - means[i];
            squares[i] += deviation * deviation;
        }
    }
}

// Runs both passes over a few adjacent features, whose sums fit into registers.
//
// Explicit vectors are used, because the compiler would keep arrays of sums in memory instead of registers. Every lane
// performs the operations of the loops above for its feature.
struct FewColumns {
    static constexpr std::int64_t N = 32;
    typedef double Four __attribute__((vector_size(32)));
    typedef double FourAnywhere __attribute__((vector_size(32), aligned(8), may_alias));

    static void squared_deviations(const double* first_row, std::int64_t n_rows, std::int64_t width, double* squares, double* means) {
        Four sums[N / 4], totals[N / 4], middle[N / 4];
#pragma GCC unroll 8
        for (int k = 0; k < N / 4; ++k) sums[k] = totals[k] = Four{};
        const double* row = first_row;
        for (std::int64_t j = 0; j < n_rows; ++j, row += width) {
#pragma GCC unroll 8
            for (int k = 0; k < N / 4; ++k) sums[k] += reinterpret_cast<const FourAnywhere*>(row)[k];
        }
        const auto m = static_cast<double>(n_rows);
#pragma GCC unroll 8
        for (int k = 0; k < N / 4; ++k) middle[k] = sums[k] / m;
        row = first_row;
        for (std::int64_t j = 0; j < n_rows; ++j, row += width) {
#pragma GCC unroll 8
            for (int k = 0; k < N / 4; ++k) {
                const Four deviation = reinterpret_cast<const FourAnywhere*>(row)[k] - middle[k];
                totals[k] += deviation * deviation;
            }
        }
        std::memcpy(means, middle, sizeof middle);
        std::memcpy(squares, totals, sizeof totals);
    }
};

// The largest sum of squares that rounding alone can produce for m equal values with this mean.
inline double squares_of_rounding(double mean, double m) {
    const double rounding = 4.0 * m * 0x1p-53 * mean;
    return m * rounding * rounding;
}

// Whether a feature has the same value in the whole window.
//
// The mean of such a feature may differ from the value, but only by rounding. So a feature whose sum of squares exceeds
// what rounding can produce need not be checked. The sum can also underflow to 0 although the feature varies; the
// feature then counts as constant.
inline bool is_constant(const DenseRows& window, std::int64_t feature, double mean, double squares) {
    if (squares > squares_of_rounding(mean, static_cast<double>(window.n_rows))) return false;
    if (squares == 0.0) return true;
    for (std::int64_t j = 1; j < window.n_rows; ++j) {
        if (window[j][feature] != window[0][feature]) return false;
    }
    return true;
}

// Compute the sum of squared deviations of every feature of a window (CONSTANT for constant ones), and the means.
inline void squared_deviations(const DenseRows& window, double* squares, double* means) {
    std::int64_t low = 0;
    for (; low + FewColumns::N <= window.width; low += FewColumns::N) {
        FewColumns::squared_deviations(window.rows + low, window.n_rows, window.width, squares + low, means + low);
    }
    add_up(window, low, window.width, means);
    add_up_squares(window, low, window.width, means, squares);
    // Usually no feature is constant, which a single vectorised pass verifies.
    const auto m = static_cast<double>(window.n_rows);
    std::int64_t small = 0;
    for (std::int64_t i = 0; i < window.width; ++i) small += squares[i] <= squares_of_rounding(means[i], m);
    if (small == 0) return;
    for (std::int64_t i = 0; i < window.width; ++i) {
        if (is_constant(window, i, means[i], squares[i])) squares[i] = CONSTANT;
    }
}

// Replace sums of squares by bandwidths.
inline void turn_into_bandwidths(double* squares, std::int64_t n, const Silverman& silverman) {
    for (std::int64_t i = 0; i < n; ++i) squares[i] = silverman.bandwidth(squares[i]);
}

// Move the values below the pivot (and equal ones, if `equal`) to the front of a stretch, and return where they end.
//
// Every value is swapped, and only the end depends on the comparison, because a branch would be mispredicted half of
// the time. On Bibtex the median takes a third of the time of a branching partition.
inline std::int64_t to_front(double* values, std::int64_t low, std::int64_t high, double pivot, bool equal) {
    std::int64_t end = low;
    for (std::int64_t i = low; i < high; ++i) {
        const double value = values[i];
        values[i] = values[end];
        values[end] = value;
        end += (value < pivot) | (static_cast<int>(equal) & static_cast<int>(value <= pivot));
    }
    return end;
}

// Move the target-th smallest value (counted from 0) to its sorted position, with no larger value before it. Equal
// values are allowed.
inline void partition(double* values, std::int64_t n, std::int64_t target) {
    std::int64_t low = 0, high = n;
    while (high - low > 1) {
        const double pivot = values[(low + high) / 2];
        const std::int64_t middle = to_front(values, low, high, pivot, false);
        if (target < middle) {
            high = middle;
        } else {
            low = to_front(values, middle, high, pivot, true);
            if (target < low) return;
        }
    }
}

// The median of n values: the middle value, or the mean of the two middle values. Reorders the values.
inline double median(double* values, std::int64_t n) {
    const std::int64_t upper = n / 2;
    partition(values, n, upper);
    if (n % 2 == 1) return values[upper];
    return (*std::max_element(values, values + upper) + values[upper]) / 2.0;
}

// The bandwidth from the sum at sorted position `upper` if `single`; otherwise the mean of this bandwidth and that from
// the sum before it. Reorders the sums.
inline double middle_bandwidth(double* squares, std::int64_t n, std::int64_t upper, bool single, const Silverman& silverman) {
    partition(squares, n, upper);
    const double above = silverman.bandwidth(squares[upper]);
    return single ? above : (silverman.bandwidth(*std::max_element(squares, squares + upper)) + above) / 2.0;
}

// The median of the values together with n_constants copies of a constant. Reorders the values.
inline double median_with_constants(Array<double>& values, std::int64_t n_constants, double constant) {
    const auto n_below = std::partition(values.begin(), values.end(), [&](double s) { return s < constant; }) - values.begin();
    const auto kth = [&](std::int64_t k) {
        if (k >= n_below && k < n_below + n_constants) return constant;
        const std::int64_t place = k < n_below ? k : k - n_constants;
        std::nth_element(values.begin(), values.begin() + place, values.end());
        return values[place];
    };
    const std::int64_t n = static_cast<std::int64_t>(values.size()) + n_constants;
    return n % 2 == 1 ? kth(n / 2) : (kth(n / 2 - 1) + kth(n / 2)) / 2.0;
}

// The median bandwidth, computed from sums of squares. Reorders the sums.
//
// Every step from a sum of squares to a bandwidth is monotonic, including rounding, as long as the variance does not underflow.
// So the middle bandwidths follow from the middle sums, and no other bandwidths are computed.
inline double median_bandwidth(double* squares, std::int64_t n, const Silverman& silverman) {
    if (!(*std::min_element(squares, squares + n) / static_cast<double>(silverman.m - 1) > 0.0)) {
        turn_into_bandwidths(squares, n, silverman);
        return median(squares, n);
    }
    return middle_bandwidth(squares, n, n / 2, n % 2 == 1, silverman);
}

// Running median of values that can be added and removed. The lower half is a heap with its largest value on top, the upper
// half a heap with its smallest value on top.
class RunningMedian {
public:
    // Reserve memory for one more value, so that `add` cannot fail.
    void reserve() {
        grow_capacity(lower_);
        grow_capacity(upper_);
    }

    void add(double value) noexcept {
        if (lower_.empty() || value <= lower_.front()) {
            push(lower_, value, std::less<>());
        } else {
            push(upper_, value, std::greater<>());
        }
        balance();
    }

    // Remove a value, which must be present.
    void remove(double value) noexcept {
        const bool is_low = value <= lower_.front();
        Array<double>& heap = is_low ? lower_ : upper_;
        auto place = std::find(heap.begin(), heap.end(), value);
        *place = heap.back();
        heap.pop_back();
        if (is_low) {
            std::make_heap(heap.begin(), heap.end(), std::less<>());
        } else {
            std::make_heap(heap.begin(), heap.end(), std::greater<>());
        }
        balance();
    }

    double value() const noexcept {
        return lower_.size() > upper_.size() ? lower_.front() : (lower_.front() + upper_.front()) / 2.0;
    }

private:
    void balance() noexcept {
        if (lower_.size() > upper_.size() + 1) push(upper_, pop(lower_, std::less<>()), std::greater<>());
        if (upper_.size() > lower_.size()) push(lower_, pop(upper_, std::greater<>()), std::less<>());
    }
    static void grow_capacity(Array<double>& heap) {
        // Reserve room for a new value and for one moved from the other half.
        if (heap.size() + 2 > heap.capacity()) heap.reserve(heap.capacity() + heap.capacity() / 2 + 16);
    }
    template <class Order>
    static void push(Array<double>& heap, double value, Order order) noexcept {
        heap.push_back(value);
        std::push_heap(heap.begin(), heap.end(), order);
    }
    template <class Order>
    static double pop(Array<double>& heap, Order order) noexcept {
        std::pop_heap(heap.begin(), heap.end(), order);
        const double value = heap.back();
        heap.pop_back();
        return value;
    }

    Array<double> lower_, upper_;
};

}  // namespace mlca::MLCA_LEVEL
