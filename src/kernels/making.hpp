// Learners of one kind of nodes, in every mode: dense_learners.cpp, sparse_learners.cpp and mixed_learners.cpp compile them side by side.
#pragma once

#include <memory>
#include <stdexcept>

#include "learner.hpp"
#include "learners.hpp"

namespace mlca::MLCA_LEVEL {

template <Mode mode, template <Mode> class Nodes>
std::shared_ptr<Learner> make_learner_of(const Settings& settings, const State* state) {
    using Made = LearnerOf<mode, Nodes>;
    return state == nullptr ? std::make_shared<Made>(settings) : std::make_shared<Made>(settings, *state);
}

template <template <Mode> class Nodes>
std::shared_ptr<Learner> make_learner(const Settings& settings, const State* state) {
    switch (settings.mode) {
        case Mode::common: return make_learner_of<Mode::common, Nodes>(settings, state);
        case Mode::individual: return make_learner_of<Mode::individual, Nodes>(settings, state);
        case Mode::clustered: return make_learner_of<Mode::clustered, Nodes>(settings, state);
    }
    throw std::invalid_argument("no such mode");
}

}  // namespace mlca::MLCA_LEVEL
