// Python bindings of the learner: arrays are validated here, the interpreter lock is released, and failures become exceptions.

#include "bindings/bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "bandwidth/silverman.hpp"
#include "base/fixed_point.hpp"
#include "bindings/state_arrays.hpp"
#include "learner/interface.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

std::shared_ptr<Learner> make_learner(bool sparse, const Settings& settings, const State* state = nullptr) {
    return sparse || settings.incomplete ? make_sparse_learner(settings, state) : make_dense_learner(settings, state);
}

// Convert a model to the storage that supports missing values.
std::shared_ptr<Learner> as_incomplete(const Learner& learner) {
    Settings settings = learner.settings();
    State state = learner.state(OfNodes::all);
    if (!learner.is_sparse()) {
        state.weights.fold(settings.n_features);
        state.recent.fold(settings.n_features);
    }
    settings.incomplete = true;
    return make_sparse_learner(settings, &state);
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

// Convert rows to the form that Python uses: dense or sparse as in the user's input, with NaN.
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
    throw std::invalid_argument("unknown word '" + word + "'");
}

Settings make_settings(const std::string& attributes, const std::string& rule, const std::string& vote, const std::string& similarity,
                       const std::string& decision, bool recency, const std::string& drift, std::int64_t max_nodes, std::int64_t n_features,
                       std::int64_t n_neighbors, std::int64_t window, double vigilance, double smoothing, std::int64_t screen_from, CellLimits cells,
                           const In<std::uint8_t, 1>& nominal) {
    if (nominal.size() > 0 && static_cast<std::int64_t>(nominal.size()) != n_features)
        throw std::invalid_argument("nominal must have a flag for each feature");
    if (n_features < 1 || n_features > std::int64_t{1} << 22) throw std::invalid_argument("n_features must be 1 to 2^22");
    if (decision == "mixed" && similarity != "learned") throw std::invalid_argument("linear models need the ranks of a learned similarity");
    if (n_neighbors < 2 || window < 2) throw std::invalid_argument("n_neighbors and window must be 2 at least");
    return {.mode = static_cast<Mode>(place_of(attributes, {"common", "individual", "clustered"})),
            .rule = static_cast<Rule>(place_of(rule, {"published", "released", "text"})),
            .vote = static_cast<Vote>(place_of(vote, {"counts", "frequencies"})),
            .n_features = n_features,
            .n_neighbors = n_neighbors,
            .window = window,
            .vigilance = vigilance,
            .smoothing = smoothing,
            .screen_from = screen_from,
            .learned = place_of(similarity, {"correntropy", "learned"}) == 1,
            .calibrated = place_of(decision, {"bayes", "calibrated", "mixed"}) >= 1,
            .mixes = decision == "mixed",
            .recency = recency,
            .follows_drift = place_of(drift, {"off", "follow"}) == 1,
            .max_nodes = max_nodes,
            .cells = cells,
            .incomplete = nominal.size() > 0,
            .nominal = Nominal(nominal.data(), nominal.data() + nominal.size())};
}

// Input rows from Python, validated and kept alive.
class CheckedRows {
public:
    CheckedRows(const In<double, 2>& rows, std::int64_t n_features) {
        if (static_cast<std::int64_t>(rows.shape(1)) != n_features)
            throw std::invalid_argument("rows have another number of features than the learner");
        input.n = static_cast<std::int64_t>(rows.shape(0));
        input.dense = {without_nan(rows.data(), rows.size()), input.n, n_features};
    }
    CheckedRows(const In<std::int64_t, 1>& indptr, const In<std::int32_t, 1>& indices, const In<double, 1>& data, std::int64_t n_features) {
        input.n = static_cast<std::int64_t>(indptr.size()) - 1;
        input.is_sparse = true;
        require_bounds(indptr, indices.size());
        if (indices.size() != data.size()) throw std::invalid_argument("indices and data differ in length");
        const double* values = without_nan(data.data(), data.size());
        for (std::int64_t j = 0; j < input.n; ++j) {
            std::int64_t last = -1;
            for (std::int64_t p = indptr.data()[j]; p < indptr.data()[j + 1]; ++p) {
                const std::int64_t key = indices.data()[p];
                if (key <= last || key >= n_features) throw std::invalid_argument("features of a row do not ascend within range");
                if (values[p] == 0.0) throw std::invalid_argument("a row stores a zero");
                last = key;
            }
        }
        input.sparse = {indptr.data(), indices.data(), values};
    }

    static void require_bounds(const In<std::int64_t, 1>& indptr, std::size_t n_entries) {
        const std::int64_t* bounds = indptr.data();
        const std::size_t n = indptr.size();
        bool fits = n > 0 && bounds[0] == 0 && bounds[n - 1] == static_cast<std::int64_t>(n_entries);
        for (std::size_t j = 1; fits && j < n; ++j) fits = bounds[j] >= bounds[j - 1];
        if (!fits) throw std::invalid_argument("row bounds do not fit");
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
                throw std::invalid_argument("a value is neither finite nor missing");
        }
        has_missing = mark_missing(values_.data(), n);
        return values_.data();
    }

    Array<double> values_;
};

// A learner with either storage. When the first missing value is learned, the model moves to the storage that supports missing
// values: the new learner is built separately and replaces the old one in one step, while its thread holds the turn to learn. A
// reader uses either the old or the new model as a whole; both give the same results.
class BoundLearner {
public:
    // `sparse`: whether rows are stored and returned in sparse form.
    BoundLearner(std::shared_ptr<Learner> learner, bool sparse, nb::object rounds)
        : held_(std::make_unique<Held>()), sparse_(sparse), rounds_(std::move(rounds)) { held_->learner = std::move(learner); }

    void learn(const CheckedRows& rows, const In<std::int64_t, 1>& indptr, const In<std::int32_t, 1>& labels, std::int64_t n_labels,
        std::int64_t n_jobs) {
        CheckedRows::require_bounds(indptr, labels.size());
        if (static_cast<std::int64_t>(indptr.size()) - 1 != rows.input.n) throw std::invalid_argument("as many rows as lists of labels are needed");
        for (std::size_t p = 0; p < labels.size(); ++p) {
            if (labels.data()[p] < 0) throw std::invalid_argument("a label has a negative number");
        }
        run([&](const Host& host) {
            const std::lock_guard<std::mutex> turn(held_->turn);
            if (rows.has_missing) become_incomplete();
            const auto learner = this->learner();
            rows.input.in_form(learner->is_sparse(), learner->settings().n_features, [&](std::int64_t first, const InputRows& part) {
                learner->learn(part, {indptr.data() + first, labels.data()}, n_labels, n_jobs, host);
            });
        });
    }

    // Return the probabilities of the labels and of "none", the fallback labels, the thresholds with the best F1, and the
    // novelties. Outputs that are not requested or not available are None.
    nb::tuple predict(const CheckedRows& rows, std::int64_t n_labels, std::int64_t n_jobs, bool wants_probabilities, bool wants_novelty) const {
        if (n_labels < 0 || n_labels > this->n_labels()) throw std::invalid_argument("only labels that are known have probabilities");
        const auto learner = this->learner();
        const auto n = static_cast<std::size_t>(rows.input.n);
        const bool calibrated = learner->settings().calibrated;
        if (wants_novelty && !calibrated) throw std::invalid_argument("only a calibrated decision knows what is new");
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

    nb::dict explain(const CheckedRows& row) const {
        const auto learner = this->learner();
        const Settings& settings = learner->settings();
        Explained explained;
        run([&](const Host&) {
            row.input.in_form(learner->is_sparse(), settings.n_features, [&](std::int64_t, const InputRows& x) { explained = learner->explain(x); });
            show(explained.voters, settings, sparse_);
            show(explained.ordinary, settings, sparse_);
        });
        const std::size_t n = explained.nodes.size(), slots = explained.shares.size();
        const std::size_t q = slots > 0 ? slots - 1 : explained.prior.size();  // another thread may be adding labels
        nb::dict result;
        result["nodes"] = to_numpy(std::move(explained.nodes));
        result["distances"] = to_numpy(std::move(explained.distances));
        result["counts"] = to_numpy(std::move(explained.node_counts));
        result["label_counts"] = to_numpy(std::move(explained.label_counts), {n, q});
        result["votes"] = to_numpy(std::move(explained.votes));
        result["bins"] = to_numpy(std::move(explained.bins));
        result["prior"] = to_numpy(std::move(explained.prior));
        result["likelihood_with"] = to_numpy(std::move(explained.likelihood_with));
        result["likelihood_without"] = to_numpy(std::move(explained.likelihood_without));
        result["posterior"] = to_numpy(std::move(explained.posterior));
        result["unlabelled"] = to_numpy(std::move(explained.unlabelled));
        result["n_compared"] = explained.n_compared;
        result["background"] = to_numpy(std::move(explained.background));
        result["agreeing"] = to_numpy(std::move(explained.agreeing));
        result["agreement"] = to_numpy(std::move(explained.agreement));
        result["weights"] = to_numpy(std::move(explained.weights));
        result["shares"] = to_numpy(std::move(explained.shares));
        result["calibrated"] = to_numpy(std::move(explained.calibrated));
        result["frequencies"] = to_numpy(std::move(explained.frequencies));
        const std::size_t experts = slots == 0 ? 0 : explained.opinions.size() / slots;
        result["opinions"] = to_numpy(std::move(explained.opinions), {slots, experts});
        result["probabilities"] = to_numpy(std::move(explained.probabilities));
        result["expert_weights"] = to_numpy(std::move(explained.expert_weights));
        result["trust"] = to_numpy(std::move(explained.trust));
        result["novelty"] = explained.novelty;
        result["far"] = explained.far;
        result["fallback"] = explained.fallback;
        result["threshold"] = explained.threshold;
        const std::size_t inputs = explained.mixer_weights.size(), terms = explained.term_features.size();
        result["mixer_weights"] = to_numpy(std::move(explained.mixer_weights));
        result["inputs"] = to_numpy(std::move(explained.inputs), {inputs == 0 ? 0 : slots, inputs});
        result["term_features"] = to_numpy(std::move(explained.term_features));
        result["term_kinds"] = to_numpy(std::move(explained.term_kinds));
        result["terms"] = to_numpy(std::move(explained.terms), {terms, terms == 0 ? 0 : slots});
        const auto d = static_cast<std::size_t>(settings.n_features);
        put(result, "voters", std::move(explained.voters), sparse_, d);
        put(result, "ordinary", std::move(explained.ordinary), sparse_, d);
        return result;
    }

    nb::dict state(const std::string& of_nodes) const {
        const auto wanted = static_cast<OfNodes>(place_of(of_nodes, {"all", "none", "weights", "counts", "bandwidths", "label_counts"}));
        const auto learner = this->learner();
        State state;
        run([&](const Host&) {
            state = learner->state(wanted);
            show(state.weights, learner->settings(), sparse_);
            show(state.recent, learner->settings(), sparse_);
        });
        return arrays_of(std::move(state), learner->settings(), sparse_, wanted);
    }

    // A learner in which all received rows are learned: this one, or a copy.
    BoundLearner settled() const {
        const auto learner = this->learner();
        std::shared_ptr<const Learner> settled;
        run([&](const Host& host) { settled = learner->settled(host); });
        return {settled ? std::const_pointer_cast<Learner>(settled) : learner, sparse_, rounds_};
    }

    BoundLearner copy() const {
        std::shared_ptr<Learner> twin;
        run([&](const Host&) { twin = learner()->copy(); });
        return {twin, sparse_, rounds_};
    }

    void absorb(const BoundLearner& other, const In<std::int32_t, 1>& columns, std::int64_t n_labels, bool append) {
        if (learner() == other.learner() || other.sparse_ != sparse_) throw std::invalid_argument("the learners do not fit");
        if (static_cast<std::int64_t>(columns.size()) < other.n_labels()) throw std::invalid_argument("every label needs a column");
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns.data()[i] < 0 || columns.data()[i] >= n_labels) throw std::invalid_argument("a label's column is out of range");
        }
        run([&](const Host& host) {
            const std::lock_guard<std::mutex> turn(held_->turn);
            auto absorbed = other.learner();
            if (absorbed->settings().incomplete) become_incomplete();
            if (learner()->settings().incomplete && !absorbed->settings().incomplete) absorbed = as_incomplete(*absorbed);
            learner()->absorb(*absorbed, columns.data(), n_labels, append, host);
        });
    }

    std::int64_t n_features() const { return learner()->settings().n_features; }
    double vigilance() const { return asking(&Learner::vigilance); }
    std::int64_t n_labels() const { return asking(&Learner::n_labels); }
    std::int64_t n_seen() const { return asking(&Learner::n_seen); }
    std::int64_t n_nodes() const { return asking(&Learner::n_nodes); }
    bool waits() const { return asking(&Learner::waits); }

private:
    struct Held {
        std::mutex turn;      // only one thread learns at a time
        std::mutex changing;  // guards the pointer; never held during long work
        std::shared_ptr<Learner> learner;
    };

    std::shared_ptr<Learner> learner() const {
        const std::lock_guard<std::mutex> guard(held_->changing);
        return held_->learner;
    }

    // Switch to the storage that supports missing values; the caller holds the turn to learn.
    void become_incomplete() {
        const auto old = learner();
        if (old->settings().incomplete) return;
        auto next = as_incomplete(*old);
        const std::lock_guard<std::mutex> guard(held_->changing);
        held_->learner = std::move(next);
    }

    // No thread may wait for the model while it holds the interpreter lock.
    template <class Answer>
    Answer asking(Answer (Learner::*question)() const) const {
        const nb::gil_scoped_release released;
        return (*learner().*question)();
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
        const auto order = nb::cast<In<std::int64_t, 1>>(rounds_(number));
        Array<std::int64_t> result(order.data(), order.data() + order.size());
        const std::int64_t d = n_features();
        Array<bool> seen(static_cast<std::size_t>(d), false);
        for (const std::int64_t i : result) {
            if (i < 0 || i >= d || seen[static_cast<std::size_t>(i)]) throw std::invalid_argument("a round needs each feature once");
            seen[static_cast<std::size_t>(i)] = true;
        }
        if (result.size() != seen.size()) throw std::invalid_argument("a round needs each feature once");
        return result;
    }

    std::unique_ptr<Held> held_;
    bool sparse_;
    nb::object rounds_;
};

// The machine's own speed limit, with which `mlca bench` compares the learner: sum the exact kernel of x with each node
// repeatedly, on one thread with data in cache. The total wraps around.
std::uint64_t sum_exactly(const In<double, 1>& x, const In<double, 2>& nodes, double r, std::int64_t repeats) {
    const auto n = static_cast<std::int64_t>(nodes.shape(0)), d = static_cast<std::int64_t>(x.shape(0));
    if (static_cast<std::int64_t>(nodes.shape(1)) != d) throw std::invalid_argument("nodes must have as many columns as x has numbers");
    const nb::gil_scoped_release unlocked;
    std::uint64_t total = 0;
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
        for (std::int64_t node = 0; node < n; ++node) total += static_cast<std::uint64_t>(common_sum(x.data(), nodes.data() + node * d, d, r));
    }
    return total;
}

}  // namespace

void bind_learner(nb::module_& module) {
    nb::class_<Settings>(module, "Settings")
        .def("__init__",
             [](Settings* place, const std::string& attributes, const std::string& rule, const std::string& vote, const std::string& similarity,
                const std::string& decision, bool recency, const std::string& drift, std::int64_t max_nodes, std::int64_t n_features,
                std::int64_t n_neighbors, std::int64_t window, double vigilance, double smoothing, std::int64_t screen_from,
                std::int64_t cells_from, std::int64_t cells_least, std::int64_t cells_per_root, const In<std::uint8_t, 1>& nominal) {
                 new (place) Settings(make_settings(attributes, rule, vote, similarity, decision, recency, drift, max_nodes, n_features, n_neighbors,
                                                    window, vigilance, smoothing, screen_from, {cells_from, cells_least, cells_per_root}, nominal));
             },
             nb::kw_only(), nb::arg("attributes"), nb::arg("rule"), nb::arg("vote"), nb::arg("similarity"), nb::arg("decision"), nb::arg("recency"),
             nb::arg("drift"), nb::arg("max_nodes"), nb::arg("n_features"), nb::arg("n_neighbors"), nb::arg("window"), nb::arg("vigilance"),
             nb::arg("smoothing"), nb::arg("screen_from"), nb::arg("cells_from"), nb::arg("cells_least"), nb::arg("cells_per_root"),
                 nb::arg("nominal"));

    module.attr("RANKS_PER_KNOT") = 2 * RANK_STEP;
    module.def("constant_bandwidth", [](std::int64_t n_rows, std::int64_t n_features) { return Silverman(n_rows, n_features).bandwidth(CONSTANT); },
               nb::arg("n_rows"), nb::arg("n_features"), "Return the bandwidth of a feature that is constant in a window.");
    module.attr("RANK_OF_BINARY_ONE") = BINARY_ONE;
    nb::list half_lives;
    for (const double rows : Recency::HALF_LIVES) half_lives.append(rows);
    module.attr("HALF_LIVES") = nb::tuple(half_lives);

    using Indptr = In<std::int64_t, 1>;
    using Indices = In<std::int32_t, 1>;
    using Data = In<double, 1>;
    nb::class_<BoundLearner>(module, "Learner")
        .def("__init__",
             [](BoundLearner* place, const Settings& settings, bool sparse, nb::object rounds) {
                 new (place) BoundLearner(make_learner(sparse, settings), sparse, std::move(rounds));
             },
             nb::arg("settings"), nb::arg("sparse"), nb::arg("rounds"))
        .def_static("restore",
                    [](const Settings& settings, bool sparse, nb::object rounds, std::int64_t n_labels, const nb::dict& arrays) {
                        State state = state_from(arrays, n_labels, sparse, settings);
                        std::shared_ptr<Learner> learner;
                        {
                            const nb::gil_scoped_release released;  // restoring a large model takes long
                            Settings found = settings;
                            for (StateRows* rows : {&state.weights, &state.recent}) {
                                Array<double>& values = sparse ? rows->sparse.data : rows->dense;
                                found.incomplete |= mark_missing(values.data(), values.size());
                            }
                            for (StateRows* rows : {&state.weights, &state.recent}) {
                                if (found.incomplete && !sparse) rows->fold(settings.n_features);
                            }
                            learner = make_learner(sparse, found, &state);
                        }
                        return BoundLearner(std::move(learner), sparse, std::move(rounds));
                    })
        .def("learn_dense",
             [](BoundLearner& self, const In<double, 2>& rows, const Indptr& bounds, const Indices& labels, std::int64_t n_labels,
                 std::int64_t n_jobs) {
                 self.learn(CheckedRows(rows, self.n_features()), bounds, labels, n_labels, n_jobs);
             })
        .def("learn_sparse",
             [](BoundLearner& self, const Indptr& indptr, const Indices& indices, const Data& data, const Indptr& bounds, const Indices& labels,
                std::int64_t n_labels, std::int64_t n_jobs) {
                 self.learn(CheckedRows(indptr, indices, data, self.n_features()), bounds, labels, n_labels, n_jobs);
             })
        .def("predict_dense",
             [](const BoundLearner& self, const In<double, 2>& rows, std::int64_t n_labels, std::int64_t n_jobs, bool probabilities, bool novelty) {
                 return self.predict(CheckedRows(rows, self.n_features()), n_labels, n_jobs, probabilities, novelty);
             })
        .def("predict_sparse",
             [](const BoundLearner& self, const Indptr& indptr, const Indices& indices, const Data& data, std::int64_t n_labels, std::int64_t n_jobs,
                bool probabilities, bool novelty) {
                 return self.predict(CheckedRows(indptr, indices, data, self.n_features()), n_labels, n_jobs, probabilities, novelty);
             })
        .def("explain", [](const BoundLearner& self, const In<double, 2>& row) { return self.explain(CheckedRows(row, self.n_features())); })
        .def("state", &BoundLearner::state, nb::arg("of_nodes") = "all")
        .def("settled", &BoundLearner::settled)
        .def("copy", &BoundLearner::copy)
        .def("absorb", &BoundLearner::absorb)
        .def_prop_ro("vigilance", &BoundLearner::vigilance)
        .def_prop_ro("n_labels", &BoundLearner::n_labels)
        .def_prop_ro("n_seen", &BoundLearner::n_seen)
        .def_prop_ro("n_nodes", &BoundLearner::n_nodes)
        .def_prop_ro("waits", &BoundLearner::waits);
    module.def("sum_exactly", &sum_exactly, nb::arg("x").noconvert(), nb::arg("nodes").noconvert(), nb::arg("r"), nb::arg("repeats"));
}

}  // namespace mlca::MLCA_LEVEL
