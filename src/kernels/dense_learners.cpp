#include "dense_nodes.hpp"
#include "making.hpp"

namespace mlca::MLCA_LEVEL {

std::shared_ptr<Learner> make_dense_learner(const Settings& settings, const State* state) { return make_learner<DenseNodes>(settings, state); }

}  // namespace mlca::MLCA_LEVEL
