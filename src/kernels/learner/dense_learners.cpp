#include "learner/learner.hpp"
#include "nodes/dense_nodes.hpp"

namespace mlca::MLCA_LEVEL {

std::shared_ptr<Learner> make_dense_learner(const Settings& settings, const State* state) {
    using Made = LearnerOf<DenseNodes>;
    return state == nullptr ? std::make_shared<Made>(settings) : std::make_shared<Made>(settings, *state);
}

}  // namespace mlca::MLCA_LEVEL
