// The learner: a stream of rows and labels in, a model that can predict out.
//
// One thread learns at a time, any number may read meanwhile. The learner searches without a lock, as nobody else
// changes the model, and holds it only while a row is committed; readers share it. So each answer is that of the model
// after some whole row, and a failure or an interrupt leaves the model of all rows that were committed.
//
// The first `window` rows of a stream wait until there are that many. They are learned into a model of their own, which
// then takes the place of the empty one: all of them or, after a failure, none and the last row not taken in. Whoever reads
// before that gets a copy in which the waiting rows are learned with the window that has come (`settled`).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <vector>

#include "absorbing.hpp"
#include "answering.hpp"
#include "commit.hpp"
#include "interface.hpp"
#include "lock.hpp"
#include "lookahead.hpp"
#include "model.hpp"
#include "prediction.hpp"
#include "restoring.hpp"
#include "sharing.hpp"
#include "stop.hpp"
#include "waiting.hpp"
#include "window_estimates.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode, template <Mode> class NodesOf>
class LearnerOf final : public Learner {
public:
    using Nodes = NodesOf<mode>;
    using Window = typename Nodes::Window;
    using Source = typename Window::Source;
    using Row = typename Nodes::Row;
    using ModelHere = Model<mode, Nodes>;
    using Instance = typename ModelHere::Instance;
    using PredictionHere = Prediction<ModelHere>;

    explicit LearnerOf(const Settings& settings) : told_(settings), model_(settings), window_(settings), work_(settings) {}
    LearnerOf(const Settings& settings, const State& state) : LearnerOf(settings) { restore(state); }
    LearnerOf(const LearnerOf& other)
        : told_(other.told_), model_(other.model_), window_(other.window_), work_(other.told_), waiting_(other.waiting_) {}

    bool is_sparse() const noexcept override { return std::is_same_v<Row, SparseRow>; }
    const Settings& settings() const noexcept override { return told_; }
    std::int64_t n_labels() const override { return reading([&] { return model_.labels.n_labels; }); }
    std::int64_t n_seen() const override { return reading([&] { return model_.labels.n_learned + n_waiting(); }); }
    std::int64_t n_nodes() const override { return reading([&] { return model_.n_kept(); }); }
    double vigilance() const override { return reading([&] { return model_.settings.vigilance; }); }
    bool waits() const override { return reading([&] { return is_unsettled(); }); }

    void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) override {
        const std::lock_guard<std::mutex> turn(turn_);
        Stop stop(host.interrupted);
        {
            const std::lock_guard<Lock> guard(lock_);
            unsettle();
            model_.labels.reserve_labels(n_labels);
            if (model_.decision) model_.decision->reserve(n_labels + 1, 0);
            model_.labels.n_labels = std::max(model_.labels.n_labels, n_labels);
        }
        try {
            const Source* source;
            rows.select(source);
            std::int64_t done = 0;
            renew_similarity(model_, stop);  // a failure may have kept it from being computed
            for (; done < rows.n && window_.filled < window_.size; ++done) wait(*source, labels[done], done, host, stop);
            learn_rest(*source, labels, done, rows.n, n_jobs, host, stop);
        } catch (...) {
            // Nothing here may fail: there may be no memory left.
            const std::lock_guard<Lock> guard(lock_);
            estimates_.begin_anew();
            model_.next_groups.reset();
            if (n_waiting() == 0) window_.drop_after(window_.learned);
            throw;
        }
    }

    std::shared_ptr<const Learner> settled(const Host& host) const override {
        std::shared_ptr<LearnerOf> copy;
        std::int64_t changes = 0;
        {
            const std::shared_lock<Lock> guard(lock_);
            if (!is_unsettled()) return nullptr;
            const std::lock_guard<std::mutex> one(settling_);
            if (settled_) return settled_;
            changes = changes_;
            copy = std::make_shared<LearnerOf>(*this);
            copy->hide_unlearned();
        }
        // Nobody is kept waiting by the learning, and it can be interrupted.
        Stop stop(host.interrupted);
        copy->renew_similarity(copy->model_, stop);
        copy->resolve_vigilance(copy->model_, host, stop);
        copy->learn_stretch(copy->model_, copy->window_.filled, copy->waiting_.view(), nullptr, host, stop);
        copy->waiting_.clear();
        const std::shared_lock<Lock> guard(lock_);
        const std::lock_guard<std::mutex> one(settling_);
        if (changes == changes_) settled_ = copy;
        return copy;
    }

    void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, const Answers& answers) const override {
        const Source* source;
        rows.select(source);
        Stop stop(host.interrupted);
        answering_.answer(*source, rows.n, n_labels, n_jobs, stop, answers);
    }

    Explained explain(const InputRows& row) const override {
        const Source* source;
        row.select(source);
        PredictionHere prediction(settings());
        const std::shared_lock<Lock> guard(lock_);
        return prediction.explain(model_, (*source)[0]);
    }

    State state(OfNodes wanted) const override {
        std::optional<Draft> draft;
        std::unique_ptr<LearnerOf> twin;
        {
            const LongRead guard(lock_);
            // A state that a learner may be made of must not have an old similarity.
            if (wanted == OfNodes::all && model_.similarity_is_due()) {
                twin = std::make_unique<LearnerOf>(*this);
            } else {
                draft = drafted(wanted);
            }
        }
        if (twin) {
            Stop never;
            twin->renew_similarity(twin->model_, never);
            draft = twin->drafted(wanted);
        }
        return std::move(*draft).finished();
    }

    std::unique_ptr<Learner> copy() const override {
        const LongRead guard(lock_);
        auto twin = std::make_unique<LearnerOf>(*this);
        // What another thread foresees while it learns is not part of the model.
        twin->model_.next_groups.reset();
        twin->model_.withdraw();
        twin->hide_unlearned();
        twin->drop_gone(twin->model_);
        return twin;
    }

    void absorb(const Learner& some, const std::int32_t* columns, std::int64_t n_labels, const Host& host) override {
        const auto& other = dynamic_cast<const LearnerOf&>(some);
        const LongRead theirs(other.lock_);
        const std::lock_guard<Lock> ours(lock_);
        Stop stop(host.interrupted);
        absorb_model(model_, other.model_, columns, n_labels, work_, stop);
        // The other's latest instances follow: together they end with the last `window` of both parts.
        const std::int64_t low = other.window_.latest().low;
        take_rows(window_, other.window_, {low, other.window_.learned}, settings().n_features);
        window_.learned = window_.filled;
        estimates_.begin_anew();
    }

private:
    static constexpr std::int64_t FEWEST_GONE = 64;
    // Rows that must come together before threads are gathered.
    static constexpr std::int64_t FEWEST_ROWS = 64;

    template <class Read>
    auto reading(Read read) const {
        const std::shared_lock<Lock> guard(lock_);
        return read();
    }

    // Waiting rows have changed: what was learned of them for readers is out of date. The model is locked.
    void unsettle() noexcept {
        ++changes_;
        settled_.reset();
    }

    // Whether readers need a copy in which all is done.
    bool is_unsettled() const noexcept { return n_waiting() > 0 || is_overdue(); }
    // Whether a failure has kept the similarity from being computed.
    bool is_overdue() const noexcept { return model_.similarity_is_due() && !is_renewing_; }
    std::int64_t n_waiting() const noexcept { return waiting_.size(); }
    // Drop rows of the window that are neither learned nor waiting: in a copy, another thread was just learning them.
    void hide_unlearned() noexcept {
        if (n_waiting() > 0) window_.learned = 0;
        window_.drop_after(n_waiting() > 0 ? n_waiting() : window_.learned);
    }

    // Take in one row of the first window; the one that fills it makes all of them learned.
    void wait(const Source& source, const LabelRow& labels, std::int64_t row, const Host& host, Stop& stop) {
        if (window_.filled + 1 == window_.size) return fill_window(source, labels, row, host, stop);
        const std::lock_guard<Lock> guard(lock_);
        std::int64_t n_labels = model_.labels.n_labels;
        for (std::int64_t place = 0; place < labels.n; ++place) n_labels = std::max(n_labels, labels.labels[place] + std::int64_t{1});
        model_.labels.reserve_labels(n_labels);
        waiting_.reserve(labels);
        window_.take(source, row, 1);
        waiting_.append(labels);
        model_.labels.n_labels = n_labels;
        unsettle();
    }

    // Learn the first window with its last row. Until that is done, the last row is in the buffer, but not among those that
    // wait: readers do not see it.
    void fill_window(const Source& source, const LabelRow& labels, std::int64_t row, const Host& host, Stop& stop) {
        ModelHere first(settings());
        first.labels.reserve_labels(model_.labels.n_labels);
        first.labels.n_labels = model_.labels.n_labels;
        WaitingLabels all = waiting_;
        all.append(labels);
        {
            const std::lock_guard<Lock> guard(lock_);
            window_.take(source, row, 1);
        }
        try {
            resolve_vigilance(first, host, stop);
            learn_stretch(first, window_.size, all.view(), nullptr, host, stop);
        } catch (...) {
            const std::lock_guard<Lock> guard(lock_);
            window_.learned = 0;
            window_.drop_after(window_.size - 1);
            throw;
        }
        const std::lock_guard<Lock> guard(lock_);
        model_ = std::move(first);
        waiting_.clear();
        unsettle();
    }

    // Learn all rows behind the first window, by portions.
    void learn_rest(const Source& source, const InputLabels& labels, std::int64_t done, std::int64_t n, std::int64_t n_jobs, const Host& host, Stop& stop) {
        std::optional<LookAhead<ModelHere>> ahead;
        if (n_jobs > 1 && n - done >= FEWEST_ROWS) ahead.emplace(n_jobs);
        while (done < n) {
            const std::int64_t portion = std::min(window_.portion(), n - done);
            {
                const std::lock_guard<Lock> guard(lock_);
                estimates_.shift(window_.take(source, done, portion));
            }
            if (ahead) ahead->forget_bandwidths();
            learn_stretch(model_, window_.filled, {labels.indptr + done, labels.labels}, ahead ? &*ahead : nullptr, host, stop);
            done += portion;
        }
    }

    // Learn the rows of the window up to `end`; `labels` begins with the labels of the first that is not learned.
    void learn_stretch(ModelHere& model, std::int64_t end, const InputLabels& labels, LookAhead<ModelHere>* ahead, const Host& host, Stop& stop) {
        const std::int64_t first = window_.learned;
        const auto labels_of = [&](std::int64_t position) { return labels[position - first]; };
        while (window_.learned < end) {
            const std::int64_t until = std::min(end, hold_round(model, host));
            while (window_.learned < until) {
                // A similarity holds for the rows up to the next one.
                const std::int64_t left = settings().learned ? model.similarity_due - model.labels.n_learned : INT64_MAX;
                learn_some(model, std::min(until - window_.learned, left), until, labels_of, ahead, stop);
                renew_similarity(model, stop);
            }
        }
    }

    // Learn some of the next so many rows.
    template <class LabelsOf>
    void learn_some(ModelHere& model, std::int64_t rest, std::int64_t stretch_end, const LabelsOf& labels_of, LookAhead<ModelHere>* ahead, Stop& stop) {
        const std::int64_t start = window_.learned;
        const std::int64_t block = ahead != nullptr ? ahead->length(rest, model) : 0;
        if (block > 0) {
            ahead->gather(settings());
            renew_screen(model, [&](std::int64_t n, std::int64_t step, WorkOnStretch work) { ahead->share(n, step, work); });
            ahead->learn(model, window_, block, stretch_end, [&](std::int64_t j) { return labels_of(start + j); }, work_, lock_, stop);
            return;
        }
        const std::int64_t nodes = model.n_nodes;
        const std::int64_t n = ahead != nullptr ? std::min(rest, LookAhead<ModelHere>::PAUSE) : rest;
        for (std::int64_t j = 0; j < n; ++j) learn_one(model, labels_of(start + j), stop);
        if (ahead != nullptr) ahead->note(n, model.n_nodes - nodes);
    }

    // Let the nodes renew what they need for searching, if it is time.
    void renew_screen(ModelHere& model, Sharing sharing = UNSHARED) {
        if (auto successor = model.nodes.successor(model.n_nodes, model.learning_r(), sharing)) {
            const std::lock_guard<Lock> guard(lock_);
            model.nodes.take(std::move(*successor));
        }
    }

    // Make the model anew without the nodes that were given up.
    void drop_gone(ModelHere& model) {
        if (model.n_gone == 0) return;
        ModelHere next = without_gone(model);
        const std::lock_guard<Lock> guard(lock_);
        model = std::move(next);
    }

    // Compute the learned similarity anew if it is time and was not done with the row. It takes its time: meanwhile readers go
    // by the old one. A failure leaves it due: readers get a copy that has it.
    void renew_similarity(ModelHere& model, Stop& stop) {
        if (!model.similarity_is_due()) return;
        const Raised renewing(lock_, is_renewing_);
        drop_gone(model);
        typename ModelHere::NodesAsLearned next = model.weighed(stop);
        const std::lock_guard<Lock> guard(lock_);
        model.take_similarity(std::move(next));
        unsettle();
    }

    // What is known, as arrays. The model is locked, or known to nobody else.
    Draft drafted(OfNodes wanted) const {
        Draft draft = write_state(model_, wanted);
        State& state = draft.state;
        state.waiting_indptr = waiting_.starts;
        state.waiting_labels = waiting_.labels;
        // Rows that another thread is just learning are not part of the model yet.
        const std::int64_t end = n_waiting() > 0 ? n_waiting() : window_.learned;
        for (std::int64_t j = window_.latest().low; j < end; ++j) RowsOfState<Row>::append(state.recent, window_.row(j), settings().n_features);
        return draft;
    }

    // Learn the next row of the window.
    void learn_one(ModelHere& model, const LabelRow& labels, Stop& stop) {
        stop.check();
        // So rarely that it costs a node no more than to be made once again.
        if (model.n_gone > FEWEST_GONE + model.n_kept() / 4) drop_gone(model);
        renew_screen(model);
        const std::int64_t position = window_.learned;
        const Instance instance{window_.row(position), labels};
        work_.found.clear();
        Query<Row> query{.x = instance.x, .found = &work_.found};
        if (model.n_nodes > 0) {
            query = model.query_to_learn(instance.x, model.n_nodes, model.bandwidth_sums.data(), work_.found, work_.grouping, work_.space);
            model.nodes.search(&query, 1, work_.space.nodes, stop);
        }
        model.ask_to_learn(query, work_.grouping, work_.voting, work_.space, stop);
        const std::int64_t threshold = model.settings.threshold(work_.grouping);
        const bool joining = ModelHere::joins(work_.found, threshold);
        const double* bandwidths = joining ? nullptr : estimates_.bandwidths(window_, position, settings().bandwidth_width());
        const std::lock_guard<Lock> guard(lock_);
        commit(model, instance, threshold, joining, bandwidths, work_);
        ++window_.learned;
        renew_at_once(model);
    }

    void resolve_vigilance(ModelHere& model, const Host& host, Stop& stop) {
        if (model.settings.finds_vigilance()) model.settings.vigilance = vigilance_of_window<ModelHere>(settings(), window_, estimates_, host, stop);
    }

    // Hold a round of grouping if the next instance is due for one; return where the next may be due. Its groups are part
    // of the model only with that instance.
    std::int64_t hold_round(ModelHere& model, const Host& host) {
        if constexpr (mode != Mode::clustered) return INT64_MAX;
        const std::int64_t number = model.labels.n_learned + 1, size = window_.size;
        if (number == 1 || number % size == 0) {
            Groups next = estimates_.round_of_groups(window_, model.groups, model.settings, number, host);
            const std::lock_guard<Lock> guard(lock_);
            model.next_groups = std::move(next);
        }
        return window_.learned + size - number % size;
    }

    void restore(const State& state) {
        read_state(model_, state);
        const std::int64_t n_recent = RowsOfState<Row>::count(state.recent, settings().n_features);
        if (n_recent > 0) window_.take(RowsOfState<Row>::source(state.recent, settings().n_features), 0, n_recent);
        waiting_.starts = state.waiting_indptr;
        waiting_.labels = state.waiting_labels;
        window_.learned = n_recent - n_waiting();
        Stop never;
        renew_similarity(model_, never);
    }

    const Settings told_;  // the model has its vigilance resolved
    mutable Lock lock_;
    std::mutex turn_;  // learners take turns
    ModelHere model_;
    Window window_;
    typename ModelHere::Work work_;
    WindowEstimates<mode, Window> estimates_;
    WaitingLabels waiting_;
    std::int64_t changes_ = 0;  // of the waiting rows
    bool is_renewing_ = false;  // the similarity, while readers go by the old one
    mutable Answering<ModelHere> answering_{model_, told_, lock_};
    mutable std::mutex settling_;
    mutable std::shared_ptr<const Learner> settled_;  // this learner with the waiting rows learned, once somebody has asked
};

}  // namespace mlca::MLCA_LEVEL
