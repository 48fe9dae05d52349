// Learning with several threads: search ahead, then verify.
//
// With a small vigilance, nearly every row becomes a node. So all threads together compare a block of rows with the
// nodes, assuming that each row becomes a node: the block's rows are appended to the nodes, and row j is compared with
// all nodes and the j rows before it, with exactly the bandwidths that apply if the assumption holds (bandwidths come
// from the window and do not depend on what is learned). Then the block is committed in order. The first row that joins
// an existing node ends the block: that row was compared with the correct model; later rows were not, and are processed
// again.
//
// The result is bit-identical to that of one thread, because the same functions get the same inputs. Threads
// synchronise a few times per block instead of once per row. Work on rows after one that joins a node is lost, so
// threads take a few rows at a time and signal each other where to stop. They also share the bandwidth estimation, the
// creation of nodes and the renewal of the screening data. Only one thread commits, which takes a fifteenth of the
// time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/lock.hpp"
#include "learner/model.hpp"
#include "learner/restore.hpp"
#include "base/team.hpp"
#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

template <class ModelOf>
class SpeculativeLearning {
public:
    using Window = typename ModelOf::Nodes::Window;
    using LabelledRow = typename ModelOf::LabelledRow;
    using Space = typename ModelOf::Space;
    using Voting = typename ModelOf::Voting;
    using Work = typename ModelOf::Work;

    // Number of rows to learn one by one before the block length is estimated again.
    static constexpr std::int64_t PAUSE = 32;

    explicit SpeculativeLearning(std::int64_t n_threads) : n_threads_(n_threads) {}

    // Length of the next block; 0 if learning row by row is better.
    std::int64_t length(std::int64_t n_rows, const ModelOf& model) const noexcept {
        const std::int64_t n = std::min(length_, n_rows);
        // If only nodes of trusted segments count, any row may change the similarity.
        if (model.counts_trusted()) return 0;
        // If the model fills up within the block, it is not known in advance which rows become nodes.
        if (model.settings.max_nodes > 0 && model.n_nodes + n > model.settings.max_nodes) return 0;
        const bool worthwhile = model.n_nodes > 0 && n >= SHORTEST_BLOCK && n * model.nodes.pairs(model.n_nodes) >= WORTHWHILE;
        return worthwhile ? n : 0;
    }

    // Record how many of the rows learned one by one became nodes.
    void note(std::int64_t learned, std::int64_t new_nodes) noexcept {
        // The length is about the mean number of rows until one joins a node. Below SHORTEST_BLOCK, speculation does
        // not pay off.
        const std::int64_t joined = learned - new_nodes;
        if (joined == 0) {
            length_ = std::clamp(2 * length_, 4 * SHORTEST_BLOCK, LONGEST_BLOCK);
        } else {
            length_ = learned < joined * SHORTEST_BLOCK ? 0 : std::max(2 * SHORTEST_BLOCK, learned / joined);
        }
    }

    // Start the threads unless they are running. Call this only before learning a block, because many streams have no
    // blocks.
    void gather(const Settings& settings) {
        if (team_) return;
        helpers_.resize(n_threads_);
        found_.clear();
        votings_.clear();
        for (std::int64_t j = 0; j < LONGEST_BLOCK; ++j) {
            found_.emplace_back(settings.n_listed());
            votings_.emplace_back(settings);
        }
        team_.emplace(n_threads_);
    }

    // Share work among the threads; if they were not started, do all of it in the calling thread.
    void share(std::int64_t n, std::int64_t step, WorkOnStretch work) {
        if (!team_) return work(0, n);
        team_->share(0, n, step, [&](std::int64_t, std::int64_t low, std::int64_t high) { work(low, high); });
    }

    // Learn a block of the window's next rows; return how many were learned. `labels_of(j)` returns the labels of row j of the
    // block; `stretch_end` is the end of the available rows.
    template <class LabelsOf>
    std::int64_t learn(ModelOf& model, Window& window, std::int64_t n, std::int64_t stretch_end, LabelsOf labels_of, Work& work, Lock& lock,
        Stop& stop) {
        const std::int64_t first = window.learned;
        if (first < known_.low || first + n > known_.high) foresee_bandwidths(model, window, first, stretch_end, stop);
        Assumption assumption(model, lock);
        assumption.add(n, *team_, [&](std::int64_t j) { return window.row(first + j); },
            [&](std::int64_t j) { return bandwidths(model, first + j); });
        fill_in_sums(model, first, n);
        thresholds_.resize(n);
        joined_.store(n, std::memory_order_relaxed);
        team_->share(0, n, std::min(TOGETHER, (n + n_threads_ - 1) / n_threads_), [&](std::int64_t member, std::int64_t low, std::int64_t high) {
            try {
                search(model, window, first, low, high, helpers_[member], stop);
            } catch (...) {
                joined_.store(-1, std::memory_order_relaxed);
                throw;
            }
        });
        return commit(model, window, n, labels_of, work, lock, assumption);
    }

    // Discard the bandwidths computed in advance; their rows have moved or are gone.
    void forget_bandwidths() noexcept { known_ = {0, 0}; }

private:
    // Fewest feature pairs in a block for which synchronising the threads pays off.
    static constexpr std::int64_t WORTHWHILE = 200'000;
    static constexpr std::int64_t SHORTEST_BLOCK = 4, LONGEST_BLOCK = 256;
    // Minimum number of consecutive rows for which one thread estimates the bandwidths.
    static constexpr std::int64_t SHORTEST_WALK = 16;

    struct Helper {
        Space space;
        Grouping grouping;
        typename Window::Walker walker;
    };

    // Rows appended to the nodes provisionally; the destructor removes those that did not become nodes.
    class Assumption {
    public:
        Assumption(ModelOf& model, Lock& lock) : model_(model), lock_(lock), end_(model.n_nodes) {}
        ~Assumption() {
            if (end_ > model_.n_nodes) {
                const std::lock_guard<Lock> guard(lock_);
                withdraw();
            }
        }
        Assumption(const Assumption&) = delete;
        Assumption& operator=(const Assumption&) = delete;

        // Append n rows to the nodes.
        template <class RowOf, class BandwidthsOf>
        void add(std::int64_t n, Team& team, RowOf row_of, BandwidthsOf bandwidths_of) {
            const std::lock_guard<Lock> guard(lock_);
            const std::int64_t first = end_;
            const std::int64_t together = model_.nodes.entered_together();
            if (together == 0 || model_.as_learned) {
                for (; end_ < first + n; ++end_) {
                    model_.reserve_node(end_ + 1, row_of(end_ - first));
                    model_.create_node(end_, row_of(end_ - first), bandwidths_of(end_ - first));
                }
                return;
            }
            for (std::int64_t j = 0; j < n; ++j) model_.reserve_node(first + j + 1, row_of(j));
            end_ = first + n;
            team.share(first, end_, together, [&](std::int64_t, std::int64_t low, std::int64_t high) {
                for (std::int64_t node = low; node < high; ++node) model_.create_node(node, row_of(node - first), bandwidths_of(node - first));
            });
        }

        // Remove the provisional rows; the caller has locked the model.
        void withdraw() noexcept {
            model_.withdraw();
            end_ = model_.n_nodes;
        }

    private:
        ModelOf& model_;
        Lock& lock_;
        std::int64_t end_;
    };

    const double* bandwidths(const ModelOf& model, std::int64_t position) const noexcept {
        return bandwidths_.data() + (position - known_.low) * model.bandwidths.width();
    }

    // Estimate the bandwidths of all available rows. An estimator must start over when its thread skips rows that
    // another thread took, but this is rare.
    void foresee_bandwidths(const ModelOf& model, const Window& window, std::int64_t first, std::int64_t end, Stop& stop) {
        const std::int64_t width = model.bandwidths.width(), n = end - first;
        bandwidths_.resize(n * width);
        known_ = {0, 0};
        for (Helper& helper : helpers_) helper.walker = typename Window::Walker();
        team_->share(0, n, std::max(SHORTEST_WALK, n / (4 * n_threads_)), [&](std::int64_t member, std::int64_t low, std::int64_t high) {
            auto& walker = helpers_[member].walker;
            for (std::int64_t j = low; j < high; ++j) {
                stop.check();
                double* out = bandwidths_.data() + j * width;
                if (model.settings.mode == Mode::common) {
                    *out = walker.common_bandwidth(window, first + j);
                } else {
                    walker.bandwidths(window, first + j, out);
                }
            }
        });
        known_ = {first, end};
    }

    // Compute, for each row of the block, the sum of the bandwidths of all nodes before it.
    void fill_in_sums(const ModelOf& model, std::int64_t first, std::int64_t n) {
        const auto width = static_cast<std::size_t>(model.bandwidths.width());
        sums_before_.resize(static_cast<std::size_t>(n) * width);
        std::copy(model.bandwidth_sums.begin(), model.bandwidth_sums.end(), sums_before_.begin());
        for (std::int64_t j = 1; j < n; ++j) {
            const double* before = sums_before_.data() + static_cast<std::size_t>(j - 1) * width;
            const double* added = bandwidths(model, first + j - 1);
            for (std::size_t i = 0; i < width; ++i) sums_before_[static_cast<std::size_t>(j) * width + i] = before[i] + added[i];
        }
    }

    // List the nearest nodes of a few rows of the block, unless a thread has found an earlier row that joins a node:
    // results for later rows are not used.
    void search(const ModelOf& model, const Window& window, std::int64_t first, std::int64_t low, std::int64_t high, Helper& helper, Stop& stop) {
        if (low > joined_.load(std::memory_order_relaxed)) return;
        stop.check();
        const std::int64_t width = model.bandwidths.width();
        // With grouped features, each row has its own groups, so rows are searched one at a time.
        const std::int64_t together = model.settings.mode == Mode::clustered ? 1 : high - low;
        for (std::int64_t start = low; start < high; start += together) {
            Query<typename ModelOf::Row> queries[TOGETHER];
            for (std::int64_t j = start; j < start + together; ++j) {
                queries[j - start] = model.query_to_learn(window.row(first + j), model.n_nodes + j, sums_before_.data() + j * width,
                                               found_[j], helper.grouping, helper.space);
                thresholds_[j] = model.settings.threshold(helper.grouping);
            }
            model.nodes.nearest(queries, together, helper.space.nodes, stop);
            if (foresees_votes(model) && !model.settings.learned) {
                for (std::int64_t j = start; j < start + together; ++j) {
                    model.find_voters_by_correntropy(queries[j - start], helper.grouping, true, votings_[j], helper.space, stop);
                }
            }
        }
        if (foresees_votes(model) && model.settings.learned) find_voters_by_rank(model, window, first, low, high, helper.space, stop);
        for (std::int64_t j = low; j < high; ++j) {
            if (!ModelOf::joins(found_[j], thresholds_[j])) continue;
            for (auto seen = joined_.load(); j < seen && !joined_.compare_exchange_weak(seen, j);) {
            }
            return;
        }
    }

    // Whether the voters of a row can be found in advance. If the model follows drift, they cannot, because every row
    // can change which segments are trusted.
    static bool foresees_votes(const ModelOf& model) noexcept {
        return model.decision ? !model.settings.follows_drift : model.settings.learned;
    }

    void find_voters_by_rank(const ModelOf& model, const Window& window, std::int64_t first, std::int64_t low, std::int64_t high, Space& space,
                             Stop& stop) {
        typename ModelOf::Row rows[TOGETHER];
        std::int64_t n_nodes[TOGETHER];
        for (std::int64_t j = low; j < high; ++j) {
            rows[j - low] = window.row(first + j);
            n_nodes[j - low] = model.n_nodes + j;
        }
        const bool with_scores = model.decision && model.decision->learns_opinions();
        const auto voting_of = [&](std::int64_t q) -> Voting& { return votings_[low + q]; };
        model.find_voters_by_rank(rows, n_nodes, high - low, true, with_scores, voting_of, space, stop);
    }

    // Commit the rows of the block in order, up to the first one that joins a node; return their number.
    template <class LabelsOf>
    std::int64_t commit(ModelOf& model, Window& window, std::int64_t n, LabelsOf labels_of, Work& work, Lock& lock, Assumption& assumption) {
        const std::int64_t first = window.learned;
        const std::lock_guard<Lock> guard(lock);
        for (std::int64_t j = 0; j < n; ++j) {
            TopK& found = found_[j];
            const std::int64_t threshold = thresholds_[j];
            const LabelledRow row{window.row(first + j), labels_of(j)};
            const bool joining = ModelOf::joins(found, threshold);
            Voting& voting = votings_[j];
            if (joining) assumption.withdraw();
            try {
                if (model.decision && !foresees_votes(model)) find_voters_when_committed(model, row.x, j, work);
                model.prepare(row, found, joining, work);
            } catch (...) {
                assumption.withdraw();
                throw;
            }
            if (joining) {
                model.join_winner(row, threshold, found, voting, work);
            } else {
                model.become_node(row, bandwidths(model, first + j), found, voting, work);
            }
            ++window.learned;
            renew_at_once(model);
            if (joining) {
                length_ = std::max(j + 1, length_ / 2);
                return j + 1;
            }
        }
        length_ = std::min(2 * length_, LONGEST_BLOCK);
        return n;
    }

    // Find the voters of a row when it is committed. The model is locked, so interrupts have to wait.
    void find_voters_when_committed(const ModelOf& model, const typename ModelOf::Row& x, std::int64_t j, Work& work) {
        Stop never;
        Query<typename ModelOf::Row> query =
            model.query_to_learn(x, model.n_nodes, model.bandwidth_sums.data(), found_[j], work.grouping, work.space);
        model.find_voters(query, work.grouping, votings_[j], work.space, never);
    }

    std::int64_t n_threads_;
    std::optional<Team> team_;
    std::vector<Helper> helpers_;
    std::vector<TopK> found_;
    std::vector<Voting> votings_;
    Stretch known_{0, 0};  // positions whose bandwidths are known
    Array<double> bandwidths_, sums_before_;
    Array<std::int64_t> thresholds_;
    std::atomic<std::int64_t> joined_{0};  // the first row of the block found to join a node
    std::int64_t length_ = 4 * SHORTEST_BLOCK;
};

}  // namespace mlca::MLCA_LEVEL
