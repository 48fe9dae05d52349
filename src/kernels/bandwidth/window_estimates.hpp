// Estimates from the window of a row: bandwidths, and groups of features with similar means. The first window also yields the
// vigilance.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bandwidth/feature_groups.hpp"
#include "base/level.hpp"
#include "base/memory.hpp"
#include "base/team.hpp"
#include "learner/interface.hpp"
#include "learner/settings.hpp"
#include "nodes/missing_and_nominal.hpp"

namespace mlca::MLCA_LEVEL {

// The vigilance for n rows whose distances to their nearest other row are `nearest`: 0.3 times the mean distance, but
// at least 0.01.
inline double vigilance_of(const double* nearest, std::int64_t n) noexcept {
    if (n < 2) return 0.01;
    double together = 0.0;
    for (std::int64_t i = 0; i < n; ++i) together += nearest[i];
    return std::max(0.01, 0.3 * (together / static_cast<double>(n)));
}

template <class Window>
class WindowEstimates {
public:
    // Discard what was computed for earlier positions, so that the next estimate starts over.
    void start_over() noexcept { walker_ = typename Window::Walker(); }

    // Adjust positions after the rows of the buffer have moved `by` positions towards its start.
    void shift(std::int64_t by) { walker_.shift(by); }

    // Return one bandwidth in MLCA, otherwise one per feature; the result is valid until the next call.
    const double* bandwidths(const Window& window, std::int64_t position, const Settings& settings) {
        bandwidths_.resize(settings.bandwidth_width());
        if (settings.mode == Mode::common) {
            bandwidths_[0] = walker_.common_bandwidth(window, position);
        } else {
            walker_.bandwidths(window, position, bandwidths_.data());
        }
        return bandwidths_.data();
    }

    // Return the groups after the round of grouping that is due with the next row, the `number`-th row of the stream.
    Groups round_of_groups(const Window& window, const Groups& groups, const Settings& settings, std::int64_t number, const Host& host) {
        const Array<double>& means = walker_.means(window, window.learned);
        const Array<std::int64_t> order = host.order_of_round(number / window.size);
        Array<double> values;
        values.reserve(means.size());
        for (const std::int64_t i : order) {
            if (!is_missing(means[i])) values.push_back(means[i]);
        }
        Groups next = groups;
        next.learn(values, window.size, settings.common_threshold(1));
        return next;
    }

private:
    typename Window::Walker walker_;
    Array<double> bandwidths_;
};

// The vigilance derived from the rows of the first window, or from all rows available. Every row becomes a node, and
// the rows are compared with these nodes as in prediction, with the feature groups that a vigilance of 0.01 gives. A
// row's distance to itself is 0, so its nearest other row is second on its list.
template <class ModelHere, class Window, class Estimates>
double vigilance_of_window(const Settings& settings, const Window& window, Estimates& estimates, const Host& host, Stop& stop) {
    Settings usual = settings;
    usual.vigilance = 0.01;
    usual.learned = usual.calibrated = usual.mixes = false;
    ModelHere plain(usual);
    typename ModelHere::Work work(usual);
    if (usual.mode == Mode::clustered) plain.groups = estimates.round_of_groups(window, plain.groups, usual, 1, host);
    const std::int64_t n = window.filled;
    for (std::int64_t k = 0; k < n; ++k) {
        stop.check();
        const double* bandwidths = estimates.bandwidths(window, k, usual);
        const typename ModelHere::LabelledRow row{window.row(k), {nullptr, 0}};
        plain.prepare(row, work.found, false, work);
        plain.reserve_node(k + 1, row.x);
        plain.create_node(k, row.x, bandwidths);
        work.found.clear();
        plain.become_node(row, bandwidths, work.found, work.voting, work);
    }
    Array<double> nearest;
    for (std::int64_t k = 0; k < n; ++k) {
        stop.check();
        auto query = plain.query_to_predict(window.row(k), work.found, work.grouping, work.space);
        plain.nodes.nearest(&query, 1, work.space.nodes, stop);
        if (work.found.size() > 1) nearest.push_back(plain.correntropy_ruler(work.grouping).distance(work.found.sums[1]));
    }
    return vigilance_of(nearest.data(), static_cast<std::int64_t>(nearest.size()));
}

}  // namespace mlca::MLCA_LEVEL
