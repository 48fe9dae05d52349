// Python bindings of the learner: arrays are validated here, the interpreter lock is released, and failures become exceptions.

#include "bindings/bindings.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bandwidth/silverman.hpp"
#include "base/fixed_point.hpp"
#include "bindings/arrays.hpp"
#include "bindings/state_arrays.hpp"
#include "learner/interface.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

using namespace MLCA_ARITHMETIC;

// Return a copy of a learner in the storage that supports missing values.
std::shared_ptr<Learner> as_incomplete(const Learner& learner) {
    Settings settings = learner.settings();
    State state = learner.state(OfNodes::all);
    if (!learner.is_sparse()) {
        state.weights.fold(settings.n_features);
        state.recent.fold(settings.n_features);
    }
    settings.incomplete = true;
    return make_learner(true, settings, &state);
}

// Python uses NaN for missing values, the kernels MISSING. Kernels are compiled for finite numbers, so NaN is recognised by its
// bits.
constexpr std::int64_t INFINITY_BITS = 0x7ff0000000000000;
std::int64_t magnitude_bits(double value) { return std::bit_cast<std::int64_t>(value) & INT64_MAX; }

// Replace NaN by MISSING; return whether there was any.
bool mark_missing(double* values, std::size_t n) {
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
        const bool missing = magnitude_bits(values[i]) > INFINITY_BITS;
        values[i] = missing ? MISSING : values[i];
        any |= missing;
    }
    return any;
}

// Convert rows to the form that Python uses: dense or sparse as in the user's input, with NaN for missing values.
void show(StateRows& rows, const Settings& settings, bool sparse) {
    if (!settings.incomplete) return;
    if (!sparse) rows.unfold(settings.n_features);
    for (double& value : sparse ? rows.sparse.data : rows.dense) {
        if (is_missing(value)) value = std::bit_cast<double>(INFINITY_BITS + (std::int64_t{1} << 51));
    }
}

int place_of(const std::string& word, std::initializer_list<const char*> words) {
    int place = 0;
    for (const char* other : words) {
        if (word == other) return place;
        ++place;
    }
    throw std::invalid_argument("a setting has the unknown value '" + word + "'");
}

// Settings from the dict of `mlca.learner.parameters`, which has checked all but the kernels' own requirements.
Settings settings_from(const nb::dict& values) {
    const auto number = [&](const char* name) { return nb::cast<std::int64_t>(values[name]); };
    const auto word = [&](const char* name, std::initializer_list<const char*> words) { return place_of(nb::cast<std::string>(values[name]), words); };
    const auto nominal = nb::cast<Numbers<const std::uint8_t>>(values["nominal"]);
    const int decision = word("decision", {"bayes", "calibrated", "mixed"});
    const Settings settings{.mode = static_cast<Mode>(word("attributes", {"common", "individual", "clustered"})),
                            .rule = static_cast<Rule>(word("rule", {"published", "released", "text"})),
                            .vote = static_cast<Vote>(word("vote", {"counts", "frequencies"})),
                            .n_features = number("n_features"),
                            .n_neighbors = number("n_neighbors"),
                            .window = number("window"),
                            .vigilance = nb::cast<double>(values["vigilance"]),
                            .smoothing = nb::cast<double>(values["smoothing"]),
                            .screen_from = number("screen_from"),
                            .learned = word("similarity", {"correntropy", "learned"}) == 1,
                            .calibrated = decision >= 1,
                            .mixes = decision == 2,
                            .recency = nb::cast<bool>(values["recency"]),
                            .follows_drift = word("drift", {"off", "follow"}) == 1,
                            .max_nodes = number("max_nodes"),
                            .cells = {number("cells_from"), number("cells_least"), number("cells_per_root")},
                            .incomplete = nominal.size() > 0,
                            .nominal = Nominal(nominal.data(), nominal.data() + nominal.size())};
    require(settings.n_features >= 1 && settings.n_features <= std::int64_t{1} << 22, "n_features must be 1 to 2^22");
    if (settings.incomplete) require_equal(length(nominal), settings.n_features, "nominal");
    require(settings.learned || !settings.mixes, "a mixed decision requires a learned similarity");
    require(settings.n_neighbors >= 2 && settings.window >= 2, "n_neighbors and window must be at least 2");
    return settings;
}

// Input rows from Python, validated and kept alive.
class CheckedRows {
public:
    // `rows`: a dense array, or the tuple (indptr, indices, data) of a CSR matrix.
    CheckedRows(const nb::object& rows, std::int64_t n_features) {
        if (!nb::isinstance<nb::tuple>(rows)) {
            dense_ = nb::cast<Table<const double>>(rows);
            require_equal(length(dense_, 1), n_features, "features of the rows");
            input.n = length(dense_);
            input.dense = {without_nan(dense_.data(), dense_.size()), input.n, n_features};
            return;
        }
        indptr_ = nb::cast<Numbers<const std::int64_t>>(rows[0]);
        indices_ = nb::cast<Numbers<const std::int32_t>>(rows[1]);
        data_ = nb::cast<Numbers<const double>>(rows[2]);
        require_bounds(indptr_, length(indices_), "indptr");
        require_equal(length(data_), length(indices_), "data");
        input.n = length(indptr_) - 1;
        input.is_sparse = true;
        const double* values = without_nan(data_.data(), data_.size());
        for (std::int64_t j = 0; j < input.n; ++j) {
            std::int64_t last = -1;
            for (std::int64_t p = indptr_.data()[j]; p < indptr_.data()[j + 1]; ++p) {
                const std::int64_t key = indices_.data()[p];
                require(key > last && key < n_features,
                        "the feature indices of a row must ascend and be below n_features");
                require(values[p] != 0.0, "a sparse row must not store zeros");
                last = key;
            }
        }
        input.sparse = {indptr_.data(), indices_.data(), values};
    }

    InputRows input;
    bool has_missing = false;

private:
    // The values, or a copy with NaN replaced by MISSING.
    const double* without_nan(const double* given, std::size_t n) {
        constexpr auto largest = std::bit_cast<std::int64_t>(MISSING);
        std::int64_t beyond = 0;
        for (std::size_t i = 0; i < n; ++i) beyond |= largest - 1 - magnitude_bits(given[i]);
        if (beyond >= 0) return given;
        values_.assign(given, given + n);
        for (const double value : values_) {
            if (magnitude_bits(value) >= largest && magnitude_bits(value) <= INFINITY_BITS)
                throw std::invalid_argument("a value is neither missing nor a number in the supported range");
        }
        has_missing = mark_missing(values_.data(), n);
        return values_.data();
    }

    Array<double> values_;
    Table<const double> dense_;
    Numbers<const std::int64_t> indptr_;
    Numbers<const std::int32_t> indices_;
    Numbers<const double> data_;
};

// A learner with either node storage. When the first missing value is learned, the model moves to the storage that
// supports missing values: the new learner is built separately and replaces the old one in one step. A reader uses
// either the old or the new model as a whole; both give the same results.
//
// Callers let only one thread at a time change a learner (`turn_of` in mlca/base.py). That thread holds the interpreter
// lock while it replaces the pointer to the learner. So a thread may read the pointer if it is the learning thread or
// holds the interpreter lock.
class BoundLearner {
public:
    // `sparse`: whether rows are stored and returned in sparse form.
    BoundLearner(const nb::dict& settings, bool sparse, nb::object rounds) : BoundLearner(nullptr, sparse, std::move(rounds)) {
        learner_ = make_learner(sparse, settings_from(settings));
    }

    // Restore a saved state into a new learner.
    void restore(std::int64_t n_labels, const nb::dict& arrays) {
        require(n_labels >= 0, "n_labels must not be negative");
        Settings settings = learner_->settings();
        State state;
        state.n_labels = n_labels;
        state.vigilance = settings.vigilance;
        archive_state(ArrayReader(arrays), state, settings, sparse_);
        std::shared_ptr<Learner> restored;
        {
            const nb::gil_scoped_release released;  // restoring a large model takes a long time
            for (StateRows* rows : {&state.weights, &state.recent}) {
                Array<double>& values = sparse_ ? rows->sparse.data : rows->dense;
                settings.incomplete |= mark_missing(values.data(), values.size());
            }
            for (StateRows* rows : {&state.weights, &state.recent}) {
                if (settings.incomplete && !sparse_) rows->fold(settings.n_features);
            }
            restored = make_learner(sparse_, settings, &state);
        }
        learner_ = std::move(restored);
    }

    void learn(const nb::object& x, const Numbers<const std::int64_t>& bounds, const Numbers<const std::int32_t>& labels, std::int64_t n_labels,
               std::int64_t n_jobs) {
        const std::int64_t d = learner_->settings().n_features;
        const CheckedRows rows(x, d);
        require_bounds(bounds, length(labels), "bounds");
        require_equal(length(bounds) - 1, rows.input.n, "rows with labels");
        require_below(labels, INT32_MAX, "labels");
        run([&](const Host& host) {
            if (rows.has_missing) become_incomplete();
            rows.input.in_form(learner_->is_sparse(), d, [&](std::int64_t first, const InputRows& part) {
                learner_->learn(part, {bounds.data() + first, labels.data()}, n_labels, n_jobs, host);
            });
        });
    }

    // Return the probabilities of the labels and of "none", the fallback labels, the thresholds with the best F1, and the
    // novelties. Outputs that are not requested or not available are None.
    nb::tuple predict(const nb::object& x, std::int64_t n_labels, std::int64_t n_jobs, bool wants_probabilities, bool wants_novelty) const {
        const auto learner = learner_;
        const CheckedRows rows(x, learner->settings().n_features);
        require(n_labels >= 0 && n_labels <= n_labels_of(*learner), "n_labels must be 0 to the number of known labels");
        const auto n = static_cast<std::size_t>(rows.input.n);
        const bool calibrated = learner->settings().calibrated;
        require(calibrated || !wants_novelty, "novelty needs a calibrated or mixed decision");
        Array<double> out(wants_probabilities ? n * static_cast<std::size_t>(n_labels) : 0);
        Array<double> none(wants_probabilities && calibrated ? n : 0), novelty(wants_novelty ? n : 0);
        Array<std::int32_t> fallback(none.size());
        Array<double> threshold(none.size());
        const Answers answers{.probabilities = wants_probabilities ? out.data() : nullptr,
                              .none = none.empty() ? nullptr : none.data(),
                              .fallback = none.empty() ? nullptr : fallback.data(),
                              .threshold = none.empty() ? nullptr : threshold.data(),
                              .novelty = wants_novelty ? novelty.data() : nullptr};
        run([&](const Host& host) {
            rows.input.in_form(learner->is_sparse(), learner->settings().n_features, [&](std::int64_t first, const InputRows& part) {
                learner->predict(part, n_labels, n_jobs, host, answers.from(first, n_labels));
            });
        });
        nb::object results[5] = {nb::none(), nb::none(), nb::none(), nb::none(), nb::none()};
        if (wants_probabilities) results[0] = to_numpy(std::move(out), {n, static_cast<std::size_t>(n_labels)});
        if (wants_probabilities && calibrated) {
            results[1] = to_numpy(std::move(none));
            results[2] = to_numpy(std::move(fallback));
            results[3] = to_numpy(std::move(threshold));
        }
        if (wants_novelty) results[4] = to_numpy(std::move(novelty));
        return nb::make_tuple(results[0], results[1], results[2], results[3], results[4]);
    }

    nb::dict explain(const nb::object& x) const {
        const auto learner = learner_;
        const Settings& settings = learner->settings();
        const CheckedRows row(x, settings.n_features);
        require_equal(row.input.n, 1, "rows to explain");
        Explained explained;
        run([&](const Host&) {
            row.input.in_form(learner->is_sparse(), settings.n_features, [&](std::int64_t, const InputRows& one) { explained = learner->explain(one); });
            show(explained.voters, settings, sparse_);
            show(explained.ordinary, settings, sparse_);
        });
        const std::size_t n = explained.nodes.size(), slots = explained.shares.size();
        const std::size_t q = slots > 0 ? slots - 1 : explained.prior.size();  // another thread may be adding labels
        const std::size_t experts = slots == 0 ? 0 : explained.opinions.size() / slots;
        const std::size_t inputs = explained.mixer_weights.size(), terms = explained.term_features.size();
        nb::dict result;
        const auto add = [&](const char* name, auto& values, std::initializer_list<std::size_t> shape) {
            result[name] = to_numpy(std::move(values), shape);
        };
        add("label_counts", explained.label_counts, {n, q});
        add("opinions", explained.opinions, {slots, experts});
        add("inputs", explained.inputs, {inputs == 0 ? 0 : slots, inputs});
        add("terms", explained.terms, {terms, terms == 0 ? 0 : slots});
        add("term_features", explained.term_features, {terms});
        add("term_kinds", explained.term_kinds, {terms});
        const std::pair<const char*, Array<std::int64_t>*> numbers[] = {
            {"nodes", &explained.nodes},           {"counts", &explained.node_counts}, {"unlabelled", &explained.unlabelled},
            {"bins", &explained.bins},             {"agreeing", &explained.agreeing}};
        for (const auto& [name, values] : numbers) result[name] = to_numpy(std::move(*values));
        const std::pair<const char*, Array<double>*> reals[] = {
            {"distances", &explained.distances},
            {"votes", &explained.votes},
            {"prior", &explained.prior},
            {"likelihood_with", &explained.likelihood_with},
            {"likelihood_without", &explained.likelihood_without},
            {"posterior", &explained.posterior},
            {"background", &explained.background},
            {"agreement", &explained.agreement},
            {"weights", &explained.weights},
            {"shares", &explained.shares},
            {"calibrated", &explained.calibrated},
            {"frequencies", &explained.frequencies},
            {"probabilities", &explained.probabilities},
            {"expert_weights", &explained.expert_weights},
            {"trust", &explained.trust},
            {"mixer_weights", &explained.mixer_weights}};
        for (const auto& [name, values] : reals) result[name] = to_numpy(std::move(*values));
        result["n_compared"] = explained.n_compared;
        result["novelty"] = explained.novelty;
        result["far"] = explained.far;
        result["fallback"] = explained.fallback;
        result["threshold"] = explained.threshold;
        const auto d = static_cast<std::size_t>(settings.n_features);
        archive_rows(ArrayWriter(result), "voters", explained.voters, sparse_, d);
        archive_rows(ArrayWriter(result), "ordinary", explained.ordinary, sparse_, d);
        return result;
    }

    nb::dict state(const std::string& of_nodes) const {
        const auto wanted = static_cast<OfNodes>(place_of(of_nodes, {"all", "none", "weights", "counts", "bandwidths", "label_counts"}));
        const auto learner = learner_;
        State state;
        run([&](const Host&) {
            state = learner->state(wanted);
            show(state.weights, learner->settings(), sparse_);
            show(state.recent, learner->settings(), sparse_);
        });
        nb::dict arrays;
        archive_state(ArrayWriter(arrays), state, learner->settings(), sparse_, wanted);
        return arrays;
    }

    // A learner that has learned all received rows: this one, or a copy.
    BoundLearner settled() const {
        const auto learner = learner_;
        std::shared_ptr<const Learner> settled;
        run([&](const Host& host) { settled = learner->settled(host); });
        return {settled ? std::const_pointer_cast<Learner>(settled) : learner, sparse_, rounds_};
    }

    BoundLearner copy() const {
        const auto learner = learner_;
        std::shared_ptr<Learner> twin;
        run([&](const Host&) { twin = learner->copy(); });
        return {twin, sparse_, rounds_};
    }

    void absorb(const BoundLearner& other, const Numbers<const std::int32_t>& columns, std::int64_t n_labels, bool append) {
        auto absorbed = other.learner_;
        const auto kind = [](const Settings& s) {
            return std::tuple(s.mode, s.n_features, s.n_neighbors, s.learned, s.calibrated, s.mixes, s.recency, s.follows_drift, s.max_nodes,
                              s.nominal);
        };
        const bool fits = other.sparse_ == sparse_ && kind(absorbed->settings()) == kind(learner_->settings());
        require(learner_ != absorbed && fits,
                "a learner can be merged only with another learner that has the same settings");
        require(length(columns) >= n_labels_of(*absorbed), "columns: one per label of the other learner is required");
        require_below(columns, n_labels, "columns");
        run([&](const Host& host) {
            if (absorbed->settings().incomplete) become_incomplete();
            if (learner_->settings().incomplete && !absorbed->settings().incomplete) absorbed = as_incomplete(*absorbed);
            learner_->absorb(*absorbed, columns.data(), n_labels, append, host);
        });
    }

    double vigilance() const { return asking(&Learner::vigilance); }
    std::int64_t n_labels() const { return asking(&Learner::n_labels); }
    std::int64_t n_seen() const { return asking(&Learner::n_seen); }
    std::int64_t n_nodes() const { return asking(&Learner::n_nodes); }
    bool waits() const { return asking(&Learner::waits); }

private:
    BoundLearner(std::shared_ptr<Learner> learner, bool sparse, nb::object rounds)
        : learner_(std::move(learner)), sparse_(sparse), rounds_(std::move(rounds)) {}

    // Switch to the storage that supports missing values; called by the learning thread without the interpreter lock.
    void become_incomplete() {
        if (learner_->settings().incomplete) return;
        auto next = as_incomplete(*learner_);
        const nb::gil_scoped_acquire acquired;
        learner_ = std::move(next);
    }

    // Call a member function of the learner without the interpreter lock, because a thread must not hold this lock
    // while it waits for the model's lock.
    template <class Answer>
    Answer asking(Answer (Learner::*question)() const) const {
        const auto learner = learner_;
        const nb::gil_scoped_release released;
        return (*learner.*question)();
    }
    static std::int64_t n_labels_of(const Learner& learner) {
        const nb::gil_scoped_release released;
        return learner.n_labels();
    }

    // Run a task without the interpreter lock; an interrupt is raised as a Python exception.
    template <class Task>
    void run(Task task) const {
        const Host host{.interrupted =
                            [] {
                                const nb::gil_scoped_acquire acquired;
                                return PyErr_CheckSignals() != 0;
                            },
                        .order_of_round = [this](std::int64_t number) { return order_of_round(number); }};
        bool stopped = false;
        {
            const nb::gil_scoped_release released;
            try {
                task(host);
            } catch (const Stopped&) {
                stopped = true;
            }
        }
        if (stopped) throw nb::python_error();
    }

    Array<std::int64_t> order_of_round(std::int64_t number) const {
        const nb::gil_scoped_acquire acquired;
        const auto order = nb::cast<Numbers<const std::int64_t>>(rounds_(number));
        Array<std::int64_t> result(order.data(), order.data() + order.size()), sorted = result;
        std::sort(sorted.begin(), sorted.end());
        bool is_whole = length(order) == learner_->settings().n_features;
        for (std::int64_t i = 0; is_whole && i < length(order); ++i) is_whole = sorted.data()[i] == i;
        require(is_whole, "a round of feature grouping must contain every feature exactly once");
        return result;
    }

    std::shared_ptr<Learner> learner_;
    bool sparse_;
    nb::object rounds_;
};

// Measures the highest speed of this machine, a baseline of `mlca bench`: sums the exact kernel of x and each node
// repeatedly, on one thread, with the data in cache. The total may wrap around.
std::uint64_t sum_exactly(const Numbers<const double>& x, const Table<const double>& nodes, double r, std::int64_t repeats) {
    const std::int64_t n = length(nodes), d = length(x);
    require_equal(length(nodes, 1), d, "columns of nodes");
    const nb::gil_scoped_release unlocked;
    std::uint64_t total = 0;
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
        for (std::int64_t node = 0; node < n; ++node) total += static_cast<std::uint64_t>(common_sum(x.data(), nodes.data() + node * d, d, r));
    }
    return total;
}

}  // namespace

void bind_learner(nb::module_& module) {
    module.attr("RANKS_PER_KNOT") = 2 * RANK_STEP;
    module.def("constant_bandwidth", [](std::int64_t n_rows, std::int64_t n_features) { return Silverman(n_rows, n_features).bandwidth(CONSTANT); },
               nb::arg("n_rows"), nb::arg("n_features"), "Return the bandwidth of a feature that is constant in a window.");
    module.attr("RANK_OF_BINARY_ONE") = BINARY_ONE;
    nb::list half_lives;
    for (const double rows : Recency::HALF_LIVES) half_lives.append(rows);
    module.attr("HALF_LIVES") = nb::tuple(half_lives);

    nb::class_<BoundLearner>(module, "Learner")
        .def(nb::init<const nb::dict&, bool, nb::object>(), nb::arg("settings"), nb::arg("sparse"), nb::arg("rounds"))
        .def("restore", &BoundLearner::restore)
        .def("learn", &BoundLearner::learn)
        .def("predict", &BoundLearner::predict)
        .def("explain", &BoundLearner::explain)
        .def("state", &BoundLearner::state, nb::arg("of_nodes") = "all")
        .def("settled", &BoundLearner::settled)
        .def("copy", &BoundLearner::copy)
        .def("absorb", &BoundLearner::absorb)
        .def_prop_ro("vigilance", &BoundLearner::vigilance)
        .def_prop_ro("n_labels", &BoundLearner::n_labels)
        .def_prop_ro("n_seen", &BoundLearner::n_seen)
        .def_prop_ro("n_nodes", &BoundLearner::n_nodes)
        .def_prop_ro("waits", &BoundLearner::waits);
    module.def("sum_exactly", &sum_exactly, as_is("x"), as_is("nodes"), nb::arg("r"), nb::arg("repeats"));
}

}  // namespace mlca::MLCA_LEVEL
