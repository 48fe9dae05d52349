// The learner as Python sees it: arrays are checked here, the interpreter lock is let go of, failures become exceptions.

#include "bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <memory>
#include <stdexcept>
#include <string>

#include "arrays_of_state.hpp"
#include "learners.hpp"

namespace nb = nanobind;

namespace mlca::MLCA_LEVEL {

namespace {

std::shared_ptr<Learner> make_learner(bool sparse, const Settings& settings, const State* state = nullptr) {
    if (settings.mixed) return make_mixed_learner(settings, state);
    return sparse ? make_sparse_learner(settings, state) : make_dense_learner(settings, state);
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
                       std::int64_t n_neighbors, std::int64_t window, double vigilance, double smoothing, std::int64_t screen_from, bool mixed,
                       const In<std::uint8_t, 1>& nominal) {
    if (nominal.size() > 0 && (!mixed || static_cast<std::int64_t>(nominal.size()) != n_features)) throw std::invalid_argument("nominal must have a flag for each attribute");
    if (n_features < 1 || n_features > std::int64_t{1} << 22) throw std::invalid_argument("n_features must be 1 to 2^22");
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
            .calibrated = place_of(decision, {"bayes", "calibrated"}) == 1,
            .recency = recency,
            .follows_drift = place_of(drift, {"off", "follow"}) == 1,
            .max_nodes = max_nodes,
            .mixed = mixed,
            .nominal = Nominal(nominal.data(), nominal.data() + nominal.size())};
}

// Rows have gaps, and the learner was not made for them: one must be made that is (docs/mixed.md).
class GapsError : public std::invalid_argument {
public:
    GapsError() : std::invalid_argument("rows have gaps") {}
};

// Rows as they came from Python, kept alive and checked.
class CheckedRows {
public:
    CheckedRows(const In<double, 2>& rows, const Settings& settings) {
        require_width(static_cast<std::int64_t>(rows.shape(1)), settings);
        input.n = static_cast<std::int64_t>(rows.shape(0));
        input.dense = {rows.data(), input.n, settings.n_features};
        refuse_gaps(rows.data(), static_cast<std::int64_t>(rows.size()));
    }
    CheckedRows(const In<std::int64_t, 1>& indptr, const In<std::int32_t, 1>& indices, const In<double, 1>& data, const Settings& settings) {
        input.n = static_cast<std::int64_t>(indptr.size()) - 1;
        require_bounds(indptr, indices.size());
        if (indices.size() != data.size()) throw std::invalid_argument("indices and data differ in length");
        if (!settings.mixed) refuse_gaps(data.data(), static_cast<std::int64_t>(data.size()));
        for (std::int64_t j = 0; j < input.n; ++j) {
            std::int64_t last = -1;
            for (std::int64_t p = indptr.data()[j]; p < indptr.data()[j + 1]; ++p) {
                const std::int64_t key = indices.data()[p];
                if (key <= last || key >= settings.n_features) throw std::invalid_argument("attributes of a row do not ascend within range");
                if (data.data()[p] == 0.0) throw std::invalid_argument("a row stores a zero");
                last = key;
            }
        }
        input.sparse = {indptr.data(), indices.data(), data.data()};
    }

    static void require_bounds(const In<std::int64_t, 1>& indptr, std::size_t n_entries) {
        const std::int64_t* bounds = indptr.data();
        const std::size_t n = indptr.size();
        bool fits = n > 0 && bounds[0] == 0 && bounds[n - 1] == static_cast<std::int64_t>(n_entries);
        for (std::size_t j = 1; fits && j < n; ++j) fits = bounds[j] >= bounds[j - 1];
        if (!fits) throw std::invalid_argument("row bounds do not fit");
    }

    InputRows input{};

private:
    // By their bits: compiled for finite numbers, comparisons would not find them.
    static void refuse_gaps(const double* values, std::int64_t n) {
        constexpr auto largest = std::bit_cast<std::int64_t>(MISSING);
        std::int64_t beyond = 0;
        for (std::int64_t i = 0; i < n; ++i) beyond |= largest - 1 - (std::bit_cast<std::int64_t>(values[i]) & INT64_MAX);
        if (beyond < 0) throw GapsError();
    }

    static void require_width(std::int64_t width, const Settings& settings) {
        if (width != settings.n_features) throw std::invalid_argument("rows have another number of attributes than the learner");
    }
};

// A learner, shared by the Python objects that refer to it.
class BoundLearner {
public:
    BoundLearner(std::shared_ptr<Learner> learner, nb::object rounds) : learner_(std::move(learner)), rounds_(std::move(rounds)) {}

    void learn(const CheckedRows& rows, const In<std::int64_t, 1>& indptr, const In<std::int32_t, 1>& labels, std::int64_t n_labels, std::int64_t n_jobs) {
        CheckedRows::require_bounds(indptr, labels.size());
        if (static_cast<std::int64_t>(indptr.size()) - 1 != rows.input.n) throw std::invalid_argument("as many rows as lists of labels are needed");
        for (std::size_t p = 0; p < labels.size(); ++p) {
            if (labels.data()[p] < 0) throw std::invalid_argument("a label has a negative number");
        }
        run([&](const Host& host) { learner_->learn(rows.input, {indptr.data(), labels.data()}, n_labels, n_jobs, host); });
    }

    // Probabilities of the labels, of "none", the labels of rows without a likely one, and novelty; those that are not wanted, or
    // not known, are None.
    nb::tuple predict(const CheckedRows& rows, std::int64_t n_labels, std::int64_t n_jobs, bool wants_probabilities, bool wants_novelty) const {
        if (n_labels < 0 || n_labels > this->n_labels()) throw std::invalid_argument("only labels that are known have probabilities");
        const auto n = static_cast<std::size_t>(rows.input.n);
        const bool calibrated = settings().calibrated;
        if (wants_novelty && !calibrated) throw std::invalid_argument("only a calibrated decision knows what is new");
        Array<double> out(wants_probabilities ? n * static_cast<std::size_t>(n_labels) : 0);
        Array<double> none(wants_probabilities && calibrated ? n : 0), novelty(wants_novelty ? n : 0);
        Array<std::int32_t> fallback(none.size());
        const Answers answers{.probabilities = wants_probabilities ? out.data() : nullptr,
                              .none = none.empty() ? nullptr : none.data(),
                              .fallback = none.empty() ? nullptr : fallback.data(),
                              .novelty = wants_novelty ? novelty.data() : nullptr};
        run([&](const Host& host) { learner_->predict(rows.input, n_labels, n_jobs, host, answers); });
        nb::object results[4] = {nb::none(), nb::none(), nb::none(), nb::none()};
        if (wants_probabilities) results[0] = to_numpy(std::move(out), {n, static_cast<std::size_t>(n_labels)});
        if (wants_probabilities && calibrated) {
            results[1] = to_numpy(std::move(none));
            results[2] = to_numpy(std::move(fallback));
        }
        if (wants_novelty) results[3] = to_numpy(std::move(novelty));
        return nb::make_tuple(results[0], results[1], results[2], results[3]);
    }

    nb::dict explain(const CheckedRows& row) const {
        Explained explained;
        run([&](const Host&) { explained = learner_->explain(row.input); });
        const std::size_t n = explained.nodes.size(), slots = explained.shares.size();
        const std::size_t q = slots > 0 ? slots - 1 : explained.prior.size();  // others may be teaching it more labels
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
        const auto d = static_cast<std::size_t>(settings().n_features);
        put(result, "voters", std::move(explained.voters), is_sparse(), d);
        put(result, "ordinary", std::move(explained.ordinary), is_sparse(), d);
        return result;
    }

    nb::dict state(const std::string& of_nodes) const {
        const auto wanted = static_cast<OfNodes>(place_of(of_nodes, {"all", "none", "weights", "counts", "bandwidths", "label_counts"}));
        State state;
        run([&](const Host&) { state = learner_->state(wanted); });
        return arrays_of(std::move(state), settings(), is_sparse(), wanted);
    }

    // A learner in which all that came is learned: this one, or a copy.
    BoundLearner settled() const {
        std::shared_ptr<const Learner> settled;
        run([&](const Host& host) { settled = learner_->settled(host); });
        return {settled ? std::const_pointer_cast<Learner>(settled) : learner_, rounds_};
    }

    BoundLearner copy() const {
        std::shared_ptr<Learner> twin;
        run([&](const Host&) { twin = learner_->copy(); });
        return {twin, rounds_};
    }

    void absorb(const BoundLearner& other, const In<std::int32_t, 1>& columns, std::int64_t n_labels) {
        if (learner_ == other.learner_ || other.is_sparse() != is_sparse()) throw std::invalid_argument("the learners do not fit");
        if (static_cast<std::int64_t>(columns.size()) < other.n_labels()) throw std::invalid_argument("every label needs a column");
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns.data()[i] < 0 || columns.data()[i] >= n_labels) throw std::invalid_argument("a label's column is out of range");
        }
        run([&](const Host& host) { learner_->absorb(*other.learner_, columns.data(), n_labels, host); });
    }

    bool is_sparse() const { return learner_->is_sparse(); }
    double vigilance() const { return asking(&Learner::vigilance); }
    const Settings& settings() const { return learner_->settings(); }
    std::int64_t n_labels() const { return asking(&Learner::n_labels); }
    std::int64_t n_seen() const { return asking(&Learner::n_seen); }
    std::int64_t n_nodes() const { return asking(&Learner::n_nodes); }
    bool waits() const { return asking(&Learner::waits); }

private:
    // Nobody may wait for the model while holding the interpreter lock.
    template <class Answer>
    Answer asking(Answer (Learner::*question)() const) const {
        const nb::gil_scoped_release released;
        return ((*learner_).*question)();
    }

    // Do something without the interpreter lock; an interrupt is raised as Python has it.
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
        Array<bool> seen(static_cast<std::size_t>(settings().n_features), false);
        for (const std::int64_t i : result) {
            if (i < 0 || i >= settings().n_features || seen[static_cast<std::size_t>(i)]) throw std::invalid_argument("a round needs each attribute once");
            seen[static_cast<std::size_t>(i)] = true;
        }
        if (result.size() != seen.size()) throw std::invalid_argument("a round needs each attribute once");
        return result;
    }

    std::shared_ptr<Learner> learner_;
    nb::object rounds_;
};

}  // namespace

void bind_learner(nb::module_& module) {
    nb::class_<Settings>(module, "Settings")
        .def("__init__",
             [](Settings* place, const std::string& attributes, const std::string& rule, const std::string& vote, const std::string& similarity,
                const std::string& decision, bool recency, const std::string& drift, std::int64_t max_nodes, std::int64_t n_features,
                std::int64_t n_neighbors, std::int64_t window, double vigilance, double smoothing, std::int64_t screen_from, bool mixed,
                const In<std::uint8_t, 1>& nominal) {
                 new (place) Settings(make_settings(attributes, rule, vote, similarity, decision, recency, drift, max_nodes, n_features, n_neighbors,
                                                    window, vigilance, smoothing, screen_from, mixed, nominal));
             },
             nb::kw_only(), nb::arg("attributes"), nb::arg("rule"), nb::arg("vote"), nb::arg("similarity"), nb::arg("decision"), nb::arg("recency"),
             nb::arg("drift"), nb::arg("max_nodes"), nb::arg("n_features"), nb::arg("n_neighbors"), nb::arg("window"), nb::arg("vigilance"),
             nb::arg("smoothing"), nb::arg("screen_from"), nb::arg("mixed"), nb::arg("nominal"));

    nb::exception<GapsError>(module, "GapsError", PyExc_ValueError);
    module.attr("MISSING") = MISSING;

    using Indptr = In<std::int64_t, 1>;
    using Indices = In<std::int32_t, 1>;
    using Data = In<double, 1>;
    nb::class_<BoundLearner>(module, "Learner")
        .def("__init__",
             [](BoundLearner* place, const Settings& settings, bool sparse, nb::object rounds) {
                 new (place) BoundLearner(make_learner(sparse, settings), std::move(rounds));
             },
             nb::arg("settings"), nb::arg("sparse"), nb::arg("rounds"))
        .def_static("restore",
                    [](const Settings& settings, bool sparse, nb::object rounds, std::int64_t n_labels, const nb::dict& arrays) {
                        const State state = state_from(arrays, n_labels, sparse, settings);
                        std::shared_ptr<Learner> learner;
                        {
                            const nb::gil_scoped_release released;  // a large model takes its time
                            learner = make_learner(sparse, settings, &state);
                        }
                        return BoundLearner(std::move(learner), std::move(rounds));
                    })
        .def("learn_dense",
             [](BoundLearner& self, const In<double, 2>& rows, const Indptr& bounds, const Indices& labels, std::int64_t n_labels, std::int64_t n_jobs) {
                 self.learn(CheckedRows(rows, self.settings()), bounds, labels, n_labels, n_jobs);
             })
        .def("learn_sparse",
             [](BoundLearner& self, const Indptr& indptr, const Indices& indices, const Data& data, const Indptr& bounds, const Indices& labels,
                std::int64_t n_labels, std::int64_t n_jobs) {
                 self.learn(CheckedRows(indptr, indices, data, self.settings()), bounds, labels, n_labels, n_jobs);
             })
        .def("predict_dense",
             [](const BoundLearner& self, const In<double, 2>& rows, std::int64_t n_labels, std::int64_t n_jobs, bool probabilities, bool novelty) {
                 return self.predict(CheckedRows(rows, self.settings()), n_labels, n_jobs, probabilities, novelty);
             })
        .def("predict_sparse",
             [](const BoundLearner& self, const Indptr& indptr, const Indices& indices, const Data& data, std::int64_t n_labels, std::int64_t n_jobs,
                bool probabilities, bool novelty) {
                 return self.predict(CheckedRows(indptr, indices, data, self.settings()), n_labels, n_jobs, probabilities, novelty);
             })
        .def("explain_dense", [](const BoundLearner& self, const In<double, 2>& row) { return self.explain(CheckedRows(row, self.settings())); })
        .def("explain_sparse",
             [](const BoundLearner& self, const Indptr& indptr, const Indices& indices, const Data& data) {
                 return self.explain(CheckedRows(indptr, indices, data, self.settings()));
             })
        .def("state", &BoundLearner::state, nb::arg("of_nodes") = "all")
        .def("settled", &BoundLearner::settled)
        .def("copy", &BoundLearner::copy)
        .def("absorb", &BoundLearner::absorb)
        .def_prop_ro("vigilance", &BoundLearner::vigilance)
        .def_prop_ro("sparse", &BoundLearner::is_sparse)
        .def_prop_ro("n_labels", &BoundLearner::n_labels)
        .def_prop_ro("n_seen", &BoundLearner::n_seen)
        .def_prop_ro("n_nodes", &BoundLearner::n_nodes)
        .def_prop_ro("waits", &BoundLearner::waits);
}

}  // namespace mlca::MLCA_LEVEL
