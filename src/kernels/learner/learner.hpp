// The learner: learns a stream of labelled rows, and predicts with the resulting model.
//
// Only one thread learns at a time (`turn_of` in mlca/base.py); any number of threads may read meanwhile. The learning
// thread searches without a lock, because no other thread changes the model, and holds the lock only while it commits a
// row; readers share the lock. So each prediction uses the model as it was after some whole row, and after a failure or
// an interrupt the model has learned exactly the committed rows.
//
// The first `window` rows of a stream wait until all of them have arrived. They are learned into a separate model,
// which then replaces the empty one. If that fails, none of them is learned and the last row is not accepted. An
// earlier reader gets a copy that has learned the waiting rows with the incomplete window (`settled`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>

#include "bandwidth/window_estimates.hpp"
#include "base/lock.hpp"
#include "base/team.hpp"
#include "learner/interface.hpp"
#include "learner/merge.hpp"
#include "learner/model.hpp"
#include "learner/prediction.hpp"
#include "learner/restore.hpp"
#include "learner/speculative_learning.hpp"

namespace mlca::MLCA_LEVEL {

// The labels of the rows that wait for the first window to fill; the rows themselves are in the window.
struct WaitingLabels {
    // Number of waiting rows.
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(starts.size()) - 1; }
    InputLabels view() const noexcept { return {starts.data(), labels.data()}; }

    // Reserve memory for one more row, so that `append` cannot fail.
    void reserve(const LabelRow& row) {
        starts.reserve(starts.size() + 1);
        labels.reserve(labels.size() + static_cast<std::size_t>(row.n));
    }
    void append(const LabelRow& row) {
        labels.insert(labels.end(), row.labels, row.labels + row.n);
        starts.push_back(static_cast<std::int64_t>(labels.size()));
    }
    void clear() noexcept {
        starts.resize(1);
        labels.clear();
    }

    Array<std::int64_t> starts{Array<std::int64_t>(1, 0)};
    Array<std::int32_t> labels;
};

template <class NodesOf>
class LearnerOf final : public Learner {
public:
    using Nodes = NodesOf;
    using Window = typename Nodes::Window;
    using Source = typename Window::Source;
    using Row = typename Nodes::Row;
    using ModelHere = Model<Nodes>;
    using LabelledRow = typename ModelHere::LabelledRow;
    using PredictionHere = Prediction<ModelHere>;
    using Speculation = SpeculativeLearning<ModelHere>;

    explicit LearnerOf(const Settings& settings) : settings_(settings), model_(settings), window_(settings), work_(settings) {}
    LearnerOf(const Settings& settings, const State& state) : LearnerOf(settings) { restore(state); }
    LearnerOf(const LearnerOf& other)
        : settings_(other.settings_), model_(other.model_), window_(other.window_), work_(other.settings_), waiting_(other.waiting_) {}

    bool is_sparse() const noexcept override { return std::is_same_v<Row, SparseRow>; }
    const Settings& settings() const noexcept override { return settings_; }
    std::int64_t n_labels() const override { return reading([&] { return model_.labels.n_labels; }); }
    std::int64_t n_seen() const override { return reading([&] { return model_.labels.n_learned + n_waiting(); }); }
    std::int64_t n_nodes() const override { return reading([&] { return model_.n_kept(); }); }
    double vigilance() const override { return reading([&] { return model_.settings.vigilance; }); }
    bool waits() const override { return reading([&] { return is_unsettled(); }); }

    void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) override {
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
            renew_similarity(model_, stop);  // a failure may have left it out of date
            for (; done < rows.n && window_.filled < window_.size; ++done) wait(*source, labels[done], done, host, stop);
            std::optional<Speculation> speculation;
            if (n_jobs > 1 && rows.n - done >= FEWEST_ROWS) speculation.emplace(n_jobs);
            while (done < rows.n) {
                const std::int64_t portion = std::min(window_.portion(), rows.n - done);
                take_portion(*source, done, portion);
                if (speculation) speculation->forget_bandwidths();
                learn_rows(model_, window_.filled, {labels.indptr + done, labels.labels}, speculation ? &*speculation : nullptr, host, stop);
                done += portion;
            }
        } catch (...) {
            // Nothing here may fail: memory may be exhausted.
            const std::lock_guard<Lock> guard(lock_);
            estimates_.start_over();
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
            if (settled_) return settled_;
            changes = changes_;
            copy = std::make_shared<LearnerOf>(*this);
            copy->hide_unlearned();
        }
        // No lock is held while learning, so learning can be interrupted.
        Stop stop(host.interrupted);
        copy->renew_similarity(copy->model_, stop);
        copy->resolve_vigilance(copy->model_, host, stop);
        copy->learn_rows(copy->model_, copy->window_.filled, copy->waiting_.view(), nullptr, host, stop);
        copy->waiting_.clear();
        const std::lock_guard<Lock> guard(lock_);
        if (changes == changes_) settled_ = copy;
        return copy;
    }

    void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, const Answers& answers) const override {
        const Source* source;
        rows.select(source);
        Stop stop(host.interrupted);
        predictor_.answer(*source, rows.n, n_labels, n_jobs, stop, answers);
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
            // A state from which a learner can be restored must not contain an outdated similarity.
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
        // Groups computed ahead by a learning thread are not part of the model.
        twin->model_.next_groups.reset();
        twin->model_.withdraw();
        twin->hide_unlearned();
        twin->drop_gone(twin->model_);
        return twin;
    }

    void absorb(const Learner& some, const std::int32_t* columns, std::int64_t n_labels, bool append, const Host& host) override {
        const auto& other = dynamic_cast<const LearnerOf&>(some);
        const LongRead theirs(other.lock_);
        const std::lock_guard<Lock> ours(lock_);
        Stop stop(host.interrupted);
        absorb_model(model_, other.model_, columns, n_labels, append, work_, stop);
        // Append the latest rows of the other learner, as if its stream had followed this learner's.
        StateRows rows;
        other.append_latest(other.window_.learned, rows);
        take_rows(rows);
        window_.learned = window_.filled;
        estimates_.start_over();
    }

private:
    static constexpr std::int64_t FEWEST_GONE = 64;
    // Fewest rows per call for which threads are started.
    static constexpr std::int64_t FEWEST_ROWS = 64;

    template <class Read>
    auto reading(Read read) const {
        const std::shared_lock<Lock> guard(lock_);
        return read();
    }

    // Invalidate the settled copy, because the waiting rows or the similarity change. The model is locked.
    void unsettle() noexcept {
        ++changes_;
        settled_.reset();
    }

    // Whether readers need a settled copy.
    bool is_unsettled() const noexcept { return n_waiting() > 0 || is_overdue(); }
    // Whether a failure has left the similarity out of date.
    bool is_overdue() const noexcept { return model_.similarity_is_due() && !is_renewing_; }
    std::int64_t n_waiting() const noexcept { return waiting_.size(); }
    // Drop rows of the window that are neither learned nor waiting. In a copy these are rows that another thread was learning.
    void hide_unlearned() noexcept {
        if (n_waiting() > 0) window_.learned = 0;
        window_.drop_after(n_waiting() > 0 ? n_waiting() : window_.learned);
    }

    // Append one row of the first window; the last row triggers learning of the whole window.
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

    // Learn the first window including its last row. Until that succeeds, the last row is in the buffer but not counted as
    // waiting, so readers do not see it.
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
            learn_rows(first, window_.size, all.view(), nullptr, host, stop);
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

    // Append the next rows to the window.
    void take_portion(const Source& source, std::int64_t first, std::int64_t n) {
        const std::lock_guard<Lock> guard(lock_);
        estimates_.shift(window_.take(source, first, n));
    }

    // Learn the rows of the window up to `end`; `labels` starts with the labels of the first row not yet learned.
    void learn_rows(ModelHere& model, std::int64_t end, const InputLabels& labels, Speculation* speculation, const Host& host, Stop& stop) {
        const std::int64_t first = window_.learned;
        const auto share = [&](std::int64_t count, std::int64_t step, WorkOnStretch work) {
            speculation == nullptr ? work(0, count) : speculation->share(count, step, work);
        };
        std::int64_t round_end = first;  // where the next round of feature grouping is due
        while (window_.learned < end) {
            if (window_.learned == round_end) round_end = std::min(end, hold_round(model, host));
            // Stop at the row after which the similarity is due to be recomputed.
            const std::int64_t left = settings().learned ? model.similarity_due - model.labels.n_learned : INT64_MAX;
            const std::int64_t n = std::min(round_end - window_.learned, left);
            const auto labels_of = [&, start = window_.learned - first](std::int64_t j) { return labels[start + j]; };
            if (const std::int64_t block = speculation != nullptr ? speculation->length(n, model) : 0; block > 0) {
                speculation->gather(settings());
                renew_screen(model, share);
                speculation->learn(model, window_, block, round_end, labels_of, work_, lock_, stop);
            } else {
                const std::int64_t n_nodes = model.n_nodes;
                const std::int64_t alone = speculation != nullptr ? std::min(n, Speculation::PAUSE) : n;
                for (std::int64_t j = 0; j < alone && !model.is_outdated; ++j) {
                    stop.check();
                    // Rebuild so rarely that, per node, it costs at most as much as creating the node a second time.
                    if (model.n_gone > FEWEST_GONE + model.n_kept() / 4) drop_gone(model);
                    renew_screen(model);
                    const LabelledRow row{window_.row(window_.learned), labels_of(j)};
                    const std::int64_t threshold = model.find(row, work_, stop);
                    const bool joining = ModelHere::joins(work_.found, threshold);
                    const double* bandwidths = joining ? nullptr : estimates_.bandwidths(window_, window_.learned, settings());
                    const std::lock_guard<Lock> guard(lock_);
                    model.commit(row, threshold, bandwidths, work_);
                    ++window_.learned;
                    renew_at_once(model);
                }
                if (speculation != nullptr) speculation->note(alone, model.n_nodes - n_nodes);
            }
            renew_similarity(model, stop, share);
        }
    }

    // Rebuild the nodes' screening data if a rebuild is due.
    void renew_screen(ModelHere& model, ParallelFor parallel_for = ON_ONE_THREAD) {
        if (auto successor = model.nodes.renewed(model.n_nodes, model.learning_r(), parallel_for)) {
            const std::lock_guard<Lock> guard(lock_);
            model.nodes.take(std::move(*successor));
        }
    }

    // Rebuild the model without replaced nodes.
    void drop_gone(ModelHere& model) {
        if (model.n_gone == 0) return;
        ModelHere next = without_gone(model);
        const std::lock_guard<Lock> guard(lock_);
        model = std::move(next);
    }

    // Recompute the learned similarity if it is due and was not recomputed when the row was committed. This is slow;
    // readers use the old similarity meanwhile. After a failure it stays due, and readers get a copy in which it is
    // recomputed.
    void renew_similarity(ModelHere& model, Stop& stop, ParallelFor parallel_for = ON_ONE_THREAD) {
        if (!model.similarity_is_due()) return;
        const ScopedFlag renewing(lock_, is_renewing_);
        drop_gone(model);
        typename ModelHere::RankIndexOfNodes next = model.weighed(stop, parallel_for);
        const std::lock_guard<Lock> guard(lock_);
        model.take_similarity(std::move(next));
        unsettle();
    }

    // The state as arrays. The model is locked, or no other thread has access to it.
    Draft drafted(OfNodes wanted) const {
        Draft draft = write_state(model_, wanted);
        State& state = draft.state;
        state.waiting_indptr = waiting_.starts;
        state.waiting_labels = waiting_.labels;
        // Rows that another thread is learning are not part of the model yet.
        const std::int64_t end = n_waiting() > 0 ? n_waiting() : window_.learned;
        append_latest(end, state.recent);
        return draft;
    }

    // Append the window's latest rows, up to position `end`, to `rows`.
    void append_latest(std::int64_t end, StateRows& rows) const {
        for (std::int64_t j = window_.latest().low; j < end; ++j) RowsOfState<Row>::append(rows, window_.row(j), settings().n_features);
    }
    // Append rows to the window; return their number.
    std::int64_t take_rows(const StateRows& rows) {
        const std::int64_t n = RowsOfState<Row>::count(rows, settings().n_features);
        if (n > 0) window_.take(RowsOfState<Row>::source(rows, settings().n_features), 0, n);
        return n;
    }

    void resolve_vigilance(ModelHere& model, const Host& host, Stop& stop) {
        if (model.settings.finds_vigilance()) model.settings.vigilance = vigilance_of_window<ModelHere>(settings(), window_, estimates_, host, stop);
    }

    // Compute a round of feature grouping if one is due with the next row; return the row with which the next round may
    // be due. The new groups become part of the model together with the next row.
    std::int64_t hold_round(ModelHere& model, const Host& host) {
        if (model.settings.mode != Mode::clustered) return INT64_MAX;
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
        const std::int64_t n_recent = take_rows(state.recent);
        waiting_.starts = state.waiting_indptr;
        waiting_.labels = state.waiting_labels;
        window_.learned = n_recent - n_waiting();
        Stop never;
        renew_similarity(model_, never);
    }

    const Settings settings_;  // as passed; the model's settings hold the vigilance determined from the first window
    mutable Lock lock_;
    ModelHere model_;
    Window window_;
    typename ModelHere::Work work_;
    WindowEstimates<Window> estimates_;
    WaitingLabels waiting_;
    std::int64_t changes_ = 0;  // number of calls of `unsettle`
    bool is_renewing_ = false;  // whether the similarity is being recomputed while readers use the old one
    mutable BatchPredictor<ModelHere> predictor_{model_, settings_, lock_};
    mutable std::shared_ptr<const Learner> settled_;  // copy that has learned the waiting rows; made when first needed
};

}  // namespace mlca::MLCA_LEVEL
