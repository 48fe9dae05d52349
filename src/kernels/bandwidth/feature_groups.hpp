// Groups of features in MLCA-C: feature means are clustered by a one-dimensional CIM-based ART, and each feature of a
// row is assigned to the cluster nearest to its value.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "bandwidth/silverman.hpp"
#include "base/fixed_point.hpp"
#include "base/memory.hpp"
#include "nodes/missing_and_nominal.hpp"

namespace mlca::MLCA_LEVEL {

// One row's features in groups: group j has factors[j] and the features order[i] for i from ends[j - 1] up to, but not
// including, ends[j]. `members` holds each feature's group, -1 if the row has no value for it. No group is empty,
// except the single group of a row without values.
struct Grouping {
    Array<std::int64_t> order, ends, members;
    Array<double> factors;
    std::int64_t n_groups = 0;

    std::int64_t start(std::int64_t group) const noexcept { return group > 0 ? ends[group - 1] : 0; }
    std::int64_t end(std::int64_t group) const noexcept { return ends[group]; }
};

// The centres of groups, oldest first, with their counts and bandwidths. Centres change only in rounds of grouping.
class Groups {
public:
    Groups() = default;
    Groups(Array<double> centres, Array<std::int64_t> counts, Array<double> bandwidths)
        : centres_(std::move(centres)), counts_(std::move(counts)), bandwidths_(std::move(bandwidths)) {
        total_bandwidth_ = std::accumulate(bandwidths_.begin(), bandwidths_.end(), 0.0);
        sort();
    }

    std::int64_t size() const noexcept { return centres_.size(); }
    const Array<double>& centres() const noexcept { return centres_; }
    const Array<std::int64_t>& counts() const noexcept { return counts_; }
    const Array<double>& bandwidths() const noexcept { return bandwidths_; }

    // Learn one round of values in order, by rule "published" with cases I and II only: a value too far from every
    // centre becomes a new centre; any other value moves the nearest centre.
    void learn(const Array<double>& values, std::int64_t window, std::int64_t threshold) {
        const std::int64_t d = values.size();
        for (std::int64_t i = 0; i < d; ++i) {
            const double value = values[i];
            const std::int64_t first = std::max<std::int64_t>(0, std::min(i - window + 1, d - window));
            const DenseRows column{values.data() + first, std::min(window, d - first), 1};
            take_in(value, 1, threshold, [&] { return bandwidth_of(column); });
        }
        sort();
    }

    // Replay the centres of another `Groups` object: each centre is learned in one step, weighted as all the values
    // that it represents.
    void absorb(const Groups& other, std::int64_t threshold) {
        for (std::size_t c = 0; c < other.centres_.size(); ++c) {
            take_in(other.centres_[c], other.counts_[c], threshold, [&] { return other.bandwidths_[c]; });
        }
        sort();
    }

    // Put every feature into the group of the centre nearest to its value. A group's bandwidth is the mean bandwidth
    // over all nodes and the group's features; `bandwidth_sums` holds the sum over the nodes per feature. Features
    // without a value belong to no group; nominal features form a separate group. If there are no centres, all numeric
    // features form one group. There is always at least one group, possibly empty.
    void group(const double* x, const Nominal& nominal, const double* bandwidth_sums, std::int64_t d, std::int64_t n_nodes,
        Grouping& grouping) const {
        const std::int64_t n_numbers = std::max<std::int64_t>(size(), 1);
        const auto group_of = [&](std::int64_t i) {
            return is_missing(x[i]) ? -1 : is_nominal(nominal, i) ? n_numbers : size() == 0 ? 0 : nearest(x[i]);
        };
        group_by(group_of, n_numbers + 1, bandwidth_sums, d, n_nodes, grouping);
        grouping.n_groups = std::max<std::int64_t>(grouping.n_groups, 1);
    }

private:
    // Collect the groups that are not empty. group_of(i) returns the group of a feature, or a negative number if it has none.
    template <class GroupOf>
    static void group_by(GroupOf group_of, std::int64_t n_possible, const double* bandwidth_sums, std::int64_t d, std::int64_t n_nodes,
        Grouping& grouping) {
        grouping.order.resize(d);
        grouping.members.resize(d);
        grouping.ends.assign(std::min(d, n_possible), 0);
        grouping.factors.assign(grouping.ends.size(), 0.0);
        Array<std::int64_t> filled(n_possible, 0);
        auto* members = grouping.members.data();
        for (std::int64_t i = 0; i < d; ++i) {
            members[i] = group_of(i);
            if (members[i] >= 0) ++filled[members[i]];
        }
        std::int64_t n_groups = 0, end = 0;
        for (auto& size : filled) {
            if (size == 0) continue;
            grouping.ends[n_groups] = end;
            end += size;
            size = n_groups++;
        }
        for (std::int64_t i = 0; i < d; ++i) {
            if (members[i] < 0) continue;
            members[i] = filled[members[i]];
            const auto j = static_cast<std::size_t>(members[i]);
            grouping.order[grouping.ends[j]++] = i;
            grouping.factors[j] += bandwidth_sums[i];
        }
        grouping.n_groups = n_groups;
        for (std::int64_t j = 0; j < n_groups; ++j) {
            const auto members_of_group = static_cast<double>(grouping.end(j) - grouping.start(j));
            double& factor = grouping.factors[j];
            factor = SCALE / (factor / (static_cast<double>(n_nodes) * members_of_group));
        }
    }

    static double bandwidth_of(const DenseRows& column) {
        double squares, mean;
        squared_deviations(column, &squares, &mean);
        return Silverman(column.n_rows, 1).bandwidth(squares);
    }

    template <class Bandwidth>
    void take_in(double value, std::int64_t count, std::int64_t threshold, Bandwidth bandwidth) {
        std::size_t winner = 0;
        std::int64_t smallest = 0;
        if (!centres_.empty()) {
            const double r = SCALE / (total_bandwidth_ / static_cast<double>(size()));
            // Terms and their minimum are computed in two loops: a single loop would not be vectorised.
            units_.resize(centres_.size());
            for (std::size_t c = 0; c < centres_.size(); ++c) units_[c] = dissimilarity(value - centres_[c], r);
            smallest = units_[0];
            for (const std::int64_t units : units_) smallest = units < smallest ? units : smallest;
            while (units_[winner] != smallest) ++winner;
        }
        if (centres_.empty() || smallest > threshold) {
            centres_.push_back(value);
            counts_.push_back(count);
            bandwidths_.push_back(bandwidth());
            total_bandwidth_ += bandwidths_.back();
        } else {
            // One move as far as `count` successive moves by 1 / c, 1 / (c + 1), ... of the remaining distance.
            const double step = static_cast<double>(counts_[winner] + count - 1) / static_cast<double>(count);
            centres_[winner] += (value - centres_[winner]) / step;
            counts_[winner] += count;
        }
    }

    void sort() {
        ages_.resize(centres_.size());
        std::iota(ages_.begin(), ages_.end(), 0);
        std::stable_sort(ages_.begin(), ages_.end(), [&](std::int64_t a, std::int64_t b) {
            return centres_[a] < centres_[b];
        });
        ascending_.resize(centres_.size());
        for (std::size_t k = 0; k < ages_.size(); ++k) ascending_[k] = centres_[ages_[k]];
    }

    // Index, among the centres in ascending order, of the centre nearest to a value; ties go to the oldest centre.
    std::int64_t nearest(double value) const noexcept {
        const std::int64_t n = ascending_.size();
        const auto centre = [&](std::int64_t k) { return ascending_[k]; };
        const auto age = [&](std::int64_t k) { return ages_[k]; };
        const std::int64_t right = std::lower_bound(ascending_.begin(), ascending_.end(), value) - ascending_.begin();
        double smallest = DBL_MAX;
        if (right < n) smallest = std::abs(centre(right) - value);
        if (right > 0) smallest = std::min(smallest, std::abs(value - centre(right - 1)));
        // Ties arise from equal centres, and from centres so far away that their distances round to the same value.
        std::int64_t winner = -1;
        for (std::int64_t k = right; k < n && std::abs(centre(k) - value) <= smallest; ++k) {
            if (winner < 0 || age(k) < age(winner)) winner = k;
        }
        for (std::int64_t k = right - 1; k >= 0 && std::abs(value - centre(k)) <= smallest; --k) {
            if (winner < 0 || age(k) < age(winner)) winner = k;
        }
        return winner;
    }

    Array<double> centres_;
    Array<std::int64_t> counts_;
    Array<double> bandwidths_;
    double total_bandwidth_ = 0.0;  // summed in order of creation
    Array<std::int64_t> units_;     // working memory
    Array<double> ascending_;   // the centres in ascending order; `ages_` holds the age of each, 0 for the oldest
    Array<std::int64_t> ages_;
};

}  // namespace mlca::MLCA_LEVEL
