// Answers for many rows: by as many threads as they are worth, each in slices between which the learner may go on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "base/memory.hpp"
#include "learner/interface.hpp"
#include "base/level.hpp"
#include "base/lock.hpp"
#include "learner/prediction.hpp"
#include "search/neighbour_index.hpp"
#include "learner/settings.hpp"
#include "base/team.hpp"

namespace mlca::MLCA_LEVEL {

// What it is made with must outlive it.
template <class ModelHere>
class BatchPredictor {
public:
    using Source = typename ModelHere::Nodes::Window::Source;

    BatchPredictor(const ModelHere& model, const Settings& settings, Lock& lock) : model_(model), settings_(settings), lock_(lock) {}

    // Answer for the first n rows.
    void answer(const Source& source, std::int64_t n, std::int64_t n_labels, std::int64_t n_jobs, Stop& stop, const Answers& answers) {
        // The first rows tell how many threads the others are worth.
        const std::int64_t alone = n_jobs > 1 ? std::min(TOGETHER, n) : 0;
        const auto begun = Stop::Clock::now();
        std::atomic<std::int64_t> first{0}, next{alone};
        if (alone > 0) answer_some(source, first, alone, n_labels, stop, answers);
        const auto worth = alone > 0 ? (Stop::Clock::now() - begun) * (n - alone) / alone / WORTH_A_THREAD : 1;
        Team team(std::clamp<std::int64_t>(worth, 1, std::max<std::int64_t>(n_jobs, 1)));
        team.run([&](std::int64_t) {
            try {
                answer_some(source, next, n, n_labels, stop, answers);
            } catch (...) {
                stop.request();
                throw;
            }
        });
    }

private:
    // How long a prediction of many rows keeps the learner waiting, and others who come after it.
    static constexpr std::chrono::milliseconds SLICE{10};
    // What a thread must have to do before it is worth its start.
    static constexpr std::chrono::microseconds WORTH_A_THREAD{200};

    // Answer for the next rows up to `end`, in turn with other threads.
    void answer_some(const Source& source, std::atomic<std::int64_t>& next, std::int64_t end, std::int64_t n_labels, Stop& stop, const Answers& answers) {
        auto prediction = idle_.borrow([this] { return std::make_unique<Prediction<ModelHere>>(settings_); });
        Stop never;  // interrupts are looked for between slices only, when nothing is locked
        std::int64_t first = next.fetch_add(TOGETHER, std::memory_order_relaxed);
        while (first < end) {
            stop.check();
            const std::shared_lock<Lock> guard(lock_);
            prediction->begin(model_, n_labels);
            const auto begun = Stop::Clock::now();
            do {
                prediction->answer(model_, source, first, std::min(TOGETHER, end - first), n_labels, answers, never);
                first = next.fetch_add(TOGETHER, std::memory_order_relaxed);
            } while (first < end && Stop::Clock::now() - begun < SLICE);
        }
        idle_.give_back(std::move(prediction));
    }

    const ModelHere& model_;
    const Settings& settings_;
    Lock& lock_;
    ObjectPool<Prediction<ModelHere>> idle_;
};

}  // namespace mlca::MLCA_LEVEL
