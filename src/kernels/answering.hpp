// Answers for many rows: by as many threads as they are worth, each in slices between which the learner may go on.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "idle.hpp"
#include "interface.hpp"
#include "level.hpp"
#include "lock.hpp"
#include "prediction.hpp"
#include "query.hpp"
#include "settings.hpp"
#include "stop.hpp"
#include "team.hpp"

namespace mlca::MLCA_LEVEL {

// What it is made with must outlive it.
template <class ModelHere>
class Answering {
public:
    using Source = typename ModelHere::Nodes::Window::Source;

    Answering(const ModelHere& model, const Settings& told, Lock& lock) : model_(model), told_(told), lock_(lock) {}

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
        auto prediction = idle_.borrow([this] { return std::make_unique<Prediction<ModelHere>>(told_); });
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
    const Settings& told_;
    Lock& lock_;
    Idle<Prediction<ModelHere>> idle_;
};

}  // namespace mlca::MLCA_LEVEL
