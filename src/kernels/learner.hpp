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
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <vector>

#include "idle.hpp"
#include "lock.hpp"
#include "lookahead.hpp"
#include "model.hpp"
#include "sparse_window.hpp"
#include "state.hpp"
#include "stop.hpp"

namespace mlca::MLCA_LEVEL {

// Rows to learn or to judge; a learner reads the form that its nodes have.
struct InputRows {
    std::int64_t n;
    DenseRows dense;
    SparseRows sparse;

    void select(const DenseRows*& rows) const noexcept { rows = &dense; }
    void select(const SparseRows*& rows) const noexcept { rows = &sparse; }
};

// The labels of rows: row j has labels[indptr[j]] to labels[indptr[j + 1]].
struct InputLabels {
    const std::int64_t* indptr;
    const std::int32_t* labels;

    LabelRow operator[](std::int64_t j) const noexcept { return {labels + indptr[j], indptr[j + 1] - indptr[j]}; }
};

// What the learner asks its surroundings for.
struct Host {
    // Whether the user has interrupted; may be empty.
    std::function<bool()> interrupted;
    // The order of d attributes in a round of grouping (clustered only).
    std::function<Array<std::int64_t>(std::int64_t)> order_of_round;
};

// How one row's labels are predicted, with every number on the way.
struct Explained {
    Array<std::int64_t> nodes, node_counts, bins, label_counts;  // label_counts: one row a node
    Array<double> distances, votes, prior, likelihood_with, likelihood_without, posterior;
};

class Learner {
public:
    virtual ~Learner() = default;

    virtual bool is_sparse() const noexcept = 0;
    virtual const Settings& settings() const noexcept = 0;
    virtual std::int64_t n_labels() const = 0;
    virtual std::int64_t n_seen() const = 0;
    virtual std::int64_t n_nodes() const = 0;
    // Whether rows wait for the first window to fill.
    virtual bool waits() const = 0;

    // Learn rows in order; at least `n_labels` labels are known afterwards. Throws Stopped after an interrupt.
    virtual void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) = 0;
    // A learner in which all that came is learned: nullptr if that is this one.
    virtual std::shared_ptr<const Learner> settled(const Host& host) const = 0;
    // Write the probability of the first `n_labels` labels for each row. The learner must be settled.
    virtual void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, double* out) const = 0;
    virtual Explained explain(const InputRows& row) const = 0;
    virtual State state() const = 0;
    virtual std::unique_ptr<Learner> copy() const = 0;
    // Replay the nodes of another settled learner of the same kind; `columns` gives the numbers of its labels here. A
    // failure or an interrupt leaves this learner half-way. Both must be copies that nobody else knows.
    virtual void absorb(const Learner& other, const std::int32_t* columns, std::int64_t n_labels, const Host& host) = 0;
};

template <Mode mode, template <Mode> class NodesOf>
class LearnerOf final : public Learner {
public:
    using Nodes = NodesOf<mode>;
    using Window = typename Nodes::Window;
    using Source = typename Window::Source;
    using Row = typename Nodes::Row;
    using ModelHere = Model<mode, Nodes>;
    using Instance = typename ModelHere::Instance;

    explicit LearnerOf(const Settings& settings) : model_(settings), window_(settings.window, settings.n_features), work_(settings) {}
    LearnerOf(const Settings& settings, const State& state) : LearnerOf(settings) { restore(state); }
    LearnerOf(const LearnerOf& other)
        : model_(other.model_), window_(other.window_), work_(other.model_.settings), waiting_starts_(other.waiting_starts_), waiting_labels_(other.waiting_labels_) {}

    bool is_sparse() const noexcept override { return std::is_same_v<Row, SparseRow>; }
    const Settings& settings() const noexcept override { return model_.settings; }
    std::int64_t n_labels() const override { return reading([&] { return model_.labels.n_labels; }); }
    std::int64_t n_seen() const override { return reading([&] { return model_.labels.n_learned + n_waiting(); }); }
    std::int64_t n_nodes() const override { return reading([&] { return model_.n_nodes; }); }
    bool waits() const override { return reading([&] { return n_waiting() > 0; }); }

    void learn(const InputRows& rows, const InputLabels& labels, std::int64_t n_labels, std::int64_t n_jobs, const Host& host) override {
        const std::lock_guard<std::mutex> turn(turn_);
        Stop stop(host.interrupted);
        {
            const std::lock_guard<Lock> guard(lock_);
            unsettle();
            model_.labels.reserve_labels(n_labels);
            model_.labels.n_labels = std::max(model_.labels.n_labels, n_labels);
        }
        try {
            const Source* source;
            rows.select(source);
            std::int64_t done = 0;
            for (; done < rows.n && window_.filled < window_.size; ++done) wait(*source, labels[done], done, host, stop);
            learn_rest(*source, labels, done, rows.n, n_jobs, host, stop);
        } catch (...) {
            // Nothing here may fail: there may be no memory left.
            const std::lock_guard<Lock> guard(lock_);
            walker_ = typename Window::Walker();
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
            if (n_waiting() == 0) return nullptr;
            const std::lock_guard<std::mutex> one(settling_);
            if (settled_) return settled_;
            changes = changes_;
            copy = std::make_shared<LearnerOf>(*this);
            copy->hide_unlearned();
        }
        // Nobody is kept waiting by the learning, and it can be interrupted.
        Stop stop(host.interrupted);
        copy->learn_stretch(copy->model_, copy->window_.filled, copy->waiting(), nullptr, host, stop);
        copy->forget_waiting();
        const std::shared_lock<Lock> guard(lock_);
        const std::lock_guard<std::mutex> one(settling_);
        if (changes == changes_) settled_ = copy;
        return copy;
    }

    void predict(const InputRows& rows, std::int64_t n_labels, std::int64_t n_jobs, const Host& host, double* out) const override {
        const Source* source;
        rows.select(source);
        const std::int64_t n_parts = std::min(n_jobs, (rows.n + TOGETHER - 1) / TOGETHER);
        Stop stop(host.interrupted);
        Team team(std::max<std::int64_t>(1, n_parts));
        team.run([&](std::int64_t part) {
            try {
                predict_part(*source, rows.n * part / team.size(), rows.n * (part + 1) / team.size(), n_labels, stop, out);
            } catch (...) {
                stop.request();
                throw;
            }
        });
    }

    Explained explain(const InputRows& row) const override {
        const Source* source;
        row.select(source);
        typename ModelHere::Work work(settings());
        Stop never;
        const std::shared_lock<Lock> guard(lock_);
        if (model_.n_nodes > 0) {
            Query<Row> query = model_.query_to_predict((*source)[0], work.found, work.grouping, work.space);
            model_.nodes.search(&query, 1, work.space, never);
        }
        work.votes.reserve(model_.labels.n_labels);
        model_.labels.collect(work.found, work.votes);
        return explained(work);
    }

    State state() const override {
        const std::shared_lock<Lock> guard(lock_);
        State state;
        const LabelMemory& labels = model_.labels;
        const std::int64_t n = model_.n_nodes, width = model_.bandwidths.width();
        state.n_labels = labels.n_labels;
        state.tally = {n, labels.n_learned, labels.n_voted, labels.n_voted_alone};
        state.counts = labels.node_counts;
        state.bandwidths.resize(static_cast<std::size_t>(n * width));
        for (std::int64_t k = 0; k < n; ++k) {
            std::copy_n(model_.bandwidths[k], width, state.bandwidths.data() + k * width);
            append(state.weights, model_.nodes.row(k));
            const auto& own = labels.at_nodes[k];
            state.label_counts.append(own.keys, own.values, own.length);
        }
        for (std::int64_t i = 0; i < labels.n_labels; ++i) {
            for (std::int64_t bin = 0; bin < settings().n_bins(); ++bin) {
                state.with_label.push_back(labels.with_full(i, bin));
                state.without_label.push_back(labels.without_full(i, bin));
            }
        }
        state.waiting_indptr = waiting_starts_;
        state.waiting_labels = waiting_labels_;
        state.group_centres = model_.groups.centres();
        state.group_counts = model_.groups.counts();
        state.group_bandwidths = model_.groups.bandwidths();
        // Rows that another thread is just learning are not part of the model yet.
        const std::int64_t end = n_waiting() > 0 ? n_waiting() : window_.learned;
        for (std::int64_t j = window_.latest().low; j < end; ++j) append(state.recent, window_.row(j));
        return state;
    }

    std::unique_ptr<Learner> copy() const override {
        const std::shared_lock<Lock> guard(lock_);
        auto twin = std::make_unique<LearnerOf>(*this);
        // What another thread foresees while it learns is not part of the model.
        twin->model_.next_groups.reset();
        twin->model_.nodes.withdraw(twin->model_.n_nodes);
        twin->hide_unlearned();
        return twin;
    }

    void absorb(const Learner& some, const std::int32_t* columns, std::int64_t n_labels, const Host& host) override {
        const auto& other = dynamic_cast<const LearnerOf&>(some);
        const std::shared_lock<Lock> theirs(other.lock_);
        const std::lock_guard<Lock> ours(lock_);
        model_.labels.reserve_labels(n_labels);
        model_.labels.n_labels = std::max(model_.labels.n_labels, n_labels);
        Stop stop(host.interrupted);
        for (std::int64_t k = 0; k < other.model_.n_nodes; ++k) {
            stop.check();
            replay(other.model_, k, columns, stop);
        }
        if constexpr (mode == Mode::clustered) model_.groups.absorb(other.model_.groups, settings().common_threshold(1));
        // The other's latest instances follow: together they end with the last `window` of both parts.
        const std::int64_t low = other.window_.latest().low;
        take_rows(other.window_, low, other.window_.learned);
        window_.learned = window_.filled;
        walker_ = typename Window::Walker();
    }

private:
    // How long a prediction of many rows keeps the learner waiting, and others who come after it.
    static constexpr std::chrono::milliseconds SLICE{10};
    // Rows that must come together before threads are gathered.
    static constexpr std::int64_t FEWEST_ROWS = 64;

    // Working space of a prediction.
    struct Reader {
        explicit Reader(const Settings& told) : work(told), found(static_cast<std::size_t>(TOGETHER), Shortlist(told.n_neighbors)) {}

        typename ModelHere::Work work;
        std::vector<Shortlist> found;
        Array<double> usual;  // the probability of labels without votes
    };

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

    std::int64_t n_waiting() const noexcept { return static_cast<std::int64_t>(waiting_starts_.size()) - 1; }
    InputLabels waiting() const noexcept { return {waiting_starts_.data(), waiting_labels_.data()}; }
    // Drop rows of the window that are neither learned nor waiting: in a copy, another thread was just learning them.
    void hide_unlearned() noexcept {
        if (n_waiting() > 0) window_.learned = 0;
        window_.drop_after(n_waiting() > 0 ? n_waiting() : window_.learned);
    }
    void forget_waiting() noexcept {
        waiting_starts_.resize(1);
        waiting_labels_.clear();
    }

    // Take in one row of the first window; the one that fills it makes all of them learned.
    void wait(const Source& source, const LabelRow& own, std::int64_t row, const Host& host, Stop& stop) {
        if (window_.filled + 1 == window_.size) return fill_window(source, own, row, host, stop);
        const std::lock_guard<Lock> guard(lock_);
        std::int64_t n_labels = model_.labels.n_labels;
        for (std::int64_t place = 0; place < own.n; ++place) n_labels = std::max(n_labels, own.labels[place] + std::int64_t{1});
        model_.labels.reserve_labels(n_labels);
        waiting_starts_.reserve(waiting_starts_.size() + 1);
        waiting_labels_.reserve(waiting_labels_.size() + static_cast<std::size_t>(own.n));
        window_.take(source, row, 1);
        waiting_labels_.insert(waiting_labels_.end(), own.labels, own.labels + own.n);
        waiting_starts_.push_back(static_cast<std::int64_t>(waiting_labels_.size()));
        model_.labels.n_labels = n_labels;
        unsettle();
    }

    // Learn the first window with its last row. Until that is done, the last row is in the buffer, but not among those that
    // wait: readers do not see it.
    void fill_window(const Source& source, const LabelRow& own, std::int64_t row, const Host& host, Stop& stop) {
        ModelHere first(settings());
        first.labels.reserve_labels(model_.labels.n_labels);
        first.labels.n_labels = model_.labels.n_labels;
        Array<std::int64_t> starts = waiting_starts_;
        Array<std::int32_t> labels = waiting_labels_;
        labels.insert(labels.end(), own.labels, own.labels + own.n);
        starts.push_back(static_cast<std::int64_t>(labels.size()));
        {
            const std::lock_guard<Lock> guard(lock_);
            window_.take(source, row, 1);
        }
        try {
            learn_stretch(first, window_.size, {starts.data(), labels.data()}, nullptr, host, stop);
        } catch (...) {
            const std::lock_guard<Lock> guard(lock_);
            window_.learned = 0;
            window_.drop_after(window_.size - 1);
            throw;
        }
        const std::lock_guard<Lock> guard(lock_);
        model_ = std::move(first);
        forget_waiting();
        unsettle();
    }

    // Learn all rows behind the first window, by portions.
    void learn_rest(const Source& source, const InputLabels& labels, std::int64_t done, std::int64_t n, std::int64_t n_jobs, const Host& host, Stop& stop) {
        std::optional<LookAhead<ModelHere>> ahead;
        if (n_jobs > 1 && n - done >= FEWEST_ROWS) ahead.emplace(n_jobs, settings());
        while (done < n) {
            const std::int64_t portion = std::min(window_.portion(), n - done);
            {
                const std::lock_guard<Lock> guard(lock_);
                walker_.shift(window_.take(source, done, portion));
            }
            if (ahead) ahead->forget_bandwidths();
            learn_stretch(model_, window_.filled, {labels.indptr + done, labels.labels}, ahead ? &*ahead : nullptr, host, stop);
            done += portion;
        }
    }

    // Learn the rows of the window up to `end`; `labels` begins with the labels of the first that is not learned.
    void learn_stretch(ModelHere& model, std::int64_t end, const InputLabels& labels, LookAhead<ModelHere>* ahead, const Host& host, Stop& stop) {
        const std::int64_t first = window_.learned;
        const auto own = [&](std::int64_t position) { return labels[position - first]; };
        while (window_.learned < end) {
            const std::int64_t until = std::min(end, hold_round(model, host));
            while (window_.learned < until) {
                const std::int64_t rest = until - window_.learned;
                const std::int64_t block = ahead != nullptr ? ahead->length(rest, model) : 0;
                if (block > 0) {
                    renew(model);
                    const std::int64_t start = window_.learned;
                    ahead->learn(model, window_, block, until, [&](std::int64_t j) { return own(start + j); }, work_.votes, lock_, stop);
                    continue;
                }
                const std::int64_t start = window_.learned, nodes = model.n_nodes;
                const std::int64_t n = ahead != nullptr ? std::min(rest, LookAhead<ModelHere>::PAUSE) : rest;
                for (std::int64_t j = 0; j < n; ++j) learn_one(model, own(start + j), stop);
                if (ahead != nullptr) ahead->note(n, model.n_nodes - nodes);
            }
        }
    }

    // Let the nodes renew what they need for searching, if it is time.
    void renew(ModelHere& model) {
        if (auto successor = model.nodes.successor(model.n_nodes, model.learning_r())) {
            const std::lock_guard<Lock> guard(lock_);
            model.nodes.take(std::move(*successor));
        }
    }

    // Learn the next row of the window.
    void learn_one(ModelHere& model, const LabelRow& own, Stop& stop) {
        stop.check();
        renew(model);
        const std::int64_t position = window_.learned;
        const Instance instance{window_.row(position), own};
        work_.found.clear();
        if (model.n_nodes > 0) {
            Query<Row> query = model.query_to_learn(instance.x, model.n_nodes, model.bandwidth_sums.data(), work_.found, work_.grouping, work_.space);
            model.nodes.search(&query, 1, work_.space, stop);
        }
        const std::int64_t threshold = settings().threshold(work_.grouping);
        const bool joining = ModelHere::joins(work_.found, threshold);
        if (!joining) estimate_bandwidths(position);
        const std::lock_guard<Lock> guard(lock_);
        model.prepare(instance, work_.found, joining, work_.votes);
        if (joining) {
            model.join_winner(instance, threshold, work_.found, work_.votes);
        } else {
            model.prepare_node(instance);
            model.nodes.create(model.n_nodes, instance.x, bandwidths_.data());
            model.become_node(instance, bandwidths_.data(), work_.found, work_.votes);
        }
        ++window_.learned;
    }

    void estimate_bandwidths(std::int64_t position) {
        bandwidths_.resize(static_cast<std::size_t>(settings().bandwidth_width()));
        if constexpr (mode == Mode::common) {
            bandwidths_[0] = walker_.common_bandwidth(window_, position);
        } else {
            walker_.bandwidths(window_, position, bandwidths_.data());
        }
    }

    // Hold a round of grouping if the next instance is due for one; return where the next may be due. Its groups are part
    // of the model only with that instance.
    std::int64_t hold_round(ModelHere& model, const Host& host) {
        if constexpr (mode != Mode::clustered) return INT64_MAX;
        const std::int64_t number = model.labels.n_learned + 1, size = window_.size;
        if (number == 1 || number % size == 0) {
            const Array<double>& means = walker_.means(window_, window_.learned);
            const Array<std::int64_t> order = host.order_of_round(number / size);
            Array<double> values(means.size());
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = means[static_cast<std::size_t>(order[i])];
            Groups next = model.groups;
            next.learn(values, size, settings().common_threshold(1));
            const std::lock_guard<Lock> guard(lock_);
            model.next_groups = std::move(next);
        }
        return window_.learned + size - number % size;
    }

    void predict_part(const Source& source, std::int64_t first, std::int64_t end, std::int64_t n_labels, Stop& stop, double* out) const {
        auto reader = idle_readers_.borrow([this] { return std::make_unique<Reader>(settings()); });
        Stop never;  // interrupts are looked for between slices only, when nothing is locked
        while (first < end) {
            stop.check();
            const std::shared_lock<Lock> guard(lock_);
            reader->work.votes.reserve(model_.labels.n_labels);
            fill_in_usual(n_labels, reader->usual);
            const auto begun = Stop::Clock::now();
            do {
                const std::int64_t n = mode == Mode::clustered ? 1 : std::min(TOGETHER, end - first);
                predict_some(source, first, n, n_labels, *reader, never, out);
                first += n;
            } while (first < end && Stop::Clock::now() - begun < SLICE);
        }
        idle_readers_.give_back(std::move(reader));
    }

    void fill_in_usual(std::int64_t n_labels, Array<double>& usual) const {
        usual.resize(static_cast<std::size_t>(n_labels));
        const std::int64_t bin = std::min(settings().n_neighbors, model_.n_nodes) == 1 ? settings().n_neighbors : 0;
        for (std::int64_t i = 0; i < n_labels; ++i) usual[static_cast<std::size_t>(i)] = model_.labels.probability(i, bin, model_.n_nodes).posterior;
    }

    void predict_some(const Source& source, std::int64_t first, std::int64_t n, std::int64_t n_labels, Reader& reader, Stop& stop, double* out) const {
        auto& [work, found, usual] = reader;
        if (model_.n_nodes == 0) {
            for (std::int64_t j = 0; j < n; ++j) std::copy(usual.begin(), usual.end(), out + (first + j) * n_labels);
            return;
        }
        Query<Row> queries[TOGETHER];
        for (std::int64_t j = 0; j < n; ++j) {
            queries[j] = model_.query_to_predict(source[first + j], found[static_cast<std::size_t>(j)], work.grouping, work.space);
        }
        model_.nodes.search(queries, n, work.space, stop);
        for (std::int64_t j = 0; j < n; ++j) {
            double* row = out + (first + j) * n_labels;
            std::copy(usual.begin(), usual.end(), row);
            Votes& votes = work.votes;
            model_.labels.collect(found[static_cast<std::size_t>(j)], votes);
            for (std::size_t v = 0; v < votes.n_voted; ++v) {
                const std::int32_t label = votes.voted[v];
                if (label >= n_labels) continue;
                const std::int64_t bin = model_.labels.bin(votes.share[static_cast<std::size_t>(label)], votes);
                row[label] = model_.labels.probability(label, bin, model_.n_nodes).posterior;
            }
            votes.clear();
        }
    }

    Explained explained(const typename ModelHere::Work& work) const {
        Explained result;
        const LabelMemory& labels = model_.labels;
        const auto d = static_cast<double>(settings().n_features);
        result.label_counts.assign(static_cast<std::size_t>(work.found.size() * labels.n_labels), 0);
        for (std::int64_t j = 0; j < work.found.size(); ++j) {
            const std::int64_t node = work.found.nodes[static_cast<std::size_t>(j)];
            const double sum = static_cast<double>(work.found.sums[static_cast<std::size_t>(j)]) * UNIT;
            result.nodes.push_back(node);
            result.node_counts.push_back(labels.node_counts[static_cast<std::size_t>(node)]);
            if constexpr (mode == Mode::common) result.distances.push_back(std::sqrt(sum / d));
            if constexpr (mode == Mode::individual) result.distances.push_back(sum / d);
            if constexpr (mode == Mode::clustered) result.distances.push_back(sum / static_cast<double>(work.grouping.n_groups));
            const auto& own = labels.at_nodes[node];
            for (std::int32_t place = 0; place < own.length; ++place) {
                result.label_counts[static_cast<std::size_t>(j * labels.n_labels + own.keys[place])] = own.values[place];
            }
        }
        for (std::int64_t i = 0; i < labels.n_labels; ++i) {
            const double share = work.votes.share[static_cast<std::size_t>(i)];
            const std::int64_t bin = labels.bin(share, work.votes);
            const auto p = labels.probability(i, bin, model_.n_nodes);
            result.votes.push_back(share);
            result.bins.push_back(bin);
            result.prior.push_back(p.prior);
            result.likelihood_with.push_back(p.likelihood_with);
            result.likelihood_without.push_back(p.likelihood_without);
            result.posterior.push_back(p.posterior);
        }
        return result;
    }

    // Learn a node of another model as all the instances it stands for.
    void replay(const ModelHere& other, std::int64_t node, const std::int32_t* columns, Stop& stop) {
        const auto& own = other.labels.at_nodes[node];
        Array<std::int32_t> labels(static_cast<std::size_t>(own.length));
        for (std::size_t place = 0; place < labels.size(); ++place) labels[place] = columns[own.keys[place]];
        if (auto successor = model_.nodes.successor(model_.n_nodes, model_.learning_r())) model_.nodes.take(std::move(*successor));
        const Instance instance{other.nodes.row(node), {labels.data(), own.length, own.values}, other.labels.node_counts[static_cast<std::size_t>(node)]};
        Query<Row> query = model_.query_to_learn(instance.x, model_.n_nodes, model_.bandwidth_sums.data(), work_.found, work_.grouping, work_.space);
        model_.nodes.search(&query, 1, work_.space, stop);
        const std::int64_t threshold = settings().threshold(work_.grouping);
        const bool joining = ModelHere::joins(work_.found, threshold);
        model_.prepare(instance, work_.found, joining, work_.votes);
        if (joining) {
            model_.join_winner(instance, threshold, work_.found, work_.votes);
        } else {
            model_.prepare_node(instance);
            model_.nodes.create(model_.n_nodes, instance.x, other.bandwidths[node]);
            model_.become_node(instance, other.bandwidths[node], work_.found, work_.votes);
        }
    }

    void append(StateRows& rows, const double* row) const { rows.dense.insert(rows.dense.end(), row, row + settings().n_features); }
    void append(StateRows& rows, const SparseRow& row) const { rows.sparse.append(row.keys, row.values, row.n); }

    void restore(const State& state) {
        LabelMemory& labels = model_.labels;
        const std::int64_t n = state.tally[0], width = model_.bandwidths.width();
        labels.n_learned = state.tally[1];
        labels.n_voted = state.tally[2];
        labels.n_voted_alone = state.tally[3];
        labels.reserve_labels(state.n_labels);
        labels.n_labels = state.n_labels;
        for (std::int64_t i = 0; i < state.n_labels; ++i) {
            for (std::int64_t bin = 0; bin < settings().n_bins(); ++bin) {
                const auto place = static_cast<std::size_t>(i * settings().n_bins() + bin);
                labels.set_counters(i, bin, state.with_label[place], state.without_label[place]);
            }
        }
        model_.groups = Groups(state.group_centres, state.group_counts, state.group_bandwidths);
        const Source weights = source_of(state.weights);
        for (std::int64_t k = 0; k < n; ++k) restore_node(state, weights[k], k, width);
        if (auto successor = model_.nodes.successor(n, model_.learning_r())) model_.nodes.take(std::move(*successor));
        const Source recent = source_of(state.recent);
        const std::int64_t n_recent = n_rows(state.recent);
        if (n_recent > 0) window_.take(recent, 0, n_recent);
        waiting_starts_ = state.waiting_indptr;
        waiting_labels_ = state.waiting_labels;
        window_.learned = n_recent - n_waiting();
    }

    void restore_node(const State& state, const Row& x, std::int64_t k, std::int64_t width) {
        LabelMemory& labels = model_.labels;
        const double* own_bandwidths = state.bandwidths.data() + k * width;
        model_.nodes.reserve(k + 1, x);
        model_.nodes.create(k, x, own_bandwidths);
        model_.bandwidths.reserve(k + 1);
        std::copy_n(own_bandwidths, width, model_.bandwidths[k]);
        // In the order of their making, as they were first added up.
        for (std::int64_t i = 0; i < width; ++i) model_.bandwidth_sums[static_cast<std::size_t>(i)] += own_bandwidths[i];
        model_.median_bandwidth.reserve();
        if constexpr (mode == Mode::common) model_.median_bandwidth.add(own_bandwidths[0]);
        const std::int64_t start = state.label_counts.indptr[static_cast<std::size_t>(k)];
        const LabelRow own{state.label_counts.indices.data() + start, state.label_counts.indptr[static_cast<std::size_t>(k + 1)] - start,
                           state.label_counts.data.data() + start};
        labels.reserve_node(own);
        labels.open_node(own, state.counts[static_cast<std::size_t>(k)]);
        for (std::int64_t place = 0; place < own.n; ++place) labels.totals[static_cast<std::size_t>(own.labels[place])] += own.count(place);
        ++model_.n_nodes;
    }

    Source source_of(const StateRows& rows) const {
        if constexpr (std::is_same_v<Row, SparseRow>) {
            return {rows.sparse.indptr.data(), rows.sparse.indices.data(), rows.sparse.data.data()};
        } else {
            return {rows.dense.data(), n_rows(rows), settings().n_features};
        }
    }
    std::int64_t n_rows(const StateRows& rows) const {
        if constexpr (std::is_same_v<Row, SparseRow>) return static_cast<std::int64_t>(rows.sparse.indptr.size()) - 1;
        return static_cast<std::int64_t>(rows.dense.size()) / settings().n_features;
    }

    // Let rows of another window follow those of this one.
    void take_rows(const Window& other, std::int64_t low, std::int64_t end) {
        for (std::int64_t j = low; j < end; ++j) {
            const Row row = other.row(j);
            if constexpr (std::is_same_v<Row, SparseRow>) {
                const std::int64_t indptr[] = {0, row.n};
                window_.take({indptr, row.keys, row.values}, 0, 1);
            } else {
                window_.take({row, 1, settings().n_features}, 0, 1);
            }
            window_.learned = window_.filled;
        }
    }

    mutable Lock lock_;
    std::mutex turn_;  // learners take turns
    ModelHere model_;
    Window window_;
    typename ModelHere::Work work_;
    typename Window::Walker walker_;
    Array<double> bandwidths_;
    // Labels of the instances that wait for the first window to fill.
    Array<std::int64_t> waiting_starts_{Array<std::int64_t>(1, 0)};
    Array<std::int32_t> waiting_labels_;
    std::int64_t changes_ = 0;  // of the waiting rows
    mutable Idle<Reader> idle_readers_;
    mutable std::mutex settling_;
    mutable std::shared_ptr<const Learner> settled_;  // this learner with the waiting rows learned, once somebody has asked
};

}  // namespace mlca::MLCA_LEVEL
