// One logistic regression per label, trained by one step per row.
//
// All labels take the same steps on the same rows (AdaGrad with decay), so weights are stored feature-major in float32:
// per feature one row of weights and one of squared gradients, with one column per label. A step is then a few loops
// over columns. Column 0 is "unseen", trained as if its label never occurred; column 1 is "none"; later columns are
// labels in order of first appearance. A new label starts as a copy of "unseen". A feature gets a row only when a step
// may need it.
//
// A score is the sum over features of the products f * W, each rounded to a multiple of 2^-24. With |f| <= 2^10, |W| <=
// 2^6 and at most 2^22 + 64 + 1 features, it stays below 2^62.1 such units, so it is exact and independent of the order
// of features. A step is computed in float32, weight by weight, because square roots and divisions take most of its
// time and are three times as fast as in double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "decision/linear_features.hpp"

namespace mlca::MLCA_LEVEL {

// 1 / (1 + exp(-z)).
[[gnu::always_inline]] inline double sigmoid(double z) {
    return shifted(1.0, std::min(std::max(z, -30.0), 30.0));
}

// Linear models as arrays: features in ascending order; features whose weights still have their initial values are
// omitted.
struct LinearState {
    Array<std::int32_t> features;
    Array<std::uint8_t> kinds;
    Array<double> values;
    std::int64_t n_columns = 0;
    Array<float> weights, squares;  // one row per feature
};

// The linear features of one row, given by the indices of their rows of weights, and working memory of a step.
struct LinearSpace {
    FeatureSpace features;
    Array<std::int32_t> rows;  // indices of the features' rows of weights
    Array<double> values;
    std::int64_t n = 0;
    Array<double> scores, targets;
    Array<float> gradients;

    void reserve(const Learned& learned, std::int64_t n_features, std::int64_t n_columns) {
        if (is_scattered(learned)) features.reserve(learned.n_features());
        grow_to(rows, n_features);
        grow_to(values, n_features);
        grow_to(scores, n_columns);
        grow_to(targets, n_columns);
        grow_to(gradients, n_columns);
    }
};

class LinearModels {
public:
    static constexpr std::int64_t UNSEEN = 0, NONE = 1, FIRST_LABEL = 2;
    static constexpr std::int64_t FIRST_STEP = 50;  // number of learned rows before the first step
    static constexpr std::int64_t REHEARSED = 4;
    // If the number of non-zeros times the number of labels is above MANY, labels with small gradients are skipped and
    // only one node is rehearsed.
    static constexpr std::int64_t MANY = 200'000;

    explicit LinearModels(std::int64_t d) : d_(d), weights_(2 * STEP_OF_COLUMNS), numbers_(d, NO_ROW) {
        add_row(FeatureKey{});
    }

    std::int64_t n_columns() const noexcept { return n_columns_; }
    std::int64_t padded_columns() const noexcept { return stride_; }
    std::int64_t column(std::int64_t slot) const noexcept { return slot == 0 ? NONE : columns_[slot]; }
    const FeatureKey& key(std::int64_t row) const noexcept { return keys_[row]; }
    float weight(std::int64_t row, std::int64_t column) const noexcept { return weights_[row][column]; }

    // Reserve memory for n columns and n_slots slots.
    void reserve_columns(std::int64_t n, std::int64_t n_slots) {
        grow_to(columns_, n_slots);
        if (n <= stride_) return;
        // Use an odd multiple of eight, because rows a multiple of a page apart would compete for the same cache sets.
        const std::int64_t wider = ((n + n / 8 + 7) / 8 | 1) * STEP_OF_COLUMNS;
        Weights next(2 * wider);
        const std::int64_t n_rows = keys_.size();
        for (std::int64_t row = 0; row < n_rows; ++row) {
            next.reserve(row + 1);
            std::fill_n(next[row] + wider, wider, 1.0f);
            std::copy_n(weights_[row], n_columns_, next[row]);
            std::copy_n(weights_[row] + stride_, n_columns_, next[row] + wider);
        }
        weights_ = std::move(next);
        stride_ = wider;
    }

    // Allocate all weights that a step on this row, or on a node that moved towards it, may read or change.
    template <class Row>
    void reserve_features(const Learned& learned, const Row& x, bool cells) {
        for_each_possible_key(learned, x, [&](const FeatureKey& key) { weights_.own(row_for(key)); });
        weights_.own(0);
        if (is_centred(learned)) reserve_numbers(learned, cells);
    }
    void own_all() { weights_.own_all(); }

    // Add columns for the labels that have appeared. All memory must have been reserved beforehand.
    void admit(const Array<std::int32_t>& arrived) noexcept {
        for (auto n = static_cast<std::int64_t>(arrived.size()) + FIRST_LABEL; n_columns_ < n; ++n_columns_) {
            columns_[arrived[n_columns_ - FIRST_LABEL]] = static_cast<std::int32_t>(n_columns_);
            const std::int64_t n_rows = keys_.size();
            for (std::int64_t row = 0; row < n_rows; ++row) {
                weights_[row][n_columns_] = weights_[row][UNSEEN];
                weights_[row][stride_ + n_columns_] = weights_[row][stride_ + UNSEEN];
            }
        }
    }

    // Find the features of a row, omitting features that no step has used. `space` must be large enough. `ranks` holds
    // the ranks of the row if they are known, as for nodes; otherwise it is null.
    template <class Row>
    void list_features(const Learned& learned, const Row& x, const std::int32_t* ranks, bool cells, LinearSpace& space) const noexcept {
        std::int64_t n = 0;
        const auto take = [this, &n, rows = space.rows.data(), values = space.values.data()](const FeatureKey& key, double value) {
            rows[n] = find(key);
            values[n] = value;
            n += rows[n] != NO_ROW;
        };
        if (ranks != nullptr) {
            for_each_centred_feature(learned, ranks, cells, take);
        } else {
            for_each_feature(learned, x, cells, space.features, take);
        }
        space.n = n;
    }

    // Compute the scores of all columns.
    void score(LinearSpace& space) const noexcept {
        for (std::int64_t low = 0; low < n_used(); low += TOGETHER_STEPPED) score_some(low, std::min(low + TOGETHER_STEPPED, n_used()), space);
    }
    // Copy the score of "unseen" to a column that was added after scoring.
    static void copy_score(std::int64_t column, LinearSpace& space) noexcept { space.scores[column] = space.scores[UNSEEN]; }

    // The contribution to a score of a feature with value f and weight w.
    static double term(double f, float w) noexcept { return nearest_whole(f * static_cast<double>(w) * 0x1p24) * 0x1p-24; }

    // Take a step towards the targets, on the row whose features and scores are in `space`.
    void step(float decay, bool skips, LinearSpace& space) noexcept {
        for (std::int64_t low = 0; low < n_used(); low += TOGETHER_STEPPED)
            step_some(low, std::min(low + TOGETHER_STEPPED, n_used()), decay, skips, space);
    }
    // Like `step`, but also compute the scores that the step uses.
    void score_and_step(float decay, bool skips, LinearSpace& space) noexcept {
        for (std::int64_t low = 0; low < n_used(); low += TOGETHER_STEPPED) {
            const std::int64_t high = std::min(low + TOGETHER_STEPPED, n_used());
            score_some(low, high, space);
            step_some(low, high, decay, skips, space);
        }
    }

    // A snapshot for readers: rows are shared until they change.
    struct Draft {
        Rows<float> weights;
        Array<FeatureKey> keys;
        std::int64_t n_columns, stride;

        LinearState finished() const {
            LinearState state;
            state.n_columns = n_columns;
            Array<std::int64_t> order;
            for (std::int64_t row = 0; row < static_cast<std::int64_t>(keys.size()); ++row) {
                const float* here = weights[row];
                const bool is_new = std::all_of(here, here + n_columns, [](float w) { return w == 0.0f; }) &&
                                    std::all_of(here + stride, here + stride + n_columns, [](float g) { return g == 1.0f; });
                if (!is_new) order.push_back(row);
            }
            std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
            state.weights.reserve(order.size() * static_cast<std::size_t>(n_columns));
            state.squares.reserve(order.size() * static_cast<std::size_t>(n_columns));
            for (const std::int64_t row : order) {
                state.features.push_back(keys[row].feature);
                state.kinds.push_back(keys[row].kind);
                state.values.push_back(keys[row].value);
                state.weights.insert(state.weights.end(), weights[row], weights[row] + n_columns);
                state.squares.insert(state.squares.end(), weights[row] + stride, weights[row] + stride + n_columns);
            }
            return state;
        }
    };
    Draft draft() const { return {weights_.shared(), keys_, n_columns_, stride_}; }

    // Whether a state is valid for d features and this number of columns, so that using it is memory-safe.
    static bool is_sound(const LinearState& state, std::int64_t d, const Nominal& nominal, std::int64_t n_columns) noexcept {
        const std::size_t n = state.features.size();
        if (state.n_columns != n_columns || state.kinds.size() != n || state.values.size() != n) return false;
        if (state.weights.size() != n * static_cast<std::size_t>(n_columns) || state.squares.size() != state.weights.size()) return false;
        for (std::size_t i = 0; i < n; ++i) {
            const FeatureKey key{state.features[i], state.kinds[i], state.values[i]};
            if (i > 0 && !(FeatureKey{state.features[i - 1], state.kinds[i - 1], state.values[i - 1]} < key)) return false;
            const bool is_bias = key.feature == -1;
            if (key.feature < -1 || key.feature >= d || (is_bias && key.kind != FeatureKey::NUMBER)) return false;
            const bool is_category = key.kind == FeatureKey::CATEGORY;
            if (key.kind > FeatureKey::CATEGORY || (!is_category && key.value != 0.0)) return false;
            if (!is_bias && key.kind != FeatureKey::MISSING_VALUE && is_category != is_nominal(nominal, key.feature)) return false;
        }
        const auto possible = [](float w) { return w >= -LARGEST_WEIGHT && w <= LARGEST_WEIGHT; };
        return std::all_of(state.weights.begin(), state.weights.end(), possible) &&
               std::all_of(state.squares.begin(), state.squares.end(), [](float g) { return g >= 1.0f && g <= LARGEST_SQUARE; });
    }

    // Restore a valid state; `arrived` lists labels in order of first appearance.
    void restore(const LinearState& state, const Array<std::int32_t>& arrived, std::int64_t n_slots) {
        reserve_columns(state.n_columns, n_slots);
        for (std::size_t i = 0; i < state.features.size(); ++i) {
            const std::int64_t row = row_for({state.features[i], state.kinds[i], state.values[i]});
            const auto start = static_cast<std::int64_t>(i) * state.n_columns;
            std::copy_n(state.weights.data() + start, state.n_columns, weights_[row]);
            std::copy_n(state.squares.data() + start, state.n_columns, weights_[row] + stride_);
        }
        n_columns_ = state.n_columns;
        for (std::size_t i = 0; i < arrived.size(); ++i) columns_[arrived[i]] = static_cast<std::int32_t>(i) + std::int32_t{FIRST_LABEL};
    }

    // Merge models trained on other rows: weights are averaged in proportion to the numbers of rows, and squared
    // gradients are added. `arrived` lists the labels of both models; if a model lacks the column of a label, its
    // "unseen" column is used. `slots` maps the other model's slots to slots of this model.
    [[gnu::cold]] void absorb(const LinearModels& other, std::int64_t rows, std::int64_t other_rows, const Array<std::int32_t>& arrived,
                              const Array<std::int64_t>& slots) {
        const auto n = static_cast<std::int64_t>(arrived.size()) + FIRST_LABEL;
        std::int64_t n_slots = 0;
        for (const std::int32_t slot : arrived) n_slots = std::max(n_slots, std::int64_t{slot} + 1);
        reserve_columns(n, n_slots);
        for (const FeatureKey& key : other.keys_) row_for(key);
        own_all();
        admit(arrived);
        Array<std::int64_t> theirs(n, UNSEEN);
        theirs[NONE] = NONE;
        for (std::size_t slot = 1; slot < slots.size(); ++slot) {
            const std::int64_t their_column = other.has_column(static_cast<std::int64_t>(slot)) ? other.column(static_cast<std::int64_t>(slot))
                : UNSEEN;
            if (their_column != UNSEEN) theirs[column(slots[slot])] = their_column;
        }
        const auto a = static_cast<double>(rows), b = static_cast<double>(other_rows);
        if (other_rows == 0) return;
        for (std::size_t row = 0; row < keys_.size(); ++row) {
            const std::int32_t their_row = other.find(keys_[row]);
            float* here = weights_[static_cast<std::int64_t>(row)];
            for (std::int64_t c = 0; c < n; ++c) {
                const std::int64_t their_column = theirs[c];
                const double w = their_row == NO_ROW ? 0.0 : double{other.weights_[their_row][their_column]};
                const double g = their_row == NO_ROW ? 1.0 : double{other.weights_[their_row][other.stride_ + their_column]};
                here[c] = static_cast<float>((a * double{here[c]} + b * w) / (a + b));
                // Only sums of squared gradients from a forged file can reach the bound.
                here[stride_ + c] = std::min(static_cast<float>(double{here[stride_ + c]} + (g - 1.0)), LARGEST_SQUARE);
            }
        }
    }

private:
    static constexpr std::int32_t NO_ROW = -1;
    // Columns are allocated in groups of eight. A step passes twice over up to TOGETHER_STEPPED columns at a time.
    static constexpr std::int64_t STEP_OF_COLUMNS = 8, TOGETHER_STEPPED = 128, FEW = 64, AHEAD = 6;
    using EightFloats [[gnu::vector_size(32)]] = float;
    using Eight [[gnu::vector_size(64)]] = double;
    using EightWholes [[gnu::vector_size(64)]] = std::uint64_t;
    static constexpr float RATE = 0.1f, LEAST_GRADIENT = 0.002f, LARGEST_WEIGHT = 64.0f, LARGEST_SQUARE = 0x1p100f;
    // Adding this constant moves multiples of 2^-24 into the low bits of the significand.
    static constexpr double ROUND_TO_WHOLE = 0x1.8p28;

    // Copies share their chunks; a row is copied before it is changed.
    struct Weights : Rows<float> {
        using Rows<float>::Rows;
        explicit Weights(Rows<float>&& rows) noexcept : Rows<float>(std::move(rows)) {}
        Weights(const Weights& other) : Rows<float>(other.shared()) {}
        Weights(Weights&&) noexcept = default;
        Weights& operator=(Weights&&) noexcept = default;
        Weights& operator=(const Weights& other) { return *this = Weights(other); }
    };

    struct Category {
        std::int32_t feature;
        double value;
        std::int32_t row;

        auto ordered() const noexcept { return std::tuple(feature, value); }
        bool operator<(const Category& other) const noexcept { return ordered() < other.ordered(); }
    };

    // Number of columns rounded up to a multiple of eight; the excess is unused.
    std::int64_t n_used() const noexcept { return (n_columns_ + 7) / 8 * 8; }

    bool has_column(std::int64_t slot) const noexcept { return slot < static_cast<std::int64_t>(columns_.size()) && columns_[slot] > 0; }

    // The index of a feature's row of weights; NO_ROW if it has none.
    std::int32_t find(const FeatureKey& key) const noexcept {
        if (key.feature < 0) return 0;
        if (key.kind == FeatureKey::NUMBER) return numbers_[key.feature];
        if (key.kind == FeatureKey::MISSING_VALUE) return missing_.empty() ? NO_ROW : missing_[key.feature];
        if (key.kind < FeatureKey::MISSING_VALUE) return cells_.empty() ? NO_ROW : cells_[cell_place(key)];
        const auto place = std::lower_bound(categories_.begin(), categories_.end(), Category{key.feature, key.value, 0});
        return place != categories_.end() && place->feature == key.feature && place->value == key.value ? place->row : NO_ROW;
    }
    static std::int64_t cell_place(const FeatureKey& key) noexcept { return N_CELLS * key.feature + key.kind - FeatureKey::FIRST_CELL; }

    // The index of a feature's row of weights; if the feature has none, a row is allocated.
    std::int64_t row_for(const FeatureKey& key) {
        const std::int32_t found = find(key);
        if (found != NO_ROW) return found;
        if (key.kind == FeatureKey::MISSING_VALUE) grow_to(missing_, d_, NO_ROW);
        if (key.kind >= FeatureKey::FIRST_CELL && key.kind < FeatureKey::MISSING_VALUE) grow_to(cells_, N_CELLS * d_, NO_ROW);
        if (key.kind == FeatureKey::CATEGORY) categories_.reserve(categories_.size() + 1);
        const std::int32_t row = add_row(key);
        if (key.kind == FeatureKey::NUMBER) {
            numbers_[key.feature] = row;
        } else if (key.kind == FeatureKey::MISSING_VALUE) {
            missing_[key.feature] = row;
        } else if (key.kind < FeatureKey::MISSING_VALUE) {
            cells_[cell_place(key)] = row;
        } else {
            const Category category{key.feature, key.value, row};
            categories_.insert(std::upper_bound(categories_.begin(), categories_.end(), category), category);
        }
        return row;
    }

    std::int32_t add_row(const FeatureKey& key) {
        const std::int64_t row = keys_.size();
        weights_.reserve(row + 1);
        std::fill_n(weights_[row], stride_, 0.0f);
        std::fill_n(weights_[row] + stride_, stride_, 1.0f);
        keys_.push_back(key);
        return static_cast<std::int32_t>(row);
    }

    // Allocate rows for all numeric features, and for their cells if `cells` is set.
    void reserve_numbers(const Learned& learned, bool cells) {
        for (std::int64_t j = 0; j < d_ && n_numbers_ < learned.n_numbers; ++j) {
            if (is_nominal(learned.nominal, j)) continue;
            row_for({static_cast<std::int32_t>(j)});
        }
        n_numbers_ = learned.n_numbers;
        for (std::int64_t j = 0; cells && j < d_ && !has_cells_; ++j) {
            if (is_nominal(learned.nominal, j)) continue;
            for (std::uint8_t cell = 0; cell < N_CELLS; ++cell)
                row_for({static_cast<std::int32_t>(j), static_cast<std::uint8_t>(FeatureKey::FIRST_CELL + cell)});
        }
        has_cells_ = has_cells_ || cells;
        own_all();
    }

    // Prefetch some weights of the i-th feature: the rows of weights that a sparse row needs are scattered in memory.
    [[gnu::always_inline]] void fetch(std::int64_t i, std::int64_t low, std::int64_t n, const LinearSpace& space) const noexcept {
        if (i < space.n) fetch_row(weights_[space.rows[i]] + low, n);
    }

    // Compute the scores of N groups of eight columns. Adding bit patterns adds the integers in their low bits and, per
    // term, the bits of one ROUND_TO_WHOLE, which are subtracted at the end.
    template <int N>
    [[gnu::always_inline]] void score_eights(std::int64_t low, LinearSpace& space) const noexcept {
        EightWholes totals[N] = {};
        for (std::int64_t i = -1; i < space.n; ++i) {
            const float* w = weights_[i < 0 ? 0 : space.rows[i]] + low;
            const double f = i < 0 ? 1.0 : space.values[i];
            fetch(i + AHEAD, low, 8 * N, space);
            for (int b = 0; b < N; ++b) {
                EightFloats narrow;
                std::memcpy(&narrow, w + 8 * b, sizeof narrow);
                totals[b] += reinterpret_cast<EightWholes>(ROUND_TO_WHOLE + f * __builtin_convertvector(narrow, Eight));
            }
        }
        const auto offset = static_cast<std::uint64_t>(space.n + 1) * std::bit_cast<std::uint64_t>(ROUND_TO_WHOLE);
        for (int b = 0; b < N; ++b) {
            for (int c = 0; c < 8; ++c)
                space.scores[low + 8 * b + c] = static_cast<double>(static_cast<std::int64_t>(totals[b][c] - offset)) * 0x1p-24;
        }
    }
    [[gnu::noinline]] static void add_scores(std::uint64_t* __restrict totals, const float* __restrict w, double f, std::int64_t n) noexcept {
        for (std::int64_t c = 0; c < n; ++c) totals[c] += std::bit_cast<std::uint64_t>(ROUND_TO_WHOLE + f * static_cast<double>(w[c]));
    }
    void score_some(std::int64_t low, std::int64_t high, LinearSpace& space) const noexcept {
        const std::int64_t n = high - low;
        if (n < FEW) {
            for (; high - low >= 32; low += 32) score_eights<4>(low, space);
            for (; low < high; low += 8) score_eights<1>(low, space);
            return;
        }
        std::uint64_t totals[TOGETHER_STEPPED] = {};
        add_scores(totals, weights_[0] + low, 1.0, n);
        for (std::int64_t i = 0; i < space.n; ++i) {
            fetch(i + AHEAD, low, n, space);
            add_scores(totals, weights_[space.rows[i]] + low, space.values[i], n);
        }
        const auto offset = static_cast<std::uint64_t>(space.n + 1) * std::bit_cast<std::uint64_t>(ROUND_TO_WHOLE);
        for (std::int64_t c = 0; c < n; ++c)
            space.scores[low + c] = static_cast<double>(static_cast<std::int64_t>(totals[c] - offset)) * 0x1p-24;
    }

    [[gnu::noinline]] static void find_gradients(float* __restrict g, const double* __restrict scores, const double* __restrict targets,
        std::int64_t n) noexcept {
        for (std::int64_t c = 0; c < n; ++c) g[c] = static_cast<float>(sigmoid(scores[c]) - targets[c]);
    }

    // Take one step on one weight; with `skips`, a weight with a small gradient is unchanged.
    template <bool skips>
    [[gnu::always_inline]] static void descend(float& w, float& squares, float g, float f, float decay) noexcept {
        const float h = g * f + decay * w;
        const float together = squares + h * h;
        const float next = std::min(std::max(w - RATE * h / std::sqrt(together), -LARGEST_WEIGHT), LARGEST_WEIGHT);
        const bool stays = skips && std::fabs(g) < LEAST_GRADIENT;
        w = stays ? w : next;
        squares = stays ? squares : together;
    }
    [[gnu::always_inline]] static void descend_eight(float* __restrict w, float* __restrict squares, const float* __restrict g, float f,
        float decay) noexcept {
        for (int c = 0; c < 8; ++c) descend<false>(w[c], squares[c], g[c], f, decay);
    }
    template <bool skips>
    [[gnu::noinline]] static void descend_many(float* __restrict w, float* __restrict squares, const float* __restrict g, float f, float decay,
        std::int64_t n) noexcept {
        for (std::int64_t c = 0; c < n; ++c) descend<skips>(w[c], squares[c], g[c], f, decay);
    }

    void step_some(std::int64_t low, std::int64_t high, float decay, bool skips, LinearSpace& space) noexcept {
        const std::int64_t n = high - low;
        float* g = space.gradients.data() + low;
        find_gradients(g, space.scores.data() + low, space.targets.data() + low, n);
        if (skips) return step_active(low, std::min(high, n_columns_), decay, space);
        for (std::int64_t i = -1; i < space.n; ++i) {
            float* w = weights_[i < 0 ? 0 : space.rows[i]] + low;
            const float f = i < 0 ? 1.0f : static_cast<float>(space.values[i]), decay_here = i < 0 ? 0.0f : decay;
            fetch(i + AHEAD, low, n, space);
            fetch(i + AHEAD, stride_ + low, n, space);
            if (n < FEW) {
                for (std::int64_t c = 0; c < n; c += 8) descend_eight(w + c, w + stride_ + c, g + c, f, decay_here);
            } else {
                descend_many<false>(w, w + stride_, g, f, decay_here, n);
            }
        }
    }

    // Take a step only in groups of eight columns in which some gradient is not small.
    void step_active(std::int64_t low, std::int64_t high, float decay, const LinearSpace& space) noexcept {
        const float* g = space.gradients.data();
        const auto is_active =
            [g](std::int64_t c) { return std::any_of(g + c, g + c + 8, [](float one) { return std::fabs(one) >= LEAST_GRADIENT; }); };
        for (std::int64_t c = low; c < high;) {
            for (; c < high && !is_active(c);) c += 8;
            std::int64_t end = c;
            for (; end < high && is_active(end);) end += 8;
            for (std::int64_t i = -1; i < space.n && c < end; ++i) {
                float* w = weights_[i < 0 ? 0 : space.rows[i]] + c;
                const float f = i < 0 ? 1.0f : static_cast<float>(space.values[i]);
                fetch(i + AHEAD, c, end - c, space);
                fetch(i + AHEAD, stride_ + c, end - c, space);
                descend_many<true>(w, w + stride_, g + c, f, i < 0 ? 0.0f : decay, end - c);
            }
            c = end;
        }
    }

    std::int64_t d_;
    std::int64_t n_columns_ = FIRST_LABEL, stride_ = STEP_OF_COLUMNS;
    Weights weights_;                     // per feature: weights of all columns, then sums of squared gradients; row 0 is the bias
    Array<FeatureKey> keys_;
    Array<std::int32_t> numbers_, cells_, missing_;
    Array<Category> categories_;
    Array<std::int32_t> columns_;         // per slot: its column
    std::int64_t n_numbers_ = 0;          // number of numeric features once all of them have rows of weights, else 0
    bool has_cells_ = false;              // whether the cells of numeric features have rows of weights
};

}  // namespace mlca::MLCA_LEVEL
