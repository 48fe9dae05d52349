// What the window tells of the instance at a position: bandwidths, and the groups of attributes with alike means; of the first
// window as a whole, the vigilance.
#pragma once

#include <cstdint>

#include "groups.hpp"
#include "interface.hpp"
#include "memory.hpp"
#include "mixed.hpp"
#include "settings.hpp"
#include "stop.hpp"
#include "vigilance.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode, class Window>
class WindowEstimates {
public:
    // Whatever was prepared for the next positions does not hold any more.
    void begin_anew() noexcept { walker_ = typename Window::Walker(); }

    // Positions have become smaller by so many.
    void shift(std::int64_t by) { walker_.shift(by); }

    // One number in MLCA, else one an attribute; until the next call.
    const double* bandwidths(const Window& window, std::int64_t position, std::int64_t width) {
        bandwidths_.resize(static_cast<std::size_t>(width));
        if constexpr (mode == Mode::common) {
            bandwidths_[0] = walker_.common_bandwidth(window, position);
        } else {
            walker_.bandwidths(window, position, bandwidths_.data());
        }
        return bandwidths_.data();
    }

    // The groups after the round that is due with instance `number`, the next of the window.
    Groups round_of_groups(const Window& window, const Groups& groups, const Settings& settings, std::int64_t number, const Host& host) {
        const Array<double>& means = walker_.means(window, window.learned);
        const Array<std::int64_t> order = host.order_of_round(number / window.size);
        Array<double> values;
        values.reserve(means.size());
        for (const std::int64_t i : order) {
            if (!is_missing(means.data()[i])) values.push_back(means.data()[i]);
        }
        Groups next = groups;
        next.learn(values, window.size, settings.common_threshold(1));
        return next;
    }

private:
    typename Window::Walker walker_;
    Array<double> bandwidths_;
};

// The vigilance that the rows of the first window, or all that have come, ask for: rows are compared as nodes of that window
// would be when predicting, with the groups of vigilance .01.
template <class ModelHere, class Window, class Estimates>
double vigilance_of_window(const Settings& told, const Window& window, Estimates& estimates, const Host& host, Stop& stop) {
    Settings usual = told;
    usual.vigilance = 0.01;
    usual.learned = usual.calibrated = false;
    ModelHere plain(usual);
    typename ModelHere::Work work(usual);
    if constexpr (ModelHere::MODE == Mode::clustered) plain.groups = estimates.round_of_groups(window, plain.groups, usual, 1, host);
    const std::int64_t n = window.filled;
    for (std::int64_t k = 0; k < n; ++k) {
        stop.check();
        const double* bandwidths = estimates.bandwidths(window, k, usual.bandwidth_width());
        const typename ModelHere::Instance instance{window.row(k), {nullptr, 0}};
        plain.prepare(instance, work.found, false, work);
        plain.reserve_node(k + 1, instance.x);
        plain.create_node(k, instance.x, bandwidths);
        work.found.clear();
        plain.become_node(instance, bandwidths, work.found, work.voting, work);
    }
    Array<double> nearest;
    for (std::int64_t k = 0; k < n; ++k) {
        stop.check();
        auto query = plain.query_to_predict(window.row(k), work.found, work.grouping, work.space);
        plain.nodes.search(&query, 1, work.space.nodes, stop);
        if (work.found.size() > 1) nearest.push_back(plain.correntropy_ruler(work.grouping).distance(work.found.sums[1]));
    }
    return vigilance_of(nearest.data(), static_cast<std::int64_t>(nearest.size()));
}

}  // namespace mlca::MLCA_LEVEL
