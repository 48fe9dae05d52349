#include "mixed_nodes.hpp"
#include "making.hpp"

namespace mlca::MLCA_LEVEL {

std::shared_ptr<Learner> make_mixed_learner(const Settings& settings, const State* state) { return make_learner<MixedNodes>(settings, state); }

}  // namespace mlca::MLCA_LEVEL
