// Bandwidths from a window of rows: Silverman's rule for each feature.
//
// A window is read in the order of the stream in two passes: other formulas would differ in the last bits, and the bits
// decide. Loops run over features inside and over rows outside, so that each feature is added up in the same
// order while the vector units work on several of them at once. Sums of 32 features stay in registers for a whole pass,
// and their part of a window in the first cache for the second. With the medians below, learning Scene takes 36.6
// microseconds a row instead of 39.4, Yeast 16.1 instead of 16.8.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

// A window lies in a buffer of the stream's latest rows. Of the `filled` rows in it, those before `learned` are part of the model; the
// `size - 1` before the first that is not are always there. While fewer than `size` rows have come, none is learned: the first
// `size` rows share one window. `DenseWindow` and `SparseWindow` have the same interface: take rows in, return one, estimate
// bandwidths. A walker is the working space of one thread that moves along the stream, and remembers counts of the last window.

// Where the window of the row at a position begins and ends. It ends with the row itself; but the first
// rows of a stream share the window of the first `size` (or of all that have come). So its length is the smaller of
// `filled` and `size` everywhere.
inline Stretch window_around(std::int64_t position, std::int64_t filled, std::int64_t size) {
    return {std::max<std::int64_t>(0, position - size + 1), std::max(position + 1, std::min(size, filled))};
}

// The deviation of a feature that is constant in the window.
inline constexpr double SMALLEST_DEVIATION = 1e-6;

// Rows of a window that lie one behind the other.
struct DenseRows {
    const double* rows;
    std::int64_t n_rows;
    std::int64_t width;

    const double* operator[](std::int64_t j) const noexcept { return rows + j * width; }
};

// Turns sums of squared deviations over m rows of d features into bandwidths
// S = (4 / (2 + d))^(1 / (4 + d)) G m^(-1 / (4 + d)).
struct Silverman {
    Silverman() = default;
    Silverman(std::int64_t n_rows, std::int64_t d)
        : m(n_rows),
          factor(std::pow(4.0 / (2.0 + static_cast<double>(d)), 1.0 / (4.0 + static_cast<double>(d)))),
          shrinking(std::pow(static_cast<double>(n_rows), -1.0 / (4.0 + static_cast<double>(d)))) {}

    // Sums of constant features are negative. A feature that varies so little that its variance vanishes is as good as
    // constant: no bandwidth may be 0.
    double bandwidth(double squares) const {
        const double variance = squares > 0.0 ? squares / static_cast<double>(m - 1) : 0.0;
        return factor * (variance > 0.0 ? std::sqrt(variance) : SMALLEST_DEVIATION) * shrinking;
    }

    std::int64_t m = 0;
    double factor = 0.0, shrinking = 0.0;
};

inline constexpr double CONSTANT = -1.0;  // in place of a constant feature's sum of squares

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

// Both passes over a few neighbouring features, whose sums fit into registers.
//
// Vectors are written out: the compiler keeps arrays in memory. Every lane does what the loops above do for its feature.
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

// The largest sum of squares that rounding alone could make of m equal values of about this size.
inline double squares_of_rounding(double mean, double m) {
    const double rounding = 4.0 * m * 0x1p-53 * mean;
    return m * rounding * rounding;
}

// Whether a feature has one value in the whole window.
//
// Its mean may miss that value, but by rounding only; so a feature with larger squares need not be looked at. Squares
// can also underflow to 0 although the feature varies: it is as good as constant then.
inline bool is_constant(const DenseRows& window, std::int64_t feature, double mean, double squares) {
    if (squares > squares_of_rounding(mean, static_cast<double>(window.n_rows))) return false;
    if (squares == 0.0) return true;
    for (std::int64_t j = 1; j < window.n_rows; ++j) {
        if (window[j][feature] != window[0][feature]) return false;
    }
    return true;
}

// Fill in the sum of squared deviations of every feature of a window, CONSTANT for constant ones, and the means.
inline void squared_deviations(const DenseRows& window, double* squares, double* means) {
    std::int64_t low = 0;
    for (; low + FewColumns::N <= window.width; low += FewColumns::N) {
        FewColumns::squared_deviations(window.rows + low, window.n_rows, window.width, squares + low, means + low);
    }
    add_up(window, low, window.width, means);
    add_up_squares(window, low, window.width, means, squares);
    // Usually no feature is constant, and one pass by vectors says so.
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

// Bring values below the pivot, or equal ones too, to the front of a stretch, and return where they end.
//
// Every value is exchanged, and only the end depends on how it compares: branches would be guessed wrongly half of the
// time. The median takes a third of the time of a branching partition on Bibtex.
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

// Put the target-th smallest value in its place, none before it larger; equal values do no harm.
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

// The median of n values, which are put into another order: the middle one, or the mean of the middle two.
inline double median(double* values, std::int64_t n) {
    const std::int64_t upper = n / 2;
    partition(values, n, upper);
    if (n % 2 == 1) return values[upper];
    return (*std::max_element(values, values + upper) + values[upper]) / 2.0;
}

// The median of values, which are put into another order, and of a constant that is repeated.
inline double median_with_constants(Array<double>& values, std::int64_t n_constants, double constant) {
    const auto n_below = std::partition(values.begin(), values.end(), [&](double s) { return s < constant; }) - values.begin();
    const auto kth = [&](std::int64_t k) {
        if (k >= n_below && k < n_below + n_constants) return constant;
        const std::int64_t place = k < n_below ? k : k - n_constants;
        std::nth_element(values.begin(), values.begin() + place, values.end());
        return values[static_cast<std::size_t>(place)];
    };
    const std::int64_t n = static_cast<std::int64_t>(values.size()) + n_constants;
    return n % 2 == 1 ? kth(n / 2) : (kth(n / 2 - 1) + kth(n / 2)) / 2.0;
}

// The median of bandwidths, window after window, from the sums of squares.
//
// Every step from a sum of squares to a bandwidth keeps order, rounding included, as long as the variance does not vanish:
// so the middle bandwidths are those of the middle sums, and no other is computed. From one window to the next the middle
// hardly moves. So values near the last one are picked out first, and the middle is sought among them; where it is not, it
// is sought among all.
class MedianBandwidth {
public:
    // The values are put into another order.
    double operator()(double* squares, std::int64_t n, const Silverman& silverman) {
        double least = squares[0];
        for (std::int64_t i = 1; i < n; ++i) least = squares[i] < least ? squares[i] : least;
        if (!(least / static_cast<double>(silverman.m - 1) > 0.0)) {
            turn_into_bandwidths(squares, n, silverman);
            return median(squares, n);
        }
        near_.resize(static_cast<std::size_t>(n));
        const double low = last_ * 0.875, high = last_ * 1.125;
        std::int64_t n_near = 0, n_below = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            near_[static_cast<std::size_t>(n_near)] = squares[i];
            n_near += (low <= squares[i]) & (squares[i] <= high);
            n_below += squares[i] < low;
        }
        const std::int64_t upper = n / 2, lower = (n - 1) / 2;
        const bool found = n_below <= lower && upper < n_below + n_near;
        double* values = found ? near_.data() : squares;
        const std::int64_t place = found ? upper - n_below : upper;
        partition(values, found ? n_near : n, place);
        last_ = values[place];
        const double above = silverman.bandwidth(last_);
        if (lower == upper) return above;
        return (silverman.bandwidth(*std::max_element(values, values + place)) + above) / 2.0;
    }

private:
    double last_ = 0.0;
    Array<double> near_;
};

// The median of values that come and sometimes go: the lower half and the upper half as heaps, largest and smallest on top.
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

    // Take out a value that is there.
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
        // One value may come in and another pass over from the other half.
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
