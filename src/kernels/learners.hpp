// Every kind of learner, by those who make them.
#pragma once

#include <memory>

#include "interface.hpp"

namespace mlca::MLCA_LEVEL {

// Make a learner; from a checked state, if there is one.
std::shared_ptr<Learner> make_dense_learner(const Settings& settings, const State* state);
std::shared_ptr<Learner> make_sparse_learner(const Settings& settings, const State* state);
std::shared_ptr<Learner> make_mixed_learner(const Settings& settings, const State* state);

}  // namespace mlca::MLCA_LEVEL
