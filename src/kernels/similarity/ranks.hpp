// The rank of a value among the nodes' values of its feature. The learned similarity is based on differences of ranks.
//
// Ranks are integers, so their differences are exact. A feature's knots are 17 of its sorted node values, at evenly
// spaced positions, or all values if there are fewer. The rank of a knot is RANK_STEP times the sum of two numbers:
// that of the knots below it, and that of the knots up to and including it. Between and beyond the knots, ranks are
// linear in the value. If all nodes are 0 or 1, ranks are proportional to values. The rank of 0 is subtracted from all
// ranks, so that zeros have rank 0.
//
// Equal knots are stored once, with the number of knots up to them. So a mostly zero feature needs little memory, and a
// feature that is zero in all nodes needs none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "base/selection.hpp"

namespace mlca::MLCA_LEVEL {

inline constexpr std::int64_t MOST_KNOTS = 17;
static_assert(MOST_KNOTS <= Selection::MOST_WANTED);
inline constexpr std::int32_t RANK_STEP = 1 << 17;  // half the rank difference between adjacent knots
inline constexpr std::int64_t BINARY_ONE = std::int64_t{1} << 22;
inline constexpr std::int64_t FARTHEST_RANK = std::int64_t{1} << 29;

class Ranks {
public:
    using Space = Selection::Space;  // working memory of the search for knots

    // The ranks of values that are all 0 or 1, which need no knots.
    static Ranks binary(std::int64_t d) { return Ranks(d, 0); }
    // The ranks of d features, whose knots must then be added one feature after another.
    static Ranks with_knots(std::int64_t d, std::int64_t n_nodes) { return Ranks(d, std::min(n_nodes, MOST_KNOTS)); }
    // An empty object, to be filled with a state and completed by `restore`.
    Ranks() = default;

    // Reserve memory for all possible knots of d features, which may be far more than needed if most values are zero.
    void reserve(std::int64_t d) {
        knots.reserve(n_knots * d);
        up_to.reserve(n_knots * d);
    }

    // Position of knot i among n sorted values: round(i (n - 1) / (n_knots - 1)), ties to even. Divisions are slow, so
    // callers that have many features with the same n compute the positions once.
    std::int64_t position(std::int64_t i, std::int64_t n) const noexcept {
        if (n_knots == 1) return 0;
        const std::int64_t gaps = n_knots - 1, parts = i * (n - 1), whole = parts / gaps, rest = parts % gaps;
        return whole + (2 * rest > gaps || (2 * rest == gaps && (whole & 1)));
    }

    // Clamp a value, so that differences of values are finite.
    static double limited_value(double x) noexcept { return std::min(std::max(x, -0x1p1000), 0x1p1000); }

    // Add the next feature, given its non-zero values in all nodes, in any order. `n_present` nodes have a value; if
    // none has one, the feature counts as all zero.
    void add(const double* values, std::int64_t n, std::int64_t n_present, Space& space) {
        n_present = std::max(n_present, std::int64_t{1});
        const std::int64_t n_zeros = n_present - n;
        const std::int64_t n_negative = std::count_if(values, values + n, [](double value) { return value < 0.0; });
        std::int64_t places[MOST_KNOTS];
        for (std::int64_t i = 0; i < n_knots; ++i) {
            const std::int64_t p = position(i, n_present);
            places[i] = p < n_negative ? p : p < n_negative + n_zeros ? AT_ZERO : p - n_zeros;
        }
        append_selected(values, n, places, n == 0, space);
    }

    // Add the next feature, which is zero in all nodes. This shortcut matters because most features of wide rows are
    // zero.
    void add_zeros() {
        starts.push_back(static_cast<std::int64_t>(knots.size()));
        zeros.push_back(static_cast<std::int32_t>(one() / 2));
    }

    // Add the next feature from its values in all nodes, including zeros; `column` is not modified. `positions` holds
    // the positions of all knots.
    void add_column(const double* column, std::int64_t n_nodes, const std::int64_t* positions, Space& space) {
        std::int64_t n_negative = 0, n_zeros = 0;
        for (std::int64_t k = 0; k < n_nodes; ++k) {
            n_negative += column[k] < 0.0;
            n_zeros += column[k] == 0.0;
        }
        std::int64_t places[MOST_KNOTS];
        for (std::int64_t i = 0; i < n_knots; ++i) {
            const bool is_zero = positions[i] >= n_negative && positions[i] < n_negative + n_zeros;
            places[i] = is_zero ? AT_ZERO : positions[i];
        }
        append_selected(column, n_nodes, places, n_zeros == n_nodes, space);
    }

    // Interpolation of ranks between a feature's n knots, for values from the first to the last knot.
    struct Interpolation {
        std::int64_t n;
        const double* knots;
        // Indexed by the number of knots below a value: the knot below, its distance to the knot above, the knot above,
        // and the ranks of both.
        double lower[MOST_KNOTS], width[MOST_KNOTS], upper[MOST_KNOTS], from[MOST_KNOTS], at_upper[MOST_KNOTS];

        std::int32_t rank(std::int64_t place, double x) const noexcept {
            const double part = (x - lower[place]) / width[place];
            const double between = from[place] + nearest_whole(part * static_cast<double>(2 * RANK_STEP));
            return static_cast<std::int32_t>(x == upper[place] ? at_upper[place] : between);
        }
    };
    Interpolation interpolation(std::int64_t feature) const noexcept {
        Interpolation table{};
        table.knots = knots.data() + starts[feature];
        table.n = starts[feature + 1] - starts[feature];
        const std::uint8_t* counts = up_to.data() + starts[feature];
        if (table.n <= 1) {  // all values are the same
            table.upper[0] = table.n == 1 ? table.knots[0] : 0.0;
            table.lower[0] = table.upper[0];
            table.width[0] = 1.0;
            table.at_upper[0] = static_cast<double>(one() / 2);
        }
        for (std::int64_t p = 0; table.n > 1 && p < table.n; ++p) {
            const std::int64_t less = p == 0 ? 0 : counts[p - 1];
            table.upper[p] = table.knots[p];
            table.lower[p] = table.knots[std::max<std::int64_t>(p - 1, 0)];
            table.width[p] = p == 0 ? 1.0 : table.upper[p] - table.lower[p];
            table.from[p] = static_cast<double>((2 * less - 1) * RANK_STEP);
            table.at_upper[p] = static_cast<double>((less + counts[p]) * RANK_STEP);
        }
        return table;
    }

    // The rank of a value minus that of 0: between -2^30 and 2^30.
    std::int32_t operator()(std::int64_t feature, double x) const noexcept {
        return x == 0.0 ? 0 : static_cast<std::int32_t>(limited(feature, x)) - zeros[feature];
    }

    // The ranks of a dense row counted from the lowest: the rank of 0 is not subtracted.
    void rank_row(const double* row, std::int64_t d, std::int32_t* ranks) const noexcept {
        for (std::int64_t j = 0; j < d; ++j) ranks[j] = static_cast<std::int32_t>(limited(j, row[j]));
    }

    // The rank difference that counts as 1: the length of the nodes' range of ranks.
    std::int64_t one() const noexcept { return n_knots == 0 ? BINARY_ONE : 2 * n_knots * RANK_STEP; }

    // The rank of 0, clamped to the nodes' range of ranks.
    std::int32_t base(std::int64_t feature) const noexcept {
        return static_cast<std::int32_t>(std::clamp<std::int64_t>(zeros[feature], 0, one()));
    }

    // Compute the derived members after a state has been restored.
    void restore(std::int64_t d) {
        zeros.assign(d, 0);
        lay_out(d);
        for (std::int64_t j = 0; n_knots > 0 && j < d; ++j) zeros[j] = static_cast<std::int32_t>(limited(j, 0.0));
    }

    // If there are at least four knots per feature on average, pad the knots of every feature to the same number, so
    // that the knots below a value are counted by whole vectors. Call this after all features have been added.
    void lay_out(std::int64_t d) {
        if (static_cast<std::int64_t>(knots.size()) < 4 * d) return;
        even.assign(d * EVEN, std::numeric_limits<double>::max());
        for (std::int64_t j = 0; j < d; ++j) {
            std::copy_n(knots.data() + starts[j], starts[j + 1] - starts[j], even.data() + j * EVEN);
        }
    }

    // Whether n_knots, starts, knots and up_to are valid for d features, so that using them is memory-safe.
    bool is_sound(std::int64_t d) const noexcept {
        if (n_knots == 0) return starts.empty() && knots.empty() && up_to.empty();
        const std::int64_t n = knots.size();
        if (n_knots < 0 || n_knots > MOST_KNOTS || static_cast<std::int64_t>(starts.size()) != d + 1) return false;
        if (static_cast<std::int64_t>(up_to.size()) != n || starts.front() != 0 || starts.back() != n) return false;
        for (std::int64_t j = 0; j < d; ++j) {
            const std::int64_t start = starts[j], end = starts[j + 1];
            if (end < start || end > n) return false;
            for (std::int64_t p = start; p < end; ++p) {
                if (std::fabs(knots[p]) > 0x1p1000 || up_to[p] == 0) return false;
                if (p > start && !(knots[p - 1] < knots[p] && up_to[p - 1] < up_to[p])) return false;
            }
            if (end > start && up_to[end - 1] != n_knots) return false;
        }
        return true;
    }

    std::int64_t n_knots = 0;     // number of knots per feature; 0: values are their own ranks
    Array<std::int64_t> starts;   // where the distinct knots of each feature start
    Array<double> knots;          // ascending
    Array<std::uint8_t> up_to;    // number of knots up to and including this one
    Array<std::int32_t> zeros;    // per feature: the rank of 0
    Array<double> even;           // derived: knots padded to EVEN per feature

private:
    static constexpr std::int64_t EVEN = 20;
    static constexpr std::int64_t AT_ZERO = -1;

    Ranks(std::int64_t d, std::int64_t n_knots_of_each) : n_knots(n_knots_of_each) {
        if (n_knots == 0) {
            zeros.assign(d, 0);
            return;
        }
        starts.reserve(d + 1);
        zeros.reserve(d);
        starts.push_back(0);
    }

    // Add the next feature's knots: the values at the given positions of the sorted values, or zero.
    void append_selected(const double* values, std::int64_t n, const std::int64_t* places, bool all_zero, Space& space) {
        std::int64_t wanted[MOST_KNOTS] = {}, n_wanted = 0;
        for (std::int64_t i = 0; i < n_knots; ++i) {
            if (places[i] != AT_ZERO && (n_wanted == 0 || wanted[n_wanted - 1] != places[i])) wanted[n_wanted++] = places[i];
        }
        double found[MOST_KNOTS], next_knots[MOST_KNOTS];
        Selection::select(values, n, wanted, n_wanted, found, space);
        for (std::int64_t i = 0, next = 0; i < n_knots; ++i) {
            if (places[i] != AT_ZERO && wanted[next] != places[i]) ++next;
            next_knots[i] = places[i] == AT_ZERO ? 0.0 : found[next];
        }
        append(next_knots, all_zero);
    }

    // Add the next feature's knots, which must be ascending.
    void append(const double* next_knots, bool all_zero) {
        double different[MOST_KNOTS];
        std::uint8_t counts[MOST_KNOTS];
        std::int64_t n = 0;
        for (std::int64_t i = 0; i < n_knots; ++i) {
            const double knot = limited_value(next_knots[i]);
            if (n == 0 || different[n - 1] != knot) different[n++] = knot;
            counts[n - 1] = static_cast<std::uint8_t>(i + 1);
        }
        if (all_zero) n = 0;  // no knots: the feature is zero everywhere
        knots.insert(knots.end(), different, different + n);
        up_to.insert(up_to.end(), counts, counts + n);
        starts.push_back(static_cast<std::int64_t>(knots.size()));
        zeros.push_back(static_cast<std::int32_t>(limited(static_cast<std::int64_t>(zeros.size()), 0.0)));
    }

    std::int64_t limited(std::int64_t feature, double x) const noexcept {
        x = limited_value(x);
        const std::int64_t rank = n_knots == 0 ? steps(x, 1.0) : among_knots(feature, x);
        return std::min(std::max(rank, -FARTHEST_RANK), FARTHEST_RANK);
    }

    std::int64_t among_knots(std::int64_t feature, double x) const noexcept {
        const double* of_feature = knots.data() + starts[feature];
        const std::uint8_t* counts = up_to.data() + starts[feature];
        const std::int64_t n = starts[feature + 1] - starts[feature];
        if (n <= 1) {
            const double only = n == 0 ? 0.0 : of_feature[0];
            return x < only ? 0 : x > only ? one() : one() / 2;
        }
        const double first = of_feature[0], last = of_feature[n - 1];
        if (x < first) return counts[0] * RANK_STEP - steps(first - x, last - first);
        if (x > last) return (counts[n - 2] + n_knots) * RANK_STEP + steps(x - last, last - first);
        const std::int64_t place = even.empty() ? std::lower_bound(of_feature, of_feature + n, x) - of_feature
            : below(even.data() + feature * EVEN, x);
        const std::int64_t less = place == 0 ? 0 : counts[place - 1];
        if (of_feature[place] == x) return (less + counts[place]) * RANK_STEP;
        const double part = (x - of_feature[place - 1]) / (of_feature[place] - of_feature[place - 1]);
        return (2 * less - 1) * RANK_STEP + static_cast<std::int64_t>(nearest_whole(part * static_cast<double>(2 * RANK_STEP)));
    }

    static std::int64_t below(const double* __restrict even_knots, double x) noexcept {
        std::int64_t n = 0;
        for (std::int64_t p = 0; p < EVEN; ++p) n += even_knots[p] < x;
        return n;
    }

    // The quotient gap / span as a rank difference; clamped well beyond FARTHEST_RANK, where it might not be finite.
    std::int64_t steps(double gap, double span) const noexcept {
        if (std::fabs(gap) >= 4096.0 * span) return gap > 0.0 ? 2 * FARTHEST_RANK : -2 * FARTHEST_RANK;
        return static_cast<std::int64_t>(nearest_whole(gap / span * static_cast<double>(one())));
    }
};

}  // namespace mlca::MLCA_LEVEL
