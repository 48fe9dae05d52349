// Mixer: combines votes, linear models, priors and recency in the logistic domain, with weights shared by all labels.
//
// The probability of a label is sigmoid(w . z), where z is the vector of its inputs. When a row's labels are known, w
// takes one Newton step on the log loss of all labels that some earlier row had. Inputs are at most 17.3 in magnitude,
// so a term of the gradient is below 2^4.2 and a term of the curvature H is at most 17.3^2 / 4 < 2^6.3. As integers in
// units of 2^-36, 2^20 + 1 such terms sum to less than 2^62.3, so the sum is exact in any order. H itself is stored in
// doubles, to which each row's sums are added.
//
// Each row is predicted before it is learned. From these predictions, the mixer also counts, for each margin of the
// fallback, the rows that would have been labelled exactly right, and sums the example F1 that each threshold would
// have reached.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "decision/label_frequencies.hpp"
#include "decision/linear_models.hpp"

namespace mlca::MLCA_LEVEL {

// The mixer's inputs for each label, "none" first, then labels in order of first appearance. One object per thread.
struct MixerSpace {
    static constexpr std::int64_t MOST_INPUTS = 4 + Recency::N_LIVES;

    void reserve(std::int64_t n_mixed) {
        for (Array<double>* numbers : {&votes, &totals, &scores, &priors, &probabilities, &truth}) grow_to(*numbers, n_mixed);
        for (Array<double>& input : inputs) grow_to(input, n_mixed);
    }

    std::int64_t n = 0;
    Array<double> votes;   // calibrated probabilities
    Array<double> totals;  // numbers of rows with the label
    Array<double> scores;  // scores of the linear models
    Array<double> priors;  // smoothed shares of rows with the label
    Array<double> inputs[MOST_INPUTS];
    Array<double> probabilities;
    Array<double> truth;   // 1 for the row's labels; 0 between uses
};

class Mixer {
public:
    static constexpr std::int64_t MOST_INPUTS = MixerSpace::MOST_INPUTS;
    static constexpr std::int64_t FIRST_ROWS = 50;  // number of rows learned before anything is mixed
    static constexpr std::int64_t N_MARGINS = 6, N_THRESHOLDS = 19;
    // The last margin exceeds every possible ratio of two probabilities.
    static constexpr double MARGINS[N_MARGINS] = {1.0, 1.25, 1.5, 2.0, 3.0, 0x1p1000};

    explicit Mixer(bool with_recency) : n_inputs(with_recency ? MOST_INPUTS : 4) {
        for (std::int64_t i = 0; i < n_inputs; ++i) curvature[i][i] = start_of(i);
    }

    static double start_of(std::int64_t input) noexcept { return input < 4 ? 30.0 : 200.0; }
    static double threshold(std::int64_t i) noexcept { return static_cast<double>(6 + i) / 40.0; }

    // The margin that was right most often; ties go to the smallest.
    double margin() const noexcept { return MARGINS[std::max_element(hits, hits + N_MARGINS) - hits]; }
    // The threshold with the best F1 so far; ties go to the threshold nearest to 0.5, then to the smallest.
    double best_threshold() const noexcept {
        std::int64_t best = HALF;
        for (const std::int64_t i : {13, 15, 12, 16, 11, 17, 10, 18, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}) {
            if (f1[i] > f1[best]) best = i;
        }
        return threshold(best);
    }

    // Whether a row without a likely label gets its most probable label.
    static bool takes(double best, double none, double margin) noexcept { return best > (none > 0.0 ? margin * none : 0.0); }

    // Compute the priors after `rows` rows.
    static void find_shares(MixerSpace& space, std::int64_t rows) noexcept {
        const auto all = static_cast<double>(rows + 2);
        for (std::int64_t k = 0; k < space.n; ++k) space.priors[k] = (space.totals[k] + 1.0) / all;
    }

    // Compute inputs and probabilities; the inputs of recency are already filled in as logits.
    void mix(MixerSpace& space) const noexcept {
        const std::int64_t n = space.n;
        find_logits(space.priors.data(), space.inputs[2].data(), 1e-4, n);
        find_logits(space.votes.data(), space.inputs[0].data(), 1e-3, n);
        weigh_scores(space.scores.data(), space.totals.data(), space.inputs[2].data(), space.inputs[1].data(), n);
        std::fill_n(space.inputs[3].data(), n, 1.0);
        for (std::int64_t i = 4; i < n_inputs; ++i) subtract_priors(space.inputs[i].data(), space.inputs[2].data(), n);
        double* p = space.probabilities.data();
        std::fill_n(p, n, 0.0);
        for (std::int64_t i = 0; i < n_inputs; ++i) add_input(p, space.inputs[i].data(), weights[i], i == 0, n);
        for (std::int64_t k = 0; k < n; ++k) p[k] = sigmoid(p[k]);
    }

    // Update from a row whose prediction was mixed; `space.truth` marks its labels among the mixed labels, and
    // `n_in_row` is the count of all its labels, without "none".
    void learn(const MixerSpace& space, std::int64_t n_in_row) noexcept {
        count(space, n_in_row);
        const std::int64_t first = space.totals[0] > 0.0 ? 0 : 1;  // "none" counts only if some row had no label
        const std::int64_t n = space.n - first;
        std::int64_t gradient[MOST_INPUTS] = {}, bent[MOST_INPUTS][MOST_INPUTS] = {};
        const double *p = space.probabilities.data() + first, *truth = space.truth.data() + first;
        for (std::int64_t i = 0; i < n_inputs; ++i) {
            const double* a = space.inputs[i].data() + first;
            gradient[i] = sum_of_slopes(p, truth, a, n);
            for (std::int64_t j = i; j < n_inputs; ++j) bent[i][j] = sum_of_bends(p, a, space.inputs[j].data() + first, n);
        }
        double g[MOST_INPUTS];
        for (std::int64_t i = 0; i < n_inputs; ++i) {
            g[i] = static_cast<double>(gradient[i]) * 0x1p-36;
            for (std::int64_t j = i; j < n_inputs; ++j) {
                curvature[i][j] += static_cast<double>(bent[i][j]) * 0x1p-36;
                curvature[j][i] = curvature[i][j];
            }
        }
        step(g);
    }

    // Whether the state is possible after `rows` rows.
    bool is_sound(std::int64_t rows) const noexcept {
        const auto possible = [](double weight) { return std::fabs(weight) <= LARGEST_WEIGHT; };
        if (!std::all_of(weights, weights + n_inputs, possible) || !has_sound_curvature()) return false;
        const auto fits = [](std::int64_t sum, std::int64_t most) { return sum >= 0 && sum <= most; };
        return std::all_of(hits, hits + N_MARGINS, [&](std::int64_t h) { return fits(h, rows); }) &&
               std::all_of(f1, f1 + N_THRESHOLDS, [&](std::int64_t sum) { return fits(sum, rows * PER_F1); });
    }

    // Merge a mixer whose rows follow the rows of this one. Curvatures from forged files may not have a valid sum; the
    // curvature is then left unchanged.
    void absorb(const Mixer& other, std::int64_t rows, std::int64_t other_rows) noexcept {
        if (other_rows == 0) return;
        const auto a = static_cast<double>(rows), b = static_cast<double>(other_rows);
        Mixer sum = *this;
        for (std::int64_t i = 0; i < n_inputs; ++i) {
            for (std::int64_t j = 0; j < n_inputs; ++j) sum.curvature[i][j] += other.curvature[i][j] - (i == j ? start_of(i) : 0.0);
        }
        if (sum.has_sound_curvature()) *this = sum;
        for (std::int64_t i = 0; i < n_inputs; ++i) weights[i] = (a * weights[i] + b * other.weights[i]) / (a + b);
        for (std::int64_t i = 0; i < N_MARGINS; ++i) hits[i] += other.hits[i];
        for (std::int64_t i = 0; i < N_THRESHOLDS; ++i) f1[i] += other.f1[i];
    }

    std::int64_t n_inputs;
    double weights[MOST_INPUTS] = {0.9, 0.2, 0.1};
    double curvature[MOST_INPUTS][MOST_INPUTS] = {};
    std::int64_t hits[N_MARGINS] = {};   // per margin: number of rows that it would have labelled exactly right
    std::int64_t f1[N_THRESHOLDS] = {};  // per threshold: sum of example F1, in units of 2^-20

    static constexpr std::int64_t PER_F1 = std::int64_t{1} << 20;

private:
    static constexpr double LARGEST_WEIGHT = 1000.0;
    static constexpr std::int64_t HALF = 14;  // index of the threshold 0.5

    bool has_sound_curvature() const noexcept {
        for (std::int64_t i = 0; i < n_inputs; ++i) {
            for (std::int64_t j = 0; j < n_inputs; ++j) {
                if (!(std::fabs(curvature[i][j]) <= 0x1p70) || curvature[i][j] != curvature[j][i]) return false;
            }
        }
        double root[MOST_INPUTS][MOST_INPUTS];
        return decompose(root) >= 1.0;
    }

    // Adding this constant moves multiples of 2^-36 into the low bits of the significand.
    static constexpr double ROUND_TO_WHOLE = 0x1.8p16;

    [[gnu::always_inline]] static std::int64_t in_wholes(double term) {
        return std::bit_cast<std::int64_t>(ROUND_TO_WHOLE + term) - std::bit_cast<std::int64_t>(ROUND_TO_WHOLE);
    }
    [[gnu::always_inline]] static double logit(double p, double least) {
        p = clipped(p, least);
        return ln(p / (1.0 - p));
    }

    [[gnu::noinline]] static void find_logits(const double* __restrict p, double* __restrict logits, double least, std::int64_t n) noexcept {
        for (std::int64_t k = 0; k < n; ++k) logits[k] = logit(p[k], least);
    }
    [[gnu::noinline]] static void weigh_scores(const double* __restrict scores, const double* __restrict totals, const double* __restrict priors,
        double* __restrict inputs, std::int64_t n) noexcept {
        for (std::int64_t k = 0; k < n; ++k) {
            inputs[k] = totals[k] / (totals[k] + 20.0) * (std::min(std::max(scores[k], -8.0), 8.0) - priors[k]);
        }
    }
    [[gnu::noinline]] static void subtract_priors(double* __restrict inputs, const double* __restrict priors, std::int64_t n) noexcept {
        for (std::int64_t k = 0; k < n; ++k) inputs[k] = std::min(std::max(inputs[k] - priors[k], -8.0), 8.0);
    }
    [[gnu::noinline]] static void add_input(double* __restrict sums, const double* __restrict inputs, double weight, bool first,
        std::int64_t n) noexcept {
        for (std::int64_t k = 0; k < n; ++k) sums[k] = first ? weight * inputs[k] : sums[k] + weight * inputs[k];
    }
    [[gnu::noinline]] static std::int64_t sum_of_slopes(const double* __restrict p, const double* __restrict truth, const double* __restrict z,
        std::int64_t n) noexcept {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < n; ++k) sum += in_wholes((p[k] - truth[k]) * z[k]);
        return sum;
    }
    [[gnu::noinline]] static std::int64_t sum_of_bends(const double* __restrict p, const double* a, const double* b, std::int64_t n) noexcept {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < n; ++k) sum += in_wholes(p[k] * (1.0 - p[k]) * a[k] * b[k]);
        return sum;
    }

    // Compute the lower Cholesky factor of H. The squares of its diagonal entries are raised to at least 1; return the
    // smallest of them before that.
    double decompose(double (&root)[MOST_INPUTS][MOST_INPUTS]) const noexcept {
        double least = 0x1p1000;
        for (std::int64_t j = 0; j < n_inputs; ++j) {
            double square = curvature[j][j];
            for (std::int64_t k = 0; k < j; ++k) square -= root[j][k] * root[j][k];
            least = std::min(least, square);
            root[j][j] = std::sqrt(std::max(square, 1.0));
            for (std::int64_t i = j + 1; i < n_inputs; ++i) {
                double v = curvature[i][j];
                for (std::int64_t k = 0; k < j; ++k) v -= root[i][k] * root[j][k];
                root[i][j] = v / root[j][j];
            }
        }
        return least;
    }

    // Take a Newton step: w -= H^-1 g. Overwrites g.
    void step(double* g) noexcept {
        double root[MOST_INPUTS][MOST_INPUTS];
        decompose(root);
        for (std::int64_t i = 0; i < n_inputs; ++i) {
            for (std::int64_t k = 0; k < i; ++k) g[i] -= root[i][k] * g[k];
            g[i] /= root[i][i];
        }
        for (std::int64_t i = n_inputs - 1; i >= 0; --i) {
            for (std::int64_t k = i + 1; k < n_inputs; ++k) g[i] -= root[k][i] * g[k];
            g[i] /= root[i][i];
        }
        for (std::int64_t i = 0; i < n_inputs; ++i) weights[i] = std::min(std::max(weights[i] - g[i], -LARGEST_WEIGHT), LARGEST_WEIGHT);
    }

    // Update `hits` and `f1`: count the row for each margin with which exactly its labels would have been predicted, and
    // add the row's F1 for each threshold.
    void count(const MixerSpace& space, std::int64_t n_in_row) noexcept {
        const double *p = space.probabilities.data(), *truth = space.truth.data();
        std::int64_t chosen[N_THRESHOLDS + 1] = {}, right[N_THRESHOLDS + 1] = {};  // indexed by the number of thresholds below p
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < space.n; ++k) {
            if (best == 0 || p[k] > p[best]) best = k;
            if (p[k] <= threshold(0)) continue;
            std::int64_t n_below = 1;
            while (n_below < N_THRESHOLDS && p[k] > threshold(n_below)) ++n_below;
            ++chosen[n_below];
            right[n_below] += truth[k] != 0.0;
        }
        const double none = p[0], in_force = margin();
        for (std::int64_t i = N_THRESHOLDS - 1; i > 0; --i) {
            chosen[i] += chosen[i + 1];
            right[i] += right[i + 1];
        }
        const bool best_is_right = best > 0 && truth[best] != 0.0;
        for (std::int64_t i = 0; i < N_THRESHOLDS; ++i) {  // labels chosen at threshold i have more than i thresholds below p
            std::int64_t n = chosen[i + 1], both = right[i + 1];
            if (i == HALF) {
                for (std::int64_t m = 0; m < N_MARGINS; ++m) {
                    const bool falls_back = n == 0 && best > 0 && takes(p[best], none, MARGINS[m]);
                    const std::int64_t size = falls_back ? 1 : n;
                    hits[m] += size == n_in_row && (falls_back ? best_is_right : both == n);
                }
            }
            if (n == 0 && best > 0 && takes(p[best], none, in_force)) {
                n = 1;
                both = best_is_right;
            }
            const double score = n + n_in_row == 0 ? 1.0 : 2.0 * static_cast<double>(both) / static_cast<double>(n + n_in_row);
            f1[i] += static_cast<std::int64_t>(nearest_whole(score * static_cast<double>(PER_F1)));
        }
    }
};

}  // namespace mlca::MLCA_LEVEL
